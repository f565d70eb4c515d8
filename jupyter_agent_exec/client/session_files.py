"""The files in a session's folder: listed, uploaded, downloaded and deleted."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from http import HTTPStatus
from os import PathLike
from pathlib import Path
from typing import TypeAlias, overload
from urllib.parse import quote

from .. import models
from ..errors import InvalidRequest
from .connection import Backoff, Connection, Headers, Request
from .errors import ConnectionLost, ServerUnreachable
from .replies import check, read
from .requests import API

Progress: TypeAlias = Callable[[int], object]
"""Called with the number of bytes each time that some were written."""


class _FileChanged(ConnectionLost):
    """The file has changed during the download."""


async def _pieces_of(connection: Connection, path: str) -> AsyncGenerator[bytes, None]:
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
    """Write pieces to a file, which replaces the one at `path` once it is whole. Return `path`."""
    target = Path(path)
    async with aclosing(pieces):
        with _beside(target) as part, await connection.in_thread(part.open, "wb") as file:
            async for piece in pieces:
                await connection.in_thread(file.write, piece)
                if progress is not None:
                    progress(len(piece))
    return target


class SessionFiles:
    """The methods of `AsyncSession` for its files."""

    _connection: Connection

    @property
    def _path(self) -> str:
        raise NotImplementedError

    async def files(
        self, path: str = "", *, recursive: bool = False
    ) -> AsyncGenerator[models.SessionFile, None]:
        """Yield the files in the session's folder, sorted by path.

        Parameters
        ----------
        path
            Path of a subfolder to list.
        recursive
            Include the content of subfolders.
        """
        query = {"path": path or None, "recursive": recursive or None}
        route = f"{self._path}/files"
        async for page in self._connection.pages(route, models.SessionFileList, **query):
            for each in page.files:
                yield each

    async def upload(
        self,
        source: bytes | str | PathLike[str],
        name: str | None = None,
        *,
        etag: str | None = None,
    ) -> models.SessionFile:
        """Upload a file to the session's folder.

        Parameters
        ----------
        source
            A file's path, or bytes.
        name
            Its path in the session's folder, separated by slashes; the file's own name when None.
        etag
            ETag of the file to replace, as returned by `file_etag`. Not needed for a file that the
            session itself wrote last.

        Raises
        ------
        FileNotOwned
            The path has a file that is not as the session left it.
        PreconditionFailed
            The file at the path has another ETag.
        """
        content = source if isinstance(source, bytes) else Path(source)
        if isinstance(content, Path):
            name = name or unicodedata.normalize("NFC", content.name)
        elif name is None:
            raise InvalidRequest("Bytes need a name.", field="name")
        headers = {"Content-Type": "application/octet-stream", **_if_match(etag)}
        request = Request("PUT", self._file_path(name), content, headers)
        return read(await self._connection.send(request), models.SessionFile)

    @overload
    async def download(self, name: str, to: None = None) -> bytes: ...

    @overload
    async def download(self, name: str, to: str | PathLike[str]) -> Path: ...

    async def download(self, name: str, to: str | PathLike[str] | None = None) -> bytes | Path:
        """Return a file of the session's folder, or write it to `to` and return that path.

        If the connection breaks, the download continues from there, unless the file has changed.

        Parameters
        ----------
        name
            Its path in the session's folder.
        to
            Path of a file, or of a folder in which the file keeps its name.
        """
        pieces = _pieces_of(self._connection, self._file_path(name))
        if to is None:
            return await joined(pieces)
        return await save(self._connection, pieces, _target(name, Path(to)))

    async def file_etag(self, name: str) -> str:
        """Return the current ETag of a file, which is needed to replace it."""
        path = self._file_path(name)
        reply = await self._connection.send_persistently(Request("HEAD", path))
        if not reply.is_success:  # an answer to HEAD has no body with a message
            reply = await self._connection.send_persistently(Request("GET", path))
        check(reply)
        return reply.headers.get("ETag", "")

    async def delete_file(self, name: str, *, etag: str | None = None) -> None:
        """Delete a file of the session's folder, or an empty folder.

        Parameters and errors are those of `upload`.
        """
        request = Request("DELETE", self._file_path(name), headers=_if_match(etag))
        check(await self._connection.send(request))

    def _file_path(self, name: str) -> str:
        if any(part in ("", ".", "..") for part in name.split("/")):  # would change the URL's path
            raise InvalidRequest(
                f"{name!r} is not a path below the session's folder.", field="path"
            )
        return f"{API}{self._path}/files/{quote(name)}"


def _target(name: str, to: Path) -> Path:
    return to / name.rpartition("/")[2] if to.is_dir() else to


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Yield a temporary file. On success it replaces the target, otherwise it is deleted.

    A target that is no regular file, such as a pipe, is yielded itself.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    part = target.with_name(f".{target.name}.part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _if_match(etag: str | None) -> Headers:
    """Return the header with which a file is only changed if it has this ETag."""
    return {} if etag is None else {"If-Match": etag.encode("latin-1", "replace").decode("latin-1")}
