"""The shapes that cross the wire: what is asked, and what is answered.

`openapi.json` is generated from these, and requests are validated against them, so that the routes
and their description cannot disagree. Durations are seconds, sizes are bytes, times are RFC 3339 in
UTC with milliseconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from .types import (
    CellId,
    CellType,
    Digest,
    ExecutionId,
    ExecutionState,
    Output,
    RecordPeople,
    RestartReason,
    SessionId,
    SessionStatus,
    Status,
    Via,
)

Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
ContentsPath = Annotated[str, Meta(min_length=1, max_length=4096)]
Sha256 = Annotated[Digest, Meta(pattern=r"^[0-9a-f]{64}$")]


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


class ScratchTarget(Request, frozen=True, kw_only=True, tag_field="kind", tag="scratch"):
    """A kernel of the session's own."""

    kernel_name: Name | None = None
    """A kernelspec; null is the server's default."""
    cwd: Annotated[str, Meta(max_length=4096)] | None = None
    """Contents path of the folder in which the kernel starts; null is the server's root."""
    env: dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = {}
    """Environment variables of the kernel; the server has a list of the names that it allows."""


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


class Placement(Request, frozen=True, kw_only=True):
    """Where in the notebook an execution's cell goes: one of `after`, `before` and `cell`."""

    after: CellId | None = None
    before: CellId | None = None
    cell: CellId | None = None
    """Run the cell that is there; its source is the default."""
    source_sha256: Sha256 | None = None
    """Of the source that `cell` must still have."""


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


class Execute(Request, frozen=True, kw_only=True):
    """Run a source once."""

    source: str | None = None
    """May be left out only if `placement` names the cell to run."""
    timeout: Seconds | None = None
    queue_timeout: Seconds | None = None
    max_output_bytes: Annotated[int, Meta(ge=1000)] | None = None
    wait: Annotated[float, Meta(ge=0, le=3600)] | None = None
    """Seconds to hold the answer until the execution finishes; null is the server's default."""
    placement: Placement | Literal["end", "none"] = "end"
    """Where its cell goes, if the session's target is a notebook."""


class CloseSession(Request, frozen=True, kw_only=True):
    """Close an agent session."""


class Cancel(Request, frozen=True, kw_only=True):
    """Take back an execution that waits, or interrupt it if it runs."""


class InterruptKernel(Request, frozen=True, kw_only=True):
    """Interrupt what runs in the session's kernel."""


class RestartKernel(Request, frozen=True, kw_only=True):
    """Give the session a fresh kernel."""


class AcceptOutputs(Request, frozen=True, kw_only=True):
    """Bring an execution's original outputs into the notebook, and trust its cell."""


class DiscardOutputs(Request, frozen=True, kw_only=True):
    """Take an execution's outputs out of the notebook; the record keeps them."""


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


class Document(Answer, frozen=True, kw_only=True):
    """What became of an execution's cell in a notebook."""

    path: str
    """Contents path of the notebook."""
    cell_id: CellId | None
    """Null if there is no cell."""
    via: Via | None
    """How the notebook was reached last; null before."""
    status: Literal["writing", "written", "not_written"]
    """`writing`: what is there is on its way, or will grow."""
    outputs: Literal["inert", "held", "accepted", "discarded"]
    """What of the outputs is in the notebook: an inert copy of all; one that holds back what is
    active; the originals, which a person accepted; none, since a person discarded them."""
    reason: str | None
    """A sentence: why the cell was not written."""


class WaitingFor(Answer, frozen=True, kw_only=True):
    """Behind whom an execution waits for its turn."""

    who: Literal["agent", "person", "kernel"]
    """`person`: anybody who is not an agent of ours; `kernel`: it starts, or is being reached."""
    agent: str | None
    """Name of the agent."""
    execution_id: ExecutionId | None
    since: str | None
    """When what runs began."""


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
    waiting_for: WaitingFor | None
    """Null unless it waits behind something."""
    document: Document | None
    """Null if the session's target is not a notebook."""
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
    waiting_for: WaitingFor | None = None
