"""Outputs that people accept: recorded first, then shown."""

from __future__ import annotations

import asyncio

import pytest

from jupyter_agent_exec.errors import (
    CellNotFound,
    DocumentChanged,
    ExecutionNotFound,
    HistoryUnavailable,
    NotFinished,
)
from jupyter_agent_exec.journal.history import History
from tests.journal.recorded import accepted, closed, finished, new_execution_id, new_history
from tests.notebooks.deciding_bench import ADA, INERT, SCRIPT, Bench, Full
from tests.notebooks.ways import code, notebook


async def test_accepting_brings_the_originals_and_trusts_the_cell(bench: Bench):
    id = bench.ran(1)
    record = await bench.decisions.accept(id, ADA)
    assert record.document.outputs == "accepted"
    assert record.document.status == "written"
    assert bench.outputs(id) == [SCRIPT]
    assert bench.way.cells[id]["metadata"]["trusted"] is True
    assert bench.ours(id)["outputs"] == "accepted"
    assert bench.ours(id)["entry_hash"] == record.entry_hash
    assert bench.settled == ["a.ipynb"]


async def test_the_decision_is_on_disk_before_the_notebook_changes(bench: Bench, history: History):
    id = bench.ran(1)
    seen = []
    bench.way.before = lambda: seen.append(history.execution(id).document.outputs)
    await bench.decisions.accept(id, ADA)
    assert seen == ["accepted"]
    entry = history.journal_path(bench.session.session_id).read_text().splitlines()[-2]
    assert '"type":"outputs_accepted"' in entry
    assert '"username":"ada"' in entry
    assert '"kind":"person"' in entry


async def test_what_cannot_be_recorded_is_not_done(bench: Bench, history: History):
    id = bench.ran(1)
    history.stop()

    after = new_history(history.folder)
    decisions = bench.deciding(after, Full())
    before = bench.way.content
    with pytest.raises(HistoryUnavailable):
        await decisions.accept(id, ADA)
    assert bench.way.content is before
    after.stop()


async def test_a_closed_session_is_decided_on_after_a_restart(bench: Bench, history: History):
    id = bench.ran(1)
    bench.session.close(closed())
    history.stop()
    after = new_history(history.folder)
    bench.start(after)
    record = await bench.decisions.accept(id, ADA)
    assert record.document.outputs == "accepted"
    assert bench.outputs(id) == [SCRIPT]
    after.stop()


async def test_all_that_is_held_is_accepted_where_the_cell_still_is(bench: Bench):
    run_again, held, gone, inert = (
        bench.ran(1),
        bench.ran(2),
        bench.ran(3),
        bench.ran(4, outputs=(INERT,), what="inert"),
    )
    bench.way.cells[run_again]["execution_count"] = 7
    del bench.way.content["cells"][bench.way.order.index(gone)]
    records = await bench.decisions.accept_all(bench.session.session_id, ADA)
    assert [record.id for record in records] == [held]
    assert bench.outputs(held) == [SCRIPT]
    assert bench.outputs(inert) == [INERT]


async def test_what_runs_cannot_be_decided_on(bench: Bench):
    id = new_execution_id()
    entry, source = accepted(id, 1, "show()")
    bench.session.append([entry], [source])
    with pytest.raises(NotFinished) as refused:
        await bench.decisions.accept(id, ADA)
    assert refused.value.detail["status"] == "queued"


async def test_an_execution_that_is_not_there_is_told(bench: Bench):
    with pytest.raises(ExecutionNotFound):
        await bench.decisions.accept(new_execution_id(), ADA)


async def test_a_cell_that_is_gone_is_told_and_nothing_recorded(bench: Bench, history: History):
    id = bench.ran(1)
    bench.way.content = notebook(code("a"))
    with pytest.raises(CellNotFound) as refused:
        await bench.decisions.accept(id, ADA)
    assert refused.value.detail["cell_ids"] == ["a"]
    assert history.execution(id).document.outputs == "held"


async def test_an_execution_without_a_cell_is_told(bench: Bench):
    id = new_execution_id()
    entry, source = accepted(id, 1, "show()")
    bench.session.append([entry, finished(id, [])[0]], [source])
    with pytest.raises(CellNotFound):
        await bench.decisions.accept(id, ADA)


async def test_a_cell_that_was_run_again_is_left_alone(bench: Bench):
    id = bench.ran(1)
    bench.way.content = notebook({**bench.way.cells[id], "execution_count": 9})
    before = bench.way.content
    with pytest.raises(DocumentChanged):
        await bench.decisions.accept(id, ADA)
    assert bench.way.content is before


async def test_a_source_that_was_edited_stays_edited(bench: Bench):
    id = bench.ran(1)
    bench.way.content = notebook({**bench.way.cells[id], "source": "a person's"})
    await bench.decisions.accept(id, ADA)
    assert bench.way.cells[id]["source"] == "a person's"
    assert bench.outputs(id) == [SCRIPT]


async def test_a_cell_that_changes_at_this_very_moment_is_looked_at_again(bench: Bench):
    id = bench.ran(1)

    def edit() -> None:
        bench.way.content = notebook({**bench.way.cells[id], "source": "just now"})

    bench.way.before = edit
    await bench.decisions.accept(id, ADA)
    assert bench.way.cells[id]["source"] == "just now"
    assert bench.outputs(id) == [SCRIPT]


async def test_a_cell_that_is_run_again_at_this_very_moment_is_left_alone(bench: Bench):
    id = bench.ran(1)

    def run_again() -> None:
        changed = {"source": "just now", "execution_count": 7, "outputs": []}
        bench.way.content = notebook({**bench.way.cells[id], **changed})

    bench.way.before = run_again
    with pytest.raises(DocumentChanged):
        await bench.decisions.accept(id, ADA)
    assert bench.outputs(id) == []


async def test_a_cell_that_is_still_written_is_waited_for(bench: Bench):
    id = bench.ran(1)
    lock = bench.placing.lock(id)
    async with lock:
        task = asyncio.create_task(bench.decisions.accept(id, ADA))
        for _ in range(20):
            await asyncio.sleep(0)
        assert bench.outputs(id) == [INERT]
    await task
    assert bench.outputs(id) == [SCRIPT]


async def test_whoever_watches_is_told_also_after_the_session_s_end(bench: Bench):
    id = bench.ran(1)
    bench.session.close(closed())
    await bench.decisions.accept(id, ADA)
    assert bench.published == [("execution", id)]
