"""What people decide about outputs: recorded first, then done, and done again after a restart."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from recorded import (
    AT,
    BY,
    accepted,
    closed,
    display,
    finished,
    new_execution_id,
    new_history,
    new_session_id,
)
from ways import DictWay, Switch, code, notebook

from jupyter_agent_exec.access.scopes import Caller
from jupyter_agent_exec.errors import (
    CellNotFound,
    DocumentChanged,
    ExecutionNotFound,
    HistoryUnavailable,
    NotFinished,
)
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.session import SessionJournal
from jupyter_agent_exec.models import Agent, Document, Limits, NotebookTarget
from jupyter_agent_exec.notebooks.document import Notebooks
from jupyter_agent_exec.records import CellWritten, Opened
from jupyter_agent_exec.sessions.accepting import Decisions
from jupyter_agent_exec.sessions.placing import Placing

ADA = Caller(username="ada", display_name="Ada", access="full")
SCRIPT = display({"application/javascript": "alert(1)", "text/plain": "<it>"})
INERT = display({"text/plain": "<it>"})


class Sessions:
    """The history, asked as the manager is."""

    def __init__(self, history: History) -> None:
        self.history = history

    async def session(self, id: str) -> Any:
        return self.history.session(id)

    async def execution(self, id: str) -> Any:
        return self.history.execution(id)

    async def executions(self, id: str, **named: Any) -> Any:
        return self.history.executions(id, **named)

    async def in_thread(self, call: Any) -> Any:
        return call()


class Bench:
    """A session in a notebook, whose executions have ended."""

    def __init__(self, history: History, way: DictWay) -> None:
        self.history = history
        self.way = way
        self.switch = Switch(way)
        self.settled: list[str] = []
        self.session = self._open()
        self.start(history)

    def start(self, history: History) -> None:
        """Begin to decide, as a server does when it starts."""
        placing = Placing(
            Notebooks([self.switch]),
            settle=self.settled.append,
            log=logging.getLogger(__name__),
            merge_delay=0,
            gather_delay=0,
        )
        self.placing = placing
        self.decisions = Decisions(Sessions(history), history, placing, log=logging.getLogger())

    def _open(self) -> SessionJournal:
        return self.history.open_session(
            Opened(
                at=AT,
                by=BY,
                session_id=new_session_id(),
                agent=Agent(name="analyst"),
                target=NotebookTarget(path="a.ipynb"),
                title=None,
                client_id=None,
                limits=Limits(),
                username="ada",
            )
        )

    def ran(self, seq: int, *, outputs: Any = (SCRIPT,), what: Any = "held") -> str:
        """Record an execution that ended, and put its cell."""
        id = new_execution_id()
        entry, source = accepted(id, seq, "show()")
        done, payloads = finished(id, list(outputs))
        document = Document(
            path="a.ipynb", cell_id=id, via="tab", status="written", outputs=what, reason=None
        )
        written = CellWritten(at=AT, by=BY, execution_id=id, document=document)
        self.session.append([entry, done, written], [source, *payloads])
        cell = code(id, "show()", [INERT], agent_exec={"execution_id": id, "outputs": what})
        self.way.content["cells"].append({**cell, "execution_count": 1})
        return id

    def outputs(self, id: str) -> Any:
        return self.way.cells[id]["outputs"]

    def ours(self, id: str) -> Any:
        return self.way.cells[id]["metadata"]["agent_exec"]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "agent_exec"


@pytest.fixture
def history(folder):
    history = new_history(folder)
    yield history
    history.stop()


@pytest.fixture
def bench(history: History) -> Bench:
    return Bench(history, DictWay(notebook(code("a", "1"))))


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


async def test_discarding_takes_the_outputs_out_and_accepting_brings_them_back(bench: Bench):
    id = bench.ran(1)
    record = await bench.decisions.discard(id, ADA)
    assert record.document.outputs == "discarded"
    assert bench.outputs(id) == []
    assert bench.ours(id)["outputs"] == "discarded"
    assert bench.way.cells[id]["execution_count"] == 1
    await bench.decisions.accept(id, ADA)
    assert bench.outputs(id) == [SCRIPT]


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

    class Full:
        def decide(self, *_: Any) -> None:
            raise HistoryUnavailable("The disk is full.")

    after = new_history(history.folder)
    decisions = Decisions(Sessions(after), Full(), bench.placing, log=logging.getLogger())
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
    run_again, held, gone, inert, discarded = (
        bench.ran(1),
        bench.ran(2),
        bench.ran(3),
        bench.ran(4, outputs=(INERT,), what="inert"),
        bench.ran(5),
    )
    bench.way.cells[run_again]["execution_count"] = 7
    await bench.decisions.discard(discarded, ADA)
    del bench.way.content["cells"][bench.way.order.index(gone)]
    records = await bench.decisions.accept_all(bench.session.session_id, ADA)
    assert [record.id for record in records] == [held]
    assert bench.outputs(held) == [SCRIPT]
    assert bench.outputs(inert) == [INERT]
    assert bench.outputs(discarded) == []


async def test_what_runs_cannot_be_decided_on(bench: Bench):
    id = new_execution_id()
    entry, source = accepted(id, 1, "show()")
    bench.session.append([entry], [source])
    for decide in (bench.decisions.accept, bench.decisions.discard):
        with pytest.raises(NotFinished) as refused:
            await decide(id, ADA)
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
