"""Requests and answers: the shapes that cross the wire, each defined once.

The OpenAPI document and the types of the lab extension are generated from these, requests are
validated against them, and the record's shapes derive from them. Durations are seconds, sizes are
bytes, times are RFC 3339 in UTC with milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from .types import (
    Access,
    ApprovalMode,
    CellId,
    CellType,
    Digest,
    ExecutionId,
    Output,
    RecordPeople,
    RestartReason,
    SessionId,
    SessionStatus,
    Status,
    TargetKind,
    TokenId,
    Verdict,
    Via,
)
from .types import ExecutionState as KernelState

S = TypeVar("S", bound=Struct)

Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
ContentsPath = Annotated[str, Meta(min_length=1, max_length=4096)]
Sha256 = Annotated[Digest, Meta(pattern=r"^[0-9a-f]{64}$")]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what a client sends: unknown fields are refused."""


class Answer(Struct, frozen=True, kw_only=True):
    """Base of what the server sends: fields may be added later."""


class Agent(Request, frozen=True, kw_only=True):
    """The program that asks.

    It says these of itself; they are shown and recorded, and no right follows from them.
    """

    name: Name
    version: Name | None = None
    model: Name | None = None


class Chain(Answer, frozen=True, kw_only=True):
    """Where a session's journal ends. Keep it to prove later that nothing was cut off."""

    head: Digest
    length: int


class Problem(Answer, frozen=True, kw_only=True):
    """The body of every refusal."""

    message: str
    reason: None
    code: str
    detail: dict[str, Any]


class ScratchTarget(Request, frozen=True, kw_only=True, tag_field="kind", tag="scratch"):
    """A kernel of the session's own."""

    kernel_name: Name | None = None
    """A kernelspec; null is the server's default."""
    cwd: Annotated[str, Meta(max_length=4096)] | None = None
    """Contents path of the folder in which the kernel starts; null is the server's root. No
    symbolic link is followed below that."""
    env: dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = field(
        default_factory=dict
    )
    """Environment variables of the kernel; the server has a list of the names that it allows."""
    isolated: bool = False
    """Start the kernel apart from the server: no network, nobody else's files, bounded memory and
    processes; `cwd` is then all that it may write, or null for a folder of its own that goes when
    the session closes. The server may isolate every scratch kernel, or none."""
    own_folder: bool = False
    """Start in a fresh folder that no other session has, and that goes when the session closes;
    not together with `cwd`."""


class NotebookTarget(Request, frozen=True, kw_only=True, tag_field="kind", tag="notebook"):
    """A person's notebook, and the kernel it has."""

    path: ContentsPath
    """Contents path, as it is when the session opens; renames are followed."""
    kernel_name: Name | None = None
    """The kernelspec to start if the notebook has no kernel; null is what the notebook says."""
    create: bool = False
    """Make an empty notebook if there is none."""


class KernelTarget(Request, frozen=True, kw_only=True, tag_field="kind", tag="kernel"):
    """A kernel that runs, without a document."""

    kernel_id: Name


Target = ScratchTarget | NotebookTarget | KernelTarget
"""Where a session's code runs; `kind` tells which."""


class PreloadModule(Request, frozen=True, kw_only=True, tag_field="kind", tag="module"):
    """A module that is imported."""

    name: Name
    """With dots, if it is in a package."""
    alias: Name | None = field(default=None, name="as")


class PreloadFunction(Request, frozen=True, kw_only=True, tag_field="kind", tag="function"):
    """A function that is defined."""

    source: Annotated[str, Meta(max_length=20_000)]
    """One definition, `def` or `async def`, and nothing else."""
    requirements: Annotated[list[Name], Meta(max_length=50)] = field(default_factory=list)
    """Distributions that must be installed in the kernel's environment, such as `numpy>=2`."""
    imports: Annotated[list[Name], Meta(max_length=50)] = field(default_factory=list)
    """Statements, such as `import numpy as np`, for names that the function needs."""


