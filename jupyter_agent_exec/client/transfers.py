"""Files on their way to and from a session's folder."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from http import HTTPStatus
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from ..errors import InvalidRequest
from .connection import Backoff, Connection, Headers, Request
from .errors import ConnectionLost, ServerUnreachable

Progress: TypeAlias = Callable[[int], object]
"""Called with the number of bytes each time that some were written."""


class _FileChanged(ConnectionLost):
    """The file has changed during the download."""


async def pieces_of(connection: Connection, path: str) -> AsyncGenerator[bytes, None]:
    """Yield a file's content. After a lost connection, reconnect and continue."""
    backoff = Backoff(connection.sleep)
    taken, etag = 0, ""
    while True:
        headers = {"Range": f"bytes={taken}-", "If-Range": etag} if taken else {}
        try:
            async with connection.download(Request("GET", path, headers=headers)) as response:
                if taken and response.status_code != HTTPStatus.PARTIAL_CONTENT:
                    raise _FileChanged("The connection broke, and the file has changed since.")
                etag = response.headers.get("ETag", "")
                async for piece in response.aiter_bytes():
                    backoff.reset()
                    taken += len(piece)
                    yield piece
                return
        except _FileChanged:
            raise
        except ServerUnreachable as error:
            await backoff.pause(error)


async def joined(pieces: AsyncGenerator[bytes, None]) -> bytes:
    """Return the whole content."""
    return b"".join([piece async for piece in pieces])


async def save(
    connection: Connection,
    pieces: AsyncGenerator[bytes, None],
    path: str | PathLike[str],
    progress: Progress | None = None,
) -> Path:
    """Write pieces to a file, and return its path."""
    target = Path(path)
    async with aclosing(pieces):
        with await connection.in_thread(lambda: target.open("wb")) as file:
            async for piece in pieces:
                await connection.in_thread(file.write, piece)
                if progress is not None:
                    progress(len(piece))
    return target


def to_upload(source: bytes | str | PathLike[str], name: str | None) -> tuple[str, bytes | Path]:
    """Return the name of an upload, and its bytes or the path of its file."""
    if isinstance(source, bytes):
        if name is None:
            raise InvalidRequest("Bytes need a name.", field="name")
        return name, source
    path = Path(source)
    return unicodedata.normalize("NFC", path.name) if name is None else name, path


def download_target(name: str, to: str | PathLike[str]) -> Path:
    """Return the path of a downloaded file: `to`, or a file in the folder `to`."""
    path = Path(to)
    return path / name.rpartition("/")[2] if path.is_dir() else path


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Yield a temporary file. On success it replaces the target, otherwise it is deleted."""
    part = target.with_name(f".{target.name}.part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def if_match(etag: str | None) -> Headers:
    """Return the header with which a file is only changed if it has this ETag."""
    return {} if etag is None else {"If-Match": etag.encode("latin-1", "replace").decode("latin-1")}
