"""A file that is open for reading, as it was when it was opened. Blocks on the disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from ..kernels.folder import etag_of
from ..kernels.folder_paths import mimetype_of
from ..models import SessionFile
from ..records import timestamp
from ..types import Digest, ExecutionId
from .conditions import Span

PIECE_BYTES: Final = 1 << 20
"""Read at once."""


class OpenFile:
    """A file that is open for reading.

    Parameters
    ----------
    descriptor
        Of the file; closed with this.
    status
        Of the file when it was opened.
    """

    def __init__(self, descriptor: int, status: os.stat_result, *, name: str) -> None:
        self._descriptor = descriptor
        self.name = name
        self.bytes = status.st_size
        self.etag = etag_of(status)
        self.mimetype = mimetype_of(name) or "application/octet-stream"

    def pieces(self, span: Span | None = None) -> Iterator[bytes]:
        """Yield the file, or a part of it; less than that if it has become shorter."""
        at, end = span or (0, self.bytes)
        while at < end and (data := os.pread(self._descriptor, min(PIECE_BYTES, end - at), at)):
            at += len(data)
            yield data

    def sha256(self) -> Digest:
        """Return the digest of the whole."""
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return Digest(digest.hexdigest())

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def session_file(
    path: str, status: os.stat_result, *, is_folder: bool, execution_id: ExecutionId | None
) -> SessionFile:
    """Return what is told of a file or a folder."""
    return SessionFile(
        path=path,
        is_folder=is_folder,
        bytes=None if is_folder else status.st_size,
        mimetype=None if is_folder else mimetype_of(path),
        modified_at=modified_at(status),
        execution_id=execution_id,
    )


def modified_at(status: os.stat_result) -> str:
    """Return when a file was written last, as the record tells times."""
    return timestamp(datetime.fromtimestamp(status.st_mtime_ns / 1_000_000_000, UTC))
