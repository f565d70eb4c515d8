"""Both clients over a transport that answers in this process."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import httpx2
import msgspec
import pytest

from jupyter_agent_exec.client import AgentExecClient, AsyncAgentExecClient, CannotConnect
from tests.client.wire import server_status, session

URL = "http://127.0.0.1:8888/base"


def answering(seen: list[httpx2.Request]) -> Callable[[httpx2.Request], httpx2.Response]:
    """Open sessions, and break every connection that would close one."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        if request.url.path.endswith("/close"):
            raise httpx2.ConnectError("gone")
        if request.url.path.endswith("/status"):
            return httpx2.Response(200, content=msgspec.json.encode(server_status()))
        return httpx2.Response(201, content=msgspec.json.encode(session()))

    return answer


def fail_in_a_session(error: Exception | None) -> list[httpx2.Request]:
    seen: list[httpx2.Request] = []
    transport = httpx2.MockTransport(answering(seen))
    with (
        AgentExecClient(URL, "x", transport=transport) as client,
        client.open_session("tester"),
    ):
        if error is not None:
            raise error
    return seen


async def fail_in_an_awaited_session(error: Exception | None) -> None:
    transport = httpx2.MockTransport(answering([]))
    async with (
        AsyncAgentExecClient(URL, "x", transport=transport) as client,
        await client.open_session("tester"),
    ):
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("error", "raised"), [(ZeroDivisionError(), ZeroDivisionError), (None, CannotConnect)]
)
def test_an_error_in_a_session_is_not_hidden_by_one_in_closing_it(
    error: Exception | None, raised: type[Exception]
) -> None:
    with pytest.raises(raised):
        fail_in_a_session(error)
    with pytest.raises(raised):
        asyncio.run(fail_in_an_awaited_session(error))


def test_what_cannot_be_reached_is_not_asked_to_close() -> None:
    seen: list[httpx2.Request] = []
    client = AgentExecClient(URL, "x", transport=httpx2.MockTransport(answering(seen)))
    session = client.open_session("tester")
    lost = CannotConnect("gone")
    session.__exit__(type(lost), lost, None)
    assert [request.url.path for request in seen] == ["/base/api/agent-exec/sessions"]


def test_a_request_carries_what_the_server_needs_and_no_more() -> None:
    seen: list[httpx2.Request] = []
    with AgentExecClient(URL, "sesame", transport=httpx2.MockTransport(answering(seen))) as client:
        client.open_session("tester")
        client.status()
    post, get = ({name: request.headers[name] for name in request.headers} for request in seen)
    assert post["authorization"] == get["authorization"] == "token sesame"
    assert post["host"] == get["host"] == "127.0.0.1:8888"
    assert post["content-type"] == "application/json"
    assert int(post["content-length"]) == len(seen[0].content)
    assert set(get) == {"authorization", "host", "accept"}


def test_a_client_that_was_closed_connects_again() -> None:
    seen: list[httpx2.Request] = []
    client = AgentExecClient(URL, "x", transport=httpx2.MockTransport(answering(seen)))
    assert client.address is None
    client.status()
    client.close()
    client.close()
    assert client.status().version == "0.1.0"
    assert client.address == URL


def test_jupyters_cookies_are_sent_again() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        cookies = [
            ("Set-Cookie", "username-x=2|1:0; HttpOnly; Path=/base/"),
            ("Set-Cookie", "_x=1"),
        ]
        return httpx2.Response(200, headers=cookies, content=msgspec.json.encode(server_status()))

    with AgentExecClient(URL, "x", transport=httpx2.MockTransport(answer)) as client:
        client.status()
        client.status()
    assert [request.headers.get("Cookie") for request in seen] == [None, "username-x=2|1:0; _x=1"]


@pytest.fixture
def server_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a server's file in Jupyter's runtime folder, so that clients look whether it answers."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    info = {"pid": os.getpid(), "url": URL, "token": "x"}
    (tmp_path / "jpserver-1.json").write_text(json.dumps(info))


ONE_PROBE = ["/base/api/agent-exec/status", *["/base/api/agent-exec/sessions"] * 2]


@pytest.mark.usefixtures("server_here")
def test_tasks_that_share_a_client_look_for_the_server_once() -> None:
    seen: list[httpx2.Request] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0)  # the other task goes on
        return answering(seen)(request)

    async def share() -> None:
        client = AsyncAgentExecClient(transport=httpx2.MockTransport(answer))
        await asyncio.gather(client.open_session("tester"), client.open_session("tester"))
        await client.close()

    asyncio.run(share())
    assert [request.url.path for request in seen] == ONE_PROBE


@pytest.mark.usefixtures("server_here")
def test_threads_that_share_a_client_look_for_the_server_once() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        answered = answering(seen)(request)
        if len(seen) == 1:
            other.start()
            other.join(0.2)  # time in which it could connect too, if it did not wait
        return answered

    client = AgentExecClient(transport=httpx2.MockTransport(answer))
    other = threading.Thread(target=client.open_session, args=("tester",))
    client.open_session("tester")
    other.join()
    client.close()
    assert [request.url.path for request in seen] == ONE_PROBE
