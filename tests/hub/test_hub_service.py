"""The hub's service at a real JupyterHub below a path, with its proxy and users' real servers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import psutil
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import ValidationError

from jupyter_agent_exec.cli.exit_codes import UNREACHABLE
from tests.auth.access_asking import hidden_fields
from tests.hub.real_hub import SERVICE_TOKEN, RealHub, real_hub
from tests.hub.service_users import CONFIGURATION, RIGHTS_BY_GROUP, Person, service
from tests.mcp.mcp_clients import CLIENTS, LATEST, opened, text_of
from tests.mcp.signing_in import SigningIn
from tests.real_server import Gate, until


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHub]:
    more = CONFIGURATION + RIGHTS_BY_GROUP
    with real_hub(tmp_path_factory.mktemp("hub"), more, "/team/") as hub:
        try:
            yield hub
        finally:
            hub.stop_servers()


class Program(SigningIn):
    """A program with the official Python SDK, which a person signs in."""

    def __init__(self, person: Person, server: str = "") -> None:
        named = f"/{server}" if server else ""
        super().__init__(f"{service(person.hub)}/mcp{named}", person.agree)
        self.person = person

    @property
    def access_token(self) -> str:
        assert self.kept is not None
        return self.kept.access_token

    @property
    def token_id(self) -> str:
        return "_".join(self.access_token.split("_")[1:3])

    @asynccontextmanager
    async def connected(self, mode: str = LATEST) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {self.access_token}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=120) as http,
            Client(streamable_http_client(self._url, http_client=http), mode=mode) as client,
        ):
            yield client


SignIn = Callable[..., Program]


@pytest.fixture(scope="module")
def sign_in(hub: RealHub) -> Iterator[SignIn]:
    """Signs a program in for a person; the same person has one browser."""
    people: dict[str, Person] = {}

    def sign_in(name: str, server: str = "") -> Program:
        person = people.setdefault(name, Person(hub, name))
        program = Program(person, server)
        assert "execute" in asyncio.run(program.tools())
        return program

    yield sign_in
    for person in people.values():
        person.browser.close()


@pytest.fixture(scope="module")
def ada(sign_in: SignIn) -> Program:
    return sign_in("ada")


@pytest.fixture(scope="module")
def bob(sign_in: SignIn) -> Program:
    return sign_in("bob")


@pytest.fixture(scope="module")
def cleo(sign_in: SignIn) -> Program:
    """Her server has a passphrase."""
    return sign_in("cleo")


WHO = "import os; (os.environ['JUPYTERHUB_USER'], os.environ['JUPYTERHUB_SERVER_NAME'])"


async def run(client: Client, source: str = WHO) -> str:
    session = await opened(client)
    ran = await client.call_tool("execute", {"session_id": session, "source": source})
    await client.call_tool("stop", {"session_id": session})
    return text_of(ran)


async def who_works(program: Program) -> str:
    async with program.connected() as client:
        return (await run(client)).splitlines()[0]


def ask(
    method: str, url: str, token: str = "", body: Any = None, **headers: str
) -> httpx2.Response:
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return httpx2.request(method, url, headers=headers, json=body, timeout=60, trust_env=False)


def mint_directly(hub: RealHub, name: str) -> str:
    """Return an agent token that its person has made at their own server."""
    url = f"{hub.public}/user/{name}/api/agent-exec/tokens"
    said = {"label": "direct", "scopes": ["exec:scratch", "history:read:all"]}
    minted = ask("POST", url, hub.user_token(name), said)
    assert minted.status_code == 201, minted.text
    return str(minted.json()["secret"])


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.mark.parametrize("mode", ["legacy", LATEST])
async def test_an_agent_works_in_the_persons_own_server(ada: Program, mode: str) -> None:
    async with ada.connected(mode) as client:
        assert (await run(client)).startswith("('ada', '')")


@pytest.mark.parametrize("sdk", ["client", "sdk"])
def test_the_typescript_sdks_sign_in_and_renew(hub: RealHub, ada: Program, sdk: str) -> None:
    script = str(CLIENTS / "typescript_sign_in.mjs")
    with subprocess.Popen(
        ["node", script, sdk, f"{service(hub)}/mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "it did not ask for a browser"
        out, _ = process.communicate(f"{ada.person.agree(address)}\n", timeout=60)
    assert process.returncode == 0, out
    told = json.loads(out)
    assert "execute" in told["tools"]
    assert told["first"].split("_")[2] == told["second"].split("_")[2], "it is the same token"
    assert told["first"] != told["second"]


async def test_agents_of_several_people_work_at_once(
    ada: Program, bob: Program, cleo: Program
) -> None:
    found = await asyncio.gather(*map(who_works, (ada, bob, cleo)))
    assert found == ["('ada', '')", "('bob', '')", "('cleo', '')"]


async def test_a_named_server_has_an_address_of_its_own(sign_in: SignIn, hub: RealHub) -> None:
    program = await asyncio.to_thread(sign_in, "bob", "second")
    assert await who_works(program) == "('bob', 'second')"
    refused = ask("POST", f"{service(hub)}/mcp", program.access_token, PING)
    assert refused.status_code == 401
    hub.stop_server("bob", "second")


async def test_progress_comes_while_code_runs_and_a_client_that_leaves_cancels(
    hub: RealHub, bob: Program, gate: Gate
) -> None:
    told = asyncio.Event()

    async def progress(_progress: float, _total: float | None, _message: str | None) -> None:
        told.set()

    async with bob.connected() as client:
        session = await opened(client)
        asked = {"session_id": session, "source": f"print('first', flush=True)\n{gate.source}"}
        calling = asyncio.create_task(
            client.call_tool("execute", asked, progress_callback=progress)
        )
        await asyncio.wait_for(asyncio.to_thread(gate.wait_until_it_runs), 60)
        await asyncio.wait_for(told.wait(), 60)
        assert not calling.done(), "progress came before the answer"
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    ran = hub.ask_server("bob", "GET", f"sessions/{session}/executions").json()["executions"]
    ended = hub.ask_server("bob", "GET", f"executions/{ran[0]['id']}?wait=60").json()
    assert ended["status"] == "interrupted"


def test_a_page_of_another_origin_is_refused(hub: RealHub, ada: Program) -> None:
    url, token = f"{service(hub)}/mcp", ada.access_token
    for method in ("GET", "POST", "DELETE"):
        refused = ask(method, url, token, PING, Origin="https://elsewhere.example")
        assert refused.status_code == 403, method
    passed = ask("POST", url, token, PING, Origin=hub.origin)
    assert (passed.status_code, passed.json()["jsonrpc"]) == (400, "2.0"), "the server's own answer"


def test_a_request_without_a_token_learns_where_to_sign_in(hub: RealHub) -> None:
    for path in ("", "/second"):
        refused = ask("POST", f"{service(hub)}/mcp{path}", body=PING)
        assert refused.status_code == 401
        found = re.search('resource_metadata="([^"]+)"', refused.headers["WWW-Authenticate"])
        assert found is not None
        told = ask("GET", found[1]).json()
        assert told["resource"] == f"{service(hub)}/mcp{path}"
        assert told["authorization_servers"] == [service(hub)]
    assert ask("POST", f"{service(hub)}/mcp?token={JAEX}", body=PING).status_code == 400


JAEX = "jaex_t_01M878TNYTTTYWMASZD5971NZ0_" + "0" * 64


@pytest.fixture(scope="module")
def tokens(hub: RealHub, ada: Program, bob: Program) -> dict[str, str]:
    """What somebody may hold who wants to reach bob's server."""
    assert ada.kept is not None
    assert ada.kept.refresh_token is not None
    return {
        "nothing": "",
        "made up": JAEX,
        "another id": f"jaex_{bob.token_id}_{ada.access_token.rpartition('_')[2]}",
        "ada's": ada.access_token,
        "ada's refresh token": ada.kept.refresh_token,
        "ada's hub token": hub.user_token("ada"),
    }


