from __future__ import annotations

import pytest

from jupyter_agent_exec.errors import (
    BlobNotFound,
    ExecutionNotFound,
    SessionNotFound,
)
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.models import ExecutionError, ExecutionsQuery, Omitted
from jupyter_agent_exec.records import (
    KernelEnded,
    OutputRef,
    Payload,
)
from jupyter_agent_exec.types import Digest
from tests.journal.recorded import (
    AT,
    BY,
    PNG,
    accepted,
    add_late,
    add_update,
    closed,
    dispatched,
    display,
    finished,
    kernel_started,
    new_execution_id,
    opened,
    run,
    stream,
)


def whole(folder):
    return verify_history(folder).findings == []


def test_what_is_recorded_can_be_read_at_once(history, folder):
    session = history.open_session(opened(title="Sales by region"))
    session.append([kernel_started()])
    outputs = [stream("hello\n"), display({"image/png": PNG, "text/plain": "x" * 9000})]
    execution_id = run(session, 1, "print('hello')", outputs)
    record = history.execution(execution_id)
    assert record.outputs == outputs
    assert (record.source, record.status, record.seq) == ("print('hello')", "ok", 1)
    assert (record.agent.name, record.username) == ("analyst", "ada")
    assert record.kernel is not None
    assert record.chain == session.file.head
    assert [ref.at for ref in record.blobs] == [(1, "data", "image/png"), (1, "data", "text/plain")]
    told = history.session(session.session_id)
    assert (told.executions, told.status, told.title) == (1, "open", "Sales by region")
    assert told.kernel is not None
    assert told.chain == session.file.head
    session.close(closed())
    told = history.session(session.session_id)
    assert (told.status, told.close_reason, told.closed_at, told.kernel) == (
        "closed",
        "closed",
        AT,
        None,
    )
    assert whole(folder)


def test_folders_and_files_are_for_their_owner_only(history, folder, session):
    run(session, 1, "1", [display({"image/png": PNG})])
    history.session(session.session_id)
    for path in [folder, *folder.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_an_execution_is_followed_through_its_statuses(history, session):
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, 1, "1/0")
    session.append([entry], [payload])
    assert history.execution(execution_id).status == "queued"
    session.append([dispatched(execution_id)])
    record = history.execution(execution_id)
    assert (record.status, record.started_at, record.finished_at) == ("running", AT, None)
    error = {"output_type": "error", "ename": "E", "evalue": "no", "traceback": ["a", "b"]}
    end, payloads = finished(execution_id, [error], "error", error=True, omitted=Omitted(bytes=3))
    (entry_hash,) = session.append_final([end], payloads)
    record = history.execution(execution_id)
    assert record.error == ExecutionError(ename="E", evalue="no", traceback=["a", "b"])
    assert (record.status, record.entry_hash, record.omitted.bytes) == ("error", entry_hash, 3)


def test_late_outputs_follow_the_others(history, session):
    execution_id = run(session, 1, "start()", [stream("first")])
    late = [display({"image/png": PNG}), stream("x" * 9000)]
    add_late(session, execution_id, late, omitted=Omitted(lines=2))
    record = history.execution(execution_id)
    assert [output["output_type"] for output in record.outputs] == [
        "stream",
        "display_data",
        "stream",
    ]
    assert [ref.at for ref in record.blobs] == [(1, "data", "image/png"), (2, "text")]
    assert record.omitted == Omitted(lines=2)


def test_a_display_update_reaches_the_earlier_execution(history, session):
    first = run(session, 1, "show()", [stream("a"), display({"image/png": PNG}, old=1)])
    second = run(session, 2, "update()", [])
    update = display({"text/plain": "x" * 9000}, new=1)
    add_update(session, second, update, OutputRef(first, 1), OutputRef(second, 7))
    record = history.execution(first)
    assert record.outputs == [stream("a"), display({"text/plain": "x" * 9000}, new=1)]
    assert [ref.at for ref in record.blobs] == [(1, "data", "text/plain")]
    assert history.execution(second).outputs == []


def test_a_kernel_that_ended_is_no_longer_the_sessions(history, session):
    session.append([kernel_started(1), kernel_started(2)])

    def ended(incarnation: int) -> KernelEnded:
        return KernelEnded(
            at=AT,
            by=BY,
            kernel_id="k-1",
            incarnation=incarnation,
            reason="died",
            message="It died.",
        )

    session.append([ended(1)])
    assert history.session(session.session_id).kernel.incarnation == 2
    session.append([ended(2)])
    assert history.session(session.session_id).kernel is None


def test_an_idempotency_key_leads_to_its_execution(history, session):
    body, others = Digest("a" * 64), Digest("b" * 64)
    kept = Payload.unkept(body.encode())
    execution_id = new_execution_id()
    fields = {"idempotency_key": "step-1", "body_sha256": kept.digest}
    entry, source = accepted(execution_id, 1, "1", **fields)
    session.append([entry], [source, kept])
    other = history.open_session(opened())
    assert history.find_by_key(session.session_id, "step-1", body) == (execution_id, True)
    assert history.find_by_key(session.session_id, "step-1", others) == (execution_id, False)
    assert history.find_by_key(session.session_id, "step-2", body) is None
    assert history.find_by_key(other.session_id, "step-1", body) is None


def test_a_blob_is_found_by_its_digest(history, session):
    record = history.execution(run(session, 1, "plot()", [display({"image/png": PNG})]))
    path, mimetype, size = history.blob(record.blobs[0].sha256)
    assert (path.stat().st_size, mimetype) == (size, "image/png")
    path.unlink()
    with pytest.raises(BlobNotFound):
        history.blob(record.blobs[0].sha256)
    gone = history.execution(record.id)
    assert gone.outputs == [display({})]
    assert not gone.outputs_complete


def test_a_whole_text_is_a_blob_too(history, session):
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, 1, "spam()")
    session.append([entry, dispatched(execution_id)], [payload])
    spill = session.new_text_spill(1000)
    spill.write("spam\n" * 300)
    text, size, omitted = spill.finish()
    digest = text.digest
    end, payloads = finished(
        execution_id, [], text=digest, text_bytes=size, omitted_text_bytes=omitted
    )
    session.append_final([end], [*payloads, text])
    assert history.blob(digest)[1:] == ("text/plain", 1000)
    assert history.execution(execution_id).omitted_text_bytes == 500


IDS = [
    *("", "s_", "../../etc/passwd", "s_01J0000000000000000000000/", "é", "0" * 64),
    *("s_01M8KRQWM8BYSQVN94PQGYN77D", "x_01M8KRQWM8BYSQVN94PQGYN77E"),
]


@pytest.mark.parametrize("bad", IDS)
def test_what_is_not_there_is_not_found(history, bad):
    for read in (history.session, history.journal_path, history.notebook):
        with pytest.raises(SessionNotFound):
            read(bad)
    with pytest.raises(SessionNotFound):
        history.executions(bad, ExecutionsQuery())
    with pytest.raises(ExecutionNotFound):
        history.execution(bad)
    with pytest.raises(BlobNotFound):
        history.blob(bad)


def test_init_source_is_recorded_with_the_session(history, folder):
    source = Payload.of(b"import pandas")
    entry = opened()
    history.open_session(
        type(entry)(**{f: getattr(entry, f) for f in entry.__struct_fields__ if f != "init_source"},
                    init_source=source.digest),
        [source],
    )  # fmt: skip
    assert whole(folder)
