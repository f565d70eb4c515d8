"""Follows the journals and ledgers of a history, and copies what is added to sinks.

Each sink has a thread, and a durable cursor for each journal in `sinks/<sink>/<journal>`. A cursor
moves on when the sink has a batch. So the sink gets each entry at least once, and those of one
journal in order, also when the server is killed at any moment.

A server follows what it writes itself, and the journals and ledgers of servers that are dead.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ..errors import SinkBehind
from ..journal.copies import Copies
from ..journal.ledger import is_held, ledger_paths, sessions_in
from ..models import SinkStatus
from ..records import timestamp
from ..storage.durability import make_folder
from .sink import Batch, Sink
from .tail import JournalGone, Tail, seconds

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_LONGEST_STRICT_PAUSE: Final = 2.0
"""Code waits for a strict sink, so it is noticed in seconds when that is back."""
STOP_TIMEOUT: Final = 5.0
"""Seconds that a stopping server waits for its sinks."""


class _Pending(NamedTuple):
    """What a sink lacks of a journal."""

    end: int
    """The end of the journal's acknowledged lines."""
    since: float
    entries: int


class Follower:
    """Copies the journals to one sink, in a thread.

    Parameters
    ----------
    folder
        The history's folder.
    scan
        Returns the journals to follow, and the end of the acknowledged lines of each.
    changed
        Called when the sink cannot be reached any more, or again.
    """

    def __init__(
        self,
        folder: Path,
        sink: Sink,
        scan: Callable[[], dict[Path, int]],
        changed: Callable[[], None],
        log: logging.Logger,
    ) -> None:
        self.sink = sink
        self._cursors = folder / "sinks" / sink.name
        self._scan = scan
        self._changed = changed
        self._log = log
        delay = sink.settings.delay
        self._delay = sink.delay if delay is None else delay
        self._is_strict = sink.settings.max_lag is not None
        self._lock = threading.Lock()
        self._pending: dict[Path, _Pending] = {}
        self._must_scan = True
        self._scanned = False
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._stop_by = float("inf")
        self._error: str | None = None
        self._failing_since: str | None = None
        name = f"agent-exec-sink-{sink.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to copy, first what is in the history already."""
        self.rescan()
        self._thread.start()

    def grown(self, path: Path, end: int, entries: int) -> None:
        """Note that a journal has grown; cheap, and never waits for the sink."""
        with self._lock:
            pending = self._pending.get(path)
            since = time.time() if pending is None else pending.since
            self._pending[path] = _Pending(
                end, since, entries + (pending.entries if pending else 0)
            )
        if not self._wake.is_set():
            self._wake.set()

    def has(self, path: Path) -> bool:
        """Return whether the sink has all of a journal."""
        with self._lock:
            return self._scanned and path not in self._pending

    def forget(self, path: Path) -> None:
        """Remove the cursor of a journal that was removed."""
        (self._cursors / path.parent.name).unlink(missing_ok=True)

    def rescan(self) -> None:
        """Look at all journals again."""
        self._must_scan = True
        self._wake.set()

    def begin_to_stop(self, stop_by: float) -> None:
        """Copy what is left until a time of the monotonic clock, if the sink takes it at once."""
        self._stop_by = stop_by
        self._stop.set()
        self._wake.set()

    def stop(self) -> None:
        """Wait for the end of the thread, until that time."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, self._stop_by - time.monotonic()))

    @property
    def lag(self) -> float:
        """Seconds since the oldest entry that the sink lacks; 0 if it lacks none.

        Until the thread has looked at the journals, the lag is infinite.
        """
        if not self._scanned:
            return float("inf")
        with self._lock:
            oldest = min((each.since for each in self._pending.values()), default=None)
        return 0.0 if oldest is None else max(0.0, time.time() - oldest)

    def status(self) -> SinkStatus:
        """Return how far the sink has come."""
        with self._lock:
            entries = sum(each.entries for each in self._pending.values())
        lag, max_lag = self.lag, self.sink.settings.max_lag
        return SinkStatus(
            name=self.sink.name,
            lag=None if lag == float("inf") else round(lag, 3),
            max_lag=max_lag,
            is_stopping_code=max_lag is not None and lag > max_lag,
            entries_behind=entries,
            error=self._error,
            failing_since=self._failing_since,
        )

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        failures = 0
        while True:
            if not self._stop.is_set():
                self._wake.wait()
            is_last = self._stop.wait(self._delay)
            self._wake.clear()
            try:
                self._round()
            except BaseException as error:  # a library's panic too: the thread goes on
                self._failed(error)
                self._wake.set()
                failures += 1
                if not is_last:
                    pause = pause_after(failures, is_strict=self._is_strict)
                    self._stop.wait(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
            else:
                failures = 0
                self._succeeded()
            if is_last:
                break
        with suppress(Exception):
            self.sink.close()

    def _failed(self, error: BaseException) -> None:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        is_new = self._error is None
        self._error = text[:300]
        if is_new:
            self._failing_since = timestamp()
            self._log.warning("The sink %s cannot be reached: %s", self.sink.name, text[:300])
            self._changed()
        with suppress(Exception):
            self.sink.close()

    def _succeeded(self) -> None:
        if self._error is not None:
            self._log.info("The sink %s can be reached again", self.sink.name)
            self._error = self._failing_since = None
            self._changed()

    def _round(self) -> None:
        """Copy all that is known to have grown."""
        if self._must_scan:
            self._must_scan = False
            try:
                self._add_scanned(self._scan())
            except BaseException:
                self._must_scan = True
                raise
            self._scanned = True
        while time.monotonic() < self._stop_by:
            with self._lock:
                path, pending = next(iter(self._pending.items()), (None, None))
            if path is None or pending is None:
                return
            try:
                self._copy(path, pending.end)
            except JournalGone:
                self._log.warning("%s is gone; the sink %s lacks its end", path, self.sink.name)
                with self._lock:
                    self._pending.pop(path, None)

    def _add_scanned(self, journals: dict[Path, int]) -> None:
        make_folder(self._cursors.parent)
        make_folder(self._cursors)
        for path, end in journals.items():
            try:
                tail = self._tail(path)
                cursor, rewound = tail.cursor()
                if cursor.end >= end and not rewound:
                    continue
                since, entries = tail.lacking(cursor, end)
            except JournalGone:
                continue
            with self._lock:
                self._pending.setdefault(path, _Pending(end, since, entries))

    def _copy(self, path: Path, end: int) -> None:
        """Send a journal's lines up to byte `end`."""
        tail = self._tail(path)
        cursor, rewound = tail.cursor()
        while (cursor.end < end or rewound) and time.monotonic() < self._stop_by:
            entries, reached = tail.read(cursor, end)
            if entries or rewound:
                self.sink.deliver(Batch(tail.name, entries, rewound))
            rewound = False
            if reached == cursor:  # an incomplete line
                break
            cursor = reached
            tail.keep(cursor)
            with self._lock:
                pending = self._pending[path]
                since = seconds(entries[-1].at, pending.since) if entries else pending.since
                left = max(0, pending.entries - len(entries))
                self._pending[path] = _Pending(pending.end, since, left)
        if cursor.end >= end or time.monotonic() < self._stop_by:
            with self._lock:
                pending = self._pending.pop(path)
                if pending.end > end:  # it has grown meanwhile: the others first
                    self._pending[path] = pending

    def _tail(self, path: Path) -> Tail:
        return Tail(path, self._cursors, self.sink.settings)


