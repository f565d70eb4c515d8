"""What each verb of a route needs, reads and answers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from tornado import web

from ..models import Request
from .scopes import FOR_PEOPLE, Scope
from .unlocks import UNLOCK_HEADER
from .validation import Nothing, read_body, read_query

if TYPE_CHECKING:
    from .handler import AgentExecHandler

M = TypeVar("M", bound=Callable[..., Awaitable[None]])


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What a verb needs, reads and answers; the OpenAPI document is made from these."""

    scopes: tuple[Scope, ...]
    body: type[Request] | str | None
    """A model, or the media type of what is taken as it comes."""
    query: type[Request] | None
    answers: Mapping[int, Any]
    """Status to a model, to several of which one is answered, or to a media type."""
    headers: tuple[str, ...]
    """Names of request headers that it reads."""
    agents: str | None
    """What an agent token gets of it if the route's path names nothing; None is a refusal."""
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
    without_passphrase: bool = False,
) -> Callable[[M], M]:
    """Name what a verb needs; check it, and hand the verb what the request says.

    The verb is called with the parts of the path, then with `body` and `query`, all by name. What
    the path names, and a session that the body names, is looked at before: whether an agent token
    reaches it. A path that names nothing is for people, unless `agents` says otherwise.

    Parameters
    ----------
    agents
        Of a route whose path names nothing: what of it an agent token gets, in words. The verb has
        to see to that, with `self.access`.
    without_passphrase
        Of a change that is for people, and that only stops agents: it must not have to wait for
        the server's passphrase. Where it depends on the body, the verb calls `check_unlocked`.
    """

    def decorate(method: M) -> M:
        @functools.wraps(method)
        async def verb(self: AgentExecHandler, **path: str) -> None:
            if self.caller.grants is None:  # else it was looked at before
                for each in (scope, *more):
                    await self.authorize(each)
            arguments: dict[str, object] = {}
            if body is not None and not isinstance(body, str):
                parsed = read_body(self.request.body, body, limit_bytes=self.body_limit)
                if "session_id" in body.__struct_fields__:
                    for each in (scope, *more):
                        await self.access.session(self.caller, each, parsed.session_id)  # type: ignore[attr-defined]
                arguments["body"] = parsed
            parsed_query = read_query(self.request.query_arguments, query or Nothing)
            if query is not None:
                arguments["query"] = parsed_query
            await method(self, **path, **arguments)

        scopes = (scope, *more)
        for_people = not FOR_PEOPLE.isdisjoint(scopes)
        only_reads = for_people and method.__name__ == "get"
        verb.operation = Operation(  # type: ignore[attr-defined]
            scopes=scopes,
            body=body,
            query=query,
            answers=answers,
            headers=(*headers, UNLOCK_HEADER) if for_people and not only_reads else headers,
            agents=agents,
            without_passphrase=without_passphrase or only_reads,
            summary=(inspect.getdoc(method) or "").partition("\n")[0],
        )
        return verb  # type: ignore[return-value]

    return decorate


def operations(handler: type[web.RequestHandler]) -> dict[str, Operation]:
    """Return the operations of a handler class by verb."""
    verbs = [method.lower() for method in handler.SUPPORTED_METHODS]
    found = {verb: getattr(getattr(handler, verb), "operation", None) for verb in verbs}
    return {verb: operation for verb, operation in found.items() if operation is not None}
