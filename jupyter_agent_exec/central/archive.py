"""What has arrived at a far side: the journals of all servers, from a database or from files.

This shares only the definition of a line with the code that writes, so that it can be used to check
that code.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ..journal.chain import parse_line

if TYPE_CHECKING:
    from obstore.store import ObjectStore


class Line(NamedTuple):
    """An entry that has arrived."""

    n: int
    """Its number, as it was stored."""
    hash: str
    canonical: bytes


class Rewind(NamedTuple):
    """A server said that a journal no longer held what it had sent of it."""

    server: str
    length: int
    """How many entries it had then."""
    head: str


@dataclass(kw_only=True, slots=True)
class ArchivedJournal:
    """A journal or ledger, as it has arrived."""

    name: str
    server: str
    lines: list[Line] = field(default_factory=list)
    """Each line once; by number, else in no order."""
    rewinds: list[Rewind] = field(default_factory=list)
    payloads: dict[str, bytes] = field(default_factory=dict)
    salts: dict[str, str] = field(default_factory=dict)
    """Of payloads."""
    damaged: list[str] = field(default_factory=list)
    """What cannot be read, in sentences."""


class Archive(ABC):
    """What has arrived at a far side. A context manager, which closes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, if there is one."""
        return

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the journals and ledgers."""

    @abstractmethod
    def journal(self, name: str) -> ArchivedJournal:
        """Return a journal or ledger."""


def open_archive(place: str) -> Archive:
    """Return the archive at a URL or in a folder.

    Raises
    ------
    ImportError
        A package that it needs is not installed.
    ValueError
        There is none.
    """
    if place.startswith(("postgresql:", "postgres:")):
        return DatabaseArchive(place)
    if "://" in place:
        return ObjectArchive(place)
    if not Path(place).is_dir():
        raise ValueError(f"There is no folder {place}.")
    return FolderArchive(Path(place))


class DatabaseArchive(Archive):
    """A PostgreSQL database. It is read in one transaction, so it does not change meanwhile."""

    def __init__(self, address: str) -> None:
        import psycopg

        try:
            self._connection = psycopg.connect(address, connect_timeout=10)
            self._connection.read_only = True
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._rows("SELECT 1 FROM agent_exec_entries LIMIT 1")
        except psycopg.Error as error:
            raise ValueError(f"The database cannot be read: {error}".strip()) from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def names(self) -> list[str]:
        """Return the names of the journals and ledgers."""
        query = (
            "SELECT journal FROM agent_exec_entries UNION SELECT journal FROM agent_exec_rewinds"
        )
        return sorted(name for (name,) in self._rows(query))

    def journal(self, name: str) -> ArchivedJournal:
        """Return a journal or ledger."""
        arrived = ArchivedJournal(name=name, server="")
        query = (
            "SELECT n, hash, entry, server FROM agent_exec_entries WHERE journal = %s ORDER BY n"
        )
        for n, line_hash, entry, server in self._rows(query, name):
            arrived.lines.append(Line(n, line_hash, entry.encode("utf-8")))
            arrived.server = server
        rewinds = "SELECT server, length, head FROM agent_exec_rewinds WHERE journal = %s"
        arrived.rewinds = [Rewind(*row) for row in self._rows(rewinds, name)]
        payloads = "SELECT digest, data, salt FROM agent_exec_payloads WHERE journal = %s"
        for digest, data, salt in self._rows(payloads, name):
            arrived.payloads[digest] = bytes(data)
            if salt is not None:
                arrived.salts[digest] = salt
        return arrived

    def _rows(self, query: Any, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()


class FileArchive(Archive):
    """Files, each with a batch of a journal."""

    @abstractmethod
    def _files(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Yield the names and contents of a journal's files; blobs as ``blobs/<digest>``."""

    def journal(self, name: str) -> ArchivedJournal:
        """Return a journal or ledger."""
        arrived = ArchivedJournal(name=name, server="")
        lines: dict[Line, None] = {}
        for file, data in self._files(name):
            if file == "server":
                arrived.server = data.decode("utf-8", "replace")
            elif file.startswith("blobs/"):
                arrived.payloads[file.removeprefix("blobs/")] = data
            elif file.startswith("rewind-"):
                _add_rewind(arrived, file, data)
            elif file.endswith(".jsonl"):
                for number, each in enumerate(data.splitlines(keepends=True), 1):
                    try:
                        line = parse_line(each)
                        n = line.entry["n"]
                    except (ValueError, KeyError) as error:
                        arrived.damaged.append(f"Line {number} of {file} cannot be read: {error}.")
                        continue
                    lines[Line(n, line.hash, line.canonical)] = None
                    arrived.salts.update(line.salts)
                    for digest, text in line.payloads.items():
                        arrived.payloads[digest] = text.encode("utf-8", "surrogatepass")
        arrived.lines = sorted(lines, key=lambda line: line.n)
        return arrived


def _add_rewind(arrived: ArchivedJournal, file: str, data: bytes) -> None:
    try:
        note = json.loads(data)
        rewind = Rewind(str(note["server"]), int(note["length"]), str(note["head"]))
    except (ValueError, KeyError, TypeError):
        arrived.damaged.append(f"{file} cannot be read.")
    else:
        arrived.rewinds.append(rewind)


class FolderArchive(FileArchive):
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        """Return the names of the journals and ledgers."""
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir())

    def _files(self, name: str) -> Iterator[tuple[str, bytes]]:
        folder = self._folder / name
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                yield path.relative_to(folder).as_posix(), path.read_bytes()


class ObjectArchive(FileArchive):
    """A bucket of an object store. Its keys and its endpoint are those of the environment."""

    def __init__(self, url: str) -> None:
        from obstore.exceptions import BaseError
        from obstore.store import from_url

        is_plain = os.environ.get("AWS_ENDPOINT", "").startswith("http://")
        try:
            self._store: ObjectStore = from_url(url, client_options={"allow_http": is_plain})
            self._names = [
                str(prefix).rpartition("/")[2]
                for prefix in self._store.list_with_delimiter()["common_prefixes"]
            ]
        except BaseError as error:
            raise ValueError(str(error).partition("\n")[0]) from error

    def names(self) -> list[str]:
        """Return the names of the journals and ledgers."""
        return sorted(self._names)

    def _files(self, name: str) -> Iterator[tuple[str, bytes]]:
        for page in self._store.list(name):
            for each in page:
                path = str(each["path"])
                yield path.removeprefix(f"{name}/"), bytes(self._store.get(path).bytes())
