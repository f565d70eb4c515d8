"""Keeps the heads that were signed last, beside the key, and tells what no longer continues them.

A history cannot be rewritten together with them where only the server writes beside the key. The
head of a ledger vouches for all sessions that it lists as closed, so only those of ledgers and of
open sessions are kept. So are the sessions from which the server erases, and those that it removes:
a ledger's entry about another one, which no signature holds yet, is not the server's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..journal.chain import GENESIS, hash_on, link, parse_line
from ..journal.checked_ledgers import end_in
from ..journal.heads import journal_in
from ..journal.journal import signatures_of
from ..journal.ledger import is_held, ledger_paths
from ..journal.retention import removed_in
from ..models import Chain, RecordBreak
from ..records import timestamp
from ..storage.shared_file import SharedFile
from ..types import Digest, SessionId

START: Final = Chain(head=Digest(GENESIS), length=0)


class KeptLedger(Struct, frozen=True, kw_only=True):
    """What was signed last of a ledger and of the sessions in it."""

    end: Chain = START
    sessions: Mapping[SessionId, Chain] = {}
    """The ends of sessions that no signed part of the ledger lists as closed."""


class _Kept(Struct, frozen=True, kw_only=True):
    ledgers: Mapping[str, KeptLedger] = {}
    """By their names. Empty if nothing was signed yet."""
    going: frozenset[SessionId] = frozenset()
    """The sessions from which the server erases, or which it removes."""


_decode: Final = msgspec.json.Decoder(dict[str, _Kept]).decode


class KeptHeads:
    """The heads of one history that were signed last. One thread at a time.

    Parameters
    ----------
    file
        The file, which several servers, also on several histories, may share.
    folder
        The history's folder.
    """

    def __init__(self, file: Path, folder: Path) -> None:
        self._folder = folder
        self._folder_name = str(folder.absolute())
        self._file: SharedFile[dict[str, _Kept]] = SharedFile(
            file, "The heads that were signed last", _decode, {}
        )
        self._checked: dict[Path, int] = {}

    def keep(
        self,
        ledgers: Mapping[str, KeptLedger] = {},
        *,
        going: Iterable[SessionId] = (),
        gone: Collection[SessionId] = (),
        anew: bool = False,
    ) -> None:
        """Keep what is about to be signed, durable on return.

        Parameters
        ----------
        going
            Sessions from which the server is about to erase, or which it is about to remove.
        gone
            Those that are complete, as these heads of ledgers list them.
        anew
            Whether no other ledger is kept any more.

        Raises
        ------
        HistoryUnavailable
            If it cannot be kept.
        """

        def change(histories: dict[str, _Kept]) -> dict[str, _Kept]:
            old = histories.get(self._folder_name, _Kept())
            kept = replace(
                old,
                ledgers={**({} if anew else old.ledgers), **ledgers},
                going=(old.going | frozenset(going)) - frozenset(gone),
            )
            return {**histories, self._folder_name: kept}

        self._file.change(change)

    def of(self, ledger: str) -> KeptLedger:
        """Return what is kept of a ledger."""
        return self._read().ledgers.get(ledger, KeptLedger())

    def breaks(self, own: Path) -> list[str]:
        """Return what in the history does not continue what was signed, in sentences.

        What was read once and has not changed is not read again, nor what other servers write now.

        Parameters
        ----------
        own
            This server's ledger: what it writes after the first call continues it.

        Raises
        ------
        OSError, HistoryUnavailable
            If something cannot be read.
        """
        kept, paths = self._read(), ledger_paths(self._folder)
        names = {path.stem for path in paths}
        found = [f"{name} is gone." for name in sorted(kept.ledgers.keys() - names)]
        for path in paths:
            size = path.stat().st_size
            seen = self._checked.get(path)
            if seen == size or (path == own and seen is not None):
                continue
            if path == own or not is_held(path):
                more = list(self._ledger_breaks(path, kept))
                found += more
                if not more:
                    self._checked[path] = size
        return found

    @property
    def is_empty(self) -> bool:
        """Whether nothing of this history was ever kept."""
        return not self._read().ledgers

    def take(self, own: Path) -> None:
        """Take the history as it is now, with this server's ledger; raises as `keep`."""
        known = self._read().ledgers
        now: dict[str, KeptLedger] = {}
        for path in ledger_paths(self._folder):
            is_others = path != own and path.stem in known and is_held(path)
            now[path.stem] = known[path.stem] if is_others else KeptLedger(end=_end(path))
        self.keep(now, anew=True)
        self._checked.clear()

    def _read(self) -> _Kept:
        return self._file.read().get(self._folder_name, _Kept())

    def _ledger_breaks(self, path: Path, kept: _Kept) -> Iterator[str]:
        is_first = not kept.ledgers
        known = self.of(path.stem)
        ends = [known.end]
        if is_first:  # what an earlier version signed
            ends = [Chain(head=each.head, length=each.length) for each in signatures_of(path)]
        try:
            for end in ends:
                for n, entry in tail(path, end):
                    if not is_first and self._is_foreign(entry, kept.going):
                        what = f"{entry['type']} of {entry['session_id']}"
                        yield f"{path.stem}: entry {n} ({what}) is not this server's."
        except ValueError as error:
            yield f"{path.stem}: {error}."
        for session_id, end in known.sessions.items():
            journal = journal_in(self._folder, session_id)
            try:
                for _ in tail(journal, end):
                    pass
            except FileNotFoundError:
                if session_id not in removed_in(self._folder):
                    yield f"{session_id}: its journal is gone."
            except ValueError as error:
                yield f"{session_id}: {error}."

    def _is_foreign(self, entry: Mapping[str, Any], going: Collection[SessionId]) -> bool:
        """Return whether an entry lets payloads or a session go that this server did not."""
        kind, id = entry.get("type"), entry.get("session_id")
        if kind not in ("session_removed", "session_amended") or id in going:
            return False
        journal, end = journal_in(self._folder, str(id)), end_in(entry.get("chain"))
        if kind == "session_removed" or end is None or not journal.is_file():
            return kind == "session_removed" or end is None
        with journal.open("rb") as file:
            head = end.head.encode("ascii", "replace")
            return any(hash_on(data) == head and b'"type":"erased"' in data for data in file)


def break_of(found: Collection[str]) -> RecordBreak | None:
    """Return the break that a person has to accept; None if nothing was found."""
    if not found:
        return None
    name = hashlib.sha256("\n".join(found).encode()).hexdigest()[:12]
    return RecordBreak(name=f"b_{name}", found=list(found), at=timestamp())


def tail(path: Path, end: Chain) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the entries of a chain after a head, each with its number.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If the chain does not continue the head, entry by entry; why, in a part of a sentence.
    """
    is_known, previous = end == START, GENESIS
    with path.open("rb") as file:
        for n, data in enumerate(file):
            if is_known and data.endswith(b"\n"):  # else a server died, or writes it now
                line = parse_line(data)
                if line.hash != link(previous, line.canonical):
                    raise ValueError(f"entry {n} does not continue the one before it")
                previous = line.hash
                yield n, line.entry
            elif hash_on(data) == end.head.encode("ascii"):
                is_known, previous = True, end.head
    if not is_known:
        raise ValueError(f"entry {end.length - 1}, which was signed, was cut off or written anew")


def _end(path: Path) -> Chain:
    """Return the end of a chain, whether its lines fit each other or not."""
    end = START
    with path.open("rb") as file:
        for n, data in enumerate(file, 1):
            if data.endswith(b"\n"):
                end = Chain(head=Digest(hash_on(data).decode("ascii", "replace")), length=n)
    return end
