"""The rooms in which an extension keeps the notebooks that people have open together.

Either jupyter-server-ydoc, of jupyter-collaboration, has them or jupyter-server-documents, which
replaces it. Their objects are typed as `Any`, because both are optional and ship no types. This
module never makes a room, because nobody would close it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib.metadata import version
from logging import Logger
from typing import Any, Final, Protocol

from tornado import web

from ...errors import DocumentUnwritable
from ...workarounds import load_changed_file, room_settled, save_room
from ..changes import Unreachable

YDOC: Final = "jupyter_server_ydoc"
DOCUMENTS: Final = "jupyter_server_documents"

OLDEST: Final = {YDOC: (2,), DOCUMENTS: (0, 3)}
"""The oldest supported versions; jupyter-collaboration 4 has jupyter-server-ydoc 2."""

LOAD_TIMEOUT: Final = 10.0
"""Seconds to wait for the content of a room; jupyter-server-documents never says that it failed."""


class Room(Protocol):
    """A live document."""

    document: Any
    """Its `YNotebook`."""

    @property
    def alive(self) -> bool:
        """Whether the room still exists."""

    @property
    def is_shown(self) -> bool:
        """Whether a page shows the document."""

    async def catch_up(self) -> None:
        """Load what was written to the file."""

    async def settled(self) -> None:
        """Wait while the room reads or writes the file in a way that nobody may disturb.

        Raises
        ------
        Unreachable
            The room does not exist any more.
        """

    async def save(self) -> None:
        """Save the document, if the room may be closed without that."""


class Rooms(Protocol):
    """The rooms of an extension."""

    def ids(self) -> list[str]:
        """Return the ids of all rooms."""

    async def open(self, room_id: str) -> Room | None:
        """Return a room whose document is loaded; None if there is none."""


class YDocRoom:
    """A room of jupyter-server-ydoc."""

    def __init__(self, extension: Any, room_id: str, room: Any, document: Any) -> None:
        self.document = document
        self._extension = extension
        self._room_id = room_id
        self._room = room

    @property
    def alive(self) -> bool:
        """Whether the room still exists."""
        return self._extension.ywebsocket_server.rooms.get(self._room_id) is self._room

    @property
    def is_shown(self) -> bool:
        """Whether a page shows the document."""
        return bool(self._room.clients)

    async def catch_up(self) -> None:
        """Load what was written to the file, for which the room looks only once a second."""
        file_id = self._room_id.rpartition(":")[2]
        loaders = self._extension.file_loaders
        if file_id in loaders:
            with suppress(web.HTTPError, RuntimeError):  # if the file is gone, nothing was written
                await loaders[file_id].maybe_notify()

    async def settled(self) -> None:
        """Wait while the room reads the document from its file."""
        await room_settled(self._room)
        self._check_alive()

    async def save(self) -> None:
        """Save: an empty room is closed some time later, and unsaved changes are lost then."""
        await save_room(self._room)
        self._check_alive()

    def _check_alive(self) -> None:
        if not self.alive:
            raise _closed()


class YDocRooms:
    """The rooms of jupyter-server-ydoc."""

    def __init__(self, extension: Any) -> None:
        self._extension = extension

    def ids(self) -> list[str]:
        """Return the ids of all rooms."""
        return list(self._extension.ywebsocket_server.rooms)

    async def open(self, room_id: str) -> YDocRoom | None:
        """Return a room whose document is loaded; None if there is none."""
        rooms = self._extension.ywebsocket_server.rooms
        if room_id not in rooms:
            return None
        # This call waits while the room is being opened or closed.
        document = await self._extension.get_document(room_id=room_id, copy=False)
        room = rooms.get(room_id)
        if document is None or room is None or not room.ready:
            return None
        return YDocRoom(self._extension, room_id, room, document)


class DocumentsRoom:
    """A room of jupyter-server-documents. It saves by itself, also before it is closed."""

    def __init__(self, room: Any, document: Any) -> None:
        self.document = document
        self._room = room

    @property
    def alive(self) -> bool:
        """Whether the room still exists."""
        return not self._room.stopped

    @property
    def is_shown(self) -> bool:
        """Whether a page shows the document."""
        return not self._room.empty

    async def catch_up(self) -> None:
        """Load what was written to the file, for which the room looks only twice a second."""
        with suppress(Unreachable):
            await self.settled()

    async def settled(self) -> None:
        """Load what was written to the file: the room would put it in place of our changes.

        A room that is closed is waited for until it has saved.
        """
        if self.alive:
            try:
                await load_changed_file(self._room, self.document)
            except web.HTTPError as error:
                raise Unreachable("The notebook's file cannot be read.") from error
        if not self.alive:
            await self._room.until_saved
            raise _closed()

    async def save(self) -> None:
        """Leave it to the room."""


class DocumentsRooms:
    """The rooms of jupyter-server-documents."""

    def __init__(self, extension: Any) -> None:
        self._extension = extension

    @property
    def _manager(self) -> Any:
        return self._extension.yroom_manager

    def ids(self) -> list[str]:
        """Return the ids of all rooms."""
        return [room.room_id for room in self._manager.list_document_rooms()]

    async def open(self, room_id: str) -> DocumentsRoom | None:
        """Return a room whose document is loaded; None if there is none.

        Raises
        ------
        DocumentUnwritable
            The extension keeps outputs elsewhere. When it saves a notebook, it drops all others.
        """
        if not self._manager.has_room(room_id):
            return None
        if self._extension.outputs_manager is not None:
            raise DocumentUnwritable(
                "jupyter-server-documents keeps the outputs of open notebooks outside of them, and "
                "an agent's would be lost: OutputProcessor.use_outputs_service has to be off."
            )
        room = self._manager.get_room(room_id)
        try:
            document = await asyncio.wait_for(room.get_jupyter_ydoc(), LOAD_TIMEOUT)
        except TimeoutError:
            return None
        if room.stopped:
            await room.until_saved
            return None
        return DocumentsRoom(room, document)


class NoRooms:
    """The rooms of an extension that is too old."""

    def ids(self) -> list[str]:
        """Return nothing."""
        return []

    async def open(self, room_id: str) -> None:
        """Return None."""


def rooms_of(extension_apps: Any, log: Logger) -> Rooms | None:
    """Return the rooms of the extension that is loaded; None while there is none.

    Parameters
    ----------
    extension_apps
        The server's extensions, by name.
    """
    for name, made in ((YDOC, YDocRooms), (DOCUMENTS, DocumentsRooms)):
        for extension in extension_apps.get(name, ()):
            return made(extension) if _is_supported(name, log) else NoRooms()
    return None


def _is_supported(name: str, log: Logger) -> bool:
    installed, oldest = version(name), OLDEST[name]
    if tuple(map(int, installed.split(".")[: len(oldest)])) >= oldest:
        return True
    log.warning(
        "Agents' cells do not go through collaboration: %s %s is too old, %s is needed.",
        name,
        installed,
        ".".join(map(str, oldest)),
    )
    return False


def _closed() -> Unreachable:
    return Unreachable("The notebook is not open any more.")
