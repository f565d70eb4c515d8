"""Who is told of executions, and in which order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_agent_exec.executions.execution import LiveExecution
from jupyter_agent_exec.executions.live_executions import LiveExecutions
from jupyter_agent_exec.executions.observer import ExecutionObserver
from jupyter_agent_exec.executions.spec import ExecutionSpec
from jupyter_agent_exec.models import Agent, Chain, Execute, NotebookTarget
from jupyter_agent_exec.records import By
from jupyter_agent_exec.text.redaction import Redactor
from tests.notebooks.placing_bench import KERNEL, Session, record, rest
from tests.notebooks.ways import DictWay, notebook

SESSION: Any = SimpleNamespace(
    id="s",
    agent=Agent(name="analyst"),
    username="ada",
    token=None,
    target=NotebookTarget(path="a.ipynb"),
)
CHAIN = Chain(head="0" * 64, length=1)
FILE = SimpleNamespace(head=CHAIN, signed_head=CHAIN)
JOURNAL: Any = SimpleNamespace(file=FILE, redactor=Redactor())
SERVER: Any = SimpleNamespace(rules=SimpleNamespace(paused=None, pausing=None), log=None)


def accepted(executions: LiveExecutions, place: Any = None) -> LiveExecution:
    """Return an execution whose acceptance is on disk."""
    spec = ExecutionSpec(
        source="1",
        by=By(kind="agent"),
        timeout=30,
        queue_timeout=None,
        max_output_bytes=1000,
        placement="end",
        place=place,
    )
    execution = executions.add(spec, "none")
    executions.accepted(execution)
    return execution


def ended(execution: LiveExecution) -> Any:
    return record(
        execution.id,
        "1",
        status="ok",
        kernel=KERNEL,
        execution_count=3,
        started_at="2026-11-21T09:00:00.000Z",
        finished_at="2026-11-21T09:00:01.000Z",
    )


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_cell_shows_the_end_also_if_that_comes_with_the_acceptance(at_once: bool):
    tab = DictWay(notebook())
    cells = Session(tab).cells
    executions = LiveExecutions(SESSION, JOURNAL, [cells], SERVER)
    execution = accepted(executions, await cells.place(Execute(source="1")))
    if not at_once:
        await rest()
        assert tab.cells[execution.id]["metadata"]["agent_exec"]["status"] == "queued"
    # A loop that was busy is told of both at once.
    executions.finished(execution, ended(execution))
    await cells.until_shown(execution, 10)
    assert tab.cells[execution.id]["execution_count"] == 3
    ours = tab.cells[execution.id]["metadata"]["agent_exec"]
    assert (ours["status"], ours["execution_count"]) == ("ok", 3)
    assert ours["finished_at"] == "2026-11-21T09:00:01.000Z"


class Log(ExecutionObserver):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def accepted(self, execution: LiveExecution) -> None:
        self.told.append("accepted")

    def changed(self, execution: LiveExecution) -> None:
        self.told.append("changed")

    def output_changed(self, execution: LiveExecution) -> None:
        self.told.append("output")

    def finished(self, record: Any) -> None:
        self.told.append(record.status)


async def test_observers_and_watchers_hear_of_each_step_and_of_nothing_after_the_end() -> None:
    log = Log()
    executions = LiveExecutions(SESSION, JOURNAL, [log], SERVER)
    execution = accepted(executions)
    executions.accepted(execution)  # is told once
    with execution.watching() as changed:
        executions.output_changed(execution)
        assert changed.is_set()
        changed.clear()
        executions.finished(execution, ended(execution))
        assert changed.is_set()
    executions.output_changed(execution)
    execution.become(execution.state.begun())
    assert log.told == ["accepted", "output", "ok"]
    assert execution.status == "ok"
    assert (len(executions), executions.get(execution.id)) == (0, None)


async def test_the_last_execution_is_kept_only_if_it_was_rejected() -> None:
    executions = LiveExecutions(SESSION, JOURNAL, [], SERVER)
    first, second = accepted(executions), accepted(executions)
    executions.finished(first, record(first.id, "1", seq=1, status="rejected"))
    assert executions.last_rejected is None
    executions.finished(second, record(second.id, "1", seq=2, status="rejected"))
    assert executions.last_rejected is not None
    accepted(executions)
    assert executions.last_rejected is None


async def test_an_execution_that_could_not_be_recorded_leaves_no_trace() -> None:
    executions = LiveExecutions(SESSION, JOURNAL, [], SERVER)
    execution = executions.add(accepted(executions).spec, "none")
    executions.forget(execution, OSError("disk"))
    assert (executions.accepted_count, executions.last_seq, len(executions)) == (1, 1, 1)
    assert execution.refused
