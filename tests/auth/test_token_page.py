"""The page on which a person gives agents tokens, sees them, and revokes them."""

from __future__ import annotations

import html
import re
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.mcp import endpoint
from jupyter_agent_exec.models import MintToken
from jupyter_agent_exec.text.connections import connections
from tests.asking import Agent, Answered, Send
from tests.auth.access_asking import HASHED, PASSWORD, LoggedIn, alert, hidden_fields
from tests.auth.minting import MINTED, PAST, bearer, change_kept, mint, works

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
FILLED_IN = {
    "label": "My agent",
    "scope": "exec:scratch",
    "rights": "exec edit",
    "patterns": "",
    "expires_in": "28800",
}


class Browser:
    """A person's browser with the page."""

    def __init__(self, ask: Send, log_in: Callable[[], Awaitable[LoggedIn]]) -> None:
        self._ask = ask
        self.log_in = log_in
        self._known: LoggedIn | None = None

    async def _person(self) -> LoggedIn:
        """Return what the browser holds; the person logs in once."""
        self._known = self._known or await self.log_in()
        return self._known

    async def open(self, headers: dict[str, str] | None = None, **query: str) -> Answered:
        headers = {"Cookie": (await self._person()).cookie, **(headers or {})}
        return await self._ask("GET", "access", query=query, headers=headers)

    async def send(self, headers: dict[str, str] | None = None, **fields: str) -> Answered:
        person = await self._person()
        headers = {"Cookie": person.cookie, **FORM, **(headers or {})}
        hidden = hidden_fields((await self.open()).body.decode())
        body = urlencode({**hidden, "_xsrf": person.xsrf, **fields})
        return await self._ask("POST", "access", headers=headers, body=body)

    async def give(self, headers: dict[str, str] | None = None, **changed: str) -> Answered:
        answered = await self.send(headers, **FILLED_IN | changed)
        MINTED.extend(secret.rpartition("_")[2] for secret in secrets(answered))
        return answered


def secrets(answered: Answered) -> set[str]:
    """Return the tokens that a page shows."""
    return set(re.findall(r"jaex_t_[0-9A-Z]{26}_[0-9a-f]{64}", answered.body.decode()))


def text(answered: Answered) -> str:
    """Return what a person reads."""
    return html.unescape(" ".join(re.sub("<[^>]*>", "", answered.body.decode()).split()))


@pytest.fixture
def browser(ask: Send, log_in: Callable[[str], Awaitable[LoggedIn]], jp_serverapp: Any) -> Browser:
    return Browser(ask, lambda: log_in(jp_serverapp.identity_provider.token))


@pytest.fixture
def tokens(jp_serverapp: Any) -> Any:
    [app] = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    return app.services.tokens


async def test_a_person_gives_a_token_sees_it_once_and_revokes_it(
    agent: Agent, ask: Send, browser: Browser
) -> None:
    first = await browser.open()
    assert first.status == 200
    assert "No agent has access" in text(first)
    given = await browser.give(**{"patterns": "reports/*.ipynb", "caps.kernels": "3"})
    assert given.status == 200
    assert given.headers["Cache-Control"] == "no-store"
    [secret] = secrets(given)
    assert "claude mcp add --scope user --transport http jupyter" in text(given)
    assert "pip install" not in text(given)
    [token] = (await agent.get("tokens")).json["tokens"]
    assert token["label"] == "My agent"
    assert token["scopes"] == [
        "exec:scratch",
        "exec:notebook:reports/*.ipynb",
        "edit:notebook:reports/*.ipynb",
    ]
    assert token["caps"]["kernels"] == 3
    assert await works(ask, secret)

    listed = await browser.open()
    assert secrets(listed) == set()
    for line in ("My agent", "Run code: reports/*.ipynb", "Sessions open at once: at most 3"):
        assert line in text(listed)
    revoked = await browser.send(revoke=token["id"])
    assert "My agent has no access any more." in text(revoked)
    assert "1 expired or revoked" in text(revoked)
    assert not await works(ask, secret)


async def test_a_notebook_is_ticked_and_the_form_open(agent: Agent, browser: Browser) -> None:
    await mint(agent)
    closed, opened = await browser.open(), await browser.open(notebook="a & b.ipynb")
    assert b"<details open>" not in b" ".join(closed.body.split())
    assert b"<details open>" in b" ".join(opened.body.split())
    assert b"autofocus" in opened.body
    assert b'value="a &amp; b.ipynb"\nchecked' in opened.body
    for other in ("every*.ipynb", "../a.ipynb", ""):
        assert b'name="notebook"' not in (await browser.open(notebook=other)).body, other
    await browser.give(notebook="a.ipynb")
    [token, _] = (await agent.get("tokens")).json["tokens"]
    assert token["scopes"][1:] == ["exec:notebook:a.ipynb", "edit:notebook:a.ipynb"]


