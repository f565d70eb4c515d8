"""Erases payloads, with their salts, from the journals of closed sessions.

First an `erased` entry is in the journal, and the ledger lists the journal's end there. Then the
journal is written anew without the payloads of the entries that it names, and takes the old one's
place; the entries and their hashes stay. A mark in `erasing` stands as long as this is not
complete, so that the next server completes it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from filelock import FileLock, Timeout

from ..auth.validation import at_most_one, given
from ..errors import HistoryBusy, InvalidRequest
from ..models import Chain, Erase
from ..records import (
    Accepted,
    ApprovalAsked,
    By,
    Closed,
    DisplayUpdated,
    Erased,
    JournalEntry,
    Opened,
    timestamp,
)
from ..storage.durability import sync_folder, with_mark
from ..storage.shared_file import LOCK_TIMEOUT
from ..types import Digest, ExecutionId, SessionId
from . import chain
from .blobs import BlobStore
from .journal import Grown, Journal
from .lines import Line, lines
from .session_journal import amending

_NAME: Final = re.compile(rb'"([0-9a-f]{64})"')
_WANTED: Final = ("execution_id", "session_id", "agent", "username", "text")
_MARKS: Final = "erasing"


class Erasable(NamedTuple):
    """What a journal has of what is to be erased."""

    opened: Opened
    is_closed: bool
    entries: list[int]
    """The numbers of the entries whose payloads go."""
    executions: set[ExecutionId]
    payloads: int
    bytes: int
    facts: int
    """How many entries have the text in themselves, where it stays."""


def check_wanted(wanted: Erase) -> None:
    """Raise InvalidRequest unless a request names exactly one thing to erase."""
    at_most_one(wanted, *_WANTED)
    if not given(wanted, *_WANTED):
        raise InvalidRequest(f"Name one of {', '.join(_WANTED)}.", field="session_id")


def find(session: Path, wanted: Erase) -> Erasable | None:
    """Return what would go from a session; None if nothing would.

    Raises
    ------
    OSError
        If its journal cannot be read.
    """
    store, opened, is_closed, revising = BlobStore(session / "blobs"), None, False, set()
    named: list[tuple[int, Line, dict[Digest, int]]] = []
    facts = 0
    for line in lines(session / "journal.jsonl"):
        entry = line.entry
        if isinstance(entry, Opened):
            opened = entry
        elif isinstance(entry, Closed):
            is_closed = True
        elif isinstance(entry, Accepted) and entry.revises == wanted.execution_id:
            revising.add(entry.execution_id)
        facts += wanted.text is not None and _contains(line.canonical, wanted.text)
        if opened is None or not _is_about(entry, opened, wanted, revising):
            continue
        there = dict(_payloads(line, store))
        if wanted.text is not None:
            text = wanted.text
            is_wanted = any(_contains(store.read(line, name) or b"", text) for name in there)
        else:
            is_wanted = bool(there or line.salts)
        if is_wanted:
            named.append((entry.n, line, there))
    if opened is None or not (named or facts):
        return None
    sizes = {name: size for _, _, there in named for name, size in there.items()}
    return Erasable(
        opened=opened,
        is_closed=is_closed,
        entries=[n for n, _, _ in named],
        executions={id for _, line, _ in named for id in line.entry.about},
        payloads=len(sizes),
        bytes=sum(sizes.values()),
        facts=facts,
    )


def _is_about(
    entry: JournalEntry, opened: Opened, wanted: Erase, revising: set[ExecutionId]
) -> bool:
    if wanted.execution_id is not None:
        about: set[Any] = {getattr(entry, "execution_id", None)}
        if isinstance(entry, DisplayUpdated):
            about.update(target.execution_id for target in entry.targets)
        is_before = isinstance(entry, ApprovalAsked) and entry.execution_id in revising
        return is_before or wanted.execution_id in about
    if wanted.username is not None:
        is_own = entry.by.kind == "person" and entry.by.username == wanted.username
        return is_own or opened.username == wanted.username
    return (
        wanted.text is not None
        or wanted.session_id == opened.session_id
        or wanted.agent == opened.agent.name
    )


def _payloads(line: Line, store: BlobStore) -> Iterator[tuple[Digest, int]]:
    """Yield the names and sizes of the payloads of a line that are there."""
    for name in digests_in(line.canonical):
        if name in line.payloads:
            yield name, len(line.payloads[name].encode())
        elif (path := store.path(name)).is_file():
            yield name, path.stat().st_size


def digests_in(data: bytes) -> list[Digest]:
    """Return all digests in a line or an entry: the names of payloads are among them."""
    return [Digest(name.decode("ascii")) for name in _NAME.findall(data)]


def _contains(data: bytes, text: str) -> bool:
    """Return whether data has a text, plain or as a part of JSON."""
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return any(form.encode("utf-8", "replace") in data for form in forms)


def note_erased(session: Path, erasable: Erasable, by: By, reason: str | None) -> Chain:
    """Record what `erase_noted` erases from a closed session; return the new end of its chain.

    Raises
    ------
    OSError, HistoryUnavailable
        If it could not be recorded.
    """
    with amending(session) as path:
        erased = Erased(
            at=timestamp(),
            by=by,
            entries=_ranges(erasable.entries),
            executions=len(erasable.executions),
            payloads=erasable.payloads,
            bytes=erasable.bytes,
            reason=reason,
        )
        journal, _ = Journal.resume(path)
        try:
            journal.append([erased])
        finally:
            journal.close()
        return journal.head


def unfinished(folder: Path) -> list[SessionId]:
    """Return the sessions of a history from which a server died while it erased."""
    return [SessionId(path.name) for path in sorted((folder / _MARKS).glob("s_*"))]


def erase_noted(session: Path, grown: Grown) -> Chain:
    """Erase what is recorded as erased; return the session's end as its last `erased` entry was.

    Raises
    ------
    OSError, HistoryUnavailable
        If it cannot be erased now. What was begun is completed by another call.
    """
    with amending(session) as path:
        end = Journal.mend(path)
        erased: list[tuple[int, int]] = []
        for line in lines(path):
            if isinstance(line.entry, Erased):
                erased += line.entry.entries
                end = Chain(head=line.hash, length=line.entry.n + 1)
        _remove_erased(path, erased)
        grown(path, path.stat().st_size, 1)
        return end


@contextmanager
def sole_erasure(folder: Path, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Keep all others from erasing from a history, also other servers on it.

    Whoever holds this may take each mark to be one of a server that died.

    Parameters
    ----------
    timeout
        Seconds to wait for another's erasure.

    Raises
    ------
    OSError, HistoryBusy
    """
    try:
        with FileLock(folder / f"{_MARKS}.lock", timeout=timeout, mode=0o600):
            yield
    except Timeout as error:
        raise HistoryBusy(
            "Something else is being erased from the history. Nothing was done; ask again later."
        ) from error


