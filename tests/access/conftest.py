"""Logging in as a browser does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import pytest
from access_asking import LoggedIn
from asking import Answered, Send


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