async def test_a_form_that_is_wrong_is_shown_again_with_what_was_typed(
    agent: Agent, browser: Browser
) -> None:
    refused = await browser.give(label='"My" agent', patterns="../secrets.ipynb")
    assert refused.status == 400
    assert alert(refused).startswith("What it may do: '../secrets.ipynb' is not a pattern")
    assert b'value="&quot;My&quot; agent"' in refused.body
    assert b">../secrets.ipynb</textarea>" in refused.body
    assert (await agent.get("tokens")).json["tokens"] == []


@pytest.mark.parametrize(
    "agent_exec_config", [{"approval": {"notebook": "always", "scratch": "none"}}]
)
async def test_the_form_says_what_the_servers_default_is(browser: Browser) -> None:
    page = text(await browser.open())
    assert "Server default (in notebooks: every execution; elsewhere: nothing)" in page
    assert "Server default (propose changes)" in page


@pytest.mark.parametrize("agent_exec_config", [{"forced_approval": {"kernel": "always"}}])
async def test_a_person_sets_the_policy(agent: Agent, browser: Browser) -> None:
    page = (await browser.open()).body.decode()
    assert 'name="policy.scratch"' in page
    assert 'name="policy.kernel"' not in page, "the configuration forces it"
    modes = {"policy.scratch": "always", "policy.edits": "apply"}
    saved = await browser.send(policy="set", **modes)
    assert "Saved." in text(saved)
    policy = (await agent.get("approvals")).json["policy"]
    assert (policy["scratch"], policy["edits"], policy["notebook"]) == ("always", "apply", "none")
    assert (await browser.send(policy="set", **{"policy.kernel": "none"})).status == 400
    assert (await browser.send(policy="set", **{"policy.scratch": "odd"})).status == 400
    selected = re.findall(r'<option value="(\w+)" selected>', (await browser.open()).body.decode())
    assert selected[-3:] == ["none", "always", "apply"]


async def test_a_person_erases_a_closed_session(agent: Agent, browser: Browser) -> None:
    session = await agent.open()
    await agent.run(session, "'hunter2'")
    page = {"erase": session["id"]}
    assert "The session is open." in text(await browser.open(**page))
    await agent.ask("POST", f"sessions/{session['id']}/close", {})
    shown = await browser.open(**page)
    assert (told := re.search(r"inputs go: (\d+), ", text(shown)))
    assert "the caches of browsers" in text(shown)
    erased = await browser.send(erase=session["id"])
    assert f"Erased. Sources, outputs and inputs: {told[1]}." in text(erased)
    kept = await agent.get(f"sessions/{session['id']}/executions")
    assert "hunter2" not in kept.body.decode()
    assert "There is nothing to erase." in text(await browser.open(**page))
    assert (await browser.open(erase="s_none")).status == 404


async def test_the_page_says_how_clients_connect_that_can_sign_in(
    browser: Browser, jp_base_url: str, jp_http_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{jp_http_port}{jp_base_url}api/agent-exec/mcp"
    page = html.unescape((await browser.open()).body.decode())
    for each in connections(url):
        assert f">{each.text}</pre>" in page, each.name

    def version(sdk: str) -> str:
        raise PackageNotFoundError(sdk)

    monkeypatch.setattr(endpoint, "version", version)
    assert "/mcp" not in text(await browser.open())


async def test_the_page_cannot_be_framed_and_runs_only_its_own_script(browser: Browser) -> None:
    for page in (await browser.open(), await browser.give(), await browser.send(revoke="t_1")):
        policy = page.headers["Content-Security-Policy"]
        for part in ("default-src 'none'", "frame-ancestors 'none'", "form-action 'self'"):
            assert part in policy
        assert page.headers["X-Frame-Options"] == "DENY"
        assert page.headers["Cross-Origin-Opener-Policy"] == "noopener-allow-popups"
        assert page.headers["Cache-Control"] == "no-store"
        scripts = re.findall(rb"<script[^>]*>", page.body)
        nonce = re.findall(r"; script-src 'nonce-([\w-]+)'$", policy)
        assert scripts == [f'<script nonce="{each}">'.encode() for each in nonce]


async def test_a_request_from_elsewhere_gets_and_revokes_no_token(
    agent: Agent, ask: Send, browser: Browser
) -> None:
    id, secret = await mint(agent)
    foreign = {"Origin": "https://elsewhere.example"}
    for refused in (
        await browser.give(_xsrf="wrong"),
        await browser.give(_xsrf=""),
        await browser.give(foreign),
        await browser.send(_xsrf="wrong", revoke=id),
        await browser.send(foreign, revoke=id),
    ):
        assert refused.status == 403
        assert secrets(refused) == set()
    assert len((await agent.get("tokens")).json["tokens"]) == 1
    assert await works(ask, secret)


@pytest.mark.parametrize("dest", ["empty", "iframe", "embed", "object", "script", "image"])
async def test_only_a_window_shows_the_page(browser: Browser, dest: str) -> None:
    assert b"nonce" in (await browser.open({"Sec-Fetch-Dest": "document"})).body
    for sends in (browser.open, browser.give):
        refused = await sends({"Sec-Fetch-Dest": dest})
        assert refused.status == 403
        assert b'name="nonce"' not in refused.body


ENGINE = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko)"
CHROME = {"User-Agent": f"{ENGINE} Chrome/156.0.0.0 Safari/537.36", "Sec-Fetch-Mode": "navigate"}
FIREFOX = {"User-Agent": "Mozilla/5.0 Gecko/20100101 Firefox/150.0", "Sec-Fetch-Mode": "navigate"}
SAFARI = {"User-Agent": f"{ENGINE} Version/26.0 Safari/605.1.15", "Sec-Fetch-Mode": "navigate"}
CLICK = {"Sec-Fetch-User": "?1"}