def marked(session: Path) -> AbstractContextManager[None]:
    """Mark a session as long as something is erased from it; after an error, the mark stays."""
    return with_mark(session.parents[1] / _MARKS / session.name)


def _ranges(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the first and last numbers of each run of consecutive numbers."""
    ranges: list[tuple[int, int]] = []
    for n in numbers:
        if ranges and ranges[-1][1] == n - 1:
            ranges[-1] = (ranges[-1][0], n)
        else:
            ranges.append((n, n))
    return tuple(ranges)


def erased_names(path: Path, entries: Sequence[Sequence[int]]) -> frozenset[Digest]:
    """Return the names of the payloads of a journal's entries, whose numbers are in ranges."""
    names: set[Digest] = set()
    with path.open("rb") as file:
        for n, data in enumerate(file):
            if _is_in(n, entries):
                names.update(digests_in(data))
    return frozenset(names)


def _is_in(n: int, ranges: Iterable[Sequence[int]]) -> bool:
    return any(first <= n <= last for first, last in ranges)


def _remove_erased(path: Path, erased: Sequence[tuple[int, int]]) -> None:
    """Rewrite a journal without the payloads of these entries; then remove unnamed blobs.

    What cannot be read stays.
    """
    kept: set[Digest] = set()
    temporary = path.with_name(".journal")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with path.open("rb") as old, open(os.open(temporary, flags, 0o600), "wb") as new:
        for n, data in enumerate(old):
            try:
                line = chain.parse_line(data)
            except ValueError:
                kept.update(digests_in(data))
                new.write(data)
                continue
            if _is_in(n, erased):
                new.write(chain.format_line(line.hash, line.canonical, {}))
            else:
                kept.update(digests_in(line.canonical))
                new.write(data)
        new.flush()
        os.fsync(new.fileno())
    temporary.rename(path)
    sync_folder(path.parent)
    blobs = path.parent / "blobs"
    if blobs.is_dir():
        for blob in blobs.iterdir():
            if blob.name not in kept:
                blob.unlink()
        sync_folder(blobs)
