"""Servers that are killed while agents' cells go to a notebook's file: the next one writes them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import psutil
from msgspec.structs import replace

from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.index import Index
from jupyter_agent_exec.journal.reader import HistoryReader
from jupyter_agent_exec.journal.verify import Outcome, verify_history
from jupyter_agent_exec.models import NotebookTarget, Placement
from jupyter_agent_exec.notebooks.finished_cells import LEFT_ALONE
from tests.journal.recorded import closed, opened, run
from tests.server_process import ServerProcess, server_process, with_its_own_pid

BURST = 200
TARGET = {"kind": "notebook", "path": "a.ipynb", "create": True}


@contextmanager
def killed(folder: Path, when: str, last: str, ids: list[str]) -> Iterator[ServerProcess]:
    """Start a server that is killed before or after the save of the last cell.

    The ids of the last two executions are added to `ids`.
    """
    with serving(folder, f"--KillingContents.{when}={last}") as server:
        yield server
        kernels = psutil.Process(server.process.pid).children(recursive=True)
        session = server.open(target=TARGET)
        ids += [server.run(session, source, wait=0).json()["id"] for source in ("0", last)]
        server.gone()
        for kernel in kernels:
            with_its_own_pid(kernel)


def serving(folder: Path, *options: str) -> Any:
    manager = "--ServerApp.contents_manager_class=killing_contents.KillingContents"
    return server_process(folder, manager, *options)


def burst(server: ServerProcess, session: str, count: int) -> list[str]:
    """Have the numbers from 1 run, and return the executions' ids."""
    ids: list[str] = []
    for start in range(1, count + 1, 100):
        steps = [{"source": str(n)} for n in range(start, min(start + 100, count + 1))]
        asked = {"steps": steps, "wait": 60}
        answered = server.ask("POST", f"sessions/{session}/steps", asked)
        ids += [execution["id"] for execution in answered.json()["executions"]]
    return ids


def until_recovered(server: ServerProcess, ids: Iterable[str]) -> None:
    """Wait until it is recorded what became of the cells that a dead server did not write."""
    for id in ids:
        while server.get(f"executions/{id}")["document"] is None:
            pass


