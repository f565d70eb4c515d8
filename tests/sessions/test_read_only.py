"""Notebooks that the server may read and not write: what is asked runs, and why there is no cell.

Nothing is read-only for root; its server goes without that right.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.server_process import ServerProcess, server_process

NOTEBOOK = "kept/sales.ipynb"

WITHOUT_ROOTS_RIGHT = ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 else ()


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "root" / NOTEBOOK
    file.parent.mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("rows = 1")]), file)
    yield file
    file.parent.chmod(0o755)


@pytest.fixture
def server(tmp_path: Path, notebook: Path) -> Iterator[ServerProcess]:
    if WITHOUT_ROOTS_RIGHT and shutil.which(WITHOUT_ROOTS_RIGHT[0]) is None:
        pytest.skip("needs setpriv to go without root's right to write everywhere")
    with server_process(tmp_path, wrapper=WITHOUT_ROOTS_RIGHT) as server:
        yield server


def placed(server: ServerProcess, execution_id: str) -> dict[str, Any]:
    """Look until it is known what became of an execution's cell."""
    while (looked := server.get(f"executions/{execution_id}"))["document"]["status"] == "writing":
        pass
    return dict(looked)


def test_what_is_asked_runs_and_says_why_it_has_no_cell(
    server: ServerProcess, notebook: Path
) -> None:
    session = server.open(target={"kind": "notebook", "path": NOTEBOOK})
    notebook.chmod(0o444)
    before = notebook.read_bytes()
    done = placed(server, server.run(session, "6 * 7").json()["id"])
    assert (done["status"], done["text"].strip()) == ("ok", "42")
    assert done["document"]["status"] == "not_written", done["document"]
    assert NOTEBOOK in done["document"]["reason"]
    assert notebook.read_bytes() == before
    notebook.chmod(0o644)
    later = placed(server, server.run(session, "7 * 7").json()["id"])
    assert later["document"]["status"] == "written", later["document"]
    assert nbformat.read(notebook, as_version=4).cells[-1].source == "7 * 7"


def test_no_notebook_is_made_in_a_folder_that_is_read_only(
    server: ServerProcess, notebook: Path
) -> None:
    notebook.parent.chmod(0o555)
    target = {"kind": "notebook", "path": "kept/new.ipynb", "create": True}
    refused = server.ask("POST", "sessions", {"agent": {"name": "tester"}, "target": target})
    assert (refused.status_code, refused.json()["code"]) == (404, "notebook_not_found")
    assert refused.json()["detail"]["field"] == "target.path"
    assert [file.name for file in notebook.parent.iterdir()] == [notebook.name]


def test_the_cells_of_a_notebook_that_is_read_only_are_not_edited(
    server: ServerProcess, notebook: Path
) -> None:
    session = server.open(target={"kind": "notebook", "path": NOTEBOOK})
    notebook.chmod(0o444)
    edits = [{"op": "insert", "cell_type": "code", "source": "x"}]
    refused = server.ask(
        "PATCH", f"notebooks/{NOTEBOOK}/cells", {"session_id": session, "edits": edits}
    )
    assert refused.json()["code"] == "document_unwritable", refused.text
    assert len(server.get(f"notebooks/{NOTEBOOK}/cells")["cells"]) == 1
