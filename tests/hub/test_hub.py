"""The extension in a person's server under a real JupyterHub, through its proxy."""

from __future__ import annotations

import json
import random
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from jupyter_agent_exec.journal.verify import Outcome, verify_history
from tests.mcp.mcp_clients import LATEST, opened, text_of
from tests.mcp.person_in_browser import signed_in
from tests.mcp.signing_in import SigningIn
from tests.real_server import NOTHING_ASKS, environment

PROXY = Path(__file__).parent / "node_modules" / ".bin" / "configurable-http-proxy"
SERVICE_TOKEN = "a-token-of-the-hub"

EXTENSIONS = {
    "jupyter_agent_exec": True,
    **dict.fromkeys(("jupyter_lsp", "jupyter_server_ydoc", "jupyterlab", "notebook"), False),
}
"""Of the person's server: what else is installed starts slowly, and logs what goes wrong in it."""

CONFIG = """
import sys

c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy}"
c.ConfigurableHTTPProxy.command = [{command!r}]
c.JupyterHub.db_url = "sqlite:///hub.sqlite"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/{{username}}"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.env_keep = {names!r}
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.JupyterHub.tornado_settings = {{"slow_stop_timeout": 100}}  # answer when it has stopped
c.Spawner.args = [
    "--allow-root",
    "--ServerApp.jpserver_extensions={extensions}",
    "--AgentExecApp.history_dir={folder}/history",
    "--AgentExecApp.approval={approval}",
]
c.JupyterHub.services = [{{"name": "tests", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [
    {{"name": "tests", "services": ["tests"], "scopes": ["admin:users", "admin:servers", "tokens"]}}
]
"""


class Log:
    """What a process prints, read by a thread of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: list[str] = []
        self._running = threading.Event()
        self._thread = threading.Thread(target=self._read, name="log of the hub")
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            if "JupyterHub is now running" in line:
                self._running.set()
        self._running.set()

    @property
    def text(self) -> str:
        return "".join(self._lines)

    def wait_until_it_runs(self) -> None:
        assert self._running.wait(120), self.text
        assert self._process.poll() is None, self.text

    def end(self) -> None:
        self._thread.join(30)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Hub(NamedTuple):
    """A hub at which one person's server runs."""

    public: str
    """Its address, without a slash at the end."""
    person: str
    """The person's credential."""
    log: Log
    history: Path

    @property
    def api(self) -> str:
        return f"{self.public}/user/ada/api/agent-exec/"

    def as_service(self, method: str, path: str, said: Any = None) -> httpx2.Response:
        return httpx2.request(
            method,
            f"{self.public}/hub/api/{path}",
            json=said,
            headers={"Authorization": f"token {SERVICE_TOKEN}"},
            timeout=120,
            trust_env=False,
        )

    def start_server(self) -> None:
        """Start the person's server, and return when the hub says that it is ready."""
        started = self.as_service("POST", "users/ada/server")
        assert started.status_code in (201, 202), started.text
        with httpx2.stream(
            "GET",
            f"{self.public}/hub/api/users/ada/server/progress",
            headers={"Authorization": f"token {SERVICE_TOKEN}"},
            timeout=60,
            trust_env=False,
        ) as answered:
            told = [json.loads(line[5:]) for line in answered.iter_lines() if line[:5] == "data:"]
        assert told[-1].get("ready"), (told, self.log.text)

    def ask(self, credential: str, method: str, path: str, said: Any = None) -> httpx2.Response:
        return httpx2.request(
            method,
            self.api + path,
            json=said,
            headers={"Authorization": credential},
            timeout=60,
            trust_env=False,
        )