@pytest.mark.parametrize(
    "holder",
    ["nothing", "made up", "another id", "ada's", "ada's refresh token", "ada's hub token"],
)
def test_nobody_reaches_the_server_of_another(
    hub: RealHub, bob: Program, tokens: dict[str, str], holder: str
) -> None:
    token = tokens[holder]
    for server in ("bob", "second", "..%2Fbob", "ada%2f..%2fbob"):
        for method in ("GET", "POST", "DELETE"):
            refused = ask(method, f"{service(hub)}/mcp/{server}", token, PING)
            assert refused.status_code in (401, 404), (server, method, refused.text)
    for path in ("mcp", "sessions", "tokens", "status", f"tokens/{bob.token_id}"):
        for method in ("GET", "POST", "DELETE"):
            refused = ask(method, f"{hub.public}/user/bob/api/agent-exec/{path}", token, PING)
            assert refused.status_code in (401, 403, 404, 405), (path, method, refused.text)
    if holder != "ada's":
        refused = ask("POST", f"{service(hub)}/mcp", token, PING)
        assert refused.status_code == 401
    refused = ask("PUT", f"{service(hub)}/pause", token, {"paused": True})
    assert refused.status_code in (401, 403)


async def test_an_agent_sees_nothing_of_anothers_sessions(ada: Program, bob: Program) -> None:
    async with bob.connected() as client:
        session = await opened(client)
    async with ada.connected() as client:
        asked = {"session_id": session, "source": "1"}
        assert (await client.call_tool("execute", asked)).is_error
        listed = await client.call_tool("list_sessions", {})
        assert session not in text_of(listed)


