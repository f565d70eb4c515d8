"""What is in a session's folder, by path, a page at a time. Blocks on the disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from typing import Annotated, NamedTuple

from msgspec import Meta

from ..kernels.folder import Barred, Identity, identity, look, open_child
from ..kernels.folder_paths import MOST_PARTS, is_reached
from ..models import Request


class FoundFile(NamedTuple):
    """A file or a folder."""

    parts: tuple[str, ...]
    status: os.stat_result


def found_in(
    folder: int,
    above: tuple[str, ...],
    kept: Collection[Identity],
    *,
    recursive: bool,
    after: tuple[str, ...],
) -> Iterator[FoundFile]:
    """Yield what is in a folder, in the order of its names, a folder before what is in it.

    Hidden names, links, what is neither a file nor a folder and the server's own folders are left
    out.

    Parameters
    ----------
    folder
        Open.
    above
        Its own path.
    recursive
        Whether what is in the folders there comes too.
    after
        Path below it of the last one that is known; empty for none.
    """
    begun, rest = (after[0], after[1:]) if after else ("", ())
    for name in sorted(name for name in os.listdir(folder) if name >= begun and is_reached(name)):
        status = _visible(folder, name, kept)
        if status is None:
            continue
        path = (*above, name)
        if name != begun:
            yield FoundFile(path, status)
        if recursive and stat.S_ISDIR(status.st_mode) and len(path) < MOST_PARTS:
            yield from _below(folder, path, kept, after=rest if name == begun else ())


def _below(
    folder: int, path: tuple[str, ...], kept: Collection[Identity], *, after: tuple[str, ...]
) -> Iterator[FoundFile]:
    try:
        child = open_child(folder, path[-1], kept)
    except (Barred, OSError):
        return  # it went away, or nobody may read it
    try:
        yield from found_in(child, path, kept, recursive=True, after=after)
    finally:
        os.close(child)


def _visible(folder: int, name: str, kept: Collection[Identity]) -> os.stat_result | None:
    try:
        status = look(folder, name)
    except (Barred, OSError):
        return None
    return None if status is None or identity(status) in kept else status


class FilesQuery(Request, frozen=True, kw_only=True):
    """Which files of a session's folder to list."""

    path: Annotated[str, Meta(max_length=20_000)] = ""
    """Of a folder in it; empty is the session's folder itself."""
    recursive: bool = False
    """Whether to list what is in the folders there too."""
    after: Annotated[str, Meta(max_length=20_000)] | None = None
    """Those that follow this path; `next_after` of the page before."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 200
