"""Makes sessions: checks a request, fills in its defaults, takes a kernel and begins the record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace
from ulid import ULID

from ..auth.access import TargetAccess
from ..auth.scopes import Caller
from ..auth.tokens import Tokens
from ..errors import InvalidRequest
from ..executions.limits import SessionLimits, Settings
from ..executions.live_executions import ServerResources
from ..executions.observer import ExecutionCells
from ..executions.rules import Permit, TokenPermit
from ..executions.spec import check_python
from ..journal.fold import opened
from ..journal.history import History
from ..kernels.kernel import Kernel, KernelSource
from ..kernels.live_kernels import not_running
from ..kernels.scratch_kernels import ScratchKernels, ScratchSource
from ..models import KernelTarget, Limits, NotebookTarget, OpenSession, ScratchTarget
from ..records import Opened, Payload, timestamp
from ..types import SessionId
from .activity import Activity
from .notebook_kernels import AttachedNotebook, LiveSource, NotebookKernels
from .preload import Preloaded, preloaded
from .session import LiveSession

T = TypeVar("T")


class NewSession(NamedTuple):
    """A session to open: what was asked, and what was found out before anything was made for it."""

    request: OpenSession
    """The request, with the operator's settings for all sessions applied."""
    caller: Caller
    bounds: SessionLimits
    permit: Permit
    kernels: KernelSource


