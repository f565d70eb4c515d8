"""What the history keeps: the entries of a journal, and the records that they add up to.

An entry is one line of a session's journal. It names its payloads (a source, an execution's
outputs, an image) by digest; their bytes stand beside the entry on its line, or in the session's
blobs, and are not part of the chained bytes. So a payload can be erased and the chain still
verifies.

A record is what the entries about one session, or one execution, amount to.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct

from .models import (
    Agent,
    Caps,
    Chain,
    Document,
    ExecutionKernel,
    ExecutionState,
    LeftOut,
    Limits,
    Omitted,
    Placement,
    SessionKernel,
    StepOf,
    Target,
    TokenRef,
)
from .types import (
    Access,
    ApprovalMode,
    CellId,
    CloseReason,
    Digest,
    ExecutionId,
    Output,
    RecordPeople,
    RestartReason,
    SessionId,
    Status,
    TargetKind,
    TokenId,
    Verdict,
    Via,
)


class Payload(Struct, frozen=True):
    """Bytes that an entry names by their digest."""

    digest: Digest
    data: bytes
    as_file: bool = False
    """Keep it as a file of its own, whatever its size (images, which have a URL)."""

    @classmethod
    def of(cls, data: bytes, *, as_file: bool = False) -> Payload:
        """Digest `data`."""
        return cls(digest=digest_of(data), data=data, as_file=as_file)


def timestamp(moment: datetime | None = None) -> str:
    """Return a moment, by default now, as the record tells times."""
    moment = moment or datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def digest_of(data: bytes) -> Digest:
    """Return the SHA-256 of `data` in hexadecimal."""
    return Digest(hashlib.sha256(data).hexdigest())


class BlobRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value that was taken out of an execution's outputs because it is large or an image."""

    at: tuple[int | str, ...]
    """Where it belongs: output index, then keys, such as ``(0, "data", "image/png")``."""
    sha256: Digest
    bytes: int
    encoding: Literal["text", "json", "base64"]
    """How the value becomes the blob's bytes: its UTF-8 text, its JSON, or base64-decoded."""
    mimetype: str


class By(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who did what an entry tells."""

    kind: Literal["person", "agent", "server"]
    """`agent`: an agent through a person's own credential, or with a token of its own."""
    username: str | None = None
    display_name: str | None = None
    agent: str | None = None
    token_id: TokenId | None = None
    """Of the agent token that was shown."""

    @property
    def named(self) -> str:
        """How to call them in a sentence."""
        return self.display_name or self.username or "the server"


SERVER = By(kind="server")
"""The server itself, which nobody asked."""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of all entries."""

    n: int = 0
    """Position in the journal, from 0; set by the journal."""
    at: str
    by: By


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


class KeptImage(Struct, frozen=True, kw_only=True):
    """An image of an execution, without its data."""

    output: int
    """Index of the output that holds it."""
    mimetype: str
    width: int | None
    height: int | None
    bytes: int
    sha256: Digest | None
    """Of its blob; null as long as there is none."""


class Brief(Struct, frozen=True, kw_only=True):
    """What an execution's record leaves out of its outputs."""

    left_out: tuple[LeftOut, ...]
    images: tuple[KeptImage, ...]
    """All of its images, wherever their data is."""


class ExecutionRecord(ExecutionState, frozen=True, kw_only=True):
    """An execution as its entries tell it, or, while it goes on, as the server holds it."""

    outputs: list[Output]
    """Whole, but for what `brief` tells: blobs are back in their places, late outputs and display
    updates applied."""
    blobs: tuple[BlobRef, ...] = ()
    """Where the large values and images of `outputs` are kept; empty until it has finished."""
    text: Digest | None = None
    """The whole text, as far as it is kept, if the outputs are capped."""
    text_bytes: int = 0
    omitted_text_bytes: int = 0
    entry_hash: Digest | None = None
    """Hash of the journal line with its `finished` entry."""
    brief: Brief | None = None
    """Null if nothing was to be left out of the outputs."""


class LedgerOpened(Entry, frozen=True, kw_only=True, tag="ledger_opened"):
    """A server began to write this ledger, or went on with one that a server before it left."""

    instance: str
    version: str
    address: str | None = None
    """Where the server answers."""
    host: str | None = None
    """Name of the machine on which it runs."""
    pid: int | None = None
    """Its process there."""
    root_dir: str | None = None
    """The folder that it serves, to which contents paths are relative; null in older ledgers."""


class SessionOpened(Entry, frozen=True, kw_only=True, tag="session_opened"):
    """A session exists, and so does its journal."""

    session_id: SessionId


class SessionClosed(Entry, frozen=True, kw_only=True, tag="session_closed"):
    """A session's journal has ended."""

    session_id: SessionId
    chain: Chain


class SessionAmended(Entry, frozen=True, kw_only=True, tag="session_amended"):
    """A person decided something about a closed session, and its journal says so after its end."""

    session_id: SessionId
    chain: Chain


class PolicySet(Entry, frozen=True, kw_only=True, tag="policy_set"):
    """A person said what agents must ask for."""

    policy: dict[TargetKind, ApprovalMode]


class TokenMinted(Entry, frozen=True, kw_only=True, tag="token_minted"):
    """A person gave an agent a token. A token counts only as it was minted here."""

    token_id: TokenId
    label: str
    scopes: tuple[str, ...]
    approval: ApprovalMode | None
    caps: Caps
    expires_at: str
    secret_sha256: Digest | None = None
    """Null in a ledger of version 0.1, which did not record it."""


class TokenRevoked(Entry, frozen=True, kw_only=True, tag="token_revoked"):
    """A person took a token back."""

    token_id: TokenId


class DecisionsUnlocked(Entry, frozen=True, kw_only=True, tag="decisions_unlocked"):
    """Somebody sent the passphrase and may decide for some minutes."""


class PassphraseRefused(Entry, frozen=True, kw_only=True, tag="passphrase_refused"):
    """Somebody sent a wrong passphrase; what they sent is not recorded."""


class AccessDenied(Entry, frozen=True, kw_only=True, tag="access_denied"):
    """An agent token was shown for something that it does not reach."""

    token_id: TokenId
    code: str
    """Of the error that was answered."""
    method: str
    """A verb of HTTP, or `tools/call` and the like."""
    route: str
    """The route's template, or the tool's name: nothing that the agent wrote."""
    count: int = 1
    """How many alike this entry stands for."""


LedgerEntry = (
    LedgerOpened
    | SessionOpened
    | SessionClosed
    | SessionAmended
    | PolicySet
    | TokenMinted
    | TokenRevoked
    | AccessDenied
    | DecisionsUnlocked
    | PassphraseRefused
)
