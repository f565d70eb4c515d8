"""Notebooks for tests, as Jupyter writes them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import nbformat
from nbformat import v4

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
        cells=[dict(cell) for cell in notebook["cells"]],
        metadata=notebook["metadata"],
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
