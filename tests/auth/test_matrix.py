"""Who comes in: each credential at each verb of each route, on differently configured servers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.asking import Answered, Send
from tests.auth.access_asking import HASHED, NOWHERE, PASSWORD, VERBS, LoggedIn, Verb
from tests.auth.matrix_table import EXPECTED, JUPYTERS_OWN
from tests.auth.minting import MINTED, PAST, bearer, change_kept

FOREIGN = "https://elsewhere.example"
UNKNOWN = "jaex_t_01JD0000000000000000000000_" + "0" * 64
PICTURE = (
    "import base64\n"
    "png = base64.b64encode(b'\\x89PNG\\r\\n\\x1a\\n' + b'{who}').decode()\n"
    "display({{'image/png': png}}, raw=True)"
)

Things = dict[str, str]
"""What the parts of a route's path name."""


@dataclass(frozen=True)
class Credential:
    """What a request shows, and what it asks for."""

    name: str
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    status: int | None = None
    """What it gets everywhere; None is what the table says under its name."""
    things: Things | None = None
    """What it asks about; None is what is the agent's."""

    def expected(self, verb: Verb) -> int:
        return self.status or EXPECTED[f"{verb.method} {verb.template}"][self.name]


def refused(token: str, password: str, ended: dict[str, str]) -> list[Credential]:
    """Return the credentials that are refused everywhere."""

    def nobody(name: str, status: int = 401, **shown: Any) -> Credential:
        return Credential(name, status=status, **shown)

    return [
        nobody("none"),
        nobody("bad token", headers={"Authorization": "token wrong"}),
        nobody("empty token", headers={"Authorization": "token "}),
        nobody("bad token in the query", query={"token": "wrong"}),
        nobody("password as in Basic", headers={"Authorization": "Basic YTpi"}),
        nobody("forged cookie", headers={"Cookie": 'username-127-0-0-1="2|1:0|forged"'}),
        nobody("unknown agent token", headers=bearer(UNKNOWN)),
        nobody("no agent token at all", headers={"Authorization": "jaex_"}),
        nobody("bad secret", headers=bearer(token[:-1] + ("0" if token[-1] != "0" else "1"))),
        nobody("secret in capitals", headers=bearer(token[:-64] + token[-64:].upper() + "A")),
        nobody("secret and more", headers=bearer(token + "0")),
        nobody("expired", headers=bearer(ended["expired"])),
        nobody("revoked", headers=bearer(ended["revoked"])),
        nobody("in the query", 400, query={"token": token}),
        nobody("in another argument", 400, query={"q": f"x {token} y"}),
        nobody("in the query and the header", 400, query={"token": token}, headers=bearer(token)),
        nobody(
            "a person's and in the query", 400, query={"token": token}, headers=bearer(password)
        ),
        nobody("foreign Origin", 403, headers={**bearer(token), "Origin": FOREIGN}),
        nobody("Origin null", 403, headers={**bearer(token), "Origin": "null"}),
        nobody("none, foreign Host", 403, headers={"Host": "elsewhere.example"}),
        nobody("foreign Host", 403, headers={**bearer(token), "Host": "elsewhere.example"}),
    ]


def in_browser(person: LoggedIn, token: str, expired: str) -> list[Credential]:
    cookie = {"Cookie": person.cookie}
    xsrf = {**cookie, "X-XSRFToken": person.xsrf}
    return [
        Credential("cookie", cookie),
        Credential("xsrf", xsrf),
        Credential("foreign Origin", {**xsrf, "Origin": FOREIGN}, status=403),
        Credential("right", {**xsrf, **bearer(token)}),
        Credential("cookie and expired", {**xsrf, **bearer(expired)}, status=401),
    ]


@pytest.fixture(params=["default", "password", "authenticated"])
def provider(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any], provider: str) -> dict[str, Any]:
    config = {**jp_server_config}
    config["ServerApp"]["allow_unauthenticated_access"] = provider != "authenticated"
    if provider == "password":
        config["PasswordIdentityProvider"] = {"hashed_password": HASHED, "token": ""}
    return config


