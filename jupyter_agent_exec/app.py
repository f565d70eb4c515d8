"""Traits, wiring, start and stop: the only file that knows all others."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
from jupyter_core.paths import jupyter_data_dir
from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Enum, Float, Int, List, TraitError, Unicode, default
from traitlets.config import Config

from ._version import __version__
from .access.handler import NotFoundHandler, check_verbs
from .journal.history import History
from .kernels.live import LiveKernels
from .kernels.scratch import ScratchKernels
from .kernels.server import ServerKernels
from .notebooks.channel import ChannelHandler
from .notebooks.document import Notebooks
from .notebooks.handlers import ROUTES as NOTEBOOK_ROUTES
from .notebooks.handlers import NotebooksBase
from .notebooks.manager import NotebookManager
from .notebooks.opened import OpenedWays
from .notebooks.shared import SharedWays
from .notebooks.stored import StoredWays
from .openapi import OpenAPIHandler, Route, document
from .server import ContentsEvents, ServerContents, ServerKernelSpecs, ServerSessions
from .sessions.accepting import Decisions
from .sessions.activity import EVENTS_SCHEMA, EVENTS_SCHEMA_ID, Activity
from .sessions.answers import NAMESPACE
from .sessions.attached import NotebookKernels
from .sessions.bounds import Bounds, Settings
from .sessions.handlers import ROUTES, STREAMED
from .sessions.manager import AgentSessions
from .sessions.opening import Opener
from .sessions.placing import Placing
from .sessions.reviewing_handlers import ROUTES as REVIEWING_ROUTES
from .sessions.reviewing_handlers import DecisionsBase
from .types import RecordPeople


class AgentExecApp(ExtensionApp):
    """Lets agents run code in this server's kernels, and keeps a record of it."""

    name = "jupyter_agent_exec"
    extension_url = "/"
    load_other_extensions = True
    routes: ClassVar[tuple[Route, ...]] = (
        *ROUTES,
        *NOTEBOOK_ROUTES,
        *REVIEWING_ROUTES,
        ("/openapi.json", OpenAPIHandler),
    )
    """Paths under the namespace, and what answers there."""
    channel: ClassVar[Route] = ("/notebooks/channel", ChannelHandler)
    """The WebSocket of JupyterLab's pages: for them alone, so no document describes it."""

    history_dir = Unicode(
        config=True,
        help="""Folder of the history: journals, ledger, blobs and index. It should be outside of
        what the server serves. Default: `agent_exec` in Jupyter's data directory.""",
    )

    @default("history_dir")
    def _default_history_dir(self) -> str:
        return str(Path(jupyter_data_dir()) / "agent_exec")

    default_timeout = Float(
        600,
        min=0.1,
        config=True,
        help="Seconds an execution may run when nobody says otherwise.",
    )
    max_timeout = Float(
        0, min=0, config=True, help="The longest timeout that may be asked for, in seconds; 0: any."
    )
    queue_timeout = Float(
        0,
        min=0,
        config=True,
        help="Seconds an execution may wait for its turn when nobody says otherwise; 0: any time.",
    )
    interrupt_grace = Float(
        5,
        min=0.1,
        config=True,
        help="Seconds after an interrupt before code that goes on is said to ignore it.",
    )
    restart_if_interrupt_ignored = Bool(
        False,
        config=True,
        help="""Whether a scratch kernel whose code ignores an interrupt is replaced when nobody
        says otherwise. Its variables are lost then; without, the session waits for the code.""",
    )
    max_output_bytes = Int(
        10_000_000,
        min=1000,
        config=True,
        help="""Bytes of output kept with a cell, at the most: half from the start, half from the
        end.""",
    )
    max_text_bytes = Int(
        100_000_000,
        min=0,
        config=True,
        help="Bytes of text kept beside the cell when its output is over max_output_bytes.",
    )
    max_body_bytes = Int(
        5_000_000, min=1000, config=True, help="The largest request body, in bytes."
    )
    max_sessions = Int(100, min=1, config=True, help="How many agent sessions may be open at once.")
    max_queued = Int(
        100, min=1, config=True, help="How many executions may wait in one session at once."
    )
    default_wait = Float(
        30,
        min=0,
        config=True,
        help="Seconds to hold an answer for an execution to finish when nobody says otherwise.",
    )
    max_wait = Float(
        60,
        min=0,
        config=True,
        help="The longest time to hold an answer, in seconds; below the timeout of any proxy.",
    )
    allowed_env = List(
        Unicode(),
        config=True,
        help="Names of the environment variables that a session may set for its scratch kernel.",
    )
    warm_kernels = Int(
        1,
        min=0,
        config=True,
        help="""How many scratch kernels to keep warm after the first was used, so that the next
        session like it opens at once; 0: none.""",
    )
    kernel_start_timeout = Float(
        60, min=1, config=True, help="Seconds within which a scratch kernel must answer."
    )
    kernel_idle_timeout = Float(
        3600,
        min=0,
        config=True,
        help="""Seconds after which a scratch kernel that does nothing is shut down, and a warm one
        that nobody takes; 0: never. The session stays open and gets a fresh kernel when needed.""",
    )

    record_people = Enum(
        ("off", "source", "outputs"),
        "off",
        config=True,
        help="""What is recorded of what people run in the kernels that agents are attached to:
        nothing (`off`), what they ran (`source`), or also what came of it (`outputs`). As far as
        the kernel tells it, so it may not be all.""",
    )

    def update_config(self, config: Config) -> None:
        """Take configuration; a value that may not be stops the server's start with a sentence.

        The server would only warn, and go on with the extension's defaults.
        """
        try:
            super().update_config(config)
        except TraitError as error:
            self.log.critical("The configuration of %s is wrong: %s", self.name, error)
            self.exit(1)

    def initialize_settings(self) -> None:
        """Make the objects and hand them to each other."""
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        self.serverapp.event_logger.register_event_schema(EVENTS_SCHEMA)
        self.activity = Activity(self._emit)
        self.opened = OpenedWays(log=self.log)
        self.stored = StoredWays(
            self.serverapp.contents_manager, self.log, saved=self.opened.written
        )
        shared = SharedWays(
            self.serverapp.extension_manager,
            partial(self.serverapp.web_app.settings.get, "file_id_manager"),
            self.log,
        )
        notebooks = Notebooks([shared, self.opened, self.stored])
        placing = Placing(notebooks, settle=self.opened.settle, log=self.log)
        history = History(Path(self.history_dir), version=__version__, log=self.log)
        kernels = ScratchKernels(
            cast(ServerKernels, self.serverapp.kernel_manager),
            pool_size=self.warm_kernels,
            start_timeout=self.kernel_start_timeout,
            idle_timeout=self.kernel_idle_timeout,
            log=self.log,
        )
        settings = self._settings()
        disk = ThreadPoolExecutor(max_workers=4, thread_name_prefix="agent-exec-disk")
        specs = ServerKernelSpecs(self.serverapp.kernel_manager)
        contents = ServerContents(self.serverapp.contents_manager, specs)
        live = LiveKernels(
            cast(ServerKernels, self.serverapp.kernel_manager),
            start_timeout=self.kernel_start_timeout,
            log=self.log,
        )
        jupyter_sessions = ServerSessions(self.serverapp.session_manager, log=self.log)
        attaching = NotebookKernels(live, jupyter_sessions, contents, specs, self.opened)
        self.contents_events = ContentsEvents(self.serverapp.event_logger, attaching.moved)
        self.contents_events.start()
        opener = Opener(
            history,
            kernels,
            contents,
            attaching,
            settings,
            make_cells=placing.cells,
            publish=self.activity.publish,
            disk=disk,
            log=self.log,
        )
        self.manager = AgentSessions(
            history, kernels, live, opener, settings, version=__version__, disk=disk
        )
        self.decisions = Decisions(self.manager, history, placing, log=self.log)
        self.notebooks = NotebookManager(
            notebooks,
            self.manager,
            jupyter_sessions,
            tabs=self.opened.opened,
            live=shared.paths,
            flush=placing.flush,
            disk=disk,
        )

    def _settings(self) -> Settings:
        return Settings(
            bounds=Bounds(
                timeout=self.default_timeout,
                queue_timeout=self.queue_timeout or None,
                max_output_bytes=self.max_output_bytes,
                max_text_bytes=self.max_text_bytes,
                max_queued=self.max_queued,
                interrupt_grace=self.interrupt_grace,
                restart_if_interrupt_ignored=self.restart_if_interrupt_ignored,
                idle_timeout=self.kernel_idle_timeout,
            ),
            max_timeout=self.max_timeout,
            max_sessions=self.max_sessions,
            allowed_env=frozenset(self.allowed_env),
            record_people=cast(RecordPeople, self.record_people),
            default_wait=self.default_wait,
            max_wait=self.max_wait,
        )

    def initialize_handlers(self) -> None:
        """Add the routes; a verb that does not name its scope stops the extension here."""
        assert self.serverapp is not None
        for _, handler in (*self.routes, self.channel):
            check_verbs(handler)
        described = document(
            self.routes,
            version=__version__,
            base_path=f"{self.serverapp.base_url}{NAMESPACE}",
            streamed=STREAMED,
        )
        common = {"body_limit": self.max_body_bytes}
        for path, handler in self.routes:
            given: dict[str, Any] = {"manager": self.manager}
            if handler is OpenAPIHandler:
                given = {"document": msgspec.json.encode(described)}
            elif issubclass(handler, DecisionsBase):
                given["decisions"] = self.decisions
            elif issubclass(handler, NotebooksBase):
                executions_url = f"{self.serverapp.base_url}{NAMESPACE}/executions"
                given = {"notebooks": self.notebooks, "executions_url": executions_url}
            self.handlers.append((_pattern(path), handler, common | given))
        path, handler = self.channel
        self.handlers.append((_pattern(path), handler, common | {"ways": self.opened}))
        self.handlers.append((rf"/{NAMESPACE}(?:/.*)?", NotFoundHandler, common))

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        self.manager.start()

    async def stop_extension(self) -> None:
        """Take nothing new, end what runs, and return when that is recorded."""
        self.contents_events.stop()
        await self.manager.stop()
        await self.stored.stop()
        await self.opened.stop()
        self.activity.stop()

    def _emit(self, event: dict[str, Any]) -> None:
        assert self.serverapp is not None
        assert self.serverapp.event_logger is not None
        self.serverapp.event_logger.emit(schema_id=EVENTS_SCHEMA_ID, data=event)


def _pattern(path: str) -> str:
    """Return what a path template matches; a contents path has slashes."""
    return f"/{NAMESPACE}" + re.sub(r"{(\w+)}", "([^/]+)", path.replace("{path}", "(.+)"))
