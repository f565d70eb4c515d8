"""Carry out the steps of a call: the one part that does I/O, once blocking and once awaiting.

Both send through httpx2's transports rather than its clients: a request needs no redirects and no
look at the environment, which cost as much again as sending it does. The cookie that Jupyter hands
out is kept and shown again: without it, each request with a token is made by somebody new.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import httpx2

from ..host_kernel import HEADER, host_kernels
from .errors import CannotConnect, ConnectionLost, ServerUnreachable
from .file_stream import FileStream
from .servers import Server
from .steps import Call, Connect, Emit, Feed, Pause, Receive, Reply, Send, ShowUnlock

T = TypeVar("T")

CONNECT_SECONDS: Final = 10.0

UNLOCK_HEADER: Final = b"X-Agent-Exec-Unlock"

LIMITS: Final = httpx2.Limits(
    max_connections=100, max_keepalive_connections=20, keepalive_expiry=120.0
)
"""httpx2's own, but for how long a connection is kept that nobody uses: between two executions a
model thinks for longer than five seconds. What stands between, such as a NAT, may forget one that
is idle for some minutes without a word."""


class Address:
    """A server's address, made ready for many requests."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.transport_options: dict[str, Any] = {
            # Reading certificates takes 50 ms, for nothing when the address is not encrypted.
            "verify": server.url.startswith("https:"),
            "uds": server.socket_path,
            "limits": LIMITS,
        }
        self._url = lru_cache(maxsize=256)(lambda path: httpx2.URL(server.url + path))
        self._headers = [
            (b"Host", self._url("").netloc),
            (b"Accept", b"application/json, text/event-stream"),
        ]
        self._cookies: SimpleCookie = SimpleCookie()
        self._cookie: list[tuple[bytes, bytes]] = []
        self.unlock: list[tuple[bytes, bytes]] = []
        if server.token:
            self._headers.append((b"Authorization", server.authorization.encode()))
        if inside := host_kernels():
            self._headers.append((HEADER.encode(), inside.encode()))

    def remember(self, response: httpx2.Response) -> None:
        """Keep the cookies that come with an answer, and send them from now on."""
        said = response.headers.get_list("set-cookie")
        if said:
            for line in said:
                self._cookies.load(line)
            shown = "; ".join(f"{name}={m.coded_value}" for name, m in self._cookies.items())
            self._cookie = [(b"Cookie", shown.encode("latin-1"))]

    def request(self, step: Send) -> httpx2.Request:
        """Return what is sent for `step`.

        Headers are bytes and the body is a stream, so that httpx2 has nothing to work out.
        """
        headers = [*self._headers, *self._cookie, *self.unlock, *step.headers]
        stream: httpx2.ByteStream | FileStream
        if isinstance(step.upload, Path):
            stream = FileStream(step.upload)
            length = stream.bytes
        else:
            content = step.body if step.upload is None else step.upload
            stream, length = httpx2.ByteStream(content), len(content)
        if step.body:
            headers.append((b"Content-Type", b"application/json"))
        if step.upload is not None:
            headers.append((b"Content-Type", b"application/octet-stream"))
        if step.method != "GET":
            headers.append((b"Content-Length", b"%d" % length))
        timeout = {
            "connect": CONNECT_SECONDS,
            "read": step.read_timeout,
            "write": step.read_timeout,
            "pool": None,
        }
        return httpx2.Request(
            step.method,
            self._url(step.path),
            headers=headers,
            stream=stream,
            extensions={"timeout": timeout},
        )

    def trouble(self, error: httpx2.TransportError) -> ServerUnreachable:
        """Return our error for one of httpx2's."""
        where = self.server.address
        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
            return CannotConnect(
                f"Cannot connect to the Jupyter server at {where}: {error or 'no answer'}. "
                "Does it run, and is this its address?"
            )
        reason = str(error) or type(error).__name__
        return ConnectionLost(f"The connection to {where} broke: {reason}")


