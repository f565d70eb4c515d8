"""Clients that go away, come back, or come all at once; and the server that goes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent, Send
from tests.auth.minting import mint
from tests.mcp.mcp_clients import LATEST, connected, opened, text_of
from tests.mcp.raw_mcp import EARLIER, Line, RawMcp
from tests.real_server import RealServer

Start = Callable[[bool], Awaitable[RawMcp]]

ERAS = pytest.mark.parametrize("modern", [False, True], ids=[EARLIER, LATEST])


class Gate:
    """A place in code at which it says that it is there, and waits to be let on."""

    def __init__(self, folder: Path) -> None:
        self._here, self._go = folder / "here", folder / "go"
        os.mkfifo(self._here)
        os.mkfifo(self._go)

    @property
    def source(self) -> str:
        return (
            f"open({str(self._here)!r}, 'w').close()\nopen({str(self._go)!r}).read()\n"
            "print('went on')"
        )

    async def until_it_is_here(self) -> None:
        await asyncio.to_thread(self._here.read_text)

    async def let_it_on(self) -> None:
        await asyncio.to_thread(self._go.write_text, "")


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def url(jp_serverapp: Any) -> str:
    port, base = jp_serverapp.port, jp_serverapp.base_url
    return f"http://127.0.0.1:{port}{base}api/agent-exec/mcp"


@pytest.fixture
def start(ask: Send, jp_serverapp: Any) -> Start:
    """Begin as a client of one of two eras does."""
    token = str(jp_serverapp.identity_provider.token)
    return lambda modern: RawMcp(ask, token, modern=modern).ready()


async def until_no_call_waits() -> None:
    while any(task.get_name().startswith("mcp-execute") for task in asyncio.all_tasks()):
        await asyncio.sleep(0)


@ERAS
async def test_a_client_that_goes_away_leaves_its_code_alone(
    agent: Agent, start: Start, url: str, gate: Gate, modern: bool
) -> None:
    raw = await start(modern)
    session_id = await raw.opened()
    arguments = {"session_id": session_id, "source": gate.source, "idempotency_key": "once"}
    line = await Line.call(url, raw, "execute", **arguments)
    await gate.until_it_is_here()
    line.close()
    await until_no_call_waits()
    (execution,) = (await agent.get(f"sessions/{session_id}/executions")).json["executions"]
    assert execution["status"] == "running"
    await gate.let_it_on()
    again = await raw.call("execute", **arguments)
    assert again["structuredContent"]["execution_id"] == execution["id"]
    assert "went on" in again["content"][0]["text"]


async def test_an_earlier_client_cancels_its_wait(
    agent: Agent, start: Start, url: str, gate: Gate
) -> None:
    raw = await start(False)
    session_id = await raw.opened()
    line = await Line.call(url, raw, "execute", session_id=session_id, source=gate.source)
    await gate.until_it_is_here()
    cancelled = {"requestId": line.id, "reason": "of no interest any more"}
    said = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}
    assert (await raw.send(said)).status == 202
    assert b"cancelled" in await line.until(b"cancelled")
    line.close()
    await gate.let_it_on()
    (execution,) = (await agent.get(f"sessions/{session_id}/executions")).json["executions"]
    told = (await agent.get(f"executions/{execution['id']}", wait=30)).json
    assert told["status"] == "ok"


class TestInterrupts:
    @pytest.fixture
    def agent_exec_config(self) -> dict[str, Any]:
        return {"mcp_disconnect_interrupts": True}

    @ERAS
    async def test_the_operator_may_have_its_code_interrupted(
        self, agent: Agent, start: Start, url: str, gate: Gate, modern: bool
    ) -> None:
        raw = await start(modern)
        session_id = await raw.opened()
        line = await Line.call(url, raw, "execute", session_id=session_id, source=gate.source)
        await gate.until_it_is_here()
        line.close()
        (execution,) = (await agent.get(f"sessions/{session_id}/executions")).json["executions"]
        told = (await agent.get(f"executions/{execution['id']}", wait=30)).json
        assert told["status"] == "interrupted"


@ERAS
async def test_a_token_that_is_revoked_gets_no_answer_it_waits_for(
    agent: Agent, ask: Send, url: str, gate: Gate, modern: bool
) -> None:
    id, secret = await mint(agent)
    raw = await RawMcp(ask, secret, modern=modern).ready()
    session_id = await raw.opened()
    line = await Line.call(url, raw, "execute", session_id=session_id, source=gate.source)
    await gate.until_it_is_here()
    assert (await agent.ask("DELETE", f"tokens/{id}")).status == 200
    assert b"was revoked" in await line.until(b"was revoked")
    line.close()


async def test_ten_clients_at_once(server: RealServer) -> None:
    connected_now = 0
    all_connected = asyncio.Event()

    async def work(number: int) -> list[str]:
        async with connected(server) as client:
            nonlocal connected_now
            connected_now += 1
            if connected_now == 10:
                all_connected.set()
            await all_connected.wait()
            session_id = await opened(client, title=str(number))
            told = []
            for source in (f"x = {number}", "x * 10", "print('-' * 1000)"):
                arguments = {"session_id": session_id, "source": source}
                told.append(text_of(await client.call_tool("execute", arguments)))
            await client.call_tool("stop", {"session_id": session_id})
            return told

    for number, told in enumerate(await asyncio.gather(*(work(each) for each in range(10)))):
        assert str(number * 10) in told[1].splitlines()[0]


async def test_a_server_that_stops_ends_all_waits(
    jp_serverapp: Any, ask: Send, start: Start, url: str, gate: Gate
) -> None:
    raw = await start(False)
    session_id = await raw.opened()
    line = await Line.call(url, raw, "execute", session_id=session_id, source=gate.source)
    await gate.until_it_is_here()
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    await app.stop_extension()
    line.close()
    answered = await raw.ask("tools/list")
    assert (answered.status, answered.json["code"]) == (503, "server_stopping")
