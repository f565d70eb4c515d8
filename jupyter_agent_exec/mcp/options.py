"""What the operator decides about the endpoint."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from traitlets import Bool, Float, HasTraits, Int


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Limits of the endpoint. Seconds and bytes."""

    disconnect_interrupts: bool
    """Whether an execution is interrupted when the client that waits for it goes away."""
    session_idle_timeout: float
    """After which a client's session that sent nothing is forgotten."""
    max_sessions: int
    """How many clients' sessions there may be at once."""
    log: logging.Logger


class McpTraits(HasTraits):
    """The endpoint's part of the extension's configuration."""

    mcp_disconnect_interrupts = Bool(
        False,
        config=True,
        help="""Whether an execution is interrupted when the MCP client that waits for it cancels
        its call or goes away. Without, only the wait ends; the code goes on, and the same call
        with the same idempotency key finds it again.""",
    )
    mcp_session_idle_timeout = Float(
        1800,
        min=1,
        config=True,
        help="""Seconds after which the session of an MCP client that sends nothing and listens to
        nothing is forgotten. It is no agent session: that one, and what runs in it, stays.""",
    )
    mcp_max_sessions = Int(
        1000, min=1, config=True, help="How many sessions of MCP clients there may be at once."
    )

    def mcp_options(self, log: logging.Logger) -> Options:
        """Return what was decided."""
        return Options(
            disconnect_interrupts=self.mcp_disconnect_interrupts,
            session_idle_timeout=self.mcp_session_idle_timeout,
            max_sessions=self.mcp_max_sessions,
            log=log,
        )
