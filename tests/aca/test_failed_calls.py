"""Which requests follow a failure within one call of AutoGen's client."""

from __future__ import annotations

import json
import re

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from jupyter_agent_exec.aca.handlers import COOKIE, SECONDS, FailedCalls
from jupyter_agent_exec.aca.manager import Client
from tests.aca.dynamic_asking import AUTOGEN, DynamicSession
from tests.asking import NAMESPACE, Agent, Send
from tests.auth.minting import bearer, mint
from tests.files.files_asking import Wire

ONE, ANOTHER = Client("one", None), Client("another", None)


class Stream:
    """Stands for a connection."""


class Connection:
    """What tornado hands on with a request."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def calls(clock: Clock) -> FailedCalls:
    return FailedCalls(clock)


def request(
    stream: Stream | None = None, host: str = "localhost:8888", **headers: str
) -> HTTPServerRequest:
    """Make a request of AutoGen's client."""
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return HTTPServerRequest(
        headers=HTTPHeaders({"Host": host, "User-Agent": AUTOGEN, **said}),
        connection=Connection(stream or Stream()),  # type: ignore[arg-type]
        start_line=RequestStartLine("POST", "/api/agent-exec/aca/code/execute", "HTTP/1.1"),
    )


def test_a_cookie_comes_back_with_the_rest_of_the_call(calls: FailedCalls) -> None:
    assert not calls.follows(request(), ONE)
    cookie = f"{COOKIE}={calls.failed(request(), ONE)}"
    assert calls.follows(request(Cookie=cookie), ONE)
    assert not calls.follows(request(Cookie=cookie), ANOTHER)
    assert not calls.follows(request(), ONE)


def test_a_connection_tells_where_no_cookie_is_kept(calls: FailedCalls, clock: Clock) -> None:
    stream = Stream()
    for host in ("127.0.0.1:8888", "[::1]:8888"):
        calls.failed(request(stream, host), ONE)
        assert calls.follows(request(stream, host), ONE)
        assert not calls.follows(request(stream, host), ANOTHER)
        assert not calls.follows(request(Stream(), host), ONE)
    clock.now = SECONDS
    assert not calls.follows(request(stream, "127.0.0.1"), ONE)


@pytest.mark.parametrize("header", ["X_Forwarded_For", "Forwarded", "Via", "X_Real_Ip"])
def test_a_connection_that_a_proxy_may_share_tells_nothing(calls: FailedCalls, header: str) -> None:
    stream = Stream()
    calls.failed(request(stream, "127.0.0.1", **{header: "x"}), ONE)
    assert not calls.follows(request(stream, "127.0.0.1", **{header: "x"}), ONE)


def test_a_name_is_known_by_its_cookie_alone(calls: FailedCalls) -> None:
    stream = Stream()
    calls.failed(request(stream), ONE)
    assert not calls.follows(request(stream), ONE)


def test_clients_of_another_make_are_left_alone(calls: FailedCalls) -> None:
    stream = Stream()
    other = request(stream, "127.0.0.1", User_Agent="python-requests/2.32")
    assert calls.failed(other, ONE) is None
    assert not calls.follows(request(stream, "127.0.0.1"), ONE)
    cookie = f"{COOKIE}={calls.failed(request(), ONE)}"
    assert not calls.follows(request(Cookie=cookie, User_Agent="curl/8"), ONE)


async def send_block(wire: Wire, code: str, **headers: str) -> dict[str, str]:
    """Run code as AutoGen's client does, on a connection that stays open."""
    body = json.dumps({"properties": {"code": code}}).encode()
    at = "aca/code/execute?identifier=one"
    await wire.begin("POST", at, User_Agent=AUTOGEN, Content_Length=str(len(body)), **headers)
    await wire.send(body)
    status, answer = await wire.answer()
    assert status == 200
    told: dict[str, str] = json.loads(answer)["properties"]
    return told


async def test_what_follows_a_failure_on_a_connection_does_not_run(
    wire: Wire, ask: Send, jp_auth_header: dict[str, str]
) -> None:
    session = DynamicSession(ask, jp_auth_header, "one")
    await session.run("ran = []")
    assert (await send_block(wire, "ran.append(1)"))["status"] == "Success"
    assert (await send_block(wire, "1/0"))["status"] == "Failure"
    for _ in range(2):
        refused = await send_block(wire, "ran.append(2)")
        assert refused["status"] == "Failure"
        assert refused["stderr"] == "[Not run, since a block before it failed.]\n"
    assert (await session.run("ran"))["result"] == "[1]"


async def test_what_another_token_sends_on_the_same_connection_runs(
    wire: Wire, agent: Agent
) -> None:
    one, other = [bearer((await mint(agent, "exec:scratch"))[1]) for _ in range(2)]
    assert (await send_block(wire, "1/0", **one))["status"] == "Failure"
    assert (await send_block(wire, "1", **other))["result"] == "1"
    assert "Not run" in (await send_block(wire, "1", **one))["stderr"]


async def test_a_failure_leaves_a_cookie_with_autogens_client_alone(
    ask: Send, jp_auth_header: dict[str, str], jp_base_url: str
) -> None:
    session = DynamicSession(ask, jp_auth_header, "one")
    fails = {"code": "1/0"}
    failed = await session.post_code(fails, **{"User-Agent": AUTOGEN})
    (cookie,) = [c for c in failed.headers.get_list("Set-Cookie") if c.startswith(COOKIE)]
    assert f"Path={jp_base_url}{NAMESPACE}/aca/code/execute" in cookie
    assert "Max-Age=5" in cookie
    shown = {"User-Agent": AUTOGEN, "Cookie": cookie.partition(";")[0]}
    assert (
        "Not run" in (await session.post_code({"code": "1"}, **shown)).json["properties"]["stderr"]
    )
    assert COOKIE not in str((await session.post_code(fails)).headers)


async def test_an_agent_gets_no_other_cookie_and_that_one_for_a_failure_alone(
    ask: Send, agent: Agent
) -> None:
    token = (await mint(agent, "exec:scratch", "files"))[1]
    session = DynamicSession(ask, bearer(token), "one")
    shown = {"User-Agent": AUTOGEN}
    answers = [
        await session.post_code({"code": "1"}, **shown),
        await session.post_code({}, **shown),
        await session.upload(b"", "a.txt"),
        await session.list(),
        await session.read("a.txt"),
    ]
    assert [answer.headers.get_list("Set-Cookie") for answer in answers] == [[]] * len(answers)
    (cookie,) = (await session.post_code({"code": "1/0"}, **shown)).headers.get_list("Set-Cookie")
    name, _, value = cookie.partition(";")[0].partition("=")
    assert name == COOKIE
    assert re.fullmatch("[0-9a-f]{64}", value)
    assert {"httponly", "samesite=strict"} <= set(cookie.lower().replace(" ", "").split(";"))
