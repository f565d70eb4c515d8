"""Literal types, ids and small type aliases that all layers share."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, NewType, TypeAlias

SessionId = NewType("SessionId", str)
"""Id of an agent session: ``s_`` and a ULID."""

ExecutionId = NewType("ExecutionId", str)
"""Id of an execution and of its cell: ``x_`` and a ULID."""

Digest = NewType("Digest", str)
"""SHA-256 of a payload's bytes, 64 lower-case hexadecimal characters."""

DIGEST: Final = re.compile("[0-9a-f]{64}")

TokenId = NewType("TokenId", str)
"""Id of an agent token, without its secret: ``t_`` and a ULID."""

CellId = NewType("CellId", str)
"""Id of a cell in a notebook, as in nbformat 4.5."""

ProposalId = NewType("ProposalId", str)
"""Id of an agent's proposed edits of a notebook: ``p_`` and a ULID."""

ProposedEditId = NewType("ProposedEditId", str)
"""Id of a proposed edit of one cell: its proposal's id, a dot and a number from 0."""

JSON: TypeAlias = Any
"""A value that ``json.loads`` may return."""

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
"""Status of an execution. All but the first four are final."""

FINAL_STATUSES: Final[frozenset[Status]] = frozenset(
    {"ok", "error", "interrupted", "timed_out", "kernel_died", "cancelled", "rejected", "lost"}
)

GrantSpan: TypeAlias = Literal["restart", "hour"]
"""How long a user lets an agent run code in a kernel: until it restarts, or for an hour at most."""

SessionStatus: TypeAlias = Literal["open", "closed"]

KernelState: TypeAlias = Literal["starting", "idle", "busy", "dead"]
"""A kernel's state, as Jupyter names it."""

RestartReason: TypeAlias = Literal[
    "died", "restarted", "interrupt_ignored", "culled", "shut_down", "changed", "undone", "rescued"
]
"""Why a session lost its variables: its kernel died, somebody restarted it, it ignored an interrupt
and was replaced, it was idle and was culled, somebody else shut it down, or somebody changed the
notebook's kernel. `undone` and `rescued`: it has its variables of an earlier time, because an
execution was undone, or because it died and a checkpoint took its place."""

OF_EARLIER: Final[frozenset[RestartReason]] = frozenset({"undone", "rescued"})
"""The reasons for which a kernel has its variables of an earlier time, rather than none."""

Via: TypeAlias = Literal["collaboration", "tab", "contents"]
"""How the server accessed a notebook: through the live document of jupyter-collaboration or
jupyter-server-documents, a JupyterLab tab that has it open, or the contents manager."""

CellType: TypeAlias = Literal["code", "markdown", "raw"]

TargetKind: TypeAlias = Literal["scratch", "notebook", "kernel"]
"""The kinds of a session's target."""

ApprovalMode: TypeAlias = Literal["none", "first", "always"]
"""Which executions need a user's approval before they run: none, the first one (once for each
agent, until the kernel restarts), or all."""

NextApproval: TypeAlias = Literal["not_asked", "asks_first", "asks_always", "granted", "paused"]
"""What happens to the code that an agent sends next: it runs without asking; it asks the user, and
what follows does not ask until the kernel restarts; it asks the user, as all code does; it runs, as
the user has let the agent run code in this kernel; or it waits, as the user has paused all
agents."""

RecordedMode: TypeAlias = Literal["none", "first", "rules", "always"]
"""An approval mode as the record and the file of tokens may name it. `rules` is of earlier versions
and means `first`."""

EditMode: TypeAlias = Literal["apply", "propose"]
"""What becomes of an agent's edits of a notebook: they are made at once, or they are proposed to
the user."""

PolicyKind: TypeAlias = Literal["scratch", "notebook", "kernel", "edits"]
"""What the approval policy decides about: executions by the kind of target, and edits."""

EditStatus: TypeAlias = Literal["open", "kept", "rejected", "obsolete", "replaced", "undone"]
"""What became of a proposed edit. Open: nobody has decided. Obsolete: it does not fit the notebook
any more. Replaced: the agent proposed another one for the same cell. Undone: it was kept, or made
at once, and the user has undone all that the agent changed."""

Verdict: TypeAlias = Literal["approved", "flagged"]
"""A user's verdict on a finished execution."""

Access: TypeAlias = Literal["full", "token"]
"""The credential of a request: the user's own, which allows all that the user may do, or an agent
token."""

RecordPeople: TypeAlias = Literal["off", "source", "outputs"]
"""How much to record of the code that users run in a kernel with an attached agent session."""

IsolationMode: TypeAlias = Literal["allow", "off", "always"]
"""Which scratch kernels are isolated: those of sessions that request it, none, or all."""

CloseReason: TypeAlias = Literal[
    "closed",
    "idle",
    "init_failed",
    "server_stopped",
    "server_died",
    "token_revoked",
    "token_expired",
]
"""Why a session was closed: somebody closed it, it was idle, its init source failed, the server
stopped or died, or its agent token was revoked or expired."""

RAW_IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
"""Raster image types; in a mimebundle their data is base64."""

IMAGE_TYPES: Final = (*RAW_IMAGE_TYPES, "image/svg+xml")

AGENT_PREFIX: Final = "jaex_"
"""The beginning of all agent tokens, which distinguishes them from Jupyter's own credentials."""

UNLOCK_HEADER: Final = "X-Agent-Exec-Unlock"
"""The request header with an unlock, which proves that somebody knows the server's passphrase."""

_MADE_UP: Final = re.compile(r"[0-9a-f]{32}|Anonymous \w+")


def is_made_up(name: str) -> bool:
    """Return whether Jupyter made a name, or username, up: for a login by token or password."""
    return _MADE_UP.fullmatch(name) is not None
