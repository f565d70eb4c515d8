"""Dynamic sessions: agent sessions with identifiers that clients choose."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from ..auth.access import AccessControl
from ..auth.scopes import Caller
from ..errors import AgentExecError, AlreadyFinished, FileMissing, InvalidRequest
from ..executions.limits import Settings
from ..files.file import Conditions, FilesQuery, OpenFile, missing
from ..files.manager import SessionFiles
from ..journal.outputs import is_image
from ..kernels.folder import check_new, parts_of
from ..models import (
    Agent,
    Execute,
    Limits,
    OpenSession,
    ScratchTarget,
    SessionFile,
    Target,
)
from ..records import SERVER, ExecutionRecord
from ..sessions.answers import blob_url
from ..sessions.manager import AgentSessions
from ..sessions.session import LiveSession
from ..tasks import Tasks, call_later_apart, first_of
from ..text.model_text import images
from ..types import SessionId, TokenId
from .outcome import (
    CodeToExecute,
    DynamicFile,
    DynamicFileList,
    DynamicFileProperties,
    encoded,
)

MOST_LISTED: Final = 10_000
"""Maximum number of files and folders in a list. There is one page, as clients expect."""

_FRESH: Final = (
    "The session of this identifier was closed since it was used last; what stands there now is "
    "fresh: earlier variables and files are gone."
)


class DynamicSessions:
    """Keeps an agent session for each client, each with its own folder.

    Parameters
    ----------
    idle_timeout
        Seconds after which an unused session is closed; 0 for never.
    """

    def __init__(
        self,
        sessions: AgentSessions,
        files: SessionFiles,
        access: AccessControl,
        settings: Settings,
        *,
        idle_timeout: float,
        log: logging.Logger,
    ) -> None:
        self._sessions = sessions
        self._files = files
        self._access = access
        self._settings = settings
        self._idle_timeout = idle_timeout
        self._timers: dict[SessionId, asyncio.TimerHandle] = {}
        self._known = KnownClients()
        self._log = log
        self._tasks = Tasks(log)

    async def stop(self) -> None:
        """Stop closing idle sessions."""
        for timer in self._timers.values():
            timer.cancel()
        await self._tasks.end()

    async def execute(
        self,
        client: Client,
        asked: CodeToExecute,
        caller: Caller,
        gone: asyncio.Future[None],
        base_url: str,
    ) -> msgspec.Raw | None:
        """Run code and return its outcome; None if the client has disconnected meanwhile.

        Parameters
        ----------
        gone
            Done when the client has closed its connection. Then the code is interrupted.
        base_url
            The path at which the client reaches the server, with a slash at both ends.

        Raises
        ------
        InvalidRequest, Forbidden, TooManyRequests, KernelUnavailable, HistoryUnavailable,
        IsolationUnavailable, ServerStopping
            No code ran.
        """
        timeout = asked.timeout_in_seconds
        settings = self._settings.within(caller.caps)
        settings.check_timeout(timeout, "properties.timeoutInSeconds")
        session = await self._open(client, caller)
        if gone.done():
            return None
        folder = session.source.folder
        source = as_run_here(asked.code, None if folder is None else folder.path)
        said = Execute(source=source, timeout=timeout, wait=0)
        with self._sessions.streaming(caller):
            record = await self._sessions.execute(session.id, said, caller, None)
            record = await self._finished(record, caller, gone)
        self._use(session)
        if gone.done():
            return None
        remarks = [_FRESH] if self._known.is_news(client, session.id) else []
        places = await self._keep_images(record, caller, base_url)
        return await self._sessions.history.in_thread(partial(encoded, record, places, remarks))

    async def upload(
        self, client: Client, name: str, data: bytes, caller: Caller
    ) -> DynamicFileList:
        """Write a file to a session's folder. It replaces a file of the same name.

        Raises
        ------
        InvalidRequest, Forbidden, PayloadTooLarge, PreconditionFailed, FileUnwritable,
        FolderUnknown, TooManyRequests, KernelUnavailable, HistoryUnavailable, ServerStopping
            The folder was not changed.
        """
        parts = parts_of(name, "file")
        if len(parts) > 1:
            raise InvalidRequest("file: its name has a slash.", field="file")
        check_new(parts)
        self._files.check_size(len(data))
        session = await self._open(client, caller)
        conditions = await self._as_it_is(session.id, name)
        uploaded = await self._files.put(session.id, name, data, conditions, caller)
        return DynamicFileList(value=[_told(uploaded.file)])

    async def files(self, client: Client, caller: Caller) -> DynamicFileList:
        """List the files in a session's folder; none if there is no session.

        Raises
        ------
        FolderUnknown, SessionClosed
        InvalidRequest
            The folder has more files than `MOST_LISTED`.
        """
        session = self._found(client, caller)
        if session is None:
            return DynamicFileList(value=[])
        listed = await self._files.list(session.id, FilesQuery(limit=MOST_LISTED))
        if listed.next_after is not None:
            raise InvalidRequest(
                f"identifier: the folder of this session holds more than the {MOST_LISTED:,} files "
                "that can be listed; have its code list them.",
                field="identifier",
                limit=MOST_LISTED,
            )
        return await self._sessions.history.in_thread(partial(_all_told, listed.files))

    async def open_file(self, client: Client, name: str, caller: Caller) -> OpenFile:
        """Open a file in a session's folder for reading. The caller closes it.

        Raises
        ------
        FileMissing, FolderUnknown, SessionClosed
        """
        session = self._found(client, caller)
        if session is None:
            raise missing(name)
        return await self._files.open(session.id, name)

    # -- sessions ----------------------------------------------------------------------------------

    def _found(self, client: Client, caller: Caller) -> LiveSession | None:
        """Return the session of a client; None if it has no session with an own folder.

        If another API has opened a different kind of session under this id, it is not used here.
        That API checks the access to its files.
        """
        session = self._sessions.clients.find(client.id, caller)
        if session is None or not _has_own_folder(session.record().target):
            return None
        self._use(session)
        return session

    async def _open(self, client: Client, caller: Caller) -> LiveSession:
        """Return the session of a client. Open it if needed."""
        name = "Dynamic sessions" if caller.token is None else caller.token.label
        asked = OpenSession(
            agent=Agent(name=name),
            target=ScratchTarget(own_folder=True),
            title=f"Dynamic session {client.identifier}",
            client_id=client.id,
            limits=Limits(restart_if_interrupt_ignored=True),  # the client cannot close it
        )
        record, _ = await self._sessions.open(asked, caller)
        self._known.heard(client, record.id)
        session = await self._sessions.history.live_session(record.id)
        self._use(session)
        return session

    def _use(self, session: LiveSession) -> None:
        """Restart the idle timer of a session."""
        timer = self._timers.pop(session.id, None)
        if timer is not None:
            timer.cancel()
        if self._idle_timeout and session.is_open:
            # The timer has only the id, so that it does not keep the session in memory.
            self._timers[session.id] = call_later_apart(self._idle_timeout, self._idle, session.id)

    def _idle(self, session_id: SessionId) -> None:
        del self._timers[session_id]
        session = self._sessions.history.open_session(session_id)
        if session is None or not session.is_open:
            return
        if session.unfinished.running is not None or session.unfinished.queued:
            self._use(session)
        else:
            ending = session.close("closed", SERVER)
            self._tasks.start(ending, f"close idle {session.id}")

    # -- executions --------------------------------------------------------------------------------

    async def _finished(
        self, record: ExecutionRecord, caller: Caller, gone: asyncio.Future[None]
    ) -> ExecutionRecord:
        """Wait until an execution has finished. Interrupt it if its client disconnects."""
        found = self._sessions.history.watching(record.id)
        if found is None:
            return await self._sessions.execution(record.id)
        session, execution = found
        await first_of(execution.finished, gone)
        if not execution.finished.done():
            with suppress(AlreadyFinished):
                await self._sessions.cancel(record.id, caller)
        return session.execution_record(execution)

    # -- files -------------------------------------------------------------------------------------

    async def _keep_images(
        self, record: ExecutionRecord, caller: Caller, base_url: str
    ) -> dict[int, str]:
        """Save the images of an execution in files, and return their paths by output.

        If an image cannot be saved, or the caller may not read files, its URL in the history is
        returned instead. This must not fail, because the client would run the code again.
        """
        found = await self._sessions.history.in_thread(partial(images, record.outputs))
        digests = {ref.at: ref.sha256 for ref in record.blobs if is_image(ref)}
        places: dict[int, str] = {}
        for number, image in enumerate(found, 1):
            digest = digests.get((image.output, "data", image.mimetype))
            if digest is not None:
                places[image.output] = blob_url(digest, base_url)
            name = f"{record.id}-{number}.{image.kind}"
            try:
                self._access.check(caller, "files")
                unless = Conditions(if_none_match="*")
                await self._files.put(record.session_id, name, image.data, unless, caller)
            except AgentExecError:
                continue
            except Exception:
                self._log.exception("%s is not among the files", name)
                continue
            places[image.output] = name
        return places

    async def _as_it_is(self, session_id: SessionId, name: str) -> Conditions:
        """Return the precondition to replace the current file, or to create it if there is none."""
        try:
            file = await self._files.open(session_id, name)
        except FileMissing:
            return Conditions(if_none_match="*")
        file.close()
        return Conditions(if_match=file.etag)


def _has_own_folder(target: Target) -> bool:
    return isinstance(target, ScratchTarget) and target.own_folder


def _all_told(files: Sequence[SessionFile]) -> DynamicFileList:
    return DynamicFileList(value=[_told(file) for file in files if not file.is_folder])


def _told(file: SessionFile) -> DynamicFile:
    return DynamicFile(
        properties=DynamicFileProperties(
            filename=file.path, size=file.bytes or 0, last_modified_time=file.modified_at
        )
    )


MOST_KNOWN: Final = 10_000
"""Maximum number of clients to remember."""


class Client(NamedTuple):
    """A client, and the identifier of its session."""

    identifier: str
    """The client's own name for its session."""
    token_id: TokenId | None
    """The id of its agent token; None without one."""
    username: str | None = None
    """The user's name if there is no agent token; None if unknown."""

    @property
    def id(self) -> str:
        """The identifier of its session, unique per token, or among clients without a token."""
        if self.username is None:
            return f"aca:{self.identifier}"
        return f"aca@{quote(self.username, safe='')}:{self.identifier}"


