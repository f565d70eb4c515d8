"""Notebooks for tests, as Jupyter writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, zip_longest
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4

from jupyter_agent_exec.notebooks.cell_names import with_names
from jupyter_agent_exec.notebooks.changes import Notebook
from jupyter_agent_exec.types import CellId

PLOT = "<script>window.plotted = true</script>"


def code(id: str, source: str = "1 + 1", outputs: list[Any] | None = None) -> Any:
    return v4.new_code_cell(source, id=id, outputs=outputs or [], execution_count=None)


def markdown(id: str, source: str = "# Title") -> Any:
    return v4.new_markdown_cell(source, id=id)


def result(**data: str) -> Any:
    bundle = {key.replace("_", "/", 1): value for key, value in data.items()}
    return v4.new_output("execute_result", data=bundle, execution_count=1)


def persons_notebook(*cells: Any, minor: int = 5) -> Any:
    """A notebook with all sorts of things in it that are nobody else's business."""
    made = v4.new_notebook(
        cells=list(cells)
        or [
            markdown("title", "# Zürich\n\n![](attachment:a.png)"),
            code("load", "import pandas\ndf = 1", [v4.new_output("stream", text="a\nb\n")]),
            code("plot", "plot()", [result(text_html=PLOT, text_plain="<Plot>")]),
            v4.new_raw_cell("raw", id="raw"),
        ],
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "z_tool": {"b": [1, 2.5, None], "a": "ü"},
        },
    )
    made.cells[0].metadata["tags"] = ["keep"]
    made.nbformat_minor = minor
    if minor < 5:
        for cell in made.cells:
            cell.pop("id", None)
    return made


def as_written(notebook: Any) -> str:
    """Return a notebook as Jupyter writes it to a file."""
    return nbformat.writes(nbformat.from_dict(notebook), nbformat.NO_CONVERT) + "\n"


def as_read(notebook: Any) -> Notebook:
    return Notebook(
        cells=with_names([dict(cell) for cell in notebook["cells"]], notebook["nbformat_minor"]),
        nbformat_minor=notebook["nbformat_minor"],
    )


def numbered() -> Callable[[], CellId]:
    ids = count(1)
    return lambda: CellId(f"new-{next(ids)}")


class File:
    """A file of a test: small, and nobody waits for the loop meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def text(self) -> str:
        return self._path.read_text(encoding="utf-8")

    @text.setter
    def text(self, text: str) -> None:
        self._path.write_text(text, encoding="utf-8")

    @property
    def exists(self) -> bool:
        return self._path.exists()

    def remove(self) -> None:
        self._path.unlink()


CELLS = [
    ("markdown", "# Title"),
    ("code", "x = 1"),
    ("code", "x = 1"),
    ("raw", "raw"),
    ("code", ""),
    ("code", ""),
]
"""Types and sources of the cells of `without_ids`: two pairs of them are equal."""


def without_ids(minor: int = 5, ids: Sequence[str | None] = ()) -> dict[str, Any]:
    """A notebook as tools write it that do not know of cell ids, or write wrong ones.

    Parameters
    ----------
    minor
        Its minor version of nbformat 4.
    ids
        Ids of its first cells; None for none.
    """
    cells = []
    for (cell_type, source), id in zip_longest(CELLS, ids):
        cell = {"cell_type": cell_type, "metadata": {"tags": ["keep"]}, "source": [source]}
        if cell_type == "code":
            cell |= {"execution_count": 3, "outputs": [v4.new_output("stream", text=["1\n", "2"])]}
        cells.append(cell if id is None else {**cell, "id": id})
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}


VERSION_3 = {
    "metadata": {"name": "old"},
    "nbformat": 3,
    "nbformat_minor": 0,
    "worksheets": [
        {
            "cells": [
                {"cell_type": "heading", "level": 1, "source": "Title", "metadata": {}},
                *(
                    {"cell_type": "code", "input": "x = 1", "outputs": [], "metadata": {}}
                    for _ in range(2)
                ),
                {"cell_type": "raw", "source": "raw", "metadata": {}},
            ]
        }
    ],
}

OTHER_MAKERS = {
    "nbformat 4.0": without_ids(0),
    "nbformat 4.4": without_ids(4),
    "no ids": without_ids(),
    "some ids": without_ids(ids=["good", None, "also-good"]),
    "an id twice": without_ids(ids=["a", "b", "b", "a"]),
    "an empty id": without_ids(ids=["", "b", ""]),
    "an id with spaces": without_ids(ids=["my cell", "b"]),
    "an id that is too long": without_ids(ids=["x" * 65, "b"]),
}
"""Notebooks in which not every cell has an id of its own, by what is wrong."""

NEW_IDS = pytest.mark.filterwarnings(
    "ignore::nbformat.warnings.MissingIDFieldWarning",
    "ignore::nbformat.warnings.DuplicateCellId",
)
"""Jupyter warns at each read of such a notebook that it makes up ids."""
