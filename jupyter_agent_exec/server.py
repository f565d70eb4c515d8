"""Access to Jupyter Server: its contents, sessions, events and signals."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any, Final

from jupyter_core.utils import ensure_async
from jupyter_server.services.contents.filemanager import FileContentsManager
from jupyter_server.utils import ApiPath, to_os_path
from tornado import web

from .errors import FolderUnknown, KernelUnavailable, NotebookNotFound
from .kernels.folder import Folder
from .kernels.provisioner import folder_provisioner
from .kernels.server_kernels import KernelStarter, ServerKernels, kernel_spec
from .models import KernelTarget, NotebookKernel
from .sessions.notebook_kernels import JupyterSession, contents_path
from .sessions.session import LiveSession

CONTENTS_EVENTS: Final = "https://events.jupyter.org/jupyter_server/contents_service/v1"

HUB_INTERVAL: Final = 30.0
"""Seconds for which an answer of the hub about its user holds."""
HUB_TIMEOUT: Final = 5.0
"""Seconds to wait for the hub; what it said last holds meanwhile."""

STOP_SIGNALS: Final = ("SIGINT", "SIGHUP")
"""Signals that Jupyter Server does not handle when it has no terminal."""


class ServerContents:
    """The server's contents manager, of any class."""

    def __init__(self, contents: Any, kernels: ServerKernels) -> None:
        self._contents = contents
        self._kernels = kernels

    async def is_folder(self, path: str) -> bool:
        """Return whether a contents path is a visible folder, so that a kernel may start there."""
        try:
            hidden = await ensure_async(self._contents.is_hidden(path)) if path else False
            found: bool = await ensure_async(self._contents.dir_exists(path))
        except (web.HTTPError, OSError):  # such as a name that is too long for the disk
            return False
        return found and not hidden

    async def kind(self, path: str) -> str | None:
        """Return `notebook`, `file` or `directory`; None if the path is missing or hidden."""
        try:
            if await ensure_async(self._contents.is_hidden(path)):
                return None
            model = await ensure_async(self._contents.get(path, content=False))
        except (web.HTTPError, OSError):
            return None
        return _kind(model)

    def located(self, path: str) -> str:
        """Return a contents path for a path that may also be absolute on this machine.

        It is taken as absolute only if it leads into the served root folder, and there is nothing
        at the same contents path.
        """
        if not self.is_here:
            return path
        root = Path(self._contents.root_dir)
        absolute = Path("/", path.lstrip("/"))
        for served in (root, root.resolve()):
            if absolute.is_relative_to(served) and not os.path.lexists(root / path.lstrip("/")):
                return absolute.relative_to(served).as_posix()
        return path

    async def kernel_name(self, path: str) -> str | None:
        """Return the kernelspec that a notebook names; None if it names none or cannot be read."""
        try:
            model = await ensure_async(self._contents.get(path, content=True, type="notebook"))
        except (web.HTTPError, OSError):
            return None
        kernelspec = model["content"].get("metadata", {}).get("kernelspec", {})
        name = kernelspec.get("name") if isinstance(kernelspec, dict) else None
        return name if isinstance(name, str) and name else None

    async def folder(self, path: str) -> list[tuple[str, str]]:
        """Return type and contents path of what is visible in a folder; empty if it is missing."""
        try:
            if path and await ensure_async(self._contents.is_hidden(path)):
                return []
            model = await ensure_async(self._contents.get(path, content=True, type="directory"))
        except (web.HTTPError, OSError):
            return []
        return [(_kind(each), contents_path(each["path"])) for each in model["content"]]

    async def kernel_names(self) -> list[str]:
        """Return the names of the kernels that can be started."""
        return sorted(await ensure_async(self._kernels.kernel_spec_manager.get_all_specs()))

    @property
    def is_here(self) -> bool:
        """Whether the contents are files on this machine."""
        return isinstance(self._contents, FileContentsManager)

    def folder_of(self, path: str) -> Folder | None:
        """Return the folder that holds a contents path; None if it is not on this machine."""
        if not self.is_here:
            return None
        root = Path(to_os_path(ApiPath(""), self._contents.root_dir))
        there = Path(to_os_path(ApiPath(path), self._contents.root_dir)).parent
        return Folder(root, there.relative_to(root).parts) if there.is_relative_to(root) else None

    async def create(self, path: str, kernel_name: str) -> None:
        """Create an empty notebook.

        Raises
        ------
        NotebookNotFound
            The notebook cannot be created at `path`.
        """
        spec = await kernel_spec(self._kernels, kernel_name)
        content = {
            "cells": [],
            "metadata": {
                "kernelspec": {
                    "display_name": spec.display_name,
                    "language": spec.language,
                    "name": kernel_name,
                }
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        model = {"type": "notebook", "format": "json", "content": content}
        try:
            await ensure_async(self._contents.save(model, path))
        except (web.HTTPError, OSError) as error:
            raise NotebookNotFound(
                f"target.path: no notebook can be made at {path!r}; is its folder there, and may "
                "it be written?",
                field="target.path",
            ) from error

    async def delete_empty(self, path: str) -> bool:
        """Delete a notebook if it has no cells; return whether it is gone."""
        try:
            model = await ensure_async(self._contents.get(path, type="notebook"))
            if model["content"]["cells"]:
                return False
            await ensure_async(self._contents.delete(path))
        except (web.HTTPError, OSError):
            return False
        return True


def _kind(model: Any) -> str:
    """Return the type of a file. Jupyter takes only `.ipynb` in lower case for a notebook."""
    kind: str = model["type"]
    return "notebook" if kind == "file" and model["path"].lower().endswith(".ipynb") else kind


class ServerSessions:
    """The server's session manager."""

    def __init__(self, sessions: Any, starter: KernelStarter, *, log: logging.Logger) -> None:
        self._sessions = sessions
        self._starter = starter
        self._log = log

    async def of_notebook(self, path: str, *, beside: str | None = None) -> JupyterSession | None:
        """Return a notebook's most recently active session, ignoring the session `beside`."""
        found: JupyterSession | None = None
        for model in await self._notebooks():
            if contents_path(model["path"]) == path and model["id"] != beside:
                found = _session(model)
        return found

    async def by_notebook(self) -> dict[str, NotebookKernel]:
        """Return the kernels of notebooks, by contents path."""
        return {
            contents_path(model["path"]): NotebookKernel(
                id=model["kernel"]["id"],
                name=model["kernel"]["name"],
                execution_state=model["kernel"]["execution_state"],
            )
            for model in await self._notebooks()
        }

    async def notebooks_of(self, kernel_id: str) -> list[str]:
        """Return the contents paths of the notebooks that use a kernel."""
        return [
            contents_path(model["path"])
            for model in await self._notebooks()
            if model["kernel"]["id"] == kernel_id
        ]

    async def path_of(self, kernel_id: str) -> str | None:
        """Return the contents path of a kernel's session; None if it has no session."""
        models = await ensure_async(self._sessions.list_sessions())
        paths = [
            contents_path(model["path"])
            for model in models
            if model["kernel"] is not None and model["kernel"]["id"] == kernel_id
        ]
        return paths[0] if paths else None

    async def _notebooks(self) -> list[Any]:
        """Return the models of notebooks' sessions, the most recently active last."""
        models = await ensure_async(self._sessions.list_sessions())
        notebooks = [
            model for model in models if model["type"] == "notebook" and model["kernel"] is not None
        ]
        return sorted(notebooks, key=lambda model: str(model["kernel"]["last_activity"]))

    async def get(self, id: str) -> JupyterSession | None:
        """Return a session; None if the session or its kernel no longer exists."""
        try:
            return _session(await ensure_async(self._sessions.get_session(session_id=id)))
        except web.HTTPError:
            return None

    async def start(self, path: str, kernel_name: str) -> JupyterSession:
        """Start a kernel for a notebook, as JupyterLab does.

        Raises
        ------
        KernelUnavailable
            The kernel did not start.
        """
        try:
            model = await self._starter.start(
                partial(
                    self._sessions.create_session,
                    path=path,
                    name=PurePosixPath(path).name,
                    type="notebook",
                    kernel_name=kernel_name,
                ),
                partial(folder_provisioner, None),  # start in the folder that the user chose
            )
        except Exception as error:
            self._log.warning("Kernel %r did not start", kernel_name, exc_info=error)
            raise KernelUnavailable(
                f"The kernel {kernel_name!r} did not start; the server's log says why.",
                kernel_name=kernel_name,
            ) from error
        return _session(model)

    async def end(self, id: str) -> None:
        """End a session and its kernel."""
        # HTTPError: somebody else has ended it already. InvalidStateError: jupyter_client raises it
        # for a kernel that died and is being restarted, and ends such a kernel by itself.
        with suppress(web.HTTPError, asyncio.InvalidStateError):
            await ensure_async(self._sessions.delete_session(id))


def _session(model: Any) -> JupyterSession:
    kernel = model["kernel"]
    return JupyterSession(model["id"], model["path"], kernel["id"], kernel["connections"])


class ServerFolders:
    """Find the working folders of sessions' kernels, if contents are files on this machine."""

    def __init__(self, contents: ServerContents, sessions: ServerSessions) -> None:
        self._contents = contents
        self._sessions = sessions

    async def of(self, session: LiveSession) -> Folder:
        """Return the working folder of a session's kernel.

        Raises
        ------
        FolderUnknown
            The folder is unknown, gone or not on this machine.
        """
        if session.is_kernel_elsewhere:
            raise FolderUnknown(
                "The session's kernel runs on another machine, and its folder is there: only code "
                "in the kernel can read and write its files."
            )
        if not self._contents.is_here:
            raise FolderUnknown("This server keeps its files elsewhere: a session's are not here.")
        target = session.record().target
        if isinstance(target, KernelTarget):
            return await self._of_kernel(target.kernel_id)
        if session.folder is None:
            raise FolderUnknown("The session's folder is gone.")
        return session.folder

    async def _of_kernel(self, kernel_id: str) -> Folder:
        path = await self._sessions.path_of(kernel_id)
        folder = None if path is None else self._contents.folder_of(path)
        if folder is None:
            raise FolderUnknown(
                "Nobody knows in which folder this session's kernel works: it was started for no "
                "document. Open a session with a notebook or a scratch kernel.",
                kernel_id=kernel_id,
            )
        return folder


class HubAccess:
    """Whether the hub, if there is one, still lets its user use this server.

    Agents send tokens of this server's own, about which the hub is not asked otherwise.
    """

    def __init__(self, serverapp: Any) -> None:
        self._hub = getattr(serverapp.identity_provider, "hub_auth", None)
        self._lock = asyncio.Lock()
        self._asked_at = -HUB_INTERVAL
        self._refusal: str | None = None

    async def refusal(self) -> str | None:
        """Return why the user may not use this server; None if they may, or without a hub."""
        if self._hub is None:
            return None
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._asked_at >= HUB_INTERVAL:
                self._asked_at = now
                with suppress(web.HTTPError, TimeoutError):  # a hub that is away changes nothing
                    self._refusal = await asyncio.wait_for(self._asked(self._hub), HUB_TIMEOUT)
            return self._refusal

    async def _asked(self, hub: Any) -> str | None:
        """Ask as this server, whose token at the hub allows no more than its user may do now."""
        user = await hub.user_for_token(hub.api_token, use_cache=False, sync=False)
        if user is not None and hub.check_scopes(hub.access_scopes, user):
            return None
        return "The hub does not let the user of this server use it any more."


class ContentsEvents:
    """Listen to the server's contents events.

    Parameters
    ----------
    moved
        Called with the old and the new contents path of a renamed file or folder.
    """

    def __init__(self, event_logger: Any, moved: Callable[[str, str], Awaitable[None]]) -> None:
        self._event_logger = event_logger
        self._moved = moved

    def start(self) -> None:
        """Start to listen."""
        self._event_logger.add_listener(schema_id=CONTENTS_EVENTS, listener=self._handle_event)

    def stop(self) -> None:
        """Stop listening."""
        self._event_logger.remove_listener(listener=self._handle_event)

    async def _handle_event(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data.get("action") == "rename" and "source_path" in data:
            await self._moved(data["source_path"].strip("/"), data["path"].strip("/"))


class StopSignals:
    """Stop the server cleanly at signals that would end it at once.

    JupyterHub stops a server with SIGINT. Without a terminal, Jupyter Server has no handler for it:
    the event loop breaks off, and no extension is stopped. SIGHUP ends the process. A handler that
    is already set stays, and an ignored signal (`nohup`) stays ignored.

    Parameters
    ----------
    stop
        Called with the signal's name at each such signal. Like every signal handler, it runs
        between two bytecodes of the main thread.
    """

    def __init__(self, stop: Callable[[str], None]) -> None:
        self._stop = stop
        self._replaced: dict[signal.Signals, Any] = {}

    def start(self) -> None:
        """Handle the signals; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            return
        for name in STOP_SIGNALS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is None:
                continue
            current = signal.getsignal(number)
            if current in (signal.SIG_DFL, signal.default_int_handler):
                self._replaced[number] = current
                signal.signal(number, self._handle)

    def end(self) -> None:
        """Restore the previous handlers. Idempotent."""
        while self._replaced:
            number, before = self._replaced.popitem()
            if signal.getsignal(number) == self._handle:
                signal.signal(number, before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._stop(signal.Signals(number).name)
