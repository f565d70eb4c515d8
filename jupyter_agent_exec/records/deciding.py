"""Entries about what people decide."""

from __future__ import annotations

from ..types import CellId, Digest, ExecutionId, Verdict
from .base import Entry


class ApprovalAsked(Entry, frozen=True, kw_only=True, tag="approval_asked"):
    """An execution waits for a person to let it run; asked anew if its kernel is another since."""

    execution_id: ExecutionId
    source: Digest
    kernel_id: str | None
    incarnation: int
    expires_at: str
    before: Digest | None = None
    """The source that it is a new version of."""


class Approved(Entry, frozen=True, kw_only=True, tag="approved"):
    """A person let an execution run."""

    execution_id: ExecutionId
    source: Digest
    """What is to run; another than the one asked for if the person changed it."""


class Rejected(Entry, frozen=True, kw_only=True, tag="rejected"):
    """A person did not let an execution run."""

    execution_id: ExecutionId
    reason: str | None


class ApprovalGranted(Entry, frozen=True, kw_only=True, tag="approval_granted"):
    """What the session asks for runs without asking; null ends that."""

    until: str | None


class AgentsPaused(Entry, frozen=True, kw_only=True, tag="agents_paused"):
    """Nothing more of any agent is sent to a kernel."""


class AgentsResumed(Entry, frozen=True, kw_only=True, tag="agents_resumed"):
    """Agents go on."""


class OutputsAccepted(Entry, frozen=True, kw_only=True, tag="outputs_accepted"):
    """A person accepted an execution's outputs: the originals belong in the notebook."""

    execution_id: ExecutionId


class OutputsDiscarded(Entry, frozen=True, kw_only=True, tag="outputs_discarded"):
    """A person discarded an execution's outputs: none of them belongs in the notebook."""

    execution_id: ExecutionId


class OutputsRestored(Entry, frozen=True, kw_only=True, tag="outputs_restored"):
    """A person took back what they decided about an execution's outputs."""

    execution_id: ExecutionId


class CellDiscarded(Entry, frozen=True, kw_only=True, tag="cell_discarded"):
    """A person took an execution's cell out of the notebook."""

    execution_id: ExecutionId
    path: str
    cell_id: CellId
    cell: Digest
    """JSON of the cell as it was."""
    after: CellId | None
    """The cell before it; null if it was the first."""


class CellRestored(Entry, frozen=True, kw_only=True, tag="cell_restored"):
    """A person put back an execution's cell that had been discarded."""

    execution_id: ExecutionId
    path: str


class Reviewed(Entry, frozen=True, kw_only=True, tag="reviewed"):
    """A person said what to think of an execution, or of all that the session had run."""

    execution_id: ExecutionId | None
    """Null for the session."""
    verdict: Verdict | None
    comment: str | None = None
    up_to: int = 0
    """The last execution that a review of the session is about."""
