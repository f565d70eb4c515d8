"""A session's files: list, read, upload, delete."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

from ..auth.scopes import Caller
from ..errors import Forbidden, InvalidRequest, PayloadTooLarge
from ..kernels.folder import Folder, Place, etag_of, kept_folders, open_file, opened
from ..kernels.folder_paths import check_new, is_data, is_hidden, is_notebook, parts_of
from ..models import SessionFile, SessionFileList
from ..records import By, Entry, FileDeleted, FileUnchanged, FileUploaded, timestamp
from ..sessions.activity import Publish
from ..sessions.session import LiveSession
from ..tasks import Tasks
from .conditions import Conditions
from .file import OpenFile, session_file
from .listing import Found, found_in
from .owning import AllLeft, Left
from .queries import FilesQuery
from .refusing import missing, reading, writing
from .removing import digest_of_file, look_at, remove
from .upload import Upload

T = TypeVar("T")


_UPLOAD: Final = "Writing"
_DELETION: Final = "Deleting"


class Sessions(Protocol):
    """What is asked of the agent sessions."""

    async def live_session(self, id: str) -> LiveSession:
        """Return an open session; SessionNotFound or SessionClosed."""

    def admit(self, live: LiveSession, caller: Caller, what: str, *, is_code: bool) -> None:
        """Let something of an agent's pass the gate; Paused or ApprovalRequired if it may not."""

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Do something that blocks on the disk."""


class Folders(Protocol):
    """Where kernels work."""

    async def of(self, session: LiveSession) -> Folder:
        """Return the folder in which a session's kernel works.

        Raises
        ------
        FolderUnknown
            It is not known, or not on this machine.
        """


class Uploaded(NamedTuple):
    """A file that was uploaded."""

    file: SessionFile
    etag: str
    is_new: bool


class Asked(NamedTuple):
    """A change of a file that is allowed by its name; what is there is still to be looked at."""

    session: LiveSession
    left: Left
    path: str
    parts: tuple[str, ...]
    conditions: Conditions


class SessionFiles:
    """The files in the folders of open sessions.

    What a session may change is what it left there itself: files that it uploaded, or that its
    executions wrote, as long as nobody has written them since. Any other file takes its ETag, so
    that only what was read is replaced. Notebooks are changed by their cells, never here.

    Parameters
    ----------
    kept
        Folders of the server's own, of which nothing is told, written or deleted.
    max_bytes
        The largest file that may be uploaded.
    """

    def __init__(
        self,
        sessions: Sessions,
        folders: Folders,
        publish: Publish,
        *,
        kept: Sequence[Path],
        max_bytes: int,
        tasks: Tasks,
    ) -> None:
        self._sessions = sessions
        self._folders = folders
        self._publish = publish
        self._kept = kept
        self._max_bytes = max_bytes
        self._tasks = tasks
        self._left = AllLeft()
        self._uploads: set[Upload] = set()

    async def stop(self) -> None:
        """Drop what is being uploaded."""
        for upload in list(self._uploads):
            await self.drop(upload)
        await self._tasks.end()

    # -- look --------------------------------------------------------------------------------------

    async def list(self, session_id: str, query: FilesQuery) -> SessionFileList:
        """List what is in a session's folder, or in one below it, by path.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, FileMissing, InvalidRequest
        """
        session = await self._sessions.live_session(session_id)
        above = _to_read(query.path) if query.path else ()
        after = _after(query.after, above)
        left = await self._left.of(session)
        folder = await self._folders.of(session)

        def page() -> list[Found]:
            place = self._place(folder)
            with reading(query.path), opened(place, above) as opened_folder:
                found = found_in(
                    opened_folder, above, place.kept, recursive=query.recursive, after=after
                )
                return list(islice(found, query.limit + 1))

        found = await self._sessions.in_thread(page)
        files = [_told(each, left) for each in found[: query.limit]]
        return SessionFileList(
            files=files, next_after=files[-1].path if len(found) > query.limit else None
        )

    async def open(self, session_id: str, path: str) -> OpenFile:
        """Open a file for reading; whoever asked closes it.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, FileMissing
        """
        session = await self._sessions.live_session(session_id)
        parts = _to_read(path)
        folder = await self._folders.of(session)

        def open_it() -> OpenFile:
            with reading(path), opened(self._place(folder), parts[:-1]) as above:
                return OpenFile(*open_file(above, parts[-1]), name=parts[-1])

        return await self._sessions.in_thread(open_it)

    # -- change ------------------------------------------------------------------------------------

    def check_size(self, size: int) -> None:
        """Raise PayloadTooLarge if a file of so many bytes may not be uploaded."""
        if size > self._max_bytes:
            raise PayloadTooLarge(
                f"A file may have {self._max_bytes:,} bytes here.", limit_bytes=self._max_bytes
            )

    async def begin(
        self,
        session_id: str,
        path: str,
        conditions: Conditions,
        declared_bytes: int | None,
        caller: Caller,
    ) -> Upload:
        """Begin to take a file, after a look whether it may go there.

        Parameters
        ----------
        declared_bytes
            Its size, as far as that was said.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, InvalidRequest, Forbidden, Paused,
        PayloadTooLarge, PreconditionFailed, FileNotOwned, FileUnwritable
            Nothing is there.
        """
        asked = await self._asked(session_id, path, conditions, _UPLOAD, caller)
        check_new(asked.parts)
        self.check_size(declared_bytes or 0)
        folder = await self._folders.of(asked.session)

        def begin_it() -> Upload:
            with writing(path):
                upload = Upload(self._place(folder), asked.parts)
                try:
                    asked.left.check(path, upload.standing(), conditions)
                except BaseException:
                    upload.drop()
                    raise
                return upload

        upload = await self._sessions.in_thread(begin_it)
        self._uploads.add(upload)
        return upload

    async def take(self, upload: Upload, data: bytes) -> None:
        """Take the next piece of a file.

        Raises
        ------
        PayloadTooLarge, FileUnwritable
            It is to be dropped.
        """
        self.check_size(upload.bytes + len(data))

        def write() -> None:
            with writing("/".join(upload.parts)):
                upload.write(data)

        await self._sessions.in_thread(write)

    async def finish(
        self, session_id: str, upload: Upload, conditions: Conditions, caller: Caller
    ) -> Uploaded:
        """Give a file its place: recorded, then there, whole.

        Raises
        ------
        SessionClosed, PreconditionFailed, FileNotOwned, FileUnwritable, Forbidden, Paused,
        HistoryUnavailable
            It is to be dropped; what was there is as it was.
        """
        path, by = "/".join(upload.parts), caller.by()
        asked = await self._asked(session_id, path, conditions, _UPLOAD, caller)

        def standing() -> os.stat_result | None:
            with writing(path):
                return upload.standing()

        def put() -> os.stat_result:
            with writing(path):
                return upload.put(replaced)

        async with asked.left.lock:
            before = await self._sessions.in_thread(standing)
            asked.left.check(path, before, conditions)
            replaced = None if before is None else etag_of(before)
            entry = FileUploaded(
                at=timestamp(),
                by=by,
                path=path,
                bytes=upload.bytes,
                sha256=upload.sha256,
                replaced=before is not None,
            )
            async with self._doing(asked, entry, by):
                status = await self._sessions.in_thread(put)
            asked.left.uploaded[path] = etag_of(status)
        self._publish("session", asked.session)
        file = session_file(path, status, is_folder=False, execution_id=None)
        return Uploaded(file, etag_of(status), before is None)

    async def put(
        self, session_id: str, path: str, data: bytes, conditions: Conditions, caller: Caller
    ) -> Uploaded:
        """Take a file that is at hand as a whole: `begin`, `take` and `finish` at once.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, InvalidRequest, Forbidden, Paused,
        PayloadTooLarge, PreconditionFailed, FileNotOwned, FileUnwritable, HistoryUnavailable
            What was there is as it was.
        """
        upload = await self.begin(session_id, path, conditions, len(data), caller)
        try:
            await self.take(upload, data)
            return await self.finish(session_id, upload, conditions, caller)
        finally:
            await self.drop(upload)

    async def drop(self, upload: Upload) -> None:
        """Leave nothing of an upload, unless the file has its place. Idempotent."""
        self._uploads.discard(upload)
        await self._sessions.in_thread(upload.drop)

    def drop_soon(self, upload: Upload) -> None:
        """Drop an upload of which nobody waits for the end."""
        self._tasks.start(self.drop(upload), f"drop {upload.parts[-1]}")

    async def delete(
        self, session_id: str, path: str, conditions: Conditions, caller: Caller
    ) -> None:
        """Delete a file, or an empty folder.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, InvalidRequest, Forbidden, Paused,
        FileMissing, PreconditionFailed, FileNotOwned, FileUnwritable, HistoryUnavailable
            It is still there.
        """
        by = caller.by()
        asked = await self._asked(session_id, path, conditions, _DELETION, caller)
        folder = await self._folders.of(asked.session)
        async with asked.left.lock:
            status = await self._in_place(look_at, folder, asked)
            if status is None:
                raise missing(path)
            is_folder = stat.S_ISDIR(status.st_mode)
            sha256 = None
            if not is_folder:  # an empty folder is nobody's work
                asked.left.check(path, status, conditions)
                sha256 = await self._in_place(digest_of_file, folder, asked)
            entry = FileDeleted(
                at=timestamp(),
                by=by,
                path=path,
                bytes=None if is_folder else status.st_size,
                sha256=sha256,
            )
            async with self._doing(asked, entry, by):
                await self._in_place(partial(remove, etag=etag_of(status)), folder, asked)
            asked.left.uploaded.pop(path, None)
        self._publish("session", asked.session)

    # -- helpers -----------------------------------------------------------------------------------

    async def _asked(
        self, session_id: str, path: str, conditions: Conditions, what: str, caller: Caller
    ) -> Asked:
        """Look whether a path is one that an agent may write or delete now."""
        session = await self._sessions.live_session(session_id)
        parts = parts_of(path)
        if is_hidden(parts):
            raise Forbidden(f"{path!r} is hidden: nothing is written or deleted there.")
        if is_notebook(parts[-1]):
            raise Forbidden(
                "Notebooks are read here, not written or deleted: edit the cells instead "
                "(PATCH /notebooks/{path}/cells), or have your session make the notebook."
            )
        is_code = not is_data(parts)
        kind = "a file that can become code" if is_code else "a file"
        self._sessions.admit(session, caller, f"{what} {kind}", is_code=is_code)
        return Asked(session, await self._left.of(session), path, parts, conditions)

    @asynccontextmanager
    async def _doing(self, asked: Asked, entry: Entry, by: By) -> AsyncIterator[None]:
        """Have it on disk what is about to be done, and also if it was not done after all."""
        await asked.session.write(entry)
        try:
            yield
        except BaseException:
            await asked.session.note(FileUnchanged(at=timestamp(), by=by, path=asked.path))
            raise

    async def _in_place(
        self, act: Callable[[Place, Sequence[str]], T], folder: Folder, asked: Asked
    ) -> T:
        """Do something to a file below a folder, in a thread; a refusal says why."""

        def do() -> T:
            with writing(asked.path):
                return act(self._place(folder), asked.parts)

        return await self._sessions.in_thread(do)

    def _place(self, folder: Folder) -> Place:
        return Place(folder, kept_folders(self._kept))


def _to_read(path: str) -> tuple[str, ...]:
    """Return the names of a path that may be read."""
    try:
        parts = parts_of(path)
    except InvalidRequest:
        raise missing(path) from None
    if is_hidden(parts):
        raise missing(path)
    return parts


def _after(after: str | None, above: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path after which a page begins, below the folder that is listed."""
    if after is None:
        return ()
    parts = parts_of(after, "after")
    if parts[: len(above)] != above or len(parts) == len(above):
        raise InvalidRequest(
            f"after: {after[:200]!r} is not in the folder that is listed.", field="after"
        )
    return parts[len(above) :]


def _told(found: Found, left: Left) -> SessionFile:
    path = "/".join(found.parts)
    is_folder = stat.S_ISDIR(found.status.st_mode)
    return session_file(
        path,
        found.status,
        is_folder=is_folder,
        execution_id=None if is_folder else left.execution_of(path, found.status),
    )
