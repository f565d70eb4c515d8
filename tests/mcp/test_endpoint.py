"""The route: who gets in, what is answered, and how much of it there may be."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.errors import NotInstalled
from jupyter_agent_exec.mcp.endpoint import MAX_BODY_BYTES, check_installed, is_installed
from jupyter_agent_exec.records import AccessDenied
from tests.asking import Agent, Send
from tests.auth.minting import bearer, ledger, mint
from tests.files.conftest import wire
from tests.files.files_asking import Wire
from tests.mcp.raw_mcp import EARLIER, LATEST, RawMcp, request

__all__ = ["wire"]

Make = Callable[..., RawMcp]

ERAS = pytest.mark.parametrize("modern", [False, True], ids=[EARLIER, LATEST])


@pytest.fixture
def token(jp_serverapp: Any) -> str:
    return str(jp_serverapp.identity_provider.token)


@pytest.fixture
def make(ask: Send, token: str) -> Make:
    return lambda modern=False, shown=token: RawMcp(ask, shown, modern=modern)


# -- who gets in -------------------------------------------------------------------------------


async def test_whoever_is_not_known_is_told_so(ask: Send) -> None:
    shown = ({}, {"Authorization": "Bearer wrong"})
    for method, headers in product(("GET", "POST", "DELETE"), shown):
        body = json.dumps(request("ping", modern=False)) if method == "POST" else None
        answered = await ask(method, "mcp", headers=headers, body=body)
        assert answered.status == 401, (method, headers)
        assert answered.json["code"] == "unauthenticated"
        assert answered.headers["WWW-Authenticate"]


async def test_a_page_of_another_origin_is_refused_whatever_it_shows(
    agent: Agent, make: Make, token: str
) -> None:
    _, secret = await mint(agent)
    said = request("ping", modern=False)
    for shown in (secret, token, "wrong"):
        for origin in ("https://elsewhere.example", "null"):
            answered = await make(shown=shown).send(said, Origin=origin)
            assert answered.status == 403
    raw = make(shown=secret)
    assert (await raw.begin()).headers.get("Set-Cookie") is None


async def test_a_session_is_its_owners(agent: Agent, make: Make, token: str) -> None:
    theirs = await make().ready()
    _, secret = await mint(agent)
    other = make(shown=secret)
    other.session = theirs.session
    assert (await other.ask("tools/list")).status == 404
    assert "execute" in await theirs.tools()
    mine = await make(shown=secret).ready()
    theirs.session = mine.session
    assert (await theirs.ask("tools/list")).status == 404


async def test_a_session_is_its_owners_without_cookies(make: Make) -> None:
    raw = await make().ready()
    assert [await raw.tools() for _ in range(2)] == [await raw.tools()] * 2


# -- tools by scope ----------------------------------------------------------------------------


@ERAS
async def test_tools_are_listed_by_scope(agent: Agent, make: Make, modern: bool) -> None:
    _, reads = await mint(agent, "history:read")
    _, runs = await mint(agent, "exec:scratch")
    reader = await make(modern, reads).ready()
    runner = await make(modern, runs).ready()
    everything = await (await make(modern).ready()).tools()
    assert "execute" not in await reader.tools()
    assert "get_execution" in await reader.tools()
    assert "execute" in await runner.tools()
    assert set(await runner.tools()) < set(everything)


@ERAS
async def test_a_tool_that_is_not_listed_is_refused_and_that_is_recorded(
    agent: Agent, make: Make, history_dir: Path, modern: bool
) -> None:
    id, secret = await mint(agent, "history:read")
    raw = await make(modern, secret).ready()
    told = await raw.call("execute", what="is not looked at")
    assert told["isError"] is True
    assert told["content"][0]["text"].startswith("forbidden: ")
    while not (denied := ledger(history_dir, AccessDenied)):
        await asyncio.sleep(0)
    (entry,) = denied
    assert (entry.token_id, entry.method, entry.route) == (id, "tools/call", "execute")


@ERAS
async def test_a_tool_that_needs_more_says_whom_to_ask(
    agent: Agent, make: Make, modern: bool
) -> None:
    _, secret = await mint(agent, "exec:scratch")
    raw = await make(modern, secret).ready()
    told = await raw.call("open_session", target={"kind": "notebook", "path": "a.ipynb"})
    assert told["isError"] is True
    text = told["content"][0]["text"]
    assert "it needs the scope exec:notebook:a.ipynb. Ask the person for a token" in text


async def test_a_token_that_ends_ends_its_session_of_mcp(agent: Agent, make: Make) -> None:
    id, secret = await mint(agent)
    raw = await make(shown=secret).ready()
    session_id = await raw.opened()
    await agent.ask("DELETE", f"tokens/{id}")
    answered = await raw.ask("tools/call", name="execute", arguments={"session_id": session_id})
    assert answered.status == 401
    assert answered.json["code"] == "unauthenticated"


# -- what is answered --------------------------------------------------------------------------


@ERAS
async def test_an_answer_that_comes_first_is_plain_json(make: Make, modern: bool) -> None:
    raw = await make(modern).ready()
    session_id = await raw.opened()
    arguments = {"session_id": session_id, "source": "1 + 1"}
    answered = await raw.ask("tools/call", name="execute", arguments=arguments)
    assert answered.headers["Content-Type"] == "application/json"
    assert answered.json["result"]["structuredContent"]["status"] == "ok"


async def test_errors_of_older_clients_come_with_status_200(make: Make) -> None:
    raw = await make().ready()
    answered = await raw.ask("tools/call", name="nothing", arguments={})
    assert answered.status == 200
    assert answered.json["error"]["code"] == -32602
    assert "execute" in answered.json["error"]["message"]
    assert "execute" in await raw.tools()


@ERAS
async def test_what_is_no_message_is_refused(make: Make, modern: bool) -> None:
    raw = await make(modern).ready()
    shown = {"Authorization": f"Bearer {raw.token}", "Content-Type": "application/json"}
    shown["Accept"] = "application/json, text/event-stream"
    shown |= {"MCP-Protocol-Version": LATEST} if modern else {"Mcp-Session-Id": raw.session or ""}
    for body in ("{", "[]", "{}"):
        answered = await raw.send(body, **shown)
        assert answered.status == 400, body
        assert "error" in answered.json


@ERAS
async def test_a_body_that_is_too_large_is_refused(make: Make, modern: bool) -> None:
    raw = await make(modern).ready()
    answered = await raw.ask("tools/call", name="execute", arguments={"x": "x" * MAX_BODY_BYTES})
    assert answered.status == 413
    assert answered.json["code"] == "payload_too_large"
    assert answered.json["detail"] == {"limit_bytes": MAX_BODY_BYTES}


async def test_a_session_that_is_ended_is_gone(make: Make, ask: Send) -> None:
    raw = await make().ready()
    headers = {**bearer(raw.token), "Mcp-Session-Id": raw.session or ""}
    assert (await ask("DELETE", "mcp", headers=headers)).status == 200
    assert (await raw.ask("tools/list")).status == 404


async def test_other_verbs_are_refused(ask: Send, token: str) -> None:
    answered = await ask("PUT", "mcp", headers=bearer(token), body="{}")
    assert answered.status == 405
    assert answered.json["code"] == "method_not_allowed"


# -- how many ----------------------------------------------------------------------------------


class TestFewSessions:
    @pytest.fixture
    def agent_exec_config(self) -> dict[str, Any]:
        return {"mcp_max_sessions": 1, "mcp_session_idle_timeout": 1.0}

    async def test_sessions_are_bounded_and_forgotten_when_idle(
        self, make: Make, wire: Wire
    ) -> None:
        first = await make().ready()
        accepts = {"Accept": "text/event-stream", "Mcp-Session-Id": first.session or ""}
        await wire.begin("GET", "mcp", **accepts)  # a client that listens is not idle
        assert await wire.interim() == 200
        answered = await make().begin()
        assert answered.status == 503
        assert "execute" in await first.tools()
        wire.close()
        while (await make().begin()).status == 503:
            await asyncio.sleep(0.05)  # until the first has been idle for long enough
        assert (await first.ask("tools/list")).status == 404


# -- what it costs -----------------------------------------------------------------------------


def test_the_server_starts_without_the_sdk() -> None:
    looked = (
        "import sys, jupyter_agent_exec.app; "
        "sys.exit(bool({'mcp', 'mcp_types', 'starlette', 'pydantic'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", looked], check=False).returncode == 0


def test_without_the_sdk_its_extra_is_named() -> None:
    check_installed()
    for missing in ({"sdk": "no-such-distribution"}, {"oldest": (99, 0)}):
        assert not is_installed(**missing)  # type: ignore[arg-type]
        with pytest.raises(NotInstalled, match=r"jupyter-agent-exec\[mcp\]") as raised:
            check_installed(**missing)  # type: ignore[arg-type]
        assert raised.value.detail == {"extra": "mcp"}