Preload = PreloadModule | PreloadFunction
"""`kind` tells which."""


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
    target: Target = ScratchTarget()
    title: Annotated[str, Meta(max_length=500)] | None = None
    client_id: Name | None = None
    """One open session per client: the same id with the same target gets the same session."""
    limits: Limits = field(default_factory=Limits)
    init_source: str | None = None
    """Code that runs first in each of the session's kernels, outside the kernel's own history."""
    preload: Annotated[list[Preload], Meta(max_length=100)] = field(default_factory=list)
    """Modules and functions that are there in each of the session's kernels, before
    `init_source`; only in kernels of Python."""
    allow_stdin: bool = False
    """Whether code may ask for input while it runs; else `input()` and the like fail at once."""


class CloseSession(Request, frozen=True, kw_only=True):
    """Close an agent session."""


class InterruptKernel(Request, frozen=True, kw_only=True):
    """Interrupt what runs in the session's kernel."""


class RestartKernel(Request, frozen=True, kw_only=True):
    """Give the session a fresh kernel."""


class SessionKernel(Answer, frozen=True, kw_only=True):
    """The kernel of a session."""

    id: str
    name: str
    execution_state: KernelState
    incarnation: int
    """Which life this is: 1 for the session's first kernel."""


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
    access: Access
    """By what right it asks: `full` is a person's own credential."""
    path: str | None
    """Contents path of the notebook now; null if the target is none."""
    record_people: RecordPeople
    """What is recorded of what people run in the kernel."""
    kernel: SessionKernel | None
    executions: int
    """How many were accepted."""
    opened_at: str
    last_activity_at: str
    closed_at: str | None
    chain: Chain
    approval: ApprovalMode = "none"
    """What of it a person has to approve; of a closed one, when it opened."""
    approved_until: str | None = None
    """Until when all that it asks for runs without asking."""
    asking: int = 0
    """How many executions ask for approval."""
    unreviewed: int = 0
    """How many executions have ended about which no person has said anything."""
    review: Review | None = None
    """The last about the whole session."""
    token: TokenRef | None = None
    """The agent token with which it was opened; null with `full` access."""
    allow_stdin: bool = False
    """Whether its code may ask for input while it runs."""
    preloaded: list[str] = field(default_factory=list)
    """What is there in each of its kernels: `import` statements, and functions by signature and
    docstring."""


class Guide(Answer, frozen=True, kw_only=True):
    """What a language model should know before it works in a session."""

    session_id: SessionId
    text: str
    """For a system message; Markdown."""


class SessionList(Answer, frozen=True, kw_only=True):
    """Sessions: the open ones first, then the closed, each the newest first."""

    sessions: list[Session]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""
    indexing: Indexing | None = None
    """Not null while the index is rebuilt: results may be missing."""


class SessionFile(Answer, frozen=True, kw_only=True):
    """A file or a folder."""

    path: str
    """Relative to the session's folder, with slashes."""
    is_folder: bool
    bytes: int | None
    """Null for a folder."""
    mimetype: str | None
    modified_at: str
    execution_id: ExecutionId | None = None
    """The session's last execution that is known to have written it."""


class SessionFileList(Answer, frozen=True, kw_only=True):
    """What is in a session's folder, or in one below it, by path."""

    files: list[SessionFile]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""


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


MOST_CODE = 100_000
"""Characters: to complete more takes a kernel longer than anybody waits."""

CursorPos = Annotated[int, Meta(ge=0)]
"""Code points from the start of the code."""


class Complete(Request, frozen=True, kw_only=True):
    """Ask what may follow at a place in code."""

    code: Annotated[str, Meta(max_length=MOST_CODE)]
    cursor_pos: CursorPos | None = None
    """Null is the end of the code."""


class Inspect(Request, frozen=True, kw_only=True):
    """Ask for the documentation of what stands at a place in code."""

    code: Annotated[str, Meta(min_length=1, max_length=MOST_CODE)]
    cursor_pos: CursorPos | None = None
    """Null is the end of the code."""
    detail_level: Literal[0, 1] = 0
    """1 adds the source, where the kernel has it."""


