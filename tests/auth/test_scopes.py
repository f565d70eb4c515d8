"""Every verb names its scope, or the extension does not load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tornado import web

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.handler import AgentExecHandler
from jupyter_agent_exec.auth.operations import requires
from jupyter_agent_exec.auth.routes import check_services, check_verbs
from tests.auth.unscoped_extension import UnscopedHandler


class ScopedHandler(AgentExecHandler):
    @web.authenticated
    @requires("history:read", answers={200: "text/plain"})
    async def get(self) -> None:
        """Look."""


class InheritsHandler(ScopedHandler):
    @web.authenticated
    async def put(self) -> None:
        """Change, without a scope."""


class OverridesHandler(ScopedHandler):
    async def get(self) -> None:
        """Look, and forget the scope."""


class ForeignVerbHandler(ScopedHandler):
    SUPPORTED_METHODS = (*ScopedHandler.SUPPORTED_METHODS, "PROPFIND")  # type: ignore[assignment]

    async def propfind(self) -> None:
        """Look, by a verb of its own."""


class OpenOptionsHandler(ScopedHandler):
    async def options(self, *path: str) -> None:
        """Answer everybody."""


@pytest.mark.parametrize("handler", [ScopedHandler, *(cls for _, cls in AgentExecApp.routes)])
def test_handlers_whose_verbs_name_their_scope_are_taken(
    handler: type[AgentExecHandler],
) -> None:
    check_verbs(handler)


@pytest.mark.parametrize(
    ("handler", "verb"),
    [
        (UnscopedHandler, "get"),
        (InheritsHandler, "put"),
        (OverridesHandler, "get"),
        (ForeignVerbHandler, "propfind"),
        (OpenOptionsHandler, "options"),
    ],
)
def test_a_verb_without_a_scope_is_told_by_name(handler: type[AgentExecHandler], verb: str) -> None:
    with pytest.raises(TypeError, match=rf"{handler.__name__}\.{verb} does not name its scope"):
        check_verbs(handler)


def test_the_extension_does_not_load_with_a_verb_without_a_scope(
    jp_server_config: dict[str, Any], jp_configurable_serverapp: Callable[..., Any]
) -> None:
    jp_server_config["ServerApp"] |= {
        "jpserver_extensions": {"tests.auth.unscoped_extension": True},
        "reraise_server_extension_failures": True,
    }
    with pytest.raises(TypeError, match=r"UnscopedHandler\.get does not name its scope"):
        jp_configurable_serverapp(config=jp_server_config)


class NeedsMoreHandler(ScopedHandler):
    more: int


def test_a_handler_that_needs_what_nothing_wires_is_refused() -> None:
    wired = [*AgentExecHandler.__annotations__]
    check_services(NeedsMoreHandler, [*wired, "more"])
    with pytest.raises(TypeError, match="NeedsMoreHandler needs more: no such service"):
        check_services(NeedsMoreHandler, wired)
