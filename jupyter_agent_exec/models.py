"""The shapes that cross the wire: what is asked, and what is answered.

`openapi.json` is generated from these, and requests are validated against them, so that the routes
and their description cannot disagree. Durations are seconds, sizes are bytes, times are RFC 3339 in
UTC with milliseconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from .types import (
    Digest,
    ExecutionId,
    ExecutionState,
    Output,
    RestartReason,
    SessionId,
    SessionStatus,
    Status,
)

Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what a client sends: unknown fields are refused."""


class Answer(Struct, frozen=True, kw_only=True):
    """Base of what the server sends: fields may be added later."""


# -- asked -----------------------------------------------------------------------------------------


class Agent(Request, frozen=True, kw_only=True):
    """The program that asks.

    It says these of itself; they are shown and recorded, and no right follows from them.
    """

    name: Name
    version: Name | None = None
    model: Name | None = None


class ScratchTarget(Request, frozen=True, kw_only=True):
    """A kernel of the session's own."""

    kind: Literal["scratch"]
    kernel_name: Name | None = None
    """A kernelspec; null is the server's default."""
    cwd: Annotated[str, Meta(max_length=4096)] | None = None
    """Contents path of the folder in which the kernel starts; null is the server's root."""
    env: dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = {}
    """Environment variables of the kernel; the server has a list of the names that it allows."""


Target = ScratchTarget
"""Where a session's code runs; `kind` tells which."""


class Limits(Request, frozen=True, kw_only=True):
    """Bounds on each execution of a session; null takes the server's default."""

    timeout: Seconds | None = None
    """Seconds an execution may run before it is interrupted."""
    queue_timeout: Seconds | None = None
    """Seconds an execution may wait for its turn."""
    max_output_bytes: Annotated[int, Meta(ge=1000)] | None = None
    """UTF-8 bytes of output kept with a cell; not above the server's own."""
    restart_if_interrupt_ignored: bool | None = None
    """Replace the kernel when code goes on after an interrupt and the grace time."""


class OpenSession(Request, frozen=True, kw_only=True):
    """Open an agent session."""

    agent: Agent
    target: Target = ScratchTarget(kind="scratch")
    title: Annotated[str, Meta(max_length=500)] | None = None
    client_id: Name | None = None
    """One open session per client: the same id with the same target gets the same session."""
    limits: Limits = field(default_factory=Limits)
    init_source: str | None = None
    """Code that runs first in each of the session's kernels, outside the kernel's own history."""


class Execute(Request, frozen=True, kw_only=True):
    """Run a source once."""

    source: str
    timeout: Seconds | None = None
    queue_timeout: Seconds | None = None
    max_output_bytes: Annotated[int, Meta(ge=1000)] | None = None
    wait: Annotated[float, Meta(ge=0, le=3600)] | None = None
    """Seconds to hold the answer until the execution finishes; null is the server's default."""


class CloseSession(Request, frozen=True, kw_only=True):
    """Close an agent session."""


class Cancel(Request, frozen=True, kw_only=True):
    """Take back an execution that waits, or interrupt it if it runs."""


class InterruptKernel(Request, frozen=True, kw_only=True):
    """Interrupt what runs in the session's kernel."""


class RestartKernel(Request, frozen=True, kw_only=True):
    """Give the session a fresh kernel."""


# -- answered --------------------------------------------------------------------------------------


class Chain(Answer, frozen=True, kw_only=True):
    """Where a session's journal ends. Keep it to prove later that nothing was cut off."""

    head: Digest
    length: int


class SessionKernel(Answer, frozen=True, kw_only=True):
    """The kernel of a session."""

    id: str
    name: str
    execution_state: ExecutionState
    incarnation: int
    """Which life this is: 1 for the session's first kernel."""


class ExecutionKernel(Answer, frozen=True, kw_only=True):
    """The kernel in which an execution ran."""

    id: str
    name: str
    incarnation: int
    restarted: bool
    """Whether this kernel is fresh since the session's execution before: variables are gone."""
    reason: RestartReason | None


class Session(Answer, frozen=True, kw_only=True):
    """An agent session."""

    id: SessionId
    agent: Agent
    target: Target
    title: str | None
    client_id: str | None
    limits: Limits
    status: SessionStatus
    close_reason: str | None
    username: str
    """The person on whose behalf the agent works."""
    access: Literal["full"]
    """By what right it asks: `full` is a person's own credential."""
    kernel: SessionKernel | None
    executions: int
    """How many were accepted."""
    opened_at: str
    last_activity_at: str
    closed_at: str | None
    chain: Chain


class Image(Answer, frozen=True, kw_only=True):
    """An image among an execution's outputs."""

    mimetype: str
    width: int | None
    """Pixels; null when the data does not tell."""
    height: int | None
    bytes: int
    """Size of the image itself, not of its base64 text."""
    url: str | None
    """Path on this server; null until the execution has finished."""
    output: int
    """Index of the output that holds it."""


