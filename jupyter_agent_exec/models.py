"""The models of requests and answers, each defined once.

Requests are validated against these models. The OpenAPI document and the lab extension's types are
generated from them, and the models of the record derive from them. Durations are in seconds, sizes
in bytes. Times are RFC 3339 in UTC with milliseconds.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from .types import (
    Access,
    ApprovalMode,
    CellId,
    CellType,
    Digest,
    EditMode,
    EditStatus,
    ExecutionId,
    GrantSpan,
    KernelState,
    NextApproval,
    Output,
    PolicyKind,
    ProposalId,
    ProposedEditId,
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

S = TypeVar("S", bound=Struct)

Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
ContentsPath = Annotated[str, Meta(min_length=1, max_length=4096)]
Pattern = Annotated[str, Meta(min_length=1, max_length=1000)]
Sha256 = Annotated[Digest, Meta(pattern=r"^[0-9a-f]{64}$")]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the models that a client sends. Unknown fields are refused."""


class Answer(Struct, frozen=True, kw_only=True):
    """Base of the models that the server sends. Later versions may add fields."""


class Agent(Request, frozen=True, kw_only=True):
    """The agent's description of itself.

    It is shown and recorded, but gives no rights.
    """

    name: Name
    version: Name | None = None
    model: Name | None = None


class HeadSignature(Answer, frozen=True, kw_only=True):
    """The server's signature of a chain up to a head, which may be older than the chain's end.

    Keep it to prove later what the chain was.
    """

    format: str
    """Says what is signed, and how: `jupyter-agent-exec/head/1`."""
    chain: str
    """The id of the session, or the name of the ledger."""
    length: int
    head: Digest
    at: str
    """When it was signed, by the server's clock."""
    key: Digest
    """SHA-256 of the public key in DER."""
    public_key: str
    """The Ed25519 key in DER, in base64."""
    signature: str
    """Of the fields above but `public_key`, as canonical JSON; in base64."""


