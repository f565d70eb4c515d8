"""One probe on one executor, in a process that can be ended if the executor never is.

`python -m frameworks.looking SIDE PROBE FOLDER GRACE` writes what was found into `FOLDER`, before
the executor is closed, since that may hang too.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import subjects

from tests.frameworks.probes import PROBES
from tests.frameworks.probing import Bench, Verdict, brief, one_valid_cell_each

FOUND = "found.json"


def main(side: str, name: str, folder: Path, grace: float) -> None:
    """Look, and write what was found."""
    make = {"theirs": subjects.original, "ours": subjects.ours}[side]
    bench = Bench(make, folder, grace)
    if side == "ours":
        with one_valid_cell_each(bench), bench:
            verdict = _look(bench, name)
            if not verdict.right:  # what is left of it then is no news
                _write(verdict, folder)
    else:
        with bench:
            verdict = _look(bench, name)
            _write(verdict, folder)
    _write(verdict, folder)


def _look(bench: Bench, name: str) -> Verdict:
    try:
        return PROBES[name].look(bench)
    except Exception as error:  # whatever an executor raises is what was seen of it
        return Verdict(False, f"it raised {type(error).__name__}: {brief(str(error))}")


def _write(verdict: Verdict, folder: Path) -> None:
    (folder / FOUND).write_text(json.dumps(verdict._asdict()))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]))
