from __future__ import annotations

import json
import shutil

import nbformat
import pytest

from jupyter_agent_exec.journal.notebook import cell
from jupyter_agent_exec.journal.outputs import ALL_BYTES, LARGE_BYTES, brief, leave_out
from jupyter_agent_exec.models import ExecutionsQuery
from jupyter_agent_exec.records import OutputRef
from jupyter_agent_exec.text.model_text import images
from tests.journal.recorded import (
    PNG,
    REAL_PNG,
    SVG,
    accepted,
    add_update,
    closed,
    dispatched,
    display,
    finished,
    new_execution_id,
    run,
    stream,
)

LARGE = "x" * (LARGE_BYTES + 1)


def error(ename="E", evalue="v", traceback=("line",)):
    return {
        "output_type": "error",
        "ename": ename,
        "evalue": evalue,
        "traceback": list(traceback),
    }


def listed(history, session):
    records, _ = history.executions(session.session_id, ExecutionsQuery(outputs="brief"))
    for record in records:
        assert_valid(record)
    return records


def assert_valid(record):
    document = nbformat.v4.new_notebook(cells=[cell(record)])
    nbformat.validate(json.loads(json.dumps(document)))


def left(record):
    return [(one.index, one.bytes, one.mimetypes) for one in record.brief.left_out]


@pytest.mark.parametrize(
    ("output", "kept", "mimetypes"),
    [
        (stream(LARGE), stream(""), ["text/plain"]),
        (display({"text/html": LARGE}, isolated=True), display({}, isolated=True), ["text/html"]),
        (
            display({"text/html": "h" * 5000, "text/plain": "p" * 5000}),
            display({}),
            ["text/html", "text/plain"],
        ),
        (display({"application/json": {"a": LARGE}}), display({}), ["application/json"]),
        (error(traceback=[LARGE]), error(traceback=[]), ["text/plain"]),
        (error(evalue=LARGE), error(evalue="", traceback=[]), ["text/plain"]),
    ],
    ids=["stream", "html", "bundle", "json", "traceback", "evalue"],
)
def test_what_is_large_is_left_out_and_told(history, session, output, kept, mimetypes):
    run(session, 1, "1", [stream("before"), output, stream("after")], "ok")
    (record,) = listed(history, session)
    assert record.outputs == [stream("before"), kept, stream("after")]
    ((index, size, told),) = left(record)
    assert (index, told) == (1, mimetypes)
    if output["output_type"] == "stream":
        assert size == len(LARGE)


def test_what_is_just_small_enough_stays(history, session):
    outputs = [stream("x" * (LARGE_BYTES - 50)), error(), display({"text/plain": "é" * 4000})]
    run(session, 1, "s" * 50_000, outputs)
    (record,) = listed(history, session)
    assert record.outputs == outputs
    assert left(record) == []
    assert len(record.source) == 50_000


