"""`jupyter agent-exec mcp`: the MCP endpoint for clients that start a process.

`Bridge` sends each line of standard input to the endpoint, and writes each answer to standard
output. It handles only three parts of MCP itself: the HTTP headers of a message, the cancellation
of a call, and a new session when the server has forgotten an older client's session.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import re
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.client import UNAUTHORIZED, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

from ..client.errors import CannotConnect, NoServerFound, UnexpectedAnswer
from ..client.servers import TOKEN_VARIABLE, Server, named, running
from ..errors import Unauthenticated
from ..own_server.launch import own_server
from . import exit_codes
from .console import Console
from .mcp_http import AbortableRequest, Refused, Upstream
from .usage import UsageError


def mcp(arguments: Namespace, console: Console) -> int:
    """Serve the client at standard input and output until it closes standard input."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Standard output carries only the protocol; other prints go to standard error.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with out, _upstream(arguments, console) as upstream:
        console.note(
            f"MCP's client is connected to the Jupyter server at {upstream.server.address}."
        )
        Bridge(upstream, out, console.complain).run(sys.stdin.buffer)
    return exit_codes.OK


@contextmanager
def _upstream(arguments: Namespace, console: Console) -> Iterator[Upstream]:
    found = None if arguments.start else _found(arguments)
    if found is not None:
        yield found
        return
    if find_spec("mcp") is None:
        raise UsageError("MCP is not installed here: pip install 'jupyter-agent-exec[mcp]'.")
    console.note("No running Jupyter server is used. Starting one for this client.")
    with own_server(Path.cwd()) as server:
        yield Upstream(server)


def _found(arguments: Namespace) -> Upstream | None:
    """Return the server named by the user, or the newest that runs here; None if there is none.

    Raises
    ------
    UsageError, ServerUnreachable, UnexpectedAnswer, Unauthenticated
        The named server cannot be used, or no server that runs here accepts the given token.
    """
    try:
        server = named(arguments.url, arguments.token)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if server is not None:
        return _checked(server)
    token = arguments.token or os.environ.get(TOKEN_VARIABLE) or None
    for known in running():
        upstream = Upstream(_with_token(known, token))
        try:
            upstream.probe()
        except (OSError, HTTPException, Refused):
            continue
        return upstream
    if token:
        raise NoServerFound(
            "No Jupyter server that runs here takes this token.", "Name its server with --url."
        )
    return None


def _checked(server: Server) -> Upstream:
    upstream = Upstream(server)
    try:
        upstream.probe()
    except Refused as error:
        if error.status == UNAUTHORIZED:
            raise Unauthenticated(str(error)) from error
        raise UnexpectedAnswer(
            f"The server at {server.address} is not a Jupyter server with jupyter-agent-exec.",
            error.status,
        ) from error
    except (OSError, HTTPException) as error:
        raise CannotConnect(
            f"Cannot connect to the Jupyter server at {server.address}: {error or 'no answer'}. "
            "Does it run, and is this its address?"
        ) from error
    return upstream


def _with_token(server: Server, token: str | None) -> Server:
    if token is None:
        return server
    return Server(url=server.url, token=token, socket_path=server.socket_path)


_PARSE_ERROR: Final = -32700
_INTERNAL_ERROR: Final = -32603