class Variable(Answer, frozen=True, kw_only=True):
    """A variable of the kernel's user."""

    name: str
    type: str
    """Qualified name of its type."""
    shape: list[int] | None = None
    """Of an array or a table."""
    length: int | None = None
    """Of a text or a collection."""
    preview: str | None = None
    """Its value, or the start of it; only of what can be told cheaply."""


class VariableList(Answer, frozen=True, kw_only=True):
    """The variables of the kernel's user, by name."""

    variables: list[Variable]
    more: int
    """How many more there are."""


class Completion(Answer, frozen=True, kw_only=True):
    """A text that may stand between `cursor_start` and `cursor_end`."""

    text: str
    type: str | None
    """What it is, as the kernel says: `function`, `module`, …"""


class Completions(Answer, frozen=True, kw_only=True):
    """What may follow at a place in code."""

    completions: list[Completion]
    cursor_start: int
    cursor_end: int
    more: int
    """How many more there are."""
    static: bool = False
    """Whether nothing was evaluated, since code may not run: only names and attributes are told
    that are known without that."""


class Inspection(Answer, frozen=True, kw_only=True):
    """The documentation of what stands at a place in code."""

    found: bool
    text: str
    """As a language model should read it; empty if nothing was found."""


class Package(Answer, frozen=True, kw_only=True):
    """A distribution that code in the kernel can import."""

    name: str
    version: str
    import_names: list[str]


class PackageList(Answer, frozen=True, kw_only=True):
    """The distributions that code in the kernel can import, by name."""

    packages: list[Package]
    more: int
    """How many more there are."""


