"""Reads what is added to a journal, for a sink, from a durable cursor."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from ..journal.blobs import BlobStore
from ..journal.chain import hash_on
from ..journal.erasure import digests_in, erased_names
from ..journal.heads import chain_name
from ..journal.lines import UNREADABLE, RawLine, decode_raw
from ..models import marked
from ..records import KINDS, Entry, Mark
from ..storage.durability import replace_file
from ..types import Digest
from .sink import SentEntry, SinkSettings

_BATCH_ENTRIES: Final = 500
_BATCH_BYTES: Final = 4 << 20


class Cursor(Struct, frozen=True, kw_only=True):
    """The last line of a journal that a sink has."""

    start: int
    end: int
    hash: str


_START: Final = Cursor(start=0, end=0, hash="")


class _Facts(Struct):
    n: int
    at: str
    type: str
    execution_id: str | None = None


_decode_facts: Final = msgspec.json.Decoder(_Facts).decode
_decode_cursor: Final = msgspec.json.Decoder(Cursor).decode


class JournalGone(Exception):
    """A journal that was to be read is not there: it was deleted, or never completely made."""


class Tail:
    """The end of one journal or ledger, which one sink lacks.

    Parameters
    ----------
    path
        The path of the journal.
    cursors
        The folder of the sink's cursors.
    """

    def __init__(self, path: Path, cursors: Path, settings: SinkSettings) -> None:
        self._path = path
        self._settings = settings
        self._blobs = BlobStore(path.parent / "blobs")
        self.name = chain_name(path)
        """The id of the session, or the name of the ledger."""
        self._kept = cursors / self.name

    def cursor(self) -> tuple[Cursor, bool]:
        """Return the cursor, and whether the journal no longer has its line.

        Raises
        ------
        JournalGone
        """
        try:
            cursor = _decode_cursor(self._kept.read_bytes())
        except (FileNotFoundError, msgspec.MsgspecError):
            return _START, False
        with self._open() as file:
            file.seek(cursor.start)
            if _hash_of(file.read(cursor.end - cursor.start)) == cursor.hash:
                return cursor, False
            file.seek(0)
            start = 0
            for line in file:  # what stands before it may have become shorter or longer
                if _hash_of(line) == cursor.hash:
                    return Cursor(start=start, end=start + len(line), hash=cursor.hash), False
                start += len(line)
        return _START, True

    def keep(self, cursor: Cursor) -> None:
        """Move the cursor; durable on return."""
        replace_file(self._kept, msgspec.json.encode(cursor))

    def lacking(self, cursor: Cursor, end: int) -> tuple[float, int]:
        """Return since when the sink lacks lines up to byte `end`, and how many."""
        with self._open() as file:
            since, count = os.fstat(file.fileno()).st_mtime, 0
            file.seek(start := cursor.end)
            while start < end and (line := file.readline(end - start)):
                if not count:
                    with suppress(*UNREADABLE):
                        since = seconds(_decode_facts(decode_raw(line).entry).at, since)
                start += len(line)
                count += 1
        return since, count

    def read(self, cursor: Cursor, end: int) -> tuple[list[SentEntry], Cursor]:
        """Return the next entries up to byte `end`, as many as make a batch, and the cursor there.

        A line that cannot be read is left out; `verify` reports it.
        """
        entries: list[SentEntry] = []
        size = 0
        with self._open() as file:
            file.seek(cursor.end)
            while cursor.end < end and len(entries) < _BATCH_ENTRIES and size < _BATCH_BYTES:
                line = file.readline(end - cursor.end)
                if not line.endswith(b"\n"):
                    break
                start, hash = cursor.end, _hash_of(line)
                cursor = Cursor(start=start, end=start + len(line), hash=hash)
                with suppress(*UNREADABLE):
                    entry = self._entry(line)
                    entries.append(entry)
                    size += len(entry.canonical) + sum(map(len, entry.payloads.values()))
        return entries, cursor

    def _open(self) -> BinaryIO:
        try:
            return self._path.open("rb")
        except FileNotFoundError as error:
            raise JournalGone(self._path) from error

    def _entry(self, line: bytes) -> SentEntry:
        raw = decode_raw(line)
        facts = _decode_facts(raw.entry)
        canonical = bytes(raw.entry)
        payloads = self._payloads(raw, facts.type)
        return SentEntry(
            n=facts.n,
            hash=raw.hash,
            canonical=canonical,
            type=facts.type,
            at=facts.at,
            execution_id=facts.execution_id,
            payloads=payloads,
            salts={name: raw.salts[name] for name in payloads if name in raw.salts},
            erases=self._erased(canonical) if facts.type == "erased" else frozenset(),
        )

    def _erased(self, canonical: bytes) -> frozenset[Digest]:
        """Return the names of the payloads that an entry erases."""
        return erased_names(self._path, msgspec.json.decode(canonical)["entries"])

    def _payloads(self, line: RawLine, kind: str) -> dict[Digest, bytes]:
        """Return the payloads of an entry that the sink gets."""
        if self._settings.content == "facts":
            return {}
        canonical, texts = bytes(line.entry), line.payloads
        if self._settings.content == "sources":
            entry = msgspec.json.decode(canonical)
            fields = marked(KINDS.get(kind, Entry), Mark.SOURCE)
            canonical = msgspec.json.encode([entry.get(field) for field in fields])
        payloads: dict[Digest, bytes] = {}
        for digest in digests_in(canonical):
            data = texts[digest].encode("utf-8") if digest in texts else self._blob(digest)
            if data is not None and len(data) <= self._settings.max_payload_bytes:
                payloads[digest] = data
        return payloads

    def _blob(self, digest: Digest) -> bytes | None:
        try:
            if self._blobs.path(digest).stat().st_size > self._settings.max_payload_bytes:
                return None
        except FileNotFoundError:  # no payload: the hash of a token, or of an uploaded file
            return None
        return self._blobs.find(digest)


def _hash_of(line: bytes) -> str:
    return hash_on(line).decode("ascii", "replace")


def seconds(at: str, otherwise: float) -> float:
    """Return a timestamp in seconds since the epoch; `otherwise` if it is none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return otherwise
