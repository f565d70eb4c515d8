"""Records how executions ended, and only then makes it visible to others.

An entry that cannot be written is kept in memory and written when the disk allows it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import HistoryUnavailable
from ..journal.blobs import pack_outputs
from ..kernels.displays import DisplayUpdate
from ..kernels.execute_request import ExecuteOutcome
from ..kernels.outputs import Late
from ..kernels.person_executions import PersonExecution
from ..kernels.widget_models import WidgetStates
from ..models import Value
from ..records import (
    SERVER,
    By,
    Dispatched,
    DisplayUpdated,
    Entry,
    ExecutionRecord,
    Finished,
    JournalEntry,
    LateOutput,
    Payload,
    PersonRan,
    timestamp,
)
from ..tasks import start_apart
from ..text.widgets import shown_model
from ..types import ExecutionId, Output
from .execution import LiveExecution
from .live_executions import LiveExecutions
from .state import final_status

NOT_APPROVED = (
    "A person was asked to approve the source, and was not shown the expressions: so they are not "
    "evaluated. Ask for them with an execution that needs no approval, or print them."
)

RECORD_DELETED = "The session's record was deleted while this ran, so this is not recorded."

_NO_WIDGETS = WidgetStates({}, [], 0, 0, {})

RETRY_DELAY = 1.0
"""Seconds until a failed write is retried."""


class Recorder:
    """Writes entries to a session's journal; methods that are not async may run in any thread."""

    def __init__(self, executions: LiveExecutions) -> None:
        self._executions = executions
        self._journal = executions.journal
        self.own: set[ExecutionId] = set()
        """The ids of the session's executions that were sent to a kernel.

        A shared connection also carries output of other sessions. Output that names an execution
        that was not sent comes from somebody else's code.
        """
        self._shown_widgets: set[str] = set()
        """The models that the session's outputs show; only in the kernel's thread."""
        self._known_widgets: dict[str, tuple[int, int]] = {}
        self._disk = executions.server.disk
        self._log = executions.server.log
        self._loop = executions.loop
        self._unrun: list[LiveExecution] = []  # ends that wait for the next write
        self._writing_unrun = asyncio.Lock()
        self._unwritten: list[tuple[LiveExecution, ExecutionRecord]] = []
        self._unwritten_entries: list[Entry] = []  # of which `_notify` tells when they are written
        self._retry: asyncio.Task[None] | None = None
        self._stopped: asyncio.Future[None] = self._loop.create_future()

    async def write(self, entries: Sequence[Entry], payloads: Sequence[Payload] = ()) -> None:
        """Write all entries before their events happen, or none and raise HistoryUnavailable."""
        await self._in_disk_thread(partial(self._journal.append, entries, payloads))

    async def record(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Write an entry about a past event; keep it in memory if it cannot be written now."""
        await self._in_disk_thread(partial(self.note, [entry], payloads))

    async def unrun(self, execution: LiveExecution) -> None:
        """Write the end of an execution that did not run, or whose outcome is unknown.

        Return when it is on disk, or kept in memory. Ends that come during a write are the next
        write together.
        """
        self._unrun.append(execution)
        async with self._writing_unrun:
            unrun, self._unrun = self._unrun, []
            if unrun:
                await self._in_disk_thread(partial(self._write_unrun, unrun))

    def _write_unrun(self, executions: Sequence[LiveExecution]) -> None:
        entries: list[Entry] = []
        payloads: list[Payload] = []
        ended: list[tuple[LiveExecution, ExecutionRecord]] = []
        for execution in executions:
            entry, values, record = self._unrun_end(execution)
            entries += [entry] if execution.decision is None else [execution.decision, entry]
            payloads += [*values, *execution.decision_payloads]
            ended.append((execution, record))
        self._keep(entries, payloads, ended)

    def _unrun_end(
        self, execution: LiveExecution
    ) -> tuple[Finished, list[Payload], ExecutionRecord]:
        assert execution.state.ending is not None
        status, reason = execution.state.ending
        because = "It is not known how it ended." if status == "lost" else "It was not run."
        values = _not_evaluated(execution, because)
        payloads = [] if values is None else [Payload.of(msgspec.json.encode(values))]
        entry = replace(
            Finished.without_run(timestamp(), execution.id, status, reason, execution.started_at),
            redacted=execution.shown_source[1],
            interrupt_ignored=execution.state.interrupt_ignored,
            values=payloads[0].digest if payloads else None,
        )
        record = _final_record(execution, [], entry, values=values)
        return entry, payloads, record

    def dispatched(self, execution: LiveExecution, *, accepts: bool) -> None:
        """Write that an execution is about to be sent; raise HistoryUnavailable if that fails.

        Parameters
        ----------
        accepts
            Whether its acceptance is written too.
        """
        assert execution.kernel is not None
        assert execution.run is not None
        at = timestamp(execution.run.started_at)
        entries: list[Entry] = [
            Dispatched(at=at, by=SERVER, execution_id=execution.id, kernel=execution.kernel)
        ]
        payloads: list[Payload] = []
        if accepts:
            accepted, payloads = execution.acceptance()
            entries.insert(0, accepted)
        self._journal.check_sinks()
        self._journal.append(entries, payloads)
        execution.started_at = at

    def ended(self, execution: LiveExecution, ended: ExecuteOutcome) -> None:
        """Write the end of a run."""
        kernel = execution.held_by
        status, reason = final_status(
            execution.state,
            ended,
            owned=kernel is None or kernel.owned,
            is_ending=kernel is not None and kernel.is_ending,
        )
        packed = pack_outputs(ended.outputs)
        spilled = None if execution.spill is None else execution.spill.finish()
        values = ended.values or _not_evaluated(execution, NOT_APPROVED)
        changes = evaluated = None
        if ended.variables is not None:
            changes = _encoded(ended.variables)
        if values is not None:
            evaluated = _encoded(values)
        widgets, states = self._widget_states(ended, execution.spec.max_output_bytes)
        omitted = ended.omitted
        if states.omitted_bytes:
            omitted = replace(omitted, bytes=omitted.bytes + states.omitted_bytes)
        marks = sum(_marks_in(each) for each in (changes, evaluated) if each is not None)
        entry = Finished(
            at=timestamp(ended.finished_at),
            by=SERVER,
            execution_id=execution.id,
            status=status,
            reason=reason,
            execution_count=ended.execution_count,
            error=ended.error is not None,
            outputs=packed.digest,
            blobs=packed.blobs,
            started_at=timestamp(ended.started_at),
            duration=round(ended.duration, 6),
            outputs_complete=ended.outputs_complete and not states.omitted_bytes,
            omitted=omitted,
            redacted=execution.shown_source[1] + ended.redacted + marks + states.redacted,
            interrupt_ignored=execution.state.interrupt_ignored,
            text=None if spilled is None else spilled.payload.digest,
            text_bytes=0 if spilled is None else spilled.bytes,
            omitted_text_bytes=0 if spilled is None else spilled.omitted_bytes,
            variables=None if changes is None else changes.digest,
            values=None if evaluated is None else evaluated.digest,
            widgets=None if widgets is None else widgets.digest,
            seal=ended.seal,
        )
        record = _final_record(
            execution,
            ended.outputs,
            entry,
            error=ended.error,
            values=values,
            changes=ended.variables,
            widget_texts=states.texts,
        )
        text = None if spilled is None else spilled.payload
        payloads = [
            *packed.payloads,
            *(each for each in (text, changes, evaluated, widgets) if each is not None),
        ]
        updates, more = self._display_entries(execution.id, ended.display_updates)
        self._keep([entry, *updates], [*payloads, *more], [(execution, record)])

    def _widget_states(
        self, ended: ExecuteOutcome, max_bytes: int
    ) -> tuple[Payload | None, WidgetStates]:
        """Return the models that the session's outputs show, as far as they have changed."""
        if ended.widgets is None:
            return None, _NO_WIDGETS
        shown = [*filter(None, map(shown_model, ended.outputs))]
        updated = (shown_model(update.output) for update in ended.display_updates)
        self._shown_widgets |= {*shown, *filter(None, updated), *ended.captured}
        if not self._shown_widgets:
            return None, _NO_WIDGETS
        states = ended.widgets.states(
            self._shown_widgets,
            self._known_widgets,
            max_bytes,
            shown=shown,
            captured=ended.captured,
        )
        if not (states.models or states.left_out or states.texts):
            return None, _NO_WIDGETS
        shown_models = {"models": states.models, "left_out": states.left_out, "texts": states.texts}
        return _encoded(shown_models), states

    def late(self, late: Late) -> None:
        """Write output that came after the end of one of the session's executions."""
        if late.execution_id not in self.own:
            return
        self._shown_widgets |= set(filter(None, map(shown_model, late.outputs)))
        entries, payloads = self._display_entries(late.execution_id, late.display_updates)
        packed = pack_outputs(late.outputs)
        if packed.digest is not None:
            entries.insert(
                0,
                LateOutput(
                    at=timestamp(),
                    by=SERVER,
                    execution_id=late.execution_id,
                    outputs=packed.digest,
                    blobs=packed.blobs,
                    omitted=late.omitted,
                    redacted=late.redacted,
                ),
            )
            payloads.extend(packed.payloads)
        if entries:
            self.note(entries, payloads)

    def person(self, kernel_id: str, ran: PersonExecution) -> None:
        """Write an entry about code that a user ran in the kernel."""
        source = Payload.of(ran.source.encode("utf-8", "surrogatepass"))
        packed = pack_outputs(ran.outputs or [])
        entry = PersonRan(
            at=timestamp(ran.started_at),
            by=By(kind="person", username=ran.username or None),
            kernel_id=kernel_id,
            msg_id=ran.msg_id,
            source=source.digest,
            execution_count=ran.execution_count,
            status=ran.status,
            outputs=packed.digest,
            blobs=packed.blobs,
            omitted=ran.omitted,
        )
        self.note([entry], [source, *packed.payloads])

    def note(self, entries: Sequence[Entry], payloads: Sequence[Payload] = ()) -> None:
        """Write entries about past events, or keep them in memory until they can be written."""
        self._keep(entries, payloads, [])

    def stop(self) -> None:
        """Stop retrying failed writes."""
        if not self._stopped.done():
            self._stopped.set_result(None)

    def _keep(
        self,
        entries: Sequence[Entry],
        payloads: Sequence[Payload],
        ended: Sequence[tuple[LiveExecution, ExecutionRecord]],
    ) -> None:
        """Write entries about past events.

        Parameters
        ----------
        ended
            The executions that end with them, each with one `finished` entry, in their order.
        """
        try:
            hashes = self._journal.append_final(entries, payloads)
        except HistoryUnavailable as error:
            self._log.error("%s", error.message)
            self._executions.on_loop(self._try_again, entries, ended)
            return
        head = self._journal.file.signed_head
        lines = zip(entries, hashes, strict=True)
        ends = (hash for entry, hash in lines if isinstance(entry, Finished))
        for (execution, record), hash in zip(ended, ends, strict=True):
            final = replace(record, entry_hash=hash, chain=head)
            self._executions.on_loop(self._executions.finished, execution, final)
        self._notify(entries)

    def _notify(self, entries: Sequence[Entry]) -> None:
        """Notify what became of finished executions' outputs, and what a user ran."""
        late = (entry for entry in entries if isinstance(entry, LateOutput | DisplayUpdated))
        for execution_id in dict.fromkeys(id for entry in late for id in entry.about):
            self._executions.on_loop(self._executions.late, execution_id)
        if any(isinstance(entry, PersonRan) for entry in entries):
            self._executions.on_loop(self._executions.notice, "person")

    def _try_again(
        self, entries: Sequence[Entry], ended: Sequence[tuple[LiveExecution, ExecutionRecord]]
    ) -> None:
        self._unwritten_entries += entries
        self._unwritten += ended
        if self._retry is None or self._retry.done():
            self._retry = start_apart(self._until_written(), "history retry")

    async def _until_written(self) -> None:
        while not await self._loop.run_in_executor(self._disk, self._journal.retry):
            if self._journal.file.is_deleted:
                self._notify_unwritten(RECORD_DELETED)
                return
            await asyncio.wait({self._stopped}, timeout=RETRY_DELAY)
            if self._stopped.done():
                return
        self._notify_unwritten()

    def _notify_unwritten(self, why: str | None = None) -> None:
        unwritten, self._unwritten = self._unwritten, []
        for execution, record in unwritten:
            reason = " ".join(filter(None, (record.reason, why))) or None
            final = replace(record, reason=reason, chain=self._journal.file.signed_head)
            self._executions.finished(execution, final)
        entries, self._unwritten_entries = self._unwritten_entries, []
        if why is None:
            self._notify(entries)

    async def _in_disk_thread(self, write: Callable[[], object]) -> None:
        await self._loop.run_in_executor(self._disk, write)

    def _display_entries(
        self, execution_id: ExecutionId, updates: Sequence[DisplayUpdate]
    ) -> tuple[list[JournalEntry], list[Payload]]:
        """Return entries and payloads for updates to displays of the session's executions."""
        entries: list[JournalEntry] = []
        payloads: list[Payload] = []
        for update in updates:
            targets = tuple(t for t in update.targets if t.execution_id in self.own)
            if not targets:
                continue
            packed = pack_outputs([update.output])
            assert packed.digest is not None
            payloads.extend(packed.payloads)
            entries.append(
                DisplayUpdated(
                    at=timestamp(),
                    by=SERVER,
                    execution_id=execution_id,
                    targets=targets,
                    outputs=packed.digest,
                    blobs=packed.blobs,
                )
            )
        return entries, payloads


def _encoded(value: object) -> Payload:
    """Return a value, in which secrets are replaced already, as JSON."""
    return Payload.of(msgspec.json.encode(value), is_redacted=True)


def _marks_in(payload: Payload) -> int:
    """Return how many secrets were replaced in what is encoded as JSON."""
    return (payload.data or b"").count(b"[redacted: ")


def _not_evaluated(execution: LiveExecution, because: str) -> dict[str, Value] | None:
    """Return a `not_evaluated` value for each expression; None if there are no expressions."""
    values = {name: Value.not_evaluated(because) for name in execution.spec.values}
    return values or None


def _final_record(
    execution: LiveExecution, outputs: list[Output], entry: Finished, **facts: Any
) -> ExecutionRecord:
    """Return an execution's record after its end; `facts` are what is in payloads."""
    record = execution.record(outputs)
    accepted, _ = execution.acceptance()
    return replace(record, **(entry.changes_of_execution(record, accepted) | facts))
