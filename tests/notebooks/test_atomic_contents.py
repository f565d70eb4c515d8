"""Our saves of a file: the process is killed at each step, and the old or the new is there."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_server.services.contents.filemanager import AsyncFileContentsManager
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from nbformat.sign import MemorySignatureStore, NotebookNotary

from jupyter_agent_exec.notebooks.backends.contents import ContentsBackend
from jupyter_agent_exec.notebooks.changes import Expected, Position, PutCell, new_cell
from jupyter_agent_exec.types import CellId
from tests.notebooks.notebooks_made import as_written, persons_notebook

NEW = CellId("x_01JD0000000000000000000000")

# Saves a notebook in children of its own, each killed at the step that is named.
KILLED_IN_A_SAVE = """
import asyncio, json, os, signal, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import nbformat
from tests.notebooks import test_atomic_contents as test

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def write_half(notebook, file, **_):
    file.write(nbformat.writes(notebook)[:200])
    file.flush()
    die()

ways = {
    "half is written": (nbformat, "write", write_half),
    "it is not on the disk yet": (os, "fsync", die),
    "the file is not replaced yet": (Path, "replace", die),
    "never": (nbformat, "no_such_name", die),
}
found = {}
for name, (owner, attribute, put_in_place) in ways.items():
    folder = Path(sys.argv[2], name)
    folder.mkdir()
    test.make(folder)
    child = os.fork()
    if child == 0:
        setattr(owner, attribute, put_in_place)
        asyncio.run(test.save(test.managing(folder)))
        os._exit(0)
    found[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(found))
"""


def managing(folder: Path, manager: Any = AsyncLargeFileManager) -> Any:
    made = manager(root_dir=str(folder))
    made.notary = NotebookNotary(data_dir=str(folder.parent), store_factory=MemorySignatureStore)
    return made


def make(folder: Path) -> Path:
    path = folder / "a.ipynb"
    path.write_text(as_written(persons_notebook()))
    return path


async def save(contents: Any) -> None:
    ways = ContentsBackend(contents, logging.getLogger("test"))
    change = PutCell(cell=new_cell(NEW, "code", "2"), at=Position())
    await (await ways.find("a.ipynb")).apply([change], Expected())
    await ways.stop()


def has_new_cell(path: Path) -> bool:
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    return NEW in [cell["id"] for cell in notebook.cells]


def test_a_killed_save_leaves_the_old_notebook_or_the_new(
    tmp_path: Path,
) -> None:
    before = as_written(persons_notebook())
    command = [
        sys.executable,
        "-c",
        KILLED_IN_A_SAVE,
        str(Path(__file__).parents[2]),
        str(tmp_path),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    ended = json.loads(done.stdout)
    assert ended.pop("never") == 0
    assert has_new_cell(tmp_path / "never" / "a.ipynb")
    assert len(ended) == 3
    for name, code in ended.items():
        assert code == -signal.SIGKILL, name
        assert (tmp_path / name / "a.ipynb").read_text() == before, name


def linked(path: Path) -> None:
    path.rename(path.with_name("real.ipynb"))
    path.symlink_to("real.ipynb")


def hard_linked(path: Path) -> None:
    os.link(path, path.with_name("other.ipynb"))


def private(path: Path) -> None:
    path.chmod(0o640)


def in_a_folder_without_room(path: Path) -> None:
    path.parent.chmod(0o555)


@pytest.mark.parametrize("as_it_is", [linked, hard_linked, private, in_a_folder_without_room])
def test_a_save_changes_nothing_of_a_file_but_its_content(
    tmp_path: Path, as_it_is: Callable[[Path], None]
) -> None:
    folder = tmp_path / "root"
    (folder / ".ipynb_checkpoints").mkdir(parents=True)
    path = make(folder)
    as_it_is(path)
    before, names = (path.lstat(), path.stat()), sorted(folder.iterdir())
    try:
        asyncio.run(save(managing(folder)))
    finally:
        folder.chmod(0o755)
    assert has_new_cell(path)
    for old, new in zip(before, (path.lstat(), path.stat()), strict=True):
        assert (new.st_mode, new.st_uid, new.st_gid) == (old.st_mode, old.st_uid, old.st_gid)
        assert new.st_nlink == old.st_nlink
    assert sorted(folder.iterdir()) == names


async def test_a_contents_manager_that_writes_files_in_its_own_way_keeps_it(tmp_path: Path) -> None:
    class Own(AsyncFileContentsManager):
        written = 0

        def atomic_writing(self, *args: Any, **named: Any) -> Any:
            type(self).written += 1
            return super().atomic_writing(*args, **named)

    path = make(tmp_path)
    await save(managing(tmp_path, Own))
    assert Own.written == 1
    assert has_new_cell(path)


async def test_what_is_set_on_a_contents_manager_later_counts_for_our_saves(tmp_path: Path) -> None:
    path = make(tmp_path)
    contents = managing(tmp_path)
    ways = ContentsBackend(contents, logging.getLogger("test"))
    inode, seen = path.stat().st_ino, []
    contents.use_atomic_writing = False
    contents.register_pre_save_hook(lambda path, **_: seen.append(path))
    change = PutCell(cell=new_cell(NEW, "code", "2"), at=Position())
    await (await ways.find("a.ipynb")).apply([change], Expected())
    await ways.stop()
    assert (seen, path.stat().st_ino) == (["a.ipynb"], inode)
