"""Records which files were written in a kernel's folder while executions ran there.

Nobody waits for that: a thread scans the folder a moment after an execution has ended, for all that
have ended since the last scan, and goes by the files' times. The scan is bounded, since a folder
may hold a whole data set; it leaves out hidden files, and follows no links.
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

from ..kernels.folder import Barred, FolderGone, Identity, Place, kept_folders, opened
from ..kernels.kernel import WorkingFolder
from ..models import FileChange
from ..records import SERVER, ExecutionRecord, FilesWritten, Payload, timestamp
from ..tasks import Tasks, settle
from ..types import ExecutionId
from .execution import LiveExecution, LiveExecutions
from .recorder import Recorder

DELAY: Final = 0.1
"""Seconds from an execution's end to the scan, which is for others that end then."""

MOST_ENTRIES: Final = 5_000
"""Files and folders that are looked at."""

MOST_DEPTH: Final = 4
"""Folders below the first that are looked into, one in another."""

MOST_FILES: Final = 100
"""Files of one execution that are recorded."""

LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})

GRAIN: Final = 20_000_000
"""Nanoseconds by which a file's time may be behind: the kernel takes it from its last tick."""

COARSE_GRAIN: Final = 2_000_000_000
"""The same where a file system keeps whole seconds."""

SECOND: Final = 1_000_000_000
MILLISECOND: Final = 1_000_000


class Span(NamedTuple):
    """When an execution ran; nanoseconds since 1970."""

    execution_id: ExecutionId
    begin: int
    end: int


class Written(NamedTuple):
    """Files that an execution wrote, or that somebody wrote meanwhile."""

    files: list[FileChange]
    more: int


Seen = dict[str, tuple[int, int]]
"""Time and size of files that were recorded before."""


def span(execution_id: ExecutionId, started_at: str, finished_at: str) -> Span:
    """Return when an execution ran; both times as the record has them."""
    end = _nanoseconds(finished_at) + MILLISECOND  # the record leaves off what is below one
    return Span(execution_id, _nanoseconds(started_at), end)


def written(
    folder: WorkingFolder, spans: Sequence[Span], seen: Seen, *, leave_out: Path
) -> dict[ExecutionId, Written]:
    """Return the files that were written, by the execution that ran then.

    Parameters
    ----------
    spans
        Of executions, in order.
    seen
        What was recorded before; what is found now is added.
    leave_out
        A folder that is left out.
    """
    found: dict[ExecutionId, list[FileChange]] = {}
    for path, stat in _files(folder, kept_folders([leave_out])):
        time = stat.st_mtime_ns
        if seen.get(path) == (time, stat.st_size):
            continue
        by = _written_by(time, spans)
        if by is None:
            continue
        seen[path] = (time, stat.st_size)
        at = timestamp(datetime.fromtimestamp(time / SECOND, UTC))
        change = FileChange(path=path, bytes=stat.st_size, modified_at=at)
        found.setdefault(by, []).append(change)
    return {
        id: Written(sorted(files, key=lambda file: file.path)[:MOST_FILES], len(files[MOST_FILES:]))
        for id, files in found.items()
    }


def _written_by(time: int, spans: Sequence[Span]) -> ExecutionId | None:
    """Return the execution that ran at a time, or else that began just after it."""
    grain = COARSE_GRAIN if time % SECOND == 0 else GRAIN
    for behind in (0, grain):
        for one in spans:
            if one.begin <= time + behind and time <= one.end:
                return one.execution_id
    return None


def _files(
    folder: WorkingFolder, kept: frozenset[Identity]
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield files with their paths relative to the folder, those of the upper folders first."""
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
        except (OSError, Barred, FolderGone):
            continue  # it went away or became a link, nobody may read it, or it is the server's own


def _readable(path: str) -> str:
    """Return a path as text, also if the disk's name is not."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _nanoseconds(time: str) -> int:
    since = datetime.fromisoformat(time[:-1]).replace(tzinfo=UTC)
    return int(since.timestamp() * 1_000_000) * 1_000


class WrittenFiles:
    """Scans the folder of one session's kernel; the history's own folder is left out."""

    def __init__(
        self, executions: LiveExecutions, recorder: Recorder, *, tasks: Tasks, disk: Executor
    ) -> None:
        self._executions = executions
        self._recorder = recorder
        self._tasks = tasks
        self._disk = disk
        self._seen: Seen = {}
        self._folder: WorkingFolder | None = None
        self._ended: dict[ExecutionId, tuple[LiveExecution, Span]] = {}
        self._hurry: asyncio.Future[None] | None = None
        self._looked: asyncio.Future[None] | None = None
        self.last: dict[str, tuple[ExecutionId, FileChange]] = {}
        """The last execution that wrote each file, and as what."""

    def ended(self, execution: LiveExecution, folder: WorkingFolder) -> None:
        """Look, soon, which files were written while an execution ran."""
        record: ExecutionRecord = execution.finished.result()
        if record.started_at is None or record.finished_at is None:
            return
        self._folder = folder
        ran = span(record.id, record.started_at, record.finished_at)
        self._ended[record.id] = (execution, ran)
        if self._hurry is None:
            loop = asyncio.get_running_loop()
            self._hurry, self._looked = loop.create_future(), loop.create_future()
            look = self._look(self._hurry, self._looked)
            self._tasks.start(look, f"files of {record.session_id}")

    def close(self) -> None:
        """Look now, if there is anything to look for."""
        if self._hurry is not None:
            settle(self._hurry)

    async def known(self) -> None:
        """Scan now, and wait until `last` has the files of all executions that have ended."""
        self.close()
        if self._looked is not None:
            await asyncio.wait({self._looked})

    async def _look(self, hurry: asyncio.Future[None], looked: asyncio.Future[None]) -> None:
        try:
            await self._look_while_any(hurry)
        finally:
            self._hurry = None
            settle(looked)

    async def _look_while_any(self, hurry: asyncio.Future[None]) -> None:
        while self._ended:
            await asyncio.wait({hurry}, timeout=DELAY)
            ended, self._ended = self._ended, {}
            assert self._folder is not None
            look = partial(
                written,
                self._folder,
                [ran for _, ran in ended.values()],
                self._seen,
                leave_out=self._executions.journal.history_dir,
            )
            found = await asyncio.get_running_loop().run_in_executor(self._disk, look)
            for id, files in found.items():
                self.last |= {file.path: (id, file) for file in files.files}
                await self._record(id, files)
                self._executions.changed(ended[id][0])

    async def _record(self, id: ExecutionId, found: Written) -> None:
        content = {"files": found.files, "more_files": found.more}
        payload = Payload.of(msgspec.json.encode(content))
        entry = FilesWritten(at=timestamp(), by=SERVER, execution_id=id, files=payload.digest)
        await self._recorder.record(entry, [payload])
