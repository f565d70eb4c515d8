"""A session's files: list, read, upload, delete."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from ..auth.scopes import Caller
from ..errors import (
    FileNotOwned,
    FileUnwritable,
    FolderUnknown,
    Forbidden,
    InvalidRequest,
    PayloadTooLarge,
    PreconditionFailed,
)
from ..kernels.folder import (
    Folder,
    Place,
    check_new,
    etag_of,
    is_data,
    is_hidden,
    is_notebook,
    kept_folders,
    open_file,
    opened,
    parts_of,
)
from ..models import KernelTarget, SessionFile, SessionFileList
from ..records import By, Entry, FileDeleted, FileUnchanged, FileUploaded, timestamp
from ..sessions.manager import AgentSessions
from ..sessions.server_documents import ServerContents, ServerSessions
from ..sessions.session import LiveSession
from ..tasks import Tasks
from .file import (
    Conditions,
    FilesQuery,
    FoundFile,
    OpenFile,
    digest_of_file,
    found_in,
    look_at,
    matches,
    missing,
    reading,
    remove,
    session_file,
    writing,
)
from .upload import Upload

T = TypeVar("T")


_UPLOAD: Final = "Writing"
_DELETION: Final = "Deleting"


class Folders:
    """Finds the working folders of sessions' kernels, if contents are files on this machine."""

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
        if session.source.is_elsewhere:
            raise FolderUnknown(
                "The session's kernel runs on another machine, and its folder is there: only code "
                "in the kernel can read and write its files."
            )
        if not self._contents.is_here:
            raise FolderUnknown("This server keeps its files elsewhere: a session's are not here.")
        target = session.record().target
        if isinstance(target, KernelTarget):
            return await self._of_kernel(target.kernel_id)
        if session.source.folder is None:
            raise FolderUnknown("The session's folder is gone.")
        return session.source.folder

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


class Uploaded(NamedTuple):
    """An uploaded file."""

    file: SessionFile
    etag: str
    is_new: bool


class FileRequest(NamedTuple):
    """A request to write or delete a file."""

    session_id: str
    path: str
    conditions: Conditions
    caller: Caller
    is_export: bool = False
    """Whether the file is a notebook that this server made of a session."""


class FileChange(NamedTuple):
    """A change to a path that may be written. `OwnFiles.check` then checks the file there."""

    session: LiveSession
    own: OwnFiles
    path: str
    parts: tuple[str, ...]


