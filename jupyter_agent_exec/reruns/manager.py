"""Run a session's code or a notebook's again, and record how the outputs compare."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final

import msgspec

from ..auth.scopes import Caller
from ..errors import AgentExecError, FileMissing, InvalidRequest, NotRerun
from ..files.manager import SessionFiles
from ..journal.reruns import AGENT_NAME, recorded_rerun, uploaded_files
from ..models import (
    Agent,
    Execute,
    NotebookTarget,
    OpenSession,
    Rerun,
    RerunCell,
    RerunDifference,
    RerunInput,
    RerunRules,
    RunAgain,
    ScratchTarget,
    Session,
)
from ..records import SERVER, CellRerun, ExecutionRecord, Payload, RerunBegun, timestamp
from ..sessions.activity import Activity
from ..sessions.manager import AgentSessions
from ..tasks import Tasks
from ..types import FINAL_STATUSES, Digest, InputVerdict, RerunVerdict, Status
from .cells import CellToRerun, cells_of_executions, cells_of_notebook
from .comparison import Comparison, compare

_RAN: Final[frozenset[Status]] = frozenset({"ok", "error"})
"""Statuses of code that ran to its end."""


class Reruns:
    """Runs code again, each time in a session of its own, whose journal has the result."""

    def __init__(
        self,
        sessions: AgentSessions,
        files: SessionFiles,
        activity: Activity,
        log: logging.Logger,
    ) -> None:
        self._sessions = sessions
        self._files = files
        self._activity = activity
        self._log = log
        self._tasks = Tasks(log)
        self._running: dict[str, _Run] = {}

    async def stop(self) -> None:
        """Wait for what runs. Its sessions are closed, so it ends soon. Idempotent."""
        await self._tasks.end()

    async def start(self, request: RunAgain, caller: Caller) -> Rerun:
        """Open a session in which code runs again, and return at once.

        Raises
        ------
        InvalidRequest, SessionNotFound, KernelSpecNotFound, TooManyRequests, KernelUnavailable,
        HistoryUnavailable, IsolationUnavailable
            Nothing runs.
        """
        _check(request)
        if request.session_id is not None:
            original = await self._sessions.history.session(request.session_id)
            cells, target, title = await self._of_session(original)
        else:
            assert request.notebook is not None
            original = None
            read = partial(cells_of_notebook, request.notebook)
            cells, kernel_name = await self._sessions.in_thread(read)
            target, title = ScratchTarget(kernel_name=kernel_name), "a notebook"
        if not cells:
            raise InvalidRequest("There is no code to run.", field=None)
        target = msgspec.structs.replace(
            target,
            kernel_name=request.kernel_name or target.kernel_name,
            cwd=target.cwd if request.cwd is None else request.cwd,
            own_folder=target.own_folder and request.cwd is None,
            isolated=target.isolated or request.isolated,
        )
        agent = Agent(name=AGENT_NAME)
        opened = OpenSession(agent=agent, target=target, title=f"Re-run of {title}"[:500])
        session, _ = await self._sessions.open(opened, caller)
        try:
            begun = RerunBegun(
                at=timestamp(),
                by=caller.by(),
                of=None if original is None else original.id,
                of_chain=None if original is None else original.chain,
                cells=len(cells),
                rules=request.rules,
                inputs=() if original is None else await self._inputs(original, session),
            )
            await self._sessions.history.decide(session.id, [begun])
        except BaseException:
            await self._sessions.close(session.id, caller)
            raise
        run = _Run(self._sessions, self._activity, session, begun, request, caller, self._log)
        self._running[session.id] = run
        task = self._tasks.start(run.all(cells), "run code again")
        task.add_done_callback(lambda _: self._running.pop(session.id))
        return run.rerun()

    async def rerun(self, session_id: str, *, after: int = 0, wait: float = 0) -> Rerun:
        """Return how code that ran again compares, so far.

        Parameters
        ----------
        after
            The number of cells that the caller has seen.
        wait
            Seconds to wait until more are compared, or until it has ended.

        Raises
        ------
        SessionNotFound, HistoryUnavailable
        NotRerun
            The session repeats nothing.
        """
        run = self._running.get(session_id)
        if run is not None:
            await run.compares(after, wait)
            return run.rerun()
        session = await self._sessions.history.outline(session_id)
        path = await self._sessions.history.journal(session_id)
        found = await self._sessions.in_thread(partial(recorded_rerun, session, path))
        if found is None:
            raise NotRerun("The session repeats no code.", session_id=session.id)
        return found

    async def _inputs(self, original: Session, session: Session) -> tuple[RerunInput, ...]:
        """Return what the files that were uploaded to a session are for a session like it."""
        path = await self._sessions.history.journal(original.id)
        uploaded = await self._sessions.in_thread(partial(uploaded_files, path))
        return tuple(
            [await self._input(session, path, before) for path, before in uploaded.items()]
        )

    async def _input(self, session: Session, path: str, before: Digest) -> RerunInput:
        try:
            file = await self._files.open(session.id, path)
        except FileMissing:
            return RerunInput(path=path, verdict="missing", sha256=before, now=None)
        except AgentExecError:  # such as a kernel on another machine
            return RerunInput(path=path, verdict="unknown", sha256=before, now=None)
        try:
            now = await self._sessions.in_thread(file.sha256)
        finally:
            file.close()
        verdict: InputVerdict = "same" if now == before else "changed"
        return RerunInput(path=path, verdict=verdict, sha256=before, now=now)

    async def _of_session(self, session: Session) -> tuple[list[CellToRerun], ScratchTarget, str]:
        """Return a session's cells, where to run them, and what to call it."""
        records = [
            record
            async for record in self._sessions.history.all_executions(session.id)
            if record.status in FINAL_STATUSES
        ]
        target = session.target
        if not isinstance(target, ScratchTarget):
            kernels = (record.kernel.name for record in records if record.kernel is not None)
            path = session.path if isinstance(target, NotebookTarget) else None
            folder = "" if path is None else path.rpartition("/")[0]
            target = ScratchTarget(kernel_name=next(kernels, None), cwd=folder or None)
        return cells_of_executions(records), target, session.title or str(session.id)