async def test_only_a_click_on_the_page_sends_its_form(
    agent: Agent, ask: Send, browser: Browser
) -> None:
    id, secret = await mint(agent)
    other = hidden_fields((await Browser(ask, browser.log_in).open()).body.decode())
    asked = [{"nonce": ""}, {"nonce": "2|1:0|10:1|5:nonce|0:|0"}, {"nonce": other["nonce"]}]
    for fields in (*asked, *({**each, "revoke": id} for each in asked)):
        assert "No click on this page" in alert(await browser.give(CHROME | CLICK, **fields))
    for script in (CHROME, FIREFOX):
        assert (await browser.give(script)).status == 403
    assert await works(ask, secret)
    for click in (CHROME | CLICK, FIREFOX | CLICK, SAFARI):
        assert (await browser.give(click)).status == 200


async def test_only_people_open_the_page(agent: Agent, ask: Send, browser: Browser) -> None:
    query = {"notebook": "a.ipynb"}
    answered = await ask("GET", "access", query=query)
    assert answered.status == 302
    login = urlsplit(answered.headers["Location"])
    assert login.path.endswith("/login")
    assert dict(parse_qsl(login.query))["next"].endswith("/access?notebook=a.ipynb")
    assert (await ask("POST", "access", headers=FORM, body="")).status == 401
    id, secret = await mint(agent, "history:read:all", "exec:scratch")
    for headers, status in ((bearer(secret), 403), (bearer(secret[:-1] + "x"), 401)):
        assert (await ask("GET", "access", headers=headers)).status == status
        assert (await browser.give(headers)).status == status
        assert (await browser.send(headers, revoke=id)).status == status
    assert (await browser.give(token=secret)).status == 400, "a token does not belong in a form"
    assert len((await agent.get("tokens")).json["tokens"]) == 1


async def test_another_users_token_is_neither_shown_nor_revoked(
    ask: Send, browser: Browser, tokens: Any
) -> None:
    asked = MintToken(label="Of Ada's", scopes=["exec:scratch"])
    ada = Caller(username="ada", display_name="Ada", access="full")
    token, secret = await tokens.mint(asked, ada)
    MINTED.append(secret.rpartition("_")[2])
    assert "Of Ada's" not in text(await browser.open())
    refused = await browser.send(revoke=token.id)
    assert (refused.status, alert(refused)) == (404, "You have no such token.")
    assert await works(ask, secret)


async def test_a_name_cannot_pass_for_another_or_for_the_page(
    agent: Agent, browser: Browser
) -> None:
    await mint(agent, label="<b>\u202e\u0440ay</b>")
    page = (await browser.open()).body.decode()
    shown = "&lt;b&gt;&lt;U+202E&gt;&lt;U+0440&gt;ay&lt;/b&gt;"
    assert f"<h2><bdi>{shown}</bdi></h2>" in page
    given = (await browser.give(label="<i>\u202e")).body.decode()
    assert "Access for <bdi>&lt;i&gt;&lt;U+202E&gt;</bdi>" in given


async def test_a_token_that_has_expired_is_listed_apart(
    agent: Agent, browser: Browser, history_dir: Any
) -> None:
    id, _ = await mint(agent)
    assert f'value="{id}"'.encode() in (await browser.open()).body
    change_kept(history_dir, id, expires_at=PAST)
    page = await browser.open()
    assert "1 expired or revoked" in text(page)
    assert id.encode() not in page.body, "there is nothing to revoke"


@pytest.mark.parametrize("agent_exec_config", [{"decision_passphrase_hash": HASHED}])
async def test_the_passphrase_is_needed_to_give_but_not_to_revoke(
    ask: Send, browser: Browser
) -> None:
    assert b'name="passphrase"' in (await browser.open()).body
    for wrong in ({}, {"passphrase": "wrong"}):
        refused = await browser.give(**wrong)
        assert (refused.status, alert(refused)) == (403, "This is not the passphrase.")
        assert b'value="My agent"' in refused.body
    for change in ({"policy": "set", "policy.scratch": "none"}, {"erase": "s_none"}):
        refused = await browser.send(**change)
        assert (refused.status, alert(refused)) == (403, "This is not the passphrase.")
        assert b'name="policy"' in refused.body, "the page can be used again"
    [secret] = secrets(await browser.give(passphrase=PASSWORD))
    id = "_".join(secret.split("_")[1:3])
    assert (await browser.send(revoke=id)).status == 200
    assert not await works(ask, secret)
