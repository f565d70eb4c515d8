"""Notebooks that people have open together, on a real server with jupyter-collaboration."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator, Set
from contextlib import AbstractAsyncContextManager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.models import OutputChange
from jupyter_agent_exec.notebooks.backends.collaboration import (
    CollaborationBackend,
    CollaborationHandle,
)
from jupyter_agent_exec.notebooks.backends.contents import ContentsBackend
from jupyter_agent_exec.notebooks.backends.rooms import YDOC
from jupyter_agent_exec.notebooks.changes import (
    Expected,
    Moved,
    Position,
    PutCell,
    SetCell,
    SetOutputs,
    SetSource,
    Unreachable,
    order_of,
)
from jupyter_agent_exec.notebooks.documents import Notebooks
from jupyter_agent_exec.types import CellId
from jupyter_agent_exec.workarounds import room_settled
from tests.notebooks.collaborating import Page, opened, until
from tests.notebooks.notebooks_made import NEW_IDS, OTHER_MAKERS, File

# Rooms leave streams behind that nobody closes; what finds them must not be another test.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ANY = Expected()
LOG = logging.getLogger("test")
Open = Callable[[str], AbstractAsyncContextManager[Page]]


@pytest.fixture(autouse=True)
def swept() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def cleanup_delay() -> float:
    """Seconds for which a room without anybody in it stays."""
    return 60


@pytest.fixture
def save_delay() -> float:
    """Seconds after which a room saves."""
    return 0.05


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any],
    jp_root_dir: Path,
    tmp_path: Path,
    cleanup_delay: float,
    save_delay: float,
) -> dict[str, Any]:
    return {
        **jp_server_config,
        "ServerApp": {
            "jpserver_extensions": {YDOC: True, "jupyter_server_fileid": True},
            "allow_unauthenticated_access": False,
        },
        "SQLiteYStore": {"db_path": str(tmp_path / "updates.db")},
        "BaseFileIdManager": {
            "root_dir": str(jp_root_dir),
            "db_path": str(tmp_path / "file_ids.db"),
        },
        "YDocExtension": {
            "document_cleanup_delay": cleanup_delay,
            "document_save_delay": save_delay,
            "file_poll_interval": 600.0,
            "session_store_path": str(tmp_path / "sessions.json"),
        },
    }


async def no_ids(path: str, ids: Set[str]) -> Set[str]:
    return frozenset()


@pytest.fixture
def ways(jp_serverapp: Any) -> CollaborationBackend:
    return CollaborationBackend(
        jp_serverapp.extension_manager,
        lambda: jp_serverapp.web_app.settings.get("file_id_manager"),
        ContentsBackend(jp_serverapp.contents_manager, LOG).not_in_file,
        LOG,
    )


@pytest.fixture
def rooms(jp_serverapp: Any) -> dict[str, Any]:
    (extension,) = jp_serverapp.extension_manager.extension_apps[YDOC]
    rooms: dict[str, Any] = extension.ywebsocket_server.rooms
    return rooms


@pytest.fixture
def file(jp_root_dir: Path) -> Path:
    file = jp_root_dir / "a.ipynb"
    cell = {"cell_type": "code", "id": "mine", "source": "x = 1", "metadata": {}, "outputs": []}
    content = {
        "cells": [{**cell, "execution_count": None}],
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    file.write_text(json.dumps(content))
    return file


@pytest.fixture
def open_page(
    jp_fetch: Any, jp_ws_fetch: Any, jp_http_port: int, jp_base_url: str, jp_auth_header: Any
) -> Open:
    url = f"ws://127.0.0.1:{jp_http_port}{jp_base_url}"
    return lambda path: opened(jp_fetch, url, jp_auth_header, path)


@pytest.fixture
def whole_files(jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no file read while it is saved.

    Jupyter writes files in place, so that there is only a part of one meanwhile: a page that is
    opened at that moment is refused, whoever saves.
    """
    contents = jp_serverapp.contents_manager
    get, save = contents.get, contents.save
    lock = asyncio.Lock()

    @wraps(get)
    async def get_whole(path: str, content: bool = True, **asked: Any) -> Any:
        if not content:  # save asks for this, too
            return await get(path, content=False, **asked)
        async with lock:
            return await get(path, **asked)

    async def save_whole(model: Any, path: str = "") -> Any:
        async with lock:
            return await save(model, path)

    monkeypatch.setattr(contents, "get", get_whole)
    monkeypatch.setattr(contents, "save", save_whole)


