"""The entries of a session's journal."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ..models import (
    Agent,
    Chain,
    Document,
    ExecutionKernel,
    Limits,
    Omitted,
    Placement,
    SessionKernel,
    StepOf,
    Target,
    TokenRef,
)
from ..types import (
    Access,
    ApprovalMode,
    CellId,
    CloseReason,
    Digest,
    ExecutionId,
    RecordPeople,
    RestartReason,
    SessionId,
    Status,
    Verdict,
    Via,
)
from .base import BlobRef, Entry


class Accepted(Entry, frozen=True, kw_only=True, tag="accepted"):
    """An execution was asked for and will reach a final status."""

    execution_id: ExecutionId
    seq: int
    source: Digest
    timeout: float | None
    queue_timeout: float | None
    max_output_bytes: int
    init: bool = False
    idempotency_key: str | None = None
    body_sha256: Digest | None = None
    """Digest of the request body that came with `idempotency_key`."""
    placement: Placement | Literal["end", "none"] | None = None
    """Where its cell goes; null if the session's target is not a notebook."""
    revises: ExecutionId | None = None
    values: Digest | None = None
    """JSON: the expressions to evaluate after it, by name; null for none."""
    step: StepOf | None = None
    """Which one it is of those that were asked for at once; the first has their key."""


class Dispatched(Entry, frozen=True, kw_only=True, tag="dispatched"):
    """The execution is about to be sent to the kernel; it is never sent again."""

    execution_id: ExecutionId
    kernel: ExecutionKernel


class Finished(Entry, frozen=True, kw_only=True, tag="finished"):
    """An execution has its final status."""

    execution_id: ExecutionId
    status: Status
    reason: str | None = None
    execution_count: int | None = None
    error: bool = False
    """Whether the last output of type error is the execution's error."""
    outputs: Digest | None = None
    """JSON array of nbformat outputs, with null where `blobs` has the value; null for none."""
    blobs: tuple[BlobRef, ...] = ()
    started_at: str | None = None
    duration: float | None = None
    """Seconds that it ran, by a clock that nobody sets; null if it did not run to its end."""
    outputs_complete: bool = True
    omitted: Omitted = Omitted()
    interrupt_ignored: bool = False
    text: Digest | None = None
    """Whole text of capped outputs, as far as it was kept; see `omitted_text_bytes`."""
    text_bytes: int = 0
    omitted_text_bytes: int = 0
    variables: Digest | None = None
    """JSON: what `models.Changes` tells of variables; null if that is not recorded."""
    values: Digest | None = None
    """JSON: a `models.Value` for each of the expressions; null if it did not come to them."""


class InputAsked(Entry, frozen=True, kw_only=True, tag="input_asked"):
    """The code of an execution asks for input, and waits for it."""

    execution_id: ExecutionId
    prompt: Digest
    """Text; not all of it if it is very long."""
    password: bool = False


class InputGiven(Entry, frozen=True, kw_only=True, tag="input_given"):
    """Somebody answers what the code of an execution asks for; written before the kernel has it."""

    execution_id: ExecutionId
    value: Digest | None = None
    """Text; null for a password, of which not even a digest is kept."""


class KernelInspected(Entry, frozen=True, kw_only=True, tag="kernel_inspected"):
    """The agent asks the kernel for completion or documentation; written before it is sent.

    The kernel may run code for it, such as an import or a property.
    """

    kind: Literal["complete", "inspect"]
    code: Digest
    """Text."""
    cursor_pos: int
    """Code points from the start of the code."""
    detail_level: Literal[0, 1] = 0


class FilesWritten(Entry, frozen=True, kw_only=True, tag="files_written"):
    """Files were written in the kernel's folder while an execution ran."""

    execution_id: ExecutionId
    files: Digest
    """JSON: what `models.Changes` tells of files."""


class LateOutput(Entry, frozen=True, kw_only=True, tag="late_output"):
    """Outputs that came after their execution had finished; they follow its others."""

    execution_id: ExecutionId
    outputs: Digest
    blobs: tuple[BlobRef, ...] = ()
    omitted: Omitted = Omitted()


class OutputRef(Struct, frozen=True):
    """An output of an execution that has finished."""

    execution_id: ExecutionId
    index: int


