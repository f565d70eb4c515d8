"""Decisions of people: approvals, reviews, and what to do with outputs and cells."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ..types import ApprovalMode, TargetKind, Verdict
from .base import Answer, Request, Sha256
from .executions import Execution


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
