"""Wiring, start and stop: the only file that knows all others."""

from __future__ import annotations

import asyncio
import gc
import re
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
from .aca.handlers import DynamicSessionsBase
from .aca.manager import DynamicSessions
from .approvals.handlers import ROUTES as APPROVAL_ROUTES
from .approvals.handlers import ApprovalsBase, ReviewsBase
from .approvals.manager import Approvals
from .approvals.policy import Modes, Policy
from .approvals.reviews import Reviews
from .auth.access import AccessControl, TargetAccess
from .auth.denials import Denials
from .auth.handler import AgentExecHandler, NotFoundHandler, check_verbs
from .auth.token_handlers import ROUTES as TOKEN_ROUTES
from .auth.token_handlers import TokensBase
from .auth.token_store import TokenStore
from .auth.tokens import Tokens
from .auth.unlocks import Unlocks
from .errors import GATEWAY
from .executions.permission import Rules
from .files.handlers import ROUTES as FILE_ROUTES
from .files.handlers import FilesBase
from .files.manager import SessionFiles
from .journal.history import History
from .kernels.isolation.options import IsolationTraits
from .kernels.live_kernels import LiveKernels
from .kernels.provisioner import KernelStarter
from .kernels.scratch_kernels import ScratchKernels
from .kernels.server_kernels import ServerKernels
from .mcp.doors import Doors
from .mcp.endpoint import Endpoint, McpHandler
from .mcp.options import McpTraits
from .notebooks.backends.collaboration import CollaborationBackend
from .notebooks.backends.contents import ContentsBackend
from .notebooks.backends.tab import TabBackend
from .notebooks.decisions import OutputDecisions
from .notebooks.discarded_cells import CellDecisions
from .notebooks.documents import Notebooks
from .notebooks.execution_cells import NotebookWriter
from .notebooks.handlers import ROUTES as NOTEBOOK_ROUTES
from .notebooks.handlers import ChannelHandler, NotebookDecisionsBase, NotebooksBase
from .notebooks.manager import NotebookManager
from .notebooks.recovery import CellRecovery
from .openapi import OpenAPIHandler, Route, document
from .server import (
    ContentsEvents,
    KernelEvents,
    ServerContents,
    ServerFolders,
    ServerKernelSpecs,
    ServerSessions,
    StopSignals,
)
from .sessions.activity import EVENTS_SCHEMA, EVENTS_SCHEMA_ID, Action, Activity
from .sessions.answers import NAMESPACE
from .sessions.execution_handlers import ROUTES as EXECUTION_ROUTES
from .sessions.execution_handlers import STREAMED
from .sessions.factory import Opener
from .sessions.handlers import ROUTES, GuideHandler, InspectionBase
from .sessions.history_handlers import ROUTES as HISTORY_ROUTES
from .sessions.inspection import KernelInspection
from .sessions.lifetimes import TokenEnds
from .sessions.manager import AgentSessions
from .sessions.notebook_kernels import NotebookKernels
from .sessions.permits import Permits
from .sessions.programs import Programs
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
        specs = ServerKernelSpecs(self.serverapp.kernel_manager)
        contents = ServerContents(self.serverapp.contents_manager, specs)
        live = LiveKernels(
            server_kernels,
            start_timeout=self.kernel_start_timeout,
            people=self.kept_of_people(),
            log=self.log,
        )
        jupyter_sessions = ServerSessions(self.serverapp.session_manager, starter, log=self.log)
        attaching = NotebookKernels(live, jupyter_sessions, contents, specs, self.tabs)
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
            TokenStore(Path(self.history_dir)),
            history,
            changed=self._tokens_changed,
            max_lifetime=self.max_token_lifetime,
            thread=self.token_thread,
            log=self.log,
        )
        self.unlocks = Unlocks(self.decision_passphrase_hash, history.note_owed, thread=disk)
        self.denials = Denials(history.note_owed, thread=self.token_thread, log=self.log)
        opener = Opener(
            history,
            kernels,
            contents,
            attaching,
            settings,
            rules=rules,
            permits=Permits(TargetAccess(jupyter_sessions), self.tokens),
            make_cells=notebook_writer.cells,
            publish=self._publish,
            has_gateway=self.serverapp.gateway_config.gateway_enabled,
            disk=disk,
            log=self.log,
        )
        self.manager = AgentSessions(
            history, kernels, live, opener, settings, version=__version__, disk=disk, log=self.log
        )
        self.cell_recovery = CellRecovery(
            history,
            notebook_writer,
            self.contents_backend,
            root_dir=self.serverapp.root_dir,
            disk=disk,
            log=self.log,
        )
        self.programs = Programs(self.manager, self.log)
        self.kernel_events = KernelEvents(self.serverapp.event_logger, self.programs.started)
        if self.record_people != "off":
            self.kernel_events.start()
        self.access = AccessControl(self.manager, jupyter_sessions)
        self.token_ends = TokenEnds(self.manager, self.tokens, self.log)
        self.approvals = Approvals(self.manager, history, policy, rules, self.activity.publish)
        self.reviews = Reviews(self.manager, history, self.activity.publish)
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
                self.manager, history, notebook_writer, self.activity.publish, log=self.log
            ),
            "cell_decisions": CellDecisions(
                self.manager, history, notebook_writer, self.activity.publish, log=self.log
            ),
        }
        self.notebooks = NotebookManager(
            notebooks,
            self.manager,
            jupyter_sessions,
            tabs=self.tabs.open_notebooks,
            live=collaboration.paths,
            busy=notebook_writer.busy,
            flush=notebook_writer.flush,
            disk=disk,
        )

        self.mcp_endpoint = Endpoint(
            Doors(
                manager=self.manager,
                notebooks=self.notebooks,
                approvals=self.approvals,
                looking=self.inspection,
                files=self.files,
                access=self.access,
                base_url=f"{self.serverapp.base_url}{NAMESPACE}",
                settings=settings,
            ),
            self.mcp_options(self.log),
        )

    def initialize_handlers(self) -> None:
        """Add the routes; a verb that does not name its scope stops the extension here."""
        assert self.serverapp is not None
        for _, handler in (*self.routes, self.channel, self.mcp):
            check_verbs(handler)
        failed_calls = FailedCalls()
        for path, handler in self.routes:
            given: dict[str, Any] = {"manager": self.manager}
            if handler is OpenAPIHandler:
                given = {"document": cache(self._described)}
            elif handler is GuideHandler:
                given["default_timeout"] = self.default_timeout
            elif issubclass(handler, TokensBase):
                given = {"namespace": NAMESPACE}
            elif issubclass(handler, NotebookDecisionsBase):
                given |= self.decisions
            elif issubclass(handler, ApprovalsBase):
                given["approvals"] = self.approvals
            elif issubclass(handler, ReviewsBase):
                given["reviews"] = self.reviews
            elif issubclass(handler, DynamicSessionsBase):
                given |= {"dynamic_sessions": self.dynamic_sessions, "failed_calls": failed_calls}
            elif issubclass(handler, FilesBase):
                given["files"] = self.files
            elif issubclass(handler, InspectionBase):
                given["inspection"] = self.inspection
            elif issubclass(handler, NotebooksBase):
                executions_url = f"{self.serverapp.base_url}{NAMESPACE}/executions"
                given = {"notebooks": self.notebooks, "executions_url": executions_url}
            self._add_route(path, handler, given)
        self._add_route(*self.channel, {"tabs": self.tabs})
        self._add_route(*self.mcp, {"endpoint": self.mcp_endpoint})
        self._add_route("*", NotFoundHandler, {})

    def _described(self) -> bytes:
        """Return the OpenAPI document of the routes."""
        assert self.serverapp is not None
        described = document(
            self.routes,
            version=__version__,
            base_path=f"{self.serverapp.base_url}{NAMESPACE}",
            streamed=STREAMED,
        )
        return msgspec.json.encode(described)

    def _add_route(self, path: str, handler: type[AgentExecHandler], given: dict[str, Any]) -> None:
        common = {
            "access": self.access,
            "tokens": self.tokens,
            "denials": self.denials,
            "unlocks": self.unlocks,
            "allow_full_access": self.allow_full_access,
            "body_limit": self.max_body_bytes,
            "send_timeout": self.send_timeout,
            "route": path,
        }
        self.handlers.append((_pattern(path), handler, common | given))

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
        await self.programs.stop()
        await self.token_ends.stop()  # it may be waiting for what has been interrupted now
        self.token_thread.shutdown()
        await self.contents_backend.stop()
        await self.tabs.stop()
        self.activity.stop()
        self.stop_signals.end()

    def _stop_server(self, signal_name: str) -> None:
        assert self.serverapp is not None
        self.log.critical("Received %s; the server stops", signal_name)
        self.serverapp.stop(from_signal=True)

    def _publish(self, action: Action, *of_what: Any, **told: Any) -> None:
        if action == "opened":
            self.token_ends.watch()
        self.activity.publish(action, *of_what, **told)

    def _tokens_changed(self) -> None:
        self.token_ends.look()
        self.activity.publish("tokens", None)

    def _emit(self, event: dict[str, Any]) -> None:
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        self.serverapp.event_logger.emit(schema_id=EVENTS_SCHEMA_ID, data=event)


def _pattern(path: str) -> str:
    """Return what a path template matches, its parts by name; a contents path has slashes."""
    if path == "*":
        return rf"/{NAMESPACE}(?:/.*)?"
    path = path.replace("{path}", "(?P<path>.+)")
    return f"/{NAMESPACE}" + re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path)
