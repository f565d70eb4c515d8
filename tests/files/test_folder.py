"""No way leads out of a folder, whatever is moved meanwhile."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupyter_agent_exec.files.file import found_in
from jupyter_agent_exec.files.upload import FileChanged, Upload
from jupyter_agent_exec.kernels.folder import (
    AccessRefused,
    Folder,
    Place,
    etag_of,
    kept_folders,
    look,
    open_child,
    open_file,
    open_top,
    opened,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "sub" / "b.txt").write_text("inside")
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("secret")
    return outside


@pytest.fixture
def place(folder: Path) -> Place:
    return Place(Folder(folder, ()), frozenset())


@pytest.fixture
def descriptors(tmp_path: Path) -> Iterator[None]:
    """Nothing in the test's folder is left open."""
    yield
    assert [path for path in _open_paths() if path.startswith(str(tmp_path))] == []


def _open_paths() -> list[str]:
    paths = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one of the list itself
            paths.append(os.readlink(f"/proc/self/fd/{fd}"))
    return paths


def listed(place: Place, *above: str, recursive: bool = True, after: str = "") -> list[str]:
    parts = tuple(after.split("/")) if after else ()
    with opened(place, above) as folder:
        found = found_in(folder, above, place.kept, recursive=recursive, after=parts)
        return ["/".join(each.parts) for each in found]


def read(place: Place, *parts: str) -> bytes:
    with opened(place, parts[:-1]) as folder:
        file, _ = open_file(folder, parts[-1])
        with open(file, "rb") as stream:
            return stream.read()


@contextmanager
def dropping(place: Place, parts: Sequence[str]) -> Iterator[Upload]:
    upload = Upload(place, parts)
    try:
        yield upload
    finally:
        upload.drop()


def refuse_upload(place: Place, *parts: str) -> None:
    with pytest.raises(AccessRefused), dropping(place, parts) as upload:
        upload.standing()


@pytest.mark.usefixtures("descriptors")
def test_links_are_not_followed_wherever_they_lead(
    place: Place, folder: Path, outside: Path
) -> None:
    (folder / "link").symlink_to(outside)
    (folder / "within").symlink_to(folder / "sub")
    (folder / "sub" / "link.txt").symlink_to(outside / "b.txt")
    (folder / "loop").symlink_to(folder / "loop")
    assert listed(place) == ["a.txt", "sub", "sub/b.txt", "sub/deep"]
    for parts in (("link", "b.txt"), ("within", "b.txt"), ("sub", "link.txt"), ("loop",)):
        with pytest.raises(AccessRefused):
            read(place, *parts)
        refuse_upload(place, *parts)


@pytest.mark.usefixtures("descriptors")
def test_a_link_that_takes_a_folders_place_leads_nowhere(
    place: Place, folder: Path, outside: Path
) -> None:
    """What was opened is what is read: a folder that is held is no path to be followed anew."""
    with opened(place, ["sub"]) as held:
        (folder / "sub").rename(folder / "moved")
        (folder / "sub").symlink_to(outside)
        file, _ = open_file(held, "b.txt")
        with open(file) as stream:
            assert stream.read() == "inside"
        (folder / "moved" / "b.txt").unlink()
        (folder / "moved" / "b.txt").symlink_to(outside / "b.txt")
        with pytest.raises(AccessRefused):
            open_file(held, "b.txt")
    with pytest.raises(AccessRefused):
        read(place, "sub", "b.txt")


@pytest.mark.usefixtures("descriptors")
def test_an_upload_goes_where_it_began_to_go(place: Place, folder: Path, outside: Path) -> None:
    upload = Upload(place, ["sub", "new", "c.txt"])
    upload.write(b"data")
    (folder / "sub").rename(folder / "moved")
    (folder / "sub").symlink_to(outside)
    assert upload.standing() is None
    upload.put(None)
    assert (folder / "moved" / "new" / "c.txt").read_bytes() == b"data"
    assert sorted(os.listdir(outside)) == ["b.txt"]


@pytest.mark.usefixtures("descriptors")
def test_a_link_is_not_followed_where_folders_are_made(
    place: Place, folder: Path, outside: Path
) -> None:
    upload = Upload(place, ["new", "deeper", "c.txt"])
    (folder / "new").symlink_to(outside)
    with pytest.raises(AccessRefused):
        upload.put(None)
    upload.drop()
    assert sorted(os.listdir(outside)) == ["b.txt"]
    assert sorted(os.listdir(folder)) == ["a.txt", "new", "sub"]


