"""Every call that changes a cell of the user's, by each mode of edits and of approval."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from itertools import product
from typing import Any

import httpx2
import pytest

from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.records import digest_of
from tests.cli.command import Cli
from tests.mcp.mcp_clients import connected
from tests.notebooks.notebooks_made import File, as_written, code, persons_notebook
from tests.real_server import RealServer, real_server, until

PATH = "sales.ipynb"
HTTP = httpx2.Client(timeout=60, trust_env=False)
OLD, NEW = "total = 1", "total = 2; print('ran', total)"


class Work:
    """A notebook with one cell, an agent with a session in it, and the user who decides."""

    def __init__(self, server: RealServer, edits: str, approval: str) -> None:
        self.server = server
        self.file = File(server.root_dir / PATH)
        self.file.text = as_written(persons_notebook(code("cell", OLD)))
        scopes = ["exec:notebook", "edit:notebook"]
        asked = {"label": "a", "scopes": scopes, "edits": edits}
        minted = self.person("POST", "tokens", {**asked, "approval": approval.split()[0]})
        self.secret = minted.json()["secret"]
        target = {"kind": "notebook", "path": PATH}
        opened = self.agent("POST", "sessions", {"agent": {"name": "a"}, "target": target})
        self.session = opened.json()["id"]
        OPEN.append(self)
        if approval in ("first approved", "always granted"):
            asked = self.run(placement="none", source="1", wait=0).json()
            self.approve(asked, **({"grant": "restart"} if "granted" in approval else {}))

    def _ask(self, token: str, method: str, route: str, body: Any) -> httpx2.Response:
        url = self.server.url.partition("?")[0] + f"api/agent-exec/{route}"
        headers = {"Authorization": f"Bearer {token}"}
        return HTTP.request(method, url, json=body, headers=headers)

    def person(self, method: str, route: str, body: Any = None) -> httpx2.Response:
        return self._ask(self.server.token, method, route, body)

    def agent(self, method: str, route: str, body: Any = None) -> httpx2.Response:
        return self._ask(self.secret, method, route, body)

    def run(self, **asked: Any) -> httpx2.Response:
        said = {"source": NEW, "placement": {"cell": "cell"}, **asked}
        return self.agent("POST", f"sessions/{self.session}/executions", said)

    def approve(self, execution: dict[str, Any], **more: str) -> httpx2.Response:
        said = {"source_sha256": digest_of(execution["source"].encode()), **more}
        return self.person("POST", f"executions/{execution['id']}/approve", said)

    def reject(self, execution: dict[str, Any]) -> httpx2.Response:
        return self.person("POST", f"executions/{execution['id']}/reject", {"reason": "No."})

    def ended(self, id: str) -> dict[str, Any]:
        """Return an execution when it has ended and it is known what became of its cell."""
        self.agent("GET", f"executions/{id}?wait=60")
        self.shown()  # does not wait for other cells to be written with this one
        route = f"executions/{id}"
        states = ("written", "not_written")
        until(lambda: self.agent("GET", route).json()["document"]["status"] in states)
        return dict(self.agent("GET", route).json())

    def asking(self) -> list[dict[str, Any]]:
        asking = self.person("GET", "approvals").json()["executions"]
        return [each for each in asking if each["session_id"] == self.session]

    def open_edits(self) -> list[dict[str, Any]]:
        proposals = self.person("GET", f"proposals?session_id={self.session}").json()["proposals"]
        edits = [edit for each in proposals for edit in each["edits"]]
        return [edit for edit in edits if edit["status"] == "open"]

    def last(self) -> dict[str, Any]:
        route = f"sessions/{self.session}/executions"
        return dict(self.agent("GET", route).json()["executions"][-1])

    def shown(self) -> str:
        """Return the cell's source in the document."""
        (cell,) = self.agent("GET", f"notebooks/{PATH}/cells").json()["cells"]
        return str(cell["source"])

    def stored(self) -> tuple[str, list[Any]]:
        """Return the cell's source and outputs on disk."""
        (cell,) = json.loads(self.file.text)["cells"]
        return "".join(cell["source"]), cell["outputs"]


OPEN: list[Work] = []
"""What the test that runs has opened."""

Route = Callable[[Work], Awaitable[Any]]


async def rest(work: Work) -> None:
    work.run(wait=0)


async def steps(work: Work) -> None:
    step = {"source": NEW, "placement": {"cell": "cell"}}
    work.agent("POST", f"sessions/{work.session}/steps", {"steps": [step], "wait": 0})


async def _tool(work: Work, name: str, **asked: Any) -> None:
    async with connected(work.server, token=work.secret) as client:
        await client.call_tool(name, {"session_id": work.session, **asked})


