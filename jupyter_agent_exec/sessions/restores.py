"""Runs again what ran in a kernel that ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from msgspec.structs import replace

from ..auth.scopes import Caller
from ..errors import AgentExecError, InvalidRequest, KernelNotOwned
from ..executions.execution import LiveExecution
from ..executions.limits import Settings
from ..models import (
    Execute,
    Limits,
    NotebookTarget,
    OpenSession,
    Restoration,
    Restore,
    RestoredCell,
    ScratchTarget,
    Session,
)
from ..records import (
    SERVER,
    ExecutionRecord,
    RestoreBegun,
    RestoreEnded,
    timestamp,
)
from ..tasks import Tasks, first_of
from ..text.counts import counted
from ..text.redaction import marks_in
from ..types import FINAL_STATUSES, ExecutionId, Status
from .manager import AgentSessions
from .session import LiveSession


@dataclass(frozen=True, slots=True, kw_only=True)
class CellToRestore:
    """An execution that ran in the kernel whose state is to come back."""

    record: ExecutionRecord
    left_out: str | None
    """Why it does not run, in a sentence; None if it runs."""


REPEATED: Final[tuple[Status, ...]] = ("ok", "error")
"""How an execution ended that runs again. Other code was stopped, or ended the kernel."""


def plan(
    records: Sequence[ExecutionRecord],
    *,
    current: int | None,
    done: Collection[ExecutionId],
    with_first_sources: bool,
    leave_out: Collection[ExecutionId],
) -> list[CellToRestore]:
    """Return what ran in the last kernel before the current one, in order.

    Code that raised runs again too, because what it did before the error was in the kernel.

    Parameters
    ----------
    records
        All executions of the session, in order.
    current
        The incarnation that the session has now; None if it has no kernel.
    done
        Executions that ran again in the present kernel already, or wait there.
    with_first_sources
        Whether what ran first in the kernel counts; else a new kernel of the session runs it.
    leave_out
        Executions that do not run again.
    """
    ended = [
        record
        for record in records
        if life(record) and not record.trial and (with_first_sources or not record.init)
    ]
    lives = {
        status: [life(each) for each in ended if each.status == status and life(each) != current]
        for status in REPEATED
    }
    last = max(lives["ok"] or lives["error"], default=0)
    cells = []
    for record in ended:
        if life(record) != last:
            continue
        left_out = None
        if record.status not in REPEATED:
            left_out = f"It ended as {record.status}."
        elif record.undone_at is not None:
            left_out = "It was undone."
        elif record.id in done:
            left_out = "It ran again already."
        elif marks_in(record.source):
            left_out = "The record does not have its code: a secret in it was replaced."
        elif record.id in leave_out:
            left_out = "The request leaves it out."
        cells.append(CellToRestore(record=record, left_out=left_out))
    return cells


def first_line(source: str) -> str:
    """Return the first line of a source that says something, with how many follow."""
    lines = [line for line in source.split("\n") if line.strip()] or [""]
    more = f" (+{counted(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
    return lines[0].strip()[:120] + more


def life(record: ExecutionRecord) -> int:
    """Return the incarnation in which an execution ran; 0 if it did not."""
    return 0 if record.kernel is None else record.kernel.incarnation


NOT_OWNED: Final = (
    "The kernel is a person's, and only they may restore it: ask them to, or run yourself what you "
    "need."
)


class Restores:
    """Restores the state of sessions whose kernel ended."""

    def __init__(self, sessions: AgentSessions, settings: Settings, log: logging.Logger) -> None:
        self._sessions = sessions
        self._settings = settings
        self._tasks = Tasks(log)
        self._lock = asyncio.Lock()  # so that two requests do not run the same twice

    async def stop(self) -> None:
        """Wait for what runs. Its sessions are closed, so it ends soon. Idempotent."""
        await self._tasks.end()

    async def restore(self, session_id: str, request: Restore, caller: Caller) -> Restoration:
        """Run again what ran in a session's last kernel, in order, up to a new failure.

        A closed session is restored in a new one, which the same caller gets again.

        Raises
        ------
        InvalidRequest, SessionNotFound, SessionElsewhere, KernelNotOwned, TooManyRequests,
        KernelUnavailable, HistoryUnavailable, and those of opening a session
            Nothing runs.
        """
        async with self._lock:
            of = await self._sessions.history.session(session_id)
            if caller.token is not None and not isinstance(of.target, ScratchTarget):
                raise KernelNotOwned(NOT_OWNED)
            live = await self._place(of, caller)
            planned = await self._plan(of, live, request)
            runs = [cell for cell in planned if cell.left_out is None]
            if request.dry_run or not runs:
                where = of if live is None else live
                return Restoration(
                    session_id=where.id,
                    of=of.id,
                    status="planned" if request.dry_run else "finished",
                    cells=_told(planned, {}),
                )
            live, executions = await self._submitted(of, live, runs, caller)
            begun = RestoreBegun(
                at=timestamp(),
                by=caller.by(),
                of=of.id,
                of_chain=of.chain,
                executions=tuple(cell.record.id for cell in runs),
                left_out=tuple(cell.record.id for cell in planned if cell.left_out),
            )
            await live.note(begun)
        ended = self._tasks.start(self._ended(live, executions), f"restore {of.id}")
        await asyncio.wait({ended}, timeout=self._settings.wait(request.wait))
        status: Literal["running", "finished", "stopped"] = "running"
        if all(each.finished.done() for each in executions):
            status = "finished" if _failed(executions) is None else "stopped"
        by_original = {each.spec.restores: each for each in executions}
        return Restoration(
            session_id=live.id,
            of=of.id,
            status=status,
            cells=_told(planned, by_original),
        )

    async def _place(self, of: Session, caller: Caller) -> LiveSession | None:
        """Return the open session in which to restore; None if it has to be opened."""
        if of.status == "open":
            return await self._sessions.history.live_session(of.id)  # or says where it is open
        return self._sessions.clients.find(_client_id(of), caller)

    async def _plan(
        self, of: Session, live: LiveSession | None, request: Restore
    ) -> list[CellToRestore]:
        records = await self._records(of.id)
        before = {record.id: record.status for record in records}
        for id in request.leave_out:
            if id not in before:
                raise InvalidRequest(
                    f"leave_out: the session has no execution {id!r}.", field="leave_out"
                )
        is_same = live is not None and live.id == of.id
        there = records if is_same else [] if live is None else await self._records(live.id)
        kernel = None if live is None else live.record().kernel
        current = None if kernel is None else kernel.incarnation
        done = {
            record.restores
            for record in there
            if record.restores is not None
            and (
                record.status not in FINAL_STATUSES
                or (
                    record.status in ("ok", before.get(record.restores)) and life(record) == current
                )
            )
        }
        return await self._sessions.history.in_thread(
            partial(
                plan,
                records,
                current=current if is_same else None,
                done=done,
                with_first_sources=not is_same,
                leave_out=request.leave_out,
            )
        )

    async def _submitted(
        self,
        of: Session,
        live: LiveSession | None,
        runs: Sequence[CellToRestore],
        caller: Caller,
    ) -> tuple[LiveSession, list[LiveExecution]]:
        settings = self._settings.within(caller.caps)
        requests = [
            Execute(
                source=cell.record.source,
                timeout=settings.fit(Limits(timeout=cell.record.timeout)).timeout,
                placement="none",
            )
            for cell in runs
        ]
        originals = [cell.record for cell in runs]
        submit = self._sessions.run_again
        if live is not None:
            return live, await submit(live.id, requests, originals, caller)
        target = of.target
        if isinstance(target, NotebookTarget):  # where it is now; it is not created
            target = replace(target, path=of.path or target.path, create=False)
        opened = OpenSession(
            agent=of.agent,
            target=target,
            title=of.title,
            client_id=_client_id(of),
            limits=settings.fit(of.limits),
            allow_stdin=of.allow_stdin,
        )
        session, _ = await self._sessions.open(opened, caller)
        try:
            executions = await submit(session.id, requests, originals, caller)
        except AgentExecError:
            await self._sessions.close(session.id, caller)
            raise
        return await self._sessions.history.live_session(session.id), executions

    async def _ended(self, live: LiveSession, executions: Sequence[LiveExecution]) -> None:
        """Wait for the end, and record it; a closed session's may be in memory only."""
        for each in executions:
            await first_of(each.finished, live.ended)
        if live.is_open:
            live.restored = True
            entry = RestoreEnded(at=timestamp(), by=SERVER, failed=_failed(executions))
            await live.note(entry)

    async def _records(self, id: str) -> list[ExecutionRecord]:
        return [record async for record in self._sessions.history.all_executions(id)]


def _client_id(of: Session) -> str:
    return f"restore {of.id}"


def _failed(executions: Sequence[LiveExecution]) -> ExecutionId | None:
    """Return the first execution that failed as it did not before; None if there is none."""
    failed = (e.id for e in executions if e.spec.is_failure(e.finished.result().status))
    return next(failed, None)


def _told(
    cells: Sequence[CellToRestore], again: Mapping[ExecutionId | None, LiveExecution]
) -> list[RestoredCell]:
    found = ((cell, again.get(cell.record.id)) for cell in cells)
    return [
        RestoredCell(
            of=cell.record.id,
            seq=cell.record.seq,
            source=first_line(cell.record.source),
            left_out=cell.left_out,
            execution_id=None if execution is None else execution.id,
            status=None if execution is None else _status(execution),
        )
        for cell, execution in found
    ]


def _status(execution: LiveExecution) -> Status:
    finished = execution.finished
    return finished.result().status if finished.done() else execution.status
