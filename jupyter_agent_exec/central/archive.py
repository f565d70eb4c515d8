"""What has arrived at a far side: the journals of all servers, from a database or from files.

This shares only the definition of a line with the code that writes, so that it can be used to check
that code.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ..journal.chain import parse_line

if TYPE_CHECKING:
    from obstore.store import ObjectStore


_decode = json.JSONDecoder().decode
_NAMES = re.compile(rb'"([0-9a-f]{64})"')
"""Finds what may be the name of a payload in an entry."""


class Span(NamedTuple):
    """A time, from its first moment to before its last; None: without a bound."""

    since: datetime | None = None
    until: datetime | None = None

    def has(self, entry: dict[str, Any]) -> bool:
        """Return whether an entry is of it; also if the entry does not say of when it is."""
        try:
            at = datetime.fromisoformat(entry["at"])
            is_late_enough = self.since is None or at >= self.since
            return is_late_enough and (self.until is None or at < self.until)
        except (KeyError, TypeError, ValueError):
            return True


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
    first: int | None = None
    """The number of the first entry of the time that was asked for, if one was. There are only the
    lines from the one before it, if that has arrived, to the last of that time."""
    opening: Line | None = None
    """Its line 0, if a time was asked for."""


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

    def journals(self, span: Span | None) -> Iterator[ArchivedJournal]:
        """Yield all journals and ledgers, ledgers first; or what they have of a time."""
        if span is None:
            yield from map(self.journal, self.names())
        else:
            yield from self.during(span)

    def during(self, span: Span) -> Iterator[ArchivedJournal]:
        """Yield what has entries of a time, as far as it is of that time; ledgers first."""
        for name in self.names():
            arrived = _limited(self.journal(name), span)
            if arrived.lines or arrived.rewinds or arrived.damaged:
                yield arrived

    def lines_at(self, places: Collection[tuple[str, int]]) -> dict[tuple[str, int], list[Line]]:
        """Return the lines with these journals and numbers; without those that are not there."""
        found: dict[tuple[str, int], list[Line]] = {}
        for name in {name for name, _ in places} & set(self.names()):
            for line in self.journal(name).lines:
                if (name, line.n) in places:
                    found.setdefault((name, line.n), []).append(line)
        return found

    def ledger_entries(self, kinds: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the entries of these types in all ledgers, of any time, unchecked."""
        for name in self.names():
            if name.startswith("ledger-"):
                entries = (parsed(line) for line in self.journal(name).lines)
                yield from (entry for entry in entries if entry.get("type") in kinds)