class DisplayUpdated(Entry, frozen=True, kw_only=True, tag="display_updated"):
    """A later execution replaced data and metadata of outputs with the same display id."""

    execution_id: ExecutionId
    """The execution that sent the update; if a person's cell did, the first that it is for."""
    targets: tuple[OutputRef, ...]
    outputs: Digest
    """JSON array of one display_data output that holds the new data and metadata."""
    blobs: tuple[BlobRef, ...] = ()


class Interrupted(Entry, frozen=True, kw_only=True, tag="interrupted"):
    """An interrupt was sent to the kernel."""

    execution_id: ExecutionId | None
    reason: Literal["asked", "cancelled", "timed_out", "closing"]


class PersonRan(Entry, frozen=True, kw_only=True, tag="person_ran"):
    """A person ran something in the kernel; as far as the kernel told, so it may not be all."""

    kernel_id: str
    msg_id: str
    """Of the person's `execute_request`."""
    source: Digest
    execution_count: int | None
    status: Literal["ok", "error"] | None = None
    """Null if only the source is recorded, or its end was not seen."""
    outputs: Digest | None = None
    blobs: tuple[BlobRef, ...] = ()
    omitted: Omitted = Omitted()


class Opened(Entry, frozen=True, kw_only=True, tag="opened"):
    """The session's first entry."""

    session_id: SessionId
    agent: Agent
    target: Target
    title: str | None
    client_id: str | None
    limits: Limits
    username: str
    access: Access = "full"
    token: TokenRef | None = None
    init_source: Digest | None = None
    record_people: RecordPeople = "off"
    approval: ApprovalMode = "none"
    allow_stdin: bool = False
    preloaded: tuple[str, ...] = ()
    """What is there in each of its kernels, as `Session.preloaded` tells it."""
    ledger: Chain | None = None
    """Where the ledger ended when the session was opened; null in version 0.1."""


class KernelStarted(Entry, frozen=True, kw_only=True, tag="kernel_started"):
    """A kernel now belongs to the session."""

    kernel: SessionKernel
    reason: RestartReason | None
    """Why the one before it is gone; null for the first."""
    display_name: str | None = None
    """The kernelspec's name for people."""
    language_info: dict[str, Any] | None = None
    """What the kernel's `kernel_info_reply` says of its language."""


class KernelEnded(Entry, frozen=True, kw_only=True, tag="kernel_ended"):
    """The session's kernel is gone."""

    kernel_id: str
    incarnation: int
    reason: RestartReason
    message: str
    """A sentence: how it ended."""


class Recovered(Entry, frozen=True, kw_only=True, tag="recovered"):
    """The server that wrote this journal died; another took it up."""

    torn_bytes: int
    """Length of the incomplete last line, which nobody had been told of, that was removed."""


class Closed(Entry, frozen=True, kw_only=True, tag="closed"):
    """The session's end. What may follow is only what people decide about it afterwards."""

    reason: CloseReason


class ApprovalAsked(Entry, frozen=True, kw_only=True, tag="approval_asked"):
    """An execution waits for a person to let it run; asked anew if its kernel is another since."""

    execution_id: ExecutionId
    source: Digest
    kernel_id: str | None
    incarnation: int
    expires_at: str
    before: Digest | None = None
    """The source that it is a new version of."""


class Approved(Entry, frozen=True, kw_only=True, tag="approved"):
    """A person let an execution run."""

    execution_id: ExecutionId
    source: Digest
    """What is to run; another than the one asked for if the person changed it."""


class Rejected(Entry, frozen=True, kw_only=True, tag="rejected"):
    """A person did not let an execution run."""

    execution_id: ExecutionId
    reason: str | None


class ApprovalGranted(Entry, frozen=True, kw_only=True, tag="approval_granted"):
    """What the session asks for runs without asking; null ends that."""

    until: str | None


class AgentsPaused(Entry, frozen=True, kw_only=True, tag="agents_paused"):
    """Nothing more of any agent is sent to a kernel."""


class AgentsResumed(Entry, frozen=True, kw_only=True, tag="agents_resumed"):
    """Agents go on."""


class OutputsAccepted(Entry, frozen=True, kw_only=True, tag="outputs_accepted"):
    """A person accepted an execution's outputs: the originals belong in the notebook."""

    execution_id: ExecutionId


class OutputsDiscarded(Entry, frozen=True, kw_only=True, tag="outputs_discarded"):
    """A person discarded an execution's outputs: none of them belongs in the notebook."""

    execution_id: ExecutionId


