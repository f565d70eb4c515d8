"""A client's connection to its server: the only part of the client that does I/O.

`Connection` finds the server, sends requests, and repeats them when the connection breaks.
It awaits the network. `BlockingConnection` blocks instead: its coroutines never wait for an event
loop, so that `blocking.run` can run them without one. This way, the client is written only once,
with ``async`` and ``await``.

Both connections use httpx2's transports instead of its clients. Requests need no redirects and no
settings from the environment, which would double the cost of a request. The connection keeps
Jupyter's cookie and sends it again: without it, Jupyter makes up a new user for each request with a
token.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import lru_cache
from http.cookies import SimpleCookie
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, TypeVarTuple

import anyio
import anyio.to_thread
import httpx2
import msgspec

from ..errors import AgentExecError, Forbidden, InvalidRequest
from ..host_kernel import HEADER, host_kernels
from ..models import ExecutionList, SearchResults, ServerStatus, SessionFileList, SessionList
from ..models import Request as RequestModel
from ..types import UNLOCK_HEADER
from .errors import (
    CannotConnect,
    ClientError,
    ConnectionLost,
    NoServerFound,
    ServerUnreachable,
)
from .replies import check, failure, read
from .requests import API, with_query
from .servers import URL_VARIABLE, Server, found, named

M = TypeVar("M")
Page = TypeVar("Page", ExecutionList, SearchResults, SessionFileList, SessionList)
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Headers: TypeAlias = Mapping[str, str]

NO_HEADERS: Final[Headers] = MappingProxyType({})

CONNECT_SECONDS: Final = 10.0

PROBE_SECONDS: Final = 5.0
"""Seconds within which a discovered server must answer."""

RECONNECT_SECONDS: Final = 30.0
"""How long to try to restore a broken connection before raising an error."""

LIMITS: Final = httpx2.Limits(
    max_connections=100, max_keepalive_connections=20, keepalive_expiry=120.0
)
"""httpx2's default limits, but with a longer keepalive: a model often thinks for more than five
seconds between two executions. It is not longer still, because a NAT or a proxy may silently drop a
connection that is idle for some minutes."""

_PIECE_BYTES: Final = 1 << 18

_encoder = msgspec.json.Encoder()


class Request(msgspec.Struct, frozen=True):
    """A request to the server."""

    method: str
    path: str
    """Path below the server's base URL, with the query."""
    body: bytes | Path = b""
    """The body, or the path of the file with the body."""
    headers: Headers = NO_HEADERS
    """Headers in addition to those of the connection and of the body."""
    read_timeout: float = 60.0
    """Seconds without any data after which the connection counts as broken."""


def encoded(body: RequestModel) -> bytes:
    """Return a model as JSON."""
    try:
        return _encoder.encode(body)
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            "Text with a lone surrogate cannot be sent: it has no UTF-8 form.",
            position=error.start,
        ) from error


