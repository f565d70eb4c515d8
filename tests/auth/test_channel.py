"""Who may open the channel of a JupyterLab page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from tests.asking import Agent
from tests.auth.access_asking import LoggedIn

FOREIGN = "https://elsewhere.example"

Try = Callable[..., Awaitable[int]]


@pytest.fixture
def status_for(http_server_client: Any, jp_http_port: int, jp_base_url: str) -> Try:
    """Try to open the channel, and return the status of the answer."""

    async def status_for(headers: dict[str, str], query: str = "") -> int:
        url = f"ws://127.0.0.1:{jp_http_port}{jp_base_url}api/agent-exec/notebooks/channel{query}"
        try:
            channel = await websocket_connect(HTTPRequest(url, headers=headers))
        except HTTPClientError as refused:
            return refused.code
        channel.close()
        assert await channel.read_message() is None
        return 101

    return status_for


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({}, "", 401),
        ({"Authorization": "token wrong"}, "", 401),
        ({"Authorization": "Bearer jaex_1_s"}, "", 401),
        ({}, "?token=jaex_1_s", 400),
        ({"Host": "elsewhere.example"}, "", 403),
        ({"Origin": FOREIGN}, "", 401),
    ],
)
async def test_a_stranger_or_an_agent_gets_no_channel(
    status_for: Try, headers: dict[str, str], query: str, status: int
) -> None:
    assert await status_for(headers, query) == status


async def test_a_person_gets_a_channel_by_token(status_for: Try, jp_serverapp: Any) -> None:
    token = jp_serverapp.identity_provider.token
    assert await status_for({}, f"?token={token}") == 101
    assert await status_for({"Authorization": f"token {token}"}) == 101


async def test_a_page_of_another_origin_gets_no_channel_by_a_persons_cookie(
    status_for: Try,
    log_in: Callable[[str], Awaitable[LoggedIn]],
    jp_serverapp: Any,
    jp_http_port: int,
) -> None:
    person = await log_in(jp_serverapp.identity_provider.token)
    cookie = {"Cookie": person.cookie}
    assert await status_for({**cookie, "Origin": f"http://127.0.0.1:{jp_http_port}"}) == 101
    assert await status_for({**cookie, "Origin": FOREIGN}) == 403


async def test_who_may_not_write_gets_no_channel(
    status_for: Try, jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def refuse(handler: Any, user: Any, action: str, resource: str) -> bool:
        asked.append((action, resource))
        return False

    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", refuse)
    token = jp_serverapp.identity_provider.token
    assert await status_for({"Authorization": f"token {token}"}) == 403
    assert asked == [("write", "contents")]


async def test_a_plain_request_is_told_that_this_is_a_websocket(agent: Agent) -> None:
    answered = await agent.get("notebooks/channel")
    assert answered.status == 400
    assert answered.json["code"] == "invalid_request"
    assert answered.json["detail"] == {"field": "Upgrade"}
