"""Change marked places of the package one by one, and see that the tests that claim them fail.

`tests/mutations.toml` lists the places. Each is changed in a copy of the repository, never in it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import msgspec

ROOT = Path(__file__).parents[1]
PLACES = ROOT / "tests" / "mutations.toml"
FOUND, NOT_FOUND = "found", "NOT FOUND"
LEFT_OUT = (".*", "node_modules", "__pycache__", "lib", "demo-output", "dist", "_build")


class Place(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place of the package, what to change there, and the tests that find the change."""

    what: str
    file: str
    text: str
    instead: str
    tests: list[str]

    def changed(self, source: str) -> str:
        """Return the file's source with the change.

        Raises
        ------
        ValueError
            The text does not occur just once.
        """
        if (count := source.count(self.text)) != 1:
            raise ValueError(f"{self.file} has this text {count} times, not once: {self.text}")
        return source.replace(self.text, self.instead)


def places() -> list[Place]:
    """Return the places of `tests/mutations.toml`."""
    listed = tomllib.loads(PLACES.read_text())
    return msgspec.convert(listed["place"], list[Place])


def outcome(copy: Path, tests: Sequence[str]) -> str:
    """Run tests in a copy of the repository, and return what has become of them."""
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.search(r"^FAILED (\S+)", ran.stdout, re.MULTILINE)
    if failed is not None:
        return f"{FOUND} by {failed[1]}"
    return NOT_FOUND if ran.returncode == 0 else f"NOT RUN\n{ran.stdout[-2000:]}"


def main() -> int:
    """Change the places that the arguments ask for; return 0 if all changes are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="how many places at a time")
    parser.add_argument("--tests", nargs="+", help="run these tests for each place, not its own")
    parser.add_argument("words", nargs="*", help="only places whose description has one of these")
    asked = parser.parse_args()
    wanted = [
        place
        for place in places()
        if not asked.words or any(word in place.what for word in asked.words)
    ]
    copies: SimpleQueue[Path] = SimpleQueue()

    def run(place: Place) -> bool:
        copy, begun = copies.get(), time.monotonic()
        file = copy / place.file
        source = file.read_text()
        try:
            file.write_text(place.changed(source))
            told = outcome(copy, asked.tests or place.tests)
        finally:
            file.write_text(source)
            copies.put(copy)
        print(f"{time.monotonic() - begun:5.1f} s  {place.what}: {told}", flush=True)
        return told.startswith(FOUND)

    with tempfile.TemporaryDirectory() as folder:
        for n in range(asked.jobs):
            copy = Path(folder, str(n))
            shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
            copies.put(copy)
        unchanged = outcome(copy, asked.tests or sorted({n for each in wanted for n in each.tests}))
        if unchanged != NOT_FOUND:
            print(f"Without a change: {unchanged}")
            return 1
        with ThreadPoolExecutor(asked.jobs) as threads:
            found = list(threads.map(run, wanted))
    print(f"{sum(found)} of {len(found)} places are found.")
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
