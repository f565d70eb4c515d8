"""What an agent reads of cells that no file could hold."""

from __future__ import annotations

import msgspec

from jupyter_agent_exec.notebooks.changes import Notebook
from jupyter_agent_exec.notebooks.manager import CellsQuery, told
from tests.notebooks.notebooks_made import code


def test_a_lone_surrogate_that_somebody_typed_does_not_break_the_answer() -> None:
    stream = {"output_type": "stream", "name": "stdout", "text": "\ud800\n"}
    cell = {**code("a", "'\ud800'"), "outputs": [stream]}
    notebook = Notebook(cells=[cell], nbformat_minor=5)
    read = told("a.ipynb", "tab", notebook, CellsQuery(), lambda id, offset: f"{id} from {offset}")
    assert [cell.source for cell in read.cells] == ["'?'"]
    msgspec.json.encode(read)
