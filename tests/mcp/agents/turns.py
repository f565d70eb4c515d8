"""What reaches a model and what it answers, in whichever API its client speaks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answered:
    """What a client shows its model of a tool's answer."""

    text: str
    images: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class Seen:
    """What reaches a model."""

    tools: dict[str, Any]
    """The tools that it may call, by the names that they have at our server."""
    answers: list[Answered]
    """What the tools have answered that it called, in order."""


@dataclass(frozen=True)
class Call:
    """A tool that a model calls."""

    tool: Any
    """As it was offered."""
    arguments: dict[str, Any]


def events(parts: Iterable[dict[str, Any]]) -> str:
    """Return server-sent events, named by their types."""
    return "".join(f"event: {part['type']}\ndata: {json.dumps(part)}\n\n" for part in parts)
