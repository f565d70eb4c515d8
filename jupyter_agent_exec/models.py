"""Executions: what is asked to run, and what came of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from ..types import (
    CellId,
    Digest,
    ExecutionId,
    Output,
    RestartReason,
    SessionId,
    Status,
    Verdict,
    Via,
)
from .base import Agent, Answer, Chain, Name, Request, Seconds, Sha256
from .inspection import Value
from .tokens import TokenRef


class Placement(Request, frozen=True, kw_only=True):
    """Where in the notebook an execution's cell goes: one of `after`, `before` and `cell`."""

    after: CellId | None = None
    before: CellId | None = None
    cell: CellId | None = None
    """Run the cell that is there; its source is the default."""
    source_sha256: Sha256 | None = None
    """Of the source that `cell` must still have."""


Expressions = Annotated[dict[Name, Annotated[str, Meta(max_length=10_000)]], Meta(max_length=100)]
"""To evaluate after code, by the names under which their values come back."""


class Step(Request, frozen=True, kw_only=True):
    """One of several sources to run one after the other."""

    source: str | None = None
    """May be left out only if `placement` names the cell to run."""
    timeout: Seconds | None = None
    placement: Placement | Literal["end", "none"] = "end"
    """Where its cell goes, if the session's target is a notebook."""
    values: Expressions = field(default_factory=dict)
    """Expressions to evaluate after the code, by the names under which their values come back."""


class Execute(Step, frozen=True, kw_only=True):
    """Run a source once."""

    queue_timeout: Seconds | None = None
    max_output_bytes: Annotated[int, Meta(ge=1000)] | None = None
    wait: Annotated[float, Meta(ge=0, le=3600)] | None = None
    """Seconds to hold the answer until the execution finishes; null is the server's default."""
    revises: ExecutionId | None = None
    """An execution of this session of which the source is a new version: whoever approves it is
    shown the difference. Null is the session's last execution, if that was rejected."""


class RunSteps(Request, frozen=True, kw_only=True):
    """Run several sources, one after the other, with nothing else of the session in between."""

    steps: Annotated[list[Step], Meta(min_length=1, max_length=100)]
    stop_on_error: bool = True
    """Cancel what comes after a step that ends with another status than ok."""
    wait: Annotated[float, Meta(ge=0, le=3600)] | None = None
    """Seconds to hold the answer until all have finished, or the code of one asks for input; null
    is the server's default."""


class GiveInput(Request, frozen=True, kw_only=True):
    """Answer what the code of an execution asks for while it runs."""

    value: Annotated[str, Meta(max_length=100_000)]
    asked_at: str | None = None
    """Of the input that is answered: refused if the code asks for another by now."""
    wait: Annotated[float, Meta(ge=0, le=3600)] | None = 0
    """Seconds to hold the answer until the execution finishes, or asks again; null is the
    server's default."""


class Cancel(Request, frozen=True, kw_only=True):
    """Take back an execution that waits, or interrupt it if it runs."""


class ExecutionKernel(Answer, frozen=True, kw_only=True):
    """The kernel in which an execution ran."""

    id: str
    name: str
    incarnation: int
    restarted: bool
    """Whether this kernel is fresh since the session's execution before: variables are gone."""
    reason: RestartReason | None


class VariableChange(Answer, frozen=True, kw_only=True):
    """A variable that an execution made, changed or removed, as far as it can be told cheaply."""

    name: str
    change: Literal["added", "changed", "removed"]
    type: str | None
    """Qualified name of its type; null if it is gone."""
    shape: list[int] | None = None
    """Of an array or a table."""
    length: int | None = None
    """Of a text or a collection."""
    preview: str | None = None
    """Its value, or the start of it; only of plain values."""


class FileChange(Answer, frozen=True, kw_only=True):
    """A file that was written while an execution ran."""

    path: str
    """Relative to the folder in which the kernel works, with slashes."""
    bytes: int
    modified_at: str
    url: str | UnsetType | None = UNSET
    """Path on this server at which it can be read while the session is open; null if it cannot.
    Not recorded."""


class Changes(Answer, frozen=True, kw_only=True):
    """What an execution changed besides its outputs."""

    variables: list[VariableChange] = field(default_factory=list)
    more_variables: int = 0
    """How many more there are."""
    files: list[FileChange] = field(default_factory=list)
    more_files: int = 0


class LeftOut(Answer, frozen=True, kw_only=True):
    """An output that an answer leaves out, since it is large."""

    index: int
    """In the cell's outputs, where it stands without its data or text."""
    bytes: int
    """Size of its data or text."""
    mimetypes: list[str]


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


class Approval(Answer, frozen=True, kw_only=True):
    """What became of an execution's asking for approval."""

    status: Literal["asked", "approved", "rejected", "expired", "withdrawn"]
    """`withdrawn`: it was cancelled, or its session closed, before anybody decided."""
    asked_at: str
    expires_at: str
    kernel_id: str | None
    """The kernel that it asks for; null if there was none yet."""
    incarnation: int
    """The life of the session's kernel that it asks for."""
    before: str | None
    """The source that it is a new version of: of the execution that it revises, or of the cell
    that it replaces."""
    decided_at: str | None = None
    decided_by: str | None = None
    """Name of the person."""
    reason: str | None = None
    """Why it was rejected."""
    asked_source: str | None = None
    """What the agent asked for, if a person changed it before approving."""


