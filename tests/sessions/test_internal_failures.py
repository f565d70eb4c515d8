"""What nobody foresaw fails: the execution ends nevertheless, and the session goes on."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.executions import session_kernels
from jupyter_agent_exec.kernels import execute_request
from jupyter_agent_exec.services import Leaf
from tests.asking import Agent
from tests.sessions.living_notebook import Desk, entries, finished, notebook_target


async def test_a_failure_while_an_answer_is_read_ends_its_execution_as_lost(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(reply: object) -> bool:
        raise RuntimeError("unforeseen")

    session = await agent.open()
    await agent.run(session, "x = 0")
    with monkeypatch.context() as patch:
        patch.setattr(execute_request, "exits", fail)
        odd = await agent.run(session, "x = 1", wait=30)
    assert odd["status"] == "lost", odd
    assert "its end is not known" in odd["reason"]
    assert odd["outputs_complete"] is False
    assert (await agent.run(session, "x", wait=30))["text"].strip() == "1"
    told = [entry for entry in await entries(agent, session) if entry["type"] == "finished"]
    assert [entry["status"] for entry in told] == ["ok", "lost", "ok"]


FORGES = """
kernel = get_ipython().kernel
parent = {{"msg_id": open({!r}).read(), "session": kernel.get_parent()["header"]["session"]}}
message = kernel.session.msg("stream", {{"name": "stdout", "text": "forged"}}, parent=parent)
kernel.session.send(kernel.iopub_socket, message)
"""


async def test_output_of_an_unsent_execution_is_left_out(agent: Agent, tmp_path: Path) -> None:
    pipe = tmp_path / "id"
    os.mkfifo(pipe)
    session = await agent.open()
    forging = await agent.run(session, FORGES.format(str(pipe)), wait=0)
    queued = await agent.run(session, "print('mine')", wait=0)
    await asyncio.to_thread(pipe.write_text, queued["id"])
    assert (await finished(agent, forging))["status"] == "ok"
    done = await finished(agent, queued)
    assert done["text"].endswith("mine\n")
    assert (done["outputs_complete"], done["omitted"]["outputs"]) == (False, 1)
    await agent.run(session, "1")  # what came late is recorded before the next is sent
    assert "late_output" not in {entry["type"] for entry in await entries(agent, session)}


class Broken:
    """A database on a disk that fails."""

    def execute(self, *args: Any) -> Any:
        raise sqlite3.OperationalError("disk I/O error")


async def test_what_fails_before_it_is_accepted_is_refused_and_the_next_goes_on(
    agent: Agent, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.opens()
    session = await agent.open(target=notebook_target())
    with monkeypatch.context() as patch:
        patch.setattr(desk.server.session_manager, "_cursor", Broken())
        refused = await agent.ask(
            "POST", f"sessions/{session['id']}/executions", {"source": "1", "wait": 30}
        )
        assert (refused.status, refused.json["code"]) == (500, "internal_error"), refused.json
    done = await finished(agent, await agent.run(session, "2"))
    assert (done["status"], done["seq"]) == ("ok", 1)


async def test_a_session_that_fails_to_open_for_an_unforeseen_reason_is_closed(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise RuntimeError("unforeseen")

    with monkeypatch.context() as patch:
        patch.setattr(session_kernels, "timestamp", fail)
        failed = await agent.ask("POST", "sessions", {"agent": {"name": "tester"}})
    assert (failed.status, failed.json["code"]) == (500, "internal_error")
    [session] = (await agent.get("sessions")).json["sessions"]
    assert (session["status"], session["close_reason"]) == ("closed", "init_failed")


class BrokenLeaf(Leaf):
    """A part that cannot be stopped."""

    async def stop(self) -> None:
        raise RuntimeError("unforeseen")


async def test_sessions_are_closed_although_a_part_of_the_extension_does_not_stop(
    agent: Agent, jp_serverapp: Any, history_dir: Path
) -> None:
    session = await agent.open()
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    app.services._leaves = [BrokenLeaf(app, app.log), *app.services._leaves]
    await app.stop_extension()
    journal = history_dir / "sessions" / session["id"] / "journal.jsonl"
    assert '"reason":"server_stopped"' in journal.read_text()