def put(id: str, source: str = "") -> PutCell:
    cell = {"id": id, "cell_type": "code", "source": source, "metadata": {}, "outputs": []}
    return PutCell(cell={**cell, "execution_count": None}, at=Position())


def printed(id: str, text: str) -> SetOutputs:
    output = {"output_type": "stream", "name": "stdout", "text": text}
    changes = [OutputChange(index=0, truncate=True), OutputChange(index=0, output=output)]
    return SetOutputs(cell_id=CellId(id), changes=changes)


def sources_in(file: Path) -> list[str]:
    """Return the sources of a notebook's cells; none while it is just being written."""
    if not (text := file.read_text()):
        return []
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


async def reached(ways: CollaborationBackend) -> CollaborationHandle:
    way = await ways.find("a.ipynb")
    assert way is not None
    return way


@NEW_IDS
@pytest.mark.parametrize("notebook", OTHER_MAKERS.values(), ids=OTHER_MAKERS.keys())
async def test_a_live_document_names_its_cells_as_the_file_does(
    ways: CollaborationBackend,
    jp_serverapp: Any,
    open_page: Open,
    file: Path,
    notebook: dict[str, Any],
) -> None:
    File(file).text = json.dumps(notebook)
    contents = await ContentsBackend(jp_serverapp.contents_manager, LOG).find("a.ipynb")
    names = order_of((await contents.read()).cells)
    async with open_page("a.ipynb") as page:
        way = await reached(ways)
        assert order_of((await way.read()).cells) == names
        await way.apply([SetSource(cell_id=names[2], source="changed")], Expected())
        assert order_of((await way.read()).cells) == names
        await page.sees(lambda: page.sources[2] == "changed")
        await until(lambda: sources_in(file)[2:3] == ["changed"])
    assert order_of((await contents.read()).cells) == names


async def test_a_notebook_that_nobody_has_open_is_not_reached(
    ways: CollaborationBackend, rooms: dict[str, Any], file: Path
) -> None:
    assert await ways.find("a.ipynb") is None
    assert await ways.find("none.ipynb") is None
    assert ways.paths() == []
    assert rooms == {}


async def test_an_agents_cell_appears_in_the_pages_once_and_grows(
    ways: CollaborationBackend, file: Path, open_page: Open
) -> None:
    async with open_page("a.ipynb") as one, open_page("a.ipynb") as two:
        way = await reached(ways)
        assert (way.via, way.streams) == ("collaboration", True)
        told = SetCell(
            cell_id=CellId("x"),
            agent_exec={"seq": 1},
            execution_count=None,
            execution_state="running",
            trusted=True,
        )
        await way.apply([put("x", "go()"), told, printed("x", "one\n")], ANY)
        assert await ways.find("/a.ipynb") is way
        more = OutputChange(index=0, append="two\n")
        await way.apply([SetOutputs(cell_id=CellId("x"), changes=[more])], ANY)
        for page in (one, two):
            await page.sees(lambda page=page: len(page.cells) == 2)  # type: ignore[misc]
            await page.sees(
                lambda page=page: page.cells[1]["outputs"][0]["text"] == "one\ntwo\n"  # type: ignore[misc]
            )
            assert page.sources == ["x = 1", "go()"]
            assert page.cells[1]["metadata"] == {"agent_exec": {"seq": 1}, "trusted": True}
            assert page.cells[1]["execution_state"] == "running"
        await until(lambda: sources_in(file) == ["x = 1", "go()"])