class Person:
    """Asks as a person in JupyterLab does."""

    def __init__(self, ask: Send, logged_in: LoggedIn) -> None:
        self._ask = ask
        self._headers = {"Cookie": logged_in.cookie, "X-XSRFToken": logged_in.xsrf}

    async def does(self, method: str, path: str, said: Any = None, **headers: str) -> Any:
        headers = headers or self._headers
        body = None if said is None else json.dumps(said)
        answered = await self._ask(method, path, headers=headers, body=body)
        assert answered.status < 300, answered.body
        return answered.json

    async def mints(self, *scopes: str, **asked: Any) -> str:
        minted = await self.does("POST", "tokens", {"label": "t", "scopes": scopes, **asked})
        MINTED.append(minted["secret"].rpartition("_")[2])
        return str(minted["secret"])

    async def has_run(
        self, target: Any, who: str, *, trial: bool = False, **headers: str
    ) -> Things:
        """Open a session, run something there that leaves a picture, and name both."""
        asked = {"agent": {"name": who}, "target": target}
        session = await self.does("POST", "sessions", asked, **headers)
        route = f"sessions/{session['id']}/executions"
        run = {"source": PICTURE.format(who=who), "placement": "none", "trial": trial}
        done = await self.does("POST", route, run, **headers)
        return {
            "session_id": session["id"],
            "execution_id": done["id"],
            "digest": done["images"][0]["url"].rpartition("/")[2],
            "kernel_id": done["kernel"]["id"],
        }


RIGHT = ("exec:scratch", "files", "exec:notebook:reports/*", "edit:notebook:reports/*")
READ = ("history:read:all", "read:notebook:reports/*")


@dataclass(frozen=True)
class Scene:
    """A server on which people and agents have done something."""

    tokens: dict[str, str]
    agents: Things
    persons: Things
    limited: Things
    """Of the agent whose token is at its rate."""
    looked: Things
    """Of the agent that may only look."""

    def credentials(self, person: LoggedIn, password: str) -> list[Credential]:
        right = self.tokens["right"]
        shown = [
            *refused(right, password, self.tokens),
            *in_browser(person, right, self.tokens["expired"]),
            Credential("right", bearer(right)),
            Credential("right", {"Authorization": f"token {right}"}),
            Credential("read", bearer(self.tokens["read"])),
            Credential("wrong", bearer(right), things=self.persons),
            Credential("rate", bearer(self.tokens["rate"]), things=self.limited),
            Credential("look", bearer(self.tokens["look"]), things=self.looked),
        ]
        if password:
            header = {"Authorization": f"token {password}"}
            shown += [
                Credential("token", header),
                Credential("token", bearer(password)),
                Credential("token", query={"token": password}),
                Credential("token", {**header, "Origin": FOREIGN}),
            ]
        return shown


async def set_scene(ada: Person, history_dir: Path, root_dir: Path) -> Scene:
    for path in ("reports/a.ipynb", "private/b.ipynb"):
        (root_dir / path).parent.mkdir()
        nbformat.write(nbformat.v4.new_notebook(), root_dir / path)
    tokens = {
        "right": await ada.mints(*RIGHT),
        "read": await ada.mints(*READ),
        "rate": await ada.mints(
            "exec:notebook", "edit:notebook", caps={"executions_per_minute": 1}
        ),
        "look": await ada.mints("look:notebook:reports/*"),
        "expired": await ada.mints(*RIGHT),
        "revoked": await ada.mints(*RIGHT),
    }
    ids = {each["id"]: each for each in (await ada.does("GET", "tokens"))["tokens"]}
    revoked, expired = (next(id for id in ids if id in tokens[n]) for n in ("revoked", "expired"))
    await ada.does("DELETE", f"tokens/{revoked}")
    change_kept(history_dir, expired, expires_at=PAST)
    agents = await ada.has_run({"kind": "scratch"}, "agent", **bearer(tokens["right"]))
    persons = await ada.has_run({"kind": "scratch"}, "person")
    notebook = {"kind": "notebook", "path": "reports/a.ipynb"}
    limited = await ada.has_run(notebook, "limited", **bearer(tokens["rate"]))
    looked = await ada.has_run(notebook, "look", trial=True, **bearer(tokens["look"]))
    nowhere = {name: NOWHERE[name] for name in ("token_id", "filename")}
    return Scene(
        tokens,
        agents={**agents, **nowhere, "path": "reports/a.ipynb"},
        persons={**persons, **nowhere, "path": "private/b.ipynb"},
        limited={**limited, **nowhere, "path": "reports/a.ipynb"},
        looked={**looked, **nowhere, "path": "reports/a.ipynb"},
    )


