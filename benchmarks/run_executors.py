"""Compare the frameworks' own executors with ours: `make bench-executors`.

A whole run writes benchmarks-executors.md and .json; a quick run only prints its result. The
frameworks' environments are those of the tests.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import report
from measures import Goal, Measurement, Result, Rounds, flat, interleaved, ratios
from servers import set_apart

PROJECT = Path(__file__).parent.parent
DOCS = PROJECT / "docs" / "explanation"
NAME = "benchmarks-executors"
LIMIT = 1.3
STOP_SECONDS = 30.0
FRAMEWORKS = {
    "lagent": "lagent",
    "autogen": "AutoGen 0.4+",
    "autogen02": "AutoGen 0.2",
    "pantheon": "Pantheon",
}
SIDES = ("theirs", "ours")
BARE = "a Jupyter kernel by itself"
WITHOUT_KERNEL = ("Pantheon, theirs",)
"""Executors that run code in a Python process of their own, without a Jupyter kernel."""
ROWS = {
    "sum": ("`1+1`", 3),
    "megabyte": ("a result of 1 MB", 1),
    "plot": ("a plot", 1),
    "lines": ("10,000 lines", 1),
    "opening": ("opening another executor, with its first `1+1`", 1),
    "closing": ("closing an executor", 1),
}
"""The title of each row, and how often it is measured in one turn."""
FIRST_ROUNDS = 5
"""How often each executor is opened in a new process, which takes seconds."""


class Executor:
    """An executor in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def times(self, row: str, count: int) -> list[float]:
        """Return the seconds that a row takes, each time."""
        return [self._time(row) for _ in range(count)]

    def _time(self, row: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{row}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("An executor's process ended; the output above says why.")
        return float(line)


def main() -> int:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description="Measure executors.")
    parser.add_argument("--quick", action="store_true", help="few samples, for a first look")
    parser.add_argument("--only", action="append", choices=list(FRAMEWORKS), help="this framework")
    arguments = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="agent-exec-bench-") as made:
        folder = Path(made)
        set_apart(folder)
        # An installed package is compiled; else each of our executors would compile it first.
        compileall.compile_dir(PROJECT / "jupyter_agent_exec", quiet=1)
        facts = report.machine(folder)
        frameworks = arguments.only or list(FRAMEWORKS)
        results = _measured(folder, frameworks, rounds=1 if arguments.quick else 10)
    page = report.page(
        facts,
        results,
        quick=arguments.quick,
        title="How fast the executors of agent frameworks are, compared with ours",
        command="make bench-executors",
        name=NAME,
    )
    print(page)
    if not arguments.quick and not arguments.only:
        seconds = time.monotonic() - begin
        whole = report.as_json(facts, results, quick=False, seconds=seconds)
        (DOCS / f"{NAME}.json").write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
        (DOCS / f"{NAME}.md").write_text(page)
    return 0


def _measured(folder: Path, frameworks: list[str], *, rounds: int) -> list[Result]:
    running = {
        f"{FRAMEWORKS[framework]}, {side}": partial(_running, folder, *_framework(framework), side)
        for framework in frameworks
        for side in SIDES
    }
    bare = [Path(__file__).parent / "bare"]
    running[BARE] = partial(_running, folder, sys.executable, bare, "theirs")
    openings = {name: partial(_first_opening, run) for name, run in running.items()}
    first = interleaved(min(rounds, FIRST_ROUNDS), openings)
    results = [_result("opening the first executor, with its server", first)]
    with ExitStack() as stack:
        executors = {name: stack.enter_context(run()) for name, run in running.items()}
        for row, (title, count) in ROWS.items():
            contenders = {
                each: partial(executor.times, row, count) for each, executor in executors.items()
            }
            interleaved(1, contenders)  # to warm up
            results.append(_result(title, interleaved(rounds, contenders)))
    return results


def _first_opening(running: Callable[[], AbstractContextManager[Executor]]) -> list[float]:
    """Open an executor in a new process, and return how long that took there."""
    with running() as executor:
        return executor.times("first opening", 1)


def _framework(framework: str) -> tuple[Path, list[Path]]:
    """Return the Python of a framework's environment, and the folders of its subjects."""
    tests = PROJECT / "tests"
    python = PROJECT / ".nox" / framework / "bin" / "python"
    return python, [tests.parent, tests / "frameworks" / framework]


def _result(title: str, taken: dict[str, Rounds]) -> Result:
    medians = {each: statistics.median(flat(rounds)) for each, rounds in taken.items()}
    theirs = [each for each in taken if each.endswith("theirs")]
    slowest = max((each for each in taken if each.endswith("ours")), key=medians.__getitem__)

    def goal(what: str, among: list[str]) -> Goal:
        fastest = min(among, key=medians.__getitem__)
        what = f"the slowest of ours ({slowest}) ÷ {what} ({fastest})"
        return Goal.of_median(what, "×", LIMIT, ratios(taken[slowest], taken[fastest]))

    goals = [goal("the fastest of theirs", theirs)]
    if with_kernel := [each for each in theirs if each not in WITHOUT_KERNEL]:
        goals.append(goal("the fastest of theirs with a Jupyter kernel", with_kernel))
    return Result(
        name=title,
        title=title[0].upper() + title[1:],
        how=(
            "Each executor runs in its own process, in its framework's environment, and they take "
            f"turns; {BARE} shows how much of the time the kernel itself takes."
        ),
        goals=goals,
        measurements=[Measurement.of_times(each, flat(rounds)) for each, rounds in taken.items()],
    )


@contextmanager
def _running(
    folder: Path, python: str | Path, subjects: list[Path], side: str
) -> Iterator[Executor]:
    """Run an executor in an environment, and in a new folder below `folder`."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    process = subprocess.Popen(
        [python, Path(__file__).parent / "executor_process.py", side, folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, subjects))},
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield Executor(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
