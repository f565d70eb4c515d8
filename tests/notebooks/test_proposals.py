"""Edits that agents propose, and what users decide about them, through a real server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.notebooks.edits import source_hash
from jupyter_agent_exec.types import Via
from tests.approvals.person_deciding import approve, reject
from tests.asking import Agent, Answered, Send
from tests.auth.minting import TokenAgent, mint
from tests.mcp.mcp_clients import connected, opened, text_of
from tests.notebooks.notebooks_made import File, as_written, code, markdown, persons_notebook
from tests.notebooks.ways import DictWay, Switch
from tests.on_disk import record_bytes
from tests.real_server import real_server
from tests.server_process import ServerProcess, server_process, with_its_own_pid

PATH = "work/a.ipynb"
ROUTE = f"notebooks/{PATH}/cells"
STREAM = {"output_type": "stream", "name": "stdout", "text": "a\n"}
PROPOSES = {"notebook": "none", "kernel": "none"}
"""What agents with a token edit is proposed by default."""
SCOPES = ("exec:notebook", "edit:notebook")

INSERT = {"op": "insert", "cell_type": "code", "source": "new = 1", "after": "title"}
REPLACE = {"op": "replace", "cell_id": "load", "source": "import pandas\ndf = 2\n"}


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": PROPOSES}


@pytest.fixture
def file(jp_root_dir: Path) -> File:
    (jp_root_dir / "work").mkdir()
    file = File(jp_root_dir / PATH)
    file.text = as_written(
        persons_notebook(
            markdown("title", "# Sales"),
            code("load", "import pandas\ndf = 1\n", [STREAM]),
            code("last", "df"),
        )
    )
    return file


class Proposing:
    """An agent with a token, its session, and the user who decides."""

    def __init__(self, person: Agent, agent: TokenAgent, session: str) -> None:
        self.person = person
        self.agent = agent
        self.session = session

    async def edit(self, *edits: Any, **asked: Any) -> Answered:
        body = {"session_id": self.session, "edits": list(edits), **asked}
        return await self.agent.ask("PATCH", ROUTE, body)

    async def propose(self, *edits: Any, **asked: Any) -> dict[str, Any]:
        answered = await self.edit(*edits, **asked)
        assert answered.status == 202, answered.body
        return dict(answered.json)

    async def open(self) -> dict[str, Any]:
        """Return the open edits by cell."""
        found = (await self.person.ask("GET", "proposals", query={"path": PATH})).json["proposals"]
        return {
            edit["cell_id"]: edit
            for each in found
            if each["session_id"] == self.session
            for edit in each["edits"]
        }

    async def all(self) -> dict[str, Any]:
        """Return what became of the last edit of each cell."""
        found = (await self.agent.get("proposals", session_id=self.session)).json["proposals"]
        return {edit["cell_id"]: edit for each in found for edit in each["edits"]}

    async def decide(self, what: str, *cells: str) -> dict[str, Any]:
        """Decide about the edits of some cells, or all; return all."""
        known = await self.all()
        body = {"ids": [known[cell]["id"] for cell in cells]} if cells else {}
        answered = await self.person.ask("POST", f"sessions/{self.session}/proposals/{what}", body)
        assert answered.status == 200, answered.body
        return await self.all()


async def proposing(person: Agent, ask: Send, *scopes: str, **asked: Any) -> Proposing:
    _, secret = await mint(person, *(scopes or SCOPES), **asked)
    agent = TokenAgent(ask, secret)
    session = await agent.open(target={"kind": "notebook", "path": PATH})
    return Proposing(person, agent, session["id"])


@pytest.fixture
def work(
    jp_asyncio_loop: asyncio.AbstractEventLoop, agent: Agent, ask: Send, file: File
) -> Proposing:
    return jp_asyncio_loop.run_until_complete(proposing(agent, ask))


def on_disk(file: File) -> dict[str, str]:
    return {cell["id"]: "".join(cell["source"]) for cell in json.loads(file.text)["cells"]}


def statuses(edits: dict[str, Any]) -> dict[str, str]:
    return {cell: edit["status"] for cell, edit in edits.items()}


def change_on_disk(file: File, cell_id: str, source: str) -> None:
    """Edit a cell as the user does."""
    notebook = json.loads(file.text)
    for cell in notebook["cells"]:
        if cell["id"] == cell_id:
            cell["source"] = source
    file.text = json.dumps(notebook)


async def test_an_agents_edits_change_nothing_until_the_user_keeps_them(
    work: Proposing, file: File, history_dir: Path
) -> None:
    before = file.text
    read = (await work.agent.get(ROUTE)).json
    told = await work.propose(
        INSERT,
        REPLACE,
        {"op": "move", "cell_id": "last", "before": "title"},
        hash=read["hash"],
        purpose="To load the new file.",
    )
    (listed,) = (await work.person.ask("GET", "proposals")).json["proposals"]
    assert listed["purpose"] == "To load the new file."
    assert file.text == before
    (new,), _, _ = told["cell_ids"]
    proposed = (await work.agent.get(ROUTE, proposed_by=work.session)).json
    assert [cell["id"] for cell in proposed["cells"]] == ["last", "title", new, "load"]
    assert proposed["hash"] == told["hash"]
    edits = await work.open()
    assert {cell: (edit["kind"], edit["fits"]) for cell, edit in edits.items()} == {
        "last": ("move", True),
        new: ("insert", True),
        "load": ("change", True),
    }
    assert edits[new]["follows"] == "title"
    assert edits["load"]["before"]["source"] == "import pandas\ndf = 1\n"
    assert edits["load"]["result"] == {"cell_type": "code", "source": REPLACE["source"]}
    assert (await work.agent.get(f"sessions/{work.session}")).json["proposed"] == 3

    assert statuses(await work.decide("keep", new)) == {
        "last": "open",
        new: "kept",
        "load": "open",
    }
    assert list(on_disk(file)) == ["title", new, "load", "last"]
    decided = await work.decide("keep", new)  # keeping it again does nothing
    assert statuses(decided)[new] == "kept"
    assert list(on_disk(file)).count(new) == 1
    await work.decide("reject", "last")
    assert statuses(await work.decide("keep")) == {"last": "rejected", new: "kept", "load": "kept"}
    assert on_disk(file) == {
        "title": "# Sales",
        new: "new = 1",
        "load": REPLACE["source"],
        "last": "df",
    }
    load = json.loads(file.text)["cells"][2]
    assert load["outputs"][0]["name"] == "stdout"
    assert await work.open() == {}
    by = decided[new]["decided_by"]
    assert by
    assert decided[new]["decided_at"] <= (await work.all())["load"]["decided_at"]

    # the agent is told with its next answer, once
    run = await work.agent.run({"id": work.session}, "1", placement="none")
    told_cells = {edit["cell_id"]: edit["status"] for edit in run["decided_edits"]}
    assert told_cells == {"last": "rejected", new: "kept", "load": "kept"}
    assert f"The user kept your proposed edits of cells {new}, load." in run["text"]
    run = await work.agent.run({"id": work.session}, "1", placement="none")
    assert run["decided_edits"] == []
    await work.propose({**INSERT, "source": "later"})
    await work.decide("keep")
    steps = {"steps": [{"source": "1", "placement": "none"}, {"source": "2", "placement": "none"}]}
    ran = await work.agent.ask("POST", f"sessions/{work.session}/steps", steps)
    assert [len(each["decided_edits"]) for each in ran.json["executions"]] == [1, 0]
    await work.agent.ask("POST", f"sessions/{work.session}/close")
    assert verify_history(history_dir).findings == []


async def test_a_proposal_names_letters_that_look_like_others(work: Proposing) -> None:
    told = await work.propose(INSERT | {"source": "\u0440assword = 1"})
    ((new,),) = told["cell_ids"]
    assert (await work.open())[new]["lookalikes"] == {"\u0440assword": {"\u0440": "p"}}


async def test_a_kept_cell_can_be_undone_until_it_changes(
    work: Proposing, file: File, history_dir: Path
) -> None:
    before = json.loads(file.text)
    told = await work.propose(
        INSERT,
        {**INSERT, "source": "other = 1"},
        REPLACE,
        {"op": "delete", "cell_id": "last"},
        {"op": "replace", "cell_id": "title", "source": "# Sales", "cell_type": "raw"},
    )
    (new,), (other,), *_ = told["cell_ids"]
    await work.decide("keep")
    assert list(on_disk(file)) == ["title", other, new, "load"]
    change_on_disk(file, new, "new = 'mine'")
    edits = await work.decide("undo", new, other, "load", "last", "title")
    again = {other: "open", "load": "open", "last": "open", "title": "open"}
    assert statuses(edits) == {new: "kept", **again}
    assert (edits[new]["fits"], edits[new]["reason"]) == (False, "The cell was edited since.")
    assert on_disk(file).pop(new) == "new = 'mine'"
    cells = [cell for cell in json.loads(file.text)["cells"] if cell["id"] != new]
    assert cells == before["cells"]
    assert (await work.agent.get(f"sessions/{work.session}")).json["proposed"] == 4
    run = await work.agent.run({"id": work.session}, "1", placement="none")
    assert statuses({edit["cell_id"]: edit for edit in run["decided_edits"]}) == statuses(edits)
    await work.decide("keep")  # what is proposed again can be kept again
    assert set(on_disk(file)) == {"title", other, new, "load"}
    assert on_disk(file)["load"] == REPLACE["source"]
    await work.agent.ask("POST", f"sessions/{work.session}/close")
    assert verify_history(history_dir).findings == []


async def test_rejecting_all_can_be_undone(work: Proposing, file: File, history_dir: Path) -> None:
    before = file.text
    told = await work.propose(INSERT, REPLACE)
    edits = await work.open()
    assert set(statuses(await work.decide("reject")).values()) == {"rejected"}
    assert await work.open() == {}
    await work.decide("undo")
    assert await work.open() == edits
    assert (await work.agent.get(f"sessions/{work.session}")).json["proposed"] == 2
    assert file.text == before
    await work.decide("keep")
    assert on_disk(file)[told["cell_ids"][0][0]] == "new = 1"
    await work.agent.ask("POST", f"sessions/{work.session}/close")
    assert verify_history(history_dir).findings == []


async def test_the_user_keeps_what_they_have_made_of_an_edit(
    work: Proposing, file: File, history_dir: Path
) -> None:
    told = await work.propose(INSERT, REPLACE, {"op": "delete", "cell_id": "last"})
    ((new,), *_) = told["cell_ids"]
    edits = await work.open()

    async def keep(cell: str, **asked: Any) -> Answered:
        body = {"ids": [edits[cell]["id"]], **asked}
        return await work.person.ask("POST", f"sessions/{work.session}/proposals/keep", body)

    seen = source_hash(edits["load"]["current"]["source"])
    before = file.text
    for cell, asked, field in (
        ("last", {"source": "1"}, "source"),
        ("load", {"source": "1"}, "source_sha256"),
        ("load", {"source": "1", "source_sha256": "0" * 64}, "source_sha256"),
        ("load", {"source": "1", "ids": None}, "source"),
    ):
        refused = await keep(cell, **asked)
        assert (refused.status, refused.json["detail"]["field"]) in ((400, field), (409, field))
    assert file.text == before
    assert set(statuses(await work.open())) == {new, "load", "last"}

    change_on_disk(file, "load", "mine = 1")
    assert (await keep("load", source="both = 1", source_sha256=seen)).status == 409
    seen = source_hash("mine = 1")
    assert (await keep("load", source="both = 1", source_sha256=seen)).status == 200
    assert (await keep(new, source="")).status == 200
    assert (on_disk(file)["load"], on_disk(file)[new]) == ("both = 1", "")
    made = await work.all()
    assert [(made[cell]["status"], made[cell]["edited"]) for cell in ("load", new)] == [
        ("kept", True),
        ("kept", True),
    ]
    assert made["load"]["after"]["source"] == REPLACE["source"], "what was proposed stays known"
    run = await work.agent.run({"id": work.session}, "1", placement="none")
    assert {each["cell_id"] for each in run["decided_edits"] if each["edited"]} == {"load", new}
    undone = await work.decide("undo", "load")
    assert (undone["load"]["status"], undone["load"]["edited"]) == ("open", False)
    assert on_disk(file)["load"] == "mine = 1"
    await work.agent.ask("POST", f"sessions/{work.session}/close")
    assert verify_history(history_dir).findings == []


async def test_outputs_that_were_cleared_or_deleted_come_back(work: Proposing, file: File) -> None:
    before = json.loads(file.text)["cells"]
    await work.propose({"op": "clear_outputs", "cell_id": "load"})
    assert (await work.open())["load"]["kind"] == "clear_outputs"
    await work.decide("keep")
    assert json.loads(file.text)["cells"][1]["outputs"] == []
    await work.decide("undo", "load")
    assert json.loads(file.text)["cells"] == before
    await work.decide("reject")
    await work.propose({"op": "delete", "cell_id": "load"})
    await work.decide("keep")
    assert "load" not in on_disk(file)
    await work.decide("undo", "load")
    assert json.loads(file.text)["cells"] == before


async def test_a_proposal_is_merged_with_what_the_user_writes_or_becomes_obsolete(
    work: Proposing, file: File
) -> None:
    await work.propose(
        {**REPLACE, "source": "import pandas\ndf = 2\n"},
        {"op": "delete", "cell_id": "last"},
        {"op": "replace", "cell_id": "title", "source": "# Sold"},
    )
    change_on_disk(file, "load", "import pandas\nimport numpy\ndf = 3\n")
    edit = (await work.open())["load"]
    assert not edit["fits"]  # the changed line itself
    change_on_disk(file, "load", "# mine\nimport pandas\ndf = 1\n")
    edit = (await work.open())["load"]
    merged = "# mine\nimport pandas\ndf = 2\n"
    assert (edit["fits"], edit["result"]["source"]) == (True, merged)
    change_on_disk(file, "last", "df.mine()")
    change_on_disk(file, "title", "# Sales of 2026")
    edits = await work.open()
    assert edits["last"]["reason"] == "The cell was edited since."
    assert edits["title"]["reason"] == "The same lines of the cell were edited since."
    edits = await work.decide("keep")
    assert statuses(edits) == {"load": "kept", "last": "obsolete", "title": "obsolete"}
    assert edits["title"]["reason"] == "The same lines of the cell were edited since."
    assert on_disk(file) == {"title": "# Sales of 2026", "load": merged, "last": "df.mine()"}
    told = await work.propose({**INSERT, "after": None})
    assert {edit["status"] for edit in told["decided_edits"]} == {"kept", "obsolete"}
    await work.decide("undo", "load")  # gives the user their own text back
    assert on_disk(file)["load"] == "# mine\nimport pandas\ndf = 1\n"


async def test_the_agent_goes_on_from_what_it_proposed(work: Proposing, file: File) -> None:
    first = await work.propose(INSERT, REPLACE)
    ((new,), _) = first["cell_ids"]
    second = await work.propose(
        {"op": "replace", "cell_id": new, "source": "new = 2"},
        {"op": "insert", "cell_type": "markdown", "source": "below", "after": new},
        {**REPLACE, "source": "import pandas\ndf = 1\n"},
        hash=first["hash"],
    )
    (_, (below,), _) = second["cell_ids"]
    edits = await work.open()
    assert set(edits) == {new, below}  # what it took back itself is not there to decide
    assert edits[new]["after"]["source"] == "new = 2"
    assert (edits[below]["follows"], edits[below]["index"]) == ("title", 2)
    stale = [
        each
        for each in (await work.agent.get("proposals", session_id=work.session)).json["proposals"]
        if each["id"] == first["proposal_id"]
    ]
    assert [edit["status"] for edit in stale[0]["edits"]] == ["replaced", "replaced"]
    # a decision about what was replaced does nothing: the user has not seen the new one
    body = {"ids": [stale[0]["edits"][0]["id"]]}
    await work.person.ask("POST", f"sessions/{work.session}/proposals/keep", body)
    assert new not in on_disk(file)
    await work.decide("keep", below)
    assert list(on_disk(file)) == ["title", below, "load", "last"]
    await work.decide("keep")
    assert list(on_disk(file)) == ["title", new, below, "load", "last"]
    await work.propose({"op": "delete", "cell_id": new}, INSERT)
    stale_hash = await work.edit(REPLACE, hash="0" * 64)
    assert (stale_hash.status, stale_hash.json["code"]) == (409, "document_changed")
    gone = await work.edit({**INSERT, "after": new})
    assert (gone.status, gone.json["code"]) == (404, "cell_not_found")


async def test_two_agents_propose_for_the_same_cell(
    agent: Agent, ask: Send, work: Proposing, file: File
) -> None:
    other = await proposing(agent, ask)
    await work.propose(REPLACE)
    await other.propose({**REPLACE, "source": "import pandas\ndf = 3\n"}, INSERT)
    assert (await other.agent.get("proposals")).json["proposals"][0]["session_id"] == other.session
    hidden = await other.agent.get("proposals", session_id=work.session)
    assert (hidden.status, hidden.json["code"]) == (404, "session_not_found")
    hidden = await other.agent.get(ROUTE, proposed_by=work.session)
    assert (hidden.status, hidden.json["code"]) == (404, "session_not_found")
    await work.decide("keep")
    edit = (await other.open())["load"]
    assert edit["fits"] is False
    assert statuses(await other.decide("keep")).pop("load") == "obsolete"
    assert on_disk(file)["load"] == REPLACE["source"]
    unknown = await agent.ask(
        "POST",
        f"sessions/{work.session}/proposals/keep",
        {"ids": [edit["id"]]},
    )
    assert (unknown.status, unknown.json["detail"]["field"]) == (400, "ids")
    refused = await work.agent.ask("POST", f"sessions/{work.session}/proposals/keep", {})
    assert (refused.status, refused.json["code"]) == (403, "forbidden")


async def test_proposals_follow_a_notebook_that_is_moved_after_their_session_closed(
    work: Proposing, history_dir: Path, jp_root_dir: Path, jp_fetch: Any, jp_serverapp: Any
) -> None:
    await work.propose(INSERT, REPLACE)
    await work.agent.ask("POST", f"sessions/{work.session}/close")
    body = json.dumps({"path": "done"})
    await jp_fetch("api/contents/work", method="PATCH", body=body)
    await jp_serverapp.event_logger.gather_listeners()
    assert await work.open() == {}
    query = {"path": "done/a.ipynb"}
    ((proposal,),) = (await work.person.ask("GET", "proposals", query=query)).json.values()
    assert all(edit["fits"] for edit in proposal["edits"])
    await work.decide("keep")
    moved = File(jp_root_dir / "done" / "a.ipynb")
    assert on_disk(moved)["load"] == REPLACE["source"]
    assert verify_history(history_dir).findings == []


async def test_what_waits_names_the_sessions_that_propose_edits(
    work: Proposing, agent: Agent, ask: Send
) -> None:
    async def waiting(asker: Agent | TokenAgent) -> list[tuple[str, str, int]]:
        sessions = (await asker.get("approvals")).json["proposing"]
        return [(each["id"], each["path"], each["proposed"]) for each in sessions]

    assert await waiting(agent) == []
    await work.propose(INSERT, REPLACE)
    other = await proposing(agent, ask)
    await other.propose(INSERT)
    mine, others = (work.session, PATH, 2), (other.session, PATH, 1)
    assert await waiting(agent) == [mine, others]
    assert await waiting(other.agent) == [others]
    await work.agent.ask("POST", f"sessions/{work.session}/close", {})
    assert await waiting(agent) == [mine, others]
    await work.decide("reject")
    await other.decide("keep")
    assert await waiting(agent) == []


async def test_a_pause_and_a_running_cell_hold_proposals_and_decisions(
    work: Proposing, file: File
) -> None:
    await work.propose(REPLACE, INSERT)
    await work.person.ask("PUT", "approvals/pause", {"paused": True})
    for answered in (
        await work.edit(INSERT),
        await work.person.ask("POST", f"sessions/{work.session}/proposals/keep", {}),
    ):
        assert (answered.status, answered.json["code"]) == (409, "agents_paused"), answered.body
    await work.person.ask("PUT", "approvals/pause", {"paused": False})
    change_on_disk(file, "load", "import time; time.sleep(60)")
    asked = {"placement": {"cell": "load"}, "wait": 0}
    run = (await work.agent.ask("POST", f"sessions/{work.session}/executions", asked)).json
    busy = await work.edit(REPLACE)
    assert (busy.status, busy.json["code"]) == (409, "cell_busy")
    load = (await work.open())["load"]
    busy = await work.person.ask(
        "POST", f"sessions/{work.session}/proposals/keep", {"ids": [load["id"]]}
    )
    assert (busy.status, busy.json["code"]) == (409, "cell_busy")
    assert statuses(await work.decide("keep"))["load"] == "open"  # the other one is kept
    await work.agent.ask("POST", f"executions/{run['id']}/cancel")


async def test_a_run_of_a_cell_with_ones_own_open_edit_edits_and_runs_it_or_does_neither(
    work: Proposing, agent: Agent, file: File
) -> None:
    told = await work.propose(INSERT, REPLACE, {"op": "delete", "cell_id": "last"})
    (added,), _, _ = told["cell_ids"]
    sources = on_disk(file)

    async def run(cell: str, **asked: Any) -> dict[str, Any]:
        placement = {"cell": cell, **asked}
        body = {"placement": placement, "wait": 0}
        asks = await work.agent.ask("POST", f"sessions/{work.session}/executions", body)
        assert asks.status == 202, asks.body
        assert asks.json["approval"]["edits_cell"]
        return dict(asks.json)

    change = await run("load", source_sha256=told["source_sha256"]["load"])
    assert (change["source"], change["approval"]["before"]) == (
        REPLACE["source"],
        sources["load"],
    )
    insert = await run(added)
    assert (insert["source"], insert["approval"]["before"]) == ("new = 1", None)
    place = insert["document"]
    assert (place["cell_id"], place["placement"]["after"]) == (added, "title")

    async def replaced() -> dict[str, str]:
        """Wait until the runs stand for the edits; the test's timeout is the bound."""
        while (found := statuses(await work.all()))[added] == "open" or found["load"] == "open":
            await asyncio.sleep(0)
        return found

    assert await replaced() == {added: "replaced", "load": "replaced", "last": "open"}
    assert on_disk(file) == sources

    # Nothing that hangs together is left for "Keep all", which is not refused.
    left = [edit["id"] for edit in (await work.open()).values()]
    kept = await agent.ask("POST", f"sessions/{work.session}/proposals/keep", {"ids": left})
    assert kept.status == 200, kept.body
    assert (await reject(agent, change)).status == 200
    assert (await approve(agent, insert)).status == 200
    done = (await agent.get(f"executions/{insert['id']}", wait=30)).json
    assert (done["status"], done["document"]["cell_id"]) == ("ok", added)
    await agent.get(ROUTE)  # which waits until cells are written
    assert on_disk(file) == {"title": "# Sales", added: "new = 1", "load": sources["load"]}


