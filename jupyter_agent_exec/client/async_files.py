"""The files of a session, for the client that awaits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from os import PathLike
from pathlib import Path
from typing import overload

import anyio

from .. import models
from . import file_calls
from .drivers import AsyncDriver


class AsyncFiles:
    """The part of a session that is about the files in its folder."""

    _driver: AsyncDriver
    info: models.Session
    """The session as it was when this object was made or the kernel restarted."""

    def files(
        self, path: str = "", *, recursive: bool = False
    ) -> AsyncIterator[models.SessionFile]:
        """Give what is in the session's folder, by path.

        Parameters
        ----------
        path
            Of a folder in it.
        recursive
            Give what is in the folders there too.
        """
        return self._driver.feed(file_calls.files(self.info.id, path, recursive))

    async def upload(
        self,
        source: bytes | str | PathLike[str],
        name: str | None = None,
        *,
        etag: str | None = None,
    ) -> models.SessionFile:
        """Put a file into the session's folder.

        Parameters
        ----------
        source
            A file's path, or bytes.
        name
            Its path there, with slashes; the file's own name when None.
        etag
            Of the file that it replaces, as `file_etag` told it. What the session left there
            itself is replaced without.

        Raises
        ------
        FileNotOwned
            A file is there that is not as the session left it.
        PreconditionFailed
            The file that is there is not the one with this ETag.
        """
        name, content = file_calls.what_to_upload(source, name)
        return await self._driver.run(file_calls.upload(self.info.id, name, content, etag))

    @overload
    async def download(self, name: str, to: None = None) -> bytes: ...

    @overload
    async def download(self, name: str, to: str | PathLike[str]) -> Path: ...

    async def download(self, name: str, to: str | PathLike[str] | None = None) -> bytes | Path:
        """Return a file of the session's folder, or write it to `to` and return where it is.

        If the connection breaks, it goes on from there, unless the file has changed.

        Parameters
        ----------
        name
            Its path there.
        to
            A file, or a folder for one of that name.
        """
        chunks = self._driver.feed(file_calls.download(self.info.id, name))
        if to is None:
            return b"".join([chunk async for chunk in chunks])
        target = file_calls.where_to(name, to)
        with file_calls.beside(target) as part:
            async with await anyio.open_file(part, "wb") as file:
                async for chunk in chunks:
                    await file.write(chunk)
        return target

    async def file_etag(self, name: str) -> str:
        """Return the ETag of a file as it is, which says that one knows what one replaces."""
        return await self._driver.run(file_calls.etag_of(self.info.id, name))

    async def delete_file(self, name: str, *, etag: str | None = None) -> None:
        """Delete a file of the session's folder, or an empty folder.

        Parameters and errors are those of `upload`.
        """
        await self._driver.run(file_calls.delete(self.info.id, name, etag))