_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_NAMES: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""For each method, the parameter whose value also goes into the `Mcp-Name` header."""

_PLAIN: Final = re.compile(r"(?!=\?base64\?.*\?=$)(?:[!-~](?:[ -~]*[!-~])?)?")
"""Matches values that may go into a header without encoding."""

_BYE_SECONDS: Final = 1.0

Message = dict[str, Any]


class Bridge:
    """Passes a client's messages to a server, and the server's answers to the client.

    Parameters
    ----------
    upstream
        The server's endpoint.
    out
        The stream for messages to the client. Nothing else is written to it.
    complain
        Shows an error message to the user.
    """

    def __init__(self, upstream: Upstream, out: IO[bytes], complain: Callable[[str], None]) -> None:
        self._upstream = upstream
        self._out = out
        self._complain = complain
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._going: dict[str | int, AbortableRequest] = {}
        self._ended = False
        self._session = _Session()

    def run(self, lines: Iterable[bytes]) -> None:
        """Serve until there are no more lines. Open requests then end with this process."""
        threading.Thread(target=self._take, name="mcp-messages", daemon=True).start()
        for line in lines:
            if line.strip():
                self._lines.put(line.strip())
        with self._lock:
            self._ended = True
        headers = self._session.headers()
        if headers:
            with suppress(OSError, HTTPException):
                self._upstream.delete(headers, _BYE_SECONDS)

    # -- from the client -----------------------------------------------------------------------

    def _take(self) -> None:
        """Handle messages in order. Requests run in their own threads, except `initialize`."""
        while not self._ended:
            body = self._lines.get()
            try:
                message = json.loads(body)
            except (ValueError, RecursionError):
                self._refuse(None, _PARSE_ERROR, "This line is not JSON.")
                continue
            if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
                self._cancel(message)
            elif _is_request(message) and message["method"] != "initialize":
                self._begin(message, body)
            else:
                self._ask(message, body, AbortableRequest())

    def _begin(self, message: Message, body: bytes) -> None:
        given = AbortableRequest()
        with self._lock:
            if self._ended:
                return
            self._going[message["id"]] = given
        threading.Thread(
            target=self._ask, args=(message, body, given), name="mcp-request", daemon=True
        ).start()

    def _cancel(self, message: Message) -> None:
        """Close a call's connection. The server then cancels the call."""
        params = message.get("params")
        id = params.get("requestId") if isinstance(params, dict) else None
        with self._lock:
            given = self._going.pop(id, None) if isinstance(id, (str, int)) else None
        if given is not None:
            given.give_up()

    # -- to the server, and back ---------------------------------------------------------------

    def _ask(self, message: Any, body: bytes, given: AbortableRequest) -> None:
        """Send a message to the server, and its answers to the client."""
        id = message["id"] if _is_request(message) else None
        try:
            for told in self._answers(message, body, given):
                if not given.up:
                    self._say(told)
                if id is not None and _ends(told, id):
                    id = None
        except Refused as error:
            if not given.up:
                self._complain(str(error))
                self._refuse(id, _INTERNAL_ERROR, str(error), error.problem)
        except (OSError, HTTPException) as error:
            if not given.up:
                where = self._upstream.server.address
                trouble = f"The Jupyter server at {where} does not answer: {error or 'it left'}."
                self._complain(trouble)
                self._refuse(id, _INTERNAL_ERROR, trouble)
        except Exception as error:  # the client needs an answer, and the thread must continue
            trouble = f"This message, or its answer, cannot be passed on: {error!r}."
            self._complain(trouble)
            self._refuse(id, _INTERNAL_ERROR, trouble)
        else:
            if not given.up:
                self._refuse(id, _INTERNAL_ERROR, "The server ended the connection.")
        finally:
            with self._lock:
                if _is_request(message) and self._going.get(message["id"]) is given:
                    del self._going[message["id"]]

    def _answers(self, message: Any, body: bytes, given: AbortableRequest) -> Iterator[bytes]:
        if _is_request(message) and message["method"] == "initialize":
            yield from self._initialize(body, given)
            return
        used = self._session.headers()
        answer = self._upstream.post(body, headers_of_message(message) or used, given)
        if answer.status == 404 and used and not headers_of_message(message):
            answer.drop()
            self._begin_anew(used, given)
            answer = self._upstream.post(body, self._session.headers(), given)
        for told in answer.messages():
            yield with_id(told, message)

    def _initialize(self, body: bytes, given: AbortableRequest) -> Iterator[bytes]:
        answer = self._upstream.post(body, {}, given)
        for told in answer.messages():
            result = json.loads(told).get("result")
            if result is not None and answer.session_id is not None:
                self._session.began(answer.session_id, result["protocolVersion"], body)
            yield told

    def _begin_anew(self, used: dict[str, str], given: AbortableRequest) -> None:
        """Open a new session without the client, for example after the server's restart."""
        with self._session.renewing:
            if self._session.headers() != used:
                return  # another request has already opened one
            for _ in self._initialize(self._session.opening, given):
                pass
            initialized = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
            self._upstream.post(initialized, self._session.headers(), given).drop()

    # -- to the client -------------------------------------------------------------------------

    def _say(self, message: bytes) -> None:
        with self._lock:
            if self._ended:
                return
            try:
                self._out.write(message + b"\n")
                self._out.flush()
            except OSError:
                self._ended = True  # the client has gone

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


class _Session:
    """An older client's MCP session with the server. Later revisions have no sessions."""

    def __init__(self) -> None:
        self._headers: dict[str, str] = {}
        self.opening = b""
        """The `initialize` message with which the client opened the session."""
        self.renewing = threading.Lock()

    def began(self, id: str, version: str, opening: bytes) -> None:
        """Store a session that the server opened."""
        self.opening = opening
        self._headers = {"Mcp-Session-Id": id, "MCP-Protocol-Version": version}

    def headers(self) -> dict[str, str]:
        """Return the headers that identify the session; none without a session."""
        return self._headers


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
    name = params.get(_NAMES.get(method, ""))
    if isinstance(name, str):
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
