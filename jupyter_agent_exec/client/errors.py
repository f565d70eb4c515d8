"""Errors of the connection between a client and its server.

::

    ClientError
    ├── ServerUnreachable(ConnectionError)
    │   ├── NoServerFound       no running Jupyter server answers for this extension
    │   ├── CannotConnect       no server listens there; nothing was sent
    │   └── ConnectionLost      the connection broke; the server may have the request
    ├── InvalidAddress(ValueError)  not the address of a Jupyter server, or not a token
    ├── UnexpectedAnswer        something answered, but not this extension
    └── result.ExecutionFailed  `raise_on_error`: the code did not finish with status ``ok``

If the server refuses a request, the client raises another error: the class of
`jupyter_agent_exec.errors` with the server's code, message and detail.
"""

from __future__ import annotations


class ClientError(Exception):
    """Base of the client's own errors."""


class InvalidAddress(ClientError, ValueError):
    """The URL is not the address of a Jupyter server, or the token is not one for it."""


class ServerUnreachable(ClientError, ConnectionError):
    """There is no connection to a server."""


class NoServerFound(ServerUnreachable):
    """No running Jupyter server answers for this extension.

    Parameters
    ----------
    what
        A sentence that describes the error.
    advice
        What to do about it.
    """

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what} {advice}")
        self.what = what


class CannotConnect(ServerUnreachable):
    """No server listens at the address. Nothing was sent."""


class ConnectionLost(ServerUnreachable):
    """The connection broke after data was sent. The server may or may not have received it."""


class UnexpectedAnswer(ClientError):
    """The answer does not come from this extension, or comes from an unknown version of it.

    Parameters
    ----------
    message
        A sentence that describes the answer and gives advice.
    status
        The HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
