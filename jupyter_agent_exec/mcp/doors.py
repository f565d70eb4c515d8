"""What the tools reach: the use cases of the server, and what the operator decided."""

from __future__ import annotations

from dataclasses import dataclass

from ..approvals.manager import Approvals
from ..auth.access import AccessControl
from ..executions.limits import Settings
from ..files.manager import SessionFiles
from ..notebooks.manager import NotebookManager
from ..sessions.inspection import KernelInspection
from ..sessions.manager import AgentSessions


@dataclass(frozen=True, kw_only=True, slots=True)
class Doors:
    """The managers behind the tools. Each is the one that the routes use too."""

    manager: AgentSessions
    notebooks: NotebookManager
    approvals: Approvals
    looking: KernelInspection
    files: SessionFiles
    """The files in a session's folder."""
    access: AccessControl
    base_url: str
    """Path of the namespace on this server, such as `/api/agent-exec`, for links in answers."""
    settings: Settings