def pause_after(failures: int, *, is_strict: bool) -> float:
    """Return how many seconds to leave a sink alone at most that has failed so often in a row."""
    longest = _LONGEST_STRICT_PAUSE if is_strict else _LONGEST_PAUSE
    return min(longest, _FIRST_PAUSE * 2.0 ** min(failures - 1, 10))


class Followers(Copies):
    """The followers of a history, one for each sink. Thread-safe.

    Parameters
    ----------
    folder
        The history's folder.
    own
        Returns the journals that this server writes, its ledger included, and the end of the
        acknowledged lines of each.
    changed
        Called in a sink's thread when the sink cannot be reached any more, or again.
    """

    def __init__(
        self,
        folder: Path,
        sinks: Sequence[Sink],
        own: Callable[[], dict[Path, int]],
        changed: Callable[[], None],
        log: logging.Logger,
    ) -> None:
        self._folder = folder
        self._own = own
        self._held: list[Path] = []
        self._followers = [Follower(folder, sink, self._scan, changed, log) for sink in sinks]
        self._strict = [each for each in self._followers if each.sink.settings.max_lag is not None]

    def start(self) -> None:
        """Begin to copy what the sinks lack."""
        for follower in self._followers:
            follower.start()

    def stop(self) -> None:
        """Copy what is left, if the sinks take it at once, and end the threads; bounded."""
        stop_by = time.monotonic() + STOP_TIMEOUT
        for follower in self._followers:
            follower.begin_to_stop(stop_by)
        for follower in self._followers:
            follower.stop()

    def grown(self, path: Path, end: int, entries: int) -> None:
        """Note that a journal of this server has grown; cheap."""
        for follower in self._followers:
            follower.grown(path, end, entries)

    def look_for_dead_servers(self) -> None:
        """Follow what other servers left that have died since the last call."""
        if self._followers:
            held = self._held_by_others()
            if held != self._held:
                self._held = held
                self.rescan()

    def rescan(self) -> None:
        """Look at all journals again."""
        for follower in self._followers:
            follower.rescan()

    def have(self, path: Path) -> bool:
        """Return whether all sinks have all of a journal."""
        return all(follower.has(path) for follower in self._followers)

    def forget(self, path: Path) -> None:
        """Remove what is kept about a journal that was removed."""
        for follower in self._followers:
            follower.forget(path)

    def erasing(self) -> list[str]:
        """Return what the sinks do with what a user erases, in sentences."""
        sinks = (follower.sink for follower in self._followers)
        return [f"The sink {sink.name} {sink.erasing}." for sink in sinks]

    def lags(self) -> dict[str, float]:
        """Return how many seconds each sink is behind, by its name."""
        return {follower.sink.name: follower.lag for follower in self._followers}

    def status(self) -> list[SinkStatus]:
        """Return how far each sink has come."""
        return [follower.status() for follower in self._followers]

    def check(self) -> None:
        """Check that code may run.

        Raises
        ------
        SinkBehind
            A strict sink is further behind than it may be.
        """
        for follower in self._strict:
            settings, lag = follower.sink.settings, follower.lag
            if settings.max_lag is not None and lag > settings.max_lag:
                behind = "not ready yet" if lag == float("inf") else f"{lag:.0f} s behind"
                raise SinkBehind(
                    f"The record is copied to {settings.name!r}, which is {behind}; at most "
                    f"{settings.max_lag:g} s are allowed. Nothing was run. Try again later.",
                    sink=settings.name,
                    max_lag=settings.max_lag,
                )

    def _held_by_others(self) -> list[Path]:
        own = self._own()
        return [path for path in ledger_paths(self._folder) if path not in own and is_held(path)]

    def _scan(self) -> dict[Path, int]:
        """Return all journals but those of other servers that live."""
        others = self._held_by_others()
        theirs = {session_id for path in others for session_id in sessions_in(path)}
        journals = [path for path in ledger_paths(self._folder) if path not in others]
        for path in (self._folder / "sessions").glob("s_*/journal.jsonl"):
            if path.parent.name not in theirs:
                journals.append(path)
        sizes: dict[Path, int] = {}
        for path in journals:
            with suppress(FileNotFoundError):
                sizes[path] = path.stat().st_size
        return sizes | self._own()
