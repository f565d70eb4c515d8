"""A person's notebook that an agent session is attached to: its kernel, wherever its file goes.

Jupyter ties a notebook to a kernel by a *Jupyter session*, which JupyterLab finds by the path. Here
it is found or made in the same way, so that the person and the agent meet in one kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol
from weakref import WeakSet

from ..errors import InvalidRequest, KernelNotFound, KernelUnavailable, NotebookNotFound
from ..kernels.folder import Folder
from ..kernels.kernel import Death, Kernel, WorkingFolder
from ..models import NotebookTarget

RTC_DRIVE = "RTC:"
"""Begins the paths of notebooks that JupyterLab has open through jupyter-collaboration."""


class JupyterSession(NamedTuple):
    """What ties a document to a kernel."""

    id: str
    path: str
    kernel_id: str
    connections: int
    """How many pages are connected to its kernel."""


class JupyterSessions(Protocol):
    """What is asked of the server's session manager."""

    async def of_notebook(self, path: str, *, beside: str | None = None) -> JupyterSession | None:
        """Return the session of a notebook, the most recently active if there are several.

        Parameters
        ----------
        beside
            The id of a session that is not meant.
        """

    async def get(self, id: str) -> JupyterSession | None:
        """Return a session; None if it is gone, or its kernel is."""

    async def start(self, path: str, kernel_name: str) -> JupyterSession:
        """Start a kernel for a notebook as JupyterLab would.

        Raises
        ------
        KernelUnavailable
            It did not start.
        """

    async def end(self, id: str) -> None:
        """End a session and its kernel."""


class Pages(Protocol):
    """What is asked of the JupyterLab pages that have notebooks open."""

    async def kernel_started(self, path: str) -> None:
        """Wait while a page is about to have a kernel for a notebook, but not for ever."""


class Contents(Protocol):
    """What is asked of the contents manager about notebooks."""

    async def kind(self, path: str) -> str | None:
        """Return `notebook`, `file` or `directory`; None for nothing, and for what is hidden."""

    async def kernel_name(self, path: str) -> str | None:
        """Return the kernelspec that a notebook names; None if it names none or cannot be read."""

    def folder_of(self, path: str) -> Folder | None:
        """Return the folder of a contents path on this machine; None if it is no file there."""

    async def create(self, path: str, kernel_name: str) -> None:
        """Make an empty notebook.

        Raises
        ------
        NotebookNotFound
            It cannot be made there.
        """


class KernelSpecs(Protocol):
    """Which kernels can be started."""

    @property
    def default_kernel_name(self) -> str:
        """The server's default."""

    def check(self, kernel_name: str) -> None:
        """Raise KernelSpecNotFound if no kernelspec has this name."""


class LiveKernelsSource(Protocol):
    """Gives kernels that run already."""

    async def adopt(self, kernel_id: str) -> Kernel:
        """Hold a kernel that runs.

        Raises
        ------
        KernelNotFound, KernelUnavailable
        """


class AttachedNotebook:
    """One session's hold on a notebook: gives its kernel, and follows its path.

    Made by `NotebookKernels.attach`.
    """

    def __init__(self, kernels: NotebookKernels, target: NotebookTarget, path: str) -> None:
        self.path = path
        """Contents path as far as it is known now."""
        self.created = False
        """Whether the notebook was made for the session."""
        self.on_moved: Callable[[str, str], None] | None = None
        """Called with the path before and the path since, when they differ."""
        self._kernels = kernels
        self._target = target
        self._jupyter_session_id: str | None = None
        self._told_path = path  # by the Jupyter session, which may not hear of a rename

    @property
    def folder(self) -> WorkingFolder | None:
        """The notebook's folder, in which its kernel works."""
        folder = self._kernels.folder_of(self.path)
        return None if folder is None else WorkingFolder(folder, PurePosixPath(self.path).name)

    @property
    def may_create(self) -> bool:
        """Whether the session may make the notebook."""
        return self._target.create

    async def create(self) -> None:
        """Make the notebook if it is not there and the session may."""
        if self._target.create:
            self.created = await self._kernels.create(self.path, self._target.kernel_name)

    async def release(self) -> None:
        """Have nothing to give up."""

    async def take(self) -> Kernel:
        """Return the notebook's kernel; one is started if it has none."""
        session = await self._look()
        if session is None:
            session = await self._kernels.session_of(self.path, self._target.kernel_name)
            self._jupyter_session_id = session.id
        try:
            return await self._kernels.live.adopt(session.kernel_id)
        except KernelNotFound as error:  # it was shut down a moment ago
            raise KernelUnavailable(error.message, path=self.path) from error

    async def parted(self, kernel: Kernel) -> Death | None:
        """Tell how the notebook parted from a kernel; None if that is still its own."""
        session = await self._look()
        if session is not None and session.kernel_id == kernel.id:
            session = await self._kernels.used(session, kernel)
        if session is None or session.kernel_id == kernel.id:
            return None
        return Death("changed", "Somebody gave the notebook another kernel.")

    async def explain(self, kernel: Kernel, death: Death) -> Death:
        """Tell how a kernel ended, with what the notebook knows of it."""
        if death.reason == "died":
            return death
        return await self.parted(kernel) or death

    def moved(self, before: str, path: str) -> None:
        """Take note that a file or a folder has another path."""
        if self.path == before:
            self._has_path(path)
        elif self.path.startswith(f"{before}/"):
            self._has_path(f"{path}/{self.path[len(before) + 1 :]}")

    def follow(self, jupyter_session_id: str, to: str) -> None:
        """Take note that another Jupyter session has taken the place of one."""
        if self._jupyter_session_id == jupyter_session_id:
            self._jupyter_session_id = to

    async def _look(self) -> JupyterSession | None:
        """Return the Jupyter session that was found before, and follow it where it went."""
        if self._jupyter_session_id is None:
            return None
        session = await self._kernels.jupyter_sessions.get(self._jupyter_session_id)
        if session is not None and contents_path(session.path) != self._told_path:
            self._told_path = contents_path(session.path)
            self._has_path(self._told_path)
        return session

    def _has_path(self, path: str) -> None:
        before, self.path = self.path, path
        if path != before and self.on_moved is not None:
            self.on_moved(before, path)