async def test_all_is_kept_but_what_an_agent_runs_in_the_meantime(
    work: Proposing, agent: Agent, file: File
) -> None:
    await agent.ask("PUT", "approvals/policy", {"notebook": "always"})
    await work.propose(INSERT, {"op": "move", "cell_id": "last", "before": "title"})
    body = {"placement": {"cell": "last"}, "wait": 0}
    run = (await work.agent.ask("POST", f"sessions/{work.session}/executions", body)).json
    assert run["status"] == "awaiting_approval"
    ids = [edit["id"] for edit in (await work.open()).values()]
    kept = await agent.ask("POST", f"sessions/{work.session}/proposals/keep", {"ids": ids})
    assert kept.status == 200, kept.body
    assert sorted(statuses(await work.all()).values()) == ["kept", "open"]
    assert (await reject(agent, run)).status == 200
    assert statuses(await work.decide("keep"))["last"] == "kept"


@pytest.mark.parametrize(
    ("policy", "of_token", "status"),
    [
        ({}, None, 202),
        ({}, "apply", 200),
        ({"edits": "apply"}, None, 200),
        ({"edits": "apply"}, "propose", 202),
    ],
)
async def test_the_policy_and_the_token_decide_whether_edits_are_proposed(
    agent: Agent, ask: Send, file: File, policy: dict[str, str], of_token: str | None, status: int
) -> None:
    answered = await agent.ask("PUT", "approvals/policy", policy)
    assert answered.json["policy"]["edits"] == policy.get("edits", "propose")
    work = await proposing(agent, ask, edits=of_token)
    assert (await work.edit(INSERT)).status == status
    own = await agent.open(target={"kind": "notebook", "path": PATH})
    body = {"session_id": own["id"], "edits": [INSERT]}
    assert (await agent.ask("PATCH", ROUTE, body)).status == 200


