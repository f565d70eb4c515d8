"""Clients that close their connection before they are answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from jupyter_agent_exec.aca.manager import Client
from jupyter_agent_exec.aca.outcome import CodeToExecute
from jupyter_agent_exec.auth.scopes import Caller
from tests.aca.dynamic_asking import DynamicSession
from tests.asking import Agent
from tests.files.files_asking import Wire
from tests.real_server import Gate

SessionOf = Callable[..., DynamicSession]


async def begin(wire: Wire, code: str) -> None:
    """Send code, and wait for nothing."""
    body = json.dumps({"properties": {"code": code}}).encode()
    at = "aca/code/execute?identifier=one"
    await wire.begin("POST", at, Content_Length=str(len(body)))
    await wire.send(body)


async def executions(agent: Agent) -> list[dict[str, Any]]:
    (session,) = (await agent.get("sessions")).json["sessions"]
    listed = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"]
    return [each for each in listed if not each["init"]]


async def test_code_whose_client_goes_away_is_interrupted(
    session_of: SessionOf, agent: Agent, wire: Wire, gate: Gate
) -> None:
    await begin(wire, f"x = 'kept'\n{gate.source}")
    await asyncio.to_thread(gate.wait_until_it_runs)
    wire.close()
    assert (await session_of().run("x"))["result"] == "'kept'"
    stopped, _ = await executions(agent)
    assert stopped["status"] == "interrupted"
    assert stopped["agent"]["name"] == "Dynamic sessions"


async def test_code_that_waits_for_its_turn_is_taken_back(
    session_of: SessionOf, agent: Agent, wire: Wire, gate: Gate
) -> None:
    running = asyncio.ensure_future(session_of().run(gate.source))
    await asyncio.to_thread(gate.wait_until_it_runs)
    await begin(wire, "x = 'ran'")
    while len(await executions(agent)) < 2:
        pass
    wire.close()
    while (await executions(agent))[1]["status"] != "cancelled":
        pass
    await asyncio.to_thread(gate.let_it_go_on)
    assert (await running)["stdout"] == "went on\n"
    assert (await session_of().run("'x' in globals()"))["result"] == "False"


async def test_nothing_runs_for_a_client_that_left_while_its_session_opened(
    session_of: SessionOf, agent: Agent, jp_serverapp: Any
) -> None:
    app = next(iter(jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]))
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    gone.set_result(None)
    caller = Caller(username="ada", display_name="Ada", access="full")
    asked = CodeToExecute(code="x = 'ran'")
    sessions = app.services.of_handlers()["dynamic_sessions"]
    assert await sessions.execute(Client("one", None), asked, caller, gone, "/") is None
    assert (await session_of().run("'x' in globals()"))["result"] == "False"
    assert [each["source"] for each in await executions(agent)] == ["'x' in globals()"]
