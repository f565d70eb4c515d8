"""What the service asks of the hub and of users' servers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from http.client import responses
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, NamedTuple
from urllib.parse import quote

import httpx2
import msgspec

from ..errors import AgentExecError, Forbidden, InvalidRequest
from ..models import MintedToken, MintToken, Problem, Unlock, Unlocked
from ..sessions.answers import NAMESPACE
from ..types import UNLOCK_HEADER, TokenId

CALLS_A_SECOND: Final = 20.0
"""Of one user; the service forwards some hundred in all."""
CALLS_AT_ONCE: Final = 40.0
"""So many calls of one user are forwarded without a delay, after a time without calls."""
ACCESS_SECONDS: Final = 30.0
"""How long an answer of the hub about what a user may do is used."""
READ_TIMEOUT: Final = 60.0
"""Seconds. While a server starts, the hub sends something every few seconds."""
NOT_RUNNING: Final = HTTPStatus.FAILED_DEPENDENCY
"""How the hub answers in the place of a server that does not run."""
MAX_ANSWER_BYTES: Final = 8 * 2**20
"""An answer that is read whole has at most this: the MCP endpoint's answers are below 1 MiB."""

GONE: Final = (
    "Your Jupyter server stopped, or cannot be reached. Your next call starts it again if it does "
    "not run. What it has run is in its history: if this call had an idempotency_key, the same "
    "call tells how that ended."
)
STOPS: Final = (
    "The hub's service for agents stops; try again in a minute. Your Jupyter server goes on. What "
    "it has run is in its history: if this call had an idempotency_key, the same call tells how "
    "that ended, or waits for it."
)


class Turns:
    """Whose call is forwarded when, so that one user's many calls do not delay those of others."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def delay(self, username: str, now: float) -> float:
        """Return the seconds that a user's call waits that arrives at a time, also in seconds."""
        at = max(self._next.get(username, 0.0), now - (CALLS_AT_ONCE - 1) / CALLS_A_SECOND)
        self._next[username] = at + 1 / CALLS_A_SECOND
        return max(0.0, at - now)


class ServerUnavailable(AgentExecError):
    """The person's server cannot be reached or started."""

    code = "user_server_unavailable"


class PassphraseNeeded(Forbidden):
    """The person's server asks for its passphrase, or for another one."""

    code = "passphrase_required"


