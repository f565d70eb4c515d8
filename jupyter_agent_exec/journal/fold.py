"""The record of a session and of an execution, made from journal entries. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..models import (
    AlsoApproved,
    Approval,
    Chain,
    Changes,
    Document,
    ExecutionKernel,
    Input,
    NotebookTarget,
    Omitted,
    Review,
    Session,
    Value,
    derive,
)
from ..records import (
    Accepted,
    ApprovalAsked,
    Approved,
    CellWritten,
    Closed,
    Dispatched,
    DisplayUpdated,
    EditsDecided,
    EditsProposed,
    Entry,
    ExecutionEntry,
    ExecutionRecord,
    Finished,
    InputAsked,
    InputGiven,
    JournalEntry,
    KernelEnded,
    KernelStarted,
    NotebookMoved,
    Opened,
    OutputsAccepted,
    Rejected,
    Reviewed,
    current_mode,
)
from ..types import Digest, ExecutionId, Status
from .lines import Line
from .outputs import Outputs, ReadBlob

_decode_values = msgspec.json.Decoder(dict[str, Value]).decode


def _alike(kind: type[Entry]) -> tuple[str, ...]:
    """Return the facts that a kind of entry and the record of an execution name alike."""
    hints, of_record = get_type_hints(kind), get_type_hints(ExecutionRecord)
    return tuple(name for name in hints if hints[name] == of_record.get(name))


_OF_FINISHED: Final = _alike(Finished)

E = TypeVar("E", bound=Entry)
S = TypeVar("S", bound=msgspec.Struct)


class SessionState(Struct, frozen=True, kw_only=True):
    """The state of a session after its entries so far."""

    session: Session
    """The session without the counts of its executions, `asking` and `unreviewed`."""
    last_seq: int = 0
    """The `seq` of the last execution that was accepted."""


def session_after(state: SessionState | None, line: Line) -> SessionState | None:
    """Return a session's state after one more line; None as long as it has not been opened."""
    entry = line.entry
    head = Chain(head=line.hash, length=entry.n + 1)
    if isinstance(entry, Opened):
        return SessionState(session=opened(entry, head))
    if state is None:
        return None
    record = replace(state.session, last_activity_at=entry.at, chain=head)
    if isinstance(entry, Accepted):
        record = replace(record, executions=record.executions + 1)
        return replace(state, session=record, last_seq=entry.seq)
    return replace(state, session=_session_after(record, entry))


def _session_after(record: Session, entry: JournalEntry) -> Session:
    if isinstance(entry, KernelStarted):
        return replace(record, kernel=entry.kernel)
    if isinstance(entry, KernelEnded) and record.kernel is not None:
        ended = (entry.kernel_id, entry.incarnation)
        if ended == (record.kernel.id, record.kernel.incarnation):
            return replace(record, kernel=None)
    elif isinstance(entry, NotebookMoved):
        return replace(record, path=entry.path)
    elif isinstance(entry, (EditsProposed, EditsDecided)):
        return replace(record, proposed=entry.open)
    elif isinstance(entry, Closed):
        return replace(
            record,
            status="closed",
            close_reason=entry.reason,
            closed_at=entry.at,
            kernel=None,
        )
    return record


def opened(entry: Opened, head: Chain) -> Session:
    """Return a session after its first entry."""
    return derive(
        Session,
        entry,
        id=entry.session_id,
        status="open",
        close_reason=None,
        path=entry.target.path if isinstance(entry.target, NotebookTarget) else None,
        kernel=None,
        executions=0,
        opened_at=entry.at,
        approval=current_mode(entry.approval),
        last_activity_at=entry.at,
        closed_at=None,
        chain=head,
        preloaded=list(entry.preloaded),
    )


def executions_of(entry: Entry) -> tuple[ExecutionId, ...]:
    """Return the executions that an entry is about; none for an event of the session."""
    if isinstance(entry, DisplayUpdated):
        return tuple(dict.fromkeys(target.execution_id for target in entry.targets))
    if isinstance(entry, (ExecutionEntry, Reviewed)) and entry.execution_id is not None:
        return (entry.execution_id,)
    return ()