class Chain(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a session's journal. Keep it to prove later that nothing was cut off."""

    head: Digest
    length: int
    signature: HeadSignature | None = None
    """The newest signature; left out if there is none, since the server does not sign."""


class Problem(Answer, frozen=True, kw_only=True):
    """The body of every error response."""

    message: str
    reason: None
    code: str
    detail: dict[str, Any]


class ScratchTarget(Request, frozen=True, kw_only=True, tag_field="kind", tag="scratch"):
    """A kernel of the session's own."""

    kernel_name: Name | None = None
    """A kernelspec; null is the server's default."""
    cwd: Annotated[str, Meta(max_length=4096)] | None = None
    """Contents path of the folder in which the kernel starts; null is the server's root folder.
    Symbolic links below the root are not followed."""
    env: dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = field(
        default_factory=dict
    )
    """Environment variables of the kernel. The server's configuration lists the allowed names."""
    isolated: bool = False
    """Start the kernel isolated from the server: no network, no access to other files, limited
    memory and processes. It can then write only to `cwd`. If `cwd` is null, it gets a folder of its
    own, which is deleted when the session closes. The server may isolate every scratch kernel, or
    none."""
    own_folder: bool = False
    """Start in a new folder that no other session uses and that is deleted when the session
    closes. Cannot be combined with `cwd`."""


class NotebookTarget(Request, frozen=True, kw_only=True, tag_field="kind", tag="notebook"):
    """A user's notebook and its kernel."""

    path: ContentsPath
    """Contents path when the session opens. The session follows renames."""
    kernel_name: Name | None = None
    """The kernelspec to start if the notebook has no kernel; null is the notebook's own."""
    create: bool = False
    """Create an empty notebook if none exists at `path`."""


class KernelTarget(Request, frozen=True, kw_only=True, tag_field="kind", tag="kernel"):
    """A running kernel, without a document."""

    kernel_id: Name


Target = ScratchTarget | NotebookTarget | KernelTarget
"""Where a session's code runs; `kind` selects the model."""


class PreloadModule(Request, frozen=True, kw_only=True, tag_field="kind", tag="module"):
    """A module to import."""

    name: Name
    """The module's full name, such as `os.path`."""
    alias: Name | None = field(default=None, name="as")


class PreloadFunction(Request, frozen=True, kw_only=True, tag_field="kind", tag="function"):
    """A function to define."""

    source: Annotated[str, Meta(max_length=20_000)]
    """One `def` or `async def`, and nothing else."""
    requirements: Annotated[list[Name], Meta(max_length=50)] = field(default_factory=list)
    """Distributions that must be installed in the kernel's environment, such as `numpy>=2`."""
    imports: Annotated[list[Name], Meta(max_length=50)] = field(default_factory=list)
    """Import statements for the names that the function uses, such as `import numpy as np`."""


Preload = PreloadModule | PreloadFunction
"""A module or a function; `kind` selects the model."""


class Limits(Request, frozen=True, kw_only=True):
    """Limits of each execution in a session; null is the server's default."""

    timeout: Seconds | None = None
    """Seconds an execution may run before it is interrupted."""
    queue_timeout: Seconds | None = None
    """Seconds an execution may wait for its turn."""
    max_output_bytes: Annotated[int, Meta(ge=1000)] | None = None
    """UTF-8 bytes of output kept with a cell; at most the server's limit."""
    restart_if_interrupt_ignored: bool | None = None
    """Replace the kernel if code still runs after an interrupt and the grace time."""


class OpenSession(Request, frozen=True, kw_only=True):
    """Open an agent session."""

    agent: Agent
    target: Target = ScratchTarget()
    title: Annotated[str, Meta(max_length=500)] | None = None
    client_id: Name | None = None
    """Identifies the client. The same id and target return the client's open session."""
    limits: Limits = field(default_factory=Limits)
    init_source: str | None = None
    """Code that runs first in each of the session's kernels. It is not stored in the kernel's
    history."""
    preload: Annotated[list[Preload], Meta(max_length=100)] = field(default_factory=list)
    """Modules and functions to load in each of the session's kernels, before `init_source`. Only
    Python kernels support it."""
    allow_stdin: bool = False
    """Whether running code may request input. If false, `input()` and the like fail at once."""


class CloseSession(Request, frozen=True, kw_only=True):
    """Close an agent session."""


class InterruptKernel(Request, frozen=True, kw_only=True):
    """Interrupt the session's kernel."""

    queued: bool = False
    """Whether the session's executions that wait are cancelled. They always are in a kernel that
    others use too, and if they wait for approval."""


class RestartKernel(Request, frozen=True, kw_only=True):
    """Restart the session's kernel."""


class SessionKernel(Answer, frozen=True, kw_only=True):
    """The kernel of a session."""

    id: str
    name: str
    execution_state: KernelState
    incarnation: int
    """Number of the kernel in the session: 1 for the first. A restart or a new kernel adds one."""


class Grant(Answer, frozen=True, kw_only=True):
    """A user's leave for an agent to run code in a kernel without asking, in all of its sessions.

    The end of the kernel's life ends it, and so does the end of the server.
    """

    until: str | None
    """When it ends in any case; null if it lasts until the kernel restarts."""
    granted_by: str | None
    """Name of the user."""
    granted_at: str


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
    """The user on whose behalf the agent works."""
    access: Access
    """How the session's requests are authorized: `full` is the user's own credential."""
    path: str | None
    """The notebook's current contents path; null if the target is not a notebook."""
    record_people: RecordPeople
    """How much is recorded of the code that users run in the kernel."""
    kernel: SessionKernel | None
    executions: int
    """How many executions the session has accepted."""
    opened_at: str
    last_activity_at: str
    closed_at: str | None
    chain: Chain
    approval: ApprovalMode = "none"
    """Which executions need a user's approval. For a closed session: the mode when it opened."""
    next_approval: NextApproval | None = None
    """What happens to the code that the agent sends next; null if the session is closed, or another
    server's."""
    grant: Grant | None = None
    """The grant by which its code runs without asking; null if it asks, or needs no approval."""
    asking: int = 0
    """How many executions wait for approval."""
    behind: int = 0
    """How many more wait for the same decision, as it covers them too."""
    proposed: int = 0
    """How many of its proposed edits are open."""
    unreviewed: int = 0
    """How many finished executions no user has reviewed."""
    token: TokenRef | None = None
    """The agent token that opened the session; null with `full` access."""
    allow_stdin: bool = False
    """Whether running code may request input."""
    preloaded: list[str] = field(default_factory=list)
    """What is loaded in each of its kernels: `import` statements, and signatures and docstrings of
    functions."""


class Guide(Answer, frozen=True, kw_only=True):
    """Instructions for a language model that works in a session."""

    session_id: SessionId
    text: str
    """Markdown for a system message."""


class SessionList(Answer, frozen=True, kw_only=True):
    """A list of sessions: first the open ones, then the closed ones, each newest first."""

    sessions: list[Session]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""


class SessionFile(Answer, frozen=True, kw_only=True):
    """A file or a folder."""

    path: str
    """Relative to the session's folder, separated by slashes."""
    is_folder: bool
    bytes: int | None
    """Null for a folder."""
    mimetype: str | None
    modified_at: str


class SessionFileList(Answer, frozen=True, kw_only=True):
    """Files and folders in a session's folder or one of its subfolders, sorted by path."""

    files: list[SessionFile]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""


class Placement(Request, frozen=True, kw_only=True):
    """The place of an execution's cell in the notebook: one of `after`, `before` and `cell`."""

    after: CellId | None = None
    before: CellId | None = None
    cell: CellId | None = None
    """Run this existing cell. Its source is the default source; another one is an edit."""
    source_sha256: Sha256 | None = None
    """Hash of the source that `cell` must still have."""


Expressions = Annotated[dict[Name, Annotated[str, Meta(max_length=10_000)]], Meta(max_length=100)]
"""Expressions to evaluate after the code. The keys name their values in the answer."""


Purpose = Annotated[str, Meta(min_length=1, max_length=500)]
"""Why an agent does something, in its own words."""


class Claim(Request, frozen=True, kw_only=True):
    """What an agent says about the code that it runs. It is shown and recorded, not checked."""

    purpose: Purpose | None = None
    """Why it runs the code."""
    trace_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")] | None = None
    """The caller's trace. Source: W3C Trace Context, trace-id."""
    tool_call_id: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    """The model's tool call."""


class Step(Request, frozen=True, kw_only=True):
    """One of several sources that run in order."""

    source: str | None = None
    """Required unless `placement` names the cell to run."""
    timeout: Seconds | None = None
    placement: Placement | Literal["end", "none"] = "end"
    """The place of its cell, if the session's target is a notebook."""
    values: Expressions = field(default_factory=dict)
    """Expressions to evaluate after the code. The keys name their values in the answer."""
    claim: Claim | None = None


class Execute(Step, frozen=True, kw_only=True):
    """Run code once."""

    queue_timeout: Seconds | None = None
    max_output_bytes: Annotated[int, Meta(ge=1000)] | None = None
    wait: Annotated[float, Meta(ge=0, le=3600)] | None = None
    """Seconds to hold the answer until the execution finishes; null is the server's default."""
    revises: ExecutionId | None = None
    """The execution of this session that the source is a new version of. A user who approves it
    sees the difference. Null is the session's last execution, if that was rejected."""
    trial: bool = False
    """Whether to run the code in a sealed copy of the kernel. It sees the kernel's variables and
    changes nothing, so it needs no approval and gets no cell. Only for Python's kernels on
    Linux."""


class RunSteps(Request, frozen=True, kw_only=True):
    """Run several sources in order. No other execution of the session runs in between."""

    steps: Annotated[list[Step], Meta(min_length=1, max_length=100)]
    stop_on_error: bool = True
    """If a step ends with any status but `ok`, cancel the steps after it."""
    wait: Annotated[float, Meta(ge=0, le=3600)] | None = None
    """Seconds to hold the answer until all steps have finished or one requests input; null is the
    server's default."""


class GiveInput(Request, frozen=True, kw_only=True):
    """Answer an input request of running code."""

    value: Annotated[str, Meta(max_length=100_000)]
    asked_at: str | None = None
    """The `asked_at` of the input request to answer. Refused if the code has made another request
    since."""
    wait: Annotated[float, Meta(ge=0, le=3600)] | None = 0
    """Seconds to hold the answer until the execution finishes or requests input again; null is the
    server's default."""


class Cancel(Request, frozen=True, kw_only=True):
    """Cancel a waiting execution, or interrupt a running one."""


class ExecutionKernel(Answer, frozen=True, kw_only=True):
    """The kernel in which an execution ran."""

    id: str
    name: str
    incarnation: int
    restarted: bool
    """Whether the kernel is a new one since the session's previous execution. If true, the earlier
    variables are gone, or are those of an earlier time: see `reason`."""
    reason: RestartReason | None


class VariableState(Answer, frozen=True, kw_only=True):
    """What a variable was before it was changed or removed."""

    type: str
    """Qualified name of its type."""
    shape: list[int] | None = None
    length: int | None = None
    preview: str | None = None


class VariableChange(Answer, frozen=True, kw_only=True):
    """A variable that an execution added, changed or removed."""

    name: str
    change: Literal["added", "changed", "removed"]
    type: str | None
    """Qualified name of its type; null if it was removed."""
    shape: list[int] | None = None
    """Shape of an array or a table."""
    length: int | None = None
    """Length of a string or a collection."""
    preview: str | None = None
    """The value, or its start. Only simple values have one."""
    before: VariableState | None = None
    """What it was; null for a new one, or if unknown."""


class Changes(Answer, frozen=True, kw_only=True):
    """Variables that an execution changed."""

    variables: list[VariableChange] = field(default_factory=list)
    more_variables: int = 0
    """How many changed variables are not listed."""
    not_compared: int = 0
    """How many variables show no change, but were not read whole, so it may have been missed."""


class LeftOut(Answer, frozen=True, kw_only=True):
    """A large output that the answer leaves out."""

    index: int
    """Index in the cell's outputs. The output there has no data or text."""
    bytes: int
    """Size of its data or text."""
    mimetypes: list[str]


class Image(Answer, frozen=True, kw_only=True):
    """An image among an execution's outputs."""

    mimetype: str
    width: int | None
    """Pixels; null if the data does not contain the size."""
    height: int | None
    bytes: int
    """Size of the decoded image."""
    url: str | None
    """URL path on this server; null until the execution has finished."""
    output: int
    """Index of the output that holds the image."""


class ExecutionError(Answer, frozen=True, kw_only=True):
    """The exception that ended an execution, as the kernel reported it."""

    ename: str
    evalue: str
    traceback: list[str]


class AlsoApproved(Answer, frozen=True, kw_only=True):
    """An execution that the approval of another also lets run."""

    execution_id: ExecutionId
    source: str | None
    """Null in the record, where the execution itself has it."""


class Approval(Answer, frozen=True, kw_only=True):
    """The state of an execution's approval request."""

    status: Literal["asked", "approved", "rejected", "expired", "withdrawn"]
    """`withdrawn`: the execution was cancelled, or its session closed, before a user decided."""
    asked_at: str
    expires_at: str
    kernel_id: str | None
    """The kernel in which the code would run; null if the session had none yet."""
    incarnation: int
    """The `incarnation` of that kernel."""
    before: str | None
    """The previous version of the source: of the cell whose source it replaces, or of the execution
    that this one revises."""
    edits_cell: bool = False
    """Whether it is a proposed edit as well: approving it replaces the cell's source and runs it.
    Only a decision about this execution lets it run."""
    decided_at: str | None = None
    decided_by: str | None = None
    """Name of the user."""
    reason: str | None = None
    """Why it was rejected."""
    asked_source: str | None = None
    """The agent's source, if the user edited it before approving."""
    also: list[AlsoApproved] = field(default_factory=list)
    """What else the approval lets run, in order: the rest of a restore."""
    preview: Digest | None = None
    """Digest of the `Preview` that the request had when the user decided."""


class Review(Answer, frozen=True, kw_only=True):
    """A user's review of an execution."""

    verdict: Verdict | None
    """Null if there is only a comment."""
    comment: str | None
    by: str
    """Name of the user."""
    at: str


class Comment(Answer, frozen=True, kw_only=True):
    """What a user wrote about an execution."""

    execution_id: ExecutionId
    seq: int
    verdict: Verdict | None
    comment: str
    by: str
    """Name of the user."""


class Document(Answer, frozen=True, kw_only=True):
    """The state of an execution's cell in a notebook."""

    path: str
    """Contents path of the notebook."""
    cell_id: CellId | None
    """Null if there is no cell."""
    via: Via | None
    """How the notebook was last accessed; null if it was not accessed yet."""
    status: Literal["proposed", "writing", "unsaved", "written", "not_written", "discarded"]
    """`proposed`: the notebook has nothing of it before it is sent to the kernel; `writing`: the
    cell is being written, or more output may follow; `written`: it is complete, in the file, in an
    open tab or in a live document, as `via` says. Histories of earlier versions also have
    `unsaved`, in a tab that was not saved yet, and `discarded`, removed."""
    outputs: Literal["inert", "held", "accepted", "discarded"]
    """The outputs in the notebook. `inert`: an inert copy of all; `held`: an inert copy without
    the active content; `accepted`: the originals, after a user accepted them. Histories of earlier
    versions also have `discarded`: none."""
    reason: str | None
    """A sentence that explains why the cell was not written."""
    placement: Placement | Literal["end"] | None = None
    """Where a proposed cell goes."""
    follows: tuple[CellId, ...] = ()
    """Ids of earlier cells at the same place. A proposed cell goes after the first of them that is
    in the notebook."""


class WaitingFor(Answer, frozen=True, kw_only=True):
    """The reason why an execution waits."""

    who: Literal["agent", "person", "kernel", "approval", "pause"]
    """`agent`: it is an agent's turn in the kernel; `person`: other code runs there; `kernel`: the
    kernel starts, or the server connects to it; `approval`: a user must approve this execution;
    `pause`: a user has paused all agents."""
    agent: str | None
    """Name of the agent."""
    execution_id: ExecutionId | None
    since: str | None
    """When the other code's turn, the approval request or the pause began."""


class Input(Answer, frozen=True, kw_only=True):
    """An input request of running code."""

    prompt: str
    """Written by the code, so do not trust it. A very long prompt is cut."""
    password: bool
    """Whether to hide the value while the user types. Such a value is not recorded."""
    asked_at: str


class StepOf(Answer, frozen=True, kw_only=True):
    """An execution's position in a request with several steps."""

    first: ExecutionId
    """The execution of the first step."""
    number: int
    """Counted from 1."""
    of: int


class Omitted(Answer, frozen=True, kw_only=True):
    """Output that was left out of an execution's outputs; the counts are exact."""

    bytes: int = 0
    """UTF-8 bytes of stream text and payloads."""
    lines: int = 0
    """Line ends in the omitted stream text."""
    outputs: int = 0
    """Whole outputs."""
    unknown: bool = False
    """Whether more may be missing, nobody knows how much: it did not reach the server."""


class Refusal(Answer, frozen=True, kw_only=True):
    """Something that code in a trial tried, and that the seal refused."""

    kind: Literal["write", "connect", "start", "signal", "access"]
    """`write`: write, make, rename or remove a file; `connect`: use the network; `start`: start a
    program or process; `access`: something else that the system refused, such as reading a file."""
    what: str | None
    """The file, host, program or process, as the code named it; null if unknown."""
    line: int | None = None
    """The line of the code that tried it first, from 1; null if unknown."""


class Seal(Answer, frozen=True, kw_only=True):
    """What sealed the copy of the kernel in which a trial ran."""

    landlock_abi: int
    """The version of Landlock, which guards files."""
    seccomp: bool
    """Whether system calls were filtered."""
    refused: list[Refusal] = field(default_factory=list)
    """What the code tried by way of Python, as far as it told. An empty list proves nothing."""


class Preview(Answer, frozen=True, kw_only=True):
    """What a trial of code that waits for approval showed. The code itself has not run."""

    status: Literal["pending", "ok", "error", "timed_out", "none"]
    """`pending`: the trial waits or runs; `none`: there was no trial."""
    reason: str | None = None
    """Why there was none, or how it ended."""
    outputs: list[Output] = field(default_factory=list)
    """An inert copy of the nbformat outputs."""
    omitted: Omitted = Omitted()
    error: ExecutionError | None = None
    changes: Changes | None = None
    """The variables that the code would change; null if unknown."""
    seal: Seal | None = None


class Shown(enum.Enum):
    """Where a field of an execution is shown, besides the answers: in its cell's metadata."""

    IN_CELL = enum.auto()
    """In each cell, even if it is null."""
    IN_CELL_IF_SET = enum.auto()
    """In each cell, if it is neither null nor false nor 0."""
    IN_EXPORT_IF_SET = enum.auto()
    """Likewise, but only in the cells of an export."""


class ExecutionFacts(Answer, frozen=True, kw_only=True):
    """The fields of an execution that the record and the answer share.

    A field is in every answer and in the OpenAPI document. An entry's field of the same name and
    type becomes it. Its marks say where else it is shown.
    """

    id: ExecutionId
    session_id: Annotated[SessionId, Shown.IN_CELL]
    seq: Annotated[int, Shown.IN_CELL]
    """Number in the session, from 1. Preload and init_source have numbers too."""
    init: Annotated[bool, Shown.IN_CELL_IF_SET]
    """Whether this is the session's preload or init_source, not a requested execution."""
    status: Annotated[Status, Shown.IN_CELL]
    reason: Annotated[str | None, Shown.IN_CELL_IF_SET]
    """A sentence that explains a status other than `ok` and `error`."""
    source: str
    execution_count: int | None
    error: ExecutionError | None
    values: Annotated[dict[str, Value] | None, Shown.IN_EXPORT_IF_SET]
    """Values of the requested expressions, by name; null if none were requested, and until the
    execution ends."""
    kernel: ExecutionKernel | None
    agent: Annotated[Agent, Shown.IN_CELL]
    """The agent's description of itself."""
    username: Annotated[str, Shown.IN_CELL]
    token: TokenRef | None
    """The agent token that opened the session; null with a user's own credential."""
    timeout: float | None
    """Seconds it may run."""
    accepted_at: Annotated[str, Shown.IN_CELL]
    started_at: Annotated[str | None, Shown.IN_CELL]
    finished_at: Annotated[str | None, Shown.IN_CELL]
    duration: float | None
    """Seconds from start to finish, by a monotonic clock; null if unknown."""
    outputs_complete: Annotated[bool, Shown.IN_CELL]
    omitted: Omitted
    redacted: Annotated[int, Shown.IN_CELL_IF_SET] = 0
    """How many secrets were replaced in its source, outputs and values by `[redacted: …]`."""
    interrupt_ignored: Annotated[bool, Shown.IN_CELL_IF_SET]
    """Whether the code still ran after the interrupt and the grace time."""
    waiting_for: WaitingFor | None
    """Null if it does not wait."""
    input: Input | None = None
    """The input request of its code; null unless the status is `awaiting_input`."""
    step: StepOf | None = None
    """Null if its request had no steps."""
    document: Document | None
    """Null if the session's target is not a notebook."""
    chain: Chain
    """The end of the session's journal when this was read."""
    approval: Approval | None = None
    """Null if it needed no approval."""
    revises: Annotated[ExecutionId | None, Shown.IN_CELL_IF_SET] = None
    restores: Annotated[ExecutionId | None, Shown.IN_CELL_IF_SET] = None
    """The earlier execution that it runs again, to restore the state of a kernel that ended."""
    trial: Annotated[bool, Shown.IN_CELL_IF_SET] = False
    """Whether it ran in a sealed copy of the kernel, so that its `changes` were not made."""
    seal: Seal | None = None
    """What sealed that copy; null before it was sealed."""
    claim: Annotated[Claim | None, Shown.IN_CELL_IF_SET] = None
    """What the agent says about it."""
    review: Annotated[Review | None, Shown.IN_CELL] = None
    undone_at: Annotated[str | None, Shown.IN_CELL_IF_SET] = None
    """When a user made the kernel as it was before this execution; null if nobody did."""
    undone_by: Annotated[str | None, Shown.IN_CELL_IF_SET] = None
    """Name of that user."""
    changes: Annotated[Changes | None, Shown.IN_EXPORT_IF_SET] = None
    """Null in scratch kernels, except for trials, and if they are not known."""
    decided_edits: list[DecidedEdit] = field(default_factory=list)
    """What became of the session's proposed edits since its last answer; only in the answer to the
    request that runs the code."""
    comments: list[Comment] = field(default_factory=list)
    """What users wrote about the session's executions since its last answer; only in the answer to
    the request that runs the code."""
    restored: bool = False
    """Whether code of an earlier kernel has run again in its kernel since the last answer; only in
    the answer to the request that runs the code."""
    next_approval: NextApproval | None = None
    """What happens to the code that the agent sends next; only in the answer to the request that
    runs the code."""


Lookalikes = dict[str, dict[str, str]]
"""Words of code that could deceive a reader: their letters that look like ASCII letters and are
not, and what these look like."""


class Execution(ExecutionFacts, frozen=True, kw_only=True):
    """One execution of a source."""

    source_sha256: Digest
    cell: dict[str, Any]
    """A complete nbformat 4.5 code cell."""
    text: str
    """The outputs as text for a language model."""
    images: list[Image]
    left_out: list[LeftOut] = field(default_factory=list)
    """Large outputs that this answer leaves out. A request for the single execution returns
    them."""
    lookalikes: Lookalikes = field(default_factory=dict)
    """Of the source, and of all other code that an approval of it is about."""


class ExecutionList(Answer, frozen=True, kw_only=True):
    """A session's executions in order."""

    executions: list[Execution]
    next_after: int | None
    """Pass as `after` for the next page; null at the end."""


class Steps(Answer, frozen=True, kw_only=True):
    """The executions of one request with several steps."""

    executions: list[Execution]
    """In the order of the steps."""
    finished: bool
    """Whether all executions have finished."""


class OutputChange(Answer, frozen=True, kw_only=True):
    """A change of a running execution's outputs. Apply changes in order.

    There are three kinds: `output` replaces the output at `index` (or is appended, if `index` is
    the current length); `append` is added to the text of the stream output at `index`; `truncate`
    drops the outputs from `index` on.
    """

    index: int
    output: Output | UnsetType = UNSET
    append: str | UnsetType = UNSET
    truncate: bool | UnsetType = UNSET


class StatusChange(Answer, frozen=True, kw_only=True):
    """An execution's new status."""

    status: Status
    execution_count: int | None = None
    started_at: str | None = None
    waiting_for: WaitingFor | None = None
    input: Input | None = None


class Variable(Answer, frozen=True, kw_only=True):
    """A variable in the kernel's user namespace."""

    name: str
    type: str
    """Qualified name of its type."""
    shape: list[int] | None = None
    """Shape of an array or a table."""
    length: int | None = None
    """Length of a string or a collection."""
    preview: str | None = None
    """The value, or its start. Only values that are cheap to show have one."""
    dtype: str | None = None
    """The dtype of an array or a series."""
    dtypes: dict[str, str] | None = None
    """The dtypes of a table, by column; at most 100."""
    index: str | None = None
    """Type of the index of a table or a series, such as `DatetimeIndex`; null for a plain range."""


class VariableList(Answer, frozen=True, kw_only=True):
    """The variables in the kernel's user namespace, sorted by name."""

    variables: list[Variable]
    more: int
    """How many variables are not listed."""


class Package(Answer, frozen=True, kw_only=True):
    """A distribution that code in the kernel can import."""

    name: str
    version: str
    import_names: list[str]


class PackageList(Answer, frozen=True, kw_only=True):
    """The distributions that code in the kernel can import, sorted by name."""

    packages: list[Package]
    more: int
    """How many distributions are not listed."""


class Value(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """The value of an expression after an execution: as JSON if possible, else described."""

    status: Literal["ok", "error"]
    json: Any = UNSET
    """The value, if JSON can hold it: null, booleans, finite numbers, strings, lists, objects."""
    type: str | None = None
    """Qualified name of its type."""
    shape: list[int] | None = None
    dtype: str | None = None
    """The dtype of an array."""
    dtypes: dict[str, str] | None = None
    """The dtypes of a table, by column."""
    head: list[dict[str, Any]] | None = None
    """A table's first rows."""
    index: list[str] | None = None
    """The index labels of these rows; null for a plain range."""
    range: list[float] | None = None
    """Minimum and maximum of an array."""
    repr: str | None = None
    truncated: bool = False
    """Whether part of the value was cut off."""
    ename: str | None = None
    """Name of the error; `NotEvaluated` if the expression was not evaluated."""
    evalue: str | None = None

    @classmethod
    def not_evaluated(cls, because: str) -> Value:
        """Return the value of an expression that was not evaluated, with the reason."""
        return cls(status="error", ename="NotEvaluated", evalue=because)


class AcceptOutputs(Request, frozen=True, kw_only=True):
    """Put an execution's original outputs into the notebook, and trust its cell."""


class Approve(Request, frozen=True, kw_only=True):
    """Approve an execution that waits for approval."""

    source_sha256: Sha256
    """Hash of the source that the user saw. Refused if the execution's source is another."""
    source: str | None = None
    """A source to run instead. Both sources are recorded."""
    grant: GrantSpan | None = None
    """Let the agent run more code in this kernel without asking: until the kernel restarts, or for
    an hour at most. With null, the agent's other code asks as the approval mode says."""
    once: bool = False
    """Approve only this execution, also where the mode `first` would let the agent go on. Cannot be
    combined with `grant`."""


class Reject(Request, frozen=True, kw_only=True):
    """Reject an execution that waits for approval."""

    reason: Annotated[str, Meta(max_length=5000)] | None = None
    """A sentence for the agent."""


class SetPolicy(Request, frozen=True, kw_only=True):
    """Set which executions need approval, by the kind of target; null keeps what is set."""

    scratch: ApprovalMode | None = None
    notebook: ApprovalMode | None = None
    kernel: ApprovalMode | None = None
    edits: EditMode | None = None
    """Whether edits by agents with a token are made at once, or proposed."""


class SetPause(Request, frozen=True, kw_only=True):
    """Pause or resume all agents. While paused, no agent's code is sent to a kernel."""

    paused: bool


class SetReview(Request, frozen=True, kw_only=True):
    """Review an execution, or each execution of a session so far."""

    verdict: Verdict | None
    """Null removes the verdict."""
    comment: Annotated[str, Meta(max_length=10_000)] | None = None


class Restore(Request, frozen=True, kw_only=True):
    """Run again what ran in a session's last kernel, but not what was stopped."""

    leave_out: Annotated[list[ExecutionId], Meta(max_length=10_000)] = field(default_factory=list)
    """Executions that do not run again."""
    dry_run: bool = False
    """Only tell what would run."""
    wait: Annotated[float, Meta(ge=0, le=3600)] | None = None
    """Seconds to hold the answer until all has run; null is the server's default."""


class RestoredCell(Answer, frozen=True, kw_only=True):
    """An execution that ran in an earlier kernel."""

    of: ExecutionId
    seq: int
    """Its number in its session."""
    source: str
    """The first line of its source."""
    left_out: str | None
    """Why it does not run, in a sentence."""
    execution_id: ExecutionId | None
    """The execution that runs it again."""
    status: Status | None
    """Of that execution."""


class Restoration(Answer, frozen=True, kw_only=True):
    """What runs again to restore the state of a kernel that ended."""

    session_id: SessionId
    """Where it runs: the session, or a new one if it is closed."""
    of: SessionId
    status: Literal["planned", "running", "finished", "stopped"]
    """`stopped`: an execution failed that had not failed before, and those after it did not run."""
    cells: list[RestoredCell]
    """In order."""


class Erase(Request, frozen=True, kw_only=True):
    """What to erase from the record: one of the first five. An open session is left alone."""

    execution_id: str | None = None
    session_id: str | None = None
    agent: Annotated[str, Meta(min_length=1)] | None = None
    """All sessions of agents with this name."""
    username: Annotated[str, Meta(min_length=1)] | None = None
    """All sessions of a user, and what the user did in others."""
    text: Annotated[str, Meta(min_length=3, max_length=10_000)] | None = None
    """Each payload that contains this text, exactly."""
    reason: Annotated[str, Meta(max_length=1000)] | None = None
    """Why; it is recorded."""
    dry_run: bool = False
    """Only tell what would go."""


class ErasedSession(Answer, frozen=True, kw_only=True):
    """What goes from a session."""

    session_id: SessionId
    agent: str
    title: str | None
    is_open: bool
    """Whether it is open, so that nothing goes. Close it, then erase again."""
    executions: int
    payloads: int
    """How many sources, outputs, images, texts, inputs and edited cells."""
    bytes: int
    facts: int
    """How many entries have the text in a title, purpose, comment, reason or path, where it stays.
    """


class Erasure(Answer, frozen=True, kw_only=True):
    """What was erased, or would be."""

    dry_run: bool
    sessions: list[ErasedSession]
    remains: list[str]
    """What is not touched, in sentences."""


class Retain(Request, frozen=True, kw_only=True):
    """Remove what the server's rules of retention let go."""

    dry_run: bool = False
    """Only tell what would go."""


class RetiredSession(Answer, frozen=True, kw_only=True):
    """A session that goes."""

    session_id: SessionId
    agent: str
    title: str | None
    closed_at: str | None
    reason: str
    """The rule."""
    waits: str | None
    """Why it is not gone yet, in a sentence; null if it is, or if nothing was to be removed."""


class Retention(Answer, frozen=True, kw_only=True):
    """What was removed by the rules of retention, or would be."""

    dry_run: bool
    rules: list[str]
    """Empty if the operator has set none."""
    sessions: list[RetiredSession]


class ApprovalPolicy(Answer, frozen=True, kw_only=True):
    """Which executions need approval, by the kind of target."""

    scratch: ApprovalMode
    notebook: ApprovalMode
    kernel: ApprovalMode
    edits: EditMode
    """Whether edits by agents with a token are made at once, or proposed."""
    forced: list[PolicyKind]
    """What the server's configuration decides. Users cannot change it."""


class Pause(Answer, frozen=True, kw_only=True):
    """A user's pause of all agents."""

    by: str
    at: str


class SinkStatus(Answer, frozen=True, kw_only=True):
    """How far the copy of the record in a sink has come."""

    name: str
    lag: float | None
    """Seconds since the oldest entry that it lacks; 0 if it lacks none. Null until the server knows
    what it lacks."""
    max_lag: float | None
    """Seconds that it may be behind before nothing runs; null if it is not strict."""
    is_stopping_code: bool
    """Whether nothing runs now, because it is too far behind."""
    entries_behind: int
    error: str | None
    """Why it cannot be reached; null if it can, as far as is known."""
    failing_since: str | None


class RecordBreak(Answer, frozen=True, kw_only=True):
    """The record does not continue what the server signed, so nothing is signed any more."""

    name: str
    """Names what was found; a user accepts it by this name."""
    found: list[str]
    """What is not as it was signed, in sentences."""
    at: str
    """When it was found."""


class AcceptBreak(Request, frozen=True, kw_only=True):
    """Accept a break of the record: the server signs the record on as it is now."""

    name: str


class Approvals(Answer, frozen=True, kw_only=True):
    """What goes on and what waits for a user, the approval policy, and the pause."""

    executions: list[Execution]
    """Executions with status `awaiting_approval`; the longest waiting first."""
    pending: list[Execution] = field(default_factory=list)
    """Executions that are queued or run, without outputs; by session, in order."""
    sessions: list[Session] = field(default_factory=list)
    """Open sessions, the newest first."""
    proposing: list[Session] = field(default_factory=list)
    """Sessions with proposed edits that are open, the oldest first."""
    policy: ApprovalPolicy
    paused: Pause | None
    needs_passphrase: bool = False
    """Whether a user must type the server's passphrase before they decide."""
    sinks: list[SinkStatus] = field(default_factory=list)
    """The sinks that cannot be reached, or that stop all code now; empty for an agent token."""
    broken: RecordBreak | None = None
    """Why the record is not signed any more; null while it is, and for an agent token."""


class CellPart(Request, frozen=True, kw_only=True):
    """The type and source of a cell."""

    cell_type: CellType
    source: str


class InsertCell(Request, frozen=True, kw_only=True, tag_field="op", tag="insert"):
    """Insert a cell after or before another, or at the end."""

    cell_type: CellType
    source: str
    after: CellId | None = None
    before: CellId | None = None


class ReplaceCell(Request, frozen=True, kw_only=True, tag_field="op", tag="replace"):
    """Replace a cell's source, a part of it, or its type."""

    cell_id: CellId
    source: str
    find: Annotated[str, Meta(min_length=1)] | None = None
    """Replace only this text, which must occur exactly once in the cell; null replaces all."""
    cell_type: CellType | None = None
    source_sha256: Sha256 | None = None
    """Hash of the source that the cell must still have."""


class MoveCell(Request, frozen=True, kw_only=True, tag_field="op", tag="move"):
    """Move a cell after or before another, or to the end."""

    cell_id: CellId
    after: CellId | None = None
    before: CellId | None = None


class DeleteCell(Request, frozen=True, kw_only=True, tag_field="op", tag="delete"):
    """Delete a cell."""

    cell_id: CellId
    source_sha256: Sha256 | None = None


class SplitCell(Request, frozen=True, kw_only=True, tag_field="op", tag="split"):
    """Split a cell into several. The first keeps the cell's id."""

    cell_id: CellId
    parts: Annotated[list[CellPart], Meta(min_length=1, max_length=100)]
    source_sha256: Sha256 | None = None


class ClearOutputs(Request, frozen=True, kw_only=True, tag_field="op", tag="clear_outputs"):
    """Clear the outputs of one code cell, or of all."""

    cell_id: CellId | None = None


Edit = InsertCell | ReplaceCell | MoveCell | DeleteCell | SplitCell | ClearOutputs


class EditNotebook(Request, frozen=True, kw_only=True):
    """Edit a notebook's cells. Either all edits are applied, in order, or none."""

    session_id: SessionId
    """An open session whose target is this notebook. Its journal records the edits."""
    edits: Annotated[list[Edit], Meta(min_length=1, max_length=1000)]
    hash: Sha256 | None = None
    """Hash of the notebook when it was read. Refused if its cells have changed since."""
    purpose: Purpose | None = None
    """Why the agent edits them. It is recorded, and shown where the edits are proposed."""


class Staleness(Answer, frozen=True, kw_only=True):
    """Why a cell's outputs do not fit its source, or the kernel's variables, any more."""

    certain: bool
    """Whether that is known. If not, it may be."""
    cause: Literal["edited", "changed", "unknown"]
    """`edited`: its source was, since it ran. `changed`: code that ran later changed variables that
    it read. `unknown`: such code may have changed any variable."""
    names: list[str]
    """Some of the variables that were changed; or what makes it unknown, such as `exec`."""
    execution_count: int | None
    """Of the code that ran later."""


class KernelRun(Answer, frozen=True, kw_only=True):
    """Code that a user or an agent ran in a kernel."""

    execution_count: int
    source_sha256: Digest
    execution_id: ExecutionId | None
    """The agent's execution; null for a user's code."""
    stale: Staleness | None
    """Null if nothing is known that makes its outputs out of date."""


class KernelRunList(Answer, frozen=True, kw_only=True):
    """Code that was seen to run in a kernel, oldest first."""

    runs: list[KernelRun]


class NotebookCell(Answer, frozen=True, kw_only=True):
    """The current state of a cell in a notebook."""

    id: CellId
    """Its id in the notebook; one by its content if that is missing, not valid or not unique."""
    index: int
    cell_type: str
    source: str
    source_sha256: Digest
    execution_count: int | None
    text: str
    """Its outputs as text for a language model."""
    execution_id: ExecutionId | None
    """The agent's execution that the cell shows."""
    agent: str | None
    stale: Staleness | None = None
    """Why its outputs are, or may be, out of date; null also if nothing is known of its run."""


class NotebookCells(Answer, frozen=True, kw_only=True):
    """The current cells of a notebook, including unsaved edits."""

    path: str
    hash: Digest
    """Hash of the types and sources of all cells, in order."""
    via: Via
    cells: list[NotebookCell]


class NotebookEdited(Answer, frozen=True, kw_only=True):
    """The result of notebook edits."""

    path: str
    hash: Digest
    """Hash of the notebook after the edits."""
    via: Via
    cell_ids: list[list[CellId]]
    """For each edit, the cells that it added or changed."""
    source_sha256: dict[CellId, Digest] = field(default_factory=dict)
    """Hash of the new source of each of these cells."""
    chain: Chain
    proposal_id: ProposalId | None = None
    """The proposal that the edits became: the notebook is unchanged until the user keeps them.
    Null if the edits were made."""
    decided_edits: list[DecidedEdit] = field(default_factory=list)
    """What became of the session's earlier proposed edits, since its last answer."""


class DecidedEdit(Answer, frozen=True, kw_only=True):
    """What became of a proposed edit of one cell."""

    id: ProposedEditId
    cell_id: CellId
    status: EditStatus
    reason: str | None = None
    """A sentence, if it is obsolete; the user's words, if they rejected it with some."""
    edited: bool = False
    """Whether the user kept it with another source than was proposed."""


class ProposedEdit(Answer, frozen=True, kw_only=True):
    """A proposed change of one cell."""

    id: ProposedEditId
    cell_id: CellId
    kind: Literal["insert", "change", "move", "delete", "clear_outputs"]
    moved: bool
    """Whether a changed cell is moved too."""
    before: CellPart | None
    """The cell when this was proposed; null for a new cell."""
    after: CellPart | None
    """The cell as proposed; null for a deleted cell."""
    current: CellPart | None
    """The cell as it is now; null if the notebook does not have it."""
    result: CellPart | None
    """The cell that keeping makes of it: the proposed source, merged with what the user has typed.
    Null for a deleted cell, or if it does not fit."""
    index: int
    """Its index among the notebook's cells and the proposed new ones."""
    follows: CellId | None
    """The cell of the notebook after which it is, or would be; null if there is none."""
    status: EditStatus
    fits: bool
    """Whether an open edit can be kept now, or the decision about a kept one undone."""
    reason: str | None
    """A sentence that says why it does not fit, or why it is obsolete; the user's words, if they
    rejected it with some."""
    decided_by: str | None
    decided_at: str | None
    edited: bool = False
    """Whether the user kept it with another source than was proposed."""
    lookalikes: Lookalikes = field(default_factory=dict)
    """Of all sources above."""


class Proposal(Answer, frozen=True, kw_only=True):
    """The edits of a notebook that an agent proposed in one request."""

    id: ProposalId
    session_id: SessionId
    path: str
    agent: Agent
    username: str
    purpose: str | None
    """What the agent says why it proposes them."""
    proposed_at: str
    edits: list[ProposedEdit]
    """In the order of the cells."""


class ProposalList(Answer, frozen=True, kw_only=True):
    """Proposals, the oldest first."""

    proposals: list[Proposal]


class DecideEdits(Request, frozen=True, kw_only=True):
    """Keep or reject a session's proposed edits, or undo that."""

    ids: Annotated[list[ProposedEditId], Meta(min_length=1, max_length=10_000)] | None = None
    """Null for all: to keep or reject, those that are open; to undo, those kept or rejected."""


class KeepEdits(DecideEdits, frozen=True, kw_only=True):
    """Keep a session's proposed edits."""

    source: str | None = None
    """What the user has made of the proposed source. Kept instead; only with the id of one edit,
    of a new or a changed cell."""
    source_sha256: Digest | None = None
    """With `source`, of a changed cell: the hash of the source that it had when the user edited. If
    it has another one by now, nothing is done."""


class RejectEdits(DecideEdits, frozen=True, kw_only=True):
    """Reject a session's proposed edits."""

    reason: Annotated[str, Meta(max_length=5000)] | None = None
    """What the agent reads."""


class UndoRound(Request, frozen=True, kw_only=True):
    """Take back what an agent's session changed in its notebook."""

    since: str | None = None
    """Only what was changed from this moment on, such as the user's own last edit; null for all."""


class RedoRound(Request, frozen=True, kw_only=True):
    """Make again what was taken back last."""


class CellLeft(Answer, frozen=True, kw_only=True):
    """A cell that stays as it is."""

    cell_id: CellId
    reason: str
    """A sentence for the user."""


class RoundUndone(Answer, frozen=True, kw_only=True):
    """What became of an undo of a session's changes in its notebook, or of its redo."""

    path: str
    changes: int
    """How many edits and runs of cells were taken back, or made again; 0 if there were none."""
    cell_ids: list[CellId]
    """The cells that were inserted, changed, moved or removed."""
    without_outputs: list[CellId]
    """Cells that were there before the agent ran them. The record lacks the outputs that they had.
    """
    left: list[CellLeft]
    """Cells that the user, or another agent, has changed since, or that are in use."""


class OpenNotebook(Answer, frozen=True, kw_only=True):
    """A notebook that has a kernel, or is open in a tab or a live document."""

    path: str
    via: Via
    kernel: NotebookKernel | None
    tabs: int
    """How many JupyterLab tabs are known to show it."""
    unsaved: bool | None
    """Whether a tab has changes that are not on disk; null if unknown."""
    session_ids: list[SessionId]
    """Open agent sessions whose target is the notebook."""


class Checkpoint(Answer, frozen=True, kw_only=True):
    """A sleeping copy of a kernel, as the kernel was before an execution."""

    execution_id: ExecutionId
    at: str
    bytes: int
    """Its share of memory, which grows with what the kernel changes."""
    undoable: bool
    """Whether the execution can be undone: the user has run nothing since."""


class Rescue(Answer, frozen=True, kw_only=True):
    """Which variables a kernel has that died, and whose place a checkpoint took."""

    at: str
    """When the checkpoint was made."""
    execution_count: int
    """The number of the cell that was next."""


class CheckpointList(Answer, frozen=True, kw_only=True):
    """A kernel's checkpoints, oldest first."""

    enabled: bool
    """Whether one is made before each execution of an agent."""
    available: bool
    """Whether one could be made, as far as that is known."""
    reason: str | None
    """Why not, or why the last was not made, in a sentence."""
    checkpoints: list[Checkpoint]
    rescued: Rescue | None
    """Which variables it has since it died; null if it has not died, or was restarted since."""
    not_undone: list[str]
    """What an undo does not bring back, in sentences."""


class UndoneKernel(Answer, frozen=True, kw_only=True):
    """A kernel that is as it was before an execution."""

    id: str
    name: str
    execution_state: KernelState


class Undo(Answer, frozen=True, kw_only=True):
    """An execution, undone."""

    kernel: UndoneKernel
    taken_back: list[ExecutionId]
    """This execution and those that ran after it, in order."""
    not_undone: list[str]
    """What did not come back, in sentences."""


class UndoExecution(Request, frozen=True, kw_only=True):
    """Make the kernel as it was before an execution."""


class SetCheckpoints(Request, frozen=True, kw_only=True):
    """Keep checkpoints of a kernel, or no longer."""

    enabled: bool


class NotebookKernel(Answer, frozen=True, kw_only=True):
    """The kernel of a notebook."""

    id: str
    name: str
    execution_state: str


class OpenNotebookList(Answer, frozen=True, kw_only=True):
    """Notebooks in use, sorted by path."""

    notebooks: list[OpenNotebook]


class Progress(Answer, frozen=True, kw_only=True):
    """How far long work is."""

    done: int
    """Sessions that are done."""
    total: int
    """All sessions that it goes through."""


class JournalEvent(Answer, frozen=True, kw_only=True):
    """An entry of a session's journal that is not part of an execution's cell."""

    n: int
    """Its position in the journal."""
    type: str
    """The entry's type: `kernel_started`, `interrupted`, `notebook_edited`, …"""
    at: str
    by: str | None
    """Name of the user or agent; null for the server, or if unknown."""
    by_kind: Literal["person", "agent", "server"]
    """Who acted: a user, an agent, or the server itself."""
    after_seq: int
    """`seq` of the last execution that was accepted before the entry; 0 if there was none."""
    execution_id: ExecutionId | None
    """The execution that the entry is about."""
    text: str | None
    """The entry in one line: a reason, a comment or a path."""


class JournalEventList(Answer, frozen=True, kw_only=True):
    """Journal entries of a session that are not part of executions' cells, in order."""

    events: list[JournalEvent]
    next_after: int | None
    """Pass as `after` for the next page; null at the end."""


class ExecutionReference(Answer, frozen=True, kw_only=True):
    """An execution in the history, and its session."""

    execution_id: ExecutionId
    session_id: SessionId
    seq: int
    agent: str
    title: str | None
    accepted_at: str


class RecordedImage(ExecutionReference, frozen=True, kw_only=True):
    """An image in the history, and its execution."""

    output: int
    """Index of the output that holds the image."""
    mimetype: str
    width: int | None
    height: int | None
    bytes: int
    url: str


class ImageList(Answer, frozen=True, kw_only=True):
    """Images in the history: of one session in order, of all sessions newest first."""

    images: list[RecordedImage]
    next_after: str | None
    """Pass as `after` for the next page; null at the end."""


class SearchHit(ExecutionReference, frozen=True, kw_only=True):
    """An execution that matches a search."""

    execution_count: int | None
    """The number that its notebook shows; null if it has none."""
    status: Status
    images: int
    source: str
    """The source's first 500 characters."""
    snippet: str
    """Text around the match. U+2068 and U+2069 enclose each match."""


class SearchResults(Answer, frozen=True, kw_only=True):
    """Executions that match a search, newest first."""

    hits: list[SearchHit]
    next_after: ExecutionId | None
    """Pass as `after` for the next page; null at the end."""


class Text(Answer, frozen=True, kw_only=True):
    """A range of an execution's complete text."""

    text: str
    offset: int
    """Byte in the UTF-8 text at which this range starts (moved back to a character's start)."""
    next_offset: int | None
    """The offset of the next range; null at the end."""
    total_bytes: int
    """Size of the kept text."""
    omitted_bytes: int
    """Bytes that were printed but not kept."""


class ServerStatus(Answer, frozen=True, kw_only=True):
    """The state of the extension."""

    version: str
    history_available: bool
    open_sessions: int
    kernels: int
    running: int
    queued: int
    ledger: Chain
    search_ready: bool
    """False while the index is being rebuilt."""
    indexing: Progress | None = None
    """How far that is; null if the index is complete."""
    erasing: Progress | None = None
    """How far an erasure is; null if there is none, and for an agent token."""
    sinks: list[SinkStatus] = field(default_factory=list)
    """The places that get a copy of the record; empty for an agent token."""
    broken: RecordBreak | None = None
    """Why the record is not signed any more; null while it is, and for an agent token."""
    record_people: RecordPeople = "off"
    """What is recorded of the code that users run in kernels with an attached agent session."""


Lifetime = Annotated[float, Meta(ge=60, le=2_592_000)]
"""Seconds from a minute to 30 days."""
Scopes = Annotated[list[Annotated[str, Meta(max_length=4200)]], Meta(min_length=1)]


class Caps(Request, frozen=True, kw_only=True):
    """The limits of an agent token; null is the server's own limit."""

    executions_per_minute: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    concurrent_executions: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """How many executions may wait or run at once."""
    wall_seconds: Seconds | None = None
    """The longest timeout of an execution, and its default timeout."""
    output_bytes: Annotated[int, Meta(ge=1000)] | None = None
    """UTF-8 bytes of output kept with a cell."""
    kernels: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """How many sessions may be open at once."""


class MintToken(Request, frozen=True, kw_only=True):
    """Create an agent token."""

    label: Name
    """Name of the token for users; shown and recorded."""
    scopes: Scopes
    """`exec:scratch`, `exec:notebook[:<pattern>]`, `read:notebook[:<pattern>]`,
    `edit:notebook[:<pattern>]`, `files`, `undo`, `history:read`, `history:read:all`. A pattern
    matches a contents path part by part: `*` matches within a part, `**` any number of parts."""
    expires_in: Lifetime = 28_800.0
    """Seconds."""
    approval: ApprovalMode | None = None
    """Which executions need a user's approval; null is the server's policy."""
    edits: EditMode | None = None
    """Whether its edits of notebooks are made at once, or proposed; null is the server's policy."""
    caps: Caps = field(default_factory=Caps)


class TokenRef(Answer, frozen=True, kw_only=True):
    """The token that opened a session."""

    id: TokenId
    label: str


class ExtendToken(Request, frozen=True, kw_only=True):
    """Give an agent token more scopes."""

    scopes: Scopes


class Token(Answer, frozen=True, kw_only=True):
    """An agent token, without its secret."""

    id: TokenId
    label: str
    scopes: list[str]
    approval: ApprovalMode | None
    edits: EditMode | None
    caps: Caps
    username: str
    """The user who created the token. Its agent works on their behalf."""
    status: Literal["active", "expired", "revoked"]
    created_at: str
    expires_at: str
    revoked_at: str | None
    last_used_at: str | None


class Configuration(Answer, frozen=True, kw_only=True):
    """A text to paste that gives an agent its token. It contains the secret."""

    name: str
    """What reads the text: `claude-code`, `mcp`, `vscode`, `mcp-stdio`, `python`, `curl`."""
    title: str
    """The same for users, and where they put the text."""
    language: Literal["json", "python", "shell"]
    text: str


class MintedToken(Answer, frozen=True, kw_only=True):
    """A new token. Its secret is shown only in this answer."""

    token: Token
    secret: str
    """The whole credential: `Authorization: Bearer <secret>`."""
    configurations: list[Configuration]
    mcp_installed: bool
    """Whether MCP clients can connect. False: the server lacks `jupyter-agent-exec[mcp]`."""


class Unlock(Request, frozen=True, kw_only=True):
    """Prove with the server's passphrase that a user decides."""

    passphrase: Annotated[str, Meta(min_length=1, max_length=1000)]


class Unlocked(Answer, frozen=True, kw_only=True):
    """A secret that allows decisions. Keep it in memory only."""

    unlock: str
    """Value of the header `X-Agent-Exec-Unlock`."""
    expires_at: str


class TokenList(Answer, frozen=True, kw_only=True):
    """Tokens, newest first."""

    tokens: list[Token]


Limit = Annotated[int, Meta(ge=1, le=500)]
Match = Annotated[str, Meta(max_length=200)]
"""Only names or lines that contain this text, ignoring case; all if it is empty."""
LARGEST = 2**63 - 1
"""The largest number that the index can hold."""


class StreamQuery(Request, frozen=True, kw_only=True):
    """How to show an execution."""

    inert: bool = False
    """Whether `cell` has an inert copy of the outputs, as in the notebook: sanitised HTML, and
    nothing that runs. `metadata.agent_exec.held` names the MIME types that were left out."""


class WaitQuery(StreamQuery, frozen=True, kw_only=True):
    """How long to wait, and how to show the execution."""

    wait: Annotated[float, Meta(ge=0, le=3600)] = 0
    """Seconds to hold the answer until the execution finishes, or its code requests input. The
    server may have a lower limit."""
    asked_at: str | None = None
    """Id of the input request that the client has seen. Only another one ends the wait."""


class ExportQuery(Request, frozen=True, kw_only=True):
    """Which notebook to make of a session."""

    clean: bool = False
    """Whether to write it for git, nbdime, jupytext and papermill: indented, without our metadata
    in cells, and with the tag `raises-exception` on cells that raised. The record stays in the
    history: a cell's id is that of its execution."""


class ShareSession(Request, frozen=True, kw_only=True):
    """Export a session as a notebook that somebody else can read and run."""


class SessionsQuery(Request, frozen=True, kw_only=True):
    """Which sessions to list."""

    status: SessionStatus | None = None
    agent: str | None = None
    """Name of an agent."""
    target: TargetKind | None = None
    since: str | None = None
    """RFC 3339; opened at this time or later."""
    until: str | None = None
    """RFC 3339; opened at this time or earlier; a date alone means its whole day."""
    unreviewed: bool | None = None
    """Whether the session has finished executions without a review."""
    after: str | None = None
    """`next_after` of the page before."""
    limit: Limit = 50


class ExecutionsQuery(Request, frozen=True, kw_only=True):
    """Which of a session's executions to list."""

    after: Annotated[int, Meta(ge=0, le=LARGEST)] | None = None
    """List executions after this `seq`; `next_after` of the page before."""
    before: Annotated[int, Meta(ge=1, le=LARGEST)] | None = None
    """List the last executions before this `seq`, in order; not together with `after`."""
    limit: Limit = 50
    inert: bool = False
    """Whether each `cell` has an inert copy of the outputs."""
    outputs: Literal["full", "brief"] = "full"
    """`brief` leaves out `text`, and images and large values in outputs, which `left_out` lists. A
    request for a single execution returns everything."""


class EventsQuery(Request, frozen=True, kw_only=True):
    """Which of a session's events to list."""

    after: Annotated[int, Meta(ge=0, le=LARGEST)] | None = None
    """List events after the entry with this `n`; `next_after` of the page before."""
    limit: Limit = 50


class TextQuery(Request, frozen=True, kw_only=True):
    """Which part of an execution's text to read."""

    offset: Annotated[int, Meta(ge=0)] = 0
    """Byte at which to begin."""
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 50_000
    """Maximum bytes of text."""
    match: Match = ""
    """Read only the lines that contain this text, ignoring case. Each follows its own offset and a
    colon. Lines of more than 1,000 bytes are searched in pieces."""


class SearchQuery(Request, frozen=True, kw_only=True):
    """Which executions to find. A missing condition matches all."""

    q: Annotated[str, Meta(max_length=1000)] | None = None
    """Words that must all occur in source, output, error or purpose. The last may be the start of a
    word. Quotes hold a phrase together."""
    agent: str | None = None
    target: TargetKind | None = None
    status: Status | None = None
    session_id: str | None = None
    since: str | None = None
    """RFC 3339; accepted at this time or later."""
    until: str | None = None
    """RFC 3339; accepted at this time or earlier; a date alone means its whole day."""
    has_image: bool | None = None
    review: Verdict | Literal["none"] | None = None
    """The last verdict; `none` for executions that have run and have no review."""
    after: str | None = None
    """`next_after` of the page before."""
    limit: Limit = 50


class VariablesQuery(Request, frozen=True, kw_only=True):
    """Which variables to list."""

    match: Match = ""
    limit: Limit = 500


class PackagesQuery(Request, frozen=True, kw_only=True):
    """Which packages to list."""

    match: Match = ""
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 500


def derive(model: type[S], source: Struct, /, **fields: object) -> S:
    """Return a `model` with the fields that it shares with `source`, updated by `fields`."""
    shared = {name: getattr(source, name) for name in _shared_fields(model, type(source))}
    return model(**(shared | fields))


@cache
def _shared_fields(one: type[Struct], other: type[Struct]) -> list[str]:
    return [name for name in one.__struct_fields__ if name in other.__struct_fields__]


@cache
def marked(model: type[Struct], mark: enum.Enum) -> tuple[str, ...]:
    """Return the fields of a model that have a mark."""
    hints = get_type_hints(model, include_extras=True)
    return tuple(
        name for name in model.__struct_fields__ if mark in getattr(hints[name], "__metadata__", ())
    )


PIECE_BYTES: Final = 1 << 17
"""Approximate size of the pieces in which a long answer is encoded and sent."""

_LEVELS: Final = 10
"""Levels of a model that are encoded in pieces; they reach the text of an output. Deeper values are
encoded as a whole."""


def json_pieces(model: Any) -> Iterator[bytes]:
    """Yield the JSON of a model in pieces, so that a long text is not copied as a whole.

    All pieces except the last have at least `PIECE_BYTES`.
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
