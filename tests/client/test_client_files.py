"""A session's files, through both clients, against a real server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.client import (
    AgentExecClient,
    AsyncSession,
    ConnectionLost,
    Session,
)
from jupyter_agent_exec.errors import (
    FileMissing,
    FileNotOwned,
    Forbidden,
    InvalidRequest,
    PreconditionFailed,
)
from tests.client.wire import Script, problem, reply
from tests.real_server import RealServer

LARGE = bytes(range(256)) * 12_000


@pytest.fixture
def folder(server: RealServer) -> Iterator[Path]:
    folder = server.root_dir / "files"
    folder.mkdir(exist_ok=True)  # it stays: a warm kernel may be starting there
    yield folder
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.fixture
def session_there(client: AgentExecClient, folder: Path) -> Iterator[Session]:
    with client.open_session("tester", cwd="files") as session:
        yield session


def test_files_are_uploaded_listed_downloaded_and_deleted(
    session_there: Session, folder: Path, tmp_path: Path
) -> None:
    session = session_there
    mine = tmp_path / "mine.bin"
    mine.write_bytes(LARGE)
    assert session.upload(mine).path == "mine.bin"
    assert session.upload(b"a", "data/ä b.txt").bytes == 1
    assert (folder / "mine.bin").read_bytes() == LARGE
    assert [file.path for file in session.files()] == ["data", "mine.bin"]
    every = [file.path for file in session.files(recursive=True)]
    assert every == ["data", "data/ä b.txt", "mine.bin"]
    assert [file.path for file in session.files("data")] == ["data/ä b.txt"]
    assert session.download("mine.bin") == LARGE
    assert session.download("mine.bin", tmp_path / "got.bin").read_bytes() == LARGE
    assert session.download("data/ä b.txt", tmp_path) == tmp_path / "ä b.txt"
    session.delete_file("data/ä b.txt")
    session.delete_file("data")
    assert [file.path for file in session.files(recursive=True)] == ["mine.bin"]


def test_a_persons_file_takes_its_etag(session_there: Session, folder: Path) -> None:
    session = session_there
    (folder / "theirs.txt").write_text("1")
    with pytest.raises(FileNotOwned):
        session.upload(b"2", "theirs.txt")
    etag = session.file_etag("theirs.txt")
    (folder / "theirs.txt").write_text("3!")
    with pytest.raises(PreconditionFailed):
        session.upload(b"2", "theirs.txt", etag=etag)
    session.upload(b"2", "theirs.txt", etag=session.file_etag("theirs.txt"))
    assert (folder / "theirs.txt").read_text() == "2"


def test_what_is_not_there_is_told_and_leaves_nothing_here(
    session_there: Session, tmp_path: Path
) -> None:
    session = session_there
    for ask in (
        lambda: session.download("nowhere.txt", tmp_path / "x"),
        lambda: session.file_etag("nowhere.txt"),
        lambda: session.delete_file("nowhere.txt"),
    ):
        with pytest.raises(FileMissing):
            ask()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../x", "a//b", "/x", "./x", "a/"])
def test_a_name_that_would_change_the_address_is_refused_here(
    session_there: Session, name: str
) -> None:
    with pytest.raises(InvalidRequest):
        session_there.upload(b"x", name)


def test_bytes_need_a_name(session_there: Session) -> None:
    with pytest.raises(InvalidRequest):
        session_there.upload(b"x")


def test_a_download_that_breaks_goes_on_where_it_was() -> None:
    whole = reply(b"", 200, '"e"')
    script = Script(whole, b"abc", ConnectionLost("cut"), reply(b"", 206, '"e"'), b"def", b"")
    assert script.run(script.session.download("a.bin")) == b"abcdef"
    again = script.sent[-1]
    assert again.headers == {"Range": "bytes=3-", "If-Range": '"e"'}


@pytest.mark.parametrize("save", [AsyncSession.export, AsyncSession.journal])
@pytest.mark.parametrize("cut", [0, 1])
def test_what_cannot_be_saved_leaves_the_file_of_before(
    save: Callable[[AsyncSession, Path], Any], cut: int, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    saved.write_text("earlier")
    begun = [reply(b""), b"abc"][: 2 * cut]
    script = Script(*begun, ConnectionLost("cut"))
    with pytest.raises(ConnectionLost):
        script.run(save(script.session, saved))
    assert [file.read_text() for file in tmp_path.iterdir()] == ["earlier"]


def test_an_export_can_go_to_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        script = Script(reply(b""), b"abc", b"")
        assert script.run(script.session.export(pipe)) == pipe
        assert os.read(reader, 9) == b"abc"
    finally:
        os.close(reader)


def test_why_a_file_has_no_etag_is_told() -> None:
    script = Script(reply(b"", 403), problem("forbidden", "Not for you.", 403))
    with pytest.raises(Forbidden, match="Not for you"):
        script.run(script.session.file_etag("a.txt"))
    assert [request.method for request in script.sent] == ["HEAD", "GET"]


def test_a_download_of_a_file_that_changed_meanwhile_is_no_mixture() -> None:
    script = Script(reply(b"", 200, '"e"'), b"abc", ConnectionLost("cut"), reply(b"", 200, '"f"'))
    with pytest.raises(ConnectionLost, match="changed"):
        script.run(script.session.download("a.bin"))
