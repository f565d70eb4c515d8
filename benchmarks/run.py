"""Run the benchmarks and print the results: `make bench`, `make scale`.

A whole run of `make bench` also writes docs/explanation/benchmarks.md; a quick run, or a run of
some benchmarks only, does not. `make scale` writes each result at its place in
docs/explanation/scale.md, unless a size is given.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

import central
import execution
import flood
import history
import hub
import kills
import load
import notebooks
import opening
import report
import trials
import week
from measures import Broken, Result
from servers import set_apart

BENCHMARKS = {
    module.NAME: module.run
    for module in (
        execution,
        opening,
        notebooks,
        flood,
        load,
        trials,
    )
}
SCALE = {module.NAME: module.run for module in (central, history, hub, kills, week)}
DOCS = Path(__file__).parent.parent / "docs" / "explanation"


def main() -> int:
    """Run the chosen benchmarks. Return 0 even if goals are missed, which the report shows."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _stop)
    names = arguments.only or list(SCALE if arguments.scale else BENCHMARKS)
    results: list[Result] = []
    with tempfile.TemporaryDirectory(
        prefix="agent-exec-bench-", ignore_cleanup_errors=True
    ) as made:
        folder = Path(made)
        set_apart(folder)
        facts = report.machine(folder)
        for name in names:
            print(f"{name} …", file=sys.stderr, flush=True)
            (folder / name).mkdir()
            if not arguments.scale:
                results.append(BENCHMARKS[name](folder / name, quick=arguments.quick))
                continue
            try:
                result = SCALE[name](folder / name, size=arguments.size)
            except Broken as broken:
                print(f"{name}: {broken}", file=sys.stderr)
                return 1
            print(report.section(facts, result))
            if arguments.size == 1:
                report.put(DOCS / "scale.md", facts, result)
    if not arguments.scale:
        page = report.page(facts, results, quick=arguments.quick)
        print(page)
        if not arguments.quick and not arguments.only:
            (DOCS / "benchmarks.md").write_text(page)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how fast it is.")
    parser.add_argument(
        "--only",
        action="append",
        choices=[*BENCHMARKS, *SCALE],
        help="this one; may be repeated",
    )
    parser.add_argument("--quick", action="store_true", help="few samples, for a first look")
    parser.add_argument("--scale", action="store_true", help="those of `make scale`")
    parser.add_argument(
        "--size", type=float, default=1.0, help="share of the full size of those; 0.01 is quick"
    )
    arguments = parser.parse_args()
    for name in arguments.only or ():
        if (name in SCALE) is not arguments.scale:
            parser.error(
                f"argument --only: {name} {'needs' if name in SCALE else 'is not of'} --scale"
            )
    return arguments


def _stop(_: int, __: FrameType | None) -> None:
    """End as with Ctrl-C, so that everything that was started is stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
