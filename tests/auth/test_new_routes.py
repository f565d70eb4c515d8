"""A route that somebody adds lets agent tokens in only to what they reach, without a word of it."""

from __future__ import annotations

from typing import Any

import pytest
from tornado import web

from jupyter_agent_exec.auth.handler import AgentExecHandler
from jupyter_agent_exec.auth.operations import requires
from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, bearer, mint


class NewHandler(AgentExecHandler):
    """A route as somebody may write it who does not think of tokens."""

    @web.authenticated
    @requires("history:read", answers={200: "application/json"})
    async def get(self, **path: str) -> None:
        """Tell something."""
        self.answer({"told": "something", **path})


@pytest.fixture
def add_route(jp_serverapp: Any, jp_web_app: Any, jp_base_url: str) -> Any:
    app = next(iter(jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]))

    def add_route(pattern: str) -> None:
        services = {
            "access": app.services.access,
            "tokens": app.services.tokens,
            "denials": app.services.denials,
            "on_refusal": app.services.of_handlers()["on_refusal"],
            "refresh_decisions": app.services.of_handlers()["refresh_decisions"],
            "allow_full_access": True,
            "body_limit": 1000,
        }
        given = {"services": services, "route": pattern}
        jp_web_app.add_handlers(".*$", [(f"{jp_base_url}{pattern}", NewHandler, given)])

    return add_route


async def test_a_route_whose_path_names_nothing_is_for_people(
    agent: Agent, send: Send, add_route: Any, jp_auth_header: dict[str, str]
) -> None:
    add_route("new")
    token = (await mint(agent, "history:read:all", "exec:scratch"))[1]
    refused = await send("GET", "new", headers=bearer(token))
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    assert (await send("GET", "new", headers=jp_auth_header)).status == 200


async def test_a_route_whose_path_names_something_is_for_who_reaches_it(
    agent: Agent, ask: Send, send: Send, add_route: Any
) -> None:
    add_route("new/(?P<session_id>[^/]+)")
    add_route("newer/(?P<path>.+)")
    add_route("newest/(?P<name>[^/]+)")
    token = (await mint(agent, "exec:scratch", "read:notebook:reports/*"))[1]
    mine, theirs = await TokenAgent(ask, token).open(), await agent.open()
    for path, status in (
        (f"new/{mine['id']}", 200),
        (f"new/{theirs['id']}", 404),
        ("newer/reports/a.ipynb", 200),
        ("newer/private/a.ipynb", 404),
        ("newest/thing", 403),
    ):
        assert (await send("GET", path, headers=bearer(token))).status == status, path
