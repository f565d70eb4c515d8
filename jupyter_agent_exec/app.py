"""Wiring, start and stop: the only file that knows all others."""

from __future__ import annotations

import asyncio
import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
from jupyter_core.paths import jupyter_config_path
from jupyter_server.extension.application import ExtensionApp
from traitlets import (
    TraitError,
)
from traitlets.config import Config

from ._version import __version__
from .aca.failed_calls import FailedCalls
from .aca.handlers import ROUTES as DYNAMIC_ROUTES
from .aca.manager import DynamicSessions
from .approvals.handlers import ROUTES as APPROVAL_ROUTES
from .approvals.manager import Approvals
from .approvals.policy import Modes, Policy
from .approvals.reviews import Reviews
from .auth.access import AccessControl, TargetAccess
from .auth.denials import Denials
from .auth.handler import Route, url_specs
from .auth.token_handlers import ROUTES as TOKEN_ROUTES
from .auth.token_store import TokenStore
from .auth.tokens import Tokens
from .auth.unlocks import Unlocks
from .errors import GATEWAY
from .executions.approval_gate import Rules
from .files.handlers import ROUTES as FILE_ROUTES
from .files.manager import SessionFiles
from .journal.history import History
from .journal.ledger import TokenEntries
from .kernels.isolation.isolation import IsolationTraits
from .kernels.live_kernels import LiveKernels
from .kernels.scratch_kernels import ScratchKernels
from .kernels.server_kernels import KernelStarter, ServerKernels
from .mcp.call import Managers
from .mcp.endpoint import Endpoint, McpHandler, McpTraits
from .notebooks.backends.collaboration import CollaborationBackend
from .notebooks.backends.contents import ContentsBackend
from .notebooks.backends.tab import TabBackend
from .notebooks.decisions import OutputDecisions
from .notebooks.discarded_cells import CellDecisions
from .notebooks.documents import Notebooks
from .notebooks.execution_cells import NotebookWriter
from .notebooks.handlers import ROUTES as NOTEBOOK_ROUTES
from .notebooks.handlers import ChannelHandler
from .notebooks.manager import NotebookManager
from .notebooks.recovery import CellRecovery
from .openapi import OpenAPIHandler, document
from .server import (
    ContentsEvents,
    KernelEvents,
    ServerContents,
    ServerFolders,
    ServerSessions,
    StopSignals,
)
from .sessions.activity import EVENTS_SCHEMA, EVENTS_SCHEMA_ID, Activity
from .sessions.answers import NAMESPACE
from .sessions.execution_handlers import ROUTES as EXECUTION_ROUTES
from .sessions.factory import SessionFactory
from .sessions.handlers import ROUTES
from .sessions.history_handlers import ROUTES as HISTORY_ROUTES
from .sessions.inspection import KernelInspection
from .sessions.manager import AgentSessions
from .sessions.notebook_kernels import NotebookKernels
from .sessions.permits import Permits
from .sessions.program_kernels import ProgramKernels
from .tasks import Tasks, start_apart
from .traits import SessionTraits

SWITCH_INTERVAL = 0.0005
"""Seconds for which a thread of the server may keep others from running Python."""


