"""The base of all handlers: it authenticates, authorizes, reads the request, and answers.

All but the answer happens in `prepare()`, before any verb. A person has one of Jupyter's own
credentials. An agent may have an agent token, which is not for Jupyter's identity provider. Before
the verb runs, the handler checks that the token gives access to the object in the route's path. A
route whose path names no object is for people, unless its verb declares what agents get there. If a
verb does not name its scope with `requires`, the extension does not load (see `routes`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from http import HTTPStatus
from http.client import responses
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from jupyter_core.utils import ensure_async
from jupyter_server import CallContext
from jupyter_server.auth import User
from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.prometheus.log_functions import prometheus_log_method
from tornado import iostream, web
from tornado.http1connection import HTTP1Connection
from tornado.httputil import HTTPInputError
from tornado.log import app_log
from tornado.websocket import WebSocketHandler

from .. import errors
from ..host_kernel import HEADER
from ..models import Problem
from ..types import UNLOCK_HEADER, TokenId
from ..workarounds import note_current_user
from .access import AccessControl, denied
from .credentials import is_misplaced, shown_token, tokens_in, without_tokens
from .denials import Denials, Refusal
from .operations import Operation, operations
from .scopes import FOR_PEOPLE, PERMISSIONS, RUNS_CODE, Caller, Grants, Scope, given_away
from .tokens import TokenRefused, Tokens
from .unlocks import Unlocks
from .validation import NoQuery, read_body, read_query

PING_INTERVAL: Final = 20.0
"""Seconds between two pings of a WebSocket. A peer must answer before the next ping."""

READ_HEADERS: Final = (
    *("Accept", "Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"),
    *(UNLOCK_HEADER, "X-XSRFToken"),
)
"""Request headers that a page of an origin that the operator allows may send to any route."""

STATUSES: Final[dict[type[errors.AgentExecError], int]] = {
    errors.InvalidRequest: 400,
    errors.IdempotencyConflict: 422,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.MethodNotAllowed: 405,
    errors.Conflict: 409,
    errors.PreconditionFailed: 412,
    errors.PayloadTooLarge: 413,
    errors.RangeNotSatisfiable: 416,
    errors.InitFailed: 422,
    errors.TooManyRequests: 429,
    errors.NotInstalled: 501,
    errors.IsolationUnavailable: 501,
    errors.TrialUnavailable: 501,
    errors.KernelUnavailable: 503,
    errors.HistoryUnavailable: 503,
    errors.HistoryBusy: 409,
    errors.ServerStopping: 503,
}
"""HTTP status of each error; a class that is not listed has the status of its base class."""


def status_of(error: type[errors.AgentExecError]) -> int:
    """Return the HTTP status of an error."""
    return next((STATUSES[cls] for cls in error.__mro__ if cls in STATUSES), 500)


def is_open(verb: Callable[..., Any]) -> bool:
    """Return whether Jupyter's `allow_unauthenticated` marks a verb: it needs no credential."""
    return getattr(verb, "__allow_unauthenticated", False)


