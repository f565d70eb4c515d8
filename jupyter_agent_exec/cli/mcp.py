"""`jupyter agent-exec mcp`: the MCP endpoint for clients that start a process.

`Bridge` sends each line of standard input to the endpoint, and writes each answer to standard
output. It handles only three parts of MCP itself: the HTTP headers of a message, the cancellation
of a call, and a new session when the server has forgotten an older client's session.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

import httpx2

from ..client.connection import Connection, Request
from ..client.errors import ServerUnreachable
from ..client.requests import API
from ..client.servers import Server
from . import exit_codes
from .command import command, option
from .command_client import own_server, server_of
from .console import Console
from .usage import UsageError

SILENCE_SECONDS: Final = 90.0
"""Seconds without a byte after which a connection counts as broken. The server sends something
every 15 seconds."""

_BYE_SECONDS: Final = 1.0
_PATH: Final = f"{API}/mcp"


_EPILOG: Final = """\
Configure an MCP client that starts a process with this command. If your client speaks HTTP, use
`jupyter agent-exec connect` instead.

The command uses the server that you name, or one that is running on this machine. If there is
none, it starts one in the current folder, which ends with the client. Standard output carries only
the protocol; messages go to standard error."""


def _options(parser: ArgumentParser) -> None:
    what = "start a server for this client alone, which ends with the client"
    option(parser, "--start", what)


@command(
    "mcp",
    "connect an MCP client that uses standard input and output",
    _options,
    epilog=_EPILOG,
    json=False,
)
def mcp(arguments: Namespace, console: Console) -> int:
    """Serve the client at standard input and output until it closes standard input."""
    if arguments.start and (arguments.url or arguments.token):
        raise UsageError("--start starts a server: leave out --url and --token.")
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Standard output carries only the protocol; other prints go to standard error.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # A thread reads this. `sys.stdin` must be free when the interpreter ends.
    lines = os.fdopen(sys.stdin.fileno(), "rb", closefd=False)
    with out, _start() if arguments.start else server_of(arguments, console, _start) as server:
        console.note(f"MCP's client is connected to the Jupyter server at {server.address}.")
        asyncio.run(Bridge(server, out, console.complain).run(lines))
    return exit_codes.OK


def _start() -> AbstractContextManager[Server]:
    if find_spec("mcp") is None:
        raise UsageError("MCP is not installed here: pip install 'jupyter-agent-exec[mcp]'.")
    return own_server(Path.cwd())


_PARSE_ERROR: Final = -32700
_INTERNAL_ERROR: Final = -32603

_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"

_PLAIN: Final = re.compile(r"(?!=\?base64\?.*\?=$)(?:[!-~](?:[ -~]*[!-~])?)?")
"""Matches values that may go into a header without encoding."""

_INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'

Message = dict[str, Any]


class NotMcp(Exception):
    """The server's answer is not an MCP message.

    Parameters
    ----------
    status
        The HTTP status.
    problem
        The error's JSON; empty if the answer is not a JSON object.
    """

    def __init__(self, status: int, problem: Message) -> None:
        message = problem.get("message") or f"The server answered with HTTP status {status}."
        super().__init__(str(message))
        self.problem = problem


class Bridge:
    """Passes a client's messages to a server, and the server's answers to the client.

    Parameters
    ----------
    server
        The server with the endpoint.
    out
        The stream for messages to the client. Nothing else is written to it.
    complain
        Shows an error message to the user.
    """

    def __init__(self, server: Server, out: IO[bytes], complain: Callable[[str], None]) -> None:
        self._connection = Connection(server.address, server.token)
        self._out = out
        self._complain = complain
        self._going: dict[asyncio.Task[None], str | int] = {}
        """Open requests and their ids."""
        self._session: dict[str, str] = {}
        """The headers of an older client's session. Later revisions have no sessions."""
        self._opening = b""
        """The `initialize` message with which the client opened the session."""
        self._renewing = asyncio.Lock()

    async def run(self, lines: Iterable[bytes]) -> None:
        """Serve until there are no more lines. Then cancel open requests."""
        loop = asyncio.get_running_loop()
        bodies: asyncio.Queue[bytes] = asyncio.Queue()
        ended = asyncio.Event()

        def read() -> None:
            with suppress(RuntimeError):  # the loop was closed, for example after Ctrl-C
                for line in lines:
                    loop.call_soon_threadsafe(bodies.put_nowait, line.strip())
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=read, name="mcp-messages", daemon=True).start()
        taking = asyncio.create_task(self._take(bodies))
        await ended.wait()
        unfinished = [taking, *self._going]
        for task in unfinished:
            task.cancel()
        await asyncio.wait(unfinished)
        if self._session:
            with suppress(ServerUnreachable):
                bye = Request("DELETE", _PATH, b"", self._session, _BYE_SECONDS)
                await self._connection.send(bye)
        await self._connection.close()

    # -- from the client -----------------------------------------------------------------------

    async def _take(self, bodies: asyncio.Queue[bytes]) -> None:
        """Handle messages in order. Requests run in their own tasks, except `initialize`."""
        while True:
            body = await bodies.get()
            if not body:
                continue
            try:
                message = json.loads(body)
            except (ValueError, RecursionError):
                self._refuse(None, _PARSE_ERROR, "This line is not JSON.")
                continue
            if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
                self._cancel(message.get("params"))
            elif _is_request(message) and message["method"] != "initialize":
                task = asyncio.create_task(self._ask(message, body), name="mcp-request")
                self._going[task] = message["id"]
                task.add_done_callback(self._going.pop)
            else:
                await self._ask(message, body)

    def _cancel(self, params: Any) -> None:
        """Close a call's connection. The server then cancels the call."""
        cancelled = params.get("requestId") if isinstance(params, dict) else None
        for task, id in self._going.items():
            if id == cancelled:
                task.cancel()

    # -- to the server, and back ---------------------------------------------------------------

    async def _ask(self, message: Any, body: bytes) -> None:
        """Send a message to the server, and its answers to the client."""
        id = message["id"] if _is_request(message) else None
        try:
            async for told in self._answers(message, body):
                self._say(told)
                if id is not None and _ends(told, id):
                    id = None
        except NotMcp as error:
            self._complain(str(error))
            self._refuse(id, _INTERNAL_ERROR, str(error), error.problem)
        except ServerUnreachable as error:
            self._complain(str(error))
            self._refuse(id, _INTERNAL_ERROR, str(error))
        except Exception as error:  # the client needs an answer, and the next message its turn
            trouble = f"This message, or its answer, cannot be passed on: {error!r}."
            self._complain(trouble)
            self._refuse(id, _INTERNAL_ERROR, trouble)
        else:
            self._refuse(id, _INTERNAL_ERROR, "The server ended the connection.")

    async def _answers(self, message: Any, body: bytes) -> AsyncIterator[bytes]:
        if _is_request(message) and message["method"] == "initialize":
            async for told in self._initialize(body):
                yield told
            return
        own = headers_of_message(message)
        used = self._session
        async with self._post(body, own or used) as answer:
            is_forgotten = answer.status_code == HTTPStatus.NOT_FOUND and used and not own
            if not is_forgotten:
                async for told in _messages(answer):
                    yield with_id(told, message)
                return
        await self._begin_anew(used)
        async with self._post(body, self._session) as answer:
            async for told in _messages(answer):
                yield with_id(told, message)

    async def _initialize(self, body: bytes) -> AsyncIterator[bytes]:
        async with self._post(body, {}) as answer:
            id = answer.headers.get("Mcp-Session-Id")
            async for told in _messages(answer):
                result = json.loads(told).get("result")
                if result is not None and id is not None:
                    version = result["protocolVersion"]
                    self._session = {"Mcp-Session-Id": id, "MCP-Protocol-Version": version}
                    self._opening = body
                yield told

    async def _begin_anew(self, used: dict[str, str]) -> None:
        """Open a new session without the client, for example after the server's restart."""
        async with self._renewing:
            if self._session is not used:
                return  # another request has already opened one
            async for _ in self._initialize(self._opening):
                pass
            async with self._post(_INITIALIZED, self._session):
                pass

    def _post(
        self, body: bytes, headers: dict[str, str]
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        return self._connection.open(Request("POST", _PATH, body, headers, SILENCE_SECONDS))

    # -- to the client -------------------------------------------------------------------------

    def _say(self, message: bytes) -> None:
        with suppress(OSError):  # the client has gone, and the end of its input follows
            self._out.write(message + b"\n")
            self._out.flush()

    def _refuse(
        self, id: str | int | None, code: int, message: str, problem: Message | None = None
    ) -> None:
        """Answer a request with an error. A notification gets no answer."""
        if id is None and code != _PARSE_ERROR:
            return
        error: Message = {"code": code, "message": message}
        if problem:
            error["data"] = {key: problem[key] for key in ("code", "detail") if key in problem}
        self._say(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode())


async def _messages(answer: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the messages of an answer as they arrive, each as JSON on one line.

    Raises
    ------
    NotMcp
        The answer is not an MCP message.
    """
    if answer.headers.get("Content-Type", "").startswith("text/event-stream"):
        async for event in httpx2.EventSource(answer, max_event_size=None):
            yield event.data.encode()
        return
    body = await answer.aread()
    if answer.status_code == HTTPStatus.ACCEPTED:
        return
    try:
        said = json.loads(body)
    except ValueError:
        said = {}
    if not isinstance(said, dict) or "jsonrpc" not in said:
        raise NotMcp(answer.status_code, said if isinstance(said, dict) else {})
    yield json.dumps(said, separators=(",", ":")).encode()


def _is_request(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and isinstance(message.get("method"), str)
        and isinstance(message.get("id"), (str, int))
    )


def headers_of_message(message: Any) -> dict[str, str]:
    """Return the headers of a message in a revision without sessions, else no headers."""
    try:
        params = message["params"]
        version = params["_meta"][_VERSION_KEY]
        method = message["method"]
    except (KeyError, TypeError):
        return {}
    if not isinstance(version, str) or not isinstance(method, str) or method == "initialize":
        return {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    name = params.get("name")
    if method == "tools/call" and isinstance(name, str):
        headers["Mcp-Name"] = name
    return {key: _header_value(value) for key, value in headers.items()}


def _header_value(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _ends(told: bytes, id: str | int) -> bool:
    """Return whether a message answers a request."""
    message = json.loads(told)
    return "method" not in message and message.get("id") == id


def with_id(told: bytes, message: Any) -> bytes:
    """Set the id of an error answer to its request's id, if the server answered with a null id."""
    if not _is_request(message) or b'"id":null' not in told:
        return told
    answer = json.loads(told)
    if answer.get("id", "") is not None:
        return told
    return json.dumps({**answer, "id": message["id"]}, separators=(",", ":")).encode()
