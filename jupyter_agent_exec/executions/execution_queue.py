"""The way of an execution through a session's kernel: accepted, its turn, dispatched, finished.

A session has a queue of its own, and its first asks for its turn on the kernel, which other
sessions and people may be using. What happens there is told by `in_kernel.py`. All of this runs on
the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from ulid import ULID

from ..errors import AgentExecError, HistoryUnavailable, KernelWaitsForItself
from ..journal.session import SessionJournal
from ..kernels.inspection import AT_AGENTS_CODE, subshell_of
from ..kernels.kernel import Death, Kernel, KernelSource
from ..kernels.kernel_queue import Asker, Turn, Turns
from ..models import Session, WaitingFor
from ..records import By, ExecutionRecord, timestamp
from ..tasks import Tasks, first_of, settle
from ..types import Digest, ExecutionId, Status
from .approval_gate import Asking
from .execution import LiveExecution
from .incarnations import Incarnations, KernelChanges
from .limits import Bounds
from .permission import Permit, Rules
from .queue_waits import Waiting
from .recorder import Recorder
from .runner import Ending, InKernel, Told, ahead_of
from .steps import number

KERNEL = WaitingFor(who="kernel", agent=None, execution_id=None, since=None)
"""What is waited for while there is no kernel, or nobody knows what it does."""

NOT_RUN: Ending = (
    "cancelled",
    "It was not run: something failed in the server that should not have; its log says what.",
)
BROKEN_OFF: Ending = (
    "lost",
    "Something failed in the server that should not have, and its end is not known; the server's "
    "log says what. Look what it did before you run it again.",
)
"""What is told of executions that were kept from their end."""


class Lane:
    """Brings the executions of one session through its kernel, one after the other.

    Parameters
    ----------
    notebook
        Of the session's notebook; None if its target is none.
    path
        Returns the contents path of the session's notebook now; None if its target is none.
    born
        Called with each kernel before anything else may run in it.
    died
        Called after a kernel ended by itself, or by somebody else's doing.
    changed
        Called when a live execution changed.
    late
        Called when outputs of a finished execution changed.
    asking_changed
        Called when another set of executions asks for approval.
    kernel_changed
        Called when the kernel is gone.
    person_ran
        Called when it is recorded that a person ran something in the kernel.
    stirred
        Called whenever something begins or ends here.
    tasks
        Of the session, which waits for them when it closes.
    leftovers
        Of the server: what may go on after the session has closed.
    disk
        Where blocking writes go that have no thread of their own.
    """

    def __init__(
        self,
        session: Session,
        journal: SessionJournal,
        kernels: KernelSource,
        *,
        notebook: KernelChanges | None,
        bounds: Bounds,
        rules: Rules,
        permit: Permit,
        path: Callable[[], str | None],
        born: Callable[[Kernel], Awaitable[None]],
        died: Callable[[Kernel, Death], Awaitable[None]],
        changed: Callable[[LiveExecution], None],
        late: Callable[[ExecutionId], None],
        asking_changed: Callable[[], None],
        kernel_changed: Callable[[], None],
        person_ran: Callable[[], None],
        stirred: Callable[[], None],
        tasks: Tasks,
        leftovers: Tasks,
        disk: Executor,
        log: logging.Logger,
    ) -> None:
        self._session = session
        self._journal = journal
        self._bounds = bounds
        self._permit = permit
        self._path = path
        self._changed = changed
        self._asking_changed = asking_changed
        self._stirred = stirred
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._queue = Turns()
        self.recorder = Recorder(
            journal,
            finished=self._finished,
            late=late,
            person_ran=person_ran,
            disk=disk,
            log=log,
        )
        self.incarnations = Incarnations(
            kernels,
            notebook=notebook,
            write=self.recorder.write,
            note=self.recorder.record,
            born=born,
            died=died,
        )
        self.in_kernel = InKernel(
            journal,
            self.incarnations,
            self.recorder,
            bounds=bounds,
            told=Told(
                changed=self._tell_of,
                waiting=lambda: self.waiting.look(),
                shut_down=self._shut_down,
                gone=kernel_changed,
            ),
            allow_stdin=session.allow_stdin,
            tasks=tasks,
            leftovers=leftovers,
            disk=disk,
        )
        self.accepted = 0
        """How many executions were accepted."""
        self.last_seq = 0
        """Of the last execution; others may lack before it whose acceptance the disk refused."""
        self.live: dict[ExecutionId, LiveExecution] = {}
        """Those that are not finished, in order."""
        self.asking = Asking(
            session,
            rules,
            permit,
            self.incarnations,
            live=self.live,
            write=self.recorder.write_all,
            give_up=self.give_up,
            changed=self._asks_otherwise,
            tasks=tasks,
        )
        self.waiting = Waiting(
            self.live,
            self.asking,
            self.in_kernel,
            changed=self._tell_of,
            give_up=self.give_up,
            tasks=tasks,
        )
        self.last_rejected: ExecutionRecord | None = None
        """The last execution, if it was rejected."""
        self.nests_in: Kernel | None = None
        """The kernel in which what runs first is nested: a cell there opened the session."""

    @property
    def running(self) -> LiveExecution | None:
        """What was sent to the kernel and has not ended."""
        return self.in_kernel.execution

    @property
    def queued(self) -> int:
        """How many executions wait for their turn."""
        return sum(execution is not self.running for execution in self.live.values())

    def take(self, source: str, *, by: By, **asked: Any) -> LiveExecution:
        """Take an execution on its way; its `accepted` tells when it is on disk."""
        execution = self._new_execution(source, by=by, **asked)
        self._set_out(execution)
        return execution

    def take_steps(
        self,
        asked: Sequence[Mapping[str, Any]],
        *,
        by: By,
        stop_on_error: bool,
        idempotency_key: str | None,
        body_sha256: Digest | None,
    ) -> list[LiveExecution]:
        """Take executions on their way, with nothing in between; all are accepted or none.

        The first has the key.
        """
        executions: list[LiveExecution] = []
        for each in asked:
            key, body = (None, None) if executions else (idempotency_key, body_sha256)
            executions.append(
                self._new_execution(by=by, idempotency_key=key, body_sha256=body, **each)
            )
        number(executions, stop_on_error=stop_on_error, give_up=self.give_up)
        if len(executions) == 1:
            self._set_out(executions[0])
        else:
            places = [self._in_line(execution) for execution in executions]
            name = f"executions {executions[0].id} ff"
            self._tasks.start(self._carry_all(executions, places), name)
        return executions

    async def run_first(self, source: str, kernel: Kernel, by: By) -> ExecutionRecord:
        """Run a session's init source, before anything else of the session's, in a kernel."""
        execution = self._new_execution(
            source,
            by=by,
            init=True,
            timeout=self._bounds.timeout,
            queue_timeout=self._bounds.queue_timeout,
            max_output_bytes=self._bounds.max_output_bytes,
            idempotency_key=None,
            body_sha256=None,
            placement=None,
            place=None,
            nested=kernel is self.nests_in,
        )
        try:
            await self._carry_first(execution, kernel)
        except HistoryUnavailable:
            raise
        except Exception as error:
            await self._break_off(execution, error)
            raise
        return await execution.finished

    def give_up(self, execution: LiveExecution, status: Status, reason: str) -> None:
        """End an execution that was not sent yet."""
        if execution is not self.running and not execution.given_up.done():
            execution.ending = (status, reason)
            self.asking.withdraw(execution)
            execution.given_up.set_result(None)

    def _shut_down(self, message: str) -> None:
        """Take back what waits: the person who shut the kernel down wants no more of it now."""
        for execution in list(self.live.values()):
            self.give_up(execution, "cancelled", f"It was not run. {message}")

    # -- on its way --------------------------------------------------------------------------------

    def _new_execution(
        self, source: str, *, by: By, init: bool = False, **asked: Any
    ) -> LiveExecution:
        self.accepted += 1
        self.last_seq += 1
        self.last_rejected = None
        execution = LiveExecution(
            id=ExecutionId(f"x_{ULID()}"),
            session_id=self._session.id,
            seq=self.last_seq,
            source=source,
            init=init,
            agent=self._session.agent,
            username=self._session.username,
            token=self._session.token,
            by=by,
            accepted_at=timestamp(),
            head=lambda: self._journal.head,
            mode=self.asking.mode,
            permitted=self.asking.may_run,
            pausing=lambda: self.asking.pausing,
            **asked,
        )
        self.live[execution.id] = execution
        self._stirred()
        return execution

    def _in_line(self, execution: LiveExecution) -> Turn:
        """Have an execution queue up behind the session's others."""
        place = self._queue.ask(self._asker(execution))
        execution.ahead = lambda: self._queue.ahead_of(place) or KERNEL
        return place

    def _set_out(self, execution: LiveExecution) -> None:
        """Have an execution go on its way by itself: at once, if nothing stands before it."""
        place = self._in_line(execution)
        goes = place.done() and self._goes(execution)
        kernel = self.incarnations.ready if goes else None
        turn = self._turn_at_once(execution, kernel)
        if kernel is not None and turn is not None:
            sent = self.in_kernel.send(execution, kernel, turn, accept=True)
            carry = self._carry_at_once(execution, kernel, sent, turn)
        else:
            carry = self._carry(execution, place)
        self._start(execution, place, carry)

    def _start(
        self, execution: LiveExecution, place: Turn, carry: Coroutine[Any, Any, None]
    ) -> None:
        self._tasks.start(self._carry_safely(execution, place, carry), f"execution {execution.id}")

    async def _carry_safely(
        self, execution: LiveExecution, place: Turn, carry: Coroutine[Any, Any, None]
    ) -> None:
        """Stay with an execution: whatever fails, it ends, and the session's next goes on."""
        try:
            await carry
        except Exception as error:
            await self._break_off(execution, error)
            raise  # the owner of the task logs it
        finally:
            self._left(place)

    async def _break_off(self, execution: LiveExecution, error: Exception) -> None:
        """End an execution that something unforeseen kept from its end, as truly as is known."""
        if execution.started_at is not None:
            settle(execution.accepted)  # it is on disk together with the dispatch
        if not execution.accepted.done():
            self._forget(execution, error)
        if execution.finished.done() or execution.refused:
            return
        is_sent = execution.run is not None and execution.run.is_sent
        execution.ending = BROKEN_OFF if is_sent else NOT_RUN
        self.asking.withdraw(execution)
        settle(execution.given_up)
        await self.recorder.unrun(execution)

    async def _carry_first(self, execution: LiveExecution, kernel: Kernel) -> None:
        """Bring a session's init source from its acceptance to its end."""
        turn = self._turn_at_once(execution, kernel if self._goes(execution) else None)
        try:
            if turn is not None:
                sent = self.in_kernel.send(execution, kernel, turn, accept=True)
                await self.in_kernel.follow(execution, kernel, sent, turn)
                return
            await self._accept(execution)
        except HistoryUnavailable as error:
            self._forget(execution, error)
            raise
        try:
            await self._carry_in(execution, kernel)
        except HistoryUnavailable as error:
            self.give_up(execution, "cancelled", f"It was not run: {error.message}")
        finally:
            self.asking.init_held.clear()
        if not execution.finished.done():
            self.give_up(execution, "cancelled", "Its kernel ended before it ran.")
            await self.recorder.unrun(execution)

    async def _carry_all(self, executions: Sequence[LiveExecution], places: Sequence[Turn]) -> None:
        """Bring executions that are asked for at once from their acceptance to their end."""
        try:
            await self._accept(*executions)
        except Exception as error:
            for execution, place in zip(reversed(executions), reversed(places), strict=True):
                self._queue.leave(place)
                await self._break_off(execution, error)
            if isinstance(error, HistoryUnavailable):
                return
            raise  # the owner of the task logs it
        for execution, place in zip(executions, places, strict=True):
            self._start(execution, place, self._carry_accepted(execution, place))

    async def _carry(self, execution: LiveExecution, place: Turn) -> None:
        """Bring an execution from its acceptance to its end."""
        kernel = await self.incarnations.confirmed() if place.done() else None
        goes = self._goes(execution) and not execution.given_up.done()
        turn = self._turn_at_once(execution, kernel if goes else None)
        if kernel is not None and turn is not None:
            sent = self.in_kernel.send(execution, kernel, turn, accept=True)
            await self._carry_at_once(execution, kernel, sent, turn)
            return
        try:
            await self._accept(execution)
        except HistoryUnavailable as error:
            self._forget(execution, error)
            return
        await self._carry_accepted(execution, place)

    async def _carry_accepted(self, execution: LiveExecution, place: Turn) -> None:
        """Bring an execution whose acceptance is on disk to its end."""
        queue_time = self.waiting.count(execution)
        try:
            if await self._until(place, execution):
                await self._carry_in(execution)
        except AgentExecError as error:
            self.give_up(execution, "cancelled", f"It was not run: {error.message}")
        finally:
            queue_time.end()
            if execution.given_up.done() and not execution.finished.done():
                await self.recorder.unrun(execution)

    async def _carry_at_once(
        self,
        execution: LiveExecution,
        kernel: Kernel,
        sent: asyncio.Future[None],
        turn: Turn,
    ) -> None:
        """Stay with an execution whose acceptance goes to disk together with its dispatch."""
        queue_time = self.waiting.count(execution)
        try:
            await self.in_kernel.follow(execution, kernel, sent, turn)
        except HistoryUnavailable as error:
            self._forget(execution, error)
        finally:
            queue_time.end()

    async def _carry_in(self, execution: LiveExecution, only: Kernel | None = None) -> None:
        """Bring an execution through the kernel, after all that others have queued before.

        Parameters
        ----------
        only
            The one kernel that it is for; by default it goes on with the next when one ends.
        """
        gone = () if only is None else (only.connection.disconnected,)
        while await self.asking.until_it_goes(execution, *gone):
            execution.ahead = lambda: KERNEL
            kernel = only or await self.incarnations.fresh_unless(execution.given_up, self._tasks)
            if kernel is None:
                return
            if not self.asking.goes(execution):
                continue  # it is another life, or agents were paused meanwhile
            await self._nest(execution, kernel)
            turn = kernel.turns.ask(self._asker(execution), nested=execution.subshell is not None)
            execution.ahead = partial(ahead_of, kernel, turn)
            self.waiting.look()
            try:
                granted = await self._until(turn, execution)
                await self._permit.look()
                is_right = only is not None or await self.incarnations.confirmed() is kernel
            except Exception:
                kernel.turns.leave(turn)  # others wait for it too
                raise
            is_right = is_right and not turn.cancelled() and self.asking.goes(execution)
            self._check_permit(execution)
            if granted and is_right and not execution.given_up.done():
                sent = self.in_kernel.send(execution, kernel, turn, accept=False)
                await self.in_kernel.follow(execution, kernel, sent, turn)
                return
            kernel.turns.leave(turn)
            if only is not None and turn.cancelled():
                return
            if turn.cancelled() or kernel.is_ending:
                await self.incarnations.end_of(kernel)

    async def _nest(self, execution: LiveExecution, kernel: Kernel) -> None:
        """Have an execution run beside the cell that waits for it, if that still runs.

        Raises
        ------
        KernelWaitsForItself
            It cannot, and each would wait for the other.
        """
        execution.subshell = None
        if execution.nested and kernel.connection.quiet is None:
            if not kernel.turns.admits_nested:
                raise KernelWaitsForItself(AT_AGENTS_CODE, kernel_id=kernel.id)
            execution.subshell = await subshell_of(kernel)

    def _goes(self, execution: LiveExecution) -> bool:
        """Tell whether people let an execution run now, and nothing stands against it."""
        return self.asking.goes(execution) and self._permit.refusal(self._path()) is None

    def _check_permit(self, execution: LiveExecution) -> None:
        """Give an execution up whose session may send nothing to its kernel any more."""
        refusal = self._permit.refusal(self._path())
        if refusal is not None:
            self.give_up(execution, "cancelled", f"It was not run: {refusal}")

    def _turn_at_once(self, execution: LiveExecution, kernel: Kernel | None) -> Turn | None:
        """Return a turn on a kernel that nobody uses; None if it has to be waited for."""
        if kernel is None or not kernel.turns.free:
            return None
        turn = kernel.turns.ask(self._asker(execution))
        if turn.done() and not turn.cancelled():
            return turn
        kernel.turns.leave(turn)
        return None

    async def _accept(self, *executions: LiveExecution) -> None:
        """Have them on disk, all or none, before anybody is told."""
        await self.asking.accept(*executions)
        for execution in executions:
            settle(execution.accepted)
        for execution in executions:
            if execution.asks:
                self._asks_otherwise(execution)
            else:
                self._tell_of(execution)

    def _forget(self, execution: LiveExecution, error: Exception) -> None:
        """Drop an execution that could not be recorded; whoever asked for it is told."""
        self.live.pop(execution.id, None)
        self.accepted -= 1
        if execution.seq == self.last_seq:
            self.last_seq -= 1
        settle(execution.accepted, error)
        execution.tell()

    async def _until(self, turn: Turn, execution: LiveExecution) -> bool:
        """Wait for a turn; False when the execution was given up instead."""
        await first_of(turn, execution.given_up)
        return not execution.given_up.done()

    def _left(self, place: Turn) -> None:
        """Let the session's next go on."""
        self._queue.leave(place)
        self._stirred()
        self.waiting.look()

    def _finished(self, execution: LiveExecution, record: ExecutionRecord) -> None:
        """Show an execution as finished; its final status is on disk."""
        execution.status = record.status
        self.live.pop(execution.id, None)
        if record.status == "rejected" and record.seq == self.last_seq:
            self.last_rejected = record
        self._stirred()
        execution.finished.set_result(record)
        self._tell_of(execution)
        if record.approval is not None:
            self._asking_changed()

    def _asks_otherwise(self, execution: LiveExecution) -> None:
        self._tell_of(execution)
        self.waiting.look()
        self._asking_changed()

    def _tell_of(self, execution: LiveExecution) -> None:
        execution.tell()
        self._changed(execution)

    # -- helpers -----------------------------------------------------------------------------------

    def _asker(self, execution: LiveExecution) -> Asker:
        return Asker(self._session.agent.name, execution.id)