class KnownClients:
    """Remembers which session each client has used, for the most recent clients.

    Parameters
    ----------
    most
        Maximum number of clients. A forgotten client gets no message about a closed session.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._sessions: dict[Client, SessionId] = {}

    def heard(self, client: Client, session_id: SessionId) -> None:
        """Record that a client uses a session. `is_news` still reports a replaced session."""
        self._know(client, self._sessions.get(client, session_id))

    def is_news(self, client: Client, session_id: SessionId) -> bool:
        """Return whether a client gets a different session than before. True only once."""
        known = self._sessions.get(client, session_id)
        self._know(client, session_id)
        return known != session_id

    def _know(self, client: Client, session_id: SessionId) -> None:
        self._sessions.pop(client, None)
        self._sessions[client] = session_id
        if len(self._sessions) > self._most:
            del self._sessions[next(iter(self._sessions))]


_GO_TO_FOLDER: Final = "import os; os.chdir('/mnt/data')"

_PACKAGES: Final = "import pkg_resources\n[d.project_name for d in pkg_resources.working_set]"

_PACKAGES_HERE: Final = (
    "import importlib.metadata\n"
    "sorted({d.metadata['Name'] for d in importlib.metadata.distributions()} - {None})"
)
"""Replaces `_PACKAGES`: `pkg_resources` may be missing, and prints warnings before the list."""


def as_run_here(source: str, folder: Path | None) -> str:
    """Return the source to run. Code that clients send by themselves is adapted to this server.

    Parameters
    ----------
    folder
        The session's folder, which is ``/mnt/data`` in Azure.
    """
    asked = source.strip()
    if asked == _PACKAGES:
        return _PACKAGES_HERE
    if asked == _GO_TO_FOLDER and folder is not None:
        return f"import os; os.chdir({str(folder)!r})"
    return source
