"""The kernels of notebooks that agent sessions are attached to, wherever the file moves.

Jupyter ties a notebook to a kernel by a *Jupyter session*, which JupyterLab finds by the path. An
agent session finds or starts it in the same way, so that the user and the agent share one kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakSet

from ..errors import InvalidRequest, KernelNotFound, KernelUnavailable, NotebookNotFound
from ..executions.rules import Permit
from ..kernels.channels import KernelDeath
from ..kernels.folder import Folder
from ..kernels.kernel import Kernel, KernelSource
from ..kernels.live_kernels import LiveKernels
from ..kernels.server_kernels import ServerKernels, kernel_spec
from ..models import NotebookTarget
from .server_documents import JupyterSession, ServerContents, ServerSessions, contents_path


def path_after_move(path: str, before: str, after: str) -> str:
    """Return the contents path of a file after a file or a folder was moved."""
    if path == before or path.startswith(f"{before}/"):
        return after + path[len(before) :]
    return path


class AttachedNotebook(KernelSource):
    """The notebook of one session: gives its kernel, and follows its path.

    Made by `NotebookKernels.attach`.
    """

    def __init__(
        self, kernels: NotebookKernels, target: NotebookTarget, path: str, permit: Permit
    ) -> None:
        self.path: str = path
        self.created = False
        """Whether the notebook was created for the session."""
        self.on_moved: Callable[[str, str], None] | None = None
        """Called with the old and the new path when the notebook moves."""
        self._kernels = kernels
        self._target = target
        self._permit = permit
        self._jupyter_session_id: str | None = None
        self._reported_path = path  # by the Jupyter session, which may not know of a rename

    @property
    def folder(self) -> Folder | None:
        """The notebook's folder, in which its kernel runs; None if that runs elsewhere."""
        return None if self.is_elsewhere else self._kernels.folder_of(self.path)

    @property
    def may_create(self) -> bool:
        """Whether the session may create the notebook."""
        return self._target.create

    async def create(self) -> None:
        """Create the notebook if it does not exist and the session may."""
        if self._target.create:
            self.created = await self._kernels.create(self.path, self._target.kernel_name)

    async def discard(self) -> bool:
        """Delete the notebook that was created, and its kernel, if nobody uses them.

        Return whether the notebook is gone.
        """
        is_gone = self.created and await self._kernels.discard(self, self._jupyter_session_id)
        self.created = self.created and not is_gone
        return is_gone

    async def release(self) -> None:
        """Follow the notebook no longer. The kernel is not the session's own."""
        self._kernels.detach(self)

    async def take(self) -> Kernel:
        """Return the notebook's kernel; start one if it has none and the agent may run code."""
        session = await self._current_session()
        if session is None:
            session = await self._kernels.session_of(
                self.path, self._target.kernel_name, self._permit
            )
            self._jupyter_session_id = session.id
        try:
            kernel = await self._kernels.live.adopt(session.kernel_id)
        except KernelNotFound as error:  # it was shut down a moment ago
            raise KernelUnavailable(error.message, path=self.path) from error
        self.is_elsewhere = kernel.is_elsewhere
        return kernel

    async def parted(self, kernel: Kernel) -> KernelDeath | None:
        """Return why the notebook no longer has a kernel; None if it still has it."""
        session = await self._current_session()
        if session is not None and session.kernel_id == kernel.id:
            session = await self._kernels.used(session, kernel)
        if session is None or session.kernel_id == kernel.id:
            return None
        return KernelDeath("changed", "A user gave the notebook another kernel.")

    async def explain(self, kernel: Kernel, death: KernelDeath) -> KernelDeath:
        """Return how a kernel ended, with a better reason if the notebook has another kernel."""
        if death.reason == "died":
            return death
        return await self.parted(kernel) or death

    def moved(self, before: str, path: str) -> None:
        """Follow a file or a folder that was moved."""
        after = path_after_move(self.path, before, path)
        if after != self.path:
            self._has_path(after)

    def follow(self, jupyter_session_id: str, to: str) -> None:
        """Use another Jupyter session in place of this one."""
        if self._jupyter_session_id == jupyter_session_id:
            self._jupyter_session_id = to

    async def _current_session(self) -> JupyterSession | None:
        """Return the Jupyter session that was found before, and take over its path."""
        if self._jupyter_session_id is None:
            return None
        session = await self._kernels.jupyter_sessions.get(self._jupyter_session_id)
        if session is not None and contents_path(session.path) != self._reported_path:
            self._reported_path = contents_path(session.path)
            self._has_path(self._reported_path)
        return session

    def _has_path(self, path: str) -> None:
        before, self.path = self.path, path
        if path != before and self.on_moved is not None:
            self.on_moved(before, path)


