"""Convert the server's responses to models or errors."""

from __future__ import annotations

from threading import Lock
from typing import Any, Final, TypeVar

import httpx2
import msgspec

from ..errors import AgentExecError
from ..models import Problem
from .errors import ClientError, ConnectionLost, UnexpectedAnswer

M = TypeVar("M")

_GATEWAY_TROUBLE: Final = frozenset({502, 503, 504})
"""Statuses of a proxy that does not reach the server."""


def _with_codes(base: type[AgentExecError]) -> dict[str, type[AgentExecError]]:
    classes: dict[str, type[AgentExecError]] = {}
    for subclass in base.__subclasses__():
        classes |= _with_codes(subclass)
    return classes | {base.code: base}  # the base wins over subclasses that inherit its code


_BY_CODE: Final = _with_codes(AgentExecError)


def read(reply: httpx2.Response, model: type[M]) -> M:
    """Return the model in `reply`.

    Raises
    ------
    AgentExecError
        The server refused the request. The error's class is the one with the server's error code.
    UnexpectedAnswer
        The response does not come from this extension.
    ConnectionLost
        A proxy answered that it cannot reach the server.
    """
    check(reply)
    try:
        return decoded(reply.content, model)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnexpectedAnswer(
            f"The server answered {reply.status_code} with something unknown here ({error}). Is "
            "its version of jupyter-agent-exec the same as this client's?",
            reply.status_code,
        ) from error


def decoded(data: bytes | str, model: type[M]) -> M:
    """Decode JSON; from any thread. Raises as a decoder of msgspec."""
    with _making_decoders:
        if model not in _decoders:
            _decoders[model] = msgspec.json.Decoder(model)
    found: M = _decoders[model].decode(data)
    return found


_decoders: Final[dict[object, msgspec.json.Decoder[Any]]] = {}
_making_decoders: Final = Lock()
"""The process crashes if threads have msgspec look at a type for the first time at once."""


def check(reply: httpx2.Response) -> None:
    """Raise the error of a reply, if it has one."""
    if (error := failure(reply)) is not None:
        raise error


def failure(reply: httpx2.Response) -> AgentExecError | ClientError | None:
    """Return the error of a reply, if it has one."""
    if reply.is_success:
        return None
    try:
        return refusal(decoded(reply.content, Problem))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _foreign(reply.status_code)


def refusal(problem: Problem) -> AgentExecError:
    """Return the error with the server's error code; an `AgentExecError` for an unknown code."""
    error = _BY_CODE.get(problem.code, AgentExecError)(problem.message)
    error.detail = dict(problem.detail)
    if error.code != problem.code:
        error.detail.setdefault("code", problem.code)
    return error


def _foreign(status: int) -> ConnectionLost | UnexpectedAnswer:
    if status in _GATEWAY_TROUBLE:
        return ConnectionLost(f"A proxy answered {status}: it does not reach the Jupyter server.")
    if status == 404:
        what = (
            "There is no jupyter-agent-exec at this address. Is the extension enabled "
            "(`jupyter server extension list`), and is this the server's base URL?"
        )
    elif 300 <= status < 400:
        what = (
            "The server redirects elsewhere, as it does for somebody unknown, or for a wrong base "
            "URL. Check the address and the token."
        )
    elif status in (401, 403):
        what = "The server does not know who asks. Check the token."
    else:
        what = "This is not an answer of jupyter-agent-exec. Look into the server's log."
    return UnexpectedAnswer(f"HTTP {status}. {what}", status)
