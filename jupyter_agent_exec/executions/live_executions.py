"""The executions of one session that have not finished, and all that they share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec.structs import replace
from ulid import ULID

from ..auth.scopes import Caller
from ..journal.session_journal import SessionJournal
from ..kernels.execute_request import InputRequest
from ..kernels.kernel import Kernel
from ..kernels.trials.trial import TrialSettings
from ..models import Session, Undo
from ..records import ExecutionRecord, timestamp
from ..tasks import Tasks, call_on_loop, settle
from ..types import ApprovalMode, ExecutionId
from .execution import LiveExecution
from .observer import ExecutionObserver, Notice
from .rules import Rules
from .spec import ExecutionSpec


class Checkpoints(Protocol):
    """Keeps checkpoints of kernels, so that executions can be undone."""

    def takes(self, kernel: Kernel) -> bool:
        """Return whether a checkpoint is due before each execution in a kernel."""

    async def take(self, kernel: Kernel, execution: ExecutionId) -> None:
        """Make a checkpoint before an execution, whose session holds the turn on the kernel.

        If that is not possible, the execution runs without.
        """

    async def undo(self, id: str, caller: Caller) -> Undo:
        """Make a kernel as it was before an execution; raise UndoUnavailable if it cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerResources:
    """The resources that a server's sessions share."""

    rules: Rules
    trials: TrialSettings
    leftovers: Tasks
    """Tasks that may continue after their session has closed."""
    disk: Executor
    """Runs blocking writes that have no thread of their own."""
    log: logging.Logger
    read: Callable[[str], ExecutionRecord]
    """Reads a finished execution from the history; blocks on the disk."""
    observe: Callable[[Session], Sequence[ExecutionObserver]]
    """Returns the observers of a new session from outside, such as metrics and logs."""
    checkpoints: Checkpoints | None


class LiveExecutions:
    """The executions of one session that are not finished, in order, and their observers."""

    def __init__(
        self,
        session: Session,
        journal: SessionJournal,
        observers: Collection[ExecutionObserver],
        server: ServerResources,
    ) -> None:
        self.session = session
        """The session as it was opened; not updated."""
        self.journal = journal
        self.server = server
        self.tasks = Tasks(server.log)
        """The tasks of the session; closing it waits for them."""
        self.running: LiveExecution | None = None
        """The execution that was sent to the kernel and has not ended."""
        self.loop = asyncio.get_running_loop()
        self._observers = observers
        self._live: dict[ExecutionId, LiveExecution] = {}
        self.accepted_count = 0
        """The number of accepted executions."""
        self.last_seq = 0
        """The `seq` of the last execution. An execution that could not be recorded leaves a gap."""
        self.last_rejected: ExecutionRecord | None = None
        """The last execution, if it was rejected."""

    def __iter__(self) -> Iterator[LiveExecution]:
        return iter(list(self._live.values()))

    def __contains__(self, execution: object) -> bool:
        return execution in self._live.values()

    def __len__(self) -> int:
        return len(self._live)

    def get(self, id: ExecutionId) -> LiveExecution | None:
        """Return an execution; None if it has finished or belongs to another session."""
        return self._live.get(id)

    def add(
        self, spec: ExecutionSpec, mode: ApprovalMode, *, edits_cell: bool = False
    ) -> LiveExecution:
        """Add an execution that is about to be accepted; see its fields for the parameters."""
        self.accepted_count += 1
        self.last_seq += 1
        self.last_rejected = None
        execution = LiveExecution(
            spec=spec,
            id=ExecutionId(f"x_{ULID()}"),
            seq=self.last_seq,
            session=self.session,
            journal=self.journal,
            rules=self.server.rules,
            mode=mode,
            edits_cell=edits_cell,
            accepted_at=timestamp(),
        )
        self._live[execution.id] = execution
        self.notice("active")
        return execution

    def on_loop(self, call: Callable[..., None], *args: Any) -> None:
        """Schedule a call on the event loop, unless it is closed; can be called from any thread."""
        call_on_loop(self.loop, call, *args)

    def withdraw_input(self, execution: LiveExecution) -> None:
        """Refuse answers for an execution that is interrupted or whose kernel ends."""
        if execution.run is not None and execution.held_by is not None:
            execution.held_by.connection.withdraw_input(execution.run)
            self.input_ends(execution, execution.request)

    def input_ends(self, execution: LiveExecution, request: InputRequest | None) -> None:
        """Note that code waits for an input no more."""
        if request is not None and execution.request is request:
            execution.set_input(None, None)
            self.changed(execution)

    def forget(self, execution: LiveExecution, error: Exception) -> None:
        """Remove an execution whose acceptance could not be recorded."""
        self._live.pop(execution.id, None)
        self.accepted_count -= 1
        if execution.seq == self.last_seq:
            self.last_seq -= 1
        self.notice("active")
        settle(execution.accepted, error)
        execution.wake()

    @property
    def queued(self) -> int:
        """How many executions wait for their turn."""
        return len(self) - (self.running is not None and not self.running.finished.done())

    @property
    def needs_decision(self) -> bool:
        """Whether an execution awaits a user's approval."""
        return any(execution.awaits_approval for execution in self._live.values())

    @property
    def time_counts(self) -> bool:
        """Whether waiting time counts: agents are not paused, and nothing awaits approval."""
        return self.server.rules.paused is None and not self.needs_decision

    def accepted(self, execution: LiveExecution) -> None:
        """Notify observers and watchers that an execution's acceptance is on disk."""
        if not execution.accepted.done():
            execution.accepted.set_result(None)
            for observer in self._observers:
                observer.accepted(execution)
            execution.wake()

    def changed(self, execution: LiveExecution) -> None:
        """Notify observers and watchers that an execution changed."""
        for observer in self._observers:
            observer.changed(execution)
        execution.wake()

    def approval_changed(self, execution: LiveExecution) -> None:
        """Notify all that an execution now needs approval, or has it."""
        self.changed(execution)
        self.waits_changed()
        self.notice("approvals")

    def waits_changed(self) -> None:
        """Notify observers of executions whose reason for waiting changed; update the queue time.

        Queue time does not count while agents are paused, or while an execution of the session
        awaits approval.
        """
        for execution in self:
            if execution.queue_time is not None and execution.run is None:
                execution.queue_time.run(self.time_counts)
            waiting_for = execution.waiting_for
            if waiting_for != execution.published_waiting_for:
                execution.published_waiting_for = waiting_for
                self.changed(execution)

    def output_changed(self, execution: LiveExecution) -> None:
        """Notify observers and watchers that an execution has new output."""
        if not execution.finished.done():
            for observer in self._observers:
                observer.output_changed(execution)
        execution.wake()

    def finished(self, execution: LiveExecution, record: ExecutionRecord) -> None:
        """Notify observers and watchers that an execution's final status is on disk."""
        execution.become(replace(execution.state, phase="finished", status=record.status))
        self._live.pop(execution.id, None)
        if record.status == "rejected" and record.seq == self.last_seq:
            self.last_rejected = record
        self.notice("active")
        execution.finished.set_result(record)
        settle(execution.ended)
        for observer in self._observers:
            observer.finished(record)
        execution.wake()
        if record.approval is not None:
            self.notice("approvals")

    def late(self, id: ExecutionId) -> None:
        """Notify observers that the outputs of a finished execution changed."""
        for observer in self._observers:
            observer.late(id)

    def notice(self, what: Notice) -> None:
        """Notify observers of something that concerns the session."""
        for observer in self._observers:
            observer.noticed(what)
