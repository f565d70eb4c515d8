"""What entries add up to: the record of a session, and of an execution. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from msgspec.structs import replace

from ..models import Chain, Document, ExecutionError, NotebookTarget, Omitted, Session
from ..records import (
    Accepted,
    BlobRef,
    CellWritten,
    Closed,
    Dispatched,
    DisplayUpdated,
    Entry,
    ExecutionRecord,
    Finished,
    JournalEntry,
    KernelEnded,
    KernelStarted,
    LateOutput,
    NotebookMoved,
    Opened,
    OutputsAccepted,
    OutputsDiscarded,
)
from ..types import Digest, ExecutionId, Output, Status
from .blobs import unpack_outputs
from .reading import Line

ReadBlob = Callable[[Digest], bytes | None]
"""Gives a payload's bytes, or None if it is gone."""

PARTS_OF_EXECUTIONS: Final = (
    Accepted,
    Dispatched,
    Finished,
    LateOutput,
    DisplayUpdated,
    CellWritten,
    OutputsAccepted,
    OutputsDiscarded,
)
"""Entries that say something of an execution's cell; all others are events of the session."""


def session_after(record: Session | None, line: Line) -> Session | None:
    """Return a session's record after one more line; None as long as it has not been opened."""
    entry = line.entry
    head = Chain(head=line.hash, length=entry.n + 1)
    if isinstance(entry, Opened):
        return opened(entry, head)
    if record is None:
        return None
    if isinstance(entry, KernelStarted):
        record = replace(record, kernel=entry.kernel)
    elif isinstance(entry, KernelEnded) and record.kernel is not None:
        ended = (entry.kernel_id, entry.incarnation)
        if ended == (record.kernel.id, record.kernel.incarnation):
            record = replace(record, kernel=None)
    elif isinstance(entry, Accepted):
        record = replace(record, executions=record.executions + 1)
    elif isinstance(entry, NotebookMoved):
        record = replace(record, path=entry.path)
    elif isinstance(entry, Closed):
        record = replace(
            record, status="closed", close_reason=entry.reason, closed_at=entry.at, kernel=None
        )
    return replace(record, last_activity_at=entry.at, chain=head)


def opened(entry: Opened, head: Chain) -> Session:
    """Return a session of which only the first entry is written."""
    return Session(
        id=entry.session_id,
        agent=entry.agent,
        target=entry.target,
        title=entry.title,
        client_id=entry.client_id,
        limits=entry.limits,
        status="open",
        close_reason=None,
        username=entry.username,
        access=entry.access,
        path=entry.target.path if isinstance(entry.target, NotebookTarget) else None,
        record_people=entry.record_people,
        kernel=None,
        executions=0,
        opened_at=entry.at,
        last_activity_at=entry.at,
        closed_at=None,
        chain=head,
    )


def executions_of(entry: Entry) -> tuple[ExecutionId, ...]:
    """Return which executions' records an entry is part of."""
    if isinstance(entry, DisplayUpdated):
        return tuple(dict.fromkeys(target.execution_id for target in entry.targets))
    return (entry.execution_id,) if isinstance(entry, PARTS_OF_EXECUTIONS) else ()


def status_after(status: Status | None, entry: JournalEntry) -> Status | None:
    """Return an execution's status after one more of its entries."""
    if isinstance(entry, Accepted):
        return "queued"
    if isinstance(entry, Dispatched):
        return "running"
    if isinstance(entry, Finished):
        return entry.status
    return status