def status_after(status: Status, entry: JournalEntry) -> Status:
    """Return an execution's status after its next entry."""
    if isinstance(entry, (Accepted, Approved)):
        return "queued"
    if isinstance(entry, ApprovalAsked):
        return "awaiting_approval"
    if isinstance(entry, (Dispatched, InputGiven)):
        return "running"
    if isinstance(entry, InputAsked):
        return "awaiting_input"
    if isinstance(entry, Finished):
        return entry.status
    return status


def execution_record(
    state: SessionState, lines: Sequence[Line], read_blob: ReadBlob, *, brief: bool = False
) -> ExecutionRecord | None:
    """Return the record of an execution, made from its lines; None without its `accepted`.

    A payload that was erased or lost is empty, and `outputs_complete` is false.

    Parameters
    ----------
    state
        The state of its session.
    lines
        All lines of the execution, in order.
    read_blob
        Reads payloads that are not on the lines.
    brief
        Leave out large values of its outputs, without reading them, and do not list its images.
    """
    last = _LastEntries(lines)
    accepted = last.of(Accepted)
    if accepted is None:
        return None
    status: Status = "queued"
    approval, cell = ApprovalHistory(), CellHistory()
    for line in lines:
        status = status_after(status, line.entry)
        approval.add(line.entry)
        cell.add(line.entry)
    dispatched, finished = last.of(Dispatched), last.of(Finished)
    folded = Outputs(accepted.execution_id, lines, read_blob, brief=brief)
    record = unfinished(
        accepted,
        state.session,
        status=status,
        source=folded.text(approval.source or accepted.source),
        kernel=dispatched.kernel if dispatched else None,
        started_at=dispatched.at if dispatched else None,
        chain=state.session.chain,
    )
    if finished is not None:
        record = after_finished(record, finished)
    variables = None if finished is None else finished.variables
    reviewed = last.of(Reviewed)
    return replace(
        record,
        outputs=folded.outputs,
        blobs=tuple(folded.blobs),
        error=folded.error,
        outputs_complete=finished is not None and finished.outputs_complete and not folded.missing,
        omitted=folded.omitted,
        redacted=folded.redacted,
        widget_texts={} if brief or finished is None else _widget_texts(finished, folded),
        entry_hash=next((line.hash for line in lines if line.entry is finished), None),
        document=cell.document(),
        input=_input(status, last.of(InputAsked), folded),
        approval=approval.state(folded.text),
        review=None if reviewed is None else review_of(reviewed),
        changes=_decoded(variables, Changes, folded),
        values=None if brief else _values(accepted, finished, folded),
        brief=folded.brief,
    )


def unfinished(
    accepted: Accepted,
    session: Session,
    *,
    status: Status,
    source: str,
    kernel: ExecutionKernel | None,
    started_at: str | None,
    chain: Chain,
) -> ExecutionRecord:
    """Return the record of an execution that was accepted, without outputs."""
    return derive(
        ExecutionRecord,
        accepted,
        id=accepted.execution_id,
        session_id=session.id,
        status=status,
        reason=None,
        source=source,
        agent=session.agent,
        username=session.username,
        token=session.token,
        kernel=kernel,
        execution_count=None,
        outputs=[],
        error=None,
        values=None,
        accepted_at=accepted.at,
        started_at=started_at,
        finished_at=None,
        duration=None,
        outputs_complete=True,
        omitted=Omitted(),
        interrupt_ignored=False,
        waiting_for=None,
        document=None,
        chain=chain,
    )


def after_finished(record: ExecutionRecord, entry: Finished) -> ExecutionRecord:
    """Return a record after its execution has finished, without what is in payloads."""
    facts: dict[str, Any] = {name: getattr(entry, name) for name in _OF_FINISHED}
    facts["started_at"] = entry.started_at or record.started_at
    return replace(record, **facts, finished_at=entry.at, input=None)