def free_ports(count: int) -> list[int]:
    """Return ports that no other program takes meanwhile, unless it asks for them by number.

    Who asks for any port gets one from 32768 on.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(10_000, 32_768)
        with suppress(OSError), socket.socket() as each:
            each.bind(("127.0.0.1", port))
            found.append(port)
    return found


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    pytest.importorskip("jupyterhub")
    if not PROXY.exists():
        pytest.skip("configurable-http-proxy is not installed; run `make .make/hub`")
    folder = tmp_path_factory.mktemp("hub")
    environ = environment(folder)
    public, hub_port, proxy = free_ports(3)
    (folder / "jupyterhub_config.py").write_text(
        CONFIG.format(
            public=public,
            hub=hub_port,
            proxy=proxy,
            command=str(PROXY),
            folder=folder,
            extensions=EXTENSIONS,
            names=sorted(environ),
            approval=NOTHING_ASKS,
            token=SERVICE_TOKEN,
        )
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyterhub"],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    log = Log(process)
    try:
        log.wait_until_it_runs()
        made = Hub(f"http://127.0.0.1:{public}", "", log, folder / "history")
        assert made.as_service("POST", "users/ada").status_code == 201
        minted = made.as_service("POST", "users/ada/tokens", {"note": "tests"})
        made.start_server()
        yield made._replace(person=f"token {minted.json()['token']}")
    finally:
        process.terminate()
        process.wait(60)
        log.end()


@pytest.fixture(scope="module")
def agent(hub: Hub) -> str:
    """The credential of an agent."""
    asked = {"label": "of the tests", "scopes": ["exec:scratch", "history:read"]}
    minted = hub.ask(hub.person, "POST", "tokens", asked)
    assert minted.status_code == 201, minted.text
    return f"Bearer {minted.json()['secret']}"


def open_session(hub: Hub, credential: str) -> str:
    opened = hub.ask(credential, "POST", "sessions", {"agent": {"name": "tester"}})
    assert opened.status_code == 201, opened.text
    return str(opened.json()["id"])


@pytest.mark.parametrize("who", ["person", "agent"])
def test_code_runs_with_the_hubs_token_and_with_an_agent_token(
    hub: Hub, agent: str, who: str
) -> None:
    credential = {"person": hub.person, "agent": agent}[who]
    session = open_session(hub, credential)
    ran = hub.ask(credential, "POST", f"sessions/{session}/executions", {"source": "6 * 7"})
    assert ran.status_code == 201, ran.text
    assert (ran.json()["text"], ran.json()["username"]) == ("42", "ada")
    streamed = hub.ask(credential, "GET", f"executions/{ran.json()['id']}/stream")
    assert "event: finished" in streamed.text
    assert hub.ask(credential, "GET", "sessions/s_unknown").status_code == 404
    assert hub.ask(credential, "POST", f"sessions/{session}/close").status_code == 200


def test_an_agent_token_is_good_for_nothing_else_on_the_server(hub: Hub, agent: str) -> None:
    assert hub.ask(agent, "GET", "../kernels").status_code == 403
    assert hub.ask("Bearer jaex_unknown_secret", "GET", "sessions").status_code == 401
    assert hub.ask("", "GET", "sessions").status_code == 401
    assert hub.ask("", "GET", f"sessions?token={agent.split()[1]}").status_code == 400
    assert hub.ask("", "OPTIONS", "sessions").status_code == 204


async def test_mcp_with_an_agent_token(hub: Hub, agent: str) -> None:
    headers = {"Authorization": agent}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(f"{hub.api}mcp", http_client=http), mode=LATEST) as client,
    ):
        session = await opened(client)
        asked = {"session_id": session, "source": "print('by MCP')"}
        ran = await client.call_tool("execute", asked)
        assert "by MCP" in text_of(ran)
        await client.call_tool("stop", {"session_id": session})


async def test_an_mcp_client_signs_in_with_the_hubs_login(hub: Hub) -> None:
    program = SigningIn(f"{hub.api}mcp", partial(signed_in, token=""))
    assert "execute" in await program.tools()
    assert program.kept is not None
    ran = open_session(hub, f"Bearer {program.kept.access_token}")
    assert hub.ask(hub.person, "GET", f"sessions/{ran}").json()["username"] == "ada"


@pytest.fixture(scope="module")
def page(hub: Hub) -> Iterator[httpx2.Client]:
    """A browser in which the person has logged in."""
    with httpx2.Client(follow_redirects=True, timeout=60, trust_env=False) as browser:
        form = browser.get(f"{hub.public}/hub/login")
        said = {"username": "ada", "password": "", "_xsrf": xsrf_of(form.text)}
        browser.post(f"{hub.public}/hub/login", data=said)
        browser.get(f"{hub.public}/user/ada/files/")  # any page sends the browser to the login
        browser.get(f"{hub.public}/user/ada/api/status").raise_for_status()
        yield browser


def xsrf_of(page: str) -> str:
    found = re.search(r'name="_xsrf" value="([^"]*)"', page)
    assert found is not None, page
    return found[1]


async def channel_status(hub: Hub, page: httpx2.Client, origin: str) -> int:
    """Open the channel of JupyterLab's page, and return the status of the answer."""
    cookies = "; ".join(
        f"{each.name}={each.value}" for each in page.cookies.jar if "/user/ada/" in each.path
    )
    url = f"{hub.api}notebooks/channel".replace("http", "ws", 1)
    try:
        channel = await websocket_connect(
            HTTPRequest(url, headers={"Cookie": cookies, "Origin": origin})
        )
    except HTTPClientError as refused:
        return refused.code
    channel.close()
    return 101


async def test_the_page_of_the_server_is_let_in_and_another_is_not(
    hub: Hub, page: httpx2.Client
) -> None:
    xsrf = {each.name: each.value for each in page.cookies.jar if "/user/ada/" in each.path}
    headers = {"X-XSRFToken": xsrf["_xsrf"] or "", "Origin": hub.public}
    said = {"agent": {"name": "page"}}
    opened = page.post(f"{hub.api}sessions", json=said, headers=headers)
    assert opened.status_code == 201, opened.text
    refused = page.post(
        f"{hub.api}sessions", json=said, headers={**headers, "Origin": "https://elsewhere.example"}
    )
    assert refused.status_code == 403
    assert page.post(f"{hub.api}sessions", json=said).status_code == 401  # without XSRF's token
    assert await channel_status(hub, page, hub.public) == 101
    assert await channel_status(hub, page, "https://elsewhere.example") == 403


def test_a_server_that_the_hub_stops_records_it_as_a_stop(hub: Hub, agent: str) -> None:
    session = open_session(hub, agent)
    asked = {"source": "open('/dev/stdin')\nimport time; time.sleep(600)", "wait": 0}
    ran = hub.ask(agent, "POST", f"sessions/{session}/executions", asked)
    assert ran.status_code == 202, ran.text
    assert hub.as_service("DELETE", "users/ada/server").status_code in (202, 204)
    hub.start_server()
    told = hub.ask(agent, "GET", f"executions/{ran.json()['id']}").json()
    assert told["status"] in ("interrupted", "cancelled")
    assert told["reason"] == "The server stopped."
    assert hub.ask(agent, "GET", f"sessions/{session}").json()["close_reason"] == "server_stopped"
    assert verify_history(hub.history).outcome is Outcome.WHOLE


def test_the_log_has_no_traceback(hub: Hub) -> None:
    assert "Traceback" not in hub.log.text
