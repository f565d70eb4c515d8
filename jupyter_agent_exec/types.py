"""Closed sets, ids and small shapes that every floor shares."""

from __future__ import annotations

from typing import Any, Final, Literal, NewType, TypeAlias

SessionId = NewType("SessionId", str)
"""``s_`` and a ULID: an agent session."""

ExecutionId = NewType("ExecutionId", str)
"""``x_`` and a ULID: an execution, and the id of its cell."""

Digest = NewType("Digest", str)
"""SHA-256 of a payload's bytes, 64 lower-case hexadecimal characters."""

TokenId = NewType("TokenId", str)
"""``t_`` and a ULID: an agent token, without its secret."""

CellId = NewType("CellId", str)
"""Of a cell in a notebook, as nbformat 4.5 has it."""

JSON: TypeAlias = Any
"""What ``json.loads`` may return."""

Output: TypeAlias = dict[str, Any]
"""An nbformat 4 output: stream, display_data, execute_result or error."""

Status: TypeAlias = Literal[
    "awaiting_approval",
    "queued",
    "running",
    "awaiting_input",
    "ok",
    "error",
    "interrupted",
    "timed_out",
    "kernel_died",
    "cancelled",
    "rejected",
    "lost",
]
"""Where an execution stands. All but the first four are final."""

FINAL_STATUSES: Final[frozenset[Status]] = frozenset(
    {"ok", "error", "interrupted", "timed_out", "kernel_died", "cancelled", "rejected", "lost"}
)

SessionStatus: TypeAlias = Literal["open", "closed"]

ExecutionState: TypeAlias = Literal["starting", "idle", "busy", "dead"]
"""A kernel's state, as Jupyter names it."""

RestartReason: TypeAlias = Literal[
    "died", "restarted", "interrupt_ignored", "culled", "shut_down", "changed"
]
"""Why a session's variables are gone: its kernel died, somebody restarted it, it was replaced
because it ignored an interrupt, it was culled when idle, somebody else shut it down, or gave the
notebook another kernel."""

Via: TypeAlias = Literal["collaboration", "tab", "contents"]
"""How a notebook was reached: collaboration's live document, a JupyterLab tab that has it open, or
the contents manager."""

CellType: TypeAlias = Literal["code", "markdown", "raw"]

TargetKind: TypeAlias = Literal["scratch", "notebook", "kernel"]
"""The kinds of a session's target."""

ApprovalMode: TypeAlias = Literal["none", "first", "always"]
"""What of an agent session a person has to approve before it runs: nothing, its first execution
in each kernel that it works in, or every one."""

Verdict: TypeAlias = Literal["approved", "flagged"]
"""What a person thinks of an execution that has run."""

Access: TypeAlias = Literal["full", "token"]
"""By what right somebody asks: a person's own credential, which may do anything that the person
may, or an agent token."""

RecordChanges: TypeAlias = Literal["off", "scratch", "all"]
"""In which kernels it is recorded what an execution changed: variables and files."""

RecordPeople: TypeAlias = Literal["off", "source", "outputs"]
"""What is recorded of what people run in a kernel that an agent session is attached to."""

IsolationMode: TypeAlias = Literal["allow", "off", "always"]
"""Which scratch kernels are isolated: those of sessions that ask for it, none, or all."""

CloseReason: TypeAlias = Literal[
    "closed",
    "idle",
    "init_failed",
    "server_stopped",
    "server_died",
    "token_revoked",
    "token_expired",
]
"""Why a session is closed: somebody closed it, nobody used it, its init source failed, the server
stopped or was killed, or the agent token with which it was opened has ended."""

RAW_IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
"""Raster image types; in a mimebundle their data is base64."""

IMAGE_TYPES: Final = (*RAW_IMAGE_TYPES, "image/svg+xml")