class NotebookKernels:
    """Finds the kernels of notebooks, or starts them.

    Parameters
    ----------
    kernel_started
        Waits, for a limited time, while a JupyterLab page starts a kernel for a notebook.
    """

    def __init__(
        self,
        live: LiveKernels,
        jupyter_sessions: ServerSessions,
        contents: ServerContents,
        server_kernels: ServerKernels,
        kernel_started: Callable[[str], Awaitable[None]],
    ) -> None:
        self.live = live
        self.jupyter_sessions = jupyter_sessions
        self.contents = contents
        self._server_kernels = server_kernels
        self._kernel_started = kernel_started
        self._lock = asyncio.Lock()
        self._unused: set[str] = set()
        self._attached: WeakSet[AttachedNotebook] = WeakSet()

    async def attach(self, target: NotebookTarget, permit: Permit) -> AttachedNotebook:
        """Attach a session to a notebook; nothing is created or started yet.

        Parameters
        ----------
        permit
            What its agent may do: one that only looks starts no kernel.

        Raises
        ------
        NotebookNotFound, InvalidRequest, KernelSpecNotFound
        """
        path = normalised(target.path)
        kind = await self.contents.kind(path)
        if kind == "directory":
            raise InvalidRequest(
                f"target.path: {path!r} is a folder; name a notebook.", field="target.path"
            )
        may_be_made = kind is None and target.create
        if may_be_made and not path.endswith(".ipynb"):
            raise InvalidRequest(
                "target.path: a notebook's name ends in .ipynb.", field="target.path"
            )
        if kind != "notebook" and not may_be_made:
            raise not_found(path)
        if target.kernel_name is not None:
            await kernel_spec(self._server_kernels, target.kernel_name)
        attached = AttachedNotebook(self, target, path, permit)
        self._attached.add(attached)
        return attached

    def detach(self, attached: AttachedNotebook) -> None:
        """Let a session go that is closed."""
        self._attached.discard(attached)

    async def create(self, path: str, kernel_name: str | None) -> bool:
        """Create an empty notebook; False if the notebook exists."""
        async with self._lock:
            if await self.contents.kind(path) is not None:
                return False
            name = await self._checked(kernel_name)
            await self.contents.create(path, name)
            return True

    async def discard(self, attached: AttachedNotebook, jupyter_session_id: str | None) -> bool:
        """Delete a notebook that has no cells, and the kernel that was started for it.

        Return False if somebody else uses one of them.
        """
        async with self._lock:
            session = await self.jupyter_sessions.of_notebook(attached.path)
            is_ours = session is None or (
                session.id == jupyter_session_id and session.connections == 0
            )
            others = (each for each in self._attached if each is not attached)
            if not is_ours or any(each.path == attached.path for each in others):
                return False
            if not await self.contents.delete_empty(attached.path):
                return False
            if session is not None:
                self._unused.discard(session.id)
                await self.jupyter_sessions.end(session.id)
            return True

    def folder_of(self, path: str) -> Folder | None:
        """Return a notebook's folder on this machine; None if it is no file here."""
        return self.contents.folder_of(path)

    async def session_of(
        self, path: str, kernel_name: str | None, permit: Permit
    ) -> JupyterSession:
        """Return the Jupyter session of a notebook; start one if there is none.

        Raises
        ------
        KernelUnavailable
            There is none, and it did not start, or the permit does not allow to run code.
        """
        if await self.jupyter_sessions.of_notebook(path) is None:
            await self._kernel_started(path)
        async with self._lock:
            session = await self.jupyter_sessions.of_notebook(path)
            if session is not None:
                return session
            refusal = permit.refusal(path, looks=False)
            if refusal is not None:
                raise KernelUnavailable(
                    f"{path!r} has no kernel, and looking starts none: ask the person to start "
                    f"it. {refusal}",
                    path=path,
                )
            name = kernel_name or await self.contents.kernel_name(path)
            started = await self.jupyter_sessions.start(path, await self._checked(name))
            self._unused.add(started.id)
            return await self._resolved(started)

    async def used(self, session: JupyterSession, kernel: Kernel) -> JupyterSession:
        """Return the Jupyter session to use, just before its kernel runs code.

        It differs from `session` only if this server started `session`, nobody has used it, and a
        page that was being opened started its own at the same time.
        """
        if session.id not in self._unused:
            return session
        async with self._lock:
            if session.id in self._unused and not kernel.connection.activity.has_executed:
                session = await self._resolved(session)
            self._unused.discard(session.id)
            return session

    async def _resolved(self, ours: JupyterSession) -> JupyterSession:
        """End our unused session if a page has started one meanwhile; return the one that stays."""
        path = contents_path(ours.path)
        theirs = await self.jupyter_sessions.of_notebook(path, beside=ours.id)
        if theirs is None or ours.connections:
            return ours
        self._unused.discard(ours.id)
        for attached in self._attached:
            attached.follow(ours.id, theirs.id)
        await self.jupyter_sessions.end(ours.id)
        return theirs

    async def _checked(self, kernel_name: str | None) -> str:
        """Return a kernelspec's name, or the default; KernelSpecNotFound if there is none."""
        name = kernel_name or self._server_kernels.default_kernel_name
        await kernel_spec(self._server_kernels, name)
        return name

    def moved(self, before: str, path: str) -> None:
        """Follow a file or a folder that was moved."""
        for attached in list(self._attached):
            attached.moved(before, path)


class LiveSource(KernelSource):
    """The kernel of a session whose target is a kernel id; its folder is unknown."""

    def __init__(self, live: LiveKernels, kernel_id: str) -> None:
        self._live = live
        self._kernel_id = kernel_id

    async def take(self) -> Kernel:
        """Return the kernel; KernelNotFound if it does not run."""
        kernel = await self._live.adopt(self._kernel_id)
        self.is_elsewhere = kernel.is_elsewhere
        return kernel


def normalised(path: str) -> str:
    """Return a contents path as the contents manager writes it; NotebookNotFound if invalid."""
    parts = [part for part in path.strip("/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in path:
        raise not_found(path)
    return "/".join(parts)


def not_found(path: str) -> NotebookNotFound:
    """Return the error for a path without a notebook."""
    return NotebookNotFound(
        f"target.path: there is no notebook at {path!r}; `create` makes one.", field="target.path"
    )
