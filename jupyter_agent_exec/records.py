"""What the history keeps: the entries of a journal, and the records that they add up to.

An entry is one line of a session's journal. It names its payloads (a source, an execution's
outputs, an image) by digest; their bytes stand beside the entry on its line, or in the session's
blobs, and are not part of the chained bytes. So a payload can be erased and the chain still
verifies.

A record is what the entries about one session, or one execution, amount to.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from typing import Any, Literal

from msgspec import Struct

from .models import (
    Agent,
    Chain,
    Document,
    ExecutionError,
    ExecutionKernel,
    Limits,
    Omitted,
    Placement,
    SessionKernel,
    Target,
    WaitingFor,
)
from .types import (
    CloseReason,
    Digest,
    ExecutionId,
    Output,
    RecordPeople,
    RestartReason,
    SessionId,
    Status,
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
    moment = moment or datetime.now(timezone.utc)
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


class Opened(Entry, frozen=True, kw_only=True, tag="opened"):
    """The session's first entry."""

    session_id: SessionId
    agent: Agent
    target: Target
    title: str | None
    client_id: str | None
    limits: Limits
    username: str
    access: Literal["full"] = "full"
    init_source: Digest | None = None
    record_people: RecordPeople = "off"


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
    outputs_complete: bool = True
    omitted: Omitted = Omitted()
    interrupt_ignored: bool = False
    text: Digest | None = None
    """Whole text of capped outputs, as far as it was kept; see `omitted_text_bytes`."""
    text_bytes: int = 0
    omitted_text_bytes: int = 0


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


class OutputsAccepted(Entry, frozen=True, kw_only=True, tag="outputs_accepted"):
    """A person accepted an execution's outputs: the originals belong in the notebook."""

    execution_id: ExecutionId


class OutputsDiscarded(Entry, frozen=True, kw_only=True, tag="outputs_discarded"):
    """A person discarded an execution's outputs: none of them belongs in the notebook."""

    execution_id: ExecutionId


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


class Recovered(Entry, frozen=True, kw_only=True, tag="recovered"):
    """The server that wrote this journal died; another took it up."""

    torn_bytes: int
    """Length of the incomplete last line, which nobody had been told of, that was removed."""


class Closed(Entry, frozen=True, kw_only=True, tag="closed"):
    """The session's end. What may follow is only what people decide about it afterwards."""

    reason: CloseReason


JournalEntry = (
    Opened
    | KernelStarted
    | KernelEnded
    | Accepted
    | Dispatched
    | Finished
    | LateOutput
    | DisplayUpdated
    | Interrupted
    | PersonRan
    | NotebookCreated
    | NotebookMoved
    | CellWritten
    | OutputsAccepted
    | OutputsDiscarded
    | NotebookEditAsked
    | NotebookEditRefused
    | NotebookEdited
    | Recovered
    | Closed
)


class LedgerOpened(Entry, frozen=True, kw_only=True, tag="ledger_opened"):
    """A server began to write this ledger, or went on with one that a server before it left."""

    instance: str
    version: str


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


LedgerEntry = LedgerOpened | SessionOpened | SessionClosed | SessionAmended


class ExecutionRecord(Struct, frozen=True, kw_only=True):
    """An execution as its entries tell it, or, while it goes on, as the server holds it."""

    id: ExecutionId
    session_id: SessionId
    seq: int
    init: bool
    status: Status
    reason: str | None
    source: str
    agent: Agent
    username: str
    timeout: float | None
    kernel: ExecutionKernel | None
    execution_count: int | None
    outputs: list[Output]
    """Whole: blobs are back in their places, late outputs and display updates applied."""
    blobs: tuple[BlobRef, ...]
    """Where the large values and images of `outputs` are kept; empty until it has finished."""
    error: ExecutionError | None
    accepted_at: str
    started_at: str | None
    finished_at: str | None
    outputs_complete: bool
    omitted: Omitted
    interrupt_ignored: bool
    text: Digest | None
    text_bytes: int
    omitted_text_bytes: int
    entry_hash: Digest | None
    """Hash of the journal line with its `finished` entry."""
    document: Document | None = None
    waiting_for: WaitingFor | None = None
    chain: Chain
    """The journal's head when this was read."""
