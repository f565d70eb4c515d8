"""Run the benchmarks and write the results: `make bench`.

A whole run writes benchmarks.md and .json in docs/explanation. A quick run, or a run of some
benchmarks only, prints its results; it writes them only to the folder of `--out`.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

import changes
import execution
import flood
import history
import lines
import load
import notebooks
import opening
import redaction
import remote
import report
import starting
import timeline
from measures import Result
from servers import set_apart

BENCHMARKS = {
    module.NAME: module.run
    for module in (
        execution,
        changes,
        opening,
        notebooks,
        lines,
        flood,
        redaction,
        remote,
        load,
        history,
        timeline,
        starting,
    )
}
DOCS = Path(__file__).parent.parent / "docs" / "explanation"


def main() -> int:
    """Run the chosen benchmarks. Return 0 even if goals are missed, which the report shows."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _stop)
    names = arguments.only or list(BENCHMARKS)
    out: Path | None = arguments.out
    if out is None and not arguments.quick and not arguments.only:
        out = DOCS
    begin = time.monotonic()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="agent-exec-bench-") as made:
        folder = Path(made)
        set_apart(folder)
        facts = report.machine(folder)
        for name in names:
            print(f"{name} …", file=sys.stderr, flush=True)
            (folder / name).mkdir()
            results.append(BENCHMARKS[name](folder / name, quick=arguments.quick))
    page = report.page(facts, results, quick=arguments.quick)
    print(page)
    if out is not None:
        seconds = time.monotonic() - begin
        whole = report.as_json(facts, results, quick=arguments.quick, seconds=seconds)
        out.mkdir(parents=True, exist_ok=True)
        (out / "benchmarks.json").write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
        (out / "benchmarks.md").write_text(page)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how fast it is.")
    parser.add_argument(
        "--only", action="append", choices=list(BENCHMARKS), help="this one; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="few samples, for a first look")
    parser.add_argument("--out", type=Path, help="folder for the page and the JSON")
    return parser.parse_args()


def _stop(_: int, __: FrameType | None) -> None:
    """End as with Ctrl-C, so that everything that was started is stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