class OutputsRestored(Entry, frozen=True, kw_only=True, tag="outputs_restored"):
    """A person took back what they decided about an execution's outputs."""

    execution_id: ExecutionId


class CellDiscarded(Entry, frozen=True, kw_only=True, tag="cell_discarded"):
    """A person took an execution's cell out of the notebook."""

    execution_id: ExecutionId
    path: str
    cell_id: CellId
    cell: Digest
    """JSON of the cell as it was."""
    after: CellId | None
    """The cell before it; null if it was the first."""


class CellRestored(Entry, frozen=True, kw_only=True, tag="cell_restored"):
    """A person put back an execution's cell that had been discarded."""

    execution_id: ExecutionId
    path: str


class Reviewed(Entry, frozen=True, kw_only=True, tag="reviewed"):
    """A person said what to think of an execution, or of all that the session had run."""

    execution_id: ExecutionId | None
    """Null for the session."""
    verdict: Verdict | None
    comment: str | None = None
    up_to: int = 0
    """The last execution that a review of the session is about."""


class NotebookCreated(Entry, frozen=True, kw_only=True, tag="notebook_created"):
    """There was no notebook at the session's path, so an empty one was made."""

    path: str


class NotebookMoved(Entry, frozen=True, kw_only=True, tag="notebook_moved"):
    """The session's notebook has another path."""

    path: str
    before: str


class CellWritten(Entry, frozen=True, kw_only=True, tag="cell_written"):
    """What became of an execution's cell in the notebook."""

    execution_id: ExecutionId
    document: Document


class NotebookEditAsked(Entry, frozen=True, kw_only=True, tag="notebook_edit_asked"):
    """The agent is about to change cells of the notebook.

    What came of it is the next `notebook_edited` or `notebook_edit_refused` of this path; if there
    is none, the server died in between, and nobody knows.
    """

    path: str
    edits: Digest
    """JSON array of the edits, as they were asked for."""


class NotebookEditRefused(Entry, frozen=True, kw_only=True, tag="notebook_edit_refused"):
    """What the agent was about to change has not been changed."""

    path: str
    code: str
    message: str
    """A sentence: why not."""


class NotebookEdited(Entry, frozen=True, kw_only=True, tag="notebook_edited"):
    """The agent changed cells of the notebook."""

    path: str
    via: Via
    before: Digest
    """JSON: ``{"order": [cell id, …], "cells": {cell id: {"cell_type", "source"}}}`` with the
    cells that the edits touch, as they were; `order` is of the whole notebook."""
    after: Digest
    """The same, as they are since."""


class FileUploaded(Entry, frozen=True, kw_only=True, tag="file_uploaded"):
    """The agent put a file into the session's folder; written just before it appears there."""

    path: str
    """Relative to the session's folder, with slashes."""
    bytes: int
    sha256: Digest
    replaced: bool = False
    """Whether there was a file at that path."""


class FileDeleted(Entry, frozen=True, kw_only=True, tag="file_deleted"):
    """The agent deleted a file, or an empty folder; written just before it is gone."""

    path: str
    bytes: int | None = None
    """Null for a folder."""
    sha256: Digest | None = None
    """Of what the file held; null for a folder, and if it was too large to be read for that."""


class FileUnchanged(Entry, frozen=True, kw_only=True, tag="file_unchanged"):
    """What the entry before said of a file did not come to be: it is as it was, or is not there."""

    path: str


JournalEntry = (
    Opened
    | KernelStarted
    | KernelEnded
    | Accepted
    | ApprovalAsked
    | Approved
    | Rejected
    | ApprovalGranted
    | AgentsPaused
    | AgentsResumed
    | Dispatched
    | InputAsked
    | InputGiven
    | KernelInspected
    | Finished
    | FilesWritten
    | FileUploaded
    | FileDeleted
    | FileUnchanged
    | LateOutput
    | DisplayUpdated
    | Interrupted
    | PersonRan
    | NotebookCreated
    | NotebookMoved
    | CellWritten
    | OutputsAccepted
    | OutputsDiscarded
    | OutputsRestored
    | CellDiscarded
    | CellRestored
    | Reviewed
    | NotebookEditAsked
    | NotebookEditRefused
    | NotebookEdited
    | Recovered
    | Closed
)
