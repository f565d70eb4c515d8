"""Copies the record to files: in a folder, or in an object store.

Both get a file for each batch, `<journal>/<number of the first entry>-<hash of the last>.jsonl`, in
the format of a journal. A file is never replaced by another,
except by one without payloads that a user has erased. When a batch comes again, it may have
more entries than before, and an entry stands in two files; readers count it once, by its hash.
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from ..journal.chain import format_line, parse_line
from ..storage.durability import make_folder, sync_folder
from ..types import Digest
from .sink import Batch, Sink, SinkSettings

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

        if batch.erases:
            self._erase(batch.journal, batch.erases)

    def _erase(self, journal: str, names: frozenset[Digest]) -> None:
        """Write files anew without payloads that a user has erased."""
        files = list(self._list(journal))
        for name in files:
            if not name.endswith(".jsonl"):
                continue
            data, lines = self._get(name), []
            for line in map(parse_line, data.splitlines(keepends=True)):
                payloads, salts = (
                    {name: text for name, text in texts.items() if name not in names}
                    for texts in (line.payloads, line.salts)
                )
                lines.append(format_line(line.hash, line.canonical, payloads, salts))
            if b"".join(lines) != data:
                self._replace(name, b"".join(lines))
        for name in files:
            folder, _, last = name.rpartition("/")
            if folder.endswith("/blobs") and last in names:
                self._delete(name)

    @abstractmethod
    def _put(self, name: str, data: bytes) -> None:
        """Write a file, durable on return; one that is there has the same content."""

    @abstractmethod
    def _list(self, journal: str) -> Iterable[str]:
        """Return the names of a journal's files."""

    @abstractmethod
    def _get(self, name: str) -> bytes:
        """Read a file."""

    @abstractmethod
    def _replace(self, name: str, data: bytes) -> None:
        """Write a file, whatever its content was, durable on return."""

    @abstractmethod
    def _delete(self, name: str) -> None:
        """Delete a file."""


class FolderSink(FileSink):
    """A folder, such as one of another machine that is mounted here.

    Parameters
    ----------
    path
        The folder. Its parent must exist.
    """

    erasing: ClassVar[str] = "writes its files anew without the payloads"

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
        if not path.exists():
            self._write(path, data)

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".{path.name}-{os.getpid()}")
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)

    def _list(self, journal: str) -> list[str]:
        paths = (self._path / journal).rglob("*")
        return [path.relative_to(self._path).as_posix() for path in paths if path.is_file()]

    def _get(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def _replace(self, name: str, data: bytes) -> None:
        self._write(self._path / name, data)

    def _delete(self, name: str) -> None:
        (self._path / name).unlink()


class ObjectStoreSink(FileSink):
    """A bucket of an object store.

    Parameters
    ----------
    store
        The bucket, with a prefix.
    """

    delay: ClassVar[float] = 2.0
    erasing: ClassVar[str] = (
        "writes its objects anew without the payloads; a bucket with versions or a lock keeps the "
        "old ones"
    )

    def __init__(self, settings: SinkSettings, store: ObjectStore) -> None:
        super().__init__(settings)
        self._store = store

    def close(self) -> None:
        """Do nothing: each object is a request of its own."""

    def _put(self, name: str, data: bytes) -> None:
        from obstore.exceptions import AlreadyExistsError

        with suppress(AlreadyExistsError):
            self._store.put(name, data, mode="create")

    def _list(self, journal: str) -> list[str]:
        return [str(each["path"]) for page in self._store.list(journal) for each in page]

    def _get(self, name: str) -> bytes:
        return bytes(self._store.get(name).bytes())

    def _replace(self, name: str, data: bytes) -> None:
        self._store.put(name, data)

    def _delete(self, name: str) -> None:
        self._store.delete(name)
