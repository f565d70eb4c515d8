"""The gate: what runs or changes something passes pause, approval and caps, whichever way it came.

Each row of the tables is one way; a way that gets by the gate fails here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pytest

from jupyter_agent_exec.records import AccessDenied
from tests.approvals.person_deciding import approve, asks, grant, look, set_paused, withdraw
from tests.asking import Agent, Answered, Send
from tests.auth.minting import TokenAgent, ledger, mint
from tests.sessions.living_notebook import NOTEBOOK, Desk, entries, finished, notebook_target

pytestmark = pytest.mark.usefixtures("cells_have_time")


class Way(NamedTuple):
    """A way to run or to change something."""

    method: str
    path: str
    said: Any


CODE = [
    Way("PUT", "sessions/{id}/files/sales_tools.py", "print(1)"),
    Way("PUT", "sessions/{id}/files/lib/fast.so", "print(1)"),
    Way("PUT", "sessions/{id}/files/Makefile", "all:"),
    Way("PUT", "sessions/{id}/files/jupyter_server_config.json", "{}"),
    Way("DELETE", "sessions/{id}/files/sales_tools.py", None),
    *(
        Way("PATCH", f"notebooks/{NOTEBOOK}/cells", {"session_id": "{id}", "edits": [edit]})
        for edit in (
            {"op": "insert", "cell_type": "code", "source": "steal()"},
            {"op": "replace", "cell_id": "code", "source": "steal()"},
            {"op": "replace", "cell_id": "text", "cell_type": "code", "source": "steal()"},
            {"op": "move", "cell_id": "code"},
            {"op": "split", "cell_id": "code", "parts": [{"cell_type": "code", "source": "x"}] * 2},
            {"op": "delete", "cell_id": "code"},
        )
    ),
]
DATA = [
    Way("PUT", "sessions/{id}/files/sales.csv", "a,b"),
    Way("DELETE", "sessions/{id}/files/sales.csv", None),
    *(
        Way("PATCH", f"notebooks/{NOTEBOOK}/cells", {"session_id": "{id}", "edits": [edit]})
        for edit in (
            {"op": "insert", "cell_type": "markdown", "source": "# Sales"},
            {"op": "replace", "cell_id": "text", "source": "# Costs"},
            {"op": "clear_outputs"},
        )
    ),
]
LOOKS = [
    Way("GET", "sessions/{id}/variables", None),
    Way("GET", "sessions/{id}/packages", None),
]


def route_of(way: Way) -> str:
    """Return the template of a way's route."""
    if "/files/" in way.path:
        return "/sessions/{session_id}/files/{path}"
    path = way.path.replace("{id}", "{session_id}").replace(NOTEBOOK, "{path}")
    return f"/{path}"


class Bench:
    """An agent with a token, in a session with a person's notebook."""

    def __init__(self, person: Agent, ask: Send, desk: Desk, *, approval: str) -> None:
        self.person = person
        self._ask = ask
        self._desk = desk
        self._approval = approval

    async def open(self) -> None:
        self.writes()
        scopes = ("exec:notebook", "edit:notebook", "files")
        _, token = await mint(self.person, *scopes, approval=self._approval)
        self._headers = {"Authorization": f"Bearer {token}"}
        self.agent = TokenAgent(self._ask, token)
        self.session = await self.agent.open(target=notebook_target())

    def writes(self) -> None:
        cells = [nbformat.v4.new_code_cell("1 + 1"), nbformat.v4.new_markdown_cell("# Title")]
        for cell, id in zip(cells, ("code", "text"), strict=True):
            cell["id"] = id
        nbformat.write(nbformat.v4.new_notebook(cells=cells), self._desk.root / NOTEBOOK)

    def kept(self) -> dict[str, bytes]:
        """Return all files in the person's folder."""
        root = self._desk.root
        return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    async def goes(self, way: Way) -> Answered:
        id = self.session["id"]
        path = way.path.replace("{id}", id)
        if isinstance(way.said, str):
            return await self._ask(way.method, path, headers=self._headers, body=way.said)
        said = way.said
        if said is not None and "session_id" in said:
            said = {**said, "session_id": id}
        return await self.agent.ask(way.method, path, said)

    async def refused(self, ways: list[Way], status: int, code: str) -> None:
        """See each way refused, and nothing changed or recorded."""
        self.writes()
        kept, recorded = self.kept(), await entries(self.person, self.session)
        for way in ways:
            answered = await self.goes(way)
            assert (answered.status, answered.json["code"]) == (status, code), way
        assert self.kept() == kept
        assert await entries(self.person, self.session) == recorded

    async def passed(self, ways: list[Way]) -> None:
        for way in ways:
            if "notebooks/" in way.path:
                self.writes()
            answered = await self.goes(way)
            assert answered.status < 300, (way, answered.body)


