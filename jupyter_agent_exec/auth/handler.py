"""The base of all handlers: who asks, may they, and what do they say.

Authentication happens in `prepare()`, before any verb. A verb that does not name its scope with
`requires` stops the extension when it is loaded (see `check_verbs`).
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import responses
from typing import Any, Final, TypeVar

import msgspec
from jupyter_core.utils import ensure_async
from jupyter_server import CallContext
from jupyter_server.auth.decorator import allow_unauthenticated
from tornado import iostream, web

from .. import errors
from ..host_kernel import HEADER
from ..models import Problem, Request
from .agents import AgentHandler
from .delivery import deliver
from .scopes import FOR_PEOPLE, PERMISSIONS, RUNS_CODE, Caller, Scope
from .tokens import TokenRefused
from .unlocks import UNLOCK_HEADER, Unlocks
from .validation import Nothing, read_body, read_query

M = TypeVar("M", bound=Callable[..., Awaitable[None]])

READ_HEADERS: Final = (
    "accept, authorization, content-type, idempotency-key, last-event-id, x-agent-exec-unlock, "
    "x-xsrftoken"
)
"""Request headers that a page of an origin that the operator allows may send."""

STATUSES: Final[dict[type[errors.AgentExecError], int]] = {
    errors.InvalidRequest: 400,
    errors.IdempotencyConflict: 422,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.PassphraseRequired: 403,
    errors.PassphraseWrong: 403,
    errors.Paused: 409,
    errors.NotFound: 404,
    errors.MethodNotAllowed: 405,
    errors.SessionClosed: 409,
    errors.AlreadyFinished: 409,
    errors.AlreadyDecided: 409,
    errors.ApprovalChanged: 409,
    errors.NotFinished: 409,
    errors.InputNotAsked: 409,
    errors.KernelBusy: 409,
    errors.KernelNotOwned: 409,
    errors.KernelWaitsForItself: 409,
    errors.CellBusy: 409,
    errors.DocumentChanged: 409,
    errors.DocumentUnwritable: 409,
    errors.FolderUnknown: 409,
    errors.FileNotOwned: 409,
    errors.FileUnwritable: 409,
    errors.PreconditionFailed: 412,
    errors.PayloadTooLarge: 413,
    errors.RangeNotSatisfiable: 416,
    errors.InitFailed: 422,
    errors.TooManyRequests: 429,
    errors.NotInstalled: 501,
    errors.IsolationUnavailable: 501,
    errors.GatewayNotSupported: 501,
    errors.KernelUnavailable: 503,
    errors.HistoryUnavailable: 503,
    errors.ServerStopping: 503,
}
"""HTTP status of each error; a class that is not listed has its base's."""


def status_of(error: type[errors.AgentExecError]) -> int:
    """Return the HTTP status of an error."""
    return next((STATUSES[cls] for cls in error.__mro__ if cls in STATUSES), 500)


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
            said: dict[str, Any] = {}
            if body is not None and not isinstance(body, str):
                said["body"] = read_body(self.request.body, body, limit_bytes=self.body_limit)
                if "session_id" in body.__struct_fields__:
                    for each in (scope, *more):
                        await self.access.session(self.caller, each, said["body"].session_id)
            asked = read_query(self.request.query_arguments, query or Nothing)
            if query is not None:
                said["query"] = asked
            await method(self, **path, **said)

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


def check_verbs(handler: type[web.RequestHandler]) -> None:
    """Raise TypeError if a verb of the handler does not name its scope."""
    named = operations(handler)
    free = (web.RequestHandler._unimplemented_method, AgentExecHandler.options)
    for method in handler.SUPPORTED_METHODS:
        verb = method.lower()
        if verb not in named and getattr(handler, verb) not in free:
            raise TypeError(f"{handler.__name__}.{verb} does not name its scope with @requires")


