from __future__ import annotations

import json
import math
import tracemalloc
from importlib.resources import files

import jsonschema
import nbformat
import pytest
from msgspec.structs import replace

from jupyter_agent_exec.journal.notebook import Export, cell
from jupyter_agent_exec.models import ExecutionsQuery, Omitted
from jupyter_agent_exec.records import GrantGiven, Interrupted, Payload, digest_of
from tests.journal.recorded import (
    AT,
    BY,
    LANGUAGE,
    PERSON,
    PNG,
    accepted,
    add_late,
    approved,
    ask,
    closed,
    dispatched,
    display,
    finished,
    kernel_started,
    new_execution_id,
    opened,
    reviewed,
    run,
    stream,
)

SCHEMA = json.loads(
    files("jupyter_agent_exec.journal").joinpath("metadata.schema.json").read_text("utf-8")
)


def exported(history, session_id):
    text = "".join(history.notebook(session_id))
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    document = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert "trusted" not in text
    return document


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda cell: cell.pop("session_id"),
        lambda cell: cell.update(status="fine"),
        lambda cell: cell.update(accepted_at="today"),
        lambda cell: cell.update(entry_hash="0"),
        lambda cell: cell.update(init=False),
        lambda cell: cell.update(review={"verdict": "fine"}),
        lambda cell: cell.update(approval={"status": "approved"}),
        lambda cell: cell.update(changes={}),
        lambda cell: cell.update(revises="x"),
    ],
)
def test_the_schema_refuses_what_is_not_so(history, session, spoil):
    run(session, 1, "1", [])
    document = exported(history, session.session_id)
    spoil(document["cells"][0]["metadata"]["agent_exec"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_what_people_decided_and_what_changed_is_in_the_notebook(history, session):
    execution_id = ask(session, 1, "asked", before="before")
    entry, payload = approved(execution_id, "changed")
    end, payloads = finished(execution_id, [])
    told = Payload.of(
        b'{"variables":[{"name":"a","change":"added","type":"int","preview":"1"}],'
        b'"more_variables":0}'
    )
    session.append([entry], [payload])
    session.append_final([replace(end, variables=told.digest)], [*payloads, told])
    session.append([reviewed(execution_id, "flagged", "why?")])
    session.append([GrantGiven(at=AT, by=PERSON, kernel_id="k", incarnation=1, until=None)])
    document = exported(history, session.session_id)
    (cell,) = document["cells"]
    metadata = cell["metadata"]["agent_exec"]
    assert cell["source"] == "changed"
    assert metadata["review"] == {
        "verdict": "flagged",
        "comment": "why?",
        "by": "Grace",
        "at": AT,
    }
    assert metadata["approval"]["decided_by"] == "Grace"
    assert metadata["approval"]["asked_source_sha256"] == digest_of(b"asked")
    assert metadata["changes"]["variables"][0]["preview"] == "1"
    about = document["metadata"]["agent_exec"]
    assert about["session"]["approval"] == "none"
    kinds = [event["type"] for event in about["events"]]
    assert kinds == ["opened", "grant_given"]


def test_a_session_is_a_valid_notebook_with_its_record(history, session):
    session.append([kernel_started()])
    init = run(session, 1, "import os", [], init=True)
    outputs = [
        stream("é" * 9000),
        display({"image/png": PNG, "text/plain": "<Figure>"}),
        {"output_type": "execute_result", "execution_count": 1, "data": {}, "metadata": {}},
    ]
    plotted = run(session, 2, "plot()\n", outputs)
    session.append([Interrupted(at=AT, by=BY, execution_id=plotted, reason="asked")])
    session.close(closed())
    document = exported(history, session.session_id)
    first, second = document["cells"]
    assert (first["id"], second["id"]) == (init, plotted)
    assert second["source"] == "plot()\n"
    assert second["outputs"] == outputs
    told = second["metadata"]["agent_exec"]
    assert (told["execution_id"], told["seq"], told["status"]) == (plotted, 2, "ok")
    assert told["entry_hash"] == history.execution(plotted).entry_hash
    assert told["execution_count"] == second["execution_count"] == 1  # until it is run again
    assert "omitted" not in told
    assert "init" not in told
    assert first["metadata"]["agent_exec"]["init"] is True
    metadata = document["metadata"]
    assert metadata["kernelspec"] == {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    assert metadata["language_info"] == LANGUAGE
    about = metadata["agent_exec"]
    assert about["session"]["id"] == session.session_id
    assert about["session"]["status"] == "closed"
    assert about["chain"] == {"head": session.file.head.head, "length": session.file.head.length}
    assert [event["type"] for event in about["events"]] == [
        "opened",
        "kernel_started",
        "interrupted",
        "closed",
    ]
    assert about["events"][-1]["hash"] == session.file.head.head


def test_what_went_wrong_is_told_in_the_cell(history, session):
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, 1, "while True: print(1)")
    session.append([entry, dispatched(execution_id)], [payload])
    end, payloads = finished(
        execution_id,
        [stream("1\n")],
        "timed_out",
        reason="It ran longer than 60 s.",
        omitted=Omitted(bytes=12, lines=6),
        interrupt_ignored=True,
        outputs_complete=False,
    )
    session.append_final([end], payloads)
    add_late(session, execution_id, [stream("late\n")])
    (told,) = exported(history, session.session_id)["cells"]
    assert [output["text"] for output in told["outputs"]] == ["1\n", "late\n"]
    metadata = told["metadata"]["agent_exec"]
    assert metadata["omitted"] == {"bytes": 12, "lines": 6, "outputs": 0}
    assert metadata["interrupt_ignored"] is True
    assert metadata["reason"] == "It ran longer than 60 s."
    assert metadata["outputs_complete"] is False


def test_a_session_without_executions_or_kernel_is_a_notebook(history, session):
    document = exported(history, session.session_id)
    assert document["cells"] == []
    assert "kernelspec" not in document["metadata"]


def test_an_execution_that_goes_on_is_a_cell_without_outputs(history, session):
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, 1, "long()")
    session.append([entry, dispatched(execution_id)], [payload])
    (told,) = exported(history, session.session_id)["cells"]
    assert told["metadata"]["agent_exec"]["status"] == "running"
    assert told["outputs"] == []


def test_the_text_is_strict_json(history, session):
    run(session, 1, "1", [display({"application/json": [math.nan, "\ud800", {"\udc00": 1.5}]})])
    text = "".join(history.notebook(session.session_id))
    text.encode("utf-8")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads(text, parse_constant=refuse)
    data = document["cells"][0]["outputs"][0]["data"]["application/json"]
    assert data == [None, "\ufffd", {"\ufffd": 1.5}]


def test_ten_thousand_cells_are_exported_without_being_held(history, session):
    record = history.execution(run(session, 1, "print('x')", [stream("x" * 4000)]))
    about = history.session(session.session_id)
    size = 0
    tracemalloc.start()
    try:
        long = Export(session=about, executions=(record for _ in range(10_000)))
        for chunk in long.chunks():
            size += len(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 40_000_000
    assert peak < 4_000_000


def test_a_long_session_is_exported_whole_and_in_order(history):
    session = history.open_session(opened())
    for seq in range(1, 300):
        run(session, seq, f"{seq}", [stream("y" * 1000)])
    cells = exported(history, session.session_id)["cells"]
    assert [told["source"] for told in cells] == [str(seq) for seq in range(1, 300)]


@pytest.mark.parametrize("lost", [False, True], ids=["whole", "blobs lost"])
@pytest.mark.parametrize("brief", [False, True], ids=["in full", "brief"])
def test_cells_are_nbformats_and_valid_whatever_they_hold(history, session, lost, brief):
    failed = {"output_type": "error", "ename": "E", "evalue": "é" * 9000, "traceback": []}
    outputs = [
        stream("é" * 9000),
        display({"image/png": PNG, "text/plain": "x" * 9000, "application/json": ["y" * 9000]}),
        display({"text/plain": "\ud800"}, deep={"text/html": {"isolated": True}}),
        failed,
    ]
    run(session, 1, "1/0", outputs, "error")
    run(session, 2, "", [])
    accepted_only, payload = accepted(new_execution_id(), 3, "waits")
    session.append([accepted_only], [payload])
    if lost:
        for blob in (history.folder / "sessions" / session.session_id / "blobs").iterdir():
            blob.unlink()
    query = ExecutionsQuery(outputs="brief" if brief else "full")
    records, _ = history.executions(session.session_id, query)
    made = [cell(record) for record in records]
    assert len(made) == 3
    for each in made:
        assert isinstance(each, nbformat.NotebookNode)
        assert each.metadata.agent_exec["status"] in ("error", "ok", "queued")
        nbformat.validate(each, ref="code_cell", version=4, version_minor=5)
