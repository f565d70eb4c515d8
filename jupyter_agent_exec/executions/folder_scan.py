"""Which files of a folder were written while something ran, from their times. Blocks on the disk.

Bounded: a folder may hold a whole data set. Hidden files are left out, and what tools keep for
themselves; links are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from ..kernels.folder import Barred, FolderGone, Identity, Place, kept_folders, opened
from ..kernels.kernel import WorkingFolder
from ..models import FileChange
from ..records import timestamp
from ..types import ExecutionId

MOST_ENTRIES: Final = 5_000
"""Files and folders that are looked at."""

MOST_DEPTH: Final = 4
"""Folders below the first that are looked into, one in another."""

MOST_FILES: Final = 100
"""Files of one execution that are told."""

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
"""Time and size of files that were told before."""


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
        What was told before; what is told now is added.
    leave_out
        A folder of which nothing is told.
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
