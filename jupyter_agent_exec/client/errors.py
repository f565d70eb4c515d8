"""Errors of the connection between a client and its server.

::

    ClientError
    ├── ServerUnreachable(ConnectionError)
    │   ├── NoServerFound       no running Jupyter server answers for this extension
    │   ├── CannotConnect       nothing was sent: nobody listens there
    │   └── ConnectionLost      the connection broke; what was sent may have arrived
    ├── UnexpectedAnswer        something answered, but not this extension
    └── ExecutionFailed         `raise_on_error`: the code did not finish with status ``ok``

What the server refuses is none of these: it is raised as the class of
`jupyter_agent_exec.errors` with that code, message and detail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .result import Result


class ClientError(Exception):
    """Base of the errors that the client raises of its own."""


class ServerUnreachable(ClientError, ConnectionError):
    """There is no connection to a server."""


class NoServerFound(ServerUnreachable):
    """No running Jupyter server answers for this extension.

    Parameters
    ----------
    what
        A sentence that says so.
    advice
        What to do.
    """

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what} {advice}")
        self.what = what


class CannotConnect(ServerUnreachable):
    """Nobody listens at the address; nothing was sent."""


class ConnectionLost(ServerUnreachable):
    """The connection broke after something was sent; the server may or may not have it."""


class UnexpectedAnswer(ClientError):
    """Something answered that is not this extension, or not of a version known here.

    Parameters
    ----------
    message
        A sentence that says what came and what to do.
    status
        The HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ExecutionFailed(ClientError):
    """The code did not finish with status ``ok``.

    Parameters
    ----------
    result
        What it did until then.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(result.summary)
        self.result = result
