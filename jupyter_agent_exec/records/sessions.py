"""Entries about a session and its kernels."""

from __future__ import annotations

from typing import Any

from ..models import Agent, Chain, Limits, SessionKernel, Target, TokenRef
from ..types import (
    Access,
    ApprovalMode,
    CloseReason,
    Digest,
    RecordPeople,
    RestartReason,
    SessionId,
)
from .base import Entry


class Opened(Entry, frozen=True, kw_only=True, tag="opened"):
    """The session's first entry."""

    session_id: SessionId
    agent: Agent
    target: Target
    title: str | None
    client_id: str | None
    limits: Limits
    username: str
    access: Access = "full"
    token: TokenRef | None = None
    init_source: Digest | None = None
    record_people: RecordPeople = "off"
    approval: ApprovalMode = "none"
    allow_stdin: bool = False
    preloaded: tuple[str, ...] = ()
    """What is there in each of its kernels, as `Session.preloaded` tells it."""
    ledger: Chain | None = None
    """Where the ledger ended when the session was opened; null in version 0.1."""


class KernelStarted(Entry, frozen=True, kw_only=True, tag="kernel_started"):
    """A kernel now belongs to the session."""

    kernel: SessionKernel
    reason: RestartReason | None
    """Why the one before it is gone; null for the first."""
    display_name: str | None = None
    """The kernelspec's name for people."""
    language_info: dict[str, Any] | None = None
    """What the kernel's `kernel_info_reply` says of its language."""


class KernelEnded(Entry, frozen=True, kw_only=True, tag="kernel_ended"):
    """The session's kernel is gone."""

    kernel_id: str
    incarnation: int
    reason: RestartReason
    message: str
    """A sentence: how it ended."""


class Recovered(Entry, frozen=True, kw_only=True, tag="recovered"):
    """The server that wrote this journal died; another took it up."""

    torn_bytes: int
    """Length of the incomplete last line, which nobody had been told of, that was removed."""


class Closed(Entry, frozen=True, kw_only=True, tag="closed"):
    """The session's end. What may follow is only what people decide about it afterwards."""

    reason: CloseReason