def asked(verb: Verb, credential: Credential) -> str | None:
    """Return the body: what tells the case apart, or else what no route knows."""
    name = f"{verb.method} {verb.template}"
    if credential.name == "wrong" and name == "POST sessions":
        target = {"kind": "notebook", "path": "private/b.ipynb"}
        return json.dumps({"agent": {"name": "a"}, "target": target})
    if credential.name == "rate" and name == "POST sessions/{session_id}/executions":
        return json.dumps({"source": "1", "placement": "none"})
    return verb.body


def faults(
    name: str, verb: Verb, expected: int, answered: Answered, *, is_agent: bool
) -> list[str]:
    """Say what is wrong with an answer."""
    where = f"{name} at {verb.method} {verb.template}"
    if answered.status != expected:
        return [f"{where}: {answered.status} instead of {expected}: {answered.body[:300]!r}"]
    found = [
        f"{where}: has {header}"
        for header in answered.headers
        if header.startswith("Access-Control-") or header == "X-Powered-By"
    ]
    if "Set-Cookie" in answered.headers and (is_agent or expected >= 400):
        found.append(f"{where}: has Set-Cookie")
    if expected < 400:
        return found
    if set(answered.json) != {"message", "reason", "code", "detail"}:
        found.append(f"{where}: is not a refusal of ours: {answered.body!r}")
    if "Location" in answered.headers:
        found.append(f"{where}: has Location")
    if (expected == 401) != ("WWW-Authenticate" in answered.headers):
        found.append(f"{where}: WWW-Authenticate belongs to 401 and to nothing else")
    if (expected == 429) != ("Retry-After" in answered.headers):
        found.append(f"{where}: Retry-After belongs to 429")
    if not answered.headers["Content-Type"].startswith("application/json"):
        found.append(f"{where}: is {answered.headers['Content-Type']}")
    return found


def test_each_verb_of_each_route_is_in_the_table() -> None:
    assert sorted(EXPECTED) == sorted(f"{verb.method} {verb.template}" for verb in VERBS)


async def test_each_route_lets_in_whom_it_should_and_nobody_else(
    ask: Send,
    send: Send,
    log_in: Callable[[str], Awaitable[LoggedIn]],
    history_dir: Path,
    jp_root_dir: Path,
    jp_serverapp: Any,
) -> None:
    password = jp_serverapp.identity_provider.token
    person = await log_in(password or PASSWORD)
    scene = await set_scene(Person(ask, person), history_dir, jp_root_dir)
    sessions_before = sorted((history_dir / "sessions").iterdir())
    kernels_before = jp_serverapp.kernel_manager.list_kernel_ids()
    wrong: list[str] = []
    for credential in scene.credentials(person, password):
        things = credential.things or scene.agents
        is_agent = "jaex_" in credential.headers.get("Authorization", "")
        for verb in VERBS:
            answered = await ask(
                verb.method,
                verb.at(things),
                headers=credential.headers,
                query=credential.query,
                body=asked(verb, credential),
            )
            expected = credential.expected(verb)
            wrong += faults(credential.name, verb, expected, answered, is_agent=is_agent)
    wrong += await jupyters_own(send, scene)
    assert not wrong, "\n".join(wrong)
    assert sorted((history_dir / "sessions").iterdir()) == sessions_before
    assert jp_serverapp.kernel_manager.list_kernel_ids() == kernels_before


async def jupyters_own(send: Send, scene: Scene) -> list[str]:
    """Say at which of Jupyter's own routes an agent token is more than no credential."""
    found: list[str] = []
    for line in JUPYTERS_OWN.strip().splitlines():
        method, template = line.split()
        path = template.format(**scene.agents)
        for name in ("right", "read"):
            token = scene.tokens[name]
            for headers in (bearer(token), {"Authorization": f"token {token}"}):
                body = None if method == "GET" else "{}"
                refusal = await send(method, path, headers=headers, body=body)
                to_login = refusal.status == 302 and "/login" in refusal.headers["Location"]
                if refusal.status not in (401, 403) and not to_login:
                    found.append(f"{name} at {method} {path}: {refusal.status}")
                cookies = refusal.headers.get_list("Set-Cookie")
                if any(not cookie.startswith("_xsrf=") for cookie in cookies):
                    found.append(f"{name} at {method} {path}: gets a cookie")
    return found


@pytest.mark.parametrize("provider", ["default"])
async def test_a_form_cannot_bring_an_agent_token_to_the_identity_provider(ask: Send) -> None:
    answered = await ask(
        "POST",
        "sessions",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=f"token={UNKNOWN}",
    )
    assert (answered.status, answered.json["detail"]) == (400, {"field": "token"})
    assert "Set-Cookie" not in answered.headers