def test_the_token_of_the_service_is_of_no_use_at_the_server_itself(
    hub: RealHub, ada: Program
) -> None:
    url = f"{hub.public}/user/ada/api/agent-exec/mcp"
    assert ask("POST", url, ada.access_token, PING).status_code == 401


def authorize_url(hub: RealHub, **changed: str) -> str:
    registered = ask(
        "POST",
        f"{service(hub)}/sign-in/register",
        body={"client_name": "Other", "redirect_uris": ["http://localhost:9/"]},
    )
    query = {
        "response_type": "code",
        "client_id": registered.json()["client_id"],
        "redirect_uri": "http://localhost:9/",
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
        **changed,
    }
    return f"{service(hub)}/sign-in/authorize?{urlencode(query)}"


def test_a_person_is_asked_only_for_themselves(hub: RealHub, ada: Program, bob: Program) -> None:
    page = ada.person.open(authorize_url(hub))
    assert "your Jupyter server" in page.text
    assert "/sign-in/consent" in page.url.path
    bob.person.open(service(hub) + "/")
    assert bob.person.browser.get(page.url).status_code == 404
    form = {**hidden_fields(page.text), "decision": "allow"}
    mine = hidden_fields(bob.person.open(authorize_url(hub)).text)
    answered = bob.person.browser.post(page.url, data=form | mine | {"key": form["key"]})
    assert answered.status_code == 404
    assert bob.person.browser.post(page.url, data=form).status_code == 403  # of another's page
    for server in ("..", "a%2Fb", "../bob"):
        resource = f"{service(hub)}/mcp/{server}"
        assert ada.person.open(authorize_url(hub, resource=resource)).status_code == 404
    for changed in (
        {"resource": "https://else.example/mcp"},
        {"redirect_uri": "http://claude.ai@localhost:9/"},
        {"redirect_uri": "http://localhost:9/#claude.ai"},
    ):
        assert ada.person.open(authorize_url(hub, **changed)).status_code == 400


def test_a_person_lists_and_revokes_what_they_granted(
    hub: RealHub, sign_in: SignIn, bob: Program
) -> None:
    program = sign_in("ada")
    url, mine = f"{service(hub)}/", program.person
    page = mine.open(url)
    assert page.text.count(program.token_id) == 1
    assert program.token_id not in bob.person.open(url).text
    bobs = bob.person.open(url)
    for id in (program.token_id, "t_01M878TNYTTTYWMASZD5971NZ0", "x' OR 1", "\0", "é" * 9999):
        assert bob.person.revoke(bobs, id).status_code == 404, id
    assert ask("POST", f"{service(hub)}/mcp", program.access_token, PING).status_code == 400
    revoked = mine.revoke(page, program.token_id)
    assert "has no access any more" in revoked.text
    assert program.token_id not in mine.open(url).text
    assert ask("POST", f"{service(hub)}/mcp", program.access_token, PING).status_code == 401
    kept = hub.ask_server("ada", "GET", "tokens").json()["tokens"]
    assert {each["id"]: each["status"] for each in kept}[program.token_id] == "revoked"


async def test_a_token_that_is_revoked_at_the_server_ends_here(
    hub: RealHub, sign_in: SignIn
) -> None:
    program = await asyncio.to_thread(sign_in, "ada")
    hub.ask_server("ada", "DELETE", f"tokens/{program.token_id}").raise_for_status()
    refused = ask("POST", f"{service(hub)}/mcp", program.access_token, PING)
    assert (refused.status_code, "revoked" in refused.text) == (401, True)
    assert program.token_id not in program.person.open(f"{service(hub)}/").text


async def test_a_refresh_token_that_is_used_twice_ends_the_grant(sign_in: SignIn) -> None:
    program = await asyncio.to_thread(sign_in, "ada")
    first = program.kept
    await program.renew()
    assert await who_works(program) == "('ada', '')"
    second, program.kept = program.kept, first
    with pytest.raises(ValidationError):
        await program.renew()
    program.kept = second
    with pytest.raises(ValidationError):
        await program.renew()


