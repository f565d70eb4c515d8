"""Who comes in: each credential at each verb of each route, on differently configured servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from access_asking import HASHED, PASSWORD, VERBS, LoggedIn, Verb
from asking import Answered, Send
from on_disk import recorded_sessions

FOREIGN = "https://elsewhere.example"
AGENT_TOKEN = "jaex_01JD_secret"


@dataclass(frozen=True)
class Credential:
    """What a request shows, and what it gets at a GET and at a POST; None if it is let in."""

    name: str
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    at_get: int | None = None
    at_post: int | None = None

    def expected(self, verb: Verb) -> int:
        return (self.at_get if verb.method == "GET" else self.at_post) or verb.status


def anybody(name: str, *, status: int = 401, **shown: Any) -> Credential:
    return Credential(name, **shown, at_get=status, at_post=status)


def refused() -> list[Credential]:
    """Credentials that no server takes."""
    bearer = {"Authorization": f"Bearer {AGENT_TOKEN}"}
    return [
        anybody("none"),
        anybody("bad token", headers={"Authorization": "token wrong"}),
        anybody("empty token", headers={"Authorization": "token "}),
        anybody("bad token in the query", query={"token": "wrong"}),
        anybody("password as in Basic", headers={"Authorization": "Basic YTpi"}),
        anybody("forged cookie", headers={"Cookie": 'username-127-0-0-1="2|1:0|forged"'}),
        anybody("agent token", headers=bearer),
        anybody("agent token, bare", headers={"Authorization": AGENT_TOKEN}),
        anybody("agent token in the query", query={"token": AGENT_TOKEN}),
        anybody("none, foreign Host", headers={"Host": "elsewhere.example"}, status=403),
    ]


def with_cookie(person: LoggedIn) -> list[Credential]:
    cookie = {"Cookie": person.cookie}
    xsrf = {**cookie, "X-XSRFToken": person.xsrf}
    return [
        Credential("cookie without XSRF", cookie, at_post=403),
        Credential("cookie with a wrong XSRF", {**cookie, "X-XSRFToken": "x"}, at_post=403),
        Credential("cookie with XSRF", xsrf),
        anybody("cookie, foreign Origin", headers={**xsrf, "Origin": FOREIGN}, status=403),
        anybody(
            "cookie and agent token",
            headers={**xsrf, "Authorization": f"token {AGENT_TOKEN}"},
        ),
    ]


def with_token(token: str) -> list[Credential]:
    header = {"Authorization": f"token {token}"}
    return [
        Credential("token", header),
        Credential("token as bearer", {"Authorization": f"Bearer {token}"}),
        Credential("token in the query", query={"token": token}),
        Credential("token, foreign Origin", {**header, "Origin": FOREIGN}),
        anybody("token, foreign Host", headers={**header, "Host": "elsewhere.example"}, status=403),
        anybody("token and agent token", headers=header, query={"token": AGENT_TOKEN}),
    ]


@pytest.fixture(params=["token", "password"])
def login(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[False, True], ids=["all-authenticated", "unauthenticated-allowed"])
def unauthenticated_access(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], login: str, unauthenticated_access: bool
) -> dict[str, Any]:
    config = {**jp_server_config}
    config["ServerApp"]["allow_unauthenticated_access"] = unauthenticated_access
    if login == "password":
        config["PasswordIdentityProvider"] = {"hashed_password": HASHED, "token": ""}
    return config


def faults(name: str, verb: Verb, expected: int, answered: Answered) -> list[str]:
    """Say what is wrong with an answer."""
    where = f"{name} at {verb.method} {verb.path}"
    if answered.status != expected:
        return [f"{where}: {answered.status} instead of {expected}"]
    found = [
        f"{where}: has {header}"
        for header in ("Access-Control-Allow-Origin", "X-Powered-By")
        if header in answered.headers
    ]
    if expected < 400:
        return found
    if set(answered.json) != {"message", "reason", "code", "detail"}:
        found.append(f"{where}: is not a refusal of ours: {answered.body!r}")
    for header in ("Set-Cookie", "Location"):
        if header in answered.headers:
            found.append(f"{where}: has {header}")
    if (expected == 401) != ("WWW-Authenticate" in answered.headers):
        found.append(f"{where}: WWW-Authenticate belongs to 401 and to nothing else")
    if not answered.headers["Content-Type"].startswith("application/json"):
        found.append(f"{where}: is {answered.headers['Content-Type']}")
    return found


async def test_each_route_lets_in_whom_it_should_and_nobody_else(
    ask: Send,
    log_in: Callable[[str], Awaitable[LoggedIn]],
    login: str,
    jp_serverapp: Any,
    history_dir: Path,
) -> None:
    token = jp_serverapp.identity_provider.token
    credentials = refused() + with_cookie(await log_in(token or PASSWORD))
    if login == "token":
        credentials += with_token(token)
    wrong: list[str] = []
    for credential in credentials:
        for verb in VERBS:
            answered = await ask(
                verb.method,
                verb.path,
                headers=credential.headers,
                query=credential.query,
                body=verb.body,
            )
            wrong += faults(credential.name, verb, credential.expected(verb), answered)
    assert not wrong, "\n".join(wrong)
    assert recorded_sessions(history_dir) == []
    assert jp_serverapp.kernel_manager.list_kernel_ids() == []


async def test_a_form_cannot_bring_an_agent_token_to_the_identity_provider(ask: Send) -> None:
    answered = await ask(
        "POST",
        "sessions",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=f"token={AGENT_TOKEN}",
    )
    assert answered.status == 401
    assert answered.json["message"] == "This server knows no such agent token."