class AgentExecHandler(AgentHandler):
    """Base of all handlers of this extension."""

    allow_full_access: bool
    body_limit: int
    send_timeout: float
    unlocks: Unlocks

    def initialize(self, **given: Any) -> None:
        """Take what `app.py` gives: each item becomes an attribute."""
        super().initialize()
        for name, value in given.items():
            setattr(self, name, value)

    async def prepare(self) -> None:  # type: ignore[override]
        """Find out who asks; refuse whoever nobody knows."""
        CallContext.set(CallContext.JUPYTER_HANDLER, self)
        self.check_placed()
        if not self.check_host():
            raise errors.Forbidden("The request names a host that this server does not answer to.")
        if self.request.method == "OPTIONS":
            return  # a browser asks without a credential what it may send
        if (shown := self.shown_token) is not None:
            await self.let_in_agent(shown)
        else:
            await self._let_in_person()
        if HEADER in self.request.headers:
            told = (each.partition("=") for each in self.request.headers[HEADER].split(","))
            host_kernels = {id.strip(): proof.strip() for id, _, proof in told}
            self.caller = msgspec.structs.replace(self.caller, host_kernels=host_kernels)

    async def _let_in_person(self) -> None:
        """Ask Jupyter's identity provider who it is."""
        user = await ensure_async(self.identity_provider.get_user(self))
        self.current_user = self._jupyter_current_user = user
        if user is None:
            raise errors.Unauthenticated(
                "A credential is needed: send 'Authorization: token <token>' with the token of "
                "this Jupyter server."
            )
        try:
            if self.request.method not in ("GET", "HEAD"):
                self.check_xsrf_cookie()
        except web.HTTPError as error:
            raise errors.Forbidden(
                "A request with a cookie needs the X-XSRFToken header and must come from this "
                "server's own pages. Programs use 'Authorization: token <token>' instead."
            ) from error
        if not self.check_origin():
            raise errors.Forbidden("Requests from pages of another origin are refused.")
        self.caller = Caller(
            username=user.username,
            display_name=user.display_name or user.username,
            access="full",
        )

    @allow_unauthenticated
    async def options(self, **path: str) -> None:
        """Tell which verbs there are, and the operator's own origins what they may send."""
        self.set_status(HTTPStatus.NO_CONTENT)
        self.set_header("Allow", ", ".join(self.allowed_methods))
        if self.allow_origin or self.allow_origin_pat:
            self.set_header("Access-Control-Allow-Methods", ", ".join(self.allowed_methods))
            if "Access-Control-Allow-Headers" not in self.settings.get("headers", {}):
                self.set_header("Access-Control-Allow-Headers", READ_HEADERS)
        await self.finish()

    @property
    def allowed_methods(self) -> list[str]:
        """Verbs of this route."""
        return sorted(verb.upper() for verb in (*operations(type(self)), "options"))

    async def authorize(self, scope: Scope) -> None:
        """Ask Jupyter's Authorizer about a person, and an agent token's scopes about that.

        Raises
        ------
        Forbidden
            One refuses, or the operator wants agents to have tokens.
        PassphraseRequired
            A person decides, and has not shown the server's passphrase.
        """
        if self.caller.grants is not None:
            self.access.check(self.caller, scope)
            return
        needs_token = scope in RUNS_CODE and not self.allow_full_access
        if needs_token and self.token_authenticated and not await self._is_in_page():
            raise errors.Forbidden(
                "Programs need an agent token on this server: ask the person for one, which "
                "JupyterLab or 'jupyter agent-exec token new' mints.",
                scope=scope,
            )
        await self.ask_authorizer(scope)
        if scope in FOR_PEOPLE:
            operation = operations(type(self))[(self.request.method or "").lower()]
            if not operation.without_passphrase:
                self.check_unlocked()

    def check_unlocked(self) -> None:
        """Raise PassphraseRequired if a person needs the server's passphrase and has not shown it.

        `authorize` does so for all that is for people, but for verbs `without_passphrase`.
        """
        self.unlocks.check(self.request.headers.get(UNLOCK_HEADER))

    async def _is_in_page(self) -> bool:
        """Tell whether a request has a person's cookie too, as those of JupyterLab's page do."""
        user = await ensure_async(self.identity_provider.get_user_cookie(self))
        if user is None or self.request.method in ("GET", "HEAD"):
            return user is not None
        try:
            web.RequestHandler.check_xsrf_cookie(self)
        except web.HTTPError:
            return False
        return True

    async def ask_authorizer(self, scope: Scope) -> None:
        """Raise Forbidden if Jupyter's Authorizer does not let a person do something."""
        action, resource = PERMISSIONS[scope]
        allowed = self.authorizer.is_authorized(self, self.current_user, action, resource)
        if not await ensure_async(allowed):
            raise errors.Forbidden(
                f"{self.caller.username} may not {action} {resource} on this server.",
                action=action,
                resource=resource,
            )

    def answer(self, model: Any, status: int = 200, *, location: str | None = None) -> None:
        """Answer with a model as JSON."""
        self.set_status(status)
        if location is not None:
            self.set_header("Location", location)
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(model))

    async def send(self, piece: bytes) -> None:
        """Send a piece of an answer, and return when the connection has taken all of it.

        Raises
        ------
        tornado.iostream.StreamClosedError
            The client went away, or has taken too long; its connection is then closed.
        """
        await deliver(self, piece, self.send_timeout)

    @property
    def content_security_policy(self) -> str:
        """What is answered here is never a page."""
        return super().content_security_policy + "; default-src 'none'"

    def set_default_headers(self) -> None:
        """Add the headers of every answer, also of a refusal."""
        super().set_default_headers()
        self.set_header("Content-Type", "application/json")
        if self.shown_token is not None:
            for name in [n for n in self._headers if n.startswith("Access-Control-")]:
                self.clear_header(name)  # it is for no page
        elif self.allow_origin or self.allow_origin_pat:
            self.set_cors_headers()

    def clear(self) -> None:
        """Begin the answer anew; a refusal leaves no cookie behind."""
        super().clear()
        self.__dict__.pop("_new_cookie", None)

    def on_finish(self) -> None:
        """Count as activity of the server, so that a hub does not cull it under an agent."""
        if getattr(self, "caller", None) is not None:
            self.settings["api_last_activity"] = datetime.now(UTC)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log what nobody expected; a refusal is an ordinary answer, and so is one who left."""
        ordinary = isinstance(value, (errors.AgentExecError, iostream.StreamClosedError))
        if isinstance(value, web.HTTPError):
            ordinary = value.status_code < HTTPStatus.INTERNAL_SERVER_ERROR
        if not ordinary:
            super().log_exception(typ, value, tb)

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Answer with the error's own status; break off an answer that has begun."""
        if self._headers_written:
            self.detach().close()  # an ordinary end would make it look complete
            return
        error = (kwargs.get("exc_info") or (None, None))[1]
        if isinstance(error, errors.AgentExecError):
            status_code = status_of(type(error))
            self.note_if_denied(error)
        super().send_error(status_code, **kwargs)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write the body of a refusal."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        if isinstance(error, web.HTTPError):
            error = self._own_error(error)
        if isinstance(error, errors.AgentExecError):
            code, message, detail = error.code, error.message, error.detail
        elif isinstance(error, web.HTTPError):
            message = responses.get(status_code, "Refused")
            code, detail = re.sub(r"\W+", "_", message.lower()), {}
        else:
            code, message, detail = "internal_error", "Unhandled error", {}
        if isinstance(error, errors.MethodNotAllowed):
            self.set_header("Allow", ", ".join(self.allowed_methods))
        if isinstance(error, errors.TooManyRequests) and "retry_after" in detail:
            self.set_header("Retry-After", str(detail["retry_after"]))
        if status_code == HTTPStatus.UNAUTHORIZED:
            is_agent = isinstance(error, TokenRefused)
            scheme = 'Bearer error="invalid_token",' if is_agent else "token"
            self.set_header("WWW-Authenticate", f'{scheme} realm="Jupyter"')
        self.finish(
            msgspec.json.encode(Problem(message=message, reason=None, code=code, detail=detail))
        )

    def _own_error(self, error: web.HTTPError) -> Exception:
        """Return what tornado refuses in our own words, where we have them."""
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = self.allowed_methods
            return errors.MethodNotAllowed(
                f"{self.request.method} is not for this route; it has {', '.join(allowed)}.",
                allowed=allowed,
            )
        if error.status_code == HTTPStatus.BAD_REQUEST:
            return errors.InvalidRequest("The address or the query is not UTF-8.", field=None)
        return error


class NotFoundHandler(AgentExecHandler):
    """Any path under ours that is no route."""

    async def prepare(self) -> None:  # type: ignore[override]
        """Refuse in the same words whatever the verb."""
        await super().prepare()
        if self.request.method != "OPTIONS":
            raise errors.NotFound(f"There is no {self.request.path} here; see openapi.json.")