class AgentExecHandler(JupyterHandler):
    """Base of all handlers of this extension.

    A subclass declares the managers that it uses, by the names under which `app.py` wires them.
    """

    caller: Caller
    access: AccessControl
    tokens: Tokens
    denials: Denials
    on_refusal: Callable[[Refusal], None]
    refresh_decisions: Callable[[], Awaitable[None]]
    unlocks: Unlocks
    allow_full_access: bool
    body_limit: int
    send_timeout: float
    route: str
    """The route's path template."""
    has_begun = False
    """Whether the head of the answer has been sent."""
    _has_own_line = False

    def initialize(self, services: Mapping[str, object], route: str) -> None:
        """Set each service as an attribute."""
        super().initialize()
        self.__dict__.update(services)
        self.route = route

    # -- links -------------------------------------------------------------------------------------

    @cached_property
    def public_url(self) -> str:
        """Return the server's base URL as the client reaches it, with a slash at its end.

        All links in answers begin with it. What a proxy strips from a path is in no request: only
        Jupyter's `custom_display_url` tells it, to requests that name its host.
        """
        scheme, host, path = self.request.protocol, self.request.host, self.base_url
        public = urlsplit(self.settings["serverapp"].custom_display_url)
        if public.netloc.lower() == host.lower():
            scheme, path = public.scheme or scheme, public.path or path
        return f"{scheme}://{host}{path.rstrip('/')}/"

    @property
    def public_path(self) -> str:
        """Return the path of `public_url`, with a slash at both ends."""
        return urlsplit(self.public_url).path

    def public(self, path: str) -> str:
        """Return a path of this server as the client reaches it, and any other address as it is."""
        is_own = path.startswith(self.base_url)
        return self.public_path + path.removeprefix(self.base_url) if is_own else path

    # -- authentication ----------------------------------------------------------------------------

    async def prepare(self) -> None:  # type: ignore[override]
        """Authenticate and authorize the caller, and read the arguments of the verb.

        An error is raised if the request is refused.
        """
        CallContext.set(CallContext.JUPYTER_HANDLER, self)
        self._check_token_placement()
        if not self.check_host():
            raise errors.Forbidden("The request names a host that this server does not answer to.")
        if is_open(getattr(self, (self.request.method or "").lower())):
            return  # such as a browser's preflight request
        if (shown := self.shown_token) is not None:
            await self._authenticate_agent(shown)
        else:
            await self._authenticate_person()
        await self.refresh_decisions()
        if HEADER in self.request.headers:
            told = (each.partition("=") for each in self.request.headers[HEADER].split(","))
            host_kernels = {id.strip(): proof.strip() for id, _, proof in told}
            self.caller = msgspec.structs.replace(self.caller, host_kernels=host_kernels)
        operation = self._operation
        if operation is not None:
            await self._admit(operation)

    @property
    def _operation(self) -> Operation | None:
        """What the request's verb needs; None if the route has no such verb."""
        return operations(type(self)).get((self.request.method or "").lower())

    async def _admit(self, operation: Operation) -> None:
        """Check what a verb needs, and pass the request's body and query to it."""
        if self.caller.grants is None:  # an agent was checked before
            for scope in operation.scopes:
                await self.authorize(scope)
        inputs: dict[str, Any] = {}
        body = operation.body
        if body is not None and not isinstance(body, str):
            inputs["body"] = read_body(self.request.body, body, limit_bytes=self.body_limit)
            if "session_id" in body.__struct_fields__:
                for scope in operation.scopes:
                    await self.access.session(self.caller, scope, inputs["body"].session_id)
        query = read_query(self.request.query_arguments, operation.query or NoQuery)
        if operation.query is not None:
            inputs["query"] = query
        self.path_kwargs.update(inputs)

    async def _authenticate_person(self) -> None:
        """Set the caller to the person that Jupyter's identity provider names."""
        user = await ensure_async(self.identity_provider.get_user(self))
        self.current_user = user
        note_current_user(self, user)
        if user is None:
            is_shown = bool(self.identity_provider.get_token(self))
            raise errors.Unauthenticated(
                f"{'The token was refused' if is_shown else 'A credential is needed'} (401): send "
                "'Authorization: token <token>' with the token of this Jupyter server."
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

    @cached_property
    def shown_token(self) -> str | None:
        """Return the agent token in the request's header."""
        return shown_token(self.request.headers)

    async def _authenticate_agent(self, shown: str) -> None:
        """Set the caller to the agent whose token the request has.

        Jupyter's identity provider does not see this request.
        """
        self.caller = await self.tokens.caller(shown)
        # Request logs, such as JupyterHub's, read a user's name here. Jupyter's authorizer does not
        # decide about agents, because it may need attributes of a user that an agent does not have.
        self.current_user = User(
            username=self.caller.username, display_name=self.caller.display_name
        )
        origin = self.request.headers.get("Origin")
        if origin is not None and urlsplit(origin.lower()).netloc != self.request.host.lower():
            raise denied(errors.Forbidden("Requests from pages of another origin are refused."))
        await self._authorize_agent()

    def _check_token_placement(self) -> None:
        """Raise InvalidRequest for an agent token in the address or in a form."""
        self.refuse_misplaced(self.request.arguments)

    def refuse_misplaced(self, arguments: Mapping[str, Sequence[bytes]]) -> None:
        """Raise InvalidRequest if there is a token, and keep it out of the log."""
        if not is_misplaced(self.request.uri or "", arguments):
            return
        uri = self.request.uri or ""
        found = tokens_in(uri)
        self.request.uri = without_tokens(uri)
        self.request.path = without_tokens(self.request.path)
        for id in found:
            method = self.request.method or ""
            self.record_denial(errors.InvalidRequest.code, TokenId(id), method, self.route)
        raise errors.InvalidRequest(
            "Send an agent token only in the header 'Authorization: Bearer <token>', because "
            "addresses end up in logs and histories. Ask the person to revoke this token and to "
            "give you another.",
            field="token",
        )

    def record_denial(self, code: str, token_id: TokenId | None, method: str, route: str) -> None:
        """Record that an agent token was refused, if the token is one of this server."""
        if token_id is not None and self.tokens.knows(token_id):
            self.denials.note(token_id, code, method, route)

    def refused(self, error: errors.AgentExecError, method: str, route: str) -> None:
        """Tell operators that the request was refused, and record it if that denies access."""
        caller: Caller | None = getattr(self, "caller", None)
        token_id = None if caller is None or caller.token is None else caller.token.id
        if isinstance(error, TokenRefused):
            token_id = error.token_id
        path: Mapping[str, str] = getattr(self, "path_kwargs", None) or {}  # of an unknown verb
        self.on_refusal(
            Refusal(
                code=error.code,
                status=status_of(type(error)),
                method=method,
                route=route,
                username=None if caller is None else caller.username,
                ip=self.request.remote_ip,
                token_id=token_id,
                session_id=path.get("session_id"),
                execution_id=path.get("execution_id"),
            )
        )
        if error.is_denial:
            self.record_denial(error.code, token_id, method, route)

    def check_token(self) -> None:
        """Raise TokenRefused if the caller's agent token has ended since the request began."""
        if self.caller.token is not None:
            self.tokens.check(self.caller.token.id)

    async def _authorize_agent(self) -> None:
        """Check that the agent token gives access to the object in the route's path."""
        operation = self._operation
        if operation is None:
            return
        for scope in FOR_PEOPLE.intersection(operation.scopes):
            self.access.check(self.caller, scope)
        for scope in operation.scopes:
            await self._check_access(scope, operation)

    async def _check_access(self, scope: Scope, operation: Operation) -> None:
        path = self.path_kwargs
        if "session_id" in path:
            await self.access.session(self.caller, scope, path["session_id"])
        elif "execution_id" in path:
            await self.access.execution(self.caller, scope, path["execution_id"])
        elif "digest" in path:
            await self.access.blob(self.caller, scope, path["digest"])
        elif "path" in path:
            self.access.notebook(self.caller, scope, path["path"])
        elif operation.agents is None:
            raise denied(errors.Forbidden("This route is not for agent tokens."))
        elif not operation.checks_target:
            self.access.check(self.caller, scope)

    # -- authorization -----------------------------------------------------------------------------

    @allow_unauthenticated
    async def options(self, **path: str) -> None:
        """Answer with the verbs of the route, and with CORS headers for the allowed origins."""
        self.set_status(HTTPStatus.NO_CONTENT)
        self.set_header("Allow", ", ".join(self.allowed_methods))
        if self.allow_origin or self.allow_origin_pat:
            self.set_header("Access-Control-Allow-Methods", ", ".join(self.allowed_methods))
            if "Access-Control-Allow-Headers" not in self.settings.get("headers", {}):
                verbs = operations(type(self)).values()
                of_route = (name for verb in verbs for name in verb.headers)
                headers = sorted({*READ_HEADERS, *of_route})
                self.set_header("Access-Control-Allow-Headers", ", ".join(headers))
        await self.finish()

    @property
    def allowed_methods(self) -> list[str]:
        """Verbs of this route."""
        return sorted(verb.upper() for verb in (*operations(type(self)), "options"))

    async def authorize(self, scope: Scope) -> None:
        """Check that the caller may do this: a person with the Authorizer, an agent by its scopes.

        Raises
        ------
        Forbidden
            The caller may not, or programs need an agent token on this server.
        PassphraseRequired
            This is a user's decision, and the request does not have a valid unlock.
        """
        if self.caller.grants is not None:
            self.access.check(self.caller, scope)
            return
        needs_token = scope in RUNS_CODE and not self.allow_full_access
        if needs_token and self.token_authenticated and not await self._is_in_page():
            raise errors.Forbidden(
                "Programs need an agent token on this server: ask the person for one, which "
                "JupyterLab or 'jupyter agent-exec token create' makes.",
                scope=scope,
            )
        await self.ask_authorizer(scope)
        if scope in FOR_PEOPLE:
            operation = self._operation
            if operation is None or not operation.without_passphrase:
                self.check_unlocked()

    def check_unlocked(self) -> None:
        """Raise PassphraseRequired if the server has a passphrase and the request shows no unlock.

        `authorize` calls this for all that is for people, except for verbs `without_passphrase`.
        """
        self.unlocks.check(self.request.headers.get(UNLOCK_HEADER))

    async def _is_in_page(self) -> bool:
        """Return whether the request has a cookie too, as the requests of JupyterLab's page do."""
        user = await ensure_async(self.identity_provider.get_user_cookie(self))
        if user is None or self.request.method in ("GET", "HEAD"):
            return user is not None
        try:
            web.RequestHandler.check_xsrf_cookie(self)
        except web.HTTPError:
            return False
        return True

    async def ask_authorizer(self, scope: Scope) -> None:
        """Raise Forbidden if Jupyter's Authorizer does not allow this to the person."""
        action, resource = PERMISSIONS[scope]
        allowed = self.authorizer.is_authorized(self, self.current_user, action, resource)
        if not await ensure_async(allowed):
            raise errors.Forbidden(
                f"{self.caller.username} may not {action} {resource} on this server.",
                action=action,
                resource=resource,
            )

    async def check_given_away(self, scopes: Sequence[str]) -> None:
        """Raise Forbidden if the person may not do all that an agent token's scopes allow."""
        for scope in given_away(Grants.parse(scopes)):
            await self.ask_authorizer(scope)

    # -- answers -----------------------------------------------------------------------------------

    def answer(self, model: Any, status: int = 200, *, location: str | None = None) -> None:
        """Answer with a model as JSON."""
        self.set_status(status)
        if location is not None:
            self.set_header("Location", location)
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(model))

    async def send(self, piece: bytes) -> None:
        """Send a piece of an answer, and return when the client has received it.

        Raises
        ------
        tornado.iostream.StreamClosedError
            The client disconnected, or was too slow; then its connection is closed.
        """
        await deliver(self, piece, self.send_timeout)

    @property
    def content_security_policy(self) -> str:
        """Allow nothing: no answer of ours is a page."""
        return super().content_security_policy + "; default-src 'none'"

    def set_default_headers(self) -> None:
        """Set the headers of every answer, errors included."""
        super().set_default_headers()
        self.set_header("Content-Type", "application/json")
        if self.shown_token is not None:
            for name in self.settings.get("headers", {}):
                if name.lower().startswith("access-control-"):
                    self.clear_header(name)  # pages have no agent tokens
        elif self.allow_origin or self.allow_origin_pat:
            self.set_cors_headers()

    def clear(self) -> None:
        """Start the answer over, without cookies, so that an error sets none."""
        super().clear()
        self._cookies: list[Callable[[], None]] = []

    def set_cookie(self, name: str, value: str | bytes, *args: Any, **options: Any) -> None:
        """Set a cookie with this answer, unless it is cleared before it is sent."""
        self._cookies.append(partial(super().set_cookie, name, value, *args, **options))

    def flush(self, include_footers: bool = False) -> asyncio.Future[None]:
        """Send what has been written, with the head of the answer at first."""
        if not self.has_begun:
            self.has_begun = True
            for set_cookie in self._cookies:
                set_cookie()
        return super().flush(include_footers)

    def on_finish(self) -> None:
        """Record activity, so that a hub does not cull a server that only an agent uses."""
        if getattr(self, "caller", None) is not None:
            self.settings["api_last_activity"] = datetime.now(UTC)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log unexpected errors only: a refusal is ordinary, and so is a client that went away."""
        ordinary = isinstance(value, (errors.AgentExecError, iostream.StreamClosedError))
        if isinstance(value, web.HTTPError):
            ordinary = value.status_code < HTTPStatus.INTERNAL_SERVER_ERROR
        if not ordinary:
            super().log_exception(typ, value, tb)

    def send_error(self, status_code: int = 500, **kwargs: object) -> None:
        """Answer with the error's own status; if an answer has begun, close the connection."""
        if self.has_begun:
            self.detach().close()  # an ordinary end would make it look complete
            return
        error = error_in(kwargs)
        if isinstance(error, web.HTTPError):
            error = self._own_error(error)
        if isinstance(error, errors.AgentExecError):
            status_code = status_of(type(error))
            kwargs["exc_info"] = (type(error), error, error.__traceback__)
            self.refused(error, self.request.method or "", self.route)
            self._has_own_line = True
        super().send_error(status_code, **kwargs)

    def _log(self) -> None:
        """Leave the line about a refused request to the activity log; keep Jupyter's metrics.

        Jupyter's own line would be a second one, for a 503 with the headers of the request.
        """
        if not self._has_own_line:
            super()._log()
        elif self.settings["serverapp"].record_http_request_metrics:
            prometheus_log_method(self)  # type: ignore[no-untyped-call]

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Write the body of an error."""
        error = error_in(kwargs)
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
            self.set_header("WWW-Authenticate", self.challenge(isinstance(error, TokenRefused)))
        self.finish(
            msgspec.json.encode(Problem(message=message, reason=None, code=code, detail=detail))
        )

    def challenge(self, is_agent: bool) -> str:
        """Return how a request without a valid credential can get one."""
        scheme = 'Bearer error="invalid_token",' if is_agent else "token"
        return f'{scheme} realm="Jupyter"'

    def _own_error(self, error: web.HTTPError) -> Exception:
        """Return our own error for one of tornado's, if we have one."""
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = self.allowed_methods
            return errors.MethodNotAllowed(
                f"{self.request.method} is not for this route; it has {', '.join(allowed)}.",
                allowed=allowed,
            )
        if isinstance(error.__cause__, HTTPInputError):
            return errors.InvalidRequest("The body is not a valid form.", field=None)
        if error.status_code == HTTPStatus.BAD_REQUEST:
            return errors.InvalidRequest("The address or the query is not UTF-8.", field=None)
        return error