class ExecutionError(Answer, frozen=True, kw_only=True):
    """The exception that ended an execution, as the kernel told it."""

    ename: str
    evalue: str
    traceback: list[str]


class Omitted(Answer, frozen=True, kw_only=True):
    """What was left out of an execution's outputs, exactly."""

    bytes: int = 0
    """UTF-8 bytes of stream text and payloads."""
    lines: int = 0
    """Line ends within the stream text left out."""
    outputs: int = 0
    """Whole outputs left out."""


class Execution(Answer, frozen=True, kw_only=True):
    """One source, run once."""

    id: ExecutionId
    session_id: SessionId
    seq: int
    """1 for the session's first; shared with its init_source."""
    init: bool
    """Whether this is the session's init_source rather than something asked by itself."""
    status: Status
    reason: str | None
    """A sentence that says more of a status that is neither ok nor error."""
    source: str
    source_sha256: Digest
    execution_count: int | None
    cell: dict[str, Any]
    """An nbformat 4.5 code cell, complete."""
    text: str
    """What a language model should read."""
    images: list[Image]
    error: ExecutionError | None
    values: None
    kernel: ExecutionKernel | None
    agent: Agent
    username: str
    timeout: float | None
    """Seconds it may run."""
    accepted_at: str
    started_at: str | None
    finished_at: str | None
    duration: float | None
    """Seconds from start to finish."""
    outputs_complete: bool
    omitted: Omitted
    interrupt_ignored: bool
    """Whether the code went on after the interrupt and the grace time."""
    document: None
    chain: Chain


class SessionList(Answer, frozen=True, kw_only=True):
    """Sessions, the newest first."""

    sessions: list[Session]
    next_after: SessionId | None
    """Pass as `after` for the next page; null at the end."""


class ExecutionList(Answer, frozen=True, kw_only=True):
    """A session's executions in order."""

    executions: list[Execution]
    next_after: int | None
    """Pass as `after` for the next page; null at the end."""


class SearchHit(Answer, frozen=True, kw_only=True):
    """An execution that matches a search."""

    execution_id: ExecutionId
    session_id: SessionId
    seq: int
    status: Status
    agent: str
    title: str | None
    accepted_at: str
    images: int
    source: str
    """The source's first 500 characters."""
    snippet: str
    """Text around the match; matches stand between U+2068 and U+2069."""


class SearchResults(Answer, frozen=True, kw_only=True):
    """Executions that match a search, the newest first."""

    hits: list[SearchHit]
    next_after: ExecutionId | None
    """Pass as `after` for the next page; null at the end."""


class Text(Answer, frozen=True, kw_only=True):
    """A range of an execution's whole text."""

    text: str
    offset: int
    """Byte in the UTF-8 text at which this range starts (moved back to a character's start)."""
    next_offset: int | None
    """Where to go on; null at the end."""
    total_bytes: int
    """Bytes that can be read here."""
    omitted_bytes: int
    """Bytes that were printed beyond what is kept."""


class TextMatch(Answer, frozen=True, kw_only=True):
    """A line of an execution's text that matches."""

    line: int
    """Counted from 1."""
    offset: int
    text: str
    """The line, cut to 1,000 characters."""


class TextMatches(Answer, frozen=True, kw_only=True):
    """Lines of an execution's text that match a pattern."""

    matches: list[TextMatch]
    next_offset: int | None
    """Where to go on; null when the whole text was searched."""
    total_bytes: int
    omitted_bytes: int


class ServerStatus(Answer, frozen=True, kw_only=True):
    """How the extension is doing."""

    version: str
    history_available: bool
    open_sessions: int
    kernels: int
    running: int
    queued: int
    ledger: Chain
    search_ready: bool
    """False while the index is being rebuilt."""


class Problem(Answer, frozen=True, kw_only=True):
    """The body of every refusal."""

    message: str
    reason: None
    code: str
    detail: dict[str, Any]


# -- streamed --------------------------------------------------------------------------------------


class OutputChange(Answer, frozen=True, kw_only=True):
    """A step of a running execution's outputs; apply them in order.

    Either the output at `index` becomes `output` (appended when `index` is the current length), or
    `append` is added to the text of the stream output at `index`, or, with `truncate`, outputs from
    `index` on are dropped.
    """

    index: int
    output: Output | UnsetType = UNSET
    append: str | UnsetType = UNSET
    truncate: Literal[True] | UnsetType = UNSET


class StatusChange(Answer, frozen=True, kw_only=True):
    """An execution's new status."""

    status: Status
    execution_count: int | None = None
    started_at: str | None = None
