"""The service's MCP endpoint, which forwards each request to the person's own server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from ..auth.credentials import is_misplaced, shown_token
from ..auth.handler import deliver
from ..auth.tokens import TokenRefused
from ..errors import (
    AgentExecError,
    Forbidden,
    InvalidRequest,
    Paused,
    PayloadTooLarge,
    Unauthenticated,
)
from ..mcp.endpoint import MAX_BODY_BYTES
from .grants import Grant
from .handlers import ServiceHandler
from .user_servers import (
    ACCESS_SECONDS,
    GONE,
    NOT_RUNNING,
    STOPS,
    Progress,
    ServerUnavailable,
    pieces,
    problem_of,
    read,
)

SEND_TIMEOUT: Final = 60.0
"""Seconds within which the client must accept each piece."""
EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
FORWARDED: Final = ("accept", "content-type", "last-event-id", "user-agent")
"""Headers of a request that the person's server gets, besides those of MCP."""
ANSWERED: Final = ("cache-control", "content-type", "retry-after", "x-accel-buffering")
"""Headers of a response that the client gets, besides those of MCP."""
FAILED: Final = -32000
"""JSON-RPC's code for errors of a server's own."""
START_SHARE: Final = 1e-6
"""Progress of a start is counted in such small steps that the call's own progress is higher."""


class _Meta(msgspec.Struct, rename={"progress_token": "progressToken"}):
    progress_token: str | int | None = None


class _Parameters(msgspec.Struct, rename={"meta": "_meta"}):
    meta: _Meta = msgspec.field(default_factory=_Meta)


class Message(msgspec.Struct):
    """What the service reads of a message."""

    id: str | int | None = None
    """None if no response is expected."""
    params: _Parameters = msgspec.field(default_factory=_Parameters)