class _Run:
    """One re-run, from its first cell to its last."""

    def __init__(
        self,
        sessions: AgentSessions,
        activity: Activity,
        session: Session,
        begun: RerunBegun,
        request: RunAgain,
        caller: Caller,
        log: logging.Logger,
    ) -> None:
        self._log = log
        self._sessions = sessions
        self._activity = activity
        self._session = session
        self._begun = begun
        self._request = request
        self._caller = caller
        self._incarnation: int | None = None
        self._cells: list[RerunCell] = []
        self._has_ended = False
        self._changed = asyncio.Event()

    async def all(self, cells: Sequence[CellToRerun]) -> None:
        """Run all cells in order, and close the session."""
        try:
            for cell in cells:
                compared = await self._cell(cell)
                await self._sessions.history.decide(self._session.id, *_entry(compared))
                self._cells.append(compared)
                self._wake()
                self._activity.publish("session", self._session)
        except AgentExecError as error:  # such as a session that a user or the server has closed
            self._log.warning("Re-run %s ended early: %s", self._session.id, error.message)
        finally:
            with suppress(AgentExecError):
                await self._sessions.close(self._session.id, self._caller)
            self._has_ended = True
            self._wake()
            self._activity.publish("session", self._session)

    def rerun(self) -> Rerun:
        """Return how it compares so far."""
        is_finished = len(self._cells) == self._begun.cells
        return Rerun(
            session_id=self._session.id,
            of=self._begun.of,
            status="running" if not self._has_ended else "finished" if is_finished else "ended",
            cells=list(self._cells),
            total=self._begun.cells,
            inputs=list(self._begun.inputs),
        )

    async def compares(self, after: int, wait: float) -> None:
        """Wait until more than `after` cells are compared, all have ended, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                while not self._has_ended and len(self._cells) <= after:
                    await self._changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _cell(self, cell: CellToRerun) -> RerunCell:
        """Run a cell, and return how it compares."""
        record: ExecutionRecord | None = None
        verdict: RerunVerdict = "skipped"
        reason, found = cell.skipped, Comparison([], [])
        if cell.redacted is not None:
            verdict, reason = "not_comparable", cell.redacted
        elif cell.skipped is None:
            record = await self._run(cell)
            compared = partial(_compared, cell, record, self._request.rules)
            long_reads = self._sessions.history.long_reads
            verdict, reason, found = await long_reads.read(self._caller, compared)
        return RerunCell(
            cell_id=cell.cell_id,
            verdict=verdict,
            of=cell.of,
            execution_id=None if record is None else record.id,
            reason=reason,
            differences=[
                RerunDifference(what=each.what, diff=each.diff) for each in found.differences
            ],
        )

    async def _run(self, cell: CellToRerun) -> ExecutionRecord:
        """Run a cell, in a new kernel if it had another one than the cell before."""
        if None not in (cell.incarnation, self._incarnation) and (
            cell.incarnation != self._incarnation
        ):
            await self._sessions.restart(self._session.id, self._caller)
        self._incarnation = cell.incarnation or self._incarnation
        execute = Execute(source=cell.source, timeout=self._request.timeout or cell.timeout, wait=0)
        submit = self._sessions.submission.execute
        record = await submit(self._session.id, execute, self._caller, None)
        while record.status not in FINAL_STATUSES:
            record = await self._sessions.execution(record.id, None)
        return record


def _entry(cell: RerunCell) -> tuple[list[CellRerun], list[Payload]]:
    """Return a cell's entry with its payload."""
    payloads = [Payload.of(msgspec.json.encode(cell.differences))] if cell.differences else []
    entry = CellRerun(
        at=timestamp(),
        by=SERVER,
        cell_id=cell.cell_id,
        verdict=cell.verdict,
        of=cell.of,
        execution_id=cell.execution_id,
        reason=cell.reason,
        differences=payloads[0].digest if payloads else None,
    )
    return [entry], payloads


def _compared(
    cell: CellToRerun, record: ExecutionRecord, rules: RerunRules
) -> tuple[RerunVerdict, str | None, Comparison]:
    """Return the verdict about a cell that ran again, with the reason and the differences."""
    found = compare(cell.outputs, record.outputs, rules, datetime.now(UTC))
    if record.status not in _RAN:
        return "failed", record.reason or f"It is {record.status} now.", found
    if cell.unclear is not None:
        return "not_comparable", cell.unclear, Comparison([], [])
    if record.status == "error" and not cell.raised:
        return "failed", None, found
    if found.differences:
        return "differs", None, found
    if not record.outputs_complete:
        return "not_comparable", "Its output now is not complete.", found
    if found.unclear:
        return "not_comparable", " ".join(found.unclear), found
    return "same", None, found


def _check(request: RunAgain) -> None:
    """Raise InvalidRequest if a request does not say what to run, or has a bad pattern."""
    if (request.session_id is None) == (request.notebook is None):
        raise InvalidRequest("Give one of session_id and notebook.", field="session_id")
    for index, pattern in enumerate(request.rules.ignore):
        try:
            re.compile(pattern, re.M)
        except re.error as error:
            raise InvalidRequest(
                f"rules.ignore[{index}]: not a regular expression: {error}.",
                field=f"rules.ignore[{index}]",
            ) from error