def read(folder: Path) -> Any:
    notebook = nbformat.read(folder / "root" / "a.ipynb", nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    return notebook


def sources(folder: Path) -> list[str]:
    return [cell["source"] for cell in read(folder).cells]


def test_the_next_server_writes_cells_that_were_not_deleted(
    tmp_path: Path,
) -> None:
    wanted = [*map(str, range(1, BURST + 1)), "0", "0  # first"]
    ids: list[str] = []
    with killed(tmp_path, "before", "0  # first", ids) as server:
        ids += burst(server, server.open(target=TARGET), BURST)
    assert len(sources(tmp_path)) < len(wanted)

    with killed(tmp_path, "after", "0  # second", []) as server:
        until_recovered(server, ids)
        assert sources(tmp_path) == wanted
        cells = {cell["id"]: cell for cell in read(tmp_path).cells}
        for n, id in enumerate(ids[:BURST], 1):
            execution = server.get(f"executions/{id}")
            assert execution["document"]["status"] == "written"
            assert execution["status"] == cells[id]["metadata"]["agent_exec"]["status"] == "ok"
            assert [output["data"]["text/plain"] for output in cells[id]["outputs"]] == [str(n)]

    # Two more are in the file, though that may not be recorded, and a person deletes the last.
    path = tmp_path / "root" / "a.ipynb"
    notebook = read(tmp_path)
    assert sources(tmp_path) == [*wanted, "0", "0  # second"]
    kept, deleted = notebook.cells[-2], notebook.cells.pop()
    nbformat.write(notebook, path)
    os.utime(path, (time.time() + 60, time.time() + 60))

    # A server that was killed before it had written them does not keep the next one from it.
    history = History(tmp_path / "history", version="0", log=logging.getLogger())
    history.start()
    [unwritten] = history.unwritten_cells(str(path.parent)).values()
    assert deleted["id"] in unwritten.placements
    assert history.unwritten_cells(str(tmp_path / "elsewhere")) == {}
    history.stop()

    with serving(tmp_path) as server:
        until_recovered(server, [deleted["id"]])
        assert sources(tmp_path) == [*wanted, "0"]
        status = read(tmp_path).cells[-1]["metadata"]["agent_exec"]["status"]
        told = server.get(f"executions/{kept['id']}")
        assert (told["document"]["status"], told["status"]) == ("written", status)
        document = server.get(f"executions/{deleted['id']}")["document"]
        assert document["status"] == "not_written"
        assert "was saved since" in document["reason"]
    assert verify_history(tmp_path / "history").outcome is Outcome.WHOLE


def test_cells_are_written_in_their_order_though_the_clock_was_set_back(tmp_path: Path) -> None:
    notebook = tmp_path / "root" / "a.ipynb"
    notebook.parent.mkdir()
    there = nbformat.v4.new_code_cell("# 0")
    nbformat.write(nbformat.v4.new_notebook(cells=[there]), notebook)
    os.utime(notebook, (0, 0))
    after = Placement(after=there.id)
    folder, log = tmp_path / "history", logging.getLogger()
    history = History(folder, version="0", log=log, root_dir=str(notebook.parent))
    history.start()
    session = history.open_session(replace(opened(), target=NotebookTarget(path=notebook.name)))
    for seq, placement in enumerate(("end", "end", after, after), 1):
        at = f"2026-11-21T09:00:0{5 - seq}.000Z"
        run(session, seq, f"# {seq}", [], at=at, placement=placement)
    history.stop()
    with server_process(tmp_path) as server:
        found = server.get(f"sessions/{session.session_id}/executions")["executions"]
        assert len(found) == 4
        until_recovered(server, [each["id"] for each in found])
        assert sources(tmp_path) == ["# 0", "# 3", "# 4", "# 1", "# 2"]


def test_cells_that_are_missing_are_found_without_the_index(tmp_path: Path) -> None:
    folder, log = tmp_path / "history", logging.getLogger()
    for number in range(3):  # the second and the third end the session of the one before
        history = History(folder, version="0", log=log, root_dir=str(tmp_path))
        history.start()
        session = history.open_session(replace(opened(), target=NotebookTarget(path="a.ipynb")))
        ran = run(session, 1, f"# {number}", [], placement="end")
        if number == 2:
            session.close(closed())
        history.stop()
    reader = HistoryReader(folder, Index(folder, log))  # it is never started
    found = reader.unwritten_cells(str(tmp_path))
    told = [each for cells in found.values() for each in reader.unwritten_executions(cells)]
    assert [each.source for each in told] == ["# 0", "# 1"]
    assert ran not in [each.id for each in told]  # a server that closes a session writes its cells
    assert reader.unwritten_cells(str(tmp_path / "elsewhere")) == {}


def test_what_waited_for_approval_when_the_server_was_killed_leaves_nothing(tmp_path: Path) -> None:
    asks = {"notebook": "first", "kernel": "always"}
    with server_process(tmp_path, approval=asks) as server:
        session = server.open(target=TARGET)
        ids = [server.run(session, source, wait=0).json()["id"] for source in ("0", "1")]
        assert server.get("notebooks/a.ipynb/cells")["cells"] == []
        server.kill()
    with server_process(tmp_path, approval=asks) as server:
        until_recovered(server, ids)
        assert server.get("notebooks/a.ipynb/cells")["cells"] == []
        for id in ids:
            told = server.get(f"executions/{id}")
            assert (told["status"], told["document"]["status"]) == ("cancelled", "not_written")
            assert told["document"]["reason"] == LEFT_ALONE
    assert sources(tmp_path) == []