async def test_access_ends_with_the_persons_own(hub: RealHub, sign_in: SignIn, gate: Gate) -> None:
    program, url = await asyncio.to_thread(sign_in, "dora"), f"{service(hub)}/mcp"
    program.person.browser.get(f"{hub.public}/hub/logout").raise_for_status()
    await asyncio.to_thread(until_answered, url, program, 401)
    program.person.open(f"{service(hub)}/").raise_for_status()
    await asyncio.to_thread(until_answered, url, program, 400)
    direct = mint_directly(hub, "dora")
    async with program.connected() as client:
        session = await opened(client)
        asked = {"session_id": session, "source": gate.source}
        calling = asyncio.create_task(client.call_tool("execute", asked))
        await asyncio.to_thread(gate.wait_until_it_runs)
        assert ask("POST", url, program.access_token, PING).status_code == 400
        take(hub, "agents", "dora")
        assert "no failure" not in await failure(calling)
    assert ask("POST", url, program.access_token, PING).status_code == 401
    server = f"{hub.public}/user/dora/api/agent-exec/sessions/{session}"
    assert ask("GET", server, direct).status_code == 200, "it does not come from the service"
    take(hub, "members", "dora")
    await asyncio.to_thread(until, lambda: ask("GET", server, direct).status_code == 401)
    assert "The hub does not let the user" in ask("GET", server, direct).json()["message"]
    hub.stop_server("dora")


def until_answered(url: str, program: Program, status: int) -> None:
    """Wait until a program's access is answered like this."""
    until(lambda: ask("POST", url, program.access_token, PING).status_code == status, 20)


def take(hub: RealHub, group: str, name: str) -> None:
    """Take from a person what their group may do."""
    hub.as_service("DELETE", f"groups/{group}/users", {"users": [name]}).raise_for_status()


def test_a_file_of_the_service_has_no_token_in_it(
    hub: RealHub, ada: Program, tokens: dict[str, str]
) -> None:
    kept = (hub.folder / "agent-exec-hub.sqlite").read_bytes()
    assert ada.token_id.encode() in kept
    for holder, token in tokens.items():
        assert not token or token.rpartition("_")[2].encode() not in kept, holder
    assert b"jaex_" not in kept
    assert (hub.folder / "agent-exec-hub.sqlite").stat().st_mode & 0o777 == 0o600


def test_a_token_in_an_address_is_not_in_the_log(hub: RealHub, ada: Program) -> None:
    ask("GET", f"{service(hub)}/nowhere/{ada.access_token}")
    assert "/nowhere/jaex_[secret]" in hub.log
    assert ada.access_token not in hub.log


