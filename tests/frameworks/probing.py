"""What probes are made of: an executor that is asked, a verdict, and the record that is left.

A probe works with any `Subject`, so the same one looks at a framework's own executor and at ours.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import nbformat
import psutil
from jupyter_core.paths import jupyter_data_dir

from jupyter_agent_exec.journal.blobs import BlobStore
from jupyter_agent_exec.journal.notebook import journal_notebook
from tests.frameworks.subject import Said, Subject

TIMEOUT = 2.0
"""Seconds that code may run in probes that exceed them."""
ROOMY_TIMEOUT = 60.0
"""Seconds in probes that are not about time."""

RIGHT = "as it should be"

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

Factory = Callable[[Path, float], Subject]
"""Makes an executor that starts in a folder and lets code run for so many seconds."""


class Verdict(NamedTuple):
    """What a probe found."""

    right: bool | None
    """None where there is nothing to judge."""
    seen: str
    """What happened, in a few words."""


class Timed(NamedTuple):
    """An answer, and how long it took to come."""

    text: str
    failed: bool
    files: list[Path]
    seconds: float


class Bench:
    """Makes executors for one probe, asks them, and closes them.

    Parameters
    ----------
    make
        Makes an executor.
    folder
        Where they start; others may use it too.
    grace
        Seconds after a moment within which what belongs to it must have happened.
    """

    def __init__(self, make: Factory, folder: Path, grace: float) -> None:
        self.make = make
        self.folder = folder
        self.grace = grace
        self.marks: list[str] = []
        """A comment in each source that was run, which is in no other."""
        self._open: list[Subject] = []

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.pop().close()

    def subject(self, timeout: float = ROOMY_TIMEOUT) -> Subject:
        """Return a new executor, which is closed in the end."""
        subject = self.make(self.folder, timeout)
        self._open.append(subject)
        return subject

    def close(self, subject: Subject) -> None:
        """Close an executor now."""
        self._open.remove(subject)
        subject.close()

    def file(self, name: str) -> Path:
        """Return a path that no other probe has; there is no file."""
        return self.folder / f"{name}-{uuid4().hex}"

    def marked(self, source: str) -> str:
        """Return a source by which its cell is known, at the same line numbers."""
        mark = f"# probe {uuid4().hex}"
        self.marks.append(mark)
        return f"{source}\n{mark}"

    def run(self, subject: Subject, source: str) -> Timed:
        """Run code."""
        begin = time.monotonic()
        said = subject.run(self.marked(source))
        return Timed(said.text, said.failed, said.files, time.monotonic() - begin)

    def run_at_once(self, subject: Subject, *sources: str) -> list[Said]:
        """Run several at the same time."""
        return subject.run_at_once(*map(self.marked, sources))

    def run_and_cancel(self, subject: Subject, source: str, started: Path) -> None:
        """Run code, and cancel it once `started` is there."""
        subject.run_and_cancel(self.marked(source), started)

    def wait_for(self, happened: Callable[[], bool]) -> bool:
        """Wait a moment until something has happened, and tell whether it has."""
        deadline = time.monotonic() + 5 + self.grace
        while not happened():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def gone(self, pid: int) -> bool:
        """Wait a moment until a process has ended, and tell whether it has."""
        return self.wait_for(lambda: not _runs(pid))


Look = Callable[[Bench], Verdict]


class Probe(NamedTuple):
    """Something that executors may get wrong."""

    name: str
    title: str
    """What is right, as a sentence without its full stop."""
    look: Look


PROBES: dict[str, Probe] = {}
"""By name, in the order in which they are told."""


def probe(title: str) -> Callable[[Look], Look]:
    """Make a function a probe."""

    def added(look: Look) -> Look:
        PROBES[look.__name__] = Probe(look.__name__, title, look)
        return look

    return added


def answered(said: Timed, expected: str) -> Verdict:
    """Judge the answer to a call that should work as if nothing had been before."""
    if said.failed:
        return Verdict(False, f"the next call failed: {brief(said.text)}")
    if expected not in said.text:
        return Verdict(False, f"the next call answered: {brief(said.text)}")
    return Verdict(True, RIGHT)


def brief(text: str) -> str:
    """Return the end of a text, in one line."""
    lines = [line.strip() for line in plain(text).splitlines() if line.strip()]
    return lines[-1][:80] if lines else "nothing"


def plain(text: str) -> str:
    """Return a text without escape sequences."""
    return _ESCAPE.sub("", text)


def history_folder() -> Path:
    """Return where servers keep their history unless they are told otherwise."""
    return Path(jupyter_data_dir()) / "agent_exec"


@contextmanager
def one_valid_cell_each(bench: Bench) -> Iterator[None]:
    """Check, after the block, that each source that was run left one cell, and all are valid."""
    before = set(_journals())
    yield
    notebooks = [_notebook(journal) for journal in _journals() if journal not in before]
    sources = Counter[str]()
    for notebook in notebooks:
        nbformat.validate(notebook)
        sources.update(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code")
    for mark in bench.marks:
        count = sum(n for source, n in sources.items() if mark in source)
        assert count == 1, f"{count} cells of one that was run once"


def _journals() -> list[Path]:
    return sorted(history_folder().glob("sessions/*/journal.jsonl"))


def _notebook(journal: Path) -> dict[str, Any]:
    whole = "".join(journal_notebook(journal, BlobStore(journal.parent / "blobs")))
    notebook: dict[str, Any] = json.loads(whole)
    return notebook


def _runs(pid: int) -> bool:
    try:
        # One that nobody waits for has ended all the same.
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
