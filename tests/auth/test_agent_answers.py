"""What an agent is answered is for no page, whatever pages the operator lets in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.asking import Agent, Send
from tests.auth.minting import bearer, mint

LAB = "https://lab.example"


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any]) -> dict[str, Any]:
    jp_server_config["ServerApp"] |= {
        "allow_origin": LAB,
        "allow_credentials": True,
        "tornado_settings": {"headers": {"Access-Control-Expose-Headers": "X-Told"}},
    }
    return jp_server_config


async def test_an_agent_is_answered_without_cookies_and_without_cors_headers(
    agent: Agent, ask: Send
) -> None:
    token = (await mint(agent))[1]
    for headers in (
        bearer(token),
        bearer(token + "0"),
        {**bearer(token), "Origin": LAB},
        {**bearer(token), "Cookie": "_xsrf=2|x|x|1"},
    ):
        for path in ("status", "tokens", "nowhere", f"search?q={token}"):
            answered = await ask("GET", path, headers=headers)
            told = [name for name in answered.headers if name.startswith("Access-Control-")]
            assert told == [], (headers, path)
            assert "Set-Cookie" not in answered.headers
    seen = await ask("GET", "status", headers={"Origin": LAB})
    assert seen.headers["Access-Control-Allow-Origin"] == LAB


async def test_an_agent_token_opens_no_allowed_origin(
    agent: Agent, ask: Send, jp_http_port: int
) -> None:
    token = (await mint(agent))[1]
    for origin, status in (
        (LAB, 403),
        ("null", 403),
        (f"http://127.0.0.1:{jp_http_port + 1}", 403),
        (f"http://127.0.0.1:{jp_http_port}", 200),
    ):
        answered = await ask("GET", "status", headers={**bearer(token), "Origin": origin})
        assert answered.status == status, origin
