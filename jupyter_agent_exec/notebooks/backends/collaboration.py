"""Reaches a notebook that has a live document of jupyter-collaboration.

Live documents are in `rooms`, and `ydoc_cells` changes them. Without jupyter-collaboration, or
jupyter-server-documents, this backend finds no notebooks and imports nothing of either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from functools import partial
from logging import Logger
from typing import TYPE_CHECKING, Any, Final

from ...types import Via
from ..changes import Change, Expected, Notebook
from .rooms import Room, Rooms, rooms_of

if TYPE_CHECKING:
    from .ydoc_cells import LiveCells

_PREFIX: Final = "json:notebook:"
"""Prefix of the ids of notebooks' rooms. The file's id follows."""


class CollaborationBackend:
    """Finds the live documents of this server.

    Parameters
    ----------
    extensions
        The server's `ExtensionManager`; the extension that has the rooms may be loaded later.
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
        self._rooms: Rooms | None = None
        self._handles: dict[str, CollaborationHandle] = {}

    async def find(self, path: str) -> CollaborationHandle | None:
        """Return the handle of a live document. It is the same object while its room exists."""
        rooms, file_ids = self._found(), self._file_ids()
        if rooms is None or file_ids is None:
            return None
        room_id = f"{_PREFIX}{file_ids.get_id(path.strip('/'))}"
        handle = self._handles.get(room_id)
        if handle is None or not handle.alive:
            handle = await self._open(rooms, room_id)
        if handle is not None:
            await handle.catch_up(partial(self._not_in_file, path))
        return handle if handle is not None and handle.alive else None

    def paths(self) -> list[str]:
        """Return the contents paths of the notebooks that have a live document."""
        rooms, file_ids = self._found(), self._file_ids()
        if rooms is None or file_ids is None:
            return []
        notebooks = [id for id in rooms.ids() if id.startswith(_PREFIX)]
        paths = (file_ids.get_path(id.removeprefix(_PREFIX)) for id in notebooks)
        return sorted(path for path in paths if path is not None)

    def _found(self) -> Rooms | None:
        if self._rooms is None:
            self._rooms = rooms_of(self._extensions.extension_apps, self._log)
        return self._rooms

    async def _open(self, rooms: Rooms, room_id: str) -> CollaborationHandle | None:
        for id in [id for id, handle in self._handles.items() if not handle.alive]:
            del self._handles[id]
        room = await rooms.open(room_id)
        if room is None:
            return None
        return self._handles.setdefault(room_id, CollaborationHandle(room))


class CollaborationHandle:
    """A live document, while its room exists."""

    via: Via = "collaboration"

    def __init__(self, room: Room) -> None:
        from .ydoc_cells import LiveCells

        self._room = room
        self._cells: LiveCells = LiveCells(room.document)
        self._up_to_date = False

    @property
    def alive(self) -> bool:
        """Whether the room still exists."""
        return self._room.alive

    @property
    def streams(self) -> bool:
        """Whether a page shows the document; if not, each change saves the whole document."""
        return self._room.is_shown

    async def catch_up(self, not_in_file: Callable[[Set[str]], Awaitable[Set[str]]]) -> None:
        """Load earlier writes of other backends.

        Parameters
        ----------
        not_in_file
            Returns those ids that no cell in the file has.
        """
        if not self._up_to_date:
            await self._room.catch_up()
            await self._cells.forget_ids(not_in_file)
            self._up_to_date = True

    async def read(self) -> Notebook:
        """Return the document."""
        from .ydoc_cells import read

        await self._room.settled()
        return await asyncio.to_thread(read(self._room.document, self._cells.made_up))

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Make changes, all or none, in one transaction; save them if no page shows them."""
        await self._room.settled()
        self._cells.apply(changes, expected)
        if not self._room.is_shown:
            await self._room.save()