async def test_what_a_person_types_meanwhile_is_there_too(
    ways: CollaborationBackend, file: Path, open_page: Open
) -> None:
    async with open_page("a.ipynb") as page:
        way = await reached(ways)
        source = page.document.ycells[0]["source"]
        source += " + 1"
        await way.apply([put("x", "go()")], ANY)
        source += " + 2"
        await page.sees(lambda: page.sources == ["x = 1 + 1 + 2", "go()"])
        await until(lambda: sources_in(file) == ["x = 1 + 1 + 2", "go()"])
        notebook = await way.read()
        assert [cell["source"] for cell in notebook.cells] == ["x = 1 + 1 + 2", "go()"]
        with pytest.raises(Moved):
            await way.apply([put("y")], Expected(cells={CellId("mine"): ("code", "x = 1")}))


@pytest.mark.parametrize("save_delay", [600.0])
async def test_what_is_done_while_nobody_looks_is_saved_at_once(
    ways: CollaborationBackend, rooms: dict[str, Any], file: Path, open_page: Open
) -> None:
    async with open_page("a.ipynb"):
        way = await reached(ways)
        await way.apply([put("x", "before")], ANY)
    (room,) = rooms.values()
    await until(lambda: not room.clients)
    assert not way.streams
    await way.apply([put("y", "after")], ANY)
    assert sources_in(file) == ["x = 1", "before", "after"]


async def test_a_live_document_whose_file_is_gone_is_still_reached(
    ways: CollaborationBackend, file: Path, open_page: Open
) -> None:
    async with open_page("a.ipynb") as page:
        await asyncio.to_thread(file.unlink)
        way = await reached(ways)
        await way.apply([put("x", "after")], ANY)
        await page.sees(lambda: page.sources == ["x = 1", "after"])


async def put_in(notebooks: Notebooks, n: int) -> str:
    """Put a cell into the notebook; return how it was reached."""
    handle = await notebooks.revise("a.ipynb", lambda *_: ([put(f"n{n}", str(n))], ANY))
    return handle.via


@pytest.mark.parametrize("cleanup_delay", [0.3])
async def test_a_room_that_is_closed_is_not_reached_and_nothing_is_lost(
    ways: CollaborationBackend,
    rooms: dict[str, Any],
    file: Path,
    open_page: Open,
    jp_serverapp: Any,
) -> None:
    stored = ContentsBackend(jp_serverapp.contents_manager, LOG)
    notebooks = Notebooks([ways, stored])
    async with open_page("a.ipynb"):
        way = await reached(ways)
        assert await put_in(notebooks, 0) == "collaboration"
    (room,) = rooms.values()
    await until(lambda: not room.clients)
    written, via = 0, "collaboration"
    while via == "collaboration":
        written += 1
        via = await put_in(notebooks, written)
    assert rooms == {}
    with pytest.raises(Unreachable):
        await way.apply([put("late")], ANY)
    with pytest.raises(Unreachable):
        await way.read()
    everything = ["x = 1", *map(str, range(written + 1))]
    assert sources_in(file) == everything
    async with open_page("a.ipynb") as page:
        assert page.sources == everything
        assert await reached(ways) is not way
    await stored.stop()


async def test_a_notebook_that_is_opened_while_an_agent_works_has_each_cell_once(
    ways: CollaborationBackend, file: Path, open_page: Open, whole_files: None, jp_serverapp: Any
) -> None:
    stored = ContentsBackend(jp_serverapp.contents_manager, LOG)
    notebooks = Notebooks([ways, stored])
    vias: list[str] = []

    async def work() -> None:
        for n in range(1000):
            vias.append(await put_in(notebooks, n))
            if vias.count("collaboration") == 5:
                return

    working = asyncio.create_task(work())
    await until(lambda: len(vias) > 2)
    async with open_page("a.ipynb") as page:
        await working
        everything = ["x = 1", *map(str, range(len(vias)))]
        await page.sees(lambda: page.sources == everything)
        await until(lambda: sources_in(file) == everything)
    assert vias[0] == "contents"
    assert vias == sorted(vias, reverse=True)
    await stored.stop()