class TestForced:
    """The operator forces proposals."""

    @pytest.fixture
    def agent_exec_config(self) -> dict[str, Any]:
        return {"forced_approval": {"edits": "propose"}}

    async def test_the_operators_mode_holds_for_every_credential(
        self, agent: Agent, ask: Send, file: File
    ) -> None:
        work = await proposing(agent, ask, edits="apply")
        assert (await work.edit(INSERT)).status == 202
        own = await agent.open(target={"kind": "notebook", "path": PATH})
        body = {"session_id": own["id"], "edits": [INSERT]}
        assert (await agent.ask("PATCH", ROUTE, body)).status == 202
        refused = await agent.ask("PUT", "approvals/policy", {"edits": "apply"})
        assert (refused.status, refused.json["detail"]["field"]) == (400, "edits")


async def test_code_that_needs_approval_may_be_proposed_but_not_changed(
    agent: Agent, ask: Send, file: File
) -> None:
    await agent.ask("PUT", "approvals/policy", {"notebook": "always"})
    assert (await (await proposing(agent, ask)).edit(INSERT)).status == 202
    refused = await (await proposing(agent, ask, edits="apply")).edit(INSERT)
    assert (refused.status, refused.json["code"]) == (403, "approval_required")


@pytest.mark.parametrize("what", ["edits_proposed", "edits_decided"])
async def test_a_proposals_entry_that_was_altered_is_found(
    work: Proposing, history_dir: Path, what: str
) -> None:
    await work.propose(INSERT)
    await work.decide("keep")
    await work.agent.ask("POST", f"sessions/{work.session}/close")
    journal = history_dir / "sessions" / work.session / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if f'"{what}"' in line)
    lines[at] = lines[at].replace("new = 1", "new = 2").replace('\\"kept\\"', '\\"open\\"')
    altered = "".join(lines)
    assert altered != journal.read_text()
    journal.write_text(altered)
    findings = verify_history(history_dir).findings
    assert {finding.outcome.name for finding in findings} == {"ALTERED"}