async def mcp(work: Work) -> None:
    await _tool(work, "execute", source=NEW, placement={"cell": "cell"}, wait=0)


async def mcp_steps(work: Work) -> None:
    await _tool(work, "execute", steps=[{"source": NEW, "placement": {"cell": "cell"}}], wait=0)


REPLACE = {"op": "replace", "cell_id": "cell", "source": NEW}


async def edit(work: Work) -> None:
    body = {"session_id": work.session, "edits": [REPLACE]}
    work.agent("PATCH", f"notebooks/{PATH}/cells", body)


async def mcp_edit(work: Work) -> None:
    await _tool(work, "edit_notebook", edits=[REPLACE])


EXECUTES = (rest, steps, mcp, mcp_steps)
EDITS = (edit, mcp_edit)
APPROVALS = ("none", "first", "first approved", "always", "always granted")
FREE = ("none", "first approved", "always granted")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("edits")) as running:
        yield running
    HTTP.close()
    assert verify_history(running.history_dir).findings == []


@pytest.fixture(autouse=True)
def closed(server: RealServer) -> Iterator[None]:
    """Close what the test opened: what waits in a cell keeps others from editing it."""
    yield
    for work in OPEN:
        work.person("POST", f"sessions/{work.session}/close")
    OPEN.clear()


@pytest.mark.parametrize(("route", "approval"), list(product(EXECUTES, APPROVALS)))
async def test_a_run_with_another_source_waits_as_one_proposal(
    server: RealServer, route: Route, approval: str
) -> None:
    work = Work(server, "propose", approval)
    before = work.file.text
    await route(work)
    (asking,) = work.asking()
    assert (asking["status"], asking["source"]) == ("awaiting_approval", NEW)
    assert (asking["approval"]["before"], asking["approval"]["edits_cell"]) == (OLD, True)
    assert "the cell keeps its source" in asking["text"]
    assert (work.shown(), work.open_edits()) == (OLD, [])
    work.reject(asking)
    assert work.ended(asking["id"])["status"] == "rejected"
    assert (work.shown(), work.file.text) == (OLD, before)
    await route(work)
    (asking,) = work.asking()
    work.approve(asking)
    done = work.ended(asking["id"])
    assert (done["status"], done["document"]["status"]) == ("ok", "written")
    source, (output,) = work.stored()
    assert (work.shown(), source, output["text"]) == (NEW, NEW, ["ran 2\n"])


@pytest.mark.parametrize(("route", "approval"), list(product(EXECUTES, APPROVALS)))
async def test_a_run_with_another_source_needs_approval_where_edits_apply(
    server: RealServer, route: Route, approval: str
) -> None:
    work = Work(server, "apply", approval)
    await route(work)
    asking = work.asking()
    assert len(asking) == (approval not in FREE)
    for each in asking:
        assert (work.shown(), each["approval"]["edits_cell"]) == (OLD, False)
        work.approve(each)
    assert work.ended(work.last()["id"])["status"] == "ok"
    assert (work.shown(), work.stored()[0]) == (NEW, NEW)


@pytest.mark.parametrize(
    ("route", "edits", "approval"), list(product(EDITS, ("propose", "apply"), APPROVALS))
)
async def test_an_edit_is_proposed_made_or_refused(
    server: RealServer, route: Route, edits: str, approval: str
) -> None:
    work = Work(server, edits, approval)
    await route(work)
    made = NEW if edits == "apply" and approval in FREE else OLD
    assert (work.shown(), work.stored()[0], work.asking()) == (made, made, [])
    assert len(work.open_edits()) == (edits == "propose")
    if edits == "propose":
        work.person("POST", f"sessions/{work.session}/proposals/keep", {})
        assert (work.shown(), work.stored()) == (NEW, (NEW, []))  # it did not run


@pytest.mark.parametrize("source", [OLD, None])
def test_running_a_cell_as_it_is_is_no_edit(server: RealServer, source: str | None) -> None:
    work = Work(server, "propose", "none")
    done = work.run(source=source).json()
    assert (done["status"], done["source"], done["approval"]) == ("ok", OLD, None)


@pytest.mark.parametrize("approval", ["none", "first", "always"])
def test_a_cell_that_the_user_edits_meanwhile_is_asked_about_again(
    server: RealServer, approval: str
) -> None:
    work = Work(server, "propose", approval)
    asked = work.run(wait=0).json()
    mine = "total = 'mine'"
    work.file.text = work.file.text.replace(OLD, mine)
    refused = work.approve(asked)
    assert (refused.status_code, refused.json()["code"]) == (409, "approval_changed")
    (again,) = work.asking()
    assert (again["id"], again["approval"]["before"]) == (asked["id"], mine)
    assert work.stored() == (mine, [])
    assert work.approve(again).status_code == 200
    assert work.ended(asked["id"])["document"]["status"] == "written"
    assert work.stored()[0] == NEW


