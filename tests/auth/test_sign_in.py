"""Sign-in of MCP clients: what a client gets, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import pytest

from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.mcp import endpoint
from jupyter_agent_exec.mcp.sign_in import MAX_WAITING, Pending, SignIn
from jupyter_agent_exec.models import MintToken
from jupyter_agent_exec.records import AccessDenied, TokenMinted, TokenRenewed, TokenRevoked
from tests.asking import Agent, Answered, Send
from tests.auth.access_asking import HASHED, PASSWORD, LoggedIn, alert, hidden_fields
from tests.auth.minting import MINTED, bearer, ledger, mint, works
from tests.notebooks.page import Page, shown

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
CALLBACK = "http://localhost:3000/callback"
VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode()[:-1]
ALLOWED = {
    "decision": "allow",
    "label": "My agent",
    "scope": "exec:scratch",
    "rights": "exec edit",
    "patterns": "",
    "approval": "",
    "expires_in": "28800",
}


def made_id(name: str, *redirect_uris: str) -> str:
    """Return the id of a client, which is its registration."""
    metadata = {"client_name": name, "redirect_uris": redirect_uris or [CALLBACK]}
    data = json.dumps(metadata, separators=(",", ":"), ensure_ascii=False).encode()
    return "jaec_" + base64.urlsafe_b64encode(data).decode()


CLIENT_ID = made_id("Agent")
CHANNEL = ("api", "agent-exec", "notebooks", "channel")
DOCUMENT = "https://client.example/agent.json"

LogIn = Callable[[str], Awaitable[LoggedIn]]


class Browser:
    """A person's browser, which follows no redirects."""

    def __init__(self, ask: Send, log_in: Callable[[], Awaitable[LoggedIn]]) -> None:
        self._ask = ask
        self._log_in = log_in
        self._person: LoggedIn | None = None

    async def person(self) -> LoggedIn:
        """Return what the browser holds; the person logs in once."""
        self._person = self._person or await self._log_in()
        return self._person

    async def look(self, part: str, query: dict[str, str]) -> Answered:
        cookie = {"Cookie": (await self.person()).cookie}
        return await self._ask("GET", f"sign-in/{part}", query=query, headers=cookie)

    async def authorize(self, **changed: str) -> Answered:
        query = {
            "response_type": "code",
            "client_id": CLIENT_ID,
            "redirect_uri": CALLBACK,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "a state",
            **changed,
        }
        query = {name: value for name, value in query.items() if value}
        return await self.look("authorize", query)

    async def asked(self, **changed: str) -> str:
        """Return the key of the request that the person is asked about."""
        answered = await self.authorize(**changed)
        assert answered.status == 302, answered.body
        location = str(answered.headers["Location"])
        assert location.startswith("consent?key=")
        return unquote(location.partition("=")[2])

    async def page(self, key: str) -> Answered:
        return await self.look("consent", {"key": key})

    async def answer(
        self, key: str, headers: dict[str, str] | None = None, **changed: str
    ) -> Answered:
        person = await self.person()
        any_page = await self._ask("GET", "access", headers={"Cookie": person.cookie})
        hidden = hidden_fields(any_page.body.decode())
        fields = {**ALLOWED, **hidden, "_xsrf": person.xsrf, "key": key, **changed}
        headers = {"Cookie": person.cookie, **FORM, **(headers or {})}
        return await self._ask("POST", "sign-in/consent", headers=headers, body=urlencode(fields))

    async def code(self, client_id: str = "", **changed: str) -> str:
        key = await self.asked(client_id=client_id or CLIENT_ID)
        answered = await self.answer(key, **changed)
        assert answered.status == 303, answered.body
        return sent(answered)["code"]


