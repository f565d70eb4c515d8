"""What ran in a user's kernel while agents used it, and whose outputs are out of date since.

It is in memory only: of each run its number, a hash of its source and names of variables. Code that
ran before an agent's session was attached to the kernel, or silently, is not seen.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Final

from ..models import Changes, KernelRun, NotebookCell, Staleness
from ..types import Digest, ExecutionId
from .names import Names, names_of

MOST_RUNS: Final = 300
"""How many runs are kept, the newest."""
MOST_NAMES: Final = 5_000
MOST_TOLD: Final = 3


@dataclass(kw_only=True, slots=True, eq=False)
class Run:
    """One run of a source."""

    msg_id: str
    """The id of its `execute_request`; an agent's execution has the same."""
    count: int
    digest: Digest
    names: Names
    is_over: bool = False
    failed: bool = False

    @property
    def execution_id(self) -> ExecutionId | None:
        """The agent's execution; None if it is a user's."""
        return ExecutionId(self.msg_id) if self.msg_id.startswith("x_") else None


class Runs:
    """The runs in one life of a kernel; from any thread. The cost of one does not grow with them.

    For each name, it keeps the number of the last run that changed it, and of the last that may
    have.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[int, Run] = {}
        self._forget()

    def _forget(self) -> None:
        self._changed: dict[str, int] = {}
        self._may_have_changed: dict[str, int] = {}
        self._imported: dict[str, str | None] = {}
        """What each import of a name was of; None if something else bound it since."""
        self._opaque: Run | None = None

    def begin(self, msg_id: str, source: str, count: int) -> None:
        """Note that a kernel begins with a source."""
        digest = Digest(sha256(source.encode("utf-8", "surrogatepass")).hexdigest())
        run = Run(msg_id=msg_id, count=count, digest=digest, names=names_of(source))
        with self._lock:
            if self._runs and count < next(reversed(self._runs)):
                self._clear()  # the count began again: nothing from before is there
            self._runs.pop(count, None)  # what is not kept in its history does not count
            self._runs[count] = run
            if len(self._runs) > MOST_RUNS:
                del self._runs[next(iter(self._runs))]

    def end(
        self, msg_id: str, changes: Changes | None = None, *, failed: bool = False, is_over: bool
    ) -> None:
        """Note that a run has failed or ended, and what it changed, if that is known."""
        with self._lock:
            last = islice(reversed(self._runs.values()), 10)  # a user's may follow at once
            run = next((each for each in last if each.msg_id == msg_id), None)
            if run is None or run.is_over:
                return
            run.failed, run.is_over = run.failed or failed, is_over
            if is_over and run.failed:
                run.names.may_read |= run.names.reads
                run.names.may_change |= run.names.binds.keys()
                run.names.reads, run.names.binds = set(), {}
            elif is_over and changes is not None:
                _know(run.names, changes)
            if is_over:
                self._apply(run)

    def _apply(self, run: Run) -> None:
        for name, imported in run.names.binds.items():
            if imported is None or self._imported.get(name, imported) != imported:
                _put(self._changed, name, run.count)
            self._imported[name] = imported
        for name in run.names.may_change:
            _put(self._may_have_changed, name, run.count)
        if run.names.unknown is not None:
            self._opaque = run

    def miss(self) -> None:
        """Note that messages of the kernel were lost, so that nothing is known any more."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        self._runs.clear()
        self._forget()

    def take_back(self, msg_ids: Collection[str]) -> None:
        """Note that the kernel is as it was before some runs, and those that followed them."""
        with self._lock:
            taken = (count for count, run in self._runs.items() if run.msg_id in msg_ids)
            first = min(taken, default=None)
            self._forget()
            for count, run in list(self._runs.items()):
                if first is not None and count >= first:
                    del self._runs[count]
                elif run.is_over:
                    self._apply(run)

    def listed(self) -> list[KernelRun]:
        """Return all runs that have ended, with what makes the outputs of each out of date."""
        with self._lock:
            return [
                KernelRun(
                    execution_count=run.count,
                    source_sha256=run.digest,
                    execution_id=run.execution_id,
                    stale=self._stale(run),
                )
                for run in self._runs.values()
                if run.is_over
            ]

    def stale(self, cell: NotebookCell) -> Staleness | None:
        """Return why the outputs of a cell are out of date; None if nothing is known."""
        with self._lock:
            run = self._runs.get(cell.execution_count or 0)
            if run is None or not run.is_over:
                return None
            if run.digest == cell.source_sha256:
                return self._stale(run)
            if run.execution_id != cell.execution_id:
                return None
            # A user's cell may have its count from an earlier kernel.
            is_known = run.execution_id is not None
            return Staleness(certain=is_known, cause="edited", names=[], execution_count=None)

    def _stale(self, run: Run) -> Staleness | None:
        every = run.names.reads | run.names.may_read
        for certain, names, by in (
            (True, run.names.reads, self._changed),
            (False, every, self._changed),
            (False, every, self._may_have_changed),
        ):
            told = sorted(name for name in names if by.get(name, 0) > run.count)[:MOST_TOLD]
            if told:
                last = max(by[name] for name in told)
                return Staleness(certain=certain, cause="changed", names=told, execution_count=last)
        opaque = self._opaque
        if not every or opaque is None or opaque.count <= run.count:
            return None
        return Staleness(
            certain=False,
            cause="unknown",
            names=[opaque.names.unknown or ""],
            execution_count=opaque.count,
        )


def _know(names: Names, changes: Changes) -> None:
    """Put what the kernel told that a run changed in the place of what its source tells."""
    changed = {each.name for each in changes.variables}
    kept = {name: names.binds.get(name) for name in names.binds if name.startswith("_")}
    not_told = (names.may_change | names.binds.keys()) - changed - kept.keys()
    names.may_change = not_told if changes.not_compared or changes.more_variables else set()
    names.unknown = "many changes" if changes.more_variables else None
    names.binds = kept | {name: names.binds.get(name) for name in changed}


def _put(by: dict[str, int], name: str, count: int) -> None:
    by[name] = max(count, by.pop(name, 0))
    if len(by) > MOST_NAMES:
        del by[next(iter(by))]
