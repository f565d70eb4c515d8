"""Cells of executions in a notebook that nobody has open: real kernels, real files."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from jupyter_agent_exec.records import digest_of
from tests.asking import Agent
from tests.notebooks.notebooks_made import File
from tests.sessions.living_notebook import (
    NOTEBOOK,
    Desk,
    entries,
    finished,
    notebook_target,
    until_status,
)

SCRIPT = """
from IPython.display import display
display({"application/javascript": "alert(1)", "text/plain": "<it>"}, raw=True)
"""


class Notebook:
    """A notebook on disk, and an agent's session with it."""

    def __init__(self, agent: Agent, desk: Desk) -> None:
        self.agent = agent
        self.desk = desk
        self.session: dict[str, Any] = {}

    async def open(self, *sources: str) -> None:
        self.desk.writes(NOTEBOOK, *sources)
        self.session = await self.agent.open(target=notebook_target())

    def read(self) -> Any:
        """Return the notebook as it is on disk, which is always valid."""
        notebook = nbformat.read(self.desk.root / NOTEBOOK, as_version=4)
        nbformat.validate(notebook)
        return notebook

    @property
    def ids(self) -> list[str]:
        return [cell.id for cell in self.read().cells]

    def cell(self, id: str) -> Any:
        (found,) = [cell for cell in self.read().cells if cell.id == id]
        return found

    async def run(self, source: str | None, **asked: Any) -> dict[str, Any]:
        """Run to the end, until that is in the file or never will be."""
        execution = await finished(self.agent, await self.agent.run(self.session, source, **asked))
        return await self.until_told(execution)

    async def until_told(self, execution: dict[str, Any]) -> dict[str, Any]:
        while execution["document"] is None or execution["document"]["status"] == "writing":
            execution = (await self.agent.get(f"executions/{execution['id']}")).json
        return execution

    async def decide(self, execution: dict[str, Any], what: str) -> dict[str, Any]:
        answered = await self.agent.ask("POST", f"executions/{execution['id']}/{what}")
        assert answered.status == 200, answered.body
        return dict(answered.json)

    @property
    def is_trusted(self) -> bool:
        """Whether Jupyter trusts the notebook when it is opened."""
        notary: NotebookNotary = self.desk.server.contents_manager.notary
        return notary.check_signature(self.read())


@pytest.fixture
def notebook(agent: Agent, desk: Desk) -> Notebook:
    return Notebook(agent, desk)


async def test_a_cell_is_written_into_the_file(notebook: Notebook) -> None:
    await notebook.open("a = 1")
    before = notebook.read().cells[0]
    done = await notebook.run("print('hello')")
    document = done["document"]
    assert document == {
        "path": NOTEBOOK,
        "cell_id": done["id"],
        "via": "contents",
        "status": "written",
        "outputs": "inert",
        "reason": None,
        "placement": None,
        "follows": [],
    }
    assert notebook.ids == [before.id, done["id"]]
    assert notebook.read().cells[0] == before
    cell = notebook.cell(done["id"])
    assert cell.source == "print('hello')"
    assert cell.execution_count == done["execution_count"]
    assert cell.outputs[0].text == "hello\n"
    ours = dict(cell.metadata.agent_exec)
    assert ours == {
        **done["cell"]["metadata"]["agent_exec"],
        "outputs": "inert",
        "execution_count": done["execution_count"],
    }
    told: list[dict[str, Any]] = []
    while not told:  # it is shown as written before that is recorded
        written = await entries(notebook.agent, notebook.session)
        told = [entry["document"] for entry in written if entry["type"] == "cell_written"]
    assert told == [document]


async def test_a_cell_can_go_to_one_that_is_just_being_written(notebook: Notebook) -> None:
    await notebook.open("1")
    there = notebook.ids
    runs = await notebook.agent.run(notebook.session, "'runs'", wait=0)
    asked = {"placement": {"before": runs["id"]}}
    done = await notebook.agent.run(notebook.session, "'done'", **asked)
    last = await notebook.agent.run(notebook.session, "'last'", placement={"after": done["id"]})
    await notebook.agent.ask("POST", f"sessions/{notebook.session['id']}/close")
    assert notebook.ids == [*there, done["id"], last["id"], runs["id"]]


async def test_a_cell_that_is_there_is_run(notebook: Notebook) -> None:
    await notebook.open("6 * 7")
    (id,) = notebook.ids
    done = await notebook.run(None, placement={"cell": id, "source_sha256": digest_of(b"6 * 7")})
    assert done["source"] == "6 * 7"
    assert notebook.ids == [id]
    assert notebook.cell(id).outputs[0].data["text/plain"] == "42"
    await notebook.run("6 * 8", placement={"cell": id})
    assert notebook.cell(id).source == "6 * 8"
    assert notebook.cell(id).outputs[0].data["text/plain"] == "48"


