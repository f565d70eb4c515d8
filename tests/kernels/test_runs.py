"""Whose outputs are out of date, from what ran in a kernel."""

from __future__ import annotations

import hashlib

import pytest

from jupyter_agent_exec.kernels.runs import MOST_RUNS, Runs
from jupyter_agent_exec.models import Changes, NotebookCell, Staleness, VariableChange
from jupyter_agent_exec.types import CellId, Digest, ExecutionId


def digest(source: str) -> Digest:
    return Digest(hashlib.sha256(source.encode()).hexdigest())


def changed(*names: str, not_compared: int = 0) -> Changes:
    return Changes(
        variables=[VariableChange(name=name, change="changed", type="int") for name in names],
        not_compared=not_compared,
    )


def cell(count: int | None, source: str, id: str = "") -> NotebookCell:
    return NotebookCell(
        id=CellId("a"),
        index=0,
        cell_type="code",
        source=source,
        source_sha256=digest(source),
        execution_count=count,
        text="",
        execution_id=ExecutionId(id) if id else None,
        agent=None,
    )


class Kernel:
    """A kernel in which sources run, one after the other; those of an agent have an id."""

    def __init__(self) -> None:
        self.runs = Runs()
        self.sources: dict[int, str] = {}

    def ran(
        self, source: str, changes: Changes | None = None, *, id: str = "", failed: bool = False
    ) -> int:
        count = len(self.sources) + 1
        msg_id = id or f"person {count}"
        self.sources[count] = source
        self.runs.begin(msg_id, source, count)
        self.runs.end(msg_id, changes, failed=failed, is_over=True)
        return count

    def told(self, count: int, source: str | None = None, id: str = "") -> str:
        """Return what is told of a cell, in short."""
        source = self.sources[count] if source is None else source
        stale = self.runs.stale(cell(count, source, id))
        return "" if stale is None else short(stale)


def short(stale: Staleness) -> str:
    by = "" if stale.execution_count is None else f" by {stale.execution_count}"
    return f"{'' if stale.certain else '?'}{stale.cause} {' '.join(stale.names)}{by}"


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


def test_a_cell_is_out_of_date_once_what_it_read_was_bound_again(kernel: Kernel) -> None:
    plot, other = kernel.ran("df.plot()"), kernel.ran("y")
    assert kernel.told(plot) == ""
    kernel.ran("df = 1", id="x_1")
    assert (kernel.told(plot), kernel.told(other)) == ("changed df by 3", "")
    assert kernel.told(kernel.ran("df.plot()")) == ""


def test_what_a_cell_binds_itself_is_no_input(kernel: Kernel) -> None:
    first = kernel.ran("df = load()\ndf.plot()")
    again = kernel.ran("df = df.dropna()")
    kernel.ran("df = 1")
    assert (kernel.told(first), kernel.told(again)) == ("", "changed df by 3")


def test_what_only_may_be_is_said_so(kernel: Kernel) -> None:
    sure, branch = kernel.ran("df"), kernel.ran("if a:\n    df")
    kernel.ran("if b:\n    df = 1")
    assert (kernel.told(sure), kernel.told(branch)) == ("?changed df by 3",) * 2
    kernel.ran("df = 1")
    assert (kernel.told(sure), kernel.told(branch)) == ("changed df by 4", "?changed df by 4")


def test_code_that_failed_may_have_done_a_part(kernel: Kernel) -> None:
    failed = kernel.ran("df", failed=True)
    plot = kernel.ran("df")
    kernel.ran("df = 1\nfail()", failed=True)
    assert kernel.told(plot) == "?changed df by 3"
    kernel.ran("df = 2")
    assert (kernel.told(plot), kernel.told(failed)) == ("changed df by 4", "?changed df by 4")


def test_what_the_kernel_tells_counts_more_than_the_source(kernel: Kernel) -> None:
    x, lst = kernel.ran("x"), kernel.ran("lst")
    kernel.ran("x = 1; exec(code)", changed("lst"), id="x_1")
    assert (kernel.told(x), kernel.told(lst)) == ("", "changed lst by 3")
    kernel.ran("x = 1", changed(not_compared=1), id="x_2")
    assert kernel.told(x) == "?changed x by 4"


def test_code_that_may_change_any_name_makes_it_unknown(kernel: Kernel) -> None:
    plot, text = kernel.ran("df.plot()"), kernel.ran("'a'")
    kernel.ran("exec(code)")
    assert (kernel.told(plot), kernel.told(text)) == ("?unknown exec by 3", "")
    assert kernel.told(kernel.ran("df.plot()")) == ""


def test_the_same_import_changes_nothing(kernel: Kernel) -> None:
    use = kernel.ran("pd.x")
    kernel.ran("import pandas as pd")
    kernel.ran("import pandas as pd")
    assert kernel.told(use) == ""
    kernel.ran("import polars as pd")
    assert kernel.told(use) == "changed pd by 4"


def test_an_agents_cell_that_was_edited_is_known_and_a_users_may_be_of_another_kernel(
    kernel: Kernel,
) -> None:
    theirs, mine = kernel.ran("x", id="x_1"), kernel.ran("x")
    assert kernel.told(theirs, id="x_1") == ""
    assert kernel.told(theirs, "y", id="x_1") == "edited "
    assert kernel.told(mine, "y") == "?edited "


def test_of_a_cell_whose_run_was_not_seen_nothing_is_said(kernel: Kernel) -> None:
    kernel.ran("x", id="x_1")
    kernel.ran("x = 1")
    assert kernel.runs.stale(cell(7, "x")) is None
    assert kernel.runs.stale(cell(None, "x")) is None
    assert kernel.told(1, "y") == kernel.told(1, "y", id="x_2") == ""
    assert kernel.told(1, id="x_1") == "changed x by 2"
    kernel.runs.miss()
    assert kernel.told(1, id="x_1") == ""


def test_a_kernel_that_counts_anew_is_another(kernel: Kernel) -> None:
    kernel.ran("x")
    kernel.ran("x = 1")
    kernel.runs.begin("person again", "y", 1)
    assert kernel.runs.listed() == []


def test_code_that_does_not_count_has_the_number_of_the_next(kernel: Kernel) -> None:
    plot = kernel.ran("df")
    kernel.runs.begin("silent", "df = 1", 2)
    kernel.runs.end("silent", is_over=True)
    assert kernel.told(plot) == "changed df by 2"
    assert kernel.told(kernel.ran("df")) == ""


def test_what_is_taken_back_counts_no_more(kernel: Kernel) -> None:
    plot = kernel.ran("df")
    kernel.ran("y = 1")
    kernel.ran("df = 1", id="x_1")
    kernel.ran("df = 2", id="x_2")
    assert kernel.told(plot) == "changed df by 4"
    kernel.runs.take_back(["x_1", "x_2"])
    assert kernel.told(plot) == ""
    assert [run.execution_count for run in kernel.runs.listed()] == [1, 2]


def test_only_the_newest_runs_are_kept(kernel: Kernel) -> None:
    for _ in range(MOST_RUNS + 5):
        kernel.ran("x")
    assert len(kernel.runs.listed()) == MOST_RUNS