class SessionFiles:
    """The files in the folders of open sessions.

    A session may change its own files: those that it uploaded, unless somebody has written them
    since. To change any other file, it must send the file's ETag. So it replaces only content that
    it has read. Notebooks are edited by their cells, never here.

    Parameters
    ----------
    kept
        The server's own folders. Their files are never listed, written or deleted.
    max_bytes
        Bytes of the largest file that may be uploaded.
    """

    def __init__(
        self,
        sessions: AgentSessions,
        folders: Folders,
        *,
        kept: Sequence[Path],
        max_bytes: int,
        tasks: Tasks,
    ) -> None:
        self._sessions = sessions
        self._folders = folders
        self._kept = kept
        self._max_bytes = max_bytes
        self._tasks = tasks
        self._own: WeakKeyDictionary[LiveSession, OwnFiles] = WeakKeyDictionary()
        self._uploads: set[Upload] = set()

    async def stop(self) -> None:
        """Remove all incomplete uploads."""
        for upload in list(self._uploads):
            await self.drop(upload)
        await self._tasks.end()

    # -- read --------------------------------------------------------------------------------------

    async def list(self, session_id: str, query: FilesQuery) -> SessionFileList:
        """List the files in a session's folder, or in a folder below it, by path.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, FileMissing, InvalidRequest
        """
        session = await self._sessions.history.live_session(session_id)
        above = _to_read(query.path) if query.path else ()
        after = _after(query.after, above)
        folder = await self._folders.of(session)

        def page() -> list[FoundFile]:
            place = self._place(folder)
            with reading(query.path), opened(place, above) as opened_folder:
                found = found_in(
                    opened_folder, above, place.kept, recursive=query.recursive, after=after
                )
                return list(islice(found, query.limit + 1))

        found = await self._sessions.history.in_thread(page)
        files = [_listed(each) for each in found[: query.limit]]
        return SessionFileList(
            files=files, next_after=files[-1].path if len(found) > query.limit else None
        )

    async def open(self, session_id: str, path: str) -> OpenFile:
        """Open a file for reading. The caller closes it.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, FileMissing
        """
        session = await self._sessions.history.live_session(session_id)
        parts = _to_read(path)
        folder = await self._folders.of(session)

        def open_it() -> OpenFile:
            with reading(path), opened(self._place(folder), parts[:-1]) as above:
                return OpenFile(*open_file(above, parts[-1]), name=parts[-1])

        return await self._sessions.history.in_thread(open_it)

    # -- change ------------------------------------------------------------------------------------

    def check_size(self, size: int) -> None:
        """Raise PayloadTooLarge if a file of `size` bytes may not be uploaded."""
        if size > self._max_bytes:
            raise PayloadTooLarge(
                f"A file may have {self._max_bytes:,} bytes here.", limit_bytes=self._max_bytes
            )

    async def begin(self, request: FileRequest, declared_bytes: int | None) -> Upload:
        """Begin an upload, if the file may be written there.

        Parameters
        ----------
        declared_bytes
            The size that the client declared; None if it declared none.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, InvalidRequest, Forbidden, Paused,
        PayloadTooLarge, PreconditionFailed, FileNotOwned, FileUnwritable
            No upload was started.
        """
        change = await self._change(request, _UPLOAD)
        check_new(change.parts)
        self.check_size(declared_bytes or 0)
        folder = await self._folders.of(change.session)

        def begin_it() -> Upload:
            upload = Upload(self._place(folder), change.parts)
            try:
                change.own.check(request.path, upload.standing(), request.conditions)
            except BaseException:
                upload.drop()
                raise
            return upload

        upload = await self._in_thread(request.path, begin_it)
        self._uploads.add(upload)
        return upload

    async def take(self, upload: Upload, data: bytes) -> None:
        """Add the next piece of a file.

        Raises
        ------
        PayloadTooLarge, FileUnwritable
            The caller must drop the upload.
        """
        self.check_size(upload.bytes + len(data))
        await self._in_thread("/".join(upload.parts), partial(upload.write, data))

    async def finish(self, request: FileRequest, upload: Upload) -> Uploaded:
        """Record the upload, then move the complete file to its place.

        Raises
        ------
        SessionClosed, PreconditionFailed, FileNotOwned, FileUnwritable, Forbidden, Paused,
        HistoryUnavailable
            The caller must drop the upload. The file at the path was not changed.
        """
        path, by = request.path, request.caller.by()
        change = await self._change(request, _UPLOAD)
        async with change.own.lock:
            before = await self._in_thread(path, upload.standing)
            change.own.check(path, before, request.conditions)
            replaced = None if before is None else etag_of(before)
            entry = FileUploaded(
                at=timestamp(),
                by=by,
                path=path,
                bytes=upload.bytes,
                sha256=upload.sha256,
                replaced=before is not None,
            )
            async with self._recorded(change, entry, by):
                status = await self._in_thread(path, partial(upload.put, replaced))
            change.own.uploaded[path] = etag_of(status)
        change.session.publish("session")
        file = session_file(path, status, is_folder=False)
        return Uploaded(file, etag_of(status), before is None)

    async def put(
        self,
        session_id: str,
        path: str,
        data: bytes,
        conditions: Conditions,
        caller: Caller,
        *,
        is_export: bool = False,
    ) -> Uploaded:
        """Upload a complete file: `begin`, `take` and `finish` in one call.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, InvalidRequest, Forbidden, Paused,
        PayloadTooLarge, PreconditionFailed, FileNotOwned, FileUnwritable, HistoryUnavailable
            The file at the path was not changed.
        """
        request = FileRequest(session_id, path, conditions, caller, is_export)
        upload = await self.begin(request, len(data))
        try:
            await self.take(upload, data)
            return await self.finish(request, upload)
        finally:
            await self.drop(upload)

    async def drop(self, upload: Upload) -> None:
        """Remove an incomplete upload. Idempotent."""
        self._uploads.discard(upload)
        await self._sessions.history.in_thread(upload.drop)

    def drop_soon(self, upload: Upload) -> None:
        """Drop an upload in the background."""
        self._tasks.start(self.drop(upload), f"drop {upload.parts[-1]}")

    async def delete(self, request: FileRequest) -> None:
        """Delete a file, or an empty folder.

        Raises
        ------
        SessionNotFound, SessionClosed, FolderUnknown, InvalidRequest, Forbidden, Paused,
        FileMissing, PreconditionFailed, FileNotOwned, FileUnwritable, HistoryUnavailable
            Nothing was deleted.
        """
        path, by = request.path, request.caller.by()
        change = await self._change(request, _DELETION)
        folder = await self._folders.of(change.session)
        async with change.own.lock:
            status = await self._in_place(look_at, folder, change)
            if status is None:
                raise missing(path)
            is_folder = stat.S_ISDIR(status.st_mode)
            sha256 = None
            if not is_folder:  # an empty folder has no content to lose
                change.own.check(path, status, request.conditions)
                sha256 = await self._in_place(digest_of_file, folder, change)
            entry = FileDeleted(
                at=timestamp(),
                by=by,
                path=path,
                bytes=None if is_folder else status.st_size,
                sha256=sha256,
            )
            async with self._recorded(change, entry, by):
                await self._in_place(partial(remove, etag=etag_of(status)), folder, change)
            change.own.uploaded.pop(path, None)
        change.session.publish("session")

    # -- helpers -----------------------------------------------------------------------------------

    async def _change(self, request: FileRequest, what: str) -> FileChange:
        """Return the change of a file, if an agent may currently write or delete at its path."""
        path = request.path
        session = await self._sessions.history.live_session(request.session_id)
        parts = parts_of(path)
        if is_hidden(parts):
            raise Forbidden(f"{path!r} is hidden: nothing is written or deleted there.")
        if is_notebook(parts[-1]) and not request.is_export:
            raise Forbidden(
                "Notebooks are not written or deleted as files: edit their cells instead, or have "
                "your code make the notebook."
            )
        is_code = not is_data(parts)
        kind = "a file that can become code" if is_code else "a file"
        self._sessions.admit(session, request.caller, f"{what} {kind}", is_code=is_code)
        return FileChange(session, self._own.setdefault(session, OwnFiles()), path, parts)

    @asynccontextmanager
    async def _recorded(self, change: FileChange, entry: Entry, by: By) -> AsyncIterator[None]:
        """Record a change before it is made. If it fails, record that too."""
        await change.session.write(entry)
        try:
            yield
        except BaseException:
            await change.session.note(FileUnchanged(at=timestamp(), by=by, path=change.path))
            raise

    async def _in_thread(self, path: str, act: Callable[[], T]) -> T:
        """Call what changes a file, in a thread, and translate its errors."""

        def do() -> T:
            with writing(path):
                return act()

        return await self._sessions.history.in_thread(do)

    async def _in_place(
        self, act: Callable[[Place, Sequence[str]], T], folder: Folder, change: FileChange
    ) -> T:
        """Call `act` with the file of a change, as `_in_thread` does."""
        return await self._in_thread(change.path, lambda: act(self._place(folder), change.parts))

    def _place(self, folder: Folder) -> Place:
        return Place(folder, kept_folders(self._kept))


