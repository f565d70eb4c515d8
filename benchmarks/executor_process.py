"""One executor of one framework, in its environment: takes names of rows, answers seconds.

`python executor_process.py SIDE FOLDER`; a line of standard input is a row, a line of standard
output the seconds that it took. It ends when its standard input does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import subjects

TIMEOUT = 60.0
SOURCES = {
    "sum": "1+1",
    "megabyte": "'x' * 1_000_000",
    "plot": "plt.figure()\nplt.plot([1, 3, 2])\nplt.show()",
    "lines": "for n in range(10_000): print('line', n)",
}
FIRST = "import matplotlib.pyplot as plt"


class Executor:
    """Does what rows are named for.

    Parameters
    ----------
    side
        ``theirs`` or ``ours``.
    """

    def __init__(self, side: str, folder: Path) -> None:
        self._make = getattr(subjects, {"theirs": "original", "ours": "ours"}[side])
        self._folder = folder
        begin = perf_counter()
        self._subject = self._make(folder, TIMEOUT)
        self._subject.run("1+1")
        self._first_opening = perf_counter() - begin
        self._subject.run(FIRST)

    def seconds(self, row: str) -> float:
        """Do it, and return how long it took."""
        if row in SOURCES:
            return _seconds(lambda: self._subject.run(SOURCES[row]))
        return {
            "first opening": lambda: self._first_opening,
            "opening": lambda: self._opened_and_closed()[0],
            "closing": lambda: self._opened_and_closed()[1],
        }[row]()

    def close(self) -> None:
        """Close the executor."""
        self._subject.close()

    def _opened_and_closed(self) -> tuple[float, float]:
        """Open another, close it again, and return how long each took."""
        begin = perf_counter()
        subject = self._make(self._folder, TIMEOUT)
        subject.run("1+1")
        opening = perf_counter() - begin
        return opening, _seconds(subject.close)


def _seconds(deed: Callable[[], object]) -> float:
    begin = perf_counter()
    deed()
    return perf_counter() - begin


def main() -> None:
    """Answer until nobody asks."""
    # What executors print must not end up among the answers.
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        executor = Executor(sys.argv[1], Path(sys.argv[2]))
        for line in sys.stdin:
            answers.write(f"{executor.seconds(line.strip())}\n")
            answers.flush()
        executor.close()


if __name__ == "__main__":
    main()
