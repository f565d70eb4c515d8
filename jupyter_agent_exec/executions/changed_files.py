"""Records which files were written in a kernel's folder while executions ran there, by whomever.

Nothing is decided by it, and nobody is told that an execution wrote a file: the folder is also
others'. It is a fact for who reads the record.

No execution waits for this. Shortly after an execution has ended, a thread scans the folder for all
executions that ended since the last scan, and compares the files' modification times. The scan is
bounded, because a folder may hold a whole data set. It skips hidden files and follows no links.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ..kernels.folder import AccessRefused, FolderGone, Identity, Place, kept_folders, opened
from ..kernels.kernel import WorkingFolder
from ..records import (
    SERVER,
    ChangedFile,
    ChangedFiles,
    ExecutionRecord,
    FilesChanged,
    Payload,
    timestamp,
)
from ..tasks import Tasks, settle
from ..types import ExecutionId
from .execution import LiveExecution, LiveExecutions
from .recorder import Recorder

DELAY: Final = 0.1
"""Seconds from an execution's end to the scan; executions that end meanwhile share the scan."""

MOST_ENTRIES: Final = 5_000
"""Maximum number of files and folders to scan."""

MOST_DEPTH: Final = 4
"""Maximum depth of the folders to scan, below the first."""

MOST_FILES: Final = 100
"""Maximum number of files to record for one execution."""

LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})

GRAIN: Final = 20_000_000
"""Nanoseconds that a file's time may lag: the operating system takes it from its last tick."""

COARSE_GRAIN: Final = 2_000_000_000
"""The same for file systems that store whole seconds."""

SECOND: Final = 1_000_000_000
MILLISECOND: Final = 1_000_000


class Span(NamedTuple):
    """The time span of an execution, in nanoseconds since 1970."""

    execution_id: ExecutionId
    begin: int
    end: int


Seen = dict[str, tuple[int, int]]
"""Modification time (nanoseconds) and size of files that were recorded before, by path."""


def span(execution_id: ExecutionId, started_at: str, finished_at: str) -> Span:
    """Return the time span of an execution from the times in its record."""
    end = _nanoseconds(finished_at) + MILLISECOND  # the record truncates to milliseconds
    return Span(execution_id, _nanoseconds(started_at), end)


def changed_files(
    folder: WorkingFolder, spans: Sequence[Span], seen: Seen, *, leave_out: Path
) -> dict[ExecutionId, ChangedFiles]:
    """Return the files that were written while executions ran, by execution.

    Parameters
    ----------
    spans
        The time spans of the executions, in order.
    seen
        Files that were recorded before; this adds the files that it finds.
    leave_out
        A folder to skip.
    """
    by_execution: dict[ExecutionId, list[ChangedFile]] = {}
    for path, stat in _files(folder, kept_folders([leave_out])):
        time = stat.st_mtime_ns
        if seen.get(path) == (time, stat.st_size):
            continue
        ran = _running_at(time, spans)
        if ran is None:
            continue
        seen[path] = (time, stat.st_size)
        at = timestamp(datetime.fromtimestamp(time / SECOND, UTC))
        file = ChangedFile(path=path, bytes=stat.st_size, modified_at=at)
        by_execution.setdefault(ran, []).append(file)
    for files in by_execution.values():
        files.sort(key=lambda file: file.path)
    return {
        id: ChangedFiles(files=files[:MOST_FILES], more=len(files[MOST_FILES:]))
        for id, files in by_execution.items()
    }


def _running_at(time: int, spans: Sequence[Span]) -> ExecutionId | None:
    """Return the execution that ran at a time; otherwise one that began just after it."""
    grain = COARSE_GRAIN if time % SECOND == 0 else GRAIN
    for behind in (0, grain):
        for one in spans:
            if one.begin <= time + behind and time <= one.end:
                return one.execution_id
    return None


def _files(
    folder: WorkingFolder, kept: frozenset[Identity]
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield files with their paths relative to the folder, upper folders first."""
    place = Place(folder.folder, kept)
    folders: list[tuple[str, ...]] = [()]
    left = MOST_ENTRIES
    for inside in folders:
        try:
            with opened(place, inside) as descriptor, os.scandir(descriptor) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return
                    path = "/".join((*inside, entry.name))
                    if entry.name.startswith(".") or entry.name in LEFT_OUT:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if len(inside) < MOST_DEPTH:
                            folders.append((*inside, entry.name))
                    elif entry.is_file(follow_symlinks=False) and path != folder.document:
                        yield _readable(path), entry.stat(follow_symlinks=False)
        except (OSError, AccessRefused, FolderGone):
            continue  # it is gone, became a link, is unreadable, or belongs to the server


def _readable(path: str) -> str:
    """Return a path as valid text; replace bytes that are not UTF-8."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _nanoseconds(time: str) -> int:
    since = datetime.fromisoformat(time[:-1]).replace(tzinfo=UTC)
    return int(since.timestamp() * 1_000_000) * 1_000


class FilesScan:
    """Scans the folder of one session's kernel, without the history's own folder."""

    def __init__(
        self, executions: LiveExecutions, recorder: Recorder, *, tasks: Tasks, disk: Executor
    ) -> None:
        self._leave_out = executions.journal.history_dir
        self._recorder = recorder
        self._tasks = tasks
        self._disk = disk
        self._seen: Seen = {}
        self._ended: list[Span] = []
        self._hurry: asyncio.Future[None] | None = None

    def ended(self, execution: LiveExecution, folder: WorkingFolder) -> None:
        """Schedule a scan for files that were written while an execution ran."""
        record: ExecutionRecord = execution.finished.result()
        if record.started_at is None or record.finished_at is None:
            return
        self._ended.append(span(record.id, record.started_at, record.finished_at))
        if self._hurry is None:
            self._hurry = asyncio.get_running_loop().create_future()
            scan = self._scan_while_any(folder, self._hurry)
            self._tasks.start(scan, f"files of {record.session_id}")

    def close(self) -> None:
        """Run a scheduled scan now."""
        if self._hurry is not None:
            settle(self._hurry)

    async def _scan_while_any(self, folder: WorkingFolder, hurry: asyncio.Future[None]) -> None:
        try:
            while self._ended:
                await asyncio.wait({hurry}, timeout=DELAY)
                ended, self._ended = self._ended, []
                scan = partial(changed_files, folder, ended, self._seen, leave_out=self._leave_out)
                changed = await asyncio.get_running_loop().run_in_executor(self._disk, scan)
                for id, files in changed.items():
                    payload = Payload.of(msgspec.json.encode(files))
                    entry = FilesChanged(
                        at=timestamp(), by=SERVER, execution_id=id, files=payload.digest
                    )
                    await self._recorder.record(entry, [payload])
        finally:
            self._hurry = None