def _to_read(path: str) -> tuple[str, ...]:
    """Return the parts of a path, or raise an error if it may not be read."""
    try:
        parts = parts_of(path)
    except InvalidRequest:
        raise missing(path) from None
    if is_hidden(parts):
        raise missing(path)
    return parts


def _after(after: str | None, above: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path after which a page starts, relative to the listed folder."""
    if after is None:
        return ()
    parts = parts_of(after, "after")
    if parts[: len(above)] != above or len(parts) == len(above):
        raise InvalidRequest(
            f"after: {after[:200]!r} is not in the folder that is listed.", field="after"
        )
    return parts[len(above) :]


def _listed(found: FoundFile) -> SessionFile:
    is_folder = stat.S_ISDIR(found.status.st_mode)
    return session_file("/".join(found.parts), found.status, is_folder=is_folder)


_WRITE_BITS = 0o222


class OwnFiles:
    """The files that one session uploaded."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        """Held while a file is replaced or deleted, so that changes run one at a time."""
        self.uploaded: dict[str, str] = {}
        """ETags of uploaded files by path, at the time of their upload."""

    def check(self, path: str, status: os.stat_result | None, conditions: Conditions) -> None:
        """Check that the session may replace or delete a file.

        Parameters
        ----------
        status
            Status of the file; None if it does not exist.

        Raises
        ------
        PreconditionFailed, FileNotOwned, FileUnwritable
        """
        etag = None if status is None else etag_of(status)
        self._check_conditions(etag, conditions)
        if status is None:
            return
        named = conditions.if_match is not None and conditions.if_match.strip() != "*"
        if not named and self.uploaded.get(path) != etag:
            raise FileNotOwned(
                f"This session did not upload {path!r}, or somebody has changed it since. To "
                "replace or delete it anyway, read it and send its ETag, or use another name.",
                path=path,
            )
        if not status.st_mode & _WRITE_BITS:
            raise FileUnwritable(f"{path!r} is read-only.", path=path)

    def _check_conditions(self, etag: str | None, conditions: Conditions) -> None:
        if_match, if_none_match = conditions
        if if_none_match is not None and etag is not None and matches(if_none_match, etag):
            raise PreconditionFailed("There is a file at this path already.")
        if if_match is not None and (etag is None or not matches(if_match, etag)):
            raise PreconditionFailed(
                "The file has changed or is gone since you read it. Read it again."
            )
