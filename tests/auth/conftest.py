"""Logging in as a browser does."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.asking import Answered, Send
from tests.auth.access_asking import LoggedIn
from tests.auth.minting import MINTED, kept_bytes
from tests.real_server import gate
from tests.sessions.living_notebook import cells_have_time, desk

__all__ = ["cells_have_time", "desk", "gate", "log_in"]


@pytest.fixture(autouse=True)
def no_secret_is_left(history_dir: Path, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Look for the secrets that a test has minted in what it leaves."""
    MINTED.clear()
    yield
    kept = kept_bytes(history_dir)
    records = [*caplog.get_records("setup"), *caplog.get_records("call")]
    logged = "\n".join(map(logging.Formatter().format, records))
    for secret in MINTED:
        assert secret not in logged
        assert not [path for path, data in kept.items() if secret.encode() in data]


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