class Answer(NamedTuple):
    """An answer that was read whole."""

    status_code: int
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the request was carried out."""
        return 200 <= self.status_code < 300


class Progress(msgspec.Struct, frozen=True):
    """What the hub tells while a server starts."""

    progress: float = 0
    """From 0 to 100."""
    message: str = ""
    ready: bool = False
    failed: bool = False


class _Server(msgspec.Struct, frozen=True):
    ready: bool = False


class _User(msgspec.Struct, frozen=True):
    servers: dict[str, _Server] = {}


class _HubToken(msgspec.Struct, frozen=True):
    scopes: list[str] = []
    """What it allows now: no more than its user may do."""


class _HubTokens(msgspec.Struct, frozen=True):
    api_tokens: list[_HubToken]


class UserServers:
    """The servers of the hub's users.

    Parameters
    ----------
    hub_url
        Address at which the hub's proxy is reached, with the hub's base URL.
    api_url, api_token
        The hub's API, and the service's own token for it.
    admits
        Returns whether some scopes let their user use the service.
    """

    def __init__(
        self, hub_url: str, api_url: str, api_token: str, admits: Callable[[set[str]], bool]
    ) -> None:
        self._hub_url = hub_url.rstrip("/")
        self._api = api_url.rstrip("/")
        self._own = {"Authorization": f"token {api_token}"}
        self._admits = admits
        self._access: dict[str, tuple[float, bool]] = {}
        self._http = httpx2.AsyncClient(
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # none of anybody's
            headers={"Accept-Encoding": "identity"},
            trust_env=False,
            timeout=httpx2.Timeout(READ_TIMEOUT, pool=None),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        )
        self.calls: set[asyncio.Task[None]] = set()
        """The calls that are being forwarded."""
        self.turns = Turns()

    async def stop(self) -> None:
        """Cancel all calls, which tell their clients, and close all connections."""
        for call in self.calls:
            call.cancel()
        if self.calls:
            await asyncio.wait(self.calls)
        await self._http.aclose()

    # -- the hub -----------------------------------------------------------------------------------

    async def may_use_service(self, username: str) -> bool:
        """Return whether a user may use this service; an answer holds for `ACCESS_SECONDS`.

        The hub tells what each token of a user allows now. One of them says so: the token of the
        user's own sign-in here, as long as they have not logged out.

        Raises
        ------
        ServerUnavailable
            The hub does not tell.
        """
        until, known = self._access.get(username, (0.0, None))
        if known is None or until <= time.monotonic():
            try:
                known = await self._asked_access(username)
            except ServerUnavailable:
                if known is None:  # else the hub is away, and takes nothing from anybody meanwhile
                    raise
            self._access[username] = (time.monotonic() + ACCESS_SECONDS, known)
        return known

    async def _asked_access(self, username: str) -> bool:
        answered = await self._ask("GET", f"{self._user(username)}/tokens", self._own)
        if answered.status_code == HTTPStatus.NOT_FOUND:  # no such user, or no scope to know
            return False
        if answered.status_code != HTTPStatus.OK:
            raise ServerUnavailable(
                "The hub does not tell who may use this service, which needs the scope "
                f"read:tokens. {_why(answered)}"
            )
        tokens = msgspec.json.decode(answered.content, type=_HubTokens).api_tokens
        return self._admits({scope for token in tokens for scope in token.scopes})

    async def is_ready(self, username: str, server_name: str) -> bool:
        """Return whether a server runs."""
        answered = await self._ask("GET", self._user(username), self._own)
        if answered.status_code != HTTPStatus.OK:
            raise ServerUnavailable(f"The hub does not tell about your server. {_why(answered)}")
        user = msgspec.json.decode(answered.content, type=_User)
        return user.servers.get(server_name, _Server()).ready

    async def start(self, username: str, server_name: str) -> AsyncIterator[Progress]:
        """Start a server, and yield what the hub tells until the server is ready.

        Raises
        ------
        ServerUnavailable
            It does not start.
        """
        server = f"servers/{quote(server_name, safe='')}" if server_name else "server"
        url = f"{self._user(username)}/{server}"
        started = await self._ask("POST", url, self._own)
        # A 400 may say that it starts or runs already.
        if not (started.is_success or started.status_code == HTTPStatus.BAD_REQUEST):
            raise ServerUnavailable(f"Your server cannot be started. {_why(started)}")
        try:
            async with self._http.stream("GET", f"{url}/progress", headers=self._own) as answered:
                if not answered.is_success:
                    refused = Answer(answered.status_code, await read(answered))
                    raise ServerUnavailable(f"Your server is not started. {_why(refused)}")
                _check_encoding(answered)
                async for event in httpx2.EventSource(answered):
                    told = msgspec.json.decode(event.data, type=Progress)
                    if told.failed:
                        raise ServerUnavailable(f"Your server did not start. {told.message}")
                    yield told
                    if told.ready:
                        return
        except httpx2.HTTPError as error:
            raise ServerUnavailable(
                "The hub stopped answering while your server was starting; try again."
            ) from error
        raise ServerUnavailable("The hub does not tell whether your server has started.")

    def _user(self, username: str) -> str:
        return f"{self._api}/users/{quote(username, safe='')}"

    # -- a person's server -------------------------------------------------------------------------

    def url(self, username: str, server_name: str) -> str:
        """Return the address of a server's routes."""
        server = f"{quote(server_name, safe='@~')}/" if server_name else ""
        return f"{self._hub_url}/user/{quote(username, safe='@~')}/{server}{NAMESPACE}"

    async def mint(
        self, url: str, hub_token: str, asked: MintToken, passphrase: str
    ) -> MintedToken:
        """Mint an agent token as the person whose hub token this is.

        Raises
        ------
        InvalidRequest, Forbidden, PassphraseNeeded, ServerUnavailable
        """
        headers = {"Authorization": f"token {hub_token}"}
        if passphrase:
            unlock = Unlock(passphrase=passphrase)
            answered = await self._ask("POST", f"{url}/unlock", headers, unlock)
            if not answered.is_success:
                raise PassphraseNeeded(_refusal(answered).message)
            unlocked = msgspec.json.decode(answered.content, type=Unlocked)
            headers[UNLOCK_HEADER] = unlocked.unlock
        answered = await self._ask("POST", f"{url}/tokens", headers, asked)
        if answered.status_code == HTTPStatus.CREATED:
            return msgspec.json.decode(answered.content, type=MintedToken)
        problem = _refusal(answered)
        if problem.code == PassphraseNeeded.code:
            raise PassphraseNeeded(problem.message)
        if answered.status_code in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
            raise Forbidden(problem.message)
        raise InvalidRequest(problem.message, field=None)

    async def revoke(self, url: str, hub_token: str, id: TokenId) -> bool:
        """Revoke an agent token as its person; return whether its server did that."""
        headers = {"Authorization": f"token {hub_token}"}
        try:
            return (await self._ask("DELETE", f"{url}/tokens/{id}", headers)).is_success
        except ServerUnavailable:
            return False

    async def send(
        self, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> httpx2.Response:
        """Send a request, and return the response before its body is read. The caller closes it.

        Raises
        ------
        ServerUnavailable
            The connection broke; the server may have got the request.
        """
        request = self._http.build_request(
            method, url, headers=headers, content=body, timeout=httpx2.Timeout(10.0, read=None)
        )
        try:
            return await self._http.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise ServerUnavailable(GONE) from error

    async def _ask(
        self, method: str, url: str, headers: dict[str, str], body: msgspec.Struct | None = None
    ) -> Answer:
        content = None if body is None else msgspec.json.encode(body)
        try:
            async with self._http.stream(method, url, headers=headers, content=content) as answered:
                return Answer(answered.status_code, await read(answered))
        except httpx2.HTTPError as error:
            raise ServerUnavailable("The hub does not answer; try again in a minute.") from error


async def read(answered: httpx2.Response) -> bytes:
    """Read a whole answer, which a person's server may make as large as it likes.

    Raises
    ------
    ServerUnavailable
        It is larger than `MAX_ANSWER_BYTES`, compressed, or the connection broke.
    """
    content = bytearray()
    async for piece in pieces(answered):
        content += piece
        if len(content) > MAX_ANSWER_BYTES:
            raise ServerUnavailable(
                f"Your Jupyter server's answer has more than {MAX_ANSWER_BYTES:,} bytes."
            )
    return bytes(content)


async def pieces(answered: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield an answer as it arrives. The next piece is read when the last one was taken.

    Raises
    ------
    ServerUnavailable
        It is compressed, or the connection broke.
    """
    _check_encoding(answered)
    try:
        async for piece in answered.aiter_raw():
            yield piece
    except httpx2.HTTPError as error:
        raise ServerUnavailable(GONE) from error


def _check_encoding(answered: httpx2.Response) -> None:
    """Refuse an answer that could be a thousand times as large as what arrives of it."""
    if answered.headers.get("Content-Encoding", "identity") != "identity":
        raise ServerUnavailable("Your Jupyter server's answer is compressed, without being asked.")


def problem_of(content: bytes) -> Problem | None:
    """Return what an answer of our own routes says is wrong; None if it is not theirs."""
    try:
        return msgspec.json.decode(content, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _refusal(answered: Answer) -> Problem:
    """Return why a person's server gives no agent token; ServerUnavailable if it did not answer."""
    problem = problem_of(answered.content)
    if problem is None:
        raise ServerUnavailable(
            f"Your server gives no agent token ({answered.status_code}). Does it run, and is "
            "jupyter-agent-exec installed there?"
        )
    return problem


def _why(answered: Answer) -> str:
    """Return what the hub or a server says about a refusal."""
    try:
        said = json.loads(answered.content)["message"]
    except (ValueError, KeyError, TypeError):
        said = responses.get(answered.status_code, str(answered.status_code))
    return f"The answer was: {said}"
