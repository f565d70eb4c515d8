"""Run the benchmarks and print the results: `make bench`.

A whole run also writes docs/explanation/benchmarks.md; a quick run, or a run of some benchmarks
only, does not.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

import execution
import flood
import history
import load
import notebooks
import opening
import report
import trials
from measures import Result
from servers import set_apart

BENCHMARKS = {
    module.NAME: module.run
    for module in (
        execution,
        opening,
        notebooks,
        flood,
        load,
        history,
        trials,
    )
}
PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "benchmarks.md"


def main() -> int:
    """Run the chosen benchmarks. Return 0 even if goals are missed, which the report shows."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _stop)
    names = arguments.only or list(BENCHMARKS)
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
            results.append(BENCHMARKS[name](folder / name, quick=arguments.quick))
    page = report.page(facts, results, quick=arguments.quick)
    print(page)
    if not arguments.quick and not arguments.only:
        PAGE.write_text(page)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how fast it is.")
    parser.add_argument(
        "--only", action="append", choices=list(BENCHMARKS), help="this one; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="few samples, for a first look")
    return parser.parse_args()


def _stop(_: int, __: FrameType | None) -> None:
    """End as with Ctrl-C, so that everything that was started is stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
