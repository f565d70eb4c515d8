"""Entries about what runs, and what comes of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..models import ExecutionKernel, Omitted, Placement, StepOf
from ..types import Digest, ExecutionId, Status
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