def command(hub: RealHub, action: str, token: str, url: str | None = None) -> tuple[int, list[str]]:
    """Run a command for administrators; return its exit code and what it prints."""
    words = ["hub", action, "--hub-url", url or hub.public]
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_agent_exec.cli", *words],
        env={**hub.environ, "JUPYTERHUB_API_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()]


async def test_an_administrator_pauses_all_agents_of_all_users(
    hub: RealHub, ada: Program, bob: Program, cleo: Program
) -> None:
    code, lines = command(hub, "pause", hub.user_token("ada"))
    assert code != 0
    assert lines[0].startswith("the service: NOT paused")
    assert await who_works(ada) == "('ada', '')"
    code, lines = command(hub, "pause", SERVICE_TOKEN)
    assert sorted(lines) == ["ada: paused", "bob: paused", "cleo: paused", "the service: paused"]
    assert code == 0
    refused = ask("POST", f"{service(hub)}/mcp", ada.access_token, PING).json()["error"]
    assert refused["data"] == {"code": "agents_paused"}
    assert hub.ask_server("bob", "GET", "approvals").json()["paused"]["by"] == "tests"
    code, lines = command(hub, "resume", SERVICE_TOKEN)
    assert [line for line in lines if line.startswith("cleo: NOT resumed")], "has a passphrase"
    assert code == 4
    assert await who_works(ada) == "('ada', '')"


def test_a_hub_that_does_not_answer_is_told(hub: RealHub) -> None:
    code, lines = command(hub, "pause", SERVICE_TOKEN, "http://127.0.0.1:1/")
    assert code == UNREACHABLE
    assert lines[0].startswith("the service: NOT paused")
    assert "The hub at http://127.0.0.1:1 does not answer" in lines[1]
    assert len(lines) == 2, "no traceback"


def test_the_log_has_no_traceback(hub: RealHub) -> None:
    assert "Traceback" not in hub.log, hub.log[hub.log.index("Traceback") :][:3000]


async def failure(call: Awaitable[object]) -> str:
    async with asyncio.timeout(90):
        try:
            return f"no failure: {await call}"
        except Exception as error:
            return str(error)


async def test_the_next_call_starts_a_server_that_stopped(
    hub: RealHub, ada: Program, gate: Gate
) -> None:
    messages: list[str | None] = []

    async def progress(_progress: float, _total: float | None, message: str | None) -> None:
        messages.append(message)

    async with ada.connected() as client:
        asked = {"session_id": await opened(client), "source": gate.source}
        calling = asyncio.create_task(client.call_tool("execute", asked))
        await asyncio.to_thread(gate.wait_until_it_runs)
        await asyncio.to_thread(hub.stop_server, "ada")
        assert "server stopped" in text_of(await calling).lower()
        opening = client.call_tool("open_session", {"agent": "a"}, progress_callback=progress)
        assert not (await opening).is_error
    assert any("Your Jupyter server starts" in (message or "") for message in messages)


async def test_a_server_that_crashes_and_one_that_does_not_start_are_told(
    hub: RealHub, ada: Program, gate: Gate
) -> None:
    no_room = hub.folder / "no-room"
    async with ada.connected() as client:
        asked = {"session_id": await opened(client), "source": gate.source}
        calling = asyncio.create_task(client.call_tool("execute", asked))
        await asyncio.to_thread(gate.wait_until_it_runs)
        os.kill(hub.pid("ada"), signal.SIGKILL)
        assert "cannot be reached" in await failure(calling)
        assert "cannot be reached" in await failure(client.call_tool("list_sessions", {}))
        # So the hub notices. The kernel ends by itself.
        await asyncio.to_thread(hub.stop_server, "ada")
        no_room.touch()
        told = await failure(client.call_tool("list_sessions", {}))
        no_room.unlink()
        assert "There is no room" in told
        assert not (await client.call_tool("list_sessions", {})).is_error


def restart_the_service(hub: RealHub) -> None:
    """End the service alone; the hub starts it again."""
    service_process(hub).terminate()
    until(lambda: "Service agent-exec exited" in hub.log)


def restart_all(hub: RealHub) -> None:
    """End the hub with its proxy and the service, and start them again; users' servers go on."""
    before = service_process(hub)
    hub.stop()
    assert not before.is_running()
    hub.start()


def service_process(hub: RealHub) -> psutil.Process:
    children = psutil.Process(hub.process.pid).children()
    return next(each for each in children if "hub" in each.cmdline())


def is_served(hub: RealHub) -> bool:
    document = f"{service(hub)}/.well-known/oauth-authorization-server"
    with suppress(httpx2.TransportError):
        return ask("GET", document).status_code == 200
    return False


@pytest.mark.parametrize(
    "restart", [restart_the_service, pytest.param(restart_all, marks=pytest.mark.nightly)]
)
async def test_access_and_running_code_outlive_a_restart(
    hub: RealHub, ada: Program, tmp_path: Path, restart: Callable[[RealHub], None]
) -> None:
    server = hub.pid("ada")
    async with ada.connected("legacy") as earlier, ada.connected(LATEST) as client:
        gates, asked, calls = [], [], []
        for each in (earlier, client):
            (folder := tmp_path / str(len(gates))).mkdir()
            gates.append(Gate(folder))
            session = await opened(each)
            same = {"session_id": session, "source": gates[-1].source, "idempotency_key": "once"}
            asked.append(same)
            calls.append(asyncio.create_task(each.call_tool("execute", same)))
            await asyncio.to_thread(gates[-1].wait_until_it_runs)
        await asyncio.to_thread(restart, hub)
        for call in calls:
            assert "The hub's service for agents stops; try again" in await failure(call)
    await asyncio.to_thread(until, lambda: is_served(hub))
    assert hub.pid("ada") == server
    assert ada.token_id in ada.person.open(f"{service(hub)}/").text
    async with ada.connected() as client:
        for gate, same in zip(gates, asked, strict=True):
            again = asyncio.create_task(client.call_tool("execute", same))
            await asyncio.to_thread(gate.let_it_go_on)
            assert text_of(await again).startswith("went on")
            ran = hub.ask_server("ada", "GET", f"sessions/{same['session_id']}/executions").json()
            assert len(ran["executions"]) == 1
            await client.call_tool("stop", {"session_id": same["session_id"]})
