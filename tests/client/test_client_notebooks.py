"""What is sent to a server about notebooks, and what its answers are read as."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jupyter_agent_exec import errors, models
from jupyter_agent_exec.client import (
    AsyncSession,
    ClearOutputs,
    ConnectionLost,
    DeleteCell,
    Finished,
    InsertCell,
    Placement,
    Result,
    StatusChanged,
)
from jupyter_agent_exec.client.display import placed, waiting
from jupyter_agent_exec.client.requests import session_target
from jupyter_agent_exec.types import CellId, ExecutionId
from tests.client.wire import CHAIN, DIGEST, Script, execution, reply, session

PERSON = models.WaitingFor(
    who="person", agent=None, execution_id=None, since="2026-11-21T13:02:11.000Z"
)
DOCUMENT = models.Document(
    path="data/sales.ipynb",
    cell_id=CellId("x_1"),
    via="tab",
    status="written",
    outputs="inert",
    reason=None,
)
CELLS = models.NotebookCells(
    path="data/sales.ipynb",
    hash=DIGEST,
    via="contents",
    cells=[
        models.NotebookCell(
            id=CellId("c1"),
            index=0,
            cell_type="code",
            source="1+1",
            source_sha256=DIGEST,
            execution_count=1,
            text="2",
            execution_id=None,
            agent=None,
        )
    ],
)
IN_NOTEBOOK = msgspec.structs.replace(
    session(), target=models.NotebookTarget(path="sales.ipynb"), path="data/sales.ipynb"
)


def target(**given: Any) -> models.Target:
    nothing: dict[str, Any] = dict.fromkeys(("notebook", "kernel_id", "kernel_name", "cwd", "env"))
    return session_target(**{**nothing, "create": False, **given})


def test_the_default_target_is_a_scratch_kernel() -> None:
    assert target() == models.ScratchTarget()
    assert target(cwd="work", env={"A": "b"}) == models.ScratchTarget(cwd="work", env={"A": "b"})
    assert target(notebook="a.ipynb", create=True, kernel_name="ir") == models.NotebookTarget(
        path="a.ipynb", create=True, kernel_name="ir"
    )
    assert target(kernel_id="k") == models.KernelTarget(kernel_id="k")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"notebook": "a.ipynb", "kernel_id": "k"}, "kernel_id"),
        ({"notebook": "a.ipynb", "cwd": "work"}, "cwd"),
        ({"notebook": "a.ipynb", "env": {"A": "b"}}, "env"),
        ({"kernel_id": "k", "kernel_name": "python3"}, "kernel_name"),
        ({"kernel_id": "k", "cwd": "work"}, "cwd"),
        ({"kernel_id": "k", "env": {"A": "b"}}, "env"),
        ({"create": True}, "create"),
        ({"kernel_id": "k", "create": True}, "create"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(given: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=f"{field}=") as caught:
        target(**given)
    assert caught.value.detail == {"field": field}


def sent_body(method: Any, *args: Any, **options: Any) -> Any:
    script = Script(reply(execution(), 201))
    script.run(method(script.session, *args, **options))
    return msgspec.json.decode(script.sent[0].body)


@pytest.mark.parametrize(
    ("placement", "sent"),
    [
        ("end", "end"),
        ("none", "none"),
        (Placement(after=CellId("c1")), "c1"),
    ],
)
def test_a_placement_is_sent_with_the_source(placement: Any, sent: str) -> None:
    body = sent_body(AsyncSession.run, "1", placement=placement)
    told = body["placement"]
    assert (told["after"] if isinstance(told, dict) else told) == sent
    assert body["source"] == "1"


def test_a_cell_is_run_by_its_id_and_the_source_that_was_read() -> None:
    body = sent_body(AsyncSession.run_cell, "c1", source_sha256=DIGEST)
    assert body["source"] is None
    assert (body["placement"]["cell"], body["placement"]["source_sha256"]) == ("c1", DIGEST)


def test_a_cell_that_is_run_where_it_is_has_no_other_place() -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        sent_body(AsyncSession.run_cell, "c1", placement=Placement(after=CellId("c2")))
    assert refused.value.detail["field"] == "placement"


def test_open_notebooks_are_listed() -> None:
    notebook = models.OpenNotebook(
        path="a.ipynb", via="tab", kernel=None, tabs=1, unsaved=True, session_ids=[]
    )
    script = Script(reply(models.OpenNotebookList(notebooks=[notebook])))
    assert script.run(script.client.notebooks()) == [notebook]
    assert script.sent[0].path == "/api/agent-exec/notebooks"


def test_a_path_is_sent_in_segments_whatever_is_in_their_names() -> None:
    script = Script(reply(CELLS))
    assert script.run(script.client.cells("/data/50% #1? ü.ipynb")) == CELLS
    assert script.sent[0].path == (
        "/api/agent-exec/notebooks/data/50%25%20%231%3F%20%C3%BC.ipynb/cells"
    )


def test_a_sessions_cells_are_read_where_its_notebook_is_now() -> None:
    moved = msgspec.structs.replace(IN_NOTEBOOK, path="archive/sales.ipynb")
    script = Script(reply(moved), reply(CELLS))
    script.run(script.session.cells())
    assert [sent.path.removeprefix("/api/agent-exec") for sent in script.sent] == [
        "/sessions/s_1",
        "/notebooks/archive/sales.ipynb/cells",
    ]


def test_only_as_much_of_the_outputs_is_read_as_is_wanted() -> None:
    script = Script(reply(CELLS))
    script.run(script.client.cells("a.ipynb", outputs=False, text_limit=500))
    assert script.sent[0].path.endswith("/a.ipynb/cells?outputs=false&text_limit=500")


def test_a_session_without_a_notebook_has_no_cells() -> None:
    with pytest.raises(errors.InvalidRequest, match="no notebook"):
        Script(reply(session())).run(lambda it: it.session.cells())


def test_edits_are_sent_together_with_what_they_expect() -> None:
    edited = models.NotebookEdited(
        path="data/sales.ipynb", hash=DIGEST, via="tab", cell_ids=[[CellId("c2")], []], chain=CHAIN
    )
    edits = [
        InsertCell(cell_type="markdown", source="# Sales", before=CellId("c1")),
        DeleteCell(cell_id=CellId("c1")),
    ]
    script = Script(reply(IN_NOTEBOOK), reply(edited))
    assert script.run(script.session.edit(edits, hash=DIGEST)) == edited
    sent = script.sent[-1]
    assert (sent.method, sent.path) == (
        "PATCH",
        "/api/agent-exec/notebooks/data/sales.ipynb/cells",
    )
    assert msgspec.json.decode(sent.body, type=models.EditNotebook) == models.EditNotebook(
        session_id=IN_NOTEBOOK.id, edits=list(edits), hash=DIGEST
    )


def test_edits_whose_connection_broke_are_not_sent_again() -> None:
    script = Script(reply(IN_NOTEBOOK), ConnectionLost("cut"))
    with pytest.raises(ConnectionLost):
        script.run(script.session.edit([ClearOutputs()]))


def test_a_result_tells_its_cell_in_the_notebook_and_behind_whom_it_waits() -> None:
    assert Result(execution()).document is None
    assert Result(execution(document=DOCUMENT)).document == DOCUMENT
    queued = Result(execution("queued", duration=None, waiting_for=PERSON))
    assert queued.waiting_for == PERSON
    assert queued.summary == (
        "queued: waits behind a cell that somebody runs, which began at 13:02:11 UTC"
    )


def test_a_stream_tells_behind_whom_an_execution_waits() -> None:
    change = models.StatusChange(status="queued", waiting_for=PERSON)
    events = (
        f"event: status\nid: 1\ndata: {msgspec.json.encode(change).decode()}\n\n"
        f"event: finished\nid: 2\ndata: {msgspec.json.encode(execution()).decode()}\n\n"
    )
    script = Script(reply(execution("queued"), 202), reply(b""), events.encode())
    script.run(script.session.stream("1"))
    told, last = script.emitted
    assert isinstance(told, StatusChanged)
    assert told.change.waiting_for == PERSON
    assert isinstance(last, Finished)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "waits behind a cell that somebody runs"),
        (
            {"who": "agent", "agent": "analyst", "execution_id": ExecutionId("x_1")},
            "waits behind an execution of an agent that calls itself “analyst”",
        ),
        ({"who": "kernel"}, "waits for the kernel"),
        (
            {"who": "approval"},
            "needs approval: in JupyterLab, or by `jupyter agent-exec approve x_2`",
        ),
    ],
)
def test_waiting_is_told_in_words(changes: dict[str, Any], words: str) -> None:
    behind = msgspec.structs.replace(PERSON, **{"since": None, **changes})
    assert waiting(behind, "x_2") == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "cell x_1 in data/sales.ipynb through a JupyterLab tab"),
        ({"status": "writing"}, "on its way into data/sales.ipynb through a JupyterLab tab"),
        (
            {"outputs": "held", "via": "collaboration"},
            "cell x_1 in data/sales.ipynb through the live document, "
            "active outputs held back until a person accepts them",
        ),
        (
            {"outputs": "accepted", "via": "contents"},
            "cell x_1 in data/sales.ipynb through the file, outputs accepted",
        ),
        (
            {"status": "not_written", "cell_id": None, "via": None, "reason": "It is read-only."},
            "no cell in data/sales.ipynb: It is read-only.",
        ),
    ],
)
def test_what_became_of_a_cell_is_told_in_words(changes: dict[str, Any], words: str) -> None:
    assert placed(msgspec.structs.replace(DOCUMENT, **changes)) == words


def test_what_later_servers_add_to_an_answer_is_passed_over() -> None:
    answer = msgspec.to_builtins(execution(document=DOCUMENT, waiting_for=PERSON))
    answer["brand_new"] = 1
    answer["document"]["brand_new"] = 1
    answer["waiting_for"]["brand_new"] = 1
    result = Script(reply(answer, 201)).run(lambda it: it.session.run("1"))
    assert result.document == DOCUMENT
    cells = msgspec.to_builtins(CELLS)
    cells["cells"][0]["brand_new"] = 1
    assert Script(reply(cells)).run(lambda it: it.client.cells("a.ipynb")) == CELLS
