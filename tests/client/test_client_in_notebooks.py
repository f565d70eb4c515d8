"""The client in a person's notebook: a real server, a real kernel, a notebook that is not open."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_agent_exec import errors
from jupyter_agent_exec.client import (
    Accepted,
    AgentExecClient,
    AsyncAgentExecClient,
    DeleteCell,
    Event,
    Finished,
    InsertCell,
    Placement,
    Session,
    StatusChanged,
)
from jupyter_agent_exec.types import CellId
from tests.person import Person, person_at, runs
from tests.real_server import PROJECT, Gate, RealServer


@pytest.fixture
def person(server: RealServer) -> Iterator[Person]:
    with person_at(server) as person:
        yield person


def sources(notebook: Any) -> list[str]:
    return [cell.source for cell in notebook.cells]


def test_an_agent_shares_the_users_variables_and_notebook(
    client: AgentExecClient, person: Person
) -> None:
    person.writes("shared.ipynb", "x = 20")
    kernel_id = person.opens("shared.ipynb")
    with person.at(kernel_id) as kernel:
        assert runs(kernel, "x = 20") == "ok"
    with client.open_session("tester", notebook="shared.ipynb") as session:
        assert session.info.path == "shared.ipynb"
        result = session.run("x + 1")
        # A file is written in its own time; what is known of the cell is told all the while.
        looks = [result, client.execution(result.id), *session.executions()]
        assert [look.document is not None for look in looks] == [True, True, True]
    assert result.execution.kernel is not None
    assert result.execution.kernel.id == kernel_id
    assert result.text.strip() == "21"
    document = client.execution(result.id).document
    assert document is not None
    assert (document.path, document.via, document.status) == ("shared.ipynb", "contents", "written")
    notebook = person.reads("shared.ipynb")
    assert sources(notebook) == ["x = 20", "x + 1"]
    assert notebook.metadata.person == "ada"
    assert notebook.cells[1].id == document.cell_id
    assert notebook.cells[1].outputs[0].data["text/plain"] == "21"
    with person.at(kernel_id) as kernel:
        assert runs(kernel, "assert x == 20") == "ok", "the kernel outlives the session"


def test_a_notebook_is_made_only_where_that_is_asked(
    client: AgentExecClient, person: Person
) -> None:
    with pytest.raises(errors.NotebookNotFound):
        client.open_session("tester", notebook="new.ipynb")
    with client.open_session("tester", notebook="new.ipynb", create=True) as session:
        session.run("1 + 1")
    assert sources(person.reads("new.ipynb")) == ["1 + 1"]


def test_an_execution_waits_behind_the_person_and_can_be_taken_back(
    client: AgentExecClient, person: Person, gate: Gate
) -> None:
    person.writes("busy.ipynb", "")
    with (
        client.open_session("tester", notebook="busy.ipynb") as session,
        person.at(person.opens("busy.ipynb")) as kernel,
    ):
        msg_id = kernel.execute(gate.source)
        gate.wait_until_it_runs()
        while state_of(client.session(session.id)) != "busy":
            pass
        events = session.stream("1")
        accepted = behind_a_person(events)
        assert client.execution(accepted).summary.startswith("queued: waits behind a cell")
        client.cancel(accepted)
        *_, last = events
        assert isinstance(last, Finished)
        assert last.result.status == "cancelled"
        gate.let_it_go_on()
        reply = kernel.get_shell_msg(timeout=60)
        assert (reply["parent_header"]["msg_id"], reply["content"]["status"]) == (msg_id, "ok")


def state_of(session: Session) -> str | None:
    kernel = session.info.kernel
    return None if kernel is None else kernel.execution_state


def behind_a_person(events: Iterator[Event]) -> str:
    """Return the id of an execution once it is told that it waits behind a person."""
    id = ""
    for event in events:
        behind = None
        if isinstance(event, Accepted):
            id, behind = event.result.id, event.result.waiting_for
        elif isinstance(event, StatusChanged):
            behind = event.change.waiting_for
        if behind is not None and behind.who == "person":
            return id
    raise AssertionError("it did not wait behind a person")


def test_cells_go_where_they_are_wanted(client: AgentExecClient, person: Person) -> None:
    first, last = person.writes("places.ipynb", "'first'", "'last'")
    with client.open_session("tester", notebook="places.ipynb") as session:
        session.run("'after'", placement=Placement(after=CellId(first)))
        session.run("'before'", placement=Placement(before=CellId(last)))
        hidden = session.run("'nowhere'", placement="none")
        ran = session.run_cell(last)
    assert hidden.document is None
    assert ran.text.strip() == "'last'"
    assert ran.document is not None
    assert ran.document.cell_id == last
    notebook = person.reads("places.ipynb")
    assert sources(notebook) == ["'first'", "'after'", "'before'", "'last'"]
    assert notebook.cells[3].outputs[0].data["text/plain"] == "'last'"


def test_a_cell_that_was_changed_since_it_was_read_is_not_run(
    client: AgentExecClient, person: Person
) -> None:
    person.writes("moved.ipynb", "x = 1")
    with client.open_session("tester", notebook="moved.ipynb") as session:
        (cell,) = session.cells().cells
        assert cell.id is not None
        assert session.run_cell(cell.id, source_sha256=cell.source_sha256).ok
        (edited,) = person.writes("moved.ipynb", "x = 2")
        with pytest.raises(errors.CellNotFound) as gone:
            session.run_cell(cell.id)
        assert gone.value.detail["cell_ids"] == [edited]
        with pytest.raises(errors.DocumentChanged):
            session.run_cell(edited, source_sha256=cell.source_sha256)
        assert [result.execution.seq for result in session.executions()] == [1]


def test_edits_are_all_made_or_none(client: AgentExecClient, person: Person) -> None:
    first, last = person.writes("edits.ipynb", "1", "2")
    with client.open_session("tester", notebook="edits.ipynb") as session:
        read = session.cells()
        title = InsertCell(cell_type="markdown", source="# Title", before=CellId(first))
        edited = session.edit([title, DeleteCell(cell_id=CellId(last))], hash=read.hash)
        assert edited.hash != read.hash
        assert session.cells().hash == edited.hash
        with pytest.raises(errors.DocumentChanged):
            session.edit([title], hash=read.hash)
        with pytest.raises(errors.CellNotFound):
            session.edit([title, DeleteCell(cell_id=CellId(last))])
    notebook = person.reads("edits.ipynb")
    assert sources(notebook) == ["# Title", "1"]
    assert notebook.cells[0].id == edited.cell_ids[0][0]


def test_the_examples_in_the_docs_work_in_a_notebook(
    client: AgentExecClient, person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (PROJECT / "docs" / "reference" / "client.md").read_text() + (
        PROJECT / "docs" / "explanation" / "notebooks.md"
    ).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    in_notebook, edits = (block for block in blocks if "InsertCell(" in block)
    person.writes("work/sales.ipynb", "import collections\nsales = collections.Counter('abc')")
    exec(in_notebook.replace("sales.describe()", "'sales'"), {"client": client})
    assert "import collections" in capsys.readouterr().out
    assert sources(person.reads("work/sales.ipynb"))[1:] == ["# Sales", "'sales'"]
    with client.open_session("tester", notebook="work/sales.ipynb") as session:
        exec(edits, {"session": session})
    assert sources(person.reads("work/sales.ipynb"))[:2] == [
        "# Sales by region",
        "import pandas as pd",
    ]


def test_notebooks_with_a_kernel_are_listed_with_who_is_in_them(
    client: AgentExecClient, person: Person
) -> None:
    person.writes("listed.ipynb", "")
    kernel_id = person.opens("listed.ipynb")
    with client.open_session("tester", notebook="listed.ipynb") as session:
        (listed,) = (each for each in client.notebooks() if each.path == "listed.ipynb")
    assert listed.kernel is not None
    assert (listed.kernel.id, listed.kernel.name) == (kernel_id, "python3")
    assert listed.session_ids == [session.id]


def test_a_renamed_notebook_is_followed(client: AgentExecClient, person: Person) -> None:
    person.writes("before.ipynb", "1")
    person.opens("before.ipynb")
    with client.open_session("tester", notebook="before.ipynb") as session:
        session.run("2")
        person.renames("before.ipynb", "after.ipynb")
        assert session.cells().path == "after.ipynb"
        result = session.run("3")
        assert client.session(session.id).info.path == "after.ipynb"
    assert result.document is not None
    assert result.document.path == "after.ipynb"
    assert sources(person.reads("after.ipynb")) == ["1", "2", "3"]


def test_a_running_kernel_is_used_without_a_document(
    client: AgentExecClient, person: Person
) -> None:
    kernel_id = str(person.ask("POST", "kernels", {"name": "python3"})["id"])
    with client.open_session("tester", kernel_id=kernel_id) as session:
        result = session.run("x = 7\nx")
        assert (result.text.strip(), result.document) == ("7", None)
        with pytest.raises(errors.KernelNotOwned):
            session.restart()
        with pytest.raises(errors.InvalidRequest):
            session.cells()
    with person.at(kernel_id) as kernel:
        assert runs(kernel, "assert x == 7") == "ok"
    with pytest.raises(errors.KernelNotFound):
        client.open_session("tester", kernel_id="5e5f0a1e-0000-4000-8000-000000000000")


def test_the_awaiting_client_does_the_same_in_a_notebook(
    server: RealServer, person: Person
) -> None:
    (first,) = person.writes("awaited.ipynb", "1 + 1")

    async def use() -> None:
        async with (
            AsyncAgentExecClient(server.url, server.token) as client,
            await client.open_session("awaiter", notebook="awaited.ipynb") as session,
        ):
            read = await session.cells()
            (cell,) = read.cells
            ran = await session.run_cell(first, source_sha256=cell.source_sha256)
            assert ran.text.strip() == "2"
            await session.run("'added'", placement=Placement(before=CellId(first)))
            await session.edit([DeleteCell(cell_id=CellId(first))])
            assert [cell.source for cell in (await client.cells("awaited.ipynb")).cells] == [
                "'added'"
            ]
            assert "awaited.ipynb" in [each.path for each in await client.notebooks()]

    asyncio.run(use())
