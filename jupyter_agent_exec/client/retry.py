"""Ask again when a connection breaks: how often, how soon, and when to give up."""

from __future__ import annotations

from typing import Final

from ..errors import AgentExecError
from .answers import check
from .errors import CannotConnect, ServerUnreachable, UnexpectedAnswer
from .steps import Call, Pause, Reply, Send, send

RECONNECT_SECONDS: Final = 30.0
"""How long a broken connection is tried again before that is an error."""


class Backoff:
    """How long to pause before the next try, and when to give up."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew: there was a connection."""
        self._tries = 0
        self._paused = 0.0

    def after(self, error: ServerUnreachable) -> Pause:
        """Return the pause that follows `error`, or raise it when it has been enough."""
        if self._paused >= RECONNECT_SECONDS:
            raise error
        pause = min(0.05 * 2**self._tries, 2.0)
        self._tries += 1
        self._paused += pause
        return Pause(pause)


def persistently(request: Send) -> Call[Reply]:
    """Send `request`, and again while its connection breaks.

    That nobody listens is told at once the first time: it is a wrong address more often than a
    server that comes back.
    """
    backoff: Backoff | None = None
    while True:
        try:
            reply = yield from send(request)
            if reply.status in (502, 503, 504):
                _raise_if_lost(reply)
        except CannotConnect as error:
            if backoff is None:
                raise
            pause = backoff.after(error)
        except ServerUnreachable as error:
            backoff = backoff or Backoff()
            pause = backoff.after(error)
        else:
            return reply
        yield pause


def _raise_if_lost(reply: Reply) -> None:
    try:
        check(reply)
    except (AgentExecError, UnexpectedAnswer):
        return