class _LastEntries:
    """The last entry of each kind."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._entries: dict[type[Entry], Any] = {type(line.entry): line.entry for line in lines}

    def of(self, kind: type[E]) -> E | None:
        return self._entries.get(kind)


def _input(status: Status, asked: InputAsked | None, folded: Outputs) -> Input | None:
    """Return the input that the code waits for; None if there is none."""
    if status != "awaiting_input" or asked is None:
        return None
    return Input(prompt=folded.text(asked.prompt), password=asked.password, asked_at=asked.at)


def _values(
    accepted: Accepted, finished: Finished | None, folded: Outputs
) -> dict[str, Value] | None:
    """Return the values of its expressions; None without expressions, or before it finishes."""
    if accepted.values is None or finished is None:
        return None
    if finished.values is not None:
        data = folded.read(finished.values)
        return None if data is None else _decode_values(data)
    asked = folded.read(accepted.values)
    why = f"The execution has ended as {finished.status} before it came to that."
    return {name: Value.not_evaluated(why) for name in msgspec.json.decode(asked or b"{}")}


def _decoded(digest: Digest | None, kind: type[S], folded: Outputs) -> S | None:
    """Return what a payload holds; None if there is none, or if it is gone."""
    data = None if digest is None else folded.read(digest)
    return None if data is None else msgspec.json.decode(data, type=kind)


def _widget_texts(finished: Finished, folded: Outputs) -> dict[str, str]:
    data = None if finished.widgets is None else folded.read(finished.widgets)
    texts: dict[str, str] = {} if data is None else json.loads(data)["texts"]
    return texts


ReadText = Callable[[Digest], str]
"""Returns a payload's text; empty if it is gone."""


def review_of(entry: Reviewed) -> Review | None:
    """Return the review of an entry; None if the entry withdraws a review."""
    if entry.verdict is None and not entry.comment:
        return None
    return Review(
        verdict=entry.verdict,
        comment=entry.comment,
        by=entry.by.named,
        at=entry.at,
    )


class ApprovalHistory:
    """The approval of an execution, entry by entry."""

    def __init__(self) -> None:
        self._accepted: Accepted | None = None
        self._asked: ApprovalAsked | None = None
        self._decided: Approved | Rejected | None = None
        self._ended: Status | None = None
        self.source: Digest | None = None
        """The source that runs, or that ran."""

    def add(self, entry: Entry) -> None:
        """Add the next entry of the execution."""
        if isinstance(entry, Accepted):
            self._accepted, self.source = entry, entry.source
        elif isinstance(entry, ApprovalAsked):
            self._asked, self._decided, self.source = entry, None, entry.source
        elif isinstance(entry, (Approved, Rejected)):
            self._decided = entry
            if isinstance(entry, Approved):
                self.source = entry.source
        elif isinstance(entry, Finished):
            self._ended = entry.status

    def state(self, read: ReadText) -> Approval | None:
        """Return the state of the approval; None if none was needed."""
        asked, decided = self._asked, self._decided
        if asked is None or self._accepted is None:
            return None
        asked_source = read(self._accepted.source) if isinstance(decided, Approved) else None
        if self.source is None or asked_source == read(self.source):
            asked_source = None
        return Approval(
            status=self._status(),
            asked_at=asked.at,
            expires_at=asked.expires_at,
            kernel_id=asked.kernel_id,
            incarnation=asked.incarnation,
            before=None if asked.before is None else read(asked.before),
            edits_cell=asked.edits_cell,
            decided_at=None if decided is None else decided.at,
            decided_by=None if decided is None else decided.by.named,
            reason=decided.reason if isinstance(decided, Rejected) else None,
            asked_source=asked_source,
            also=[AlsoApproved(execution_id=id, source=None) for id in asked.also],
            preview=None if decided is None else decided.preview,
        )

    def _status(self) -> Literal["asked", "approved", "rejected", "expired", "withdrawn"]:
        if self._decided is not None:
            return "approved" if isinstance(self._decided, Approved) else "rejected"
        if self._ended is None:
            return "asked"
        return "expired" if self._ended == "rejected" else "withdrawn"  # by nobody


class CellHistory:
    """The cell of an execution in its notebook, entry by entry."""

    def __init__(self) -> None:
        self._written: Document | None = None
        self._accepted = False

    def add(self, entry: Entry) -> None:
        """Add the next entry of the execution."""
        if isinstance(entry, CellWritten):
            self._written = entry.document
        elif isinstance(entry, OutputsAccepted):
            self._accepted = True

    def document(self) -> Document | None:
        """Return what the notebook shows of it; None if it has no cell."""
        if self._written is None or not self._accepted:
            return self._written
        return replace(self._written, outputs="accepted")