def execution_record(
    session: Session, lines: Sequence[Line], read_blob: ReadBlob
) -> ExecutionRecord | None:
    """Return what an execution's lines, in order, add up to; None without its `accepted`.

    What is gone (a payload that was erased or lost) is left empty, and `outputs_complete` is then
    false.
    """
    accepted: Accepted | None = None
    dispatched: Dispatched | None = None
    finished: Finished | None = None
    entry_hash: Digest | None = None
    status: Status | None = None
    document: Document | None = None
    decided: Literal["accepted", "discarded"] | None = None
    for line in lines:
        entry = line.entry
        status = status_after(status, entry)
        if isinstance(entry, Accepted):
            accepted = entry
        elif isinstance(entry, Dispatched):
            dispatched = entry
        elif isinstance(entry, Finished):
            finished, entry_hash = entry, line.hash
        elif isinstance(entry, CellWritten):
            document = entry.document
        elif isinstance(entry, (OutputsAccepted, OutputsDiscarded)):
            decided = "accepted" if isinstance(entry, OutputsAccepted) else "discarded"
    if document is not None and decided is not None:
        document = replace(document, outputs=decided)
    if accepted is None or status is None:
        return None
    folded = _Outputs(accepted.execution_id, lines, read_blob)
    source = folded.read(accepted.source)
    done = finished or Finished(
        at="",
        by=accepted.by,
        execution_id=accepted.execution_id,
        status=status,
        outputs_complete=False,
    )
    return ExecutionRecord(
        id=accepted.execution_id,
        session_id=session.id,
        seq=accepted.seq,
        init=accepted.init,
        status=status,
        reason=done.reason,
        source="" if source is None else source.decode("utf-8"),
        agent=session.agent,
        username=session.username,
        timeout=accepted.timeout,
        kernel=dispatched.kernel if dispatched else None,
        execution_count=done.execution_count,
        outputs=folded.outputs,
        blobs=tuple(folded.blobs),
        error=folded.error,
        accepted_at=accepted.at,
        started_at=done.started_at or (dispatched.at if dispatched else None),
        finished_at=finished.at if finished else None,
        outputs_complete=done.outputs_complete and not folded.missing,
        omitted=folded.omitted,
        interrupt_ignored=done.interrupt_ignored,
        text=done.text,
        text_bytes=done.text_bytes,
        omitted_text_bytes=done.omitted_text_bytes,
        entry_hash=entry_hash,
        document=document,
        chain=session.chain,
    )


class _Outputs:
    """An execution's outputs, with late ones appended and display updates applied."""

    def __init__(
        self, execution_id: ExecutionId, lines: Sequence[Line], read_blob: ReadBlob
    ) -> None:
        self.outputs: list[Output] = []
        self.blobs: list[BlobRef] = []
        self.error: ExecutionError | None = None
        self.omitted = Omitted()
        self.missing = False
        self._inline = {d: text for line in lines for d, text in line.payloads.items()}
        self._read_blob = read_blob
        for line in lines:
            entry = line.entry
            if isinstance(entry, (Finished, LateOutput)):
                self._append(entry)
            elif isinstance(entry, DisplayUpdated):
                self._update(execution_id, entry)

    def read(self, digest: Digest) -> bytes | None:
        text = self._inline.get(digest)
        data = self._read_blob(digest) if text is None else text.encode("utf-8")
        self.missing = self.missing or data is None
        return data

    def _unpack(self, outputs: Digest | None, blobs: Sequence[BlobRef]) -> list[Output]:
        data = None if outputs is None else self.read(outputs)
        return [] if data is None else unpack_outputs(data, blobs, self.read)

    def _append(self, entry: Finished | LateOutput) -> None:
        start = len(self.outputs)
        more = self._unpack(entry.outputs, entry.blobs)
        self.outputs += more
        if more:
            self.blobs += [_moved(ref, int(ref.at[0]) + start) for ref in entry.blobs]
        self.omitted = Omitted(
            bytes=self.omitted.bytes + entry.omitted.bytes,
            lines=self.omitted.lines + entry.omitted.lines,
            outputs=self.omitted.outputs + entry.omitted.outputs,
        )
        if isinstance(entry, Finished) and entry.error:
            self.error = _last_error(more)

    def _update(self, execution_id: ExecutionId, entry: DisplayUpdated) -> None:
        for target in entry.targets:
            if target.execution_id != execution_id or target.index >= len(self.outputs):
                continue
            update = self._unpack(entry.outputs, entry.blobs)
            if not update:
                continue
            changed = {key: update[0].get(key, {}) for key in ("data", "metadata")}
            self.outputs[target.index] = {**self.outputs[target.index], **changed}
            self.blobs = [
                ref for ref in self.blobs if ref.at[0] != target.index or ref.at[1] not in changed
            ]
            self.blobs += [_moved(ref, target.index) for ref in entry.blobs]


def _moved(ref: BlobRef, index: int) -> BlobRef:
    return replace(ref, at=(index, *ref.at[1:]))


def _last_error(outputs: Sequence[Output]) -> ExecutionError | None:
    for output in reversed(outputs):
        if output.get("output_type") == "error":
            return ExecutionError(
                ename=output["ename"], evalue=output["evalue"], traceback=output["traceback"]
            )
    return None