class Backoff:
    """The pauses between attempts to reconnect, and the time to give up."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._sleep = sleep
        self.reset()

    def reset(self) -> None:
        """Start again from the shortest pause, because there was a connection."""
        self.tries = 0
        self._paused = 0.0

    async def pause(self, error: ServerUnreachable) -> None:
        """Pause after `error`, or raise it when it is time to give up."""
        if self._paused >= RECONNECT_SECONDS:
            raise error
        pause = min(0.05 * (1 << self.tries), 2.0)
        self.tries += 1
        self._paused += pause
        await self._sleep(pause)


class Connection:
    """Send requests to one server. Tasks of one event loop may share it.

    Parameters
    ----------
    url, token
        The server; as for `AgentExecClient`.
    transport
        The transport that sends requests; closed with the connection. When None, a new one for the
        server's address.

    Raises
    ------
    InvalidAddress
        `url` is not a valid address of a Jupyter server.
    """

    def __init__(
        self,
        url: str | None,
        token: str | None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._server = named(url, token)
        self._given = transport
        self._transport: httpx2.AsyncBaseTransport | None = None
        self._token = token
        self._address: _Address | None = None
        self.connected = False
        self._connecting: AbstractAsyncContextManager[object] = anyio.Lock()

    @property
    def address(self) -> str | None:
        """The address of the server; None until a server was found."""
        return self._address.server.address if self.connected and self._address else None

    # -- the server --------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Find the server. One that the user has named is not asked whether it answers.

        If several callers connect at the same time, one does it, and the others wait.
        """
        async with self._connecting:
            if self.connected:
                return
            try:
                if self._server is not None:
                    await self.use(self._server)
                else:
                    await self.find()
            except BaseException:
                await self.close()
                raise
            self.connected = True

    async def find(self) -> Server:
        """Use the server that the user has named, or the newest here that answers. Return it.

        Raises
        ------
        ServerUnreachable, UnexpectedAnswer, Unauthenticated
            The named server cannot be used, or no server here answers and accepts the token.
        """
        if self._server is not None:
            await self._probe(self._server, 60.0)
            return self._server
        reasons: list[str] = []
        for server in self._here():
            try:
                await self._probe(server, PROBE_SECONDS)
            except (ClientError, AgentExecError) as error:
                reasons.append(f"{server.address}: {error}")
            else:
                return server
        raise _no_server(reasons)

    def _here(self) -> list[Server]:
        return found(self._token)

    async def _probe(self, server: Server, read_timeout: float) -> None:
        await self.use(server)
        request = Request("GET", f"{API}/status", read_timeout=read_timeout)
        with suppress(Forbidden):  # the credential is valid, but the Authorizer refuses
            read(await self.exchange(request), ServerStatus)

    async def use(self, server: Server) -> None:
        """Send all later requests to this server."""
        await self.close()
        self._address = _Address(server)
        self._open_transport(self._address.transport_options)

    def show_unlock(self, unlock: str) -> None:
        """Send this secret with each later request, to prove that a user makes the decisions."""
        assert self._address is not None
        self._address.headers[UNLOCK_HEADER] = unlock

    # -- requests ----------------------------------------------------------------------------------

    async def send(self, request: Request) -> httpx2.Response:
        """Send `request` once and return the answer.

        Raises
        ------
        ServerUnreachable
            The connection could not be made, or it broke.
        """
        if not self.connected:
            await self.connect()
        return await self.exchange(request)

    async def send_persistently(self, request: Request) -> httpx2.Response:
        """Send `request`, and send it again if the connection breaks.

        If the first attempt cannot connect, raise at once: the address is probably wrong.
        """
        backoff = Backoff(self.sleep)
        while True:
            try:
                response = await self.send(request)
                if isinstance(error := failure(response), ConnectionLost):
                    raise error
                return response
            except ServerUnreachable as error:
                if isinstance(error, CannotConnect) and not backoff.tries:
                    raise
                await backoff.pause(error)

    async def get(
        self, path: str, model: type[M], read_timeout: float = 60.0, /, **query: str | float | None
    ) -> M:
        """GET `path` below `API`. The request may be repeated."""
        request = Request("GET", with_query(f"{API}{path}", **query), read_timeout=read_timeout)
        return read(await self.send_persistently(request), model)

    async def pages(
        self, path: str, model: type[Page], /, **query: str | float | None
    ) -> AsyncGenerator[Page, None]:
        """Yield the pages of a list below `API`."""
        after: str | int | None = None
        while True:
            page = await self.get(path, model, after=after, **query)
            yield page
            after = page.next_after
            if after is None:
                return

    async def post(
        self,
        path: str,
        body: RequestModel,
        model: type[M],
        *,
        repeated: bool = False,
        headers: Headers = NO_HEADERS,
        read_timeout: float = 60.0,
    ) -> M:
        """POST a model, and return the answer. If `repeated`, again if the connection breaks."""
        request = Request("POST", f"{API}{path}", encoded(body), headers, read_timeout)
        send = self.send_persistently if repeated else self.send
        return read(await send(request), model)

    async def put(self, path: str, body: RequestModel, model: type[M]) -> M:
        """PUT a model once, and return the answer."""
        return read(await self.send(Request("PUT", f"{API}{path}", encoded(body))), model)

    async def patch(self, path: str, body: RequestModel, model: type[M]) -> M:
        """PATCH with a model once, and return the answer."""
        return read(await self.send(Request("PATCH", f"{API}{path}", encoded(body))), model)

    async def delete(self, path: str, model: type[M]) -> M:
        """Send DELETE once, and return the answer."""
        return read(await self.send(Request("DELETE", f"{API}{path}")), model)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[httpx2.Response]:
        """Open a response of any status, and read its content in the block.

        Raises
        ------
        ServerUnreachable
            The connection could not be made, or it broke, possibly in the block.
        """
        if not self.connected:
            await self.connect()
        async with self._opened(request) as response:
            yield response

    @asynccontextmanager
    async def download(self, request: Request) -> AsyncIterator[httpx2.Response]:
        """Open the content of a response for reading. Raise as `open` does.

        Raises
        ------
        AgentExecError
            The server refused the request.
        """
        async with self.open(request) as response:
            if not response.is_success:
                await response.aread()
                check(response)
            yield response

    async def pieces(
        self,
        path: str,
        body: RequestModel | None = None,
        *,
        read_timeout: float = 60.0,
        **query: str | float | None,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the answer of `path` below `API` in pieces: to a POST if there is a body."""
        method, sent = ("GET", b"") if body is None else ("POST", encoded(body))
        address = with_query(f"{API}{path}", **query)
        request = Request(method, address, sent, read_timeout=read_timeout)
        async with self.download(request) as response:
            async for piece in response.aiter_bytes():
                yield piece

    async def exchange(self, request: Request) -> httpx2.Response:
        """Send `request` to the current server, and return the whole response."""
        async with self._opened(request) as response:
            await response.aread()
        return response

    @asynccontextmanager
    async def _opened(self, request: Request) -> AsyncIterator[httpx2.Response]:
        assert self._address is not None
        assert self._transport is not None
        sent = self._address.request(request)
        try:
            response = await self._transport.handle_async_request(sent)
            response.request = sent
            self._address.remember(response)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            raise self._address.trouble(error) from error

    # -- I/O, which awaits -------------------------------------------------------------------------

    def _open_transport(self, options: dict[str, Any]) -> None:
        """Create the transport, unless the caller gave one."""
        self._transport = self._given or httpx2.AsyncHTTPTransport(**options)

    async def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        transport, self._transport = self._transport, None
        self.connected = False
        if transport is not None:
            await transport.aclose()

    async def sleep(self, seconds: float) -> None:
        """Pause for some seconds."""
        await anyio.sleep(seconds)

    async def in_thread(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call a function that blocks for a long time, without blocking an event loop."""
        return await anyio.to_thread.run_sync(function, *args)


class BlockingConnection(Connection):
    """A connection that blocks: its coroutines never wait for an event loop. Threads may share it.

    Parameters
    ----------
    url, token
        As for `Connection`.
    transport
        As for `Connection`.
    """

    def __init__(
        self, url: str | None, token: str | None, transport: httpx2.BaseTransport | None = None
    ) -> None:
        super().__init__(url, token, None if transport is None else _BlockingTransport(transport))
        self._connecting = _BlockingLock()

    def _open_transport(self, options: dict[str, Any]) -> None:
        made = self._given or _BlockingTransport(httpx2.HTTPTransport(**options))
        self._transport = made

    async def sleep(self, seconds: float) -> None:
        """Pause for some seconds."""
        time.sleep(seconds)  # noqa: ASYNC251 (it is meant to block)

    async def in_thread(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call a function in this thread."""
        return function(*args)


class _BlockingLock:
    """A lock that blocks where others await."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class _BlockingTransport(httpx2.AsyncBaseTransport):
    """A transport that blocks where others await."""

    def __init__(self, transport: httpx2.BaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._transport.handle_request(request)
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = _BlockingStream(response.stream)
        return response

    async def aclose(self) -> None:
        self._transport.close()


class _BlockingStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._stream:
            yield piece

    async def aclose(self) -> None:
        self._stream.close()


class _Address:
    """A server's address, prepared for many requests."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.transport_options: dict[str, Any] = {
            # Reading certificates takes 50 ms, and is not needed without encryption.
            "verify": server.url.startswith("https:"),
            "uds": server.socket_path,
            "limits": LIMITS,
        }
        self._url = lru_cache(maxsize=256)(lambda path: httpx2.URL(server.url + path))
        self._cookies: SimpleCookie = SimpleCookie()
        self.headers = {
            "Host": self._url("").netloc.decode(),
            "Accept": "application/json, text/event-stream",
        }
        if server.token:
            self.headers["Authorization"] = server.authorization
        if inside := host_kernels():
            self.headers[HEADER] = inside

    def remember(self, response: httpx2.Response) -> None:
        """Store the cookies of a response, and send them with later requests."""
        lines = response.headers.get_list("set-cookie")
        if lines:
            for line in lines:
                self._cookies.load(line)
            cookies = (f"{name}={each.coded_value}" for name, each in self._cookies.items())
            self.headers["Cookie"] = "; ".join(cookies)

    def request(self, request: Request) -> httpx2.Request:
        """Return `request` as a request of httpx2."""
        stream: httpx2.ByteStream | _FileStream
        if isinstance(request.body, Path):
            stream = _FileStream(request.body)
            length = stream.bytes
        else:
            stream, length = httpx2.ByteStream(request.body), len(request.body)
        headers = {**self.headers, **request.headers}
        if request.method != "GET":
            headers = {"Content-Type": "application/json", **headers, "Content-Length": str(length)}
        quiet = request.read_timeout
        timeout = {"connect": CONNECT_SECONDS, "read": quiet, "write": quiet, "pool": None}
        return httpx2.Request(
            request.method,
            self._url(request.path),
            headers=httpx2.Headers(headers, "latin-1"),
            stream=stream,
            extensions={"timeout": timeout},
        )

    def trouble(self, error: httpx2.TransportError) -> ServerUnreachable:
        """Return the client's error for an error of httpx2."""
        where = self.server.address
        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
            return CannotConnect(
                f"Cannot connect to the Jupyter server at {where}: {error or 'no answer'}. "
                "Does it run, and is this its address?"
            )
        reason = str(error) or type(error).__name__
        return ConnectionLost(f"The connection to {where} broke: {reason}")


class _FileStream(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body of an upload: the content that the file has when the request is made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.bytes = path.stat().st_size

    def __iter__(self) -> Iterator[bytes]:
        left = self.bytes
        with self._path.open("rb") as file:
            while left and (piece := file.read(min(left, _PIECE_BYTES))):
                left -= len(piece)
                yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = iter(self)
        while piece := await anyio.to_thread.run_sync(next, pieces, b""):
            yield piece


def _no_server(reasons: list[str]) -> NoServerFound:
    advice = (
        "Start one with `jupyter lab` or `jupyter server` where jupyter-agent-exec is installed, "
        f"or name one by url= and token=, or in {URL_VARIABLE}."
    )
    if not reasons:
        return NoServerFound("No Jupyter server runs here.", advice)
    return NoServerFound(
        "No Jupyter server that runs here answers for jupyter-agent-exec.",
        "\n  ".join([advice, *reasons]),
    )
