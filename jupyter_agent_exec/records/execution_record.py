"""What the entries about one execution amount to."""

from __future__ import annotations

from msgspec import Struct

from ..models import (
    Agent,
    Approval,
    Chain,
    Changes,
    Document,
    ExecutionError,
    ExecutionKernel,
    Input,
    LeftOut,
    Omitted,
    Review,
    StepOf,
    TokenRef,
    Value,
    WaitingFor,
)
from ..types import Digest, ExecutionId, Output, SessionId, Status
from .base import BlobRef


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
    """Whole, but for what `brief` tells: blobs are back in their places, late outputs and display
    updates applied."""
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
    token: TokenRef | None = None
    """The agent token with which its session was opened; None with a person's own credential."""
    document: Document | None = None
    waiting_for: WaitingFor | None = None
    input: Input | None = None
    step: StepOf | None = None
    approval: Approval | None = None
    revises: ExecutionId | None = None
    review: Review | None = None
    changes: Changes | None = None
    values: dict[str, Value] | None = None
    """Of the expressions that were asked for; null if none were, or before it has finished."""
    duration: float | None = None
    """Seconds that it ran, by a clock that nobody sets; null if that is not known."""
    brief: Brief | None = None
    """Null if nothing was to be left out of the outputs."""
    chain: Chain
    """The journal's head when this was read."""