class SyncDriver:
    """Carry out steps, blocking; threads may share one.

    Parameters
    ----------
    connect
        The steps that find the server; taken before the first call.
    transport
        What sends, closed with the driver; one for the server's address when None.
    """

    def __init__(
        self, connect: Callable[[], Call[None]], transport: httpx2.BaseTransport | None
    ) -> None:
        self._connect = connect
        self._given = transport
        self._transport: httpx2.BaseTransport | None = None
        self._address: Address | None = None
        self.connected = False

    @property
    def address(self) -> str | None:
        """The address of the server; None before there is one."""
        return self._address.server.address if self.connected and self._address else None

    def run(self, call: Call[T]) -> T:
        """Carry out `call` and return what it comes to."""
        if not self.connected:
            self.connect()
        return self._run(call)

    def connect(self) -> None:
        """Find the server."""
        try:
            self._run(self._connect())
        except BaseException:
            self.close()
            raise
        self.connected = True

    def feed(self, feed: Feed[T]) -> Iterator[T]:
        """Carry out `feed` and give what it emits."""
        if not self.connected:
            self.connect()
        response: httpx2.Response | None = None
        chunks: Iterator[bytes] = iter(())
        try:
            step = next(feed)
            while True:
                if isinstance(step, Emit):
                    yield step.value
                    step = next(feed)
                    continue
                try:
                    if isinstance(step, Receive):
                        taken: Reply | bytes | None = self._next(chunks)
                    elif isinstance(step, Send) and step.streamed:
                        if response is not None:
                            response.close()
                        response, taken = self._open(step)
                        chunks = response.iter_bytes()
                    else:
                        taken = self._take(step)
                except ServerUnreachable as error:
                    step = feed.throw(error)
                else:
                    step = feed.send(taken)
        except StopIteration:
            return
        finally:
            if response is not None:
                response.close()

    def close(self) -> None:
        """Close the connections; a later call opens others."""
        transport, self._transport = self._transport, None
        self.connected = False
        if transport is not None:
            transport.close()

    def _run(self, call: Call[T]) -> T:
        try:
            step = next(call)
            while True:
                try:
                    taken = self._take(step)
                except ServerUnreachable as error:
                    step = call.throw(error)
                else:
                    step = call.send(taken)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def _take(self, step: Send | Receive | Pause | Connect | ShowUnlock) -> Reply | None:
        if isinstance(step, Send):
            _, reply = self._open(step)
            return reply
        if isinstance(step, Pause):
            time.sleep(step.seconds)
        elif isinstance(step, ShowUnlock):
            assert self._address is not None
            self._address.unlock = [(UNLOCK_HEADER, step.unlock.encode())]
        elif isinstance(step, Connect):
            self.close()
            self._address = Address(step.server)
            self._transport = self._given or httpx2.HTTPTransport(**self._address.transport_options)
        return None

    def _open(self, step: Send) -> tuple[httpx2.Response, Reply]:
        assert self._transport is not None
        assert self._address is not None
        try:
            response = self._transport.handle_request(self._address.request(step))
            self._address.remember(response)
            try:
                if step.streamed and response.is_success:
                    return response, Reply(response.status_code, b"", response.headers.get("ETag"))
                content = response.read()
            except BaseException:
                response.close()
                raise
        except httpx2.TransportError as error:
            raise self._address.trouble(error) from error
        return response, Reply(response.status_code, content, response.headers.get("ETag"))

    def _next(self, chunks: Iterator[bytes]) -> bytes:
        assert self._address is not None
        try:
            return next((chunk for chunk in chunks if chunk), b"")
        except httpx2.TransportError as error:
            raise self._address.trouble(error) from error


class AsyncDriver:
    """Carry out steps, awaiting; tasks of one event loop may share one.

    Parameters
    ----------
    connect
        As for `SyncDriver`.
    transport
        As for `SyncDriver`.
    """

    def __init__(
        self, connect: Callable[[], Call[None]], transport: httpx2.AsyncBaseTransport | None
    ) -> None:
        self._connect = connect
        self._given = transport
        self._transport: httpx2.AsyncBaseTransport | None = None
        self._address: Address | None = None
        self.connected = False

    @property
    def address(self) -> str | None:
        """The address of the server; None before there is one."""
        return self._address.server.address if self.connected and self._address else None

    async def run(self, call: Call[T]) -> T:
        """Carry out `call` and return what it comes to."""
        if not self.connected:
            await self.connect()
        return await self._run(call)

    async def connect(self) -> None:
        """Find the server."""
        try:
            await self._run(self._connect())
        except BaseException:
            await self.close()
            raise
        self.connected = True

    async def feed(self, feed: Feed[T]) -> AsyncIterator[T]:
        """Carry out `feed` and give what it emits."""
        if not self.connected:
            await self.connect()
        response: httpx2.Response | None = None
        chunks: AsyncIterator[bytes] | None = None
        try:
            step = next(feed)
            while True:
                if isinstance(step, Emit):
                    yield step.value
                    step = next(feed)
                    continue
                try:
                    if isinstance(step, Receive):
                        assert chunks is not None
                        taken: Reply | bytes | None = await self._next(chunks)
                    elif isinstance(step, Send) and step.streamed:
                        if response is not None:
                            await response.aclose()
                        response, taken = await self._open(step)
                        chunks = response.aiter_bytes()
                    else:
                        taken = await self._take(step)
                except ServerUnreachable as error:
                    step = feed.throw(error)
                else:
                    step = feed.send(taken)
        except StopIteration:
            return
        finally:
            if response is not None:
                with anyio.CancelScope(shield=True):
                    await response.aclose()

    async def close(self) -> None:
        """Close the connections; a later call opens others."""
        transport, self._transport = self._transport, None
        self.connected = False
        if transport is not None:
            await transport.aclose()

    async def _run(self, call: Call[T]) -> T:
        try:
            step = next(call)
            while True:
                try:
                    taken = await self._take(step)
                except ServerUnreachable as error:
                    step = call.throw(error)
                else:
                    step = call.send(taken)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def _take(self, step: Send | Receive | Pause | Connect | ShowUnlock) -> Reply | None:
        if isinstance(step, Send):
            _, reply = await self._open(step)
            return reply
        if isinstance(step, Pause):
            await anyio.sleep(step.seconds)
        elif isinstance(step, ShowUnlock):
            assert self._address is not None
            self._address.unlock = [(UNLOCK_HEADER, step.unlock.encode())]
        elif isinstance(step, Connect):
            await self.close()
            self._address = Address(step.server)
            self._transport = self._given or httpx2.AsyncHTTPTransport(
                **self._address.transport_options
            )
        return None

    async def _open(self, step: Send) -> tuple[httpx2.Response, Reply]:
        assert self._transport is not None
        assert self._address is not None
        try:
            response = await self._transport.handle_async_request(self._address.request(step))
            self._address.remember(response)
            try:
                if step.streamed and response.is_success:
                    return response, Reply(response.status_code, b"", response.headers.get("ETag"))
                content = await response.aread()
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await response.aclose()
                raise
        except httpx2.TransportError as error:
            raise self._address.trouble(error) from error
        return response, Reply(response.status_code, content, response.headers.get("ETag"))

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes:
        assert self._address is not None
        try:
            async for chunk in chunks:
                if chunk:
                    return chunk
        except httpx2.TransportError as error:
            raise self._address.trouble(error) from error
        return b""