async def test_another_servers_notebook_at_the_same_path_gets_none(
    work: Proposing, file: File, jp_serverapp: Any
) -> None:
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    await work.propose(INSERT)
    await work.agent.ask("POST", f"sessions/{work.session}/close")
    app.services.history._root_dir = "/another"
    assert await work.open() == {}
    (edit,) = (await work.all()).values()
    assert (edit["fits"], edit["reason"]) == (
        False,
        "The session's notebook is in the folder of another server.",
    )
    refused = await work.person.ask("POST", f"sessions/{work.session}/proposals/keep", {})
    assert (refused.status, refused.json["code"]) == (404, "notebook_not_found")
    assert list(on_disk(file)) == ["title", "load", "last"]


@pytest.mark.parametrize("via", ["collaboration", "tab"])
async def test_an_edit_is_kept_once_although_its_backend_breaks_off(
    work: Proposing, file: File, jp_serverapp: Any, via: Via
) -> None:
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    way = DictWay(json.loads(file.text), via=via)
    documents = app.services.proposals.notebooks
    documents._backends = [Switch(way), Switch(way)]
    told = await work.propose(INSERT, REPLACE, {"op": "delete", "cell_id": "last"})
    way.breaks_after = True
    edits = await work.decide("keep")
    assert set(statuses(edits).values()) == {"kept"}
    assert way.order == ["title", told["cell_ids"][0][0], "load"]
    assert way.cells["load"]["source"] == REPLACE["source"]

    def edit_title() -> None:  # as the user does at the same moment
        way.content["cells"][0]["source"] = "# Mine"

    await work.propose({"op": "replace", "cell_id": "title", "source": "# Sold"})
    way.before = edit_title
    assert statuses(await work.decide("keep"))["title"] == "obsolete"
    assert way.cells["title"]["source"] == "# Mine"


