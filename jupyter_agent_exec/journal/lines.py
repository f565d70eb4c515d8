"""Journals as they are read: lines decoded into entries, one by one or by their byte ranges."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ..records import JOURNAL_ENTRY, KINDS, LEDGER_ENTRY, JournalEntry, LedgerEntry, PlainEntry
from ..types import Digest
from .chain import FORMAT


class RawLine(msgspec.Struct):
    """A line of a journal or a ledger, whose entry is not decoded."""

    hash: Digest
    entry: msgspec.Raw
    payloads: dict[Digest, str] = {}
    salts: dict[Digest, str] = {}


class _Format(msgspec.Struct):
    format: int = 1


class Range(NamedTuple):
    """Where a line is in its file."""

    offset: int
    length: int


class Line(NamedTuple):
    """A line of a session's journal."""

    entry: JournalEntry
    hash: Digest
    payloads: dict[Digest, str]
    """The texts on the line."""
    salts: dict[Digest, str]
    """The salts of the payloads that its entry names."""
    canonical: bytes
    at: Range


decode_raw: Final = msgspec.json.Decoder(RawLine).decode
_format: Final = msgspec.json.Decoder(_Format)
_journal_entry: Final = msgspec.json.Decoder(JOURNAL_ENTRY)
_ledger_entry: Final = msgspec.json.Decoder(LEDGER_ENTRY)
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of a line that cannot be decoded."""


def lines(path: Path, start: int = 0, end: int | None = None) -> Iterator[Line]:
    """Yield a journal's complete lines from byte `start` to `end`; None: its current size.

    Lines that are damaged are left out; `verify` reports them. An entry of a kind that this version
    does not know is a `PlainEntry`.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    return (line for line, _ in lines_and_ends(path, start, end) if line is not None)


def lines_and_ends(
    path: Path, start: int = 0, end: int | None = None
) -> Iterator[tuple[Line | None, int]]:
    """Yield each complete line as `lines` does, and where it ends; None for one that is left out.

    A line that is being written is not complete, although the file may have a part of it.
    """
    with path.open("rb") as file:
        if end is None:
            end = os.fstat(file.fileno()).st_size
        file.seek(start)
        offset = start
        while offset < end:
            data = file.readline(end - offset)
            if not data.endswith(b"\n"):
                return
            line = _line(data, offset)
            offset += len(data)
            yield line, offset


def lines_at(fd: int, ranges: Iterable[Range]) -> list[Line]:
    """Return the lines at `ranges` of the journal open at `fd`."""
    read: list[Line] = []
    for offset, length in ranges:
        line = _line(os.pread(fd, length, offset), offset)
        if line is not None:
            read.append(line)
    return read


def ledger_entries(path: Path) -> Iterator[LedgerEntry]:
    """Yield a ledger's entries.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        for data in file:
            entry = ledger_entry(data)
            if entry is not None:
                yield entry


def format_of(path: Path) -> int | None:
    """Return the format of a file's first entry; None if it has none that can be understood.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        try:
            return _format.decode(decode_raw(file.readline()).entry).format
        except UNREADABLE:
            return None


def ledger_entry(data: bytes) -> LedgerEntry | None:
    """Return the entry of a ledger's line; None if it cannot be understood."""
    try:
        entry: LedgerEntry = _ledger_entry.decode(decode_raw(data).entry)
    except UNREADABLE:
        return None
    return entry if entry.format == FORMAT else None


def _line(data: bytes, offset: int) -> Line | None:
    try:
        raw = decode_raw(data)
        entry = _entry(raw.entry)
    except UNREADABLE:
        return None
    if entry.format != FORMAT:
        return None
    canonical, at = bytes(raw.entry), Range(offset, len(data))
    return Line(entry, raw.hash, raw.payloads, raw.salts, canonical, at)


def _entry(canonical: msgspec.Raw) -> JournalEntry:
    try:
        known: JournalEntry = _journal_entry.decode(canonical)
        return known
    except msgspec.ValidationError:
        fields = msgspec.json.decode(canonical)
        entry = msgspec.convert({**fields, "fields": fields}, PlainEntry)
        if entry.type in KINDS:
            raise
        return entry
