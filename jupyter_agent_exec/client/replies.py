"""Turns answers of the server into models, or into errors."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from ..errors import AgentExecError
from ..models import Problem
from .errors import ConnectionLost, UnexpectedAnswer

M = TypeVar("M")

_GATEWAY_TROUBLE: Final = frozenset({502, 503, 504})
"""Statuses of a proxy that does not reach the server."""

_problem_decoder = msgspec.json.Decoder(Problem)


class Reply(msgspec.Struct, frozen=True):
    """What the server answered."""

    status: int
    """Of HTTP."""
    content: bytes
    etag: str | None = None
    """Of the resource that the answer is about."""


def _with_codes(base: type[AgentExecError]) -> dict[str, type[AgentExecError]]:
    classes: dict[str, type[AgentExecError]] = {}
    for subclass in base.__subclasses__():
        classes |= _with_codes(subclass)
    return classes | {base.code: base}  # a subclass without a code of its own is the server's


_BY_CODE: Final = _with_codes(AgentExecError)


def read(reply: Reply, decoder: msgspec.json.Decoder[M]) -> M:
    """Return the model that `reply` carries.

    Raises
    ------
    AgentExecError
        The server refused; the class is the one with its code.
    UnexpectedAnswer
        It is not an answer of this extension.
    ConnectionLost
        A proxy answers that it does not reach the server.
    """
    check(reply)
    try:
        return decoder.decode(reply.content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnexpectedAnswer(
            f"The server answered {reply.status} with something unknown here ({error}). Is its "
            "version of jupyter-agent-exec the same as this client's?",
            reply.status,
        ) from error


def check(reply: Reply) -> None:
    """Raise the error of a reply, if it is a refusal."""
    if 200 <= reply.status < 300:
        return
    try:
        problem = _problem_decoder.decode(reply.content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _foreign(reply.status) from None
    raise refusal(problem)


def refusal(problem: Problem) -> AgentExecError:
    """Return the error that the server raised, as far as it is known here."""
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