def agents_session(server: ServerProcess, **token: str) -> tuple[str, dict[str, str]]:
    """Open a session of an agent in the notebook; return its id, and the agent's credential."""
    asked = {"label": "a", "scopes": list(SCOPES), **token}
    secret = server.ask("POST", "tokens", asked).json()["secret"]
    headers = {"Authorization": f"Bearer {secret}"}
    request = {"agent": {"name": "agent"}, "target": {"kind": "notebook", "path": PATH}}
    return server.ask("POST", "sessions", request, headers=headers).json()["id"], headers


@pytest.mark.parametrize("when", ["before", "after"])
def test_proposals_are_there_again_after_the_server_was_killed(tmp_path: Path, when: str) -> None:
    (tmp_path / "root" / "work").mkdir(parents=True)
    file = File(tmp_path / "root" / PATH)
    file.text = as_written(persons_notebook(markdown("title", "# Sales")))
    contents = "--ServerApp.contents_manager_class=killing_contents.KillingContents"
    kills = f"--KillingContents.{when}=new = 1"
    with server_process(tmp_path, contents, kills, approval=PROPOSES) as server:
        session, headers = agents_session(server)
        edits = {"session_id": session, "edits": [INSERT]}
        told = server.ask("PATCH", ROUTE, edits, headers=headers)
        assert told.status_code == 202, told.text
        (new,) = told.json()["cell_ids"][0]
        kernels = psutil.Process(server.process.pid).children(recursive=True)
        with pytest.raises(httpx2.TransportError):
            server.ask("POST", f"sessions/{session}/proposals/keep", {})
        server.gone()
        for kernel in kernels:
            with_its_own_pid(kernel)
    assert (new in on_disk(file)) == (when == "after")
    with server_process(tmp_path) as server:
        ((edit,),) = (each["edits"] for each in server.get("proposals")["proposals"])
        assert (edit["cell_id"], edit["status"], edit["fits"]) == (new, "open", True)
        kept = server.ask("POST", f"sessions/{session}/proposals/keep", {})
        assert kept.json()["proposals"][0]["edits"][0]["status"] == "kept"
        assert list(on_disk(file)) == ["title", new]
        assert server.get("proposals")["proposals"] == []
    assert verify_history(tmp_path / "history").findings == []