WRONG_PLACEMENTS = [
    ({"after": "nowhere"}, 404, "cell_not_found"),
    ({"cell": "nowhere"}, 404, "cell_not_found"),
    ({"cell": "ID", "source_sha256": "0" * 64}, 409, "document_changed"),
    ({"after": "ID", "before": "ID"}, 400, "invalid_request"),
]


async def test_a_placement_that_cannot_be_is_refused_and_nothing_accepted(
    notebook: Notebook,
) -> None:
    await notebook.open("1")
    (id,) = notebook.ids
    path = f"sessions/{notebook.session['id']}/executions"
    for placement, status, code in WRONG_PLACEMENTS:
        asked = {key: id if value == "ID" else value for key, value in placement.items()}
        answered = await notebook.agent.ask("POST", path, {"source": "2", "placement": asked})
        assert (answered.status, answered.json["code"]) == (status, code)
        if code == "document_changed":
            assert answered.json["detail"]["source"] == "1"
            assert answered.json["detail"]["source_sha256"] == digest_of(b"1")
        assert notebook.ids == [id]
    assert "accepted" not in [e["type"] for e in await entries(notebook.agent, notebook.session)]


@pytest.mark.parametrize(
    "content", ["no JSON", json.dumps({"nbformat": 3, "worksheets": []}), None]
)
async def test_a_notebook_that_spoiled_or_vanished_keeps_nothing_from_running(
    notebook: Notebook, content: str | None
) -> None:
    await notebook.open("1")
    file = File(notebook.desk.root / NOTEBOOK)
    if content is None:
        file.remove()
    else:
        file.text = content
    done = await notebook.run("6 * 7")
    assert (done["status"], done["text"].strip()) == ("ok", "42")
    document = done["document"]
    assert (document["status"], document["cell_id"]) == ("not_written", None)
    assert NOTEBOOK in document["reason"]
    assert file.exists == (content is not None)
    assert content is None or file.text == content


async def test_what_the_kernel_clears_and_updates_is_so_in_the_cell(notebook: Notebook) -> None:
    await notebook.open()
    cleared = await notebook.run(
        "from IPython.display import clear_output, display\n"
        "print('gone')\nclear_output(wait=True)\nprint('stays')\n"
        "handle = display('old', display_id=True)"
    )
    await notebook.run("handle.update('new')")
    await notebook.agent.ask("POST", f"sessions/{notebook.session['id']}/close")
    stream, display = notebook.cell(cleared["id"]).outputs
    assert stream.text == "stays\n"
    assert display.data["text/plain"] == "'new'"


async def test_what_is_active_is_held_until_a_person_accepts_it(notebook: Notebook) -> None:
    await notebook.open("1")
    done = await notebook.run(SCRIPT)
    assert done["document"]["outputs"] == "held"
    assert "application/javascript" not in notebook.cell(done["id"]).outputs[0].data
    assert notebook.is_trusted
    accepted = await notebook.decide(done, "accept")
    assert accepted["document"]["outputs"] == "accepted"
    cell = notebook.cell(done["id"])
    assert cell.outputs[0].data["application/javascript"] == "alert(1)"
    assert cell.metadata.agent_exec["outputs"] == "accepted"
    assert notebook.is_trusted
    looked = (await notebook.agent.get(f"executions/{done['id']}")).json
    assert looked["document"]["outputs"] == "accepted"
    (decided,) = (
        each
        for each in await entries(notebook.agent, notebook.session)
        if each["type"] == "outputs_accepted"
    )
    assert decided["by"]["kind"] == "person"


async def test_all_of_a_closed_session_is_accepted_at_once(notebook: Notebook) -> None:
    await notebook.open("1")
    first, second = await notebook.run(SCRIPT), await notebook.run(SCRIPT)
    await notebook.agent.ask("POST", f"sessions/{notebook.session['id']}/close")
    answered = await notebook.agent.ask("POST", f"sessions/{notebook.session['id']}/accept")
    assert answered.status == 200, answered.body
    told = answered.json["executions"]
    assert [execution["id"] for execution in told] == [first["id"], second["id"]]
    assert {execution["document"]["outputs"] for execution in told} == {"accepted"}
    for execution in (first, second):
        assert "application/javascript" in notebook.cell(execution["id"]).outputs[0].data


async def test_a_session_that_closes_leaves_nothing_half_told(notebook: Notebook) -> None:
    await notebook.open()
    running = await notebook.agent.run(notebook.session, "import time; time.sleep(600)", wait=0)
    await until_status(notebook.agent, running, "running")
    await notebook.agent.ask("POST", f"sessions/{notebook.session['id']}/close")
    done = (await notebook.agent.get(f"executions/{running['id']}")).json
    assert done["status"] == "interrupted"
    assert done["document"]["status"] == "written"
    assert notebook.cell(done["id"]).metadata.agent_exec["status"] == "interrupted"