def test_sizes_are_bytes_and_not_characters(history, session):
    small = {"text/html": "é" * 3000, "text/plain": "é" * 3000}
    run(session, 1, "1", [stream("é" * (LARGE_BYTES // 2 + 1)), display(small)])
    (record,) = listed(history, session)
    assert left(record) == [
        (0, LARGE_BYTES + 2, ["text/plain"]),
        (1, 12_000, ["text/html", "text/plain"]),
    ]


def test_many_small_outputs_are_left_out_from_some_point_on(history, session):
    count = 2 * ALL_BYTES // 5000
    run(session, 1, "1", [display({"text/plain": "x" * 5000}) for _ in range(count)])
    (record,) = listed(history, session)
    assert len(record.outputs) == count
    kept = [bool(output["data"]) for output in record.outputs]
    assert kept == sorted(kept, reverse=True)
    assert 0 < sum(kept) < count
    assert [one.index for one in record.brief.left_out] == list(range(sum(kept), count))


def test_images_are_left_to_their_urls_with_their_sizes(history, session):
    outputs = [
        display({"image/png": REAL_PNG, "text/plain": "<Figure>", "image/svg+xml": SVG}),
        stream("x"),
        display({"image/svg+xml": SVG}),
        display({"image/png": REAL_PNG, "text/html": LARGE}),
    ]
    execution_id = run(session, 1, "1", outputs)
    (record,) = listed(history, session)
    assert record.outputs == [
        display({"text/plain": "<Figure>"}),
        stream("x"),
        display({}),
        display({}),
    ]
    whole = history.execution(execution_id)
    told = [(i.output, i.mimetype, i.width, i.height, i.bytes) for i in record.brief.images]
    assert told == [
        (i.output, i.mimetype, i.width, i.height, i.bytes) for i in images(whole.outputs)
    ]
    assert told[0][2:4] == (2, 3)
    assert told[1][2:4] == (4, 5)
    assert [mimetypes for _, _, mimetypes in left(record)] == [
        ["image/png", "image/svg+xml"],
        ["image/svg+xml"],
        ["image/png", "text/html"],
    ]
    assert history.blob(record.brief.images[0].sha256)[1] == "image/png"


def test_a_whole_record_is_made_brief_in_the_same_way(history, session):
    outputs = [
        display({"image/png": REAL_PNG, "text/plain": "<Figure>"}),
        stream(LARGE),
        error(traceback=[LARGE]),
    ]
    run(session, 1, "1", outputs, "error")
    (record,) = listed(history, session)
    whole, _ = history.executions(session.session_id, ExecutionsQuery())
    assert brief(whole[0]).outputs == record.outputs
    assert brief(whole[0]).brief == record.brief
    assert brief(record) is record


def test_what_runs_has_its_large_outputs_left_out_too():
    outputs, told = leave_out([stream(LARGE), display({"image/png": PNG})], [])
    assert outputs == [stream(""), display({"image/png": PNG})]
    assert [one.index for one in told] == [0]


def test_base64_that_no_url_can_show_is_left_out_as_data(history, session):
    wrapped = REAL_PNG[:60] + "\n" + REAL_PNG[60:]
    run(session, 1, "1", [display({"image/png": wrapped, "text/plain": "x"})])
    (record,) = listed(history, session)
    assert record.brief.images == ()
    assert record.outputs == [display({})]
    assert left(record) == [(0, len(wrapped) + 1, ["image/png", "text/plain"])]


def test_updated_displays_are_left_out_by_what_they_show_now(history, session):
    execution_id = run(session, 1, "1", [display({"text/plain": LARGE}), display({"a/b": "x"})])
    for index, data in ((0, {"text/plain": "small"}), (1, {"image/png": REAL_PNG})):
        add_update(session, execution_id, display(data), OutputRef(execution_id, index))
    (record,) = listed(history, session)
    assert record.outputs == [display({"text/plain": "small"}), display({})]
    assert left(record) == [(1, record.brief.images[0].bytes, ["image/png"])]
    assert record.brief.images[0].output == 1


def test_the_error_is_told_without_its_traceback(history, session):
    end, payloads = finished(
        execution_id := new_execution_id(), [error(traceback=[LARGE])], "error", error=True
    )
    entry, payload = accepted(execution_id, 1, "1/0")
    session.append([entry, dispatched(execution_id)], [payload])
    session.append_final([end], payloads)
    (record,) = listed(history, session)
    assert record.error is not None
    assert (record.error.ename, record.error.evalue, record.error.traceback) == ("E", "v", [])


def test_no_payload_that_is_left_out_is_read(history, session, folder):
    run(session, 1, "1", [stream(LARGE), display({"image/png": REAL_PNG}), error()])
    session.close(closed())
    before = listed(history, session)
    shutil.rmtree(folder / "sessions" / session.session_id / "blobs")
    assert listed(history, session) == before
    assert before[0].outputs_complete
    ((whole,), _) = history.executions(session.session_id, ExecutionsQuery())
    assert not whole.outputs_complete


def test_pages_begin_anywhere_also_where_numbers_are_missing(history, session):
    for seq in (1, 2, 5, 6, 9, 10):
        run(session, seq, str(seq), [])

    def page(**at):
        records, after = history.executions(
            session.session_id, ExecutionsQuery(limit=2, outputs="brief", **at)
        )
        return [record.seq for record in records], after

    assert page() == ([1, 2], 2)
    assert page(after=2) == ([5, 6], 6)
    assert page(after=3) == ([5, 6], 6)
    assert page(after=6) == ([9, 10], None)
    assert page(after=10) == ([], None)
    assert page(before=2**31 - 1) == ([9, 10], None)
    assert page(before=9) == ([5, 6], 6)
    assert page(before=1) == ([], None)