def test_a_cell_that_is_gone_is_not_run(server: RealServer) -> None:
    work = Work(server, "propose", "none")
    asked = work.run(wait=0).json()
    work.file.text = as_written(persons_notebook(code("another", OLD)))
    refused = work.approve(asked)
    assert (refused.status_code, refused.json()["code"]) == (404, "cell_not_found")
    assert [each["id"] for each in work.asking()] == [asked["id"]]
    work.reject(asked)
    assert work.ended(asked["id"])["status"] == "rejected"


def test_what_the_user_wrote_themselves_meanwhile_is_not_asked_about_again(
    server: RealServer,
) -> None:
    work = Work(server, "propose", "none")
    asked = work.run(wait=0).json()
    work.file.text = work.file.text.replace(OLD, NEW)
    assert work.approve(asked).status_code == 200
    assert work.ended(asked["id"])["document"]["status"] == "written"
    assert work.stored()[0] == NEW


def test_it_replaces_the_sessions_open_edit_of_the_cell_and_holds_further_ones(
    server: RealServer,
) -> None:
    work = Work(server, "propose", "none")
    body = {"session_id": work.session, "edits": [{**REPLACE, "source": "total = 3"}]}
    assert work.agent("PATCH", f"notebooks/{PATH}/cells", body).status_code == 202
    asked = work.run(wait=0).json()
    until(lambda: not work.open_edits())
    for refused in (
        work.run(source="total = 4"),
        work.agent("PATCH", f"notebooks/{PATH}/cells", body),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "cell_busy")
    assert asked["approval"]["before"] == OLD
    work.reject(asked)
    work.ended(asked["id"])
    assert work.stored() == (OLD, [])
    assert work.agent("GET", f"sessions/{work.session}").json()["proposed"] == 0


def test_another_sessions_open_edit_stays_and_says_that_it_does_not_fit(
    server: RealServer,
) -> None:
    other = Work(server, "propose", "none")
    body = {"session_id": other.session, "edits": [{**REPLACE, "source": "total = 3"}]}
    assert other.agent("PATCH", f"notebooks/{PATH}/cells", body).status_code == 202
    work = Work(server, "propose", "none")
    asked = work.run(wait=0).json()
    held = other.person("POST", f"sessions/{other.session}/proposals/keep", {"ids": None})
    assert other.open_edits()[0]["fits"], held.text
    work.approve(asked)
    work.ended(asked["id"])
    (edit,) = other.open_edits()
    assert (edit["fits"], work.stored()[0]) == (False, NEW)


def test_a_grant_covers_no_edit(server: RealServer) -> None:
    work = Work(server, "propose", "always")
    asked = work.run(wait=0).json()
    work.approve(work.run(placement="none", source="1", wait=0).json(), grant="restart")
    assert [each["id"] for each in work.asking()] == [asked["id"]]
    assert work.stored() == (OLD, [])


def test_what_the_user_writes_in_the_request_is_what_the_cell_gets(server: RealServer) -> None:
    work = Work(server, "propose", "none")
    asked = work.run(wait=0).json()
    said = {"source_sha256": digest_of(NEW.encode()), "source": "total = 5"}
    work.person("POST", f"executions/{asked['id']}/approve", said)
    work.ended(asked["id"])
    assert work.stored()[0] == "total = 5"


def test_it_is_proposed_from_the_command_line_and_shown_there(
    server: RealServer, tmp_path: Any
) -> None:
    work = Work(server, "propose", "none")
    agents = Cli({**server.environ, "JUPYTER_AGENT_EXEC_TOKEN": work.secret}, tmp_path)
    process = agents.start("run", "--session", work.session, "--cell", "cell", "--code", NEW)
    until(work.asking)
    (asked,) = work.asking()
    shown = Cli(server.environ, tmp_path)("approve", asked["id"], "--yes").stderr
    assert "It replaces the source of this cell, and runs it:" in shown
    assert f"   - | {OLD}\n   + | {NEW}\n" in shown
    assert process.communicate()[0] == "ran 2\n"
    work.ended(asked["id"])
    assert work.stored()[0] == NEW


def test_a_restored_session_leaves_its_cells_as_they_are(server: RealServer) -> None:
    work = Work(server, "apply", "none")
    work.ended(work.run().json()["id"])
    work.file.text = work.file.text.replace("total = 2; ", "total = 7; ")
    work.person("POST", f"sessions/{work.session}/close")
    restored = work.person("POST", f"sessions/{work.session}/restore", {"wait": 60})
    assert restored.status_code in (200, 201), restored.text
    assert work.stored()[0].startswith("total = 7")
