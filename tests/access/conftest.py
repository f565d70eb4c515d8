"""Requests as anybody may send them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import pytest
from access_asking import LoggedIn, Send
from asking import NAMESPACE, Answered
from tornado.httpclient import HTTPResponse


@pytest.fixture
def send(jp_serverapp: Any, http_server_client: Any, jp_base_url: str) -> Send:
    """Send a request with just the headers that are given, and take any answer."""

    async def send(
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
        body: str | None = None,
    ) -> Answered:
        url = f"{jp_base_url}{path}" + (f"?{urlencode(query)}" if query else "")
        response: HTTPResponse = await http_server_client.fetch(
            url,
            method=method,
            headers=headers or {},
            body=body,
            follow_redirects=False,
            raise_error=False,
            allow_nonstandard_methods=True,
            request_timeout=20,
        )
        return Answered(response)

    return send


@pytest.fixture
def ask(send: Send) -> Send:
    """Send a request to a path of ours."""

    async def ask(method: str, path: str, **named: Any) -> Answered:
        return await send(method, f"{NAMESPACE}/{path}", **named)

    return ask


@pytest.fixture
def log_in(send: Send) -> Callable[[str], Awaitable[LoggedIn]]:
    async def log_in(password: str) -> LoggedIn:
        page = await send("GET", "login")
        xsrf = _cookies(page)["_xsrf"]
        entered = await send(
            "POST",
            "login",
            body=urlencode({"password": password, "_xsrf": xsrf}),
            headers={
                "Cookie": f"_xsrf={xsrf}",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        assert entered.status == 302, entered.body
        cookies = {"_xsrf": xsrf, **_cookies(entered)}
        return LoggedIn("; ".join(f"{name}={value}" for name, value in cookies.items()), xsrf)

    return log_in


def _cookies(answered: Answered) -> dict[str, str]:
    cookies: dict[str, str] = {}
    for line in answered.headers.get_list("Set-Cookie"):
        cookies.update({name: morsel.coded_value for name, morsel in SimpleCookie(line).items()})
    return cookies