async def test_a_model_reads_what_was_proposed_and_what_became_of_it(tmp_path: Path) -> None:
    """With the official MCP client."""
    with real_server(tmp_path, approval=PROPOSES) as server:
        (server.root_dir / "work").mkdir()
        file = File(server.root_dir / PATH)
        file.text = as_written(persons_notebook(markdown("title", "# Sales")))
        with AgentExecClient(server.url, server.token) as person:
            secret = person.mint_token("a", SCOPES).secret
            async with connected(server, token=secret) as client:
                session = await opened(client, target={"kind": "notebook", "path": PATH})
                told = await client.call_tool(
                    "edit_notebook", {"session_id": session, "edits": [INSERT]}
                )
                text = text_of(told)
                assert "is unchanged until the user keeps the edits" in text
                read = await client.call_tool(
                    "read_notebook", {"path": PATH, "proposed_by": session}
                )
                assert "new = 1" in text_of(read)
                assert "not decided about 1 of your edits" in text_of(read)
                read = await client.call_tool("read_notebook", {"path": PATH})
                assert "new = 1" not in text_of(read)
                assert f"1 edit that session {session} proposed" in text_of(read)
                (proposal,) = person.proposals(PATH)
                (edit,) = proposal.edits
                own = person.session(session)
                ((kept,),) = (each.edits for each in own.keep_edits([edit.id]))
                assert kept.status == "kept"
                ran = await client.call_tool("execute", {"session_id": session, "source": "1"})
                note = f"The user kept your proposed edits of cells {edit.cell_id}."
                assert note in text_of(ran)
                read = await client.call_tool(
                    "read_notebook", {"path": PATH, "proposed_by": session}
                )
                assert note in text_of(read)
                assert own.cells(proposed=True).hash == own.cells().hash
                assert [each.status for each in own.undo_edits([edit.id])[0].edits] == ["open"]
                own.reject_edits(reason="Not in this notebook.")
                steps = [{"source": "1"}, {"source": "2"}]
                ran = await client.call_tool("execute", {"session_id": session, "steps": steps})
                assert note.replace("kept", "rejected") in text_of(ran)
                assert f"The user says of cell {edit.cell_id}: Not in this" in text_of(ran)
                assert next(iter(on_disk(file))) == "title"


async def test_an_edit_with_a_secret_cannot_be_proposed(
    work: Proposing, file: File, history_dir: Path
) -> None:
    token = f"jaex_t_{'0' * 26}_{'a' * 64}"
    before = file.text
    answered = await work.edit({**REPLACE, "source": f"login({token!r})"})
    assert (answered.status, answered.json["detail"]["field"]) == (400, "edits")
    assert "Take it out" in answered.json["message"]
    change_on_disk(file, "last", f"login({token!r})")  # the user may have one in a cell
    assert (await work.edit({"op": "delete", "cell_id": "last"})).status == 400
    await work.propose(INSERT)
    assert (before, await work.open()) != (file.text, {})
    assert not any(token.encode() in data for data in record_bytes(history_dir).values())