@pytest.mark.usefixtures("descriptors")
def test_what_is_no_file_is_not_even_opened(place: Place, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    with listener:
        listener.bind(os.path.relpath(folder / "socket"))
        assert listed(place, recursive=False) == ["a.txt", "sub"]
        for name in ("pipe", "socket", "sub"):
            with pytest.raises(AccessRefused):
                read(place, name)
            refuse_upload(place, name)


@pytest.mark.usefixtures("descriptors")
def test_a_pipe_that_takes_a_files_place_makes_nobody_wait(place: Place, folder: Path) -> None:
    with opened(place, []) as held:
        assert look(held, "a.txt") is not None
        (folder / "a.txt").unlink()
        os.mkfifo(folder / "a.txt")
        with pytest.raises(AccessRefused):
            open_file(held, "a.txt")


@pytest.mark.usefixtures("descriptors")
def test_the_servers_own_folders_are_not_there(folder: Path) -> None:
    own = folder / "sub" / "deep"
    (own / "journal").write_text("record")
    place = Place(Folder(folder, ()), kept_folders([own, folder / "nowhere"]))
    assert listed(place) == ["a.txt", "sub", "sub/b.txt"]
    with pytest.raises(AccessRefused):
        read(place, "sub", "deep", "journal")
    with pytest.raises(AccessRefused):
        Upload(place, ["sub", "deep", "x"])
    (folder / "way").symlink_to(own)
    for within in (own, folder / "way"):
        with pytest.raises(AccessRefused):
            open_top(Place(Folder(within, ()), place.kept))
    with pytest.raises(AccessRefused):
        open_top(Place(Folder(own, ()), kept_folders([folder])))


@pytest.mark.usefixtures("descriptors")
def test_the_folder_that_is_served_may_be_reached_by_a_link(place: Place, folder: Path) -> None:
    way = folder.parent / "way"
    way.symlink_to(folder)
    assert read(Place(Folder(way, ()), place.kept), "sub", "b.txt") == b"inside"


@pytest.mark.usefixtures("descriptors")
def test_hidden_names_and_such_as_are_none_are_not_listed(place: Place, folder: Path) -> None:
    for name in (".hidden", "a\\b", "end.", "a%2fb", "new\nline"):
        (folder / name).write_text("x")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    (Path(os.fsdecode(bytes(folder) + b"/\xff"))).write_text("x")
    assert listed(place) == ["a.txt", "sub", "sub/b.txt", "sub/deep"]


def test_each_page_goes_on_where_the_one_before_ended(place: Place, folder: Path) -> None:
    for name in ("sub/a", "sub.txt", "sub/deep/z", "zoo"):
        (folder / name).write_text("x")
    everything = listed(place)
    assert everything == [
        "a.txt", "sub", "sub/a", "sub/b.txt", "sub/deep", "sub/deep/z", "sub.txt", "zoo",
    ]  # fmt: skip
    for index, path in enumerate(everything):
        assert listed(place, after=path) == everything[index + 1 :], path
    assert listed(place, after="sub/deep/gone") == ["sub/deep/z", "sub.txt", "zoo"]
    assert listed(place, "sub", recursive=False) == ["sub/a", "sub/b.txt", "sub/deep"]


@pytest.mark.usefixtures("descriptors")
def test_an_upload_is_not_there_before_it_is_whole(place: Place, folder: Path) -> None:
    upload = Upload(place, ["sub", "new", "c.txt"])
    upload.write(b"a" * 10)
    assert listed(place) == ["a.txt", "sub", "sub/b.txt", "sub/deep"]
    upload.write(b"b")
    status = upload.put(None)
    assert (folder / "sub" / "new" / "c.txt").read_bytes() == b"a" * 10 + b"b"
    assert (upload.bytes, status.st_size) == (11, 11)
    assert listed(place, "sub", recursive=False) == ["sub/b.txt", "sub/deep", "sub/new"]
    assert sorted(os.listdir(folder / "sub")) == ["b.txt", "deep", "new"]
    upload.drop()
    assert (folder / "sub" / "new" / "c.txt").exists()


@pytest.mark.usefixtures("descriptors")
def test_what_is_dropped_leaves_nothing(place: Place, folder: Path) -> None:
    upload = Upload(place, ["new", "deeper", "c.txt"])
    upload.write(b"data")
    assert len(os.listdir(folder)) == 3
    upload.drop()
    upload.drop()
    upload.write(b"late")
    with pytest.raises(FileChanged):
        upload.put(None)
    assert sorted(os.listdir(folder)) == ["a.txt", "sub"]


@pytest.mark.usefixtures("descriptors")
def test_a_file_that_somebody_puts_there_meanwhile_stays(place: Place, folder: Path) -> None:
    upload = Upload(place, ["new", "c.txt"])
    assert upload.standing() is None
    (folder / "new").mkdir()
    (folder / "new" / "c.txt").write_text("theirs")
    with pytest.raises(FileChanged):
        upload.put(None)
    upload.drop()
    before = etag_of(os.stat(folder / "a.txt"))
    upload = Upload(place, ["a.txt"])
    (folder / "a.txt").write_text("theirs")
    with pytest.raises(FileChanged):
        upload.put(before)
    upload.drop()
    assert (folder / "a.txt").read_text() == (folder / "new" / "c.txt").read_text() == "theirs"
    assert sorted(os.listdir(folder)) == ["a.txt", "new", "sub"]


@pytest.mark.usefixtures("descriptors")
def test_what_cannot_get_its_place_leaves_no_folder(place: Place, folder: Path) -> None:
    upload = Upload(place, ["new", "deeper", "c.txt"])
    temporary = next(name for name in os.listdir(folder) if name.startswith("."))
    (folder / temporary).unlink()
    with pytest.raises(FileNotFoundError):
        upload.put(None)
    upload.drop()
    assert sorted(os.listdir(folder)) == ["a.txt", "sub"]


def test_what_replaces_a_file_has_its_mode_and_not_its_other_names(
    place: Place, folder: Path, outside: Path
) -> None:
    (folder / "a.txt").chmod(0o640)
    os.link(folder / "a.txt", outside / "same")
    upload = Upload(place, ["a.txt"])
    upload.write(b"new")
    before = upload.standing()
    assert before is not None
    upload.put(etag_of(before))
    assert (folder / "a.txt").stat().st_mode & 0o777 == 0o640
    assert (folder / "a.txt").read_text() == "new"
    assert (outside / "same").read_text() == "a"


def test_an_etag_is_another_after_each_write(folder: Path) -> None:
    path = folder / "a.txt"
    before = path.stat()
    path.write_text("b")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # within one tick of the disk's clock
        path.chmod(0o600)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert etag_of(path.stat()) != etag_of(before)


def test_a_folder_by_its_name_is_a_folder(place: Place) -> None:
    top = open_top(place)
    try:
        with pytest.raises(AccessRefused):
            open_child(top, "a.txt", ())
        with pytest.raises(FileNotFoundError):
            open_child(top, "nowhere", ())
    finally:
        os.close(top)


KILLED = """
import os, signal, sys
from pathlib import Path
from jupyter_agent_exec.kernels.folder import Folder, Place
from jupyter_agent_exec.files.upload import Upload
Upload(Place(Folder(Path(sys.argv[1]), ()), frozenset()), ("big.bin",)).write(b"half of it")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_only_uploads_of_dead_servers_are_removed(
    place: Place, folder: Path, descriptors: None
) -> None:
    goes_on = Upload(place, ("going.txt",))
    subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    (folder / ".agent-exec-mine.part").write_text("somebody's")
    uploads = list(folder.glob(".agent-exec-*.part"))
    assert len(uploads) == 3
    # Not at once: where a lock holds on one machine only, it may be another's, and go on.
    Upload(place, ("a.txt",)).drop()
    assert len(list(folder.glob(".agent-exec-*.part"))) == 3
    for each in uploads:
        os.utime(each, (0, 0))
    upload = Upload(place, ("b.txt",))
    upload.write(b"b")
    upload.put(None)
    assert len(list(folder.glob(".agent-exec-*.part"))) == 2
    goes_on.put(None)
    assert sorted(os.listdir(folder)) == [
        ".agent-exec-mine.part", "a.txt", "b.txt", "going.txt", "sub",
    ]  # fmt: skip
