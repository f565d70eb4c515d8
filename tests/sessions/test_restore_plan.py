"""Which executions made the state of a kernel: pure."""

from __future__ import annotations

from typing import Any

from jupyter_agent_exec.models import ExecutionKernel
from jupyter_agent_exec.records import ExecutionRecord
from jupyter_agent_exec.sessions.restores import CellToRestore, plan
from jupyter_agent_exec.types import ExecutionId
from tests.notebooks.placing_bench import record


def ran(
    seq: int,
    source: str,
    *,
    life: int = 1,
    shows: bool = False,
    **said: Any,
) -> ExecutionRecord:
    kernel = ExecutionKernel(id="k", name="python3", incarnation=life, restarted=False, reason=None)
    outputs = [{"output_type": "stream", "name": "stdout", "text": "1"}] if shows else []
    return record(
        id=ExecutionId(f"x_{seq}"),
        seq=seq,
        source=source,
        kernel=kernel,
        outputs=outputs,
        **{"status": "ok", **said},
    )


def planned(*records: ExecutionRecord, **said: Any) -> list[CellToRestore]:
    asked: dict[str, Any] = {
        "current": 2,
        "done": (),
        "with_first_sources": False,
        "leave_out": (),
        **said,
    }
    return plan(records, **asked)


def runs(found: list[CellToRestore]) -> list[int]:
    return [cell.record.seq for cell in found if cell.left_out is None]


def test_the_last_kernel_that_made_anything_counts_and_not_the_current_one() -> None:
    records = [ran(1, "a = 1"), ran(2, "b", life=2, status="error"), ran(3, "c = 1", life=2)]
    assert runs(planned(*records)) == [1]
    assert runs(planned(*records, current=None)) == [2, 3]
    assert runs(planned(*records, current=3)) == [2, 3]
    assert planned(records[2], current=2) == []


def test_code_that_raised_runs_again_and_what_was_stopped_is_told() -> None:
    ends = ("error", "interrupted", "timed_out", "kernel_died")
    records = [ran(n, "import a\nb()", status=status) for n, status in enumerate(ends, 1)]
    found = planned(*records)
    assert runs(found) == [1]
    assert [cell.left_out for cell in found[1:]] == [f"It ended as {each}." for each in ends[1:]]
    waited = record(id=ExecutionId("x_9"), seq=9, source="c", status="cancelled", kernel=None)
    assert planned(records[0], waited) == found[:1]


def test_a_kernel_in_which_all_failed_counts_only_if_there_is_no_better_one() -> None:
    records = [ran(1, "a = 1"), ran(2, "a", life=2, status="error")]
    assert runs(planned(*records, current=3)) == [1]
    assert runs(planned(records[1], current=3)) == [2]


def test_what_ran_first_counts_only_where_a_new_session_does_not_run_it() -> None:
    records = [ran(1, "a = 1", init=True), ran(2, "b = 1")]
    assert runs(planned(*records)) == [2]
    assert runs(planned(*records, with_first_sources=True)) == [1, 2]


def test_nothing_is_left_out_by_a_guess_about_what_code_does() -> None:
    sources = ["df", "print(1)", "!ls", "%pip install x", "save(df)", "def f(:", "x <- 1"]
    records = [ran(n, source, shows=True) for n, source in enumerate(sources, 1)]
    assert runs(planned(*records)) == [1, 2, 3, 4, 5, 6, 7]


def test_who_restores_may_leave_executions_out() -> None:
    found = planned(ran(1, "a = 1"), ran(2, "!rm b"), ran(3, "c = 1"), leave_out=("x_2",))
    assert runs(found) == [1, 3]
    assert found[1].left_out == "The request leaves it out."


def test_what_ran_again_does_not_run_a_second_time() -> None:
    assert runs(planned(ran(1, "a = 1"), ran(2, "b = 1"), done=("x_1",))) == [2]


def test_code_that_the_record_does_not_have_never_runs() -> None:
    without_secret = ran(1, "key = '[redacted: token]'")
    assert runs(planned(without_secret)) == []