def parsed(line: Line) -> dict[str, Any]:
    """Return what an entry says; nothing if it cannot be read."""
    try:
        entry = _decode(line.canonical.decode("utf-8"))  # quicker than loads
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _limited(arrived: ArchivedJournal, span: Span) -> ArchivedJournal:
    """Return what a journal has of a time."""
    opening = next((line for line in arrived.lines if line.n == 0), None)
    of_time = [line.n for line in arrived.lines if span.has(parsed(line))]
    if not of_time:
        return replace(arrived, lines=[], payloads={}, first=0, opening=opening)
    first, last = min(of_time), max(of_time)
    before = max((line.n for line in arrived.lines if line.n < first), default=first)
    lines = [line for line in arrived.lines if before <= line.n <= last]
    named = {name.decode() for line in lines for name in _NAMES.findall(line.canonical)}
    payloads = {name: data for name, data in arrived.payloads.items() if name in named}
    return replace(arrived, lines=lines, payloads=payloads, first=first, opening=opening)


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
            _add_payload(arrived, digest, data, salt)
        return arrived

    def during(self, span: Span) -> Iterator[ArchivedJournal]:
        """Yield what has entries of a time, as far as it is of that time; ledgers first."""
        times = {"since": span.since, "until": span.until}
        ranges = sorted(self._connection.execute(RANGES, times).fetchall())
        rewinds: dict[str, list[Rewind]] = {}
        for journal, *rewind in self._connection.execute(REWINDS, times):
            rewinds.setdefault(journal, []).append(Rewind(*rewind))
        for start in range(0, len(ranges), _JOURNALS_AT_ONCE):
            some = ranges[start : start + _JOURNALS_AT_ONCE]
            arrived = {
                name: ArchivedJournal(
                    name=name, server="", first=first, rewinds=rewinds.get(name, [])
                )
                for name, _, first, _ in some
            }
            columns = [list(column) for column in zip(*some, strict=True)]
            for name, n, line_hash, entry, server in self._rows(
                LINES, columns[0], columns[1], columns[3]
            ):
                arrived[name].lines.append(Line(n, line_hash, entry.encode("utf-8")))
                arrived[name].server = server
            for (name, _), lines in self.lines_at([(name, 0) for name in arrived]).items():
                arrived[name].opening = lines[0]
            self._add_payloads(arrived)
            yield from arrived.values()

    def _add_payloads(self, arrived: dict[str, ArchivedJournal]) -> None:
        """Read the payloads that lines name."""
        named = [
            (journal.name, name.decode())
            for journal in arrived.values()
            for line in journal.lines
            for name in _NAMES.findall(line.canonical)
        ]
        for start in range(0, len(named), _PAYLOADS_AT_ONCE):
            some = named[start : start + _PAYLOADS_AT_ONCE]
            names = [name for name, _ in some], [digest for _, digest in some]
            for name, digest, data, salt in self._rows(PAYLOADS, *names):
                _add_payload(arrived[name], digest, data, salt)

    def lines_at(self, places: Collection[tuple[str, int]]) -> dict[tuple[str, int], list[Line]]:
        """Return the lines with these journals and numbers; without those that are not there."""
        found: dict[tuple[str, int], list[Line]] = {}
        ordered = list(places)
        for start in range(0, len(ordered), _PAYLOADS_AT_ONCE):
            some = ordered[start : start + _PAYLOADS_AT_ONCE]
            names, numbers = [name for name, _ in some], [n for _, n in some]
            for name, n, line_hash, entry, _ in self._rows(LINES, names, numbers, numbers):
                found.setdefault((name, n), []).append(Line(n, line_hash, entry.encode("utf-8")))
        return found

    def ledger_entries(self, kinds: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the entries of these types in all ledgers, of any time, unchecked."""
        for n, line_hash, entry in self._rows(LEDGER_ENTRIES, list(kinds)):
            yield parsed(Line(n, line_hash, entry.encode("utf-8")))

    def _rows(self, query: Any, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()


_JOURNALS_AT_ONCE = 200
_PAYLOADS_AT_ONCE = 2_000

RANGES = """
SELECT journal, coalesce(before, first), first, last
FROM (
    SELECT journal, min(n) AS first, max(n) AS last
    FROM (
        SELECT journal, n FROM agent_exec_entries
        WHERE at >= coalesce(%(since)s::timestamptz, '-infinity')
            AND at < coalesce(%(until)s::timestamptz, 'infinity')
        UNION ALL
        SELECT r.journal, coalesce((
            SELECT max(n) FROM agent_exec_entries e WHERE e.journal = r.journal
        ), 0)
        FROM agent_exec_rewinds r
        WHERE r.arrived_at >= coalesce(%(since)s::timestamptz, '-infinity')
            AND r.arrived_at < coalesce(%(until)s::timestamptz, 'infinity')
    ) AS found
    GROUP BY journal
) AS spans,
LATERAL (
    SELECT max(n) AS before FROM agent_exec_entries e
    WHERE e.journal = spans.journal AND e.n < spans.first
) AS earlier
"""
"""The journals of a time: the number of the line before its first, of its first and its last. One
that was rewound then is read to its end."""

REWINDS = """
SELECT journal, server, length, head FROM agent_exec_rewinds
WHERE arrived_at >= coalesce(%(since)s::timestamptz, '-infinity')
    AND arrived_at < coalesce(%(until)s::timestamptz, 'infinity')
"""

LINES = """
SELECT e.journal, e.n, e.hash, e.entry, e.server
FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS r (journal, first, last)
JOIN agent_exec_entries e ON e.journal = r.journal AND e.n BETWEEN r.first AND r.last
ORDER BY e.n
"""

PAYLOADS = """
SELECT p.journal, p.digest, p.data, p.salt
FROM unnest(%s::text[], %s::text[]) AS r (journal, digest)
JOIN agent_exec_payloads p ON p.journal = r.journal AND p.digest = r.digest
"""

LEDGER_ENTRIES = """
SELECT n, hash, entry FROM agent_exec_entries
WHERE type = ANY(%s) AND execution_id IS NULL
ORDER BY at
"""


def _add_payload(arrived: ArchivedJournal, digest: str, data: bytes, salt: str | None) -> None:
    arrived.payloads[digest] = bytes(data)
    if salt is not None:
        arrived.salts[digest] = salt


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
