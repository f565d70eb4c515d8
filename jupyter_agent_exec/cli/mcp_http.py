"""An HTTP client for the MCP endpoint. It uses only the standard library, and threads share it."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import urlsplit

from ..client.servers import Server
from ..host_kernel import HEADER, host_kernels

NAMESPACE: Final = "/api/agent-exec"
CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 90.0
"""Seconds without a byte after which a connection counts as broken. The server sends something
every 15 seconds."""


class Refused(Exception):
    """The server's answer is not an MCP message.

    Parameters
    ----------
    status
        The HTTP status.
    problem
        The error's JSON; empty if the answer is not a JSON object.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        message = problem.get("message") or f"The server answered with HTTP status {status}."
        super().__init__(str(message))
        self.status = status
        self.problem = dict(problem)


class AbortableRequest:
    """A request that another thread can abort."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.up = False

    def goes_through(self, connected: socket.socket) -> None:
        """Set the request's connection; raise ConnectionAbortedError if already aborted."""
        with self._lock:
            self._socket = connected
            if self.up:
                raise ConnectionAbortedError

    def give_up(self) -> None:
        """Abort the request: shut its connection down, which wakes the thread that reads it."""
        with self._lock:
            self.up = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection through a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=CONNECT_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket's path."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Upstream:
    """A Jupyter server's MCP endpoint. Threads may share it; each request opens a connection."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._base = urlsplit(server.url)
        self._path = f"{self._base.path.rstrip('/')}{NAMESPACE}"
        self._cookies: SimpleCookie = SimpleCookie()
        self._cookies_lock = threading.Lock()
        self._host_kernels = host_kernels()

    def probe(self) -> None:
        """Check that the extension answers and accepts the token.

        Raises
        ------
        OSError, http.client.HTTPException
            Nothing answers.
        Refused
            Another program answers, or the server rejects the token.
        """
        with closing(self._connection()) as connection:
            connection.request("GET", f"{self._path}/sessions?limit=1", headers=self._headers({}))
            response = connection.getresponse()
            said = _json(response.read())
            if response.status == http.client.UNAUTHORIZED or not {"sessions", "code"} & set(said):
                raise Refused(response.status, said)

    def post(self, body: bytes, headers: Mapping[str, str], given: AbortableRequest) -> Answer:
        """Send a message and return the answer when its headers have arrived.

        The caller reads or drops the answer, which closes the connection.

        Raises
        ------
        OSError, http.client.HTTPException
            The connection failed or broke.
        """
        wanted = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        }
        return self._send("POST", body, wanted, given)

    def delete(self, headers: Mapping[str, str], timeout: float) -> None:
        """End a session. Each network operation has `timeout` seconds."""
        with closing(self._connection(timeout)) as connection:
            connection.request("DELETE", f"{self._path}/mcp", headers=self._headers(headers))
            connection.getresponse().read()

    def _send(
        self, method: str, body: bytes, headers: Mapping[str, str], given: AbortableRequest
    ) -> Answer:
        connection = self._connection()
        try:
            connection.connect()
            given.goes_through(connection.sock)
            connection.sock.settimeout(SILENCE_SECONDS)
            connection.request(method, f"{self._path}/mcp", body, self._headers(headers))
            response = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        with self._cookies_lock, suppress(CookieError):
            for line in response.headers.get_all("Set-Cookie") or ():
                self._cookies.load(line)  # else Jupyter treats each request as a new user
        return Answer(connection, response)

    def _connection(self, timeout: float = CONNECT_SECONDS) -> http.client.HTTPConnection:
        if self.server.socket_path is not None:
            return _UnixConnection(self.server.socket_path)
        assert self._base.hostname is not None
        if self._base.scheme == "https":
            return http.client.HTTPSConnection(
                self._base.hostname,
                self._base.port,
                timeout=timeout,
                context=ssl.create_default_context(),
            )
        return http.client.HTTPConnection(self._base.hostname, self._base.port, timeout=timeout)

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        all_headers = dict(headers)
        if self.server.token:
            all_headers["Authorization"] = f"Bearer {self.server.token}"
        if self._host_kernels:
            all_headers[HEADER] = self._host_kernels
        with self._cookies_lock:
            cookies = [f"{name}={cookie.coded_value}" for name, cookie in self._cookies.items()]
        if cookies:
            all_headers["Cookie"] = "; ".join(cookies)
        return all_headers


class Answer:
    """The server's answer: no message, one message, or a stream of messages."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._response = response
        self.status = response.status
        self.session_id = response.getheader("Mcp-Session-Id")

    def messages(self) -> Iterator[bytes]:
        """Yield the messages as they arrive, each as JSON on one line; then close.

        Raises
        ------
        Refused
            The answer is not an MCP message.
        OSError, http.client.HTTPException
            The connection broke.
        """
        with closing(self._connection), self._response:
            kind = self._response.getheader("Content-Type", "")
            if kind.startswith("text/event-stream"):
                yield from _events(self._response)
                return
            body = self._response.read()
            if self.status == http.client.ACCEPTED:
                return
            said = _json(body)
            if "jsonrpc" not in said:
                raise Refused(self.status, said)
            yield json.dumps(said, separators=(",", ":")).encode()

    def drop(self) -> None:
        """Close without reading."""
        with closing(self._connection), self._response:
            return


def _events(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield the data of server-sent events. Skip comments, which keep the connection alive."""
    data: list[bytes] = []
    while line := response.readline():
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line[5:].lstrip(b" "))
        elif not line and data:
            yield b"".join(data)
            data = []


def _json(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
