"""Turns the results of code blocks into AutoGen's `IPythonCodeResult`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...client import Result
from ...client.result import joined
from ...text.terminal import clean
from ..requirements import needed
from ..result_pieces import (
    DisplayedObject,
    RaisedException,
    Stream,
    changed_note,
    end_note,
    omitted_note,
    pieces,
    quiet,
    save_html,
    state_note,
)

with needed("autogen-agentchat>=0.2.36,<0.3"):
    from autogen import ConversableAgent
    from autogen.coding import CodeExecutorFactory as FrameworkFactory
    from autogen.coding import MarkdownCodeExtractor
    from autogen.coding.base import CodeBlock, CodeExecutor, CodeExtractor, IPythonCodeResult
    from autogen.coding.jupyter import (
        DockerJupyterServer,
        JupyterClient,
        JupyterConnectable,
        JupyterConnectionInfo,
    )

_WRITTEN: Final = ("text/markdown", "text/latex")
_SHELLS: Final = ("bash", "shell", "sh", "pwsh", "powershell", "ps1")


def source_of(block: CodeBlock) -> str:
    """Return the code to run for a block. `pip install` is made quiet."""
    return quiet(block.code, is_shell=block.language.lower() in _SHELLS)


def code_result(results: Iterable[Result], output_dir: Path) -> IPythonCodeResult:
    """Return the result of blocks, up to the first that failed.

    Saves images and HTML in `output_dir`.
    """
    report = _Report(output_dir)
    exit_code = 0
    for result in results:
        report.add(result)
        if not result.ok:
            exit_code = 1
            break
    return IPythonCodeResult(
        exit_code=exit_code, output="\n".join(report.texts), output_files=report.files
    )


class _Report:
    def __init__(self, output_dir: Path) -> None:
        self.texts: list[str] = []
        self.files: list[str] = []
        self._output_dir = output_dir.absolute()

    def add(self, result: Result) -> None:
        self.texts += filter(None, [state_note(result), changed_note(result)])
        for piece in pieces(result):
            if isinstance(piece, Stream):
                self.texts.append(clean(piece.text))
            elif isinstance(piece, DisplayedObject):
                self._add_shown(piece)
            else:
                self.texts.append(_raised(piece, result))
        self.texts += filter(None, [omitted_note(result), _end(result)])

    def _add_shown(self, shown: DisplayedObject) -> None:
        if shown.text is not None:
            self.texts.append(clean(shown.text))
        self.texts += _written(shown.data)
        if shown.picture is not None:
            self._save("Image", partial(shown.picture.save, self._output_dir))
        if shown.html is not None:
            self._save("HTML", partial(save_html, shown.html, self._output_dir))

    def _save(self, what: str, save: Callable[[], Path]) -> None:
        try:
            path = save()
        except OSError as error:  # the code has run: report the other outputs
            self.texts.append(f"{what} data could not be saved: {error}")
            return
        self.texts.append(f"{what} data saved to {path}")
        self.files.append(str(path))


def _raised(raised: RaisedException, result: Result) -> str:
    if result.status != "error":  # the exception that stopped the code; `_end` adds why
        return raised.plain_traceback
    return f"ERROR: {raised.ename}: {raised.evalue}\n{raised.plain_traceback}"


def _written(data: dict[str, Any]) -> Iterator[str]:
    """Yield Markdown, LaTeX and JSON of a mimebundle. A model cannot read other types."""
    for mimetype in _WRITTEN:
        if mimetype in data:
            yield joined(data[mimetype])
    if "application/json" in data:
        yield json.dumps(data["application/json"])


def _end(result: Result) -> str | None:
    why = end_note(result)
    if why is None:
        return None
    if result.status == "timed_out":
        source = result.execution.source
        return f"ERROR: Timeout waiting for output from code block: {source}\n{why}"
    return f"ERROR: {why}"


__all__ = [
    "CodeBlock",
    "CodeExecutor",
    "CodeExtractor",
    "ConversableAgent",
    "DockerJupyterServer",
    "FrameworkFactory",
    "IPythonCodeResult",
    "JupyterClient",
    "JupyterConnectable",
    "JupyterConnectionInfo",
    "MarkdownCodeExtractor",
]
