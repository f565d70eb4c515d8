"""What is recorded of a file is what became of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.errors import FileNotOwned
from jupyter_agent_exec.files.file import Conditions
from jupyter_agent_exec.files.manager import FileRequest, SessionFiles
from jupyter_agent_exec.kernels.folder import Folder
from jupyter_agent_exec.records import Entry, FileDeleted, FileUnchanged, FileUploaded
from jupyter_agent_exec.tasks import Tasks


class Session:
    """Keeps entries; somebody does something in its folder at the moment of the first."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.entries: list[Entry] = []
        self._meanwhile = meanwhile

    async def write(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._meanwhile()

    async def note(self, entry: Entry) -> None:
        self.entries.append(entry)

    def publish(self, action: str) -> None:
        """Tell nobody."""


class Server:
    """Of one session, which works in one folder."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.history = self
        self._session = session
        self._folder = Folder(folder, ())

    async def live_session(self, id: str) -> Session:
        return self._session

    def admit(self, live: Session, caller: Caller, what: str, *, is_code: bool) -> None:
        """Refuse nothing."""

    async def in_thread(self, call: Callable[[], Any]) -> Any:
        return await asyncio.to_thread(call)

    async def of(self, session: Session) -> Folder:
        return self._folder


def files_of(session: Session, folder: Path) -> SessionFiles:
    server: Any = Server(session, folder)
    return SessionFiles(
        server,
        server,
        kept=[],
        max_bytes=1000,
        tasks=Tasks(logging.getLogger("test")),
    )


CALLER = Caller(username="ada", display_name="Ada", access="full")
ANY = Conditions(if_match=None, if_none_match=None)
ASKED = FileRequest("s", "a.txt", ANY, CALLER)


async def test_an_upload_that_fails_when_it_is_recorded_is_told_as_not_done(tmp_path: Path) -> None:
    session = Session(lambda: (tmp_path / "a.txt").write_text("a person's"))
    files = files_of(session, tmp_path)
    upload = await files.begin(ASKED, None)
    await files.take(upload, b"an agent's")
    with pytest.raises(FileNotOwned):
        await files.finish(ASKED, upload)
    await files.drop(upload)
    assert (tmp_path / "a.txt").read_text() == "a person's"
    first, second = session.entries
    assert (type(first), type(second)) == (FileUploaded, FileUnchanged)
    assert isinstance(second, FileUnchanged)
    assert second.path == "a.txt"


async def test_a_deletion_that_fails_when_it_is_recorded_is_told_as_not_done(
    tmp_path: Path,
) -> None:
    session = Session(lambda: (tmp_path / "empty" / "a.txt").write_text("a person's"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotOwned):
        await files_of(session, tmp_path).delete(FileRequest("s", "empty", ANY, CALLER))
    assert [type(entry) for entry in session.entries] == [FileDeleted, FileUnchanged]
