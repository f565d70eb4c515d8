"""An agent whose token lets it only look: it reads, and tries code that changes nothing."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, mint
from tests.real_server import Gate, gate
from tests.sessions.living_notebook import (
    NOTEBOOK,
    Desk,
    at_persons_cell,
    desk,
    finished,
    notebook_target,
)

__all__ = ["desk", "gate"]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="trials need Linux")


async def test_a_token_that_looks_runs_trials_and_nothing_else(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    desk.writes(NOTEBOOK, "x = 1")
    kernel_id = (await desk.opens())["kernel"]["id"]
    await (await desk.sits_at(kernel_id)).has_run("x = 1")
    _, token = await mint(agent, f"look:notebook:{NOTEBOOK}")
    looker = TokenAgent(ask, token)
    for target in (notebook_target(), {"kind": "kernel", "kernel_id": kernel_id}):
        session = await looker.open(target=target)
        tried = await looker.run(session, "x = 5\nx", trial=True)
        assert (tried["status"], tried["text"]) == ("ok", "5")
        route = f"sessions/{session['id']}"
        variables = await looker.get(f"{route}/variables")
        assert [each["preview"] for each in variables.json["variables"]] == ["1"]
        for method, path, said in refused_requests(route):
            answered = await looker.ask(method, path, said)
            assert (answered.status, answered.json["code"]) == (403, "forbidden"), path
        opened = await looker.ask(
            "POST", "sessions", {"agent": {"name": "a"}, "target": target, "init_source": "x = 2"}
        )
        assert (opened.status, opened.json["code"]) == (403, "forbidden")
        assert (await looker.ask("POST", f"{route}/close")).status == 200
    cells = (await looker.get(f"notebooks/{NOTEBOOK}/cells")).json["cells"]
    assert [cell["source"] for cell in cells] == ["x = 1"]
    own = await looker.ask("POST", "sessions", {"agent": {"name": "a"}})
    assert (own.status, own.json["detail"]["scope"]) == (403, "exec:scratch")


def refused_requests(route: str) -> list[tuple[str, str, Any]]:
    insert = {"op": "insert", "cell_type": "code", "source": "x = 2"}
    return [
        ("POST", f"{route}/executions", {"source": "x = 2"}),
        ("POST", f"{route}/executions", {"source": "x = 2", "trial": False, "placement": "none"}),
        ("POST", f"{route}/steps", {"steps": [{"source": "x = 2"}]}),
        ("POST", f"{route}/restart", {}),
        ("POST", f"{route}/restore", {}),
        ("GET", f"{route}/files", None),
        ("PATCH", f"notebooks/{NOTEBOOK}/cells", {"changes": [insert]}),
    ]


async def test_a_token_that_may_run_code_may_also_look(agent: Agent, ask: Send, desk: Desk) -> None:
    await desk.opens()
    _, token = await mint(agent, f"exec:notebook:{NOTEBOOK}")
    session = await TokenAgent(ask, token).open(target=notebook_target())
    assert (await TokenAgent(ask, token).run(session, "1 + 1", trial=True))["text"] == "2"


async def test_a_moved_notebooks_waiting_code_runs_only_as_a_trial(
    agent: Agent, ask: Send, desk: Desk, gate: Gate
) -> None:
    person = await desk.sits_at((await desk.opens())["kernel"]["id"])
    _, token = await mint(agent, f"exec:notebook:{NOTEBOOK}", "look:notebook:moved.ipynb")
    mine = TokenAgent(ask, token)
    session = await mine.open(target=notebook_target())
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    waits = await mine.run(session, "touched = 1", wait=0, placement="none")
    tries = await mine.run(session, "6 * 7", wait=0, trial=True)
    await desk.ask("PATCH", f"contents/{NOTEBOOK}", {"path": "moved.ipynb"})
    gate.let_it_go_on()
    await person.reply(cell)
    ended = await finished(agent, waits)
    assert ended["status"] == "cancelled"
    assert "moved.ipynb" in ended["reason"]
    assert (await finished(agent, tries))["text"] == "42"
    assert (await person.has_run("touched"))["ename"] == "NameError"
    asked = {"source": "x = 2", "placement": "none"}
    refused = await mine.ask("POST", f"sessions/{session['id']}/executions", asked)
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
