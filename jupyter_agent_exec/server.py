"""What is asked of Jupyter Server itself: its contents, its Jupyter sessions, its kernelspecs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, Final

from jupyter_client.kernelspec import NoSuchKernel
from jupyter_core.utils import ensure_async
from tornado import web

from .errors import KernelSpecNotFound, KernelUnavailable, NotebookNotFound
from .models import NotebookKernel
from .sessions.attached import JupyterSession, contents_path

CONTENTS_EVENTS: Final = "https://events.jupyter.org/jupyter_server/contents_service/v1"


class ServerContents:
    """Asks the contents manager, whichever the server has."""

    def __init__(self, contents: Any, specs: ServerKernelSpecs) -> None:
        self._contents = contents
        self._specs = specs

    async def is_folder(self, path: str) -> bool:
        """Tell whether a contents path is a folder in which a kernel may start."""
        try:
            hidden = await ensure_async(self._contents.is_hidden(path)) if path else False
            found: bool = await ensure_async(self._contents.dir_exists(path))
        except (web.HTTPError, OSError):  # such as a name that is too long for the disk
            return False
        return found and not hidden

    async def kind(self, path: str) -> str | None:
        """Return `notebook`, `file` or `directory`; None for nothing, and for what is hidden."""
        try:
            if await ensure_async(self._contents.is_hidden(path)):
                return None
            kind: str = (await ensure_async(self._contents.get(path, content=False)))["type"]
        except (web.HTTPError, OSError):
            return None
        return kind

    async def kernel_name(self, path: str) -> str | None:
        """Return the kernelspec that a notebook names; None if it names none or cannot be read."""
        try:
            model = await ensure_async(self._contents.get(path, content=True, type="notebook"))
        except (web.HTTPError, OSError):
            return None
        kernelspec = model["content"].get("metadata", {}).get("kernelspec", {})
        name = kernelspec.get("name") if isinstance(kernelspec, dict) else None
        return name if isinstance(name, str) and name else None

    async def create(self, path: str, kernel_name: str) -> None:
        """Make an empty notebook; NotebookNotFound if it cannot be made there."""
        spec = self._specs.named(kernel_name)
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


class ServerKernelSpecs:
    """Asks the server which kernels it can start."""

    def __init__(self, kernels: Any) -> None:
        self._kernels = kernels

    @property
    def default_kernel_name(self) -> str:
        """The server's default."""
        name: str = self._kernels.default_kernel_name
        return name

    def check(self, kernel_name: str) -> None:
        """Raise KernelSpecNotFound if no kernelspec has this name."""
        self.named(kernel_name)

    def named(self, kernel_name: str) -> Any:
        """Return a kernelspec; KernelSpecNotFound if there is none."""
        try:
            return self._kernels.kernel_spec_manager.get_kernel_spec(kernel_name)
        except NoSuchKernel:
            allowed = sorted(self._kernels.kernel_spec_manager.find_kernel_specs())
            raise KernelSpecNotFound(
                f"No kernel is named {kernel_name!r}; there are: {', '.join(allowed)}.",
                field="target.kernel_name",
                allowed=allowed,
            ) from None


class ServerSessions:
    """Asks the server's session manager."""

    def __init__(self, sessions: Any, *, log: logging.Logger) -> None:
        self._sessions = sessions
        self._log = log

    async def of_notebook(self, path: str, *, beside: str | None = None) -> JupyterSession | None:
        """Return the session of a notebook, the most recently active if there are several."""
        models = [
            model
            for model in await ensure_async(self._sessions.list_sessions())
            if model["type"] == "notebook"
            and contents_path(model["path"]) == path
            and model["id"] != beside
        ]
        if not models:
            return None
        return _session(max(models, key=lambda model: str(model["kernel"]["last_activity"])))

    async def by_notebook(self) -> dict[str, NotebookKernel]:
        """Return the kernels of notebooks, by contents path."""
        models = [
            model
            for model in await ensure_async(self._sessions.list_sessions())
            if model["type"] == "notebook" and model["kernel"] is not None
        ]
        return {
            contents_path(model["path"]): NotebookKernel(
                id=model["kernel"]["id"],
                name=model["kernel"]["name"],
                execution_state=model["kernel"]["execution_state"],
            )
            for model in sorted(models, key=lambda model: str(model["kernel"]["last_activity"]))
        }

    async def get(self, id: str) -> JupyterSession | None:
        """Return a session; None if it is gone, or its kernel is."""
        try:
            return _session(await ensure_async(self._sessions.get_session(session_id=id)))
        except web.HTTPError:
            return None

    async def start(self, path: str, kernel_name: str) -> JupyterSession:
        """Start a kernel for a notebook as JupyterLab would; KernelUnavailable if that fails."""
        try:
            model = await ensure_async(
                self._sessions.create_session(
                    path=path,
                    name=PurePosixPath(path).name,
                    type="notebook",
                    kernel_name=kernel_name,
                )
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
        with suppress(web.HTTPError):  # somebody else was quicker
            await ensure_async(self._sessions.delete_session(id))


def _session(model: Any) -> JupyterSession:
    kernel = model["kernel"]
    return JupyterSession(model["id"], model["path"], kernel["id"], kernel["connections"])


class ContentsEvents:
    """Listens to what the server announces of its contents."""

    def __init__(self, event_logger: Any, moved: Callable[[str, str], None]) -> None:
        self._event_logger = event_logger
        self._moved = moved

    def start(self) -> None:
        """Begin to listen."""
        self._event_logger.add_listener(schema_id=CONTENTS_EVENTS, listener=self._heard)

    def stop(self) -> None:
        """Listen no more."""
        self._event_logger.remove_listener(listener=self._heard)

    async def _heard(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data.get("action") == "rename" and "source_path" in data:
            self._moved(data["source_path"].strip("/"), data["path"].strip("/"))