class AgentExecWebSocket(AgentExecHandler, WebSocketHandler):
    """Base of WebSockets. Refusals before the handshake are those of any route."""

    max_message_bytes: int

    async def accept(self) -> None:
        """Make the handshake; the caller is already authorized."""
        headers = self.request.headers
        if headers.get("Upgrade", "").lower() != "websocket":
            raise errors.InvalidRequest(
                "This route is a WebSocket: the request needs 'Upgrade: websocket'.",
                field="Upgrade",
            )
        await WebSocketHandler.get(self)

    def get_compression_options(self) -> None:
        """Use no compression: it takes more time than it saves for a local browser."""

    @property
    def ping_interval(self) -> float:
        """Seconds between two pings."""
        return PING_INTERVAL

    @property
    def ping_timeout(self) -> float:
        """Seconds within which a ping is answered."""
        return PING_INTERVAL

    @property
    def max_message_size(self) -> int:
        """The largest message that is accepted, in bytes."""
        return self.max_message_bytes

    def send_error(self, status_code: int = 500, **kwargs: object) -> None:
        """Answer with the error's own status; after the handshake, close."""
        if self.ws_connection is not None:
            self.close(1011)
        else:
            super().send_error(status_code, **kwargs)


def error_in(kwargs: Mapping[str, object]) -> object:
    """Return the exception for which tornado sends an error; None if there is none."""
    exc_info = kwargs.get("exc_info")
    return exc_info[1] if isinstance(exc_info, tuple) else None


async def deliver(
    handler: web.RequestHandler, piece: bytes, timeout: float, *, last: bool = False
) -> None:
    """Send a piece of an answer, and return when the client has received it.

    After the last piece, the answer is finished. If it is the only one, it is sent with its head.

    Raises
    ------
    tornado.iostream.StreamClosedError
        The client disconnected, or did not receive it within `timeout` seconds. Then its connection
        is closed.
    """
    handler.write(piece)
    taken = handler.finish() if last else handler.flush()
    if not taken.done():
        await asyncio.wait({taken}, timeout=timeout)
    if not taken.done():
        app_log.info("%s is not read any more; its connection is closed", handler.request.path)
        assert isinstance(handler.request.connection, HTTP1Connection)
        handler.request.connection.stream.close()
    await taken
