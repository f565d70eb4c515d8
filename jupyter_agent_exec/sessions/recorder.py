"""What a session's journal is told of executions that ended, and when others may see it.

An execution is shown as finished once that is on disk. What cannot be written now is kept and
written as soon as the disk takes it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial

from msgspec.structs import replace

from ..errors import HistoryUnavailable
from ..journal.blobs import pack_outputs
from ..journal.fold import executions_of
from ..journal.session import SessionJournal
from ..kernels.displays import DisplayUpdate
from ..kernels.people import PersonExecution
from ..kernels.run import Ended, Late
from ..records import (
    SERVER,
    By,
    DisplayUpdated,
    Entry,
    ExecutionRecord,
    Finished,
    LateOutput,
    Payload,
    PersonRan,
    timestamp,
)
from ..types import ExecutionId
from .execution import LiveExecution

RETRY_DELAY = 1.0
"""Seconds after which a write that the disk refused is tried again."""


class Recorder:
    """Writes how executions ended; what is not async may be called from any thread.

    Parameters
    ----------
    finished
        Called on the loop when an execution's final status is on disk.
    late
        Called on the loop when outputs of a finished execution changed.
    person_ran
        Called on the loop when it is on disk what a person ran.
    disk
        Where blocking writes go that have no thread of their own.
    """

    def __init__(
        self,
        journal: SessionJournal,
        *,
        finished: Callable[[LiveExecution, ExecutionRecord], None],
        late: Callable[[ExecutionId], None],
        person_ran: Callable[[], None],
        disk: Executor,
        log: logging.Logger,
    ) -> None:
        self._journal = journal
        self._finished = finished
        self._late = late
        self._person_ran = person_ran
        self.own: set[ExecutionId] = set()
        """The session's executions: others' output comes over a shared connection too."""
        self._disk = disk
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._unwritten: list[tuple[LiveExecution, ExecutionRecord]] = []
        self._retry: asyncio.Task[None] | None = None
        self._stopped: asyncio.Future[None] = self._loop.create_future()

    async def write(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Write an entry about what is to happen; HistoryUnavailable if that cannot be."""
        await self._in_disk_thread(partial(self._journal.append, [entry], payloads))

    async def record(self, entry: Entry, payloads: Sequence[Payload] = ()) -> None:
        """Write an entry about what has happened; kept if that cannot be written now."""
        await self._in_disk_thread(partial(self.note, [entry], payloads))

    async def unrun(self, execution: LiveExecution) -> None:
        """Write the end of an execution that never ran, and wait until it is written."""
        await self._in_disk_thread(partial(self._unrun, execution))
        await execution.finished

    def _unrun(self, execution: LiveExecution) -> None:
        assert execution.ending is not None
        status, reason = execution.ending
        entry = Finished(
            at=timestamp(), by=SERVER, execution_id=execution.id, status=status, reason=reason
        )
        record = replace(
            execution.record([]),
            status=status,
            reason=reason,
            finished_at=entry.at,
        )
        self._keep(execution, [entry], [], record)

    def ended(self, execution: LiveExecution, ended: Ended) -> None:
        """Write the end of a run."""
        status, reason = execution.verdict(ended)
        packed = pack_outputs(ended.outputs)
        spilled = None if execution.spill is None else execution.spill.finish()
        record = replace(
            execution.record(ended.outputs),
            status=status,
            reason=reason,
            execution_count=ended.execution_count,
            blobs=packed.blobs,
            error=ended.error,
            started_at=timestamp(ended.started_at),
            finished_at=timestamp(ended.finished_at),
            outputs_complete=ended.outputs_complete,
            omitted=ended.omitted,
            text=spilled.digest if spilled else None,
            text_bytes=spilled.bytes if spilled else 0,
            omitted_text_bytes=spilled.omitted_bytes if spilled else 0,
        )
        entry = Finished(
            at=record.finished_at or "",
            by=SERVER,
            execution_id=record.id,
            status=record.status,
            reason=record.reason,
            execution_count=record.execution_count,
            error=record.error is not None,
            outputs=packed.digest,
            blobs=record.blobs,
            started_at=record.started_at,
            outputs_complete=record.outputs_complete,
            omitted=record.omitted,
            interrupt_ignored=record.interrupt_ignored,
            text=record.text,
            text_bytes=record.text_bytes,
            omitted_text_bytes=record.omitted_text_bytes,
        )
        updates, payloads = self._display_entries(execution.id, ended.display_updates)
        self._keep(execution, [entry, *updates], [*packed.payloads, *payloads], record)

    def late(self, late: Late) -> None:
        """Write output that came after its execution had finished, if that is the session's."""
        if late.execution_id not in self.own:
            return
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
                ),
            )
            payloads.extend(packed.payloads)
        if entries and self.note(entries, payloads):
            self._tell_of_late(entries)

    def person(self, kernel_id: str, told: PersonExecution) -> None:
        """Write what a person ran in the kernel."""
        source = Payload.of(told.source.encode("utf-8", "surrogatepass"))
        packed = pack_outputs(told.outputs or [])
        entry = PersonRan(
            at=timestamp(told.started_at),
            by=By(kind="person", username=told.username or None),
            kernel_id=kernel_id,
            msg_id=told.msg_id,
            source=source.digest,
            execution_count=told.execution_count,
            status=told.status,
            outputs=packed.digest,
            blobs=packed.blobs,
            omitted=told.omitted,
        )
        if self.note([entry], [source, *packed.payloads]):
            self._on_loop(self._person_ran)

    def note(self, entries: Sequence[Entry], payloads: Sequence[Payload] = ()) -> bool:
        """Write what has happened; False if it is only kept for now."""
        try:
            self._journal.append_final(entries, payloads)
        except HistoryUnavailable as error:
            self._log.error("%s", error.message)
            self._on_loop(self._try_again)
            return False
        return True

    def stop(self) -> None:
        """Try no more."""
        if not self._stopped.done():
            self._stopped.set_result(None)

    def _keep(
        self,
        execution: LiveExecution,
        entries: Sequence[Entry],
        payloads: Sequence[Payload],
        record: ExecutionRecord,
    ) -> None:
        try:
            hashes = self._journal.append_final(entries, payloads)
        except HistoryUnavailable as error:
            self._log.error("%s", error.message)
            self._on_loop(self._try_again, execution, record)
        else:
            record = replace(record, entry_hash=hashes[0], chain=self._journal.head)
            self._on_loop(self._finished, execution, record)
            self._tell_of_late(entries[1:])

    def _tell_of_late(self, entries: Sequence[Entry]) -> None:
        """Tell whose outputs are others now: a display may be updated from a later execution."""
        changed = (id for entry in entries for id in executions_of(entry))
        for execution_id in dict.fromkeys(changed):
            self._on_loop(self._late, execution_id)

    def _try_again(
        self, execution: LiveExecution | None = None, record: ExecutionRecord | None = None
    ) -> None:
        if execution is not None and record is not None:
            self._unwritten.append((execution, record))
        if self._retry is None or self._retry.done():
            self._retry = self._loop.create_task(self._until_written(), name="history retry")

    async def _until_written(self) -> None:
        while not await self._loop.run_in_executor(self._disk, self._journal.retry):
            await asyncio.wait({self._stopped}, timeout=RETRY_DELAY)
            if self._stopped.done():
                return
        unwritten, self._unwritten = self._unwritten, []
        for execution, record in unwritten:
            self._finished(execution, replace(record, chain=self._journal.head))

    async def _in_disk_thread(self, write: Callable[[], object]) -> None:
        await self._loop.run_in_executor(self._disk, write)

    def _on_loop(self, call: Callable[..., None], *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)

    def _display_entries(
        self, execution_id: ExecutionId, updates: Sequence[DisplayUpdate]
    ) -> tuple[list[Entry], list[Payload]]:
        """Return what is recorded of updates to displays of the session's earlier executions."""
        entries: list[Entry] = []
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
