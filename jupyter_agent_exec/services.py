"""Create and connect the managers of the extension, and start and stop them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from jupyter_core.paths import jupyter_config_path
from traitlets import HasTraits

from ._version import __version__
from .approvals.manager import Approvals, Reviews
from .auth.access import AccessControl, TargetAccess
from .auth.denials import Denials, Refusal
from .auth.routes import Route
from .auth.token_store import TokenStore
from .auth.tokens import Tokens
from .auth.unlocks import Unlocks
from .executions.live_executions import Checkpoints, ServerResources
from .executions.observer import ExecutionObserver
from .executions.rules import Modes, Rules
from .executions.shared_decisions import SharedDecisions
from .files.manager import Folders, SessionFiles
from .journal.history import History
from .journal.ledger import TokenEntries
from .journal.retention import make_rules
from .kernels.live_kernels import LiveKernels
from .kernels.provisioner import Isolation
from .kernels.scratch_kernels import ScratchKernels
from .kernels.server_kernels import KernelStarter, ServerKernels
from .kernels.trials.trial import TrialSettings
from .mcp.endpoint import Endpoint, Managers, is_installed
from .mcp.sign_in import SignIn, fetch_document
from .models import Session
from .notebooks.backends.collaboration import CollaborationBackend
from .notebooks.backends.contents import ContentsBackend
from .notebooks.backends.tab import TabBackend
from .notebooks.documents import Notebooks
from .notebooks.execution_cells import NotebookWriter
from .notebooks.manager import NotebookManager
from .notebooks.output_decisions import OutputDecisions
from .notebooks.proposals import Proposals
from .notebooks.sharing import SharedNotebooks
from .observability.logs import ActivityLog
from .observability.metrics import Metrics
from .server import ContentsEvents, HubAccess, StopSignals
from .sessions.activity import EVENTS_SCHEMA, EVENTS_SCHEMA_ID, Activity
from .sessions.answers import NAMESPACE
from .sessions.factory import SessionFactory
from .sessions.kernel_inspection import KernelInspection
from .sessions.manager import AgentSessions
from .sessions.notebook_kernels import NotebookKernels
from .sessions.restores import Restores
from .sessions.server_documents import ServerContents, ServerSessions
from .sessions.session_history import SessionHistory
from .tasks import Tasks, start_apart
from .traits import AgentExecTraits


class Leaf:
    """A part of the extension that nothing in it imports, so that it may be missing.

    An entry point of the group `jupyter_agent_exec.leaves` names a subclass. It overrides what it
    needs.

    Parameters
    ----------
    settings
        The configuration, in which the leaf's own traits are too.
    log
        Gets messages for the operator.
    """

    traits: ClassVar[type[HasTraits] | None] = None
    """Traits that `AgentExecApp` has for it."""
    routes: ClassVar[Sequence[Route]] = ()
    """Paths under the namespace, and their handlers."""

    def __init__(self, settings: Any, log: logging.Logger) -> None:
        self.settings = settings
        self.log = log

    def kernels(self, manager: Any) -> ServerKernels | None:
        """Return the kernels of the server's kernel manager, if this can reach what others cannot.

        Called first.
        """
        return None

    def isolation(
        self,
        kernels: ServerKernels,
        starter: KernelStarter,
        private: Collection[Path],
        root_dir: Path,
    ) -> Isolation | None:
        """Return what isolates scratch kernels, if this can.

        Parameters
        ----------
        private
            Folders that such a kernel must not see.
        root_dir
            The folder that the server serves.
        """
        return None

    def checkpoints(self) -> Checkpoints | None:
        """Return what keeps checkpoints of kernels, if this can."""
        return None

    def attach(self, services: Services) -> dict[str, object]:
        """Connect it with the managers, before the history starts.

        Returns
        -------
        dict
            Objects that its handlers may declare as attributes, by name.
        """
        return {}

    def start(self) -> None:
        """Start its background work, after the managers."""

    async def stop(self) -> None:
        """Stop what it began, before the managers stop."""


class Services:
    """The managers behind the routes and the MCP tools, one of each.

    Parameters
    ----------
    traits
        The configuration.
    serverapp
        The Jupyter server.
    leaves
        What the server has besides.
    """

    def __init__(
        self,
        traits: AgentExecTraits,
        serverapp: Any,
        leaves: Iterable[type[Leaf]],
        *,
        log: logging.Logger,
    ) -> None:
        self._traits = traits
        self._leaves = [leaf(traits, log) for leaf in leaves]
        self._serverapp = serverapp
        self._log = log
        self._stopping: asyncio.Task[None] | None = None
        self._disk = ThreadPoolExecutor(max_workers=4, thread_name_prefix="agent-exec-disk")
        self._token_thread = ThreadPoolExecutor(1, thread_name_prefix="agent-exec-tokens")
        self._folder = Path(traits.history_dir)
        self._private = [
            self._folder,
            *map(Path, (serverapp.runtime_dir, serverapp.data_dir, serverapp.config_dir)),
        ]
        self._hidden = [*self._private, *map(Path, jupyter_config_path())]
        self.settings = traits.settings_of_sessions()
        self._stop_signals = StopSignals(self._stop_server)
        self._activity_log = ActivityLog(log)
        serverapp.event_logger.register_event_schema(EVENTS_SCHEMA)
        self.activity = Activity(self._emit)
        self.history = History(
            self._folder,
            version=__version__,
            log=log,
            redactor=traits.redactor(),
            root_dir=serverapp.root_dir,
            address=lambda: serverapp.custom_display_url or serverapp.connection_url,
        )
        self.history.retention = make_rules(traits.retention)
        self._checkpoints = next(
            (each for leaf in self._leaves if (each := leaf.checkpoints())), None
        )
        self._make_backends()
        self._make_kernels()
        self._make_auth()
        self._make_rules()
        self._make_cells()
        self._make_sessions()
        self._make_managers()
        self._of_leaves: dict[str, object] = {}
        for leaf in self._leaves:
            self._of_leaves |= leaf.attach(self)

    def _make_backends(self) -> None:
        """Create the backends that read and write notebooks."""
        contents_manager = self._serverapp.contents_manager
        self.tabs = TabBackend(
            lambda path, ids: self._contents_backend.not_in_file(path, ids), log=self._log
        )
        self._contents_backend = ContentsBackend(
            contents_manager, self._log, saved=self.tabs.written
        )
        self._collaboration = CollaborationBackend(
            self._serverapp.extension_manager,
            partial(self._serverapp.web_app.settings.get, "file_id_manager"),
            self._contents_backend.not_in_file,
            self._log,
        )
        self._documents = Notebooks([self._collaboration, self.tabs, self._contents_backend])

    def _make_kernels(self) -> None:
        """Create the managers that start kernels and attach to the server's kernels."""
        traits, serverapp = self._traits, self._serverapp
        own: ServerKernels = serverapp.kernel_manager
        found = (leaf.kernels(own) for leaf in self._leaves)
        kernels = next((each for each in found if each is not None), own)
        self.kernels = kernels
        starter = KernelStarter(serverapp.kernel_manager)
        root_dir = Path(serverapp.root_dir)
        isolations = (
            leaf.isolation(kernels, starter, self._hidden, root_dir) for leaf in self._leaves
        )
        self._scratch_kernels = ScratchKernels(
            kernels,
            starter,
            isolation=next((each for each in isolations if each is not None), Isolation()),
            pool_size=traits.warm_kernels,
            start_timeout=traits.kernel_start_timeout,
            idle_timeout=traits.kernel_idle_timeout,
            redactor=self.history.redactor,
            log=self._log,
        )
        self.live_kernels = LiveKernels(
            kernels,
            start_timeout=traits.kernel_start_timeout,
            people=traits.kept_of_people(),
            redactor=self.history.redactor,
            log=self._log,
        )
        self._contents = ServerContents(serverapp.contents_manager, kernels)
        self._jupyter_sessions = ServerSessions(serverapp.session_manager, starter, log=self._log)
        self._notebook_kernels = NotebookKernels(
            self.live_kernels,
            self._jupyter_sessions,
            self._contents,
            kernels,
            self.tabs.kernel_started,
        )
        self._contents_events = ContentsEvents(serverapp.event_logger, self._moved)

    def _make_auth(self) -> None:
        """Create the managers of agent tokens, the passphrase and denied requests."""
        traits = self._traits
        self.tokens = Tokens(
            TokenStore(self._folder, TokenEntries(self._folder).read, self._log),
            note=self.history.note,
            note_owed=self.history.note_owed,
            changed=self._tokens_changed,
            max_lifetime=traits.max_token_lifetime,
            thread=self._token_thread,
            log=self._log,
            barred=HubAccess(self._serverapp).refusal,
        )
        self.unlocks = Unlocks(
            traits.decision_passphrase_hash, self.history.note_owed, thread=self._disk
        )
        self.denials = Denials(self.history.note_owed, thread=self._token_thread, log=self._log)

    def _make_rules(self) -> None:
        """Create the approval policy."""
        traits = self._traits
        self._decisions = SharedDecisions(
            self._folder,
            self._token_thread,
            self._log,
            changed=lambda pause: self.approvals.changed(pause),
        )
        self._rules = Rules(
            self._decisions,
            cast(Modes, traits.approval),
            cast(Modes, traits.forced_approval),
            traits.approval_timeout,
        )

    def _make_cells(self) -> None:
        """Create what writes, decides on and recovers the cells of executions, and proposals."""
        self._sessions = SessionHistory(self.history, disk=self._disk, log=self._log)
        self._writer = NotebookWriter(self._documents, settle=self.tabs.settle, log=self._log)
        self.output_decisions = OutputDecisions(
            self._sessions, self._writer, self.activity, log=self._log
        )
        self.proposals = Proposals(
            self._documents,
            self._sessions,
            self.history,
            self._writer,
            self._rules,
            self.activity,
        )

    def _make_sessions(self) -> None:
        """Create the session manager."""
        traits = self._traits
        factory = SessionFactory(
            self.history,
            self._scratch_kernels,
            self._notebook_kernels,
            self.settings,
            targets=TargetAccess(self._jupyter_sessions.notebooks_of, self._contents.located),
            tokens=self.tokens,
            make_cells=partial(self._writer.cells, edits=self.proposals),
            activity=self.activity,
            resources=ServerResources(
                rules=self._rules,
                trials=TrialSettings(
                    is_on=traits.trials == "on",
                    previews=traits.previews,
                    memory_bytes=traits.trial_memory_bytes,
                    root=Path(self._serverapp.root_dir),
                    allow_hidden=self._serverapp.contents_manager.allow_hidden,
                    hidden=self._hidden,
                ),
                leftovers=Tasks(self._log),
                disk=self._disk,
                log=self._log,
                read=self.history.execution,
                observe=self._observers,
                checkpoints=self._checkpoints,
            ),
        )
        self.manager: AgentSessions = traits.session_manager_class(
            self._sessions,
            self.history,
            self._scratch_kernels,
            self.live_kernels,
            factory,
            self.settings,
            self.tokens,
            version=__version__,
            log=self._log,
        )
        self._metrics = Metrics(
            self.manager.history.all_open,
            self.history,
            lambda: self._decisions.paused is not None,
            self._disk,
        )
        self.access = AccessControl(
            self.manager.history, self._jupyter_sessions.notebooks_of, self._contents.located
        )

    def _make_managers(self) -> None:
        """Create the other managers that routes and MCP tools use."""
        traits, activity = self._traits, self.activity
        self.approvals: Approvals = traits.approval_manager_class(
            self.manager, self.history, self._rules, activity
        )
        self.reviews = Reviews(self.manager.history, activity)
        self.restores = Restores(self.manager, self.settings, self._log)
        self.files: SessionFiles = traits.file_manager_class(
            self.manager,
            Folders(self._contents, self._jupyter_sessions),
            kept=self._private,
            max_bytes=traits.max_file_bytes,
            tasks=Tasks(self._log),
        )
        self.inspection = KernelInspection(self.manager)
        self.notebooks: NotebookManager = traits.notebook_manager_class(
            self._documents,
            self.manager,
            self._writer,
            self._collaboration,
            self.tabs,
            self.proposals,
            kernels=self._jupyter_sessions.by_notebook,
            runs=self.live_kernels.runs,
            folder=self._contents.folder,
            located=self._contents.located,
        )
        self.sharing = SharedNotebooks(self.manager, self._documents, self.history.redactor)
        self.sign_in = SignIn(self.tokens, fetch_document if traits.mcp_client_documents else None)
        self.mcp_endpoint = Endpoint(
            Managers(
                sessions=self.manager,
                notebooks=self.notebooks,
                proposals=self.proposals,
                inspection=self.inspection,
                files=self.files,
                restores=self.restores,
                access=self.access,
                open_notebooks=self.tabs.recent,
                kernel_names=self._contents.kernel_names,
                settings=self.settings,
                checkpoints=self._checkpoints,
            ),
            traits,
            self._log,
        )

    def of_handlers(self) -> dict[str, object]:
        """Return the objects that handlers may declare as attributes, by name."""
        traits = self._traits
        return {
            "access": self.access,
            "allow_full_access": traits.allow_full_access,
            "approval_policy": lambda: self.approvals.policy,
            "approvals": self.approvals,
            "body_limit": traits.max_body_bytes,
            "default_timeout": self.settings.bounds.timeout,
            "denials": self.denials,
            "endpoint": self.mcp_endpoint,
            "erase": lambda wanted, by: self._sessions.read(self.history.erase, wanted, by),
            "files": self.files,
            "inspection": self.inspection,
            "manager": self.manager,
            "mcp_installed": is_installed,
            "namespace": NAMESPACE,
            "notebooks": self.notebooks,
            "on_refusal": self._refused,
            "open_notebooks": self.tabs.recent,
            "output_decisions": self.output_decisions,
            "proposals": self.proposals,
            "proposing": self.proposals.sessions,
            "refresh_decisions": self._decisions.refresh,
            "restores": self.restores,
            "reviews": self.reviews,
            "send_timeout": traits.send_timeout,
            "set_policy": self.approvals.set_policy,
            "sharing": self.sharing,
            "sign_in": self.sign_in,
            "tabs": self.tabs,
            "tokens": self.tokens,
            "unlocks": self.unlocks,
            **self._of_leaves,
        }

    async def _moved(self, before: str, path: str) -> None:
        """Follow a file or a folder that was moved."""
        self._notebook_kernels.moved(before, path)
        await self.proposals.moved(before, path)

    def listen(self) -> None:
        """Listen to the server's events, and show its metrics."""
        self._metrics.show()
        self._contents_events.start()

    def start(self) -> None:
        """Start the background work of the extension."""
        self.manager.history.start()
        self._decisions.start()
        for leaf in self._leaves:
            leaf.start()
        self._metrics.start()
        self._stop_signals.start()

    async def stop(self) -> None:
        """Refuse new work, end running executions, and return when their end is recorded.

        Each further signal calls this again. All calls wait for the same stop.
        """
        if self._stopping is None:
            self._stopping = start_apart(self._stop(), "stop the extension")
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        await self.mcp_endpoint.stop()
        self._contents_events.stop()
        await self.tokens.stop()
        await self._decisions.stop()
        await self.denials.stop()
        await self.files.stop()
        for leaf in self._leaves:
            try:
                await leaf.stop()
            except Exception:  # what runs is ended and recorded all the same
                self._log.exception("%s was not stopped as it should be", type(leaf).__name__)
        await self.manager.stop()
        await asyncio.to_thread(self._disk.shutdown)
        await self._writer.stop()
        await self.restores.stop()
        await asyncio.to_thread(self._token_thread.shutdown)
        await self._contents_backend.stop()
        await self.tabs.stop()
        self.activity.stop()
        self._metrics.stop()
        self._stop_signals.end()

    def _stop_server(self, signal_name: str) -> None:
        self._log.critical("Received %s; the server stops", signal_name)
        self._serverapp.stop(from_signal=True)

    def _tokens_changed(self) -> None:
        self.manager.lifetimes.check_tokens()
        self.activity.publish("tokens")

    def _observers(self, session: Session) -> list[ExecutionObserver]:
        """Return the observers of a new session that its executions do not need."""
        return [self._activity_log.observer(session), self._metrics.observer(session)]

    def _refused(self, refusal: Refusal) -> None:
        self._activity_log.refused(refusal)
        self._metrics.refused(refusal)

    def _emit(self, event: dict[str, Any]) -> None:
        self._serverapp.event_logger.emit(schema_id=EVENTS_SCHEMA_ID, data=event)