class NotebookKernels:
    """Finds the kernels of notebooks, or starts them.

    Parameters
    ----------
    live
        Gives kernels by their ids.
    pages
        May be about to start a kernel for a notebook themselves.
    """

    def __init__(
        self,
        live: LiveKernelsSource,
        jupyter_sessions: JupyterSessions,
        contents: Contents,
        specs: KernelSpecs,
        pages: Pages,
    ) -> None:
        self.live = live
        self.jupyter_sessions = jupyter_sessions
        self._contents = contents
        self._specs = specs
        self._pages = pages
        self._lock = asyncio.Lock()
        self._unused: set[str] = set()
        self._attached: WeakSet[AttachedNotebook] = WeakSet()

    async def attach(self, target: NotebookTarget) -> AttachedNotebook:
        """Return a hold on a notebook, of which nothing has been made or started yet.

        Raises
        ------
        NotebookNotFound, InvalidRequest, KernelSpecNotFound
        """
        path = normalised(target.path)
        kind = await self._contents.kind(path)
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
            self._specs.check(target.kernel_name)
        attached = AttachedNotebook(self, target, path)
        self._attached.add(attached)
        return attached

    async def create(self, path: str, kernel_name: str | None) -> bool:
        """Make an empty notebook; False if there is one."""
        async with self._lock:
            if await self._contents.kind(path) is not None:
                return False
            name = kernel_name or self._specs.default_kernel_name
            self._specs.check(name)
            await self._contents.create(path, name)
            return True

    def folder_of(self, path: str) -> Folder | None:
        """Return a notebook's folder on this machine; None if it is no file there."""
        return self._contents.folder_of(path)

    async def session_of(self, path: str, kernel_name: str | None) -> JupyterSession:
        """Return the Jupyter session of a notebook, which is started if there is none."""
        if await self.jupyter_sessions.of_notebook(path) is None:
            await self._pages.kernel_started(path)
        async with self._lock:
            found = await self.jupyter_sessions.of_notebook(path)
            if found is not None:
                return found
            name = kernel_name or await self._contents.kernel_name(path)
            name = name or self._specs.default_kernel_name
            self._specs.check(name)
            started = await self.jupyter_sessions.start(path, name)
            self._unused.add(started.id)
            return await self._met(started)

    async def used(self, session: JupyterSession, kernel: Kernel) -> JupyterSession:
        """Return the session in which to run something instead of one that was found before.

        That is another one only if we started that, nobody has used it, and a page that was just
        being opened has started its own at the same time.
        """
        if session.id not in self._unused:
            return session
        async with self._lock:
            if session.id in self._unused and not kernel.connection.has_executed:
                session = await self._met(session)
            self._unused.discard(session.id)
            return session

    async def _met(self, ours: JupyterSession) -> JupyterSession:
        """End a session of ours that nobody has used if a page has started one meanwhile."""
        path = contents_path(ours.path)
        theirs = await self.jupyter_sessions.of_notebook(path, beside=ours.id)
        if theirs is None or ours.connections:
            return ours
        self._unused.discard(ours.id)
        for attached in self._attached:
            attached.follow(ours.id, theirs.id)
        await self.jupyter_sessions.end(ours.id)
        return theirs

    def moved(self, before: str, path: str) -> None:
        """Take note that somebody moved a file or a folder."""
        for attached in list(self._attached):
            attached.moved(before, path)


class LiveKernel:
    """A kernel by its id, without a document."""

    def __init__(self, live: LiveKernelsSource, kernel_id: str) -> None:
        self._live = live
        self._kernel_id = kernel_id
        self.folder: WorkingFolder | None = None
        """Where a kernel without a document works is not known."""

    async def take(self) -> Kernel:
        """Return it as long as it runs."""
        return await self._live.adopt(self._kernel_id)

    async def release(self) -> None:
        """Have nothing to give up."""


def normalised(path: str) -> str:
    """Return a contents path as the contents manager writes it; NotebookNotFound if it is none."""
    parts = [part for part in path.strip("/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in path:
        raise not_found(path)
    return "/".join(parts)


def contents_path(path: str) -> str:
    """Return the contents path that a Jupyter session's path stands for."""
    return path.removeprefix(RTC_DRIVE).strip("/")


def not_found(path: str) -> NotebookNotFound:
    """Return the refusal of a path at which there is no notebook."""
    return NotebookNotFound(
        f"target.path: there is no notebook at {path!r}; `create` makes one.", field="target.path"
    )
