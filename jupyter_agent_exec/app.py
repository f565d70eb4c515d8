"""The extension: its configuration, its routes, and when it starts and stops."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from jupyter_server.extension.application import ExtensionApp
from traitlets import TraitError
from traitlets.config import Config

from ._version import __version__
from .approvals.handlers import ROUTES as APPROVAL_ROUTES
from .auth.openapi import OpenAPIHandler, document
from .auth.routes import Route, url_specs
from .auth.token_handlers import PAGE_ROUTES
from .auth.token_handlers import ROUTES as TOKEN_ROUTES
from .files.handlers import ROUTES as FILE_ROUTES
from .leaves import installed
from .mcp.endpoint import McpHandler
from .mcp.sign_in_handlers import ROOT_ROUTE, MetadataHandler
from .mcp.sign_in_handlers import ROUTES as SIGN_IN_ROUTES
from .notebooks.handlers import ROUTES as NOTEBOOK_ROUTES
from .notebooks.handlers import ChannelHandler
from .services import Leaf, Services
from .sessions.answers import NAMESPACE
from .sessions.execution_handlers import ROUTES as EXECUTION_ROUTES
from .sessions.handlers import ROUTES
from .sessions.history_handlers import ROUTES as HISTORY_ROUTES
from .traits import AgentExecTraits, refuse_removed
from .workarounds import give_back_large_blocks

LEAVES: Final[tuple[type[Leaf], ...]] = tuple(installed("leaves"))

if TYPE_CHECKING:
    AllTraits = AgentExecTraits
else:
    of_leaves = (leaf.traits for leaf in LEAVES if leaf.traits is not None)
    AllTraits = type("AllTraits", (AgentExecTraits, *of_leaves), {})


class AgentExecApp(AllTraits, ExtensionApp):
    """Lets agents run code in this server's kernels, and keeps a record of it."""

    name = "jupyter_agent_exec"
    extension_url = "/"
    load_other_extensions = True
    routes: ClassVar[tuple[Route, ...]] = (
        *ROUTES,
        *EXECUTION_ROUTES,
        *HISTORY_ROUTES,
        *FILE_ROUTES,
        *NOTEBOOK_ROUTES,
        *APPROVAL_ROUTES,
        *TOKEN_ROUTES,
        *(route for leaf in LEAVES for route in leaf.routes),
        ("/openapi.json", OpenAPIHandler),
    )
    """Paths under the namespace, and their handlers; the OpenAPI document describes these."""
    undocumented_routes: ClassVar[tuple[Route, ...]] = (
        ("/notebooks/channel", ChannelHandler),
        ("/mcp/?", McpHandler),
        *SIGN_IN_ROUTES,
        *PAGE_ROUTES,
    )
    """The WebSocket of JupyterLab's pages, which is for them alone, MCP and its sign-in, which
    describe themselves to each client, and the page of agent tokens, which is for people."""
    services: Services | None = None
    """None if the extension could not be loaded."""

    def update_config(self, config: Config) -> None:
        """Apply the configuration. A wrong value stops the start of the server with a message.

        The server itself would only warn, and go on with the extension's defaults.
        """
        try:
            refuse_removed(config, self.section_names())
            super().update_config(config)
        except (TraitError, ValueError) as error:  # of one value, or of one that is given twice
            self.log.critical("The configuration of %s is wrong: %s", self.name, error)
            self.exit(1)

    def initialize_settings(self) -> None:
        """Make the managers. If that fails, the server goes on without the extension."""
        try:
            services = Services(self, self.serverapp, LEAVES, log=self.log)
            services.listen()
        except Exception:
            self.log.critical(
                "%s could not be loaded, so no agent can use this server. The error is below; "
                "`jupyter agent-exec doctor` says what to do.",
                self.name,
            )
            raise
        self.services = services

    def initialize_handlers(self) -> None:
        """Add the routes; one that is not complete stops the extension here."""
        assert self.services is not None
        services = self.services.of_handlers() | {"openapi_document": cache(self._document)}
        routes = (*self.routes, *self.undocumented_routes)
        self.handlers.extend(url_specs(routes, services, NAMESPACE))
        at_root = {"services": services, "route": "/.well-known/{document}"}
        root_route = ROOT_ROUTE.format(namespace=NAMESPACE)
        self.handlers.append((root_route, MetadataHandler, at_root))

    def _document(self, base_url: str) -> bytes:
        base_path = f"{base_url}{NAMESPACE}"
        return msgspec.json.encode(document(self.routes, version=__version__, base_path=base_path))

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        if self.services is None:
            return
        give_back_large_blocks()
        self.services.start()

    async def stop_extension(self) -> None:
        """Refuse requests, end running executions, and return when that is recorded."""
        if self.services is not None:
            await self.services.stop()