async def test_what_was_written_to_the_file_before_is_in_the_document(
    ways: CollaborationBackend, file: Path, open_page: Open, jp_serverapp: Any
) -> None:
    stored = ContentsBackend(jp_serverapp.contents_manager, LOG)
    async with open_page("a.ipynb") as page:
        await (await stored.find("a.ipynb")).apply([put("x", "stored")], ANY)
        way = await reached(ways)
        await way.apply([put("x", "again"), printed("x", "done")], ANY)
        await page.sees(lambda: page.sources == ["x = 1", "stored"])
        await page.sees(lambda: len(page.cells[1]["outputs"]) == 1)
        await until(lambda: "done" in file.read_text())
    await stored.stop()


async def test_a_document_that_is_made_anew_is_left_alone_until_that_is_done(
    ways: CollaborationBackend, rooms: dict[str, Any], file: Path, open_page: Open
) -> None:
    async with open_page("a.ipynb"):
        way = await reached(ways)
        (room,) = rooms.values()
        async with room._update_lock:
            applying = asyncio.create_task(way.apply([put("x")], ANY))
            reading = asyncio.create_task(way.read())
            done, _ = await asyncio.wait({applying, reading}, timeout=0.05)
            assert done == set()
            assert len(room._document.ycells) == 1
        await applying
        assert len((await reading).cells) in (1, 2)
        assert len(room._document.ycells) == 2


def write_cells(file: Path, count: int) -> None:
    """Write a notebook of many cells, as another program would."""
    notebook = json.loads(file.read_text())
    (cell,) = notebook["cells"]
    notebook["cells"] = [{**cell, "id": f"cell-{n}", "source": f"x = {n}"} for n in range(count)]
    file.write_text(json.dumps(notebook))


async def test_a_room_is_settled_when_it_has_read_the_whole_file(
    ways: CollaborationBackend, rooms: dict[str, Any], file: Path, open_page: Open
) -> None:
    async with open_page("a.ipynb"):
        await reached(ways)
        (room,) = rooms.values()
        write_cells(file, 60)
        reading = asyncio.create_task(room._file.maybe_notify())
        async with asyncio.timeout(20):
            while not room._update_lock.locked():
                await asyncio.sleep(0)
            assert len(room._document.ycells) < 60
            await room_settled(room)
        assert len(room._document.ycells) == 60
        await reading


async def test_live_documents_are_listed_where_they_are_now(
    ways: CollaborationBackend, file: Path, open_page: Open, jp_fetch: Any, jp_root_dir: Path
) -> None:
    async with open_page("a.ipynb"):
        assert ways.paths() == ["a.ipynb"]
        way = await reached(ways)
        body = json.dumps({"path": "b.ipynb"})
        await jp_fetch("api/contents", "a.ipynb", method="PATCH", body=body)
        assert ways.paths() == ["b.ipynb"]
        assert await ways.find("b.ipynb") is way
        assert await ways.find("a.ipynb") is None
        await way.apply([SetSource(cell_id=CellId("mine"), source="moved")], ANY)
        await until(lambda: sources_in(jp_root_dir / "b.ipynb") == ["moved"])


class Extensions:
    """Has collaboration loaded, or not."""

    def __init__(self, **loaded: Any) -> None:
        self.extension_apps = {name: {extension} for name, extension in loaded.items()}


async def test_without_collaboration_there_is_no_such_way() -> None:
    ways = CollaborationBackend(Extensions(), lambda: None, no_ids, LOG)
    assert await ways.find("a.ipynb") is None
    assert ways.paths() == []


async def test_a_version_that_is_too_old_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "jupyter_server_ydoc-1.9.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: x\nVersion: 1.9.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    ways = CollaborationBackend(Extensions(jupyter_server_ydoc=object()), lambda: None, no_ids, LOG)
    for _ in range(2):
        assert await ways.find("a.ipynb") is None
    (record,) = caplog.records
    assert "jupyter_server_ydoc 1.9.0 is too old" in record.getMessage()


def test_nothing_of_collaboration_is_imported_before_it_is_needed() -> None:
    program = """
import sys
sys.modules.update(dict.fromkeys(["pycrdt", "jupyter_ydoc", "jupyter_server_ydoc"]))
import jupyter_agent_exec.app, jupyter_agent_exec.notebooks.backends.collaboration
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