class Review(Answer, frozen=True, kw_only=True):
    """What a person thinks of an execution, or of a session."""

    verdict: Verdict | None
    """Null if there is only a comment."""
    comment: str | None
    by: str
    """Name of the person."""
    at: str
    whole_session: bool = False
    """Whether it was said of all that the session had run, rather than of this execution."""


class Document(Answer, frozen=True, kw_only=True):
    """What became of an execution's cell in a notebook."""

    path: str
    """Contents path of the notebook."""
    cell_id: CellId | None
    """Null if there is no cell."""
    via: Via | None
    """How the notebook was reached last; null before."""
    status: Literal["writing", "written", "not_written", "discarded"]
    """`writing`: what is there is on its way, or will grow; `discarded`: a person took the cell
    out."""
    outputs: Literal["inert", "held", "accepted", "discarded"]
    """What of the outputs is in the notebook: an inert copy of all; one that holds back what is
    active; the originals, which a person accepted; none, since a person discarded them."""
    reason: str | None
    """A sentence: why the cell was not written."""


class WaitingFor(Answer, frozen=True, kw_only=True):
    """Behind whom an execution waits for its turn."""

    who: Literal["agent", "person", "kernel", "approval", "pause"]
    """`person`: anybody who is not an agent of ours; `kernel`: it starts, or is being reached;
    `approval`: a person has to let it run; `pause`: a person has paused all agents."""
    agent: str | None
    """Name of the agent."""
    execution_id: ExecutionId | None
    since: str | None
    """When what runs began."""


class Input(Answer, frozen=True, kw_only=True):
    """What code asks for while it runs."""

    prompt: str
    """Written by the code, so not to be trusted; not all of it if it is very long."""
    password: bool
    """Whether it is not to be shown as it is typed. What is given is not recorded then."""
    asked_at: str


class StepOf(Answer, frozen=True, kw_only=True):
    """Which one it is of several executions that were asked for at once."""

    first: ExecutionId
    """The first of them."""
    number: int
    """From 1."""
    of: int


class Omitted(Answer, frozen=True, kw_only=True):
    """What was left out of an execution's outputs, exactly."""

    bytes: int = 0
    """UTF-8 bytes of stream text and payloads."""
    lines: int = 0
    """Line ends within the stream text left out."""
    outputs: int = 0
    """Whole outputs left out."""


class ExecutionState(Answer, frozen=True, kw_only=True):
    """What is known of an execution, wherever it is told: the record and the answer add to it."""

    id: ExecutionId
    session_id: SessionId
    seq: int
    """1 for the session's first; shared with its init_source."""
    init: bool
    """Whether this is the session's preload or init_source rather than something asked for."""
    status: Status
    reason: str | None
    """A sentence that says more of a status that is neither ok nor error."""
    source: str
    execution_count: int | None
    error: ExecutionError | None
    values: dict[str, Value] | None
    """By the names under which expressions were asked for; null if none were, or before its end."""
    kernel: ExecutionKernel | None
    agent: Agent
    """What the program says of itself."""
    username: str
    token: TokenRef | None
    """The agent token with which its session was opened; null with a person's own credential."""
    timeout: float | None
    """Seconds it may run."""
    accepted_at: str
    started_at: str | None
    finished_at: str | None
    duration: float | None
    """Seconds from start to finish, by a clock that nobody sets; null if that is not known."""
    outputs_complete: bool
    omitted: Omitted
    interrupt_ignored: bool
    """Whether the code went on after the interrupt and the grace time."""
    waiting_for: WaitingFor | None
    """Null unless it waits behind something."""
    input: Input | None = None
    """What its code asks for; null unless the status is `awaiting_input`."""
    step: StepOf | None = None
    """Null if it was asked for by itself."""
    document: Document | None
    """Null if the session's target is not a notebook."""
    chain: Chain
    """Where the session's journal ended when this was read."""
    approval: Approval | None = None
    """Null if it did not have to ask."""
    revises: ExecutionId | None = None
    review: Review | None = None
    changes: Changes | None = None
    """Null if it is not recorded, or not known yet."""


class Execution(ExecutionState, frozen=True, kw_only=True):
    """One source, run once."""

    source_sha256: Digest
    cell: dict[str, Any]
    """An nbformat 4.5 code cell, complete."""
    text: str
    """What a language model should read."""
    images: list[Image]
    left_out: list[LeftOut] = field(default_factory=list)
    """Outputs that are large and were not asked for; the execution by itself has them."""


class ExecutionList(Answer, frozen=True, kw_only=True):
    """A session's executions in order."""

    executions: list[Execution]
    next_after: int | None
    """Pass as `after` for the next page; null at the end."""


class Steps(Answer, frozen=True, kw_only=True):
    """Executions that were asked for at once."""

    executions: list[Execution]
    """In the order of the steps."""
    finished: bool
    """Whether all of them have."""


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
    waiting_for: WaitingFor | None = None
    input: Input | None = None