class AgentExecApp(IsolationTraits, McpTraits, SessionTraits, ExtensionApp):
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
        *DYNAMIC_ROUTES,
        ("/openapi.json", OpenAPIHandler),
    )
    """Paths under the namespace, and what answers there."""
    channel: ClassVar[Route] = ("/notebooks/channel", ChannelHandler)
    """The WebSocket of JupyterLab's pages: for them alone, so no document describes it."""
    mcp: ClassVar[Route] = ("/mcp", McpHandler)
    """What goes on there MCP describes itself, to each client that asks; OpenAPI has no words for
    it."""
    _stopping: asyncio.Task[None] | None = None

    def update_config(self, config: Config) -> None:
        """Take configuration; a value that may not be stops the server's start with a sentence.

        The server would only warn, and go on with the extension's defaults.
        """
        try:
            super().update_config(config)
        except (TraitError, ValueError) as error:  # of one value, or of one that is given twice
            self.log.critical("The configuration of %s is wrong: %s", self.name, error)
            self.exit(1)

    def initialize_settings(self) -> None:
        """Make the objects and hand them to each other."""
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        self.stop_signals = StopSignals(self._stop_server)
        self.serverapp.event_logger.register_event_schema(EVENTS_SCHEMA)
        self.activity = Activity(self._emit)
        self.tabs = TabBackend(log=self.log)
        self.contents_backend = ContentsBackend(
            self.serverapp.contents_manager, self.log, saved=self.tabs.written
        )
        collaboration = CollaborationBackend(
            self.serverapp.extension_manager,
            partial(self.serverapp.web_app.settings.get, "file_id_manager"),
            self.log,
        )
        notebooks = Notebooks([collaboration, self.tabs, self.contents_backend])
        notebook_writer = NotebookWriter(notebooks, settle=self.tabs.settle, log=self.log)
        self.history = history = History(Path(self.history_dir), version=__version__, log=self.log)
        server_kernels = cast(ServerKernels, self.serverapp.kernel_manager)
        private = [
            Path(self.history_dir),
            *map(Path, (self.serverapp.runtime_dir, self.serverapp.data_dir)),
            Path(self.serverapp.config_dir),
        ]
        starter = KernelStarter(server_kernels)
        kernels = ScratchKernels(
            server_kernels,
            starter,
            isolation=self.make_isolation(
                server_kernels,
                starter,
                [*private, *map(Path, jupyter_config_path())],
                self.serverapp.root_dir,
            ),
            pool_size=self.warm_kernels,
            start_timeout=self.kernel_start_timeout,
            idle_timeout=self.kernel_idle_timeout,
            log=self.log,
        )
        settings = self.settings_of_sessions()
        disk = ThreadPoolExecutor(max_workers=4, thread_name_prefix="agent-exec-disk")
        contents = ServerContents(self.serverapp.contents_manager, server_kernels)
        live = LiveKernels(
            server_kernels,
            start_timeout=self.kernel_start_timeout,
            people=self.kept_of_people(),
            log=self.log,
        )
        jupyter_sessions = ServerSessions(self.serverapp.session_manager, starter, log=self.log)
        attaching = NotebookKernels(
            live, jupyter_sessions, contents, server_kernels, self.tabs.kernel_started
        )
        self.contents_events = ContentsEvents(self.serverapp.event_logger, attaching.moved)
        self.contents_events.start()
        policy = Policy(
            Path(self.history_dir),
            cast(Modes, self.approval),
            cast(Modes, self.forced_approval),
            log=self.log,
        )
        rules = Rules(policy, self.approval_timeout)
        self.token_thread = ThreadPoolExecutor(1, thread_name_prefix="agent-exec-tokens")
        self.tokens = Tokens(
            TokenStore(Path(self.history_dir), TokenEntries(Path(self.history_dir)).read),
            history,
            changed=self._tokens_changed,
            max_lifetime=self.max_token_lifetime,
            thread=self.token_thread,
            log=self.log,
        )
        self.unlocks = Unlocks(self.decision_passphrase_hash, history.note_owed, thread=disk)
        self.denials = Denials(history.note_owed, thread=self.token_thread, log=self.log)
        factory = SessionFactory(
            history,
            kernels,
            attaching,
            settings,
            rules=rules,
            permits=Permits(TargetAccess(jupyter_sessions), self.tokens),
            make_cells=notebook_writer.cells,
            publish=self.activity.publish,
            has_gateway=self.serverapp.gateway_config.gateway_enabled,
            disk=disk,
            log=self.log,
        )
        self.manager = AgentSessions(
            history,
            kernels,
            live,
            factory,
            settings,
            self.tokens,
            version=__version__,
            disk=disk,
            log=self.log,
        )
        self.cell_recovery = CellRecovery(
            history,
            notebook_writer,
            self.contents_backend,
            root_dir=self.serverapp.root_dir,
            disk=disk,
            log=self.log,
        )
        self.program_kernels = ProgramKernels(self.manager, self.log)
        self.kernel_events = KernelEvents(self.serverapp.event_logger, self.program_kernels.started)
        if self.record_people != "off":
            self.kernel_events.start()
        self.access = AccessControl(self.manager.history, jupyter_sessions)
        self.approvals = Approvals(self.manager, history, policy, rules, self.activity.publish)
        self.reviews = Reviews(self.manager.history, self.activity.publish)
        self.files = SessionFiles(
            self.manager,
            ServerFolders(contents, jupyter_sessions),
            self.activity.publish,
            kept=private,
            max_bytes=self.max_file_bytes,
            tasks=Tasks(self.log),
        )
        self.dynamic_sessions = DynamicSessions(
            self.manager,
            self.files,
            self.access,
            settings,
            base_url=self.serverapp.base_url,
            idle_timeout=self.aca_idle_timeout,
            log=self.log,
        )
        self.inspection = KernelInspection(self.manager, may_run_code=self.allow_completion)
        self.decisions = {
            "output_decisions": OutputDecisions(
                self.manager.history, history, notebook_writer, self.activity.publish, log=self.log
            ),
            "cell_decisions": CellDecisions(
                self.manager.history, history, notebook_writer, self.activity.publish, log=self.log
            ),
        }
        self.notebooks = NotebookManager(
            notebooks,
            self.manager,
            notebook_writer,
            collaboration,
            self.tabs,
            kernels=jupyter_sessions.by_notebook,
        )

        self.mcp_endpoint = Endpoint(
            Managers(
                sessions=self.manager,
                notebooks=self.notebooks,
                approvals=self.approvals,
                inspection=self.inspection,
                files=self.files,
                access=self.access,
                base_url=f"{self.serverapp.base_url}{NAMESPACE}",
                settings=settings,
            ),
            self.mcp_options(self.log),
        )

    def initialize_handlers(self) -> None:
        """Add the routes; one that is not complete stops the extension here."""
        assert self.serverapp is not None
        services = {
            "access": self.access,
            "allow_full_access": self.allow_full_access,
            "approvals": self.approvals,
            "body_limit": self.max_body_bytes,
            "default_timeout": self.default_timeout,
            "denials": self.denials,
            "dynamic_sessions": self.dynamic_sessions,
            "endpoint": self.mcp_endpoint,
            "executions_url": f"{self.serverapp.base_url}{NAMESPACE}/executions",
            "failed_calls": FailedCalls(),
            "files": self.files,
            "inspection": self.inspection,
            "manager": self.manager,
            "namespace": NAMESPACE,
            "notebooks": self.notebooks,
            "openapi_document": cache(self._described),
            "reviews": self.reviews,
            "send_timeout": self.send_timeout,
            "tabs": self.tabs,
            "tokens": self.tokens,
            "unlocks": self.unlocks,
            **self.decisions,
        }
        routes = (*self.routes, self.channel, self.mcp)
        self.handlers.extend(url_specs(routes, services, NAMESPACE))

    def _described(self) -> bytes:
        """Return the OpenAPI document of the routes."""
        assert self.serverapp is not None
        described = document(
            self.routes,
            version=__version__,
            base_path=f"{self.serverapp.base_url}{NAMESPACE}",
        )
        return msgspec.json.encode(described)

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        # What is loaded by now stays: to look through it for garbage keeps the loop for 100 ms.
        gc.freeze()
        self.history.address = serverapp.connection_url
        if serverapp.gateway_config.gateway_enabled:
            self.log.warning("Agents cannot run code: %s", GATEWAY)
        # A thread that comes back from the disk waits this long for the loop's, several times in
        # each write; with the default of 5 ms a submit waits longer for that than for the disk.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))
        self.history.root_dir = serverapp.root_dir
        self.manager.start()
        self.cell_recovery.start()
        self.stop_signals.start()

    async def stop_extension(self) -> None:
        """Take nothing new, end what runs, and return when that is recorded.

        Each further signal has the server stop once more: all of these wait for the same end.
        """
        if self._stopping is None:
            self._stopping = start_apart(self._stop(), "stop the extension")
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        await self.mcp_endpoint.stop()
        self.contents_events.stop()
        self.kernel_events.stop()
        await self.tokens.stop()
        await self.denials.stop()
        await self.files.stop()
        await self.dynamic_sessions.stop()
        await self.cell_recovery.stop()
        await self.manager.stop()
        await self.program_kernels.stop()
        self.token_thread.shutdown()
        await self.contents_backend.stop()
        await self.tabs.stop()
        self.activity.stop()
        self.stop_signals.end()

    def _stop_server(self, signal_name: str) -> None:
        assert self.serverapp is not None
        self.log.critical("Received %s; the server stops", signal_name)
        self.serverapp.stop(from_signal=True)

    def _tokens_changed(self) -> None:
        self.manager.lifetimes.check_tokens()
        self.activity.publish("tokens", None)

    def _emit(self, event: dict[str, Any]) -> None:
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        self.serverapp.event_logger.emit(schema_id=EVENTS_SCHEMA_ID, data=event)
