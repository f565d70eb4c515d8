"""Agent sessions: what opens one, what is loaded into its kernels, and its files."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from ..types import (
    Access,
    ApprovalMode,
    ExecutionId,
    ExecutionState,
    RecordPeople,
    SessionId,
    SessionStatus,
)
from .base import Agent, Answer, Chain, ContentsPath, Name, Request, Seconds
from .executions import Review
from .history import Indexing
from .tokens import TokenRef


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
    execution_state: ExecutionState
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