class McpHandler(ServiceHandler):
    """The MCP endpoint."""

    _forwarding: asyncio.Task[None] | None = None
    _grant: Grant | None = None
    _refusal: TokenRefused | None = None
    """Why the call is cancelled, if its user may not use the service any more."""
    _is_connected = True
    _is_streaming = False
    _message = Message()
    _server_name: str

    async def prepare(self) -> None:
        """Refuse pages of another origin, whatever credential they have."""
        if is_misplaced(self.request.uri or "", self.request.query_arguments):
            raise InvalidRequest("Send a token only in the header 'Authorization'.", field="token")
        origin = self.request.headers.get("Origin")
        if origin is not None and urlsplit(origin.lower()).netloc != self.request.host.lower():
            raise Forbidden("Requests from pages of another origin are refused.")
        if len(self.request.body) > MAX_BODY_BYTES:
            raise PayloadTooLarge(
                f"The body has more than {MAX_BODY_BYTES:,} bytes.", limit_bytes=MAX_BODY_BYTES
            )

    async def post(self, server_name: str | None = None) -> None:
        """Forward a message."""
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # the server tells what is wrong
            self._message = msgspec.json.decode(self.request.body, type=Message)
        await self._serve(server_name)

    async def get(self, server_name: str | None = None) -> None:
        """Forward what a server notifies, in MCP revisions that have this stream."""
        await self._serve(server_name)

    async def delete(self, server_name: str | None = None) -> None:
        """Forward the end of an MCP session, in MCP revisions that have sessions."""
        await self._serve(server_name)

    async def _serve(self, server_name: str | None) -> None:
        """Forward the request until it is answered or the client disconnects."""
        self._server_name = server_name or ""
        self._forwarding = asyncio.ensure_future(self._answered())
        self.servers.calls.add(self._forwarding)
        self._forwarding.add_done_callback(self.servers.calls.discard)
        while not self._forwarding.done():
            await asyncio.wait({self._forwarding}, timeout=ACCESS_SECONDS)
            await self._end_if_barred(self._forwarding)
        if not self._forwarding.cancelled():
            self._forwarding.result()

    async def _end_if_barred(self, forwarding: asyncio.Task[None]) -> None:
        """Cancel a call that goes on although its user may not use the service any more."""
        try:
            if not forwarding.done() and self._grant is not None:
                await self._check_access(self._grant)
        except TokenRefused as error:
            self._refusal = error
            forwarding.cancel()
        except ServerUnavailable:
            pass  # the hub is away

    async def _check_access(self, grant: Grant) -> None:
        if not await self.servers.may_use_service(grant.username):
            raise TokenRefused(
                "The user of this access may not use the hub's service for agents now, or has "
                "logged out of the hub: sign in again."
            )

    def on_connection_close(self) -> None:
        """Cancel the request at the person's server, because the client has disconnected."""
        self._is_connected = False
        if self._forwarding is not None:
            self._forwarding.cancel()

    async def _answered(self) -> None:
        grant, credential = await self._granted()
        self._grant = grant
        await asyncio.sleep(self.servers.turns.delay(grant.username, time.monotonic()))
        try:
            await self._check_access(grant)
            pause = await self.grants.pause()
            if pause is not None:
                raise Paused(f"{pause.username}, of this hub, has paused all agents.")
            await self._forward(grant, credential)
        except (Paused, ServerUnavailable, TokenRefused) as error:
            await self._fail(error)
        except asyncio.CancelledError:
            if self._is_connected:  # else the client has left
                await self._fail(self._refusal or ServerUnavailable(STOPS))
            raise

    async def _fail(self, error: AgentExecError) -> None:
        """Answer with an error, as one of JSON-RPC if the client waits for a message."""
        is_signed_out = isinstance(error, TokenRefused) and not self._is_streaming
        if self._message.id is None or is_signed_out:
            raise error
        # Older clients end their session at another HTTP status.
        failure = {"code": FAILED, "message": error.message, "data": {"code": error.code}}
        await self._finish_message({"id": self._message.id, "error": failure})

    async def _granted(self) -> tuple[Grant, str]:
        shown = shown_token(self.request.headers)
        if shown is None:
            raise Unauthenticated("Sign in: this needs an access token of this hub's service.")
        grant, credential = await self.grants.find(shown)
        if grant.server_name != self._server_name:
            raise TokenRefused("This access token is for another server.")
        return grant, credential

    async def _forward(self, grant: Grant, credential: str) -> None:
        url = f"{self.servers.url(grant.username, grant.server_name)}/mcp"
        headers = {
            name: value for name, value in self.request.headers.items() if _is_of(name, FORWARDED)
        } | {
            "Authorization": f"Bearer {credential}",
            "Host": self.request.host,
        }
        method = self.request.method or ""
        response = await self.servers.send(method, url, headers, self.request.body)
        try:
            if method == "POST" and await self._did_not_arrive(response, grant):
                await response.aclose()
                async for told in self.servers.start(grant.username, grant.server_name):
                    await self._tell(told)
                response = await self.servers.send(method, url, headers, self.request.body)
            await self._pass(response, grant)
        finally:
            await response.aclose()

    async def _did_not_arrive(self, response: httpx2.Response, grant: Grant) -> bool:
        """Return whether the hub refused a request in the place of a server that does not run.

        Only then may it be sent again: the proxy's answers, from 500 on, leave open what arrived.
        """
        is_refused = 400 <= response.status_code < 500
        is_the_hubs = response.status_code == NOT_RUNNING or _kind(response) != JSON
        if not (is_refused and is_the_hubs):
            return False
        return not await self.servers.is_ready(grant.username, grant.server_name)

    async def _pass(self, response: httpx2.Response, grant: Grant) -> None:
        """Pass a response on."""
        kind = _kind(response)
        content = None
        if response.status_code >= HTTPStatus.MULTIPLE_CHOICES:
            content = await read(response)
            problem = problem_of(content)
            if response.status_code == HTTPStatus.UNAUTHORIZED and problem is not None:
                await self.grants.end(grant.token.id)
                raise TokenRefused(problem.message)
            if kind != JSON or response.status_code == NOT_RUNNING:
                raise ServerUnavailable(f"{GONE} (HTTP {response.status_code})")
        if self._is_streaming and kind != EVENT_STREAM:
            await self._finish_message(msgspec.json.decode(content or await read(response)))
            return
        if not self._is_streaming:
            self.set_status(response.status_code)
            self.clear_header("Content-Type")
            for name, value in response.headers.items():
                if _is_of(name, ANSWERED):
                    self.set_header(name, value)
            if kind == EVENT_STREAM:
                self._is_streaming = True
                await self.flush()
        if content is not None:
            await deliver(self, content, SEND_TIMEOUT)
        else:
            async for piece in pieces(response):
                await deliver(self, piece, SEND_TIMEOUT)
        await self.finish()

    async def _tell(self, told: Progress) -> None:
        """Tell a client that asks for progress how the start of its server goes."""
        token = self._message.params.meta.progress_token
        if token is None:
            return
        self._begin_stream()
        params = {
            "progressToken": token,
            "progress": told.progress * START_SHARE,
            "message": f"Your Jupyter server starts: {told.message}",
        }
        await self._send_event({"method": "notifications/progress", "params": params})

    def _begin_stream(self) -> None:
        if not self._is_streaming:
            self._is_streaming = True
            self.set_header("Content-Type", EVENT_STREAM)
            self.set_header("Cache-Control", "no-cache")
            self.set_header("X-Accel-Buffering", "no")

    async def _send_event(self, message: Mapping[str, object]) -> None:
        data = msgspec.json.encode({"jsonrpc": "2.0", **message})
        await deliver(self, b"event: message\r\ndata: " + data + b"\r\n\r\n", SEND_TIMEOUT)

    async def _finish_message(self, message: Mapping[str, object]) -> None:
        """Send the last message, in the stream if that has begun."""
        if self._is_streaming:
            await self._send_event(message)
            await self.finish()
        else:
            self.set_status(HTTPStatus.OK)
            self.answer({"jsonrpc": "2.0", **message})

    def write_error(self, status_code: int, **kwargs: object) -> None:
        """Tell how to sign in if the token is missing or not valid."""
        if status_code == HTTPStatus.UNAUTHORIZED:
            name = self.path_kwargs.get("server_name")
            document = "oauth-protected-resource" + (f"/{name}" if name else "")
            error = 'error="invalid_token", ' if "Authorization" in self.request.headers else ""
            url = f"{self.issuer}/.well-known/{document}"
            challenge = f'Bearer {error}realm="Jupyter", resource_metadata="{url}"'
            self.set_header("WWW-Authenticate", challenge)
        super().write_error(status_code, **kwargs)


def _kind(response: httpx2.Response) -> str:
    return str(response.headers.get("Content-Type", "")).partition(";")[0]


def _is_of(name: str, names: tuple[str, ...]) -> bool:
    return name.lower() in names or name.lower().startswith("mcp-")
