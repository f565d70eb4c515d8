"""Which files of its folder a session may change, since it left them there itself."""

from __future__ import annotations

import asyncio
import os
from weakref import WeakKeyDictionary

from ..errors import FileNotOwned, FileUnwritable, PreconditionFailed
from ..kernels.folder import etag_of
from ..sessions.session import LiveSession
from ..types import ExecutionId
from .conditions import Conditions, matches
from .file import modified_at

_WRITE_BITS = 0o222


class Left:
    """What one session left in its folder."""

    def __init__(self, session: LiveSession) -> None:
        self.lock = asyncio.Lock()
        """Held while a file gets its place or goes away, so that each knows of the one before."""
        self.uploaded: dict[str, str] = {}
        """ETags of files as they were uploaded, by path."""
        self._written = session.written_files.last

    def execution_of(self, path: str, status: os.stat_result) -> ExecutionId | None:
        """Return the execution that left a file as it is; None if none is known to have."""
        execution_id, file = self._written.get(path, (None, None))
        if file is None or file.bytes != status.st_size or file.modified_at != modified_at(status):
            return None
        return execution_id

    def check(self, path: str, status: os.stat_result | None, conditions: Conditions) -> None:
        """Look whether the session may replace or delete what is at a path.

        Parameters
        ----------
        status
            Of the file there; None if there is none.

        Raises
        ------
        PreconditionFailed, FileNotOwned, FileUnwritable
        """
        etag = None if status is None else etag_of(status)
        self._check_conditions(etag, conditions)
        if status is None:
            return
        named = conditions.if_match is not None and conditions.if_match.strip() != "*"
        own = self.uploaded.get(path) == etag or self.execution_of(path, status) is not None
        if not named and not own:
            raise FileNotOwned(
                f"{path!r} is not as this session left it: it is somebody else's, or has been "
                "written since. To replace or delete it all the same, read it and send its ETag as "
                "If-Match; or take another name.",
                path=path,
            )
        if not status.st_mode & _WRITE_BITS:
            raise FileUnwritable(f"{path!r} is read-only.", path=path)

    def _check_conditions(self, etag: str | None, conditions: Conditions) -> None:
        asked, unless = conditions.if_match, conditions.if_none_match
        if unless is not None and etag is not None and matches(unless, etag):
            raise PreconditionFailed("There is a file at this path already.")
        if asked is not None and (etag is None or not matches(asked, etag)):
            raise PreconditionFailed(
                "The file is not as it was when it was read, or is gone: read it anew."
            )


class AllLeft:
    """What each open session left in its folder."""

    def __init__(self) -> None:
        self._left: WeakKeyDictionary[LiveSession, Left] = WeakKeyDictionary()

    async def of(self, session: LiveSession) -> Left:
        """Return what a session left there; all of its executions that have ended are known."""
        await session.written_files.known()
        return self._left.setdefault(session, Left(session))
