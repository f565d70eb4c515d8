"""The way to a notebook that people have open together: jupyter-collaboration's live document.

It knows the rooms of jupyter-server-ydoc, in which such documents are, and never makes one: nobody
would close it. What a change does to a document is `live_cells`'s. Without jupyter-collaboration
there is no such way, and nothing of it is imported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from logging import Logger
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from ...types import Via
from ..changes import Change, Expected, Notebook, Unreachable

if TYPE_CHECKING:
    from .ydoc_cells import LiveCells

EXTENSION: Final = "jupyter_server_ydoc"

OLDEST: Final = 2
"""The first major version of jupyter-server-ydoc that will do: jupyter-collaboration 4."""

_PREFIX: Final = "json:notebook:"
"""Of the ids of rooms with notebooks; the file's id follows."""


class ExtensionManager(Protocol):
    """What is used of the server's manager of extensions."""

    @property
    def extension_apps(self) -> Mapping[str, Iterable[Any]]:
        """The extensions that are loaded, by name."""


class FileIds(Protocol):
    """What is used of the file id manager."""

    def get_id(self, path: str) -> str | None:
        """Return the id of the file at a path, if it has one."""

    def get_path(self, id: str) -> str | None:
        """Return where a file is, if it is known."""


class Room(Protocol):
    """What is used of a room; of some of it there is no public form."""

    clients: set[Any]
    _update_lock: asyncio.Lock
    """Held while the document is made anew from its file."""

    def _save_to_disc(self) -> asyncio.Task[None] | None:
        """Save now; the server does this when a person saves."""

    @property
    def ready(self) -> bool:
        """Whether the document has been loaded."""


class _Rooms(Protocol):
    rooms: dict[str, Room]


class _Loader(Protocol):
    async def maybe_notify(self) -> None:
        """Have the room look whether its file has changed."""

    async def maybe_save_content(self, model: dict[str, Any]) -> dict[str, Any] | None:
        """Write the file, if nobody else has since it was read."""


class _Extension(Protocol):
    ywebsocket_server: _Rooms
    file_loaders: Any

    async def get_document(self, *, room_id: str, copy: bool) -> Any:
        """Return the document of a room."""


class CollaborationBackend:
    """Finds the live documents of this server.

    Parameters
    ----------
    extensions
        Where jupyter-server-ydoc is found, once it has been loaded.
    file_ids
        Returns the file id manager, which is there once its extension has been loaded.
    """

    def __init__(
        self, extensions: ExtensionManager, file_ids: Callable[[], FileIds | None], log: Logger
    ) -> None:
        self._extensions = extensions
        self._file_ids = file_ids
        self._log = log
        self._found: _Extension | None = None
        self._too_old = False
        self._ways: dict[str, CollaborationHandle] = {}

    async def find(self, path: str) -> CollaborationHandle | None:
        """Return the way to a notebook's live document: the same one for as long as that lives."""
        extension = self._extension()
        file_ids = self._file_ids()
        if extension is None or file_ids is None:
            return None
        file_id = file_ids.get_id(path.strip("/"))
        room_id = f"{_PREFIX}{file_id}"
        way = self._ways.get(room_id)
        if way is None or not way.alive:
            way = await self._open(extension, room_id)
        if way is not None:
            await way.catch_up()
        return way if way is not None and way.alive else None

    def paths(self) -> list[str]:
        """Return the contents paths of the notebooks that have a live document."""
        extension = self._extension()
        file_ids = self._file_ids()
        if extension is None or file_ids is None:
            return []
        notebooks = [id for id in extension.ywebsocket_server.rooms if id.startswith(_PREFIX)]
        found = (file_ids.get_path(id.removeprefix(_PREFIX)) for id in notebooks)
        return sorted(path for path in found if path is not None)

    def _extension(self) -> _Extension | None:
        if self._found is None and not self._too_old:
            found = next(iter(self._extensions.extension_apps.get(EXTENSION, ())), None)
            if found is not None:
                self._too_old = self._is_too_old(version(EXTENSION))
                self._found = None if self._too_old else cast(_Extension, found)
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

    async def _open(self, extension: _Extension, room_id: str) -> CollaborationHandle | None:
        rooms = extension.ywebsocket_server.rooms
        for id in [id for id, way in self._ways.items() if not way.alive]:
            self._ways.pop(id).close()
        if room_id not in rooms:
            return None
        # This waits while the room is being opened or closed.
        document = await extension.get_document(room_id=room_id, copy=False)
        room = rooms.get(room_id)
        if document is None or room is None or not room.ready:
            return None
        return self._ways.setdefault(
            room_id, CollaborationHandle(extension, room_id, room, document)
        )


class CollaborationHandle:
    """The way to one live document, for as long as its room lives."""

    via: Via = "collaboration"

    def __init__(self, extension: _Extension, room_id: str, room: Room, document: Any) -> None:
        from .ydoc_cells import LiveCells

        self._extension = extension
        self._room_id = room_id
        self._room = room
        self._document = document
        self._cells: LiveCells = LiveCells(document)
        self._up_to_date = False

    @property
    def alive(self) -> bool:
        """Whether the room is still there."""
        return self._extension.ywebsocket_server.rooms.get(self._room_id) is self._room

    @property
    def streams(self) -> bool:
        """Whether anybody looks; if not, each change is saved, which costs the whole document."""
        return bool(self._room.clients)

    def close(self) -> None:
        """Let go of the document."""
        self._cells.close()

    async def catch_up(self) -> None:
        """Have what was written to the file before, by another way, in the document.

        The room looks itself, but only each second.
        """
        if not self._up_to_date:
            loader = self._loader()
            if loader is not None:
                await loader.maybe_notify()
            self._up_to_date = True

    async def read(self) -> Notebook:
        """Return the document."""
        from .ydoc_cells import read

        await self._settled()
        return await asyncio.to_thread(read(self._document))

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        """Make changes, all or none, in one transaction.

        If nobody looks at the document, it is then also in its file: a room that is empty is
        closed some time later, and what it has not saved by then is lost.
        """
        await self._settled()
        self._cells.apply(changes, expected)
        if not self._room.clients:
            await self._save()

    async def _settled(self) -> None:
        """Wait while the room makes the document anew from its file.

        It does that in one transaction across many turns of the loop, and nobody may see, or take
        part in, what is not finished. There is no public way to know.
        """
        async with self._room._update_lock:
            pass
        self._check_alive()

    def _loader(self) -> _Loader | None:
        file_id = self._room_id.removeprefix(_PREFIX)
        loaders = self._extension.file_loaders
        return loaders[file_id] if file_id in loaders else None  # noqa: SIM401 (no mapping)

    async def _save(self) -> None:
        """Have the room save, as at a person's asking: so it knows what it saved."""
        saving = self._room._save_to_disc()
        if saving is not None:
            await asyncio.wait({saving})
        self._check_alive()

    def _check_alive(self) -> None:
        if not self.alive:
            raise Unreachable("The notebook is not open any more.")
