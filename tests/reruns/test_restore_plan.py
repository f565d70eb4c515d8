"""Which executions made the state of a kernel: pure."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agent_exec.models import Changes, ExecutionKernel, FileChange, VariableChange
from jupyter_agent_exec.records import ExecutionRecord
from jupyter_agent_exec.reruns.restore_plan import Plan, compared, plan, variables_after
from jupyter_agent_exec.types import ExecutionId
from tests.notebooks.placing_bench import record


def ran(
    seq: int,
    source: str,
    *,
    life: int = 1,
    shows: bool = False,
    made: dict[str, str] | None = None,
    wrote: str | None = None,
    **said: Any,
) -> ExecutionRecord:
    kernel = ExecutionKernel(id="k", name="python3", incarnation=life, restarted=False, reason=None)
    made = made or {}
    changes = Changes(
        variables=[VariableChange(name=n, change=how, type=None) for n, how in made.items()],  # type: ignore[arg-type]
        files=[FileChange(path=wrote, bytes=1, modified_at="2026-01-01T00:00:00.000Z")]
        if wrote
        else [],
    )
    outputs = [{"output_type": "stream", "name": "stdout", "text": "1"}] if shows else []
    return record(
        id=ExecutionId(f"x_{seq}"),
        seq=seq,
        source=source,
        kernel=kernel,
        outputs=outputs,
        **{"status": "ok", "changes": changes, **said},
    )


def planned(*records: ExecutionRecord, **said: Any) -> Plan:
    asked: dict[str, Any] = {
        "current": 2,
        "done": (),
        "is_python": True,
        "with_first_sources": False,
        "also": (),
        "everything": False,
        **said,
    }
    return plan(records, **asked)


def runs(found: Plan) -> list[int]:
    return [cell.record.seq for cell in found.cells if cell.left_out is None]


def test_the_last_kernel_that_made_anything_counts_and_not_the_current_one() -> None:
    records = [ran(1, "a = 1"), ran(2, "b", life=2, status="error"), ran(3, "c = 1", life=2)]
    assert runs(planned(*records)) == [1]
    assert runs(planned(*records, current=None)) == [3]
    assert runs(planned(*records, current=3)) == [3]
    assert runs(planned(*records, current=3, also=("x_1",))) == [1, 3]
    assert planned(records[2], current=2).cells == []


def test_what_ran_first_counts_only_where_a_new_session_does_not_run_it() -> None:
    records = [ran(1, "a = 1", init=True), ran(2, "b = 1")]
    assert runs(planned(*records)) == [2]
    assert runs(planned(*records, with_first_sources=True)) == [1, 2]


@pytest.mark.parametrize(
    ("source", "known", "is_left_out"),
    [
        ("df.head()", {"shows": True}, True),
        ("df.head()", {"shows": True, "made": {"df": "changed"}}, False),
        ("random.seed(1)", {}, False),
        ("df.pop('a')", {"shows": True}, False),
        ("import os\nos.name", {"shows": True}, False),
        ("train(df)", {"shows": True}, False),
        ("%pwd", {"shows": True}, True),
        ("df.to_csv('out.csv')", {}, True),
        ("save(df)", {"wrote": "out.csv"}, True),
        ("!ls", {}, True),
        ("%pip install humanize", {}, True),
        ("import requests; r = requests.get('https://example.org')", {}, True),
        ("x = 1", {"made": {"x": "added"}}, False),
    ],
)
def test_what_only_looked_or_reaches_beyond_the_kernel_is_left_out(
    source: str, known: dict[str, Any], is_left_out: bool
) -> None:
    assert (runs(planned(ran(1, source, **known))) == []) is is_left_out
    assert runs(planned(ran(1, source, **known), also=("x_1",))) == [1]


def test_everything_runs_what_reaches_beyond_the_kernel_and_not_what_only_looked() -> None:
    records = [ran(1, "!ls"), ran(2, "a", shows=True), ran(3, "save(a)", wrote="a.csv")]
    assert runs(planned(*records, everything=True)) == [1, 3]
    assert planned(*records).cells[2].left_out == "It wrote a.csv; name it to run it."


def test_of_other_languages_only_the_written_files_are_known() -> None:
    records = [ran(1, "x", shows=True), ran(2, "!x"), ran(3, "write(x)", wrote="x.csv")]
    assert runs(planned(*records, is_python=False)) == [1, 2]


def test_what_ran_again_does_not_run_a_second_time() -> None:
    assert runs(planned(ran(1, "a = 1"), ran(2, "b = 1"), done=("x_1",), also=("x_1",))) == [2]


def test_code_that_the_record_does_not_have_never_runs() -> None:
    without_secret = ran(1, "key = '[redacted: token]'")
    assert runs(planned(without_secret, also=("x_1",), everything=True)) == []


def test_variables_are_compared_by_name() -> None:
    before = variables_after(
        [ran(1, "", made={"a": "added", "b": "added"}), ran(2, "", made={"b": "removed"})]
    )
    assert before == {"a"}
    assert variables_after([ran(1, "", changes=None)]) is None
    assert compared(None, {"a"}) is None
    found = compared({"a", "b"}, {"b", "c"})
    assert found is not None
    assert (found.back, found.missing) == (["b"], ["a"])
