"""One open agent session: its executions, its kernel, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..errors import (
    AlreadyFinished,
    HistoryUnavailable,
    KernelNotOwned,
    SessionClosed,
)
from ..executions.execution import LiveExecution
from ..executions.limits import SessionLimits
from ..executions.live_executions import LiveExecutions, ServerResources
from ..executions.observer import ExecutionCells, ExecutionObserver, Notice
from ..executions.rules import Permit
from ..executions.spec import ExecutionSpec, Place
from ..executions.worker import Worker
from ..journal.session_journal import SessionJournal
from ..kernels.channels import KernelDeath
from ..kernels.kernel import Kernel, KernelSource
from ..models import (
    Comment,
    DecidedEdit,
    Execute,
    ScratchTarget,
    Session,
    derive,
)
from ..records import (
    SERVER,
    By,
    Closed,
    Entry,
    ExecutionRecord,
    NotebookCreated,
    NotebookMoved,
    Payload,
    timestamp,
)
from ..tasks import call_later_apart, first_of
from ..types import CloseReason, ExecutionId, SessionStatus, Status
from .activity import Action, Activity
from .notebook_kernels import AttachedNotebook

NOT_OWNED = (
    "The kernel is a person's, and only a person may restart it: ask them to, or open a session "
    "with a scratch kernel."
)

SOMEBODY = By(kind="person")
"""An unknown user of JupyterLab."""

END_TIMEOUT: Final = 5.0
"""Seconds to wait, beyond the grace time of an interrupt, until all executions are recorded."""

CLOSE_REASONS: Final[dict[str, str]] = {
    "closed": "The session was closed.",
    "idle": "It was not used for a long time.",
    "init_failed": "It could not be opened, or what runs first in its kernel failed.",
    "server_stopped": "The server stopped.",
    "server_died": "The server died.",
    "token_revoked": "The agent's token was revoked.",
    "token_expired": "The agent's token has expired.",
}
"""Why a session closed, as a sentence."""


class LiveSession(ExecutionObserver):
    """An open agent session."""

    def __init__(
        self,
        record: Session,
        journal: SessionJournal,
        kernels: KernelSource,
        *,
        bounds: SessionLimits,
        permit: Permit,
        first_sources: Mapping[str, str],
        make_cells: Callable[[LiveSession], ExecutionCells],
        activity: Activity,
        resources: ServerResources,
    ) -> None:
        self.id: Final = record.id
        """The session's id."""
        self.token_id: Final = None if record.token is None else record.token.id
        """The agent token with which it was opened."""
        self.agent_name: Final = record.agent.name
        """Name of its agent."""
        self.first_sources: Final = len(first_sources)
        """How many sources run first in each of its kernels."""
        self._is_scratch = isinstance(record.target, ScratchTarget)
        self._record = record
        self._journal = journal
        self.bounds: Final = bounds
        """Its limits."""
        self._activity = activity
        self._resources = resources
        self._loop = asyncio.get_running_loop()
        self._closing = False
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when it has closed."""
        self._idle_timer: asyncio.TimerHandle | None = None
        self.source: Final = kernels
        """Where its kernels come from."""
        self._notebook = kernels if isinstance(kernels, AttachedNotebook) else None
        self._active_at = datetime.now(UTC)
        self._last_used = self._loop.time()
        self.proposed = 0
        """How many of its proposed edits are open."""
        self.restored = False
        """Whether code of an earlier kernel ran again in its kernel, unknown to its agent."""
        self.decided_edits: list[DecidedEdit] = []
        """What became of its proposed edits, as far as its agent does not know."""
        self._comments: dict[ExecutionId, Comment] = {}
        self.is_unwanted = False
        """Whether the notebook that was created for it goes when it is closed."""
        self._outside = resources.observe(record)
        self.cells = ExecutionCells()
        if self._notebook is not None:
            self._notebook.on_moved = self._moved
            self.cells = make_cells(self)
        self._worker = Worker(
            record,
            journal,
            kernels,
            limits=bounds,
            permit=permit,
            first_sources=first_sources,
            observers=[*([] if self._notebook is None else [self.cells]), self, *self._outside],
            server=resources,
        )
        self._tasks = self._worker.tasks
        self._recorder = self._worker.recorder
        self.gate: Final = self._worker.gate
        """Decides which of its executions need approval."""
        self.control: Final = self._worker.control
        """Interrupts its code, and answers its input requests."""
        self.environment: Final = self._worker.environment
        """What the code in its kernels runs in."""
        self.unfinished: Final[LiveExecutions] = self._worker
        """The executions that wait or run."""

    # -- state -------------------------------------------------------------------------------------

    @property
    def path(self) -> str | None:
        """The current contents path of its notebook; None if its target is not a notebook."""
        return self.source.path

    @property
    def is_open(self) -> bool:
        """Whether it accepts new work: it is neither closed nor about to close."""
        return not self._closing

    @property
    def kernel(self) -> Kernel | None:
        """The current kernel; None while there is none."""
        return self._worker.kernels.current

    def record(self) -> Session:
        """Return the current state of the session."""
        return replace(
            self._record,
            path=self.path,
            kernel=self._worker.kernels.model(),
            executions=self.unfinished.accepted_count,
            last_activity_at=timestamp(self._active_at),
            approval=self.gate.mode,
            next_approval=self.gate.next_approval,
            grant=None if (grant := self.gate.grant) is None else grant.model(),
            asking=sum(1 for _ in self.gate.awaiting_approval()),
            behind=self.gate.behind,
            proposed=self.proposed,
            chain=self._journal.file.signed_head,
        )

    def take_decided_edits(self) -> list[DecidedEdit]:
        """Return what became of its proposed edits since the last call."""
        decided, self.decided_edits = self.decided_edits, []
        return decided

    def reviewed(self, record: ExecutionRecord) -> None:
        """Keep a user's comment on an execution for its agent; the last one counts."""
        self._comments.pop(record.id, None)
        review = record.review
        if review is not None and review.comment is not None:
            self._comments[record.id] = derive(
                Comment, review, execution_id=record.id, seq=record.seq
            )

    def take_comments(self) -> list[Comment]:
        """Return what users wrote about its executions since the last call."""
        comments, self._comments = self._comments, {}
        return list(comments.values())

    def execution_record(self, execution: LiveExecution) -> ExecutionRecord:
        """Return the current state of an execution."""
        if execution.finished.done():
            return self.cells.with_document(execution.finished.result())
        record = replace(execution.standing(), outputs=execution.outputs())
        return self.cells.with_document(record)

    async def recorded(self, execution_id: ExecutionId) -> ExecutionRecord:
        """Return a finished execution as it is in the history."""
        read = partial(self._resources.read, execution_id)
        return await self._loop.run_in_executor(self._resources.disk, read)

    # -- run ---------------------------------------------------------------------------------------

    async def find_place(self, request: Execute) -> Place | None:
        """Check that a request can run; return the place of its cell, None if it has none.

        Raises
        ------
        SessionClosed, InvalidRequest, CellNotFound, DocumentChanged, LanguageNotSupported,
        TrialUnavailable
            Nothing may run.
        """
        self._check_open()
        self._worker.check(request)
        return None if request.trial else await self.cells.place(request)

    def submit(
        self, specs: Sequence[ExecutionSpec], *, stop_on_error: bool | None
    ) -> list[LiveExecution]:
        """Queue executions; parameters and errors are those of `Worker.submit`.

        Raises
        ------
        SessionClosed
            Nothing was accepted.
        """
        self._check_open()
        return self._worker.submit(specs, stop_on_error=stop_on_error)

    # -- control -----------------------------------------------------------------------------------

    async def open(self, kernel: Kernel, by: By, host_kernels: Mapping[str, str]) -> None:
        """Begin with a kernel, and run the init source in it.

        In a kernel that others use too, the source waits for its turn, for a limited time.

        Parameters
        ----------
        host_kernels
            The kernels of the program that opens it; see `check_not_waiting`.

        Raises
        ------
        InitFailed, KernelWaitsForItself
            The init source failed or cannot run. The caller must still close the session.
        """
        if self.first_sources:
            await kernel.check_not_waiting(host_kernels)
        self.publish("opened", status="open")
        for observer in self._outside:
            observer.opened()
        if self._notebook is not None and self._notebook.created:
            created = NotebookCreated(at=timestamp(), by=by, path=self._notebook.path)
            await self._recorder.record(created)
        await self._worker.begin(kernel)
        self.active()

    async def check_not_waiting(self, host_kernels: Mapping[str, str]) -> None:
        """Raise KernelWaitsForItself if code submitted by a program would wait for the program."""
        if self.kernel is not None:
            await self.kernel.check_not_waiting(host_kernels)

    async def interrupt(self, by: By, *, queued: bool) -> None:
        """Interrupt the running execution, and cancel those that await approval.

        In a kernel that others use too, all waiting executions are cancelled, because a user who
        stops an agent there wants it to run nothing more; in a scratch kernel if `queued`.
        """
        self._check_open()
        reason = f"Interrupted by {self._named(by)}."
        for execution in self.unfinished:
            if queued or execution.awaits_approval or not self._is_scratch:
                execution.withdraw("cancelled", f"{reason} It was not run.")
        if (running := self.unfinished.running) is not None:
            await self.control.interrupt(running, reason, "asked", by)

    async def cancel(self, execution: LiveExecution, by: By) -> None:
        """Cancel an execution that waits, or interrupt it if it runs."""
        reason = f"Cancelled by {self._named(by)}."
        if execution is self.unfinished.running:
            await self.control.interrupt(execution, reason, "cancelled", by)
        elif not execution.finished.done():
            execution.withdraw("cancelled", reason)
        else:
            raise AlreadyFinished("The execution has finished.", execution_id=execution.id)

    def _named(self, by: By) -> str:
        """Return who did something to this session, for users and language models."""
        is_own = by.token_id is not None and by.token_id == self.token_id
        return "the agent itself" if is_own else by.said

    async def restart(self, by: By) -> None:
        """Give the session a fresh kernel; the next execution reports that variables were lost.

        Raises
        ------
        KernelNotOwned
            The kernel belongs to a user.
        """
        self._check_open()
        if not self._is_scratch:
            raise KernelNotOwned(NOT_OWNED)
        why = f"The kernel was restarted by {self._named(by)}."
        await self._worker.kernels.end(KernelDeath("restarted", why), by)
        await self._worker.begin()
        self.active()

    async def run_out(self, why: str) -> None:
        """Cancel waiting executions, and wait for the end of the running one, or its session's."""
        running = self.unfinished.running
        for execution in self.unfinished:
            execution.withdraw("cancelled", f"It was not run: {why}")
        if running is not None:
            await first_of(running.finished, self.ended)

    async def close(self, reason: CloseReason, by: By) -> None:
        """Refuse new work, end and record all executions, and release the kernel. Idempotent."""
        if not self._closing:
            self._closing = True
            why = CLOSE_REASONS[reason]
            for execution in self.unfinished:
                execution.withdraw("cancelled", why)
            self._tasks.start(self._close(reason, why, by), f"close {self.id}")
        await asyncio.shield(self.ended)

    async def _close(self, reason: CloseReason, why: str, by: By) -> None:
        try:
            await self._end(reason, why, by)
        except Exception:
            self._resources.log.exception("%s was not closed as it should be", self.id)
        finally:
            self.publish("closed", status="closed")
            for observer in self._outside:
                observer.closed(reason)
            self.ended.set_result(None)

    async def _end(self, reason: CloseReason, why: str, by: By) -> None:
        self.active()
        grace = self.bounds.interrupt_grace
        if (running := self.unfinished.running) is not None and not running.is_behind:
            await self.control.interrupt(running, why, "closing", by)
            await asyncio.wait({running.finished}, timeout=grace)
        await self.environment.settled()
        await self._worker.kernels.leave(why, by)
        await self._tasks.end(timeout=grace + END_TIMEOUT)
        if self._worker.kernels.current is not None:  # it had just been started
            await self._worker.kernels.leave(why, by)
            await self._tasks.end(timeout=END_TIMEOUT)
        await self.cells.close()
        await self.source.release()
        notebook = self._notebook if self.is_unwanted else None
        is_removed = notebook is not None and await notebook.discard()
        closed = Closed(at=timestamp(), by=by, reason=reason, notebook_removed=is_removed)
        try:
            await self._loop.run_in_executor(self._resources.disk, self._journal.close, closed)
        except HistoryUnavailable as error:
            self._resources.log.error("%s: its end is not recorded: %s", self.id, error.message)
        self._recorder.stop()

    # -- events ------------------------------------------------------------------------------------

    def publish(
        self,
        action: Action,
        execution_id: ExecutionId | None = None,
        *,
        status: SessionStatus | Status | None = None,
        seq: int | None = None,
    ) -> None:
        """Publish a change of the session, its kernel, its notebook, or one of its executions."""
        length = self._journal.file.head.length
        self._activity.publish(action, self.id, execution_id, length=length, status=status, seq=seq)

    def _moved(self, before: str, path: str) -> None:
        """Record that the notebook has moved."""
        entry = NotebookMoved(at=timestamp(), by=SOMEBODY, path=path, before=before)

        async def note() -> None:
            await self._recorder.record(entry)
            self.publish("notebook")

        if self.is_open:
            self._tasks.start(note(), f"notebook of {self.id} moved")

    def touch(self) -> None:
        """Record that somebody uses the session now."""
        self._last_used = self._loop.time()

    def idle_for(self) -> float:
        """Return for how many seconds it has been unused; 0 while something keeps it open.

        A waiting or running execution keeps it open, and so does a kernel of its own. A kernel that
        others use too does not, because that kernel continues without the session.
        """
        if self.unfinished or (self._is_scratch and self.kernel is not None):
            return 0
        return self._loop.time() - self._last_used

    async def write(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Record an event before it happens; raise HistoryUnavailable if that fails."""
        await self._recorder.write([entry], payloads)

    async def pause_changed(self, entry: Entry) -> None:
        """Record that all agents were paused or resumed, and apply it."""
        self.unfinished.waits_changed()
        for execution in self.unfinished:
            self.unfinished.output_changed(execution)  # no cell is written in a pause
        await self._recorder.record(entry)
        self.publish("session")

    async def note(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Record a past event. If it cannot be written now, the entry is kept in memory."""
        self.cells.noted(entry)
        await self._recorder.record(entry, payloads)
        self.publish("notebook")

    def document_changed(self, execution_id: ExecutionId) -> None:
        """Publish that the `document` of an execution changed."""
        execution = self.unfinished.get(execution_id)
        if execution is None:
            self.publish("execution", execution_id)
        else:
            execution.wake()
            self.changed(execution)

    # -- as the observer of its executions ---------------------------------------------------------

    def accepted(self, execution: LiveExecution) -> None:
        """Publish that an execution was accepted."""
        self.changed(execution)

    def changed(self, execution: LiveExecution) -> None:
        """Publish that an execution changed."""
        self.publish("execution", execution.id, status=execution.status, seq=execution.seq)

    def finished(self, record: ExecutionRecord) -> None:
        """Publish that an execution has finished."""
        self.publish("execution", record.id, status=record.status, seq=record.seq)

    def late(self, execution_id: ExecutionId) -> None:
        """Publish that the outputs of a finished execution changed."""
        self.publish("execution", execution_id)

    def noticed(self, what: Notice) -> None:
        """Publish what was noticed in the session; its activity only counts."""
        if what == "active":
            self.active()
        elif what == "approvals":
            self._activity.publish("approvals")
        else:
            self.publish(what)

    def active(self) -> None:
        """Record activity, and restart the idle timeout after which the kernel is culled."""
        self._active_at = datetime.now(UTC)
        self.touch()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        may_idle = self._is_scratch and not self.unfinished and self.is_open
        if self.bounds.idle_timeout and may_idle:
            self._idle_timer = call_later_apart(self.bounds.idle_timeout, self._cull)

    def _cull(self) -> None:
        if not self.unfinished and self.kernel is not None:
            why = f"The kernel was shut down after {self.bounds.idle_timeout:g} idle seconds."
            ends = self._worker.kernels.end(KernelDeath("culled", why), SERVER)
            self._tasks.start(ends, f"cull {self.id}")

    def _check_open(self) -> None:
        if not self.is_open:
            raise SessionClosed("The session is closed; open another.", session_id=self.id)
