"""Declares the scope, input and answers of each verb of a route."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from tornado import web

from ..models import Request
from ..types import UNLOCK_HEADER
from .scopes import FOR_PEOPLE, Scope

M = TypeVar("M", bound=Callable[..., Awaitable[None]])


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """The scope, input and answer of a verb. The OpenAPI document is generated from these."""

    scopes: tuple[Scope, ...]
    body: type[Request] | str | None
    """A model, or the media type of a body that is read as a stream."""
    query: type[Request] | None
    answers: Mapping[int, Any]
    """The answer for each status: a model, several alternative models, or a media type."""
    headers: tuple[str, ...]
    """Names of request headers that it reads."""
    agents: str | None
    """What an agent token gets if the route's path names no object; None: it is refused."""
    checks_target: bool
    """Whether only the verb checks an agent's scope, because the body names the object."""
    without_passphrase: bool
    """Whether a person may do it without the server's passphrase, although it is for people."""
    summary: str


def requires(
    scope: Scope,
    *more: Scope,
    answers: Mapping[int, Any],
    body: type[Request] | str | None = None,
    query: type[Request] | None = None,
    headers: tuple[str, ...] = (),
    agents: str | None = None,
    checks_target: bool = False,
    without_passphrase: bool = False,
) -> Callable[[M], M]:
    """Declare what a verb needs; before it runs, `AgentExecHandler.prepare` checks and reads that.

    The verb gets the parts of the path, `body` and `query`, all by name. Before that, the object in
    the path, and a session in the body, are checked: an agent token must reach them. A route whose
    path names no object is for people, unless `agents` is given.

    Parameters
    ----------
    agents
        For a route whose path names no object: a sentence about what an agent token gets. The verb
        must enforce it with `self.access`.
    checks_target
        Where the body names the object, the verb's check names the scope that a token lacks for it.
        So the scope is not checked before.
    without_passphrase
        For a change by people that only stops agents: it does not need the server's passphrase. If
        that depends on the body, the verb calls `check_unlocked`.
    """

    def decorate(method: M) -> M:
        scopes = (scope, *more)
        for_people = not FOR_PEOPLE.isdisjoint(scopes)
        only_reads = for_people and method.__name__ == "get"
        method.operation = Operation(  # type: ignore[attr-defined]
            scopes=scopes,
            body=body,
            query=query,
            answers=answers,
            headers=(*headers, UNLOCK_HEADER) if for_people and not only_reads else headers,
            agents=agents,
            checks_target=checks_target,
            without_passphrase=without_passphrase or only_reads,
            summary=(inspect.getdoc(method) or "").partition("\n")[0],
        )
        return method

    return decorate


def operations(handler: type[web.RequestHandler]) -> dict[str, Operation]:
    """Return the operations of a handler class by verb."""
    verbs = [method.lower() for method in handler.SUPPORTED_METHODS]
    found = {verb: getattr(getattr(handler, verb), "operation", None) for verb in verbs}
    return {verb: operation for verb, operation in found.items() if operation is not None}