class Value(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """What an expression was after an execution: JSON where it is, else a description."""

    status: Literal["ok", "error"]
    json: Any | UnsetType = UNSET
    """The value, if it is JSON: null, booleans, finite numbers, texts, lists, objects."""
    type: str | None = None
    """Qualified name of its type."""
    shape: list[int] | None = None
    dtype: str | None = None
    """Of an array."""
    dtypes: dict[str, str] | None = None
    """Of a table, by column."""
    head: list[dict[str, Any]] | None = None
    """A table's first rows."""
    range: list[float] | None = None
    """An array's least and greatest number."""
    repr: str | None = None
    truncated: bool = False
    """Whether some of it was cut off."""
    ename: str | None = None
    """Name of the error; `NotEvaluated` if nobody looked at the expression."""
    evalue: str | None = None

    @classmethod
    def not_evaluated(cls, because: str) -> Value:
        """Return what is told of an expression that nobody looked at."""
        return cls(status="error", ename="NotEvaluated", evalue=because)


class AcceptOutputs(Request, frozen=True, kw_only=True):
    """Bring an execution's original outputs into the notebook, and trust its cell."""


class DiscardOutputs(Request, frozen=True, kw_only=True):
    """Take an execution's outputs out of the notebook; the record keeps them."""


class RestoreOutputs(Request, frozen=True, kw_only=True):
    """Take back a decision about an execution's outputs: what was in the notebook before it."""


class DiscardCell(Request, frozen=True, kw_only=True):
    """Take an execution's cell out of the notebook; the record keeps it."""


class RestoreCell(Request, frozen=True, kw_only=True):
    """Put a cell that was discarded back to where it was."""


class Approve(Request, frozen=True, kw_only=True):
    """Let an execution run that asks for it."""

    source_sha256: Sha256
    """Of the source that was looked at: refused if another one asks."""
    source: str | None = None
    """What to run instead; both are recorded."""


class Reject(Request, frozen=True, kw_only=True):
    """Do not let an execution run that asks for it."""

    reason: Annotated[str, Meta(max_length=5000)] | None = None
    """A sentence for the agent."""


class GrantApproval(Request, frozen=True, kw_only=True):
    """Let all that a session asks for run for some time, without asking."""

    minutes: Annotated[float, Meta(ge=0, le=1440)]
    """0 ends it."""


class SetPolicy(Request, frozen=True, kw_only=True):
    """Say what agents must ask for; null leaves it as it is."""

    scratch: ApprovalMode | None = None
    notebook: ApprovalMode | None = None
    kernel: ApprovalMode | None = None


class SetPause(Request, frozen=True, kw_only=True):
    """Send nothing more of any agent to a kernel, or go on."""

    paused: bool


class SetReview(Request, frozen=True, kw_only=True):
    """Say what to think of an execution, or of all that a session has run so far."""

    verdict: Verdict | None
    """Null takes back the verdict."""
    comment: Annotated[str, Meta(max_length=10_000)] | None = None


class ApprovalPolicy(Answer, frozen=True, kw_only=True):
    """What agents must ask for, by the kind of their target."""

    scratch: ApprovalMode
    notebook: ApprovalMode
    kernel: ApprovalMode
    forced: list[TargetKind]
    """For which the server's configuration decides."""


class Pause(Answer, frozen=True, kw_only=True):
    """All agents wait, since a person wants it so."""

    by: str
    at: str


class Approvals(Answer, frozen=True, kw_only=True):
    """What asks for approval now, and what has to."""

    executions: list[Execution]
    """Those with status `awaiting_approval`, the longest waiting first."""
    policy: ApprovalPolicy
    paused: Pause | None
    needs_passphrase: bool = False
    """Whether a person has to type the server's passphrase before they decide."""


class CellPart(Request, frozen=True, kw_only=True):
    """A piece of a cell that is split."""

    cell_type: CellType
    source: str


class InsertCell(Request, frozen=True, kw_only=True, tag_field="op", tag="insert"):
    """Add a cell: after or before another, or at the end."""

    cell_type: CellType
    source: str
    after: CellId | None = None
    before: CellId | None = None


class ReplaceCell(Request, frozen=True, kw_only=True, tag_field="op", tag="replace"):
    """Give a cell another source, or another type."""

    cell_id: CellId
    source: str
    cell_type: CellType | None = None
    source_sha256: Sha256 | None = None
    """Of the source that it must still have."""


class MoveCell(Request, frozen=True, kw_only=True, tag_field="op", tag="move"):
    """Move a cell: after or before another, or to the end."""

    cell_id: CellId
    after: CellId | None = None
    before: CellId | None = None


class DeleteCell(Request, frozen=True, kw_only=True, tag_field="op", tag="delete"):
    """Take a cell out."""

    cell_id: CellId
    source_sha256: Sha256 | None = None


class SplitCell(Request, frozen=True, kw_only=True, tag_field="op", tag="split"):
    """Put several cells in the place of one; the first keeps its id."""

    cell_id: CellId
    parts: Annotated[list[CellPart], Meta(min_length=1, max_length=100)]
    source_sha256: Sha256 | None = None


class ClearOutputs(Request, frozen=True, kw_only=True, tag_field="op", tag="clear_outputs"):
    """Clear a code cell's outputs, or those of all cells."""

    cell_id: CellId | None = None


Edit = InsertCell | ReplaceCell | MoveCell | DeleteCell | SplitCell | ClearOutputs


class EditNotebook(Request, frozen=True, kw_only=True):
    """Change a notebook's cells: all of the edits, in order, or none."""

    session_id: SessionId
    """An open session whose target is this notebook; its journal takes the edits."""
    edits: Annotated[list[Edit], Meta(min_length=1, max_length=1000)]
    hash: Sha256 | None = None
    """Of the notebook, as it was read: refused if its cells have changed since."""


class NotebookCell(Answer, frozen=True, kw_only=True):
    """A cell as it is in a notebook now."""

    id: CellId | None
    """Null in a notebook older than nbformat 4.5."""
    index: int
    cell_type: str
    source: str
    source_sha256: Digest
    execution_count: int | None
    text: str
    """Its outputs, as a language model should read them."""
    execution_id: ExecutionId | None
    """Of the agent's execution that it shows."""
    agent: str | None


class NotebookCells(Answer, frozen=True, kw_only=True):
    """A notebook as it is now, unsaved edits included."""

    path: str
    hash: Digest
    """Of ids, types and sources of all cells, in order."""
    via: Via
    cells: list[NotebookCell]


class NotebookEdited(Answer, frozen=True, kw_only=True):
    """What became of edits."""

    path: str
    hash: Digest
    """Of the notebook after them."""
    via: Via
    cell_ids: list[list[CellId]]
    """For each edit, the cells that it added or changed."""
    chain: Chain


class OpenNotebook(Answer, frozen=True, kw_only=True):
    """A notebook that has a kernel, or is open in a tab or a live document."""

    path: str
    via: Via
    kernel: NotebookKernel | None
    tabs: int
    """How many JupyterLab tabs are known to show it."""
    unsaved: bool | None
    """Whether a tab has changes that are not on disk; null if nobody knows."""
    session_ids: list[SessionId]
    """Open agent sessions on it."""


class NotebookKernel(Answer, frozen=True, kw_only=True):
    """The kernel of a notebook."""

    id: str
    name: str
    execution_state: str


class OpenNotebookList(Answer, frozen=True, kw_only=True):
    """Notebooks in use, by path."""

    notebooks: list[OpenNotebook]


class Indexing(Answer, frozen=True, kw_only=True):
    """How far a rebuild of the history's index has come; the newest sessions are indexed first."""

    done: int
    """Sessions that are indexed."""
    total: int
    """All sessions of the history."""

    def __str__(self) -> str:
        return (
            f"The index is being rebuilt: {self.done:,} of {self.total:,} sessions so far; "
            "results may be missing."
        )


class JournalEvent(Answer, frozen=True, kw_only=True):
    """An entry of a session's journal that is not part of an execution's cell."""

    n: int
    """Its position in the journal."""
    type: str
    """As the record names it: `kernel_started`, `interrupted`, `notebook_edited`, …"""
    at: str
    by: str | None
    """Name of the person or agent; null for the server, or if it is not known."""
    after_seq: int
    """The last execution that was accepted before it; 0 if none was."""
    execution_id: ExecutionId | None
    """The execution that it is about."""
    text: str | None
    """A reason, a comment, a path: what it says in one line."""


class JournalEventList(Answer, frozen=True, kw_only=True):
    """Entries of a session's journal that are not part of executions' cells, in order."""

    events: list[JournalEvent]
    next_after: int | None
    """Pass as `after` for the next page; null at the end."""


class ExecutionReference(Answer, frozen=True, kw_only=True):
    """An execution of the history, and the session that it belongs to."""

    execution_id: ExecutionId
    session_id: SessionId
    seq: int
    agent: str
    title: str | None
    accepted_at: str


class RecordedImage(ExecutionReference, frozen=True, kw_only=True):
    """An image of the history, and the execution that it came of."""

    output: int
    """Index of the output that holds it."""
    mimetype: str
    width: int | None
    height: int | None
    bytes: int
    url: str


class ImageList(Answer, frozen=True, kw_only=True):
    """Images of the history: a session's in order, else the newest first."""

    images: list[RecordedImage]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""
    indexing: Indexing | None = None
    """Not null while the index is rebuilt: results may be missing."""


class SearchHit(ExecutionReference, frozen=True, kw_only=True):
    """An execution that matches a search."""

    status: Status
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
    indexing: Indexing | None = None
    """Not null while the index is rebuilt: results may be missing."""


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


Lifetime = Annotated[float, Meta(ge=60, le=2_592_000)]
"""Seconds from a minute to 30 days."""


class Caps(Request, frozen=True, kw_only=True):
    """The most that an agent may use with a token; null is the server's own bound."""

    executions_per_minute: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    concurrent_executions: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """How many may wait and run at once."""
    wall_seconds: Seconds | None = None
    """The longest timeout of an execution, and the one that it has if it names none."""
    output_bytes: Annotated[int, Meta(ge=1000)] | None = None
    """UTF-8 bytes of output kept with a cell."""
    kernels: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """How many sessions may be open at once."""
    completion: bool | None = None
    """False: no documentation from kernels, which may run code for it, and no completion but what
    is known without running any."""


class MintToken(Request, frozen=True, kw_only=True):
    """Give an agent a token of its own."""

    label: Name
    """What people call it; shown and recorded."""
    scopes: Annotated[list[Annotated[str, Meta(max_length=4200)]], Meta(min_length=1)]
    """`exec:scratch`, `exec:notebook[:<pattern>]`, `read:notebook[:<pattern>]`,
    `edit:notebook[:<pattern>]`, `files`, `history:read`, `history:read:all`. A pattern is compared
    with a contents path part by part: `*` within a part, `**` for any number of parts."""
    expires_in: Lifetime = 28_800.0
    """Seconds."""
    approval: ApprovalMode | None = None
    """What a person has to approve before it runs; null is what the policy says."""
    caps: Caps = field(default_factory=Caps)


class TokenRef(Answer, frozen=True, kw_only=True):
    """The token with which a session was opened."""

    id: TokenId
    label: str


class Token(Answer, frozen=True, kw_only=True):
    """An agent token, without its secret."""

    id: TokenId
    label: str
    scopes: list[str]
    approval: ApprovalMode | None
    caps: Caps
    username: str
    """The person who minted it, on whose behalf its agent works."""
    status: Literal["active", "expired", "revoked"]
    created_at: str
    expires_at: str
    revoked_at: str | None
    last_used_at: str | None


class Configuration(Answer, frozen=True, kw_only=True):
    """How to hand a token to an agent: text to paste, with the secret in it."""

    name: str
    """For whom: `mcp`, `mcp-stdio`, `python`, `curl`."""
    language: Literal["json", "python", "shell"]
    text: str


class MintedToken(Answer, frozen=True, kw_only=True):
    """A token that has just been minted. The secret is told this once."""

    token: Token
    secret: str
    """The whole credential: `Authorization: Bearer <secret>`."""
    configurations: list[Configuration]


class Unlock(Request, frozen=True, kw_only=True):
    """Prove with the server's passphrase that a person decides."""

    passphrase: Annotated[str, Meta(min_length=1, max_length=1000)]


class Unlocked(Answer, frozen=True, kw_only=True):
    """Decisions that show this are taken. Keep it in memory only."""

    unlock: str
    """For the header `X-Agent-Exec-Unlock`."""
    expires_at: str


class TokenList(Answer, frozen=True, kw_only=True):
    """Tokens, the newest first."""

    tokens: list[Token]


def derive(model: type[S], source: Struct, /, **fields: object) -> S:
    """Return a `model` made of the fields that it shares with `source`, and of `fields`."""
    shared = {
        name: getattr(source, name)
        for name in source.__struct_fields__
        if name in model.__struct_fields__
    }
    return model(**(shared | fields))


PIECE_BYTES: Final = 1 << 17
"""About how much of a long answer is made, and sent, at once."""

_LEVELS: Final = 10
"""Of a model, down to the text of an output; what is deeper is encoded as a whole."""


def json_pieces(model: Any) -> Iterator[bytes]:
    """Yield the JSON of a model piece by piece, so that nobody has to hold a copy of a long text.

    All pieces but the last have at least `PIECE_BYTES`.
    """
    piece = bytearray()
    for part in _json_parts(msgspec.to_builtins(model, str_keys=True), _LEVELS):
        piece += part
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _json_parts(value: Any, levels: int) -> Iterator[bytes]:
    if isinstance(value, str) and len(value) > PIECE_BYTES:
        yield b'"'
        for start in range(0, len(value), PIECE_BYTES):
            yield msgspec.json.encode(value[start : start + PIECE_BYTES])[1:-1]
        yield b'"'
    elif isinstance(value, dict) and levels:
        before = b"{"
        for key, item in value.items():
            yield before + msgspec.json.encode(key) + b":"
            yield from _json_parts(item, levels - 1)
            before = b","
        yield b"}" if value else b"{}"
    elif isinstance(value, list) and levels:
        before = b"["
        for item in value:
            yield before
            yield from _json_parts(item, levels - 1)
            before = b","
        yield b"]" if value else b"[]"
    else:
        yield msgspec.json.encode(value)
