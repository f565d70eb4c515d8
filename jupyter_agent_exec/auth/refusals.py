"""What is told to operators about a request that was refused."""

from __future__ import annotations

from dataclasses import dataclass

from ..types import TokenId


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request that was answered with one of our errors."""

    code: str
    """The code of the error."""
    status: int
    """The HTTP status of the error; MCP sends the error in an answer of its own."""
    method: str
    """The HTTP verb, or the method of MCP."""
    route: str
    """A path template or the name of a tool. It holds no text of the caller."""
    username: str | None
    """Null if nobody is signed in."""
    ip: str | None
    """The client's address, as Jupyter knows it behind a proxy."""
    token_id: TokenId | None
    session_id: str | None
    """What the path names as session. The caller chose it."""
    execution_id: str | None
    """What the path names as execution. The caller chose it."""
