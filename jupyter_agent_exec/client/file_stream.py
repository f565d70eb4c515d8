"""A file as the body of a request, read as it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import anyio
import httpx2

PIECE_BYTES: Final = 1 << 18


class FileStream(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """As much of a file as there is when the request is made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.bytes = path.stat().st_size

    def __iter__(self) -> Iterator[bytes]:
        left = self.bytes
        with self._path.open("rb") as file:
            while left and (piece := file.read(min(left, PIECE_BYTES))):
                left -= len(piece)
                yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self.bytes
        async with await anyio.open_file(self._path, "rb") as file:
            while left and (piece := await file.read(min(left, PIECE_BYTES))):
                left -= len(piece)
                yield piece
