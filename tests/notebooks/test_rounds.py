"""Taking back what an agent changed in a notebook, and making it again, through a real server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.types import Via
from tests.approvals.person_deciding import approve
from tests.asking import Agent, Answered, Send
from tests.notebooks.notebooks_made import File, as_written, code, markdown, persons_notebook
from tests.notebooks.test_proposals import PATH, PROPOSES, Proposing, agents_session, proposing
from tests.notebooks.ways import DictWay, Switch
from tests.server_process import server_process
from tests.sessions.living_notebook import finished

STREAM = {"output_type": "stream", "name": "stdout", "text": "a\n"}
EDITS = (
    {"op": "insert", "cell_type": "markdown", "source": "New", "after": "title"},
    {"op": "replace", "cell_id": "load", "source": "df = 2"},
    {"op": "move", "cell_id": "last", "before": "title"},
    {"op": "clear_outputs", "cell_id": "shown"},
    {"op": "delete", "cell_id": "gone"},
)


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": PROPOSES}


class Round:
    """What an agent changes in a notebook, and a user takes back."""

    def __init__(self, work: Proposing, file: File, way: DictWay | None) -> None:
        self.work = work
        self.file = file
        self.way = way

    @property
    def cells(self) -> dict[str, Any]:
        """The cells in order, without what an execution says of itself."""
        content = json.loads(self.file.text) if self.way is None else self.way.content
        cells = {}
        for cell in content["cells"]:
            metadata = {key: each for key, each in cell["metadata"].items() if key != "trusted"}
            cells[cell["id"]] = {
                **cell,
                "source": "".join(cell["source"]),
                "metadata": metadata,
            }
        return cells

    def type(self, id: str, source: str) -> None:
        """Edit a cell as the user does."""
        content = json.loads(self.file.text) if self.way is None else self.way.content
        for cell in content["cells"]:
            if cell["id"] == id:
                cell["source"] = source
        if self.way is None:
            self.file.text = json.dumps(content)

    async def run(self, source: str | None, **asked: Any) -> dict[str, Any]:
        agent = self.work.agent
        run = await agent.run({"id": self.work.session}, source, wait=0, **asked)
        if run["status"] == "awaiting_approval":
            await approve(self.work.person, run)
        run = await finished(agent, run)
        while run["document"]["status"] == "writing":
            run = (await agent.get(f"executions/{run['id']}")).json
        return run

    async def ask(self, what: str, **asked: Any) -> Answered:
        return await self.work.person.ask(
            "POST", f"sessions/{self.work.session}/round/{what}", asked
        )

    async def undo(self, **asked: Any) -> dict[str, Any]:
        answered = await self.ask("undo", **asked)
        assert answered.status == 200, answered.body
        return dict(answered.json)

    async def redo(self) -> dict[str, Any]:
        answered = await self.ask("redo")
        assert answered.status == 200, answered.body
        return dict(answered.json)


@pytest.fixture(params=["contents", "tab"])
def via(request: pytest.FixtureRequest) -> Via:
    via: Via = request.param
    return via


@pytest.fixture(params=["propose", "apply"])
def edits(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def begun(
    agent: Agent, ask: Send, root: Path, server: Any, via: Via = "contents", edits: str = "propose"
) -> Round:
    (root / "work").mkdir()
    file = File(root / PATH)
    file.text = as_written(
        persons_notebook(
            markdown("title", "# Sales"),
            code("load", "df = 1", [STREAM]),
            code("shown", "df", [STREAM]),
            code("gone", "old", [STREAM]),
            code("last", "df"),
        )
    )
    way = None
    if via != "contents":
        way = DictWay(json.loads(file.text), via=via)
        (app,) = server.extension_manager.extension_apps["jupyter_agent_exec"]
        app.services.proposals.notebooks._backends = [Switch(way)]
    return Round(await proposing(agent, ask, edits=edits), file, way)


async def test_all_that_an_agent_changed_is_taken_back_and_made_again(
    agent: Agent,
    ask: Send,
    jp_root_dir: Path,
    jp_serverapp: Any,
    history_dir: Path,
    via: Via,
    edits: str,
) -> None:
    round = await begun(agent, ask, jp_root_dir, jp_serverapp, via, edits)
    before = round.cells
    await round.work.edit(*EDITS)
    if edits == "propose":
        await round.work.decide("keep")
    new = await round.run("print(1)")
    await round.run("df = 3", placement={"cell": "load"})
    await round.run("df + 4", placement={"cell": new["id"]})
    after = round.cells
    assert list(after)[:2] == ["last", "title"]
    assert "gone" not in after
    assert after["load"]["source"] == "df = 3"
    assert after[new["id"]]["source"] == "df + 4"

    undone = await round.undo()
    cleared = {"outputs": [], "execution_count": None}
    assert round.cells == {**before, "load": {**before["load"], **cleared}}
    assert list(round.cells) == list(before)
    assert (undone["changes"], undone["left"]) == (8, [])
    assert undone["without_outputs"] == ["load"]
    assert set(undone["cell_ids"]) == set(before) ^ set(after) | {"load", "shown", "last"}
    assert (await round.undo())["changes"] == 0

    assert (await round.redo())["left"] == []
    assert round.cells == after
    assert list(round.cells) == list(after)
    assert (await round.redo())["changes"] == 0
    assert (await round.undo())["changes"] == 8
    assert list(round.cells) == list(before)

    asked = round.work.agent.run({"id": round.work.session}, "1", placement="none")
    told = (await asked)["decided_edits"]
    assert {each["status"] for each in told} == {"undone"}
    assert {"load", "gone", new["id"]} <= {each["cell_id"] for each in told}
    exported = (await agent.get(f"sessions/{round.work.session}/notebook")).json
    events = [each["type"] for each in exported["metadata"]["agent_exec"]["events"]]
    assert events.count("round_undone") == 3
    await round.work.agent.ask("POST", f"sessions/{round.work.session}/close")
    assert verify_history(history_dir).findings == []


async def test_what_the_user_has_changed_since_stays_and_is_named(
    agent: Agent, ask: Send, jp_root_dir: Path, jp_serverapp: Any, via: Via
) -> None:
    round = await begun(agent, ask, jp_root_dir, jp_serverapp, via, "apply")
    await round.work.edit(*EDITS[:3])
    new = await round.run("print(1)")
    other = await round.run("print(2)")
    round.type("load", "mine = 1")
    round.type(new["id"], "mine = 2")
    undone = await round.undo()
    assert {each["cell_id"]: each["reason"] for each in undone["left"]} == {
        "load": "The cell was edited since.",
        new["id"]: "The cell was edited since.",
    }
    assert list(round.cells) == ["title", "load", "shown", "gone", "last", new["id"]]
    assert round.cells["load"]["source"] == "mine = 1"
    assert other["id"] not in round.cells
    assert new["id"] not in undone["cell_ids"]


async def test_an_edit_between_two_of_the_agents_is_where_a_cell_goes_back_to(
    agent: Agent, ask: Send, jp_root_dir: Path, jp_serverapp: Any
) -> None:
    round = await begun(agent, ask, jp_root_dir, jp_serverapp, edits="apply")
    await round.work.edit(EDITS[1])
    round.type("load", "mine = 1")
    await round.work.edit({**EDITS[1], "source": "df = 3"})
    undone = await round.undo()
    assert [each["cell_id"] for each in undone["left"]] == ["load"]
    assert round.cells["load"]["source"] == "mine = 1"


async def test_only_what_was_changed_since_a_moment_is_taken_back(
    agent: Agent, ask: Send, jp_root_dir: Path, jp_serverapp: Any
) -> None:
    round = await begun(agent, ask, jp_root_dir, jp_serverapp, edits="apply")
    first = await round.run("print(1)")
    second = await round.run("print(2)")
    refused = await round.ask("undo", since="yesterday")
    assert (refused.status, refused.json["detail"]["field"]) == (400, "since")
    assert (await round.undo(since=second["accepted_at"]))["changes"] == 1
    assert first["id"] in round.cells
    assert second["id"] not in round.cells


async def test_a_cell_that_the_user_ran_again_or_an_agent_runs_stays(
    agent: Agent, ask: Send, jp_root_dir: Path, jp_serverapp: Any
) -> None:
    round = await begun(agent, ask, jp_root_dir, jp_serverapp, "tab", "apply")
    assert round.way is not None
    ran = await round.run("print(1)")
    round.way.cells[ran["id"]]["execution_count"] = 99
    body = {"source": "import time\ntime.sleep(600)", "wait": 0}
    path = f"sessions/{round.work.session}/executions"
    busy = (await round.work.agent.ask("POST", path, body)).json
    while busy["id"] not in round.cells:
        await asyncio.sleep(0)
    left = {each["cell_id"]: each["reason"] for each in (await round.undo())["left"]}
    assert left[ran["id"]] == "The cell was run since."
    assert set(left) <= {ran["id"], busy["id"]}
    assert {ran["id"], busy["id"]} <= set(round.cells)
    await round.work.agent.ask("POST", f"executions/{busy['id']}/cancel")


async def test_a_secret_that_the_record_lacks_is_not_put_back_as_a_mark(
    agent: Agent, ask: Send, jp_root_dir: Path, jp_serverapp: Any
) -> None:
    round = await begun(agent, ask, jp_root_dir, jp_serverapp, edits="apply")
    round.type("load", f"login('jaex_t_{'0' * 26}_{'a' * 64}')")
    await round.work.edit(EDITS[1])
    undone = await round.undo()
    assert [each["cell_id"] for each in undone["left"]] == ["load"]
    assert "secret" in undone["left"][0]["reason"]
    assert round.cells["load"]["source"] == "df = 2"


def test_a_round_is_taken_back_after_the_server_was_started_again(tmp_path: Path) -> None:
    (tmp_path / "root" / "work").mkdir(parents=True)
    file = File(tmp_path / "root" / PATH)
    file.text = as_written(persons_notebook(markdown("title", "# Sales")))
    before = json.loads(file.text)["cells"]
    with server_process(tmp_path, approval=PROPOSES) as server:
        session, headers = agents_session(server, edits="apply")
        edits = {"session_id": session, "edits": [EDITS[0]]}
        server.ask("PATCH", f"notebooks/{PATH}/cells", edits, headers=headers)
        run = {"source": "print(1)", "wait": 30}
        server.ask("POST", f"sessions/{session}/executions", run, headers=headers)
    with server_process(tmp_path) as server:
        assert len(json.loads(file.text)["cells"]) == 3
        undone = server.ask("POST", f"sessions/{session}/round/undo", {}).json()
        assert (undone["changes"], undone["left"]) == (2, [])
        assert json.loads(file.text)["cells"] == before
    with server_process(tmp_path) as server:
        assert server.ask("POST", f"sessions/{session}/round/redo", {}).json()["changes"] == 2
        assert len(json.loads(file.text)["cells"]) == 3


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["undo", "redo"])
def test_a_round_that_a_server_began_to_take_back_is_taken_back_by_the_next(
    tmp_path: Path, when: str, what: str
) -> None:
    (tmp_path / "root" / "work").mkdir(parents=True)
    file = File(tmp_path / "root" / PATH)
    file.text = as_written(
        persons_notebook(
            markdown("title", "# Sales"), code("load", "df = 1"), code("gone", "old", [STREAM])
        )
    )
    cells = [json.loads(file.text)["cells"]]
    killing = "--ServerApp.contents_manager_class=killing_contents.KillingContents"
    kills = f"--KillingContents.{when}={'df = 1' if what == 'undo' else 'df = 3'}"
    with server_process(tmp_path, approval=PROPOSES) as server:
        session, headers = agents_session(server, edits="apply")
        for edits in (EDITS[:2], ({**EDITS[1], "source": "df = 3"}, EDITS[4])):
            body = {"session_id": session, "edits": edits}
            server.ask("PATCH", f"notebooks/{PATH}/cells", body, headers=headers)
        cells.append(json.loads(file.text)["cells"])
        if what == "undo":
            cells.reverse()
        else:
            server.ask("POST", f"sessions/{session}/round/undo", {})
    with server_process(tmp_path, killing, kills) as server:
        with pytest.raises(httpx2.TransportError):
            server.ask("POST", f"sessions/{session}/round/{what}", {})
        server.gone()
    assert json.loads(file.text)["cells"] == cells[when == "after"]
    with server_process(tmp_path) as server:
        told = server.ask("POST", f"sessions/{session}/round/{what}", {}).json()
        assert (told["changes"], told["left"]) == (4, [])
        assert json.loads(file.text)["cells"] == cells[1]
        back = "redo" if what == "undo" else "undo"
        told = server.ask("POST", f"sessions/{session}/round/{back}", {}).json()
        is_lost = (what, when) == ("undo", "after")
        assert (told["changes"], len(told["left"])) == ((0, 3) if is_lost else (4, 0))
        assert json.loads(file.text)["cells"] == cells[is_lost]


async def test_outputs_that_were_accepted_are_inert_again_and_can_be_accepted_again(
    agent: Agent, ask: Send, jp_root_dir: Path, jp_serverapp: Any
) -> None:
    round = await begun(agent, ask, jp_root_dir, jp_serverapp)
    active = await round.run("from IPython.display import Javascript\nJavascript('1')")
    plain = await round.run("1")

    async def accept(*runs: dict[str, Any]) -> None:
        for run in runs:
            accepted = await round.work.person.ask("POST", f"executions/{run['id']}/accept")
            assert accepted.status == 200, accepted.body

    def shown(run: dict[str, Any]) -> Any:
        ours = round.cells[run["id"]]["metadata"]["agent_exec"]
        return ours["outputs"], ours.get("held")

    await accept(active, plain)
    before = round.cells[active["id"]]
    assert (shown(active), shown(plain)) == (("accepted", None), ("accepted", None))
    await round.undo()
    await round.redo()
    assert shown(active) == ("held", ["application/javascript"])
    assert shown(plain) == ("inert", None)
    await accept(active)
    assert round.cells[active["id"]] == before
