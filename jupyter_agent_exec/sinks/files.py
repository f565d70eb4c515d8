"""Copies the record to files: in a folder, or in an object store.

Both get a file for each batch, `<journal>/<number of the first entry>-<hash of the last>.jsonl`, in
the format of a journal. A file is never replaced by another. When a batch comes again, it may have
more entries than before, and an entry stands in two files; readers count it once, by its hash.
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from ..durability import make_folder, sync_folder
from ..journal.chain import format_line
from ..journal.sink import Batch, Sink, SinkSettings

if TYPE_CHECKING:
    from obstore.store import ObjectStore

REWIND: Final = "rewind"


class FileSink(Sink):
    """A place for files."""

    def deliver(self, batch: Batch) -> None:
        """Write a batch as a file, after the payloads that do not fit on lines."""
        lines: list[bytes] = []
        for entry in batch.entries:
            texts: dict[str, str] = {}
            for digest, data in entry.payloads.items():
                try:
                    texts[digest] = data.decode("utf-8")
                except UnicodeDecodeError:
                    self._put(f"{batch.journal}/blobs/{digest}", data)
            lines.append(format_line(entry.hash, entry.canonical, texts, entry.salts))
        last = batch.entries[-1] if batch.entries else None
        if last is not None:
            name = f"{batch.journal}/{batch.entries[0].n:012d}-{last.hash}.jsonl"
            self._put(name, b"".join(lines))
        if batch.rewound:
            end = {"length": last.n + 1, "head": last.hash} if last else {"length": 0, "head": ""}
            note = json.dumps({"server": self.settings.server, **end})
            self._put(f"{batch.journal}/{REWIND}-{end['head']}.json", note.encode())
        self._put(f"{batch.journal}/server", self.settings.server.encode())

    @abstractmethod
    def _put(self, name: str, data: bytes) -> None:
        """Write a file, durable on return; one that is there has the same content."""


class FolderSink(FileSink):
    """A folder, such as one of another machine that is mounted here.

    Parameters
    ----------
    path
        The folder. Its parent must exist.
    """

    def __init__(self, settings: SinkSettings, path: Path) -> None:
        super().__init__(settings)
        self._path = path
        self._is_made = False

    def close(self) -> None:
        """Look for the folder again at the next batch."""
        self._is_made = False

    def _put(self, name: str, data: bytes) -> None:
        if not self._is_made:
            make_folder(self._path)
            self._is_made = True
        path = self._path
        *folders, last = name.split("/")
        for folder in folders:
            path /= folder
            make_folder(path)
        path /= last
        if path.exists():
            return
        temporary = path.with_name(f".{last}-{os.getpid()}")
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)


class ObjectStoreSink(FileSink):
    """A bucket of an object store.

    Parameters
    ----------
    store
        The bucket, with a prefix.
    """

    delay: ClassVar[float] = 2.0

    def __init__(self, settings: SinkSettings, store: ObjectStore) -> None:
        super().__init__(settings)
        self._store = store

    def close(self) -> None:
        """Do nothing: each object is a request of its own."""

    def _put(self, name: str, data: bytes) -> None:
        from obstore.exceptions import AlreadyExistsError

        with suppress(AlreadyExistsError):
            self._store.put(name, data, mode="create")
