"""What code asks for while it runs: requests on a kernel's stdin channel. Pure.

A kernel sends them to who sent the code, and to nobody else. So what a person's cell asks for never
comes here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

from .messages import Message

PROMPT_CHARACTERS: Final = 2000
"""Of a prompt that are kept."""


class InputRequest(NamedTuple):
    """A request for input."""

    prompt: str
    """Written by the code; not all of it if it is very long."""
    password: bool
    """Whether what is given is not to be shown."""
    asked_at: datetime


def input_request(message: Message) -> InputRequest | None:
    """Return what a message from the stdin channel asks for; None if it asks for nothing."""
    if message.header.msg_type != "input_request":
        return None
    prompt = message.content.get("prompt")
    return InputRequest(
        prompt=prompt[:PROMPT_CHARACTERS] if isinstance(prompt, str) else "",
        password=bool(message.content.get("password")),
        asked_at=datetime.now(UTC),
    )