class SessionFactory:
    """Makes the sessions of a server; a request that fails leaves nothing behind.

    Parameters
    ----------
    make_cells
        Makes the object that writes a session's executions into its notebook.
    """

    def __init__(
        self,
        history: History,
        kernels: ScratchKernels,
        notebooks: NotebookKernels,
        settings: Settings,
        *,
        targets: TargetAccess,
        tokens: Tokens,
        make_cells: Callable[[LiveSession], ExecutionCells],
        activity: Activity,
        resources: ServerResources,
    ) -> None:
        self._history = history
        self._kernels = kernels
        self._notebooks = notebooks
        self._make_cells = make_cells
        self._settings = settings
        self._targets = targets
        self._tokens = tokens
        self._activity = activity
        self._resources = resources

    async def stop(self) -> None:
        """Wait for the tasks that closed sessions have left; their kernels are gone."""
        await self._resources.leftovers.end()

    async def check(self, request: OpenSession, caller: Caller) -> NewSession:
        """Check a request; nothing is created or started yet.

        Raises
        ------
        Forbidden, KernelNotFound, InvalidRequest, KernelSpecNotFound, NotebookNotFound,
        IsolationUnavailable
        """
        target = request.target
        if isinstance(target, ScratchTarget):
            isolated = self._kernels.isolates(target.isolated)
            request = replace(request, target=replace(target, isolated=isolated))
        elif isinstance(target, NotebookTarget):
            path = self._notebooks.contents.located(target.path)
            request = replace(request, target=replace(target, path=path))
        bounds = self._bounds(request.limits, caller)
        permit = Permit()
        if caller.token is not None:
            permit = TokenPermit(
                caller, caller.token.id, request.target, self._targets, self._tokens
            )
        kernels = await self._source(request, caller, permit)
        return NewSession(request, caller, bounds, permit, kernels)

    async def _source(self, request: OpenSession, caller: Caller, permit: Permit) -> KernelSource:
        """Return where the session's kernels will come from."""
        looks = request.init_source is None and not request.preload
        await self._targets.target(caller, request.target, looks=looks)
        if isinstance(request.target, NotebookTarget):
            return await self._notebooks.attach(request.target, permit)
        if isinstance(request.target, KernelTarget):
            if self._kernels.has(request.target.kernel_id):  # it belongs to another session alone
                raise not_running(request.target.kernel_id)
            return LiveSource(self._notebooks.live, request.target.kernel_id)
        return await self._scratch(request.target)

    async def _scratch(self, target: ScratchTarget) -> ScratchSource:
        if target.own_folder and target.cwd is not None:
            raise InvalidRequest(
                "target.own_folder: not together with target.cwd.", field="target.own_folder"
            )
        cwd = (target.cwd or "").strip("/")
        if not await self._notebooks.contents.is_folder(cwd):
            raise InvalidRequest(
                f"target.cwd: there is no folder {cwd!r} under the server's root.",
                field="target.cwd",
            )
        refused = sorted(set(target.env) - self._settings.allowed_env)
        if refused:
            raise InvalidRequest(
                f"target.env: {', '.join(refused)} may not be set on this server.",
                field="target.env",
                allowed=sorted(self._settings.allowed_env),
            )
        is_here = self._notebooks.contents.is_here
        spec = await self._kernels.spec(target.kernel_name, cwd, target.env, is_here=is_here)
        own_folder = target.own_folder or (target.isolated and target.cwd is None)
        return await self._kernels.source(spec, own_folder=own_folder, isolated=target.isolated)

    def check_edit(self, caller: Caller, path: str | None) -> None:
        """Check that a caller may change the existing cells of a session's notebook."""
        if path is not None:
            self._targets.notebook(caller, "edit:notebook", path)

    def _bounds(self, limits: Limits, caller: Caller) -> SessionLimits:
        """Return a session's limits, with the defaults filled in; refuse too high ones."""
        settings = self._settings.within(caller.caps)
        settings.check_timeout(limits.timeout, "limits.timeout")
        settings.check_output(limits.max_output_bytes, "limits.max_output_bytes")
        given = {name: value for name, value in msgspec.structs.asdict(limits).items() if value}
        default = settings.bounds
        if limits.restart_if_interrupt_ignored is not None:
            given["restart_if_interrupt_ignored"] = limits.restart_if_interrupt_ignored
        return SessionLimits(**{name: given.get(name, getattr(default, name)) for name in _BOUNDS})

    async def open(self, new: NewSession) -> tuple[LiveSession, Kernel]:
        """Take a kernel and record the session that it is for.

        Raises
        ------
        InvalidRequest, Paused, KernelUnavailable, KernelNotFound, NotebookNotFound,
        HistoryUnavailable, IsolationUnavailable
            Nothing was opened.
        """
        kernels = new.kernels
        loads = await self._in_disk_thread(partial(preloaded, new.request.preload))
        if not self._history.available:
            await self._in_disk_thread(self._history.check)
        if isinstance(kernels, AttachedNotebook):
            if kernels.may_create:
                self._resources.rules.check_not_paused("Making a notebook")
            await kernels.create()
        kernel: Kernel | None = None
        try:
            kernel = await kernels.take()
            if loads is not None:
                check_python(kernel, "preload")
            return await self._record(new, loads), kernel
        except BaseException:
            if kernel is not None:
                await kernel.let_go()
            if isinstance(kernels, AttachedNotebook):
                await kernels.discard()
            await kernels.release()
            raise

    async def _record(self, new: NewSession, loads: Preloaded | None) -> LiveSession:
        """Write the session to disk."""
        request, caller, bounds, permit, kernels = new
        source = None if request.init_source is None else Payload.of(request.init_source.encode())
        scratch, redactor = isinstance(request.target, ScratchTarget), self._history.redactor
        entry = Opened(
            at=timestamp(),
            by=caller.by(),
            session_id=SessionId(f"s_{ULID()}"),
            agent=redactor.struct(request.agent),
            target=request.target,
            title=request.title and redactor.text(request.title)[0],
            client_id=request.client_id,
            limits=request.limits,
            username=caller.username,
            access=caller.access,
            token=caller.token,
            init_source=None if source is None else source.digest,
            record_people="off" if scratch else self._settings.record_people,
            approval=self._resources.rules.mode(request.target, caller.approval),
            allow_stdin=request.allow_stdin,
            preloaded=() if loads is None else loads.told,
        )
        payloads = [] if source is None else [source]
        first = {} if loads is None else {"preload": loads.source}
        if request.init_source is not None:
            first["init_source"] = request.init_source
        journal = await self._in_disk_thread(partial(self._history.open_session, entry, payloads))
        return LiveSession(
            opened(entry, journal.file.head),
            journal,
            kernels,
            bounds=bounds,
            permit=permit,
            first_sources=first,
            make_cells=self._make_cells,
            activity=self._activity,
            resources=self._resources,
        )

    async def _in_disk_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._resources.disk, call)


_BOUNDS = tuple(SessionLimits.__dataclass_fields__)
