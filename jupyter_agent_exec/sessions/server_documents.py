"""Jupyter Server's contents and sessions: documents, and which kernels they have."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from jupyter_core.utils import ensure_async
from jupyter_server.services.contents.filemanager import FileContentsManager
from jupyter_server.utils import ApiPath, to_os_path
from tornado import web

from ..errors import KernelUnavailable, NotebookNotFound
from ..kernels.folder import Folder
from ..kernels.provisioner import folder_provisioner
from ..kernels.server_kernels import KernelStarter, ServerKernels, kernel_spec
from ..models import NotebookKernel

RTC_DRIVE = "RTC:"
"""Prefix of the paths of notebooks that are open through jupyter-collaboration."""


def contents_path(path: str) -> str:
    """Return the contents path of a Jupyter session's path."""
    return path.removeprefix(RTC_DRIVE).strip("/")


class JupyterSession(NamedTuple):
    """Ties a document to a kernel."""

    id: str
    path: str
    kernel_id: str
    connections: int
    """How many pages are connected to its kernel."""


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
                return "/".join(absolute.relative_to(served).parts)
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
