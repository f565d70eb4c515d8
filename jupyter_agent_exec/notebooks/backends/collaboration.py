"""Reaches a notebook that has a live document of jupyter-collaboration.

Live documents are in the rooms of jupyter-server-ydoc. This module never makes a room, because
nobody would close it. `ydoc_cells` changes the documents. Without jupyter-collaboration, this
backend finds no notebooks and imports nothing of jupyter-collaboration.

The objects of jupyter-server-ydoc are typed as `Any`, because it is optional and ships no types.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from functools import partial
from importlib.metadata import version
from logging import Logger
from typing import TYPE_CHECKING, Any, Final

from ...types import Via
from ...workarounds import room_settled, save_room
from ..changes import Change, Expected, Notebook, Unreachable

if TYPE_CHECKING:
    from .ydoc_cells import LiveCells

EXTENSION: Final = "jupyter_server_ydoc"

OLDEST: Final = 2
"""The oldest supported major version of jupyter-server-ydoc; it is in jupyter-collaboration 4."""

_PREFIX: Final = "json:notebook:"
"""Prefix of the ids of notebooks' rooms. The file's id follows."""


class CollaborationBackend:
    """Finds the live documents of this server.

    Parameters
    ----------
    extensions
        The server's `ExtensionManager`; jupyter-server-ydoc may be loaded later.
    file_ids
        Returns the file id manager; None before its extension is loaded.
    not_in_file
        Takes a path and ids. Returns the ids that no cell in the file has; none if it cannot be
        read.
    """

    def __init__(
        self,
        extensions: Any,
        file_ids: Callable[[], Any],
        not_in_file: Callable[[str, Set[str]], Awaitable[Set[str]]],
        log: Logger,
    ) -> None:
        self._extensions = extensions
        self._file_ids = file_ids
        self._not_in_file = not_in_file
        self._log = log
        self._found: Any = None
        self._too_old = False
        self._handles: dict[str, CollaborationHandle] = {}

    async def find(self, path: str) -> CollaborationHandle | None:
        """Return the handle of a live document. It is the same object while its room exists."""
        extension = self._extension()
        file_ids = self._file_ids()
        if extension is None or file_ids is None:
            return None
        file_id = file_ids.get_id(path.strip("/"))
        room_id = f"{_PREFIX}{file_id}"
        handle = self._handles.get(room_id)
        if handle is None or not handle.alive:
            handle = await self._open(extension, room_id)
        if handle is not None:
            await handle.catch_up(partial(self._not_in_file, path))
        return handle if handle is not None and handle.alive else None

    def paths(self) -> list[str]:
        """Return the contents paths of the notebooks that have a live document."""
        extension = self._extension()
        file_ids = self._file_ids()
        if extension is None or file_ids is None:
            return []
        notebooks = [id for id in extension.ywebsocket_server.rooms if id.startswith(_PREFIX)]
        paths = (file_ids.get_path(id.removeprefix(_PREFIX)) for id in notebooks)
        return sorted(path for path in paths if path is not None)

    def _extension(self) -> Any:
        if self._found is None and not self._too_old:
            extension = next(iter(self._extensions.extension_apps.get(EXTENSION, ())), None)
            if extension is not None:
                self._too_old = self._is_too_old(version(EXTENSION))
                self._found = None if self._too_old else extension
        return self._found

    def _is_too_old(self, installed: str) -> bool:
        if int(installed.split(".")[0]) >= OLDEST:
            return False
        self._log.warning(
            "Agents' cells do not go through collaboration: %s %s is too old, %d is needed.",
            EXTENSION,
            installed,
            OLDEST,
        )
        return True

    async def _open(self, extension: Any, room_id: str) -> CollaborationHandle | None:
        rooms = extension.ywebsocket_server.rooms
        for id in [id for id, handle in self._handles.items() if not handle.alive]:
            del self._handles[id]
        if room_id not in rooms:
            return None
        # This call waits while the room is being opened or closed.
        document = await extension.get_document(room_id=room_id, copy=False)
        room = rooms.get(room_id)
        if document is None or room is None or not room.ready:
            return None
        return self._handles.setdefault(
            room_id, CollaborationHandle(extension, room_id, room, document)
        )


class CollaborationHandle:
    """A live document, while its room exists."""

    via: Via = "collaboration"

    def __init__(self, extension: Any, room_id: str, room: Any, document: Any) -> None:
        from .ydoc_cells import LiveCells

        self._extension = extension
        self._room_id = room_id
        self._room = room
        self._document = document
        self._cells: LiveCells = LiveCells(document)
        self._up_to_date = False

    @property
    def alive(self) -> bool:
        """Whether the room still exists."""
        return self._extension.ywebsocket_server.rooms.get(self._room_id) is self._room

    @property
    def streams(self) -> bool:
        """Whether a page shows the document; if not, each change saves the whole document."""
        return bool(self._room.clients)

    async def catch_up(self, not_in_file: Callable[[Set[str]], Awaitable[Set[str]]]) -> None:
        """Load earlier writes of other backends. The room polls the file only once a second.

        Parameters
        ----------
        not_in_file
            Returns those ids that no cell in the file has.
        """
        if not self._up_to_date:
            loader = self._loader()
            if loader is not None:
                await loader.maybe_notify()
            await self._cells.forget_ids(not_in_file)
            self._up_to_date = True

    async def read(self) -> Notebook:
        """Return the document."""
        from .ydoc_cells import read

        await self._settled()
        return await asyncio.to_thread(read(self._document, self._cells.made_up))

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Make changes, all or none, in one transaction.

        If no page shows the document, it is also saved, because an empty room is closed some time
        later, and unsaved changes are lost then.
        """
        await self._settled()
        self._cells.apply(changes, expected)
        if not self._room.clients:
            await save_room(self._room)
            self._check_alive()

    async def _settled(self) -> None:
        """Wait while the room reloads the document from its file."""
        await room_settled(self._room)
        self._check_alive()

    def _loader(self) -> Any:
        file_id = self._room_id.removeprefix(_PREFIX)
        loaders = self._extension.file_loaders
        return loaders[file_id] if file_id in loaders else None  # noqa: SIM401 (no mapping)

    def _check_alive(self) -> None:
        if not self.alive:
            raise Unreachable("The notebook is not open any more.")
