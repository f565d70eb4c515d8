"""The history: the interface for the rest of the server, which also lets go of what it holds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from ..errors import HistoryUnavailable
from ..models import (
    Erase,
    ErasedSession,
    Erasure,
    Progress,
    Retain,
    Retention,
    RetiredSession,
)
from ..records import SERVER, By, SessionRemoved, timestamp
from ..storage.durability import sync_folder
from ..types import SessionId
from . import query
from .erasure import (
    Erasable,
    check_wanted,
    erase_noted,
    find,
    marked,
    note_erased,
    sole_erasure,
    unfinished,
)
from .journal import Journal
from .retention import Due, RetentionRule, due, removed_in
from .session_journal import amending
from .writer import HistoryWriter, amended

T = TypeVar("T")


class History(HistoryWriter):
    """The record of all agent sessions in one folder. Thread-safe.

    Parameters are those of `HistoryWriter`. Nothing may be left half erased, so what a server that
    died was erasing is completed at the start.
    """

    retention: Sequence[RetentionRule] = ()
    """Which closed sessions go."""
    erasing: Progress | None = None
    """How far an erasure is; None if there is none."""

    def start(self) -> None:
        """Get a ledger, end the sessions of servers that died, and start the index.

        Does not raise if the disk fails; `available` shows whether it worked.
        """
        try:
            self._begin()
            self._list_amendments()
            self._finish_erasures()
        except HistoryUnavailable as error:
            self._log.warning("Agents cannot run code: %s", error.message)
        self._index.start()
        self.copies.start()

    def erase(self, wanted: Erase, by: By) -> Erasure:
        """Erase payloads from closed sessions, or tell what would go; durable on return.

        Raises
        ------
        InvalidRequest
            If it does not say what to erase.
        SessionNotFound, ExecutionNotFound
            If it names something that does not exist.
        HistoryBusy
            If something else is being erased all the time.
        HistoryUnavailable
            If it could not be erased. What was begun is completed at the next start.
        """
        check_wanted(wanted)
        try:
            self._begin()
            with sole_erasure(self.folder):
                erasing = self._find(wanted)
                going = {
                    id: each for id, each in erasing.items() if each.is_closed and each.entries
                }
                if going and not wanted.dry_run:
                    self._erase(going, wanted.reason, by)
        except OSError as error:
            raise self._unavailable(error) from error
        return Erasure(
            dry_run=wanted.dry_run,
            sessions=[_erased_session(each) for each in erasing.values()],
            remains=[*_REMAINS, *self.copies.erasing()],
        )

    def retain(
        self, wanted: Retain, by: By, may_go_on: Callable[[], bool] = lambda: True
    ) -> Retention:
        """Remove the sessions that the rules let go, or tell which would; durable on return.

        What sinks have of them is erased before, so a session waits until all sinks know.

        Parameters
        ----------
        may_go_on
            Called before each session; False ends it early.

        Raises
        ------
        HistoryBusy
            If something else is being erased all the time.
        HistoryUnavailable
            If it is not complete. What was begun is completed at the next start.
        """
        try:
            with sole_erasure(self.folder):
                sessions = self._index.ask(query.all_sessions)
                statuses = self._index.ask(query.statuses)
                going = [
                    each
                    for each in due(self.retention, sessions, statuses, datetime.now(UTC))
                    if (self._session_folder(each.session.id) / "journal.jsonl").is_file()
                ]  # what somebody removed by hand is in the index until the next start
                retired = [] if wanted.dry_run else self._retire(going, by, may_go_on)
        except OSError as error:
            raise self._unavailable(error) from error
        return Retention(
            dry_run=wanted.dry_run,
            rules=[rule.said for rule in self.retention],
            sessions=[_retired(each, None) for each in going] if wanted.dry_run else retired,
        )

    def _retire(
        self, going: Sequence[Due], by: By, may_go_on: Callable[[], bool]
    ) -> list[RetiredSession]:
        if self.copies.erasing():
            self._erase_due(going, by, may_go_on)
        retired: list[RetiredSession] = []
        gone: list[SessionId] = []
        with ExitStack() as marks:
            marks.enter_context(self.signatures.going([each.session.id for each in going]))
            for each in going:
                if not may_go_on():
                    break
                folder = self._session_folder(each.session.id)
                if not self.copies.have(folder / "journal.jsonl"):
                    retired.append(_retired(each, "Sinks have to erase it first."))
                    continue
                marks.enter_context(marked(folder))
                self._note_removed(folder, each, by)
                gone.append(each.session.id)
                retired.append(_retired(each, None))
            if gone:
                self.signatures.sign()
            for id in gone:
                folder = self._session_folder(id)
                _remove_journal(folder)
                self.copies.forget(folder / "journal.jsonl")
                self._proposals.pop(id, None)
            if gone:
                self._index.purge(gone)
        return retired

    def _erase_due(self, going: Sequence[Due], by: By, may_go_on: Callable[[], bool]) -> None:
        """Erase all payloads of the sessions that go, so that the sinks do."""
        for reason in dict.fromkeys(each.reason for each in going):
            erasing: dict[SessionId, Erasable] = {}
            for id in (each.session.id for each in going if each.reason == reason):
                erasable = find(self._session_folder(id), Erase(session_id=id))
                if erasable is not None and erasable.entries:
                    erasing[id] = erasable
            if erasing and may_go_on():
                self._erase(erasing, reason, by)

    def _note_removed(self, folder: Path, going: Due, by: By) -> None:
        with amending(folder) as path:
            entry = SessionRemoved(
                at=timestamp(),
                by=by,
                session_id=going.session.id,
                chain=Journal.mend(path),
                reason=going.reason,
            )
            self.note(entry)

    def _find(self, wanted: Erase) -> dict[SessionId, Erasable]:
        if wanted.execution_id is not None:
            sessions = [self.session_of(wanted.execution_id)]
        elif wanted.session_id is not None:
            sessions = [SessionId(self.journal_path(wanted.session_id).parent.name)]
        else:
            paths = sorted((self.folder / "sessions").glob("s_*/journal.jsonl"))
            sessions = [SessionId(path.parent.name) for path in paths]
        looked = self._telling(sessions)
        erasable = ((id, find(self._session_folder(id), wanted)) for id in looked)
        return {id: each for id, each in erasable if each is not None}

    def _erase(self, going: Mapping[SessionId, Erasable], reason: str | None, by: By) -> None:
        with ExitStack() as marks:
            marks.enter_context(self.signatures.going(going))
            for id in going:
                marks.enter_context(marked(self._session_folder(id)))
            for id, each in going.items():
                end = note_erased(self._session_folder(id), each, by, reason)
                self.note(amended(id, end, by))
            self.signatures.sign()
            for id in self._telling(going):
                end = erase_noted(self._session_folder(id), self.copies.grown)
                self._changed(id, end)
                self._proposals.pop(id, None)
            self._index.purge(going)

    def _telling(self, sessions: Collection[T]) -> Iterator[T]:
        """Yield each session that an erasure goes through, and say in `erasing` how far it is."""
        try:
            for done, each in enumerate(sessions):
                self.erasing = Progress(done=done, total=len(sessions))
                yield each
        finally:
            self.erasing = None

    def _finish_erasures(self) -> None:
        """Complete what a server that died was erasing. The index is made again after that."""
        if not unfinished(self.folder):
            return
        try:
            with sole_erasure(self.folder):
                removed = removed_in(self.folder)
                for id in unfinished(self.folder):
                    self._finish_erasure(id, id in removed)
        except (OSError, HistoryUnavailable) as error:
            self._log.warning("What was begun to be erased is not complete yet: %s", error)

    def _finish_erasure(self, id: SessionId, is_removed: bool) -> None:
        folder = self._session_folder(id)
        try:
            with marked(folder), self.signatures.going([id]):
                if is_removed:
                    _remove_journal(folder)
                else:
                    end = erase_noted(folder, self.copies.grown)
                    self.note(amended(id, end, SERVER))
                    self._changed(id, end)
                for name in ("index.sqlite", "index.sqlite-journal"):
                    (self.folder / name).unlink(missing_ok=True)
        except (OSError, HistoryUnavailable) as error:
            self._log.warning("What was erased from %s is not complete yet: %s", id, error)


_REMAINS: Final = (
    "Notebooks and files of users are theirs: copies of code and outputs in them remain.",
    "Entries remain: who did what when, with titles, purposes, comments, reasons, and the paths, "
    "sizes and SHA-256 of files.",
    "Sessions in which code was run again remain: they are records of their own.",
    "What others have copied remains: exports, backups, the caches of browsers.",
)


def _erased_session(erasable: Erasable) -> ErasedSession:
    return ErasedSession(
        session_id=erasable.opened.session_id,
        agent=erasable.opened.agent.name,
        title=erasable.opened.title,
        is_open=not erasable.is_closed,
        executions=len(erasable.executions),
        payloads=erasable.payloads,
        bytes=erasable.bytes,
        facts=erasable.facts,
    )


def _retired(going: Due, waits: str | None) -> RetiredSession:
    session = going.session
    return RetiredSession(
        session_id=session.id,
        agent=session.agent.name,
        title=session.title,
        closed_at=session.closed_at,
        reason=going.reason,
        waits=waits,
    )


def _remove_journal(folder: Path) -> None:
    """Remove a session's files, the journal first: what is left is then no session."""
    (folder / "journal.jsonl").unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
    sync_folder(folder.parent)