class Program:
    """A client, which sends what it likes."""

    def __init__(self, ask: Send, client_id: str = "") -> None:
        self._ask = ask
        self.client_id = client_id or CLIENT_ID

    async def send(self, part: str, **fields: str) -> Answered:
        body = urlencode({"client_id": self.client_id, **fields})
        answered = await self._ask("POST", f"sign-in/{part}", headers=FORM, body=body)
        if answered.status == 200 and answered.body:
            MINTED.extend(
                answered.json[name].rpartition("_")[2] for name in ("access_token", "refresh_token")
            )
        return answered

    async def exchange(self, code: str, **changed: str) -> Answered:
        fields = {"code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER, **changed}
        fields = {name: value for name, value in fields.items() if value}
        return await self.send("token", grant_type="authorization_code", **fields)

    async def refresh(self, token: str) -> Answered:
        return await self.send("token", grant_type="refresh_token", refresh_token=token)


def sent(answered: Answered) -> dict[str, str]:
    """Return what a redirect tells the client."""
    location = urlsplit(answered.headers["Location"])
    assert f"{location.scheme}://{location.netloc}{location.path}" == CALLBACK
    return dict(parse_qsl(location.query))


async def registered(ask: Send, *redirect_uris: str, **metadata: Any) -> Answered:
    asked = {"client_name": "Agent", "redirect_uris": redirect_uris or (CALLBACK,), **metadata}
    return await ask("POST", "sign-in/register", body=json.dumps(asked))


@pytest.fixture
def program(ask: Send) -> Program:
    return Program(ask)


@pytest.fixture
def open_browser(ask: Send, log_in: LogIn, jp_serverapp: Any) -> Callable[[], Browser]:
    """Open a browser of somebody else each time: a login with a token makes a user."""
    return lambda: Browser(ask, lambda: log_in(jp_serverapp.identity_provider.token))


@pytest.fixture
def browser(open_browser: Callable[[], Browser]) -> Browser:
    return open_browser()


@pytest.fixture
def sign_in(jp_serverapp: Any) -> SignIn:
    apps = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    return next(iter(apps)).services.sign_in


# -- what a client gets ----------------------------------------------------------------------------


async def test_a_client_signs_in_refreshes_and_signs_out(
    agent: Agent, ask: Send, browser: Browser, program: Program, history_dir: Path
) -> None:
    code = await browser.code(
        patterns="reports/my plots/*.ipynb\n", rights="read", approval="always"
    )
    signed_in = (await program.exchange(code)).json
    assert signed_in["token_type"] == "Bearer"
    assert signed_in["expires_in"] == 3600
    assert signed_in["scope"] == "exec:scratch read:notebook:reports/my%20plots/*.ipynb"
    [token] = (await agent.get("tokens")).json["tokens"]
    assert token["label"] == "My agent"
    assert token["scopes"] == ["exec:scratch", "read:notebook:reports/my plots/*.ipynb"]
    assert token["approval"] == "always"
    opened = await ask(
        "POST",
        "sessions",
        headers=bearer(signed_in["access_token"]),
        body=json.dumps({"agent": {"name": "agent"}}),
    )
    assert opened.status == 201, opened.body

    renewed = (await program.refresh(signed_in["refresh_token"])).json
    assert not await works(ask, signed_in["access_token"])
    path = f"sessions/{opened.json['id']}"
    still = await ask("GET", path, headers=bearer(renewed["access_token"]))
    assert still.json["status"] == "open", "its sessions go on"
    assert (await agent.get("tokens")).json["tokens"][0]["id"] == token["id"]

    gone = await program.send("revoke", token=renewed["access_token"])
    assert (gone.status, gone.body) == (200, b"")
    assert not await works(ask, renewed["access_token"])
    assert (await program.refresh(renewed["refresh_token"])).json["error"] == "invalid_grant"
    for kind in (TokenMinted, TokenRenewed, TokenRevoked):
        assert [each.token_id for each in ledger(history_dir, kind)] == [token["id"]]


async def test_a_client_finds_out_where_to_sign_in(ask: Send, send: Send, jp_base_url: str) -> None:
    refused = await ask("POST", "mcp", body="{}")
    assert refused.status == 401
    challenge = refused.headers["WWW-Authenticate"]
    assert challenge.startswith("Bearer ")
    [address] = re.findall(r'resource_metadata="([^"]+)"', challenge)
    path = urlsplit(address).path.removeprefix(jp_base_url)
    resource = (await send("GET", path)).json
    assert resource["resource"].endswith(f"{jp_base_url}api/agent-exec/mcp")
    assert "public_url" not in resource
    [issuer] = resource["authorization_servers"]
    for document in ("oauth-authorization-server", "openid-configuration"):
        appended = (await ask("GET", f".well-known/{document}")).json
        assert appended["issuer"] == issuer
        assert appended["code_challenge_methods_supported"] == ["S256"]
        assert appended["authorization_response_iss_parameter_supported"]
        inserted = await send("GET", f".well-known/{document}/api/agent-exec")
        assert inserted.json == appended
    inserted = await send("GET", ".well-known/oauth-protected-resource/api/agent-exec/mcp")
    assert inserted.json == resource
    assert (await ask("GET", ".well-known/jwks.json")).json == {"keys": []}
    assert (await ask("GET", ".well-known/other")).status == 404


async def test_the_operators_address_is_told_and_the_resource_is_where_it_was_asked(
    ask: Send, jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_PUBLIC_URL", "https://hub.example.org/user/ada/")
    told = (await ask("GET", ".well-known/oauth-protected-resource")).json
    assert told["public_url"] == "https://hub.example.org/user/ada/"
    assert told["resource"].startswith("http://127.0.0.1:")
    jp_serverapp.custom_display_url = "https://example.org/team/"
    told = (await ask("GET", ".well-known/oauth-protected-resource")).json
    assert told["public_url"] == "https://example.org/team/"


async def test_a_person_who_is_not_logged_in_logs_in_first(ask: Send) -> None:
    answered = await ask("GET", "sign-in/authorize", query={"client_id": CLIENT_ID})
    assert answered.status == 302
    login = urlsplit(answered.headers["Location"])
    assert login.path.endswith("/login")
    assert "sign-in/authorize" in dict(parse_qsl(login.query))["next"]


async def test_the_page_says_who_asks_and_cannot_be_framed(browser: Browser, ask: Send) -> None:
    name = "<script>alert(1)</script>\u202egood"
    page = await browser.page(await browser.asked(client_id=made_id(name)))
    text = page.body.decode()
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;&lt;U+202E&gt;good</bdi>" in text
    assert "<strong>localhost:3000</strong>" in text
    assert "<script" not in text
    assert "autofocus" not in text, "the person reads first"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://localhost:3000" in policy
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Cache-Control"] == "no-store"


async def test_an_application_of_the_computer_gets_the_answer_on_any_port_and_scheme(
    browser: Browser, ask: Send
) -> None:
    own = "com.example.app://a.b/c"
    uris = ("http://127.0.0.1/x", "http://localhost", own)
    client_id = (await registered(ask, *uris)).json["client_id"]
    for uri in ("http://127.0.0.1:4321/x", "http://localhost:4321/"):
        answered = await browser.answer(await browser.asked(client_id=client_id, redirect_uri=uri))
        assert answered.headers["Location"].startswith(f"{uri}?code=")
    key = await browser.asked(client_id=client_id, redirect_uri=own)
    page = await browser.page(key)
    assert "form-action 'self' com.example.app:" in page.headers["Content-Security-Policy"]
    answered = await browser.answer(key)
    assert answered.headers["Location"].startswith(f"{own}?code=")


async def test_clients_register_themselves_unless_the_operator_says_otherwise(
    browser: Browser, ask: Send
) -> None:
    for document in ("oauth-authorization-server", "openid-configuration"):
        told = (await ask("GET", f".well-known/{document}")).json
        assert told["client_id_metadata_document_supported"] is False
        assert told["registration_endpoint"].endswith("/sign-in/register")
    refused = await browser.authorize(client_id=DOCUMENT)
    assert refused.status == 400
    assert f"the document {DOCUMENT}, and this server fetches no documents" in alert(refused)
    assert "Remove the server from your program and add it again" in alert(refused)


@pytest.mark.parametrize("agent_exec_config", [{"mcp_client_documents": True}])
async def test_a_client_is_known_by_the_address_of_its_document(
    browser: Browser, ask: Send, sign_in: SignIn
) -> None:
    documents = {
        DOCUMENT: {"client_id": DOCUMENT, "client_name": "Web", "redirect_uris": [CALLBACK]},
        "https://client.example/other": {"client_id": DOCUMENT, "redirect_uris": [CALLBACK]},
    }
    fetched: list[str] = []

    async def fetch(url: str) -> bytes | None:
        fetched.append(url)
        return json.dumps(documents[url]).encode() if url in documents else None

    assert sign_in.fetch is not None
    sign_in.fetch = fetch
    told = (await ask("GET", ".well-known/oauth-authorization-server")).json
    assert told["client_id_metadata_document_supported"] is True
    page = await browser.page(await browser.asked(client_id=DOCUMENT))
    assert f"<strong>{DOCUMENT}</strong>" in page.body.decode()
    program = Program(ask, DOCUMENT)
    signed_in = await program.exchange(await browser.code(DOCUMENT))
    assert await works(ask, signed_in.json["access_token"])
    assert set(fetched) == {DOCUMENT}
    assert (await browser.authorize(client_id="https://client.example/other")).status == 400
    missing = await browser.authorize(client_id="https://client.example/missing")
    assert missing.status == 400
    assert "cannot fetch the document https://client.example/missing" in alert(missing)
    assert "its operator can turn these documents off" in alert(missing)
    count = len(fetched)
    for odd in ("https://client.example", "https://a@b.example/x", "https://b.example/../x"):
        assert (await browser.authorize(client_id=odd)).status == 400
    await Program(ask, "https://client.example/missing").exchange("a code")
    assert len(fetched) == count, "nothing is fetched for a program, or for an odd address"


async def test_without_the_sdk_sign_in_says_which_extra_is_missing(
    ask: Send, browser: Browser, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(sdk: str) -> str:
        raise PackageNotFoundError(sdk)

    monkeypatch.setattr(endpoint, "version", version)
    for answered in (
        await ask("GET", ".well-known/oauth-protected-resource"),
        await ask("GET", ".well-known/openid-configuration"),
        await registered(ask),
        await program.exchange("a code"),
        await program.send("revoke", token="a token"),
    ):
        assert (answered.status, answered.json["code"]) == (501, "not_installed")
    page = await browser.authorize()
    assert page.status == 501
    assert b"pip install" in page.body


# -- what is refused -------------------------------------------------------------------------------


ALLOWED_URIS = [
    "http://localhost/",
    "http://127.0.0.1:7777/cb",
    "http://LOCALHOST:3000/callback?x=1",
    "https://elsewhere.example/callback",
    "https://localhost:8443/callback",
    "com.example.app:/oauth2redirect",
    "io.example://callback",
    "cursor://anysphere.cursor-mcp/oauth/callback",
]
FOREIGN_URIS = [
    "http://elsewhere.example/callback",
    "http://127.0.0.1.elsewhere.example/",
    "http://[::1]:3000/callback",
    "http://0.0.0.0/callback",
    "http://claude.ai@127.0.0.1:7777/cb",
    "http://:password@127.0.0.1:7777/cb",
    "http://127.0.0.1:7777/cb#claude.ai",
    "http://127.0.0.1:7777/cb#",
    r"http://claude.ai\@127.0.0.1/cb",
    "https://a@elsewhere.example/",
    "https://elsewhere.example/#x",
    "https://elsewhere.example;default-src/",
    "com.example.app://claude.ai@here/",
    "com.example.app:/#x",
    "cursor://anysphere.cursor-mcp/oauth/other",
    "cursor://anysphere.cursor-mcp/oauth/callback#x",
    *(
        f"{scheme}://a.b/c"
        for scheme in (
            "about",
            "blob",
            "chrome",
            "data",
            "feed",
            "file",
            "filesystem",
            "ftp",
            "intent",
            "javascript",
            "mailto",
            "ms-appinstaller",
            "ms-word.x",
            "tel",
            "vbscript",
            "view-source",
            "ws",
            "wss",
            "x-apple.systempreferences",
        )
    ),
    "javascript:alert(1)",
    "javascript://a/%0aalert(1)",
    "data:text/html,x",
    "mailto:a@b.example",
]


async def test_an_answer_is_never_sent_to_a_foreign_address(
    browser: Browser, ask: Send, sign_in: SignIn
) -> None:
    documents: dict[str, list[str]] = {}

    async def fetch(url: str) -> bytes:
        metadata = {"client_id": url, "redirect_uris": documents[url]}
        return json.dumps(metadata).encode()

    sign_in.fetch = fetch
    for number, uri in enumerate(ALLOWED_URIS + FOREIGN_URIS):
        allowed = uri in ALLOWED_URIS
        documents[f"{DOCUMENT}/{number}"] = [uri]
        assert (await registered(ask, uri)).status == (201 if allowed else 400), uri
        for client_id in (made_id("Agent", uri), f"{DOCUMENT}/{number}"):
            for named in (uri, ""):
                answered = await browser.authorize(client_id=client_id, redirect_uri=named)
                assert answered.status == (302 if allowed else 400), (uri, client_id)


async def test_one_foreign_address_among_others_refuses_a_client(
    browser: Browser, ask: Send
) -> None:
    uris = (CALLBACK, "ftp://elsewhere.example/")
    assert (await registered(ask, *uris)).status == 400
    assert (await browser.authorize(client_id=made_id("Agent", *uris))).status == 400


async def test_an_address_that_differs_from_the_registered_one_gets_no_answer(
    browser: Browser,
) -> None:
    client_id = made_id("Agent", "http://127.0.0.1:7777/cb")
    for uri in (
        "http://claude.ai@127.0.0.1:7777/cb",
        "http://:x@127.0.0.1:7777/cb",
        "http://127.0.0.1:7777/cb#x",
        "http://127.0.0.1:7777/cb?x=1",
        "http://localhost:7777/cb",
        "https://127.0.0.1:7777/cb",
    ):
        answered = await browser.authorize(client_id=client_id, redirect_uri=uri)
        assert answered.status == 400, uri
        assert "Location" not in answered.headers


BAD_REQUESTS: list[dict[str, str]] = [
    {"redirect_uri": "https://elsewhere.example/"},
    {"redirect_uri": "http://localhost:3000/other"},
    {"client_id": "jaec_bad"},
    {"client_id": "jaec_W10="},
    {"client_id": "x" * 5000},
    {"response_type": "token"},
    {"code_challenge": ""},
    {"code_challenge_method": "plain"},
    {"resource": "https://elsewhere.example/mcp"},
]


async def test_a_bad_request_is_explained_to_the_person_and_redirects_nowhere(
    browser: Browser,
) -> None:
    for changed in BAD_REQUESTS:
        answered = await browser.authorize(**changed)
        assert answered.status == 400, changed
        assert b"This program cannot sign in" in answered.body
        assert "frame-ancestors 'none'" in answered.headers["Content-Security-Policy"]


BAD_EXCHANGES = [
    {"code_verifier": "w" * 64},
    {"code_verifier": ""},
    {"redirect_uri": "http://localhost:3000/other"},
    {"redirect_uri": ""},
    {"client_id": DOCUMENT},
    {"code": "another"},
    {"grant_type": "password"},
]


async def test_a_code_is_for_the_client_that_began(
    agent: Agent, browser: Browser, program: Program
) -> None:
    code = await browser.code()
    for changed in BAD_EXCHANGES:
        fields = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        fields |= {"redirect_uri": CALLBACK, **changed}
        answered = await program.send("token", **{k: v for k, v in fields.items() if v})
        assert answered.status == 400, changed
        assert (await agent.get("tokens")).json["tokens"] == []
    assert (await program.exchange(code)).status == 200


async def test_a_code_that_is_used_twice_ends_its_token(
    ask: Send, browser: Browser, program: Program
) -> None:
    code = await browser.code()
    signed_in = (await program.exchange(code)).json
    assert await works(ask, signed_in["access_token"])
    assert (await program.exchange(code)).json["error"] == "invalid_grant"
    assert not await works(ask, signed_in["access_token"])


async def test_a_code_expires(browser: Browser, program: Program, sign_in: SignIn) -> None:
    sign_in.granted = Pending(0)
    code = await browser.code()
    assert (await program.exchange(code)).json["error"] == "invalid_grant"


async def test_a_refresh_token_that_is_used_twice_ends_its_token(
    ask: Send, browser: Browser, program: Program
) -> None:
    first = (await program.exchange(await browser.code())).json
    second = (await program.refresh(first["refresh_token"])).json
    assert await works(ask, second["access_token"])
    assert (await program.refresh(first["refresh_token"])).json["error"] == "invalid_grant"
    assert not await works(ask, second["access_token"])
    assert (await program.refresh(second["refresh_token"])).json["error"] == "invalid_grant"


async def test_a_refresh_token_is_its_clients(
    ask: Send, browser: Browser, program: Program
) -> None:
    signed_in = (await program.exchange(await browser.code())).json
    other = Program(ask, made_id("Other"))
    assert (await other.refresh(signed_in["refresh_token"])).json["error"] == "invalid_grant"
    assert (await other.send("revoke", token=signed_in["refresh_token"])).status == 200
    assert await works(ask, signed_in["access_token"])
    assert not await works(ask, signed_in["refresh_token"])
    assert (await program.send("revoke", token=signed_in["refresh_token"])).status == 200
    assert not await works(ask, signed_in["access_token"])


async def test_a_secret_expires_before_its_token(
    ask: Send, sign_in: SignIn, history_dir: Path
) -> None:
    caller = Caller(username="ada", display_name="Ada", access="full")
    asked = MintToken(label="t", scopes=["exec:scratch"])
    _, secret = await sign_in.tokens.mint(asked, caller, secret_seconds=0)
    answered = await ask("POST", "mcp", headers=bearer(secret), body="{}")
    assert answered.status == 401
    assert 'error="invalid_token"' in answered.headers["WWW-Authenticate"]
    assert ledger(history_dir, AccessDenied) == [], "that is ordinary"


async def test_nobody_answers_for_another_person(open_browser: Callable[[], Browser]) -> None:
    one, other = open_browser(), open_browser()
    key = await one.asked()
    assert (await other.page(key)).status == 404
    assert (await other.answer(key)).status == 404
    assert (await one.answer(key)).status == 303
    assert (await one.answer(key)).status == 404, "an answer is given once"


async def test_a_page_that_is_open_outlasts_any_number_of_other_requests(
    open_browser: Callable[[], Browser],
) -> None:
    one, other = open_browser(), open_browser()
    key = await one.asked()
    for _ in range(2 * MAX_WAITING):
        await one.asked()
        answered = await other.answer(await other.asked(), decision="deny")
        assert answered.status == 303
    assert (await one.page(key)).status == 200
    assert (await one.answer(key)).status == 303


async def test_only_the_server_makes_a_page_of_consent(browser: Browser, sign_in: SignIn) -> None:
    key = await browser.asked()
    for other in ("", key[:-1], key[:-1] + ("0" if key[-1] != "0" else "1"), f"0{key}"):
        assert (await browser.page(other)).status == 404, other
    asked = sign_in.asked(key)
    assert asked is not None
    elsewhere = SignIn(sign_in.tokens, sign_in.fetch).signed(asked)
    assert (await browser.page(elsewhere)).status == 404


def test_what_waits_is_bounded_for_each_person() -> None:
    pending = Pending[int](60)
    pending.put("ada's", 0, "ada")
    for number in range(2 * MAX_WAITING):
        pending.put(f"bob's {number}", number, "bob")
    assert pending.get("ada's") == 0
    kept = [number for number in range(2 * MAX_WAITING) if pending.get(f"bob's {number}")]
    assert kept == list(range(MAX_WAITING, 2 * MAX_WAITING))


async def test_an_answer_comes_from_the_page_and_from_a_person(
    agent: Agent, ask: Send, browser: Browser
) -> None:
    key = await browser.asked()
    assert (await browser.answer(key, _xsrf="wrong")).status == 403
    foreign = {"Origin": "https://elsewhere.example"}
    assert (await browser.answer(key, foreign)).status == 403
    assert (await browser.answer(key, nonce="")).status == 403
    assert (await browser.answer(key, {"Sec-Fetch-Dest": "empty"})).status == 403
    _, token = await mint(agent)
    query = {"client_id": CLIENT_ID}
    for headers in (bearer(token), {"Authorization": "Bearer jaex_wrong"}):
        status = 403 if token in headers["Authorization"] else 401
        answered = await ask("GET", "sign-in/authorize", query=query, headers=headers)
        assert answered.status == status
        assert (await browser.answer(key, headers)).status == status
    assert (await browser.answer(key)).status == 303


BAD_FORMS = [
    ({"scope": ""}, "What it may do: Choose"),
    ({"scope": "everything"}, "What it may do: there is no scope"),
    ({"patterns": "../x"}, "What it may do: '../x' is not a pattern"),
    ({"label": " "}, "Name: "),
    ({"expires_in": "99999999"}, "How long: "),
    ({"expires_in": "soon"}, "How long: "),
    ({"caps.kernels": "0"}, "Sessions open at once: "),
    ({"caps.kernels": "many"}, "Sessions open at once: "),
    ({"approval": "never"}, "What needs your approval before it runs: "),
    ({"edits": "never"}, "Edits of notebooks: "),
]


async def test_a_form_that_is_wrong_is_shown_again(browser: Browser) -> None:
    key = await browser.asked()
    for changed, message in BAD_FORMS:
        answered = await browser.answer(key, **changed)
        assert answered.status == 400, changed
        assert alert(answered).startswith(message), changed
        assert b'value="My agent"' in answered.body or "label" in changed
    assert (await browser.answer(key)).status == 303


@pytest.mark.parametrize("agent_exec_config", [{"approval": {"notebook": "first"}}])
async def test_open_notebooks_are_offered_and_the_one_in_front_is_ticked(
    ask: Send, browser: Browser, jp_serverapp: Any, jp_ws_fetch: Any
) -> None:
    [app] = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    page = Page(await jp_ws_fetch(*CHANNEL), lambda asked: None)
    open_notebooks = [
        shown("many*.ipynb", unused_seconds=0.0),
        shown('in "front".ipynb', unused_seconds=1.0),
        shown("behind.ipynb", unused_seconds=60.0),
    ]
    await page.announce(*open_notebooks)
    async with asyncio.timeout(60):
        while len(app.services.tabs.recent()) < len(open_notebooks):
            await asyncio.sleep(0)
    key = await browser.asked()
    consent = (await browser.page(key)).body
    assert ticks(consent) == {"in &quot;front&quot;.ipynb": True, "behind.ipynb": False}
    assert "run code and change cells (you approve the first time)" in words(consent)
    cookie = {"Cookie": (await browser.person()).cookie}
    access = await ask("GET", "access", headers=cookie)
    assert ticks(access.body) == {"in &quot;front&quot;.ipynb": False, "behind.ipynb": False}

    # What was ticked stays so, although it was closed meanwhile.
    await page.leave()
    async with asyncio.timeout(60):
        while app.services.tabs.recent():
            await asyncio.sleep(0)
    again = await browser.answer(key, notebook="behind.ipynb", expires_in="soon")
    assert ticks(again.body) == {"behind.ipynb": True}
    assert (await browser.answer(key, notebook="behind.ipynb", scope="")).status == 303
    assert ticks((await browser.page(await browser.asked())).body) == {}


def ticks(page: bytes) -> dict[str, bool]:
    """Return the notebooks that a form offers, and whether they are ticked."""
    found = re.findall(r'name="notebook" value="([^"]*)"\s*(checked)?', page.decode())
    return {path: checked != "" for path, checked in found}


def words(page: bytes) -> str:
    return " ".join(re.sub("<[^>]*>", "", page.decode()).split())


async def test_a_person_can_refuse(agent: Agent, browser: Browser) -> None:
    answered = await browser.answer(await browser.asked(), decision="deny")
    told = sent(answered)
    assert told["error"] == "access_denied"
    assert told["state"] == "a state"
    assert told["iss"].endswith("/api/agent-exec")
    assert "code" not in told
    assert (await agent.get("tokens")).json["tokens"] == []


@pytest.mark.parametrize("agent_exec_config", [{"decision_passphrase_hash": HASHED}])
async def test_the_passphrase_is_needed_to_give_access(browser: Browser) -> None:
    key = await browser.asked()
    assert b'name="passphrase"' in (await browser.page(key)).body
    for wrong in ({}, {"passphrase": "wrong"}):
        answered = await browser.answer(key, **wrong)
        assert answered.status == 403
        assert b"This is not the passphrase" in answered.body
    assert (await browser.answer(key, passphrase=PASSWORD)).status == 303
    key = await browser.asked()
    assert (await browser.answer(key, decision="deny")).status == 303


async def test_clients_register_and_nothing_is_kept_of_them(ask: Send) -> None:
    answered = await registered(ask)
    assert answered.status == 201
    assert answered.json["client_id"] == CLIENT_ID
    assert answered.json["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in answered.json
    assert (await registered(ask, client_name="x" * 5000)).status == 400
    assert (await registered(ask, client_name="x" * 20_000)).status == 413
    assert (await ask("POST", "sign-in/other", body="")).status == 404