async def test_no_code_gets_through_before_approval(
    agent: Agent, ask: Send, desk: Desk, history_dir: Path
) -> None:
    bench = Bench(agent, ask, desk, approval="first")
    await bench.open()
    await bench.refused(CODE, 403, "approval_required")
    denied = {(each.code, each.method, each.route) for each in ledger(history_dir, AccessDenied)}
    assert denied >= {("approval_required", way.method, route_of(way)) for way in CODE}
    await bench.passed([*DATA, *LOOKS])
    execution = await asks(bench.agent, bench.session, "1", placement="none")
    await bench.refused(CODE, 403, "approval_required")
    assert (await approve(agent, execution)).status == 200
    await finished(agent, execution)
    await bench.passed([*CODE, *DATA, *LOOKS])


async def test_with_always_a_change_needs_a_grant_and_one_approval_is_not_enough(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    bench = Bench(agent, ask, desk, approval="always")
    await bench.open()
    execution = await asks(bench.agent, bench.session, "1", placement="none")
    await approve(agent, execution)
    await finished(agent, execution)
    await bench.refused(CODE, 403, "approval_required")
    refused = await bench.goes(CODE[0])
    assert "Approve and let it run…" in refused.json["message"]
    await grant(agent, await asks(bench.agent, bench.session, "1", placement="none"))
    await bench.passed(CODE)
    await withdraw(agent, bench.session)
    await bench.refused(CODE, 403, "approval_required")


async def test_a_pause_lets_nothing_through(agent: Agent, ask: Send, desk: Desk) -> None:
    bench = Bench(agent, ask, desk, approval="none")
    await bench.open()
    await bench.passed([CODE[0], DATA[0]])
    restart = Way("POST", "sessions/{id}/restart", None)
    await set_paused(agent, True)
    await bench.refused([*CODE, *DATA, *LOOKS], 409, "agents_paused")
    scratch = TokenAgent(ask, (await mint(agent))[1])
    own = await scratch.open()
    refused = await scratch.ask(restart.method, restart.path.format(id=own["id"]))
    assert (refused.status, refused.json["code"]) == (409, "agents_paused")
    made = {"agent": {"name": "a"}, "target": notebook_target("new.ipynb", create=True)}
    refused = await bench.agent.ask("POST", "sessions", made)
    assert (refused.status, refused.json["code"]) == (409, "agents_paused")
    assert not (desk.root / "new.ipynb").exists()
    await set_paused(agent, False)
    await bench.passed([*CODE, *DATA, *LOOKS])


async def test_in_a_pause_no_cell_of_an_execution_comes_or_changes(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    bench = Bench(agent, ask, desk, approval="none")
    await bench.open()
    before = bench.kept()
    await set_paused(agent, True)
    there = {"cell": "code"}
    asked = [
        await bench.agent.run(bench.session, "2", wait=0),
        await bench.agent.run(bench.session, "3", wait=0, placement={"after": "code"}),
        await bench.agent.run(bench.session, "4", wait=0, placement=there),
    ]
    cells = (await agent.get(f"notebooks/{NOTEBOOK}/cells")).json["cells"]
    assert [cell["source"] for cell in cells] == ["1 + 1", "# Title"]
    assert bench.kept() == before
    cancelled = await bench.agent.run(bench.session, "5", wait=0)
    await bench.agent.ask("POST", f"executions/{cancelled['id']}/cancel")
    await set_paused(agent, False)
    for execution in asked:
        assert (await finished(agent, execution))["status"] == "ok"
    cells = (await agent.get(f"notebooks/{NOTEBOOK}/cells")).json["cells"]
    assert [cell["source"] for cell in cells] == ["4", "3", "# Title", "2"]
    assert (await look(agent, cancelled))["document"]["status"] == "not_written"


async def test_what_runs_code_counts_against_the_cap(agent: Agent, ask: Send) -> None:
    mine = TokenAgent(ask, (await mint(agent, caps={"executions_per_minute": 2}))[1])
    session = await mine.open(allow_stdin=True)
    execution = await mine.run(session, "input()", wait=30)
    assert execution["status"] == "awaiting_input"
    answered = await mine.ask("POST", f"executions/{execution['id']}/input", {"value": "1"})
    assert answered.status == 200
    assert (await mine.get(f"executions/{execution['id']}?wait=30")).json["status"] == "ok"
    refused = await mine.ask("POST", f"sessions/{session['id']}/restart")
    assert (refused.status, refused.json["code"]) == (429, "too_many_requests")
    assert (await mine.get(f"sessions/{session['id']}/variables")).status == 200


async def test_an_agent_answers_input_only_where_its_code_may_run(agent: Agent, ask: Send) -> None:
    mine = TokenAgent(ask, (await mint(agent, approval="always"))[1])
    session = await mine.open(allow_stdin=True)
    execution = await asks(mine, session, "exec(input())")
    await approve(agent, execution)
    while (await look(agent, execution))["status"] != "awaiting_input":
        pass
    route = f"executions/{execution['id']}/input"
    refused = await mine.ask("POST", route, {"value": "steal()"})
    assert (refused.status, refused.json["code"]) == (403, "approval_required")
    assert (await agent.ask("POST", route, {"value": "pass", "wait": 30})).json["status"] == "ok"


# -- what is approved is what the cell shows -------------------------------------------------------


async def test_no_agent_edits_a_cell_in_which_an_execution_waits(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    bench = Bench(agent, ask, desk, approval="always")
    await bench.open()
    other = await agent.open(target=notebook_target())
    execution = await asks(bench.agent, bench.session, "1 + 1", placement={"cell": "code"})
    ways: list[dict[str, Any]] = [
        {"op": "replace", "cell_id": "code", "source": "steal()"},
        {"op": "split", "cell_id": "code", "parts": [{"cell_type": "code", "source": "x"}] * 2},
        {"op": "replace", "cell_id": "code", "cell_type": "markdown", "source": "x"},
        {"op": "move", "cell_id": "code", "after": "text"},
        {"op": "delete", "cell_id": "code"},
    ]
    for edit in ways:
        said = {"session_id": other["id"], "edits": [edit]}
        refused = await agent.ask("PATCH", f"notebooks/{NOTEBOOK}/cells", said)
        assert (refused.status, refused.json["code"]) == (409, "cell_busy"), edit
        assert refused.json["detail"]["execution_id"] == execution["id"]
    await approve(agent, execution)
    done = await finished(agent, execution)
    assert done["status"] == "ok"
    cells = (await agent.get(f"notebooks/{NOTEBOOK}/cells")).json["cells"]
    assert (cells[0]["source"], cells[0]["execution_id"]) == ("1 + 1", execution["id"])
    said = {"session_id": other["id"], "edits": [ways[0]]}
    assert (await agent.ask("PATCH", f"notebooks/{NOTEBOOK}/cells", said)).status == 200


@pytest.mark.parametrize("source", ["1 + 1", "3 + 3", None])
async def test_outputs_of_approved_code_never_stand_under_another_source(
    agent: Agent, ask: Send, desk: Desk, source: str | None
) -> None:
    bench = Bench(agent, ask, desk, approval="always")
    await bench.open()
    asked = {"placement": {"cell": "code"}, "wait": 0, "source": source}
    route = f"sessions/{bench.session['id']}/executions"
    execution = (await bench.agent.ask("POST", route, asked)).json
    notebook = nbformat.read(desk.root / NOTEBOOK, as_version=4)
    notebook.cells[0].source = "steal()"
    nbformat.write(notebook, desk.root / NOTEBOOK)  # such as by a program of the agent's
    answered = await approve(agent, execution)
    if source == "3 + 3":  # it would replace another source than the user has seen
        assert (answered.status, answered.json["code"]) == (409, "approval_changed")
        assert (await look(agent, execution))["approval"]["before"] == "steal()"
        cell = nbformat.read(desk.root / NOTEBOOK, as_version=4).cells[0]
        assert (cell.source, cell.outputs, cell.execution_count) == ("steal()", [], None)
        return
    done = await finished(agent, execution)
    while done["document"]["status"] == "writing":
        done = await look(agent, execution)
    assert (done["status"], done["document"]["status"]) == ("ok", "not_written")
    assert "source was changed" in done["document"]["reason"]
    cell = nbformat.read(desk.root / NOTEBOOK, as_version=4).cells[0]
    assert (cell.source, cell.outputs, cell.execution_count) == ("steal()", [], None)
    assert "agent_exec" not in cell.metadata
