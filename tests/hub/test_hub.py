"""The extension in a person's server under a real JupyterHub, through its proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from tests.cli.command import Cli
from tests.hub.real_hub import RealHub, real_hub
from tests.mcp.mcp_clients import LATEST, opened, text_of
from tests.mcp.person_in_browser import signed_in
from tests.mcp.signing_in import SigningIn
from tests.real_server import environment


class Hub(NamedTuple):
    """A hub at which one person's server runs."""

    real: RealHub
    person: str
    """The person's credential."""

    @property
    def public(self) -> str:
        return self.real.public

    @property
    def history(self) -> Path:
        return self.real.folder / "history"

    @property
    def api(self) -> str:
        return f"{self.public}/user/ada/api/agent-exec/"

    def ask(self, credential: str, method: str, path: str, said: Any = None) -> httpx2.Response:
        return httpx2.request(
            method,
            self.api + path,
            json=said,
            headers={"Authorization": credential},
            timeout=60,
            trust_env=False,
        )


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    more = 'c.JupyterHub.public_url = "{public}"'
    with real_hub(tmp_path_factory.mktemp("hub"), more) as real:
        assert real.as_service("POST", "users/ada").status_code == 201
        minted = real.as_service("POST", "users/ada/tokens", {"note": "tests"})
        real.start_server("ada")
        yield Hub(real, f"token {minted.json()['token']}")


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


def test_clients_connect_at_the_address_of_the_hub(hub: Hub, tmp_path: Path) -> None:
    described = hub.ask("", "GET", ".well-known/oauth-protected-resource").json()
    assert described["public_url"] == f"{hub.public}/user/ada/"
    told = Cli(environment(tmp_path), tmp_path)("connect", "--url", f"{hub.public}/user/ada/lab")
    assert f" {hub.api}mcp\n" in told.stdout, told.stderr


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
    assert hub.real.as_service("DELETE", "users/ada/server").status_code in (202, 204)
    hub.real.start_server("ada")
    told = hub.ask(agent, "GET", f"executions/{ran.json()['id']}").json()
    assert told["status"] in ("interrupted", "cancelled")
    assert told["reason"] == "The server stopped."
    assert hub.ask(agent, "GET", f"sessions/{session}").json()["close_reason"] == "server_stopped"
    assert verify_history(hub.history).outcome is Outcome.WHOLE


def test_the_log_has_no_traceback(hub: Hub) -> None:
    assert "Traceback" not in hub.real.log
