"""What only reads starts nothing: each route and each tool, in a notebook whose kernel is gone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.operations import operations
from jupyter_agent_exec.mcp.sdk_server import TOOLS
from tests.asking import Agent, Send
from tests.auth.access_asking import NOWHERE, VERBS, Verb
from tests.auth.minting import TokenAgent, mint
from tests.mcp.raw_mcp import RawMcp
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="trials need Linux")

QUIET: Final = "quiet.ipynb"
READS: Final = {"history:read", "look", "read:notebook"}
SAID: Final[dict[str, Any]] = {
    "sessions": {"agent": {"name": "a"}, "target": notebook_target(QUIET)},
    "sessions/{session_id}/executions": {"source": "1", "trial": True, "wait": 60},
}
"""What a route is told that reads, and whose verb is not GET."""
SCOPES: Final = {
    verb: set(operation.scopes)
    for path, handler in AgentExecApp.routes
    for method, operation in operations(handler).items()
    for verb in [Verb(method.upper(), path.lstrip("/"))]
}


def calls(things: dict[str, str], *, only_reads: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls of all tools: their examples, where there is something to find."""
    found: dict[str, Any] = {
        "session_id": things["session_id"],
        "execution_id": things["execution_id"],
        "path": QUIET,
        "target": notebook_target(QUIET),
    }
    for tool in TOOLS:
        if only_reads and not tool.hints.read_only_hint:
            continue
        for example in tool.examples:
            said = {name: found.get(name, value) for name, value in example.items()}
            yield tool.name, said
            if "trial" in tool.input.__struct_fields__ and "source" in said:
                yield tool.name, {**said, "trial": True, "wait": 60}


async def quiet_session(agent: Agent, ask: Send, desk: Desk) -> dict[str, str]:
    """Return a session of an agent that looks, whose notebook's kernel its person has shut down."""
    desk.writes(QUIET, "x = 1")
    kernel_id = (await desk.opens())["kernel"]["id"]
    token = (await mint(agent, "look:notebook", "history:read:all", "files"))[1]
    looker = TokenAgent(ask, token)
    session = await looker.open(target=notebook_target())
    picture = "display({'image/png': 'iVBORw0KGgo='}, raw=True)"
    tried = await looker.run(session, picture, trial=True)
    await desk.ask("DELETE", f"kernels/{kernel_id}")
    return {
        **NOWHERE,
        "token": token,
        "session_id": session["id"],
        "execution_id": tried["id"],
        "digest": tried["images"][0]["url"].rpartition("/")[2],
        "path": QUIET,
    }


class Still:
    """Checks that nothing runs, and that the served files are as they were."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._files = self._listed()

    def _listed(self) -> list[tuple[Path, int]]:
        return sorted((path, path.stat().st_mtime_ns) for path in self._desk.root.rglob("*"))

    async def check(self, what: str) -> None:
        assert await self._desk.ask("GET", "kernels") == [], what
        assert await self._desk.sessions() == [], what
        assert self._listed() == self._files, what


async def test_what_a_token_that_looks_may_ask_starts_nothing(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    things = await quiet_session(agent, ask, desk)
    looker, still = TokenAgent(ask, things["token"]), Still(desk)
    asked = [verb for verb in VERBS if SCOPES[verb] <= READS or verb.method == "GET"]
    assert {verb.template for verb in asked if verb.method != "GET"} == set(SAID)
    for verb in asked:
        answered = await looker.ask(verb.method, verb.at(things), SAID.get(verb.template))
        assert answered.status != 500, (verb, answered.body)
        await still.check(f"{verb.method} {verb.template}")
    raw = await RawMcp(ask, things["token"], modern=True).ready()
    for tool, said in calls(things, only_reads=False):
        await raw.call(tool, **said)
        await still.check(f"{tool} {said}")


async def test_what_only_reads_starts_nothing_for_whoever_may_run_code(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    things = await quiet_session(agent, ask, desk)
    scopes = ("exec:scratch", "exec:notebook", "edit:notebook", "files", "history:read:all")
    token, still = (await mint(agent, *scopes))[1], Still(desk)
    for verb in VERBS:
        if verb.method == "GET":
            for asks in (agent.get, TokenAgent(ask, token).get):
                assert (await asks(verb.at(things))).status != 500, verb
                await still.check(verb.template)
    raw = await RawMcp(ask, token, modern=True).ready()
    for tool, said in calls(things, only_reads=True):
        await raw.call(tool, **said)
        await still.check(f"{tool} {said}")


async def test_looking_where_no_kernel_runs_says_who_can_start_one(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    things = await quiet_session(agent, ask, desk)
    looker = TokenAgent(ask, things["token"])
    refused = await looker.ask("POST", "sessions", SAID["sessions"])
    assert (refused.status, refused.json["code"]) == (503, "kernel_unavailable")
    for said in ("'quiet.ipynb' has no kernel", "ask the person", "exec:notebook:quiet.ipynb"):
        assert said in refused.json["message"]
    route = f"sessions/{things['session_id']}"
    tried = await looker.ask("POST", f"{route}/executions", {"source": "1", "trial": True})
    assert tried.json["status"] == "cancelled"
    assert f"'{NOTEBOOK}' has no kernel" in tried.json["reason"]
