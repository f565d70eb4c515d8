"""An interpreter: a session with its own kernel, and Pantheon's answers to its runs."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from ...client import ClientError, Result, Step
from ...errors import AgentExecError, InitFailed
from ..kernel_session import KernelSession
from ..objects import expressions, returned
from ..requirements import needed
from ..result_pieces import (
    DisplayedObject,
    Picture,
    RaisedException,
    Stream,
    end_note,
    omitted_note,
    pieces,
    state_note,
)

with needed("pantheon-agents~=0.6.0"):
    from pantheon.toolsets.python.python_interpreter import PythonInterpreterError

__all__ = ["Interpreter", "PythonInterpreterError"]

_FIGURES: Final = ".matplotlib_figs"


@dataclass(kw_only=True, slots=True)
class Interpreter:
    """An interpreter that runs the code of one client."""

    place: KernelSession
    """The interpreter's session."""
    client: str | None
    """The client that may use it; None for all clients."""
    folder: Path
    """Folder in which code runs and figures are saved."""
    timeout: float | None
    """Seconds that code may run. The start of the interpreter may take longer."""

    def serves(self, client: str | None) -> bool:
        """Return whether a client may use it. None stands for the program, which may use all."""
        return client is None or self.client in (None, client)

    async def status(self) -> Literal["running", "failed"]:
        """Return Pantheon's status. After ``failed``, the next run starts the kernel again."""
        try:
            return "failed" if await self.place.is_dead() else "running"
        except (AgentExecError, ClientError):
            return "failed"

    async def run(self, code: str, variable: str | None) -> dict[str, Any]:
        """Run code; return Pantheon's answer.

        Parameters
        ----------
        code
            The code.
        variable
            Name of a variable whose value to return; None for none.

        Raises
        ------
        PythonInterpreterError
            The code raised an exception, or the interpreter could not be started.
        """
        values = {} if variable is None else expressions(variable)
        step = Step(source=code, values=values, timeout=self.timeout)
        try:
            (result,) = await self.place.run_async([step])
        except InitFailed as error:
            raise PythonInterpreterError(str(error)) from error
        reason = state_note(result)
        read = _Read.of(result)
        figures = list(_saved(read.figures, self.folder))
        if result.status == "error":
            raise PythonInterpreterError(read.failure(reason, figures))
        value, is_cut = returned(result.values)
        answer = {
            "success": result.ok,
            "result": value,
            "stdout": read.stdout,
            "stderr": read.stderr,
        }
        if is_cut:
            answer["truncated"] = True
        if reason is not None:
            answer |= {"interpreter_restarted": True, "restart_reason": reason}
        if result.status == "kernel_died":
            answer["interpreter_crashed"] = True
        if figures:
            answer |= {
                "fig_storage_path": figures[-1],
                "fig_storage_paths": figures,
                "base64_uri": [_data_uri(figure) for figure in read.figures],
                "hidden_to_model": ["base64_uri"],
            }
        return answer


@dataclass(kw_only=True, slots=True)
class _Read:
    """The outputs of an execution, in the parts of Pantheon's answer."""

    stdout: str = ""
    stderr: str = ""
    traceback: str = ""
    figures: list[Picture] = field(default_factory=list)
    echoed: list[Picture] = field(default_factory=list)
    """Figures that are values of expressions."""

    @classmethod
    def of(cls, result: Result) -> _Read:
        read = cls()
        for piece in pieces(result):
            if isinstance(piece, Stream):
                read._write(piece.name, piece.text)
            elif isinstance(piece, RaisedException):
                read.traceback = piece.plain_traceback
            else:
                read._show(piece)
        read._note("stdout", omitted_note(result))
        read._note("stderr", end_note(result))
        return read

    def failure(self, reason: str | None, figures: list[str]) -> str:
        """Return the text printed before an exception, then the exception."""
        parts = [reason, self.stdout, self.stderr, *figures, self.traceback]
        return "\n".join(part.rstrip("\n") for part in parts if part)

    def _show(self, shown: DisplayedObject) -> None:
        picture = shown.picture
        # A figure that is an expression's value is displayed again when the code has ended.
        if picture is not None and (shown.is_result or picture not in self.echoed):
            self.figures.append(picture)
            if shown.is_result:
                self.echoed.append(picture)
        if shown.text is not None and (shown.is_result or picture is None):
            self._write("stdout", shown.text + "\n")

    def _note(self, name: str, note: str | None) -> None:
        if note is not None:
            before = getattr(self, name)
            self._write(name, ("" if not before or before.endswith("\n") else "\n") + note + "\n")

    def _write(self, name: str, text: str) -> None:
        setattr(self, name, getattr(self, name) + text)


def _saved(figures: list[Picture], folder: Path) -> Iterator[str]:
    """Save figures, and yield their paths relative to the interpreter's folder."""
    for figure in figures:
        (folder / _FIGURES).mkdir(parents=True, exist_ok=True)
        yield f"{_FIGURES}/{figure.save(folder / _FIGURES).name}"


def _data_uri(figure: Picture) -> str:
    return f"data:{figure.mimetype};base64,{base64.b64encode(figure.data).decode()}"


DEFAULT_INIT_CODE: Final = """\
try:
    try:
        import nest_asyncio2 as _nest_asyncio
    except ImportError:
        import nest_asyncio as _nest_asyncio
    _nest_asyncio.apply()
except ImportError:
    pass  # asyncio.run() then fails, as the kernel's own loop runs

import os
import uuid

def _plotting(info):
    # It takes most of a second, so only code that names it waits for it.
    global matplotlib, plt
    if "matplotlib" not in info.raw_cell and "plt" not in info.raw_cell:
        return
    get_ipython().events.unregister("pre_run_cell", _plotting)
    try:
        import matplotlib
        import matplotlib.pyplot as plt
    except ImportError:
        return

    def use(backend, *, force=True, use=matplotlib.use):
        # Agg is chosen by code that expects no display; here it would hide its figures.
        if str(backend).lower() != "agg":
            use(backend, force=force)

    matplotlib.use = use

get_ipython().events.register("pre_run_cell", _plotting)
"""
"""The default start code of an interpreter. It defines ``matplotlib``, ``plt``, ``os`` and
``uuid``, makes `asyncio.run` work, and shows figures even if code selects the Agg backend."""

_ECHO: Final = """\
def _echo():
    import ast
    import sys
    from IPython.core.formatters import PlainTextFormatter

    shell = get_ipython()

    def shown(node):
        if not isinstance(node, ast.Expr):
            return node
        call = ast.parse("__import__('sys').displayhook()", mode="eval").body
        call.args = [node.value]
        call = ast.copy_location(ast.Expr(ast.copy_location(call, node)), node)
        return ast.fix_missing_locations(call)

    def run_ast_nodes(nodes, *args, run=shell.run_ast_nodes, **kwargs):
        return run([shown(node) for node in nodes], *args, **kwargs)

    class Printed(PlainTextFormatter):
        def __call__(self, value):
            return str(value)

    # IPython's own "all" echoes what is within loops too, and a transformer what %timeit repeats.
    shell.ast_node_interactivity = "none"
    shell.run_ast_nodes = run_ast_nodes
    shell.displayhook.quiet = lambda: False
    # exit() leaves the code, as in any program of Python, and not the kernel.
    shell.ask_exit = sys.exit
    shell.display_formatter.formatters["text/plain"] = Printed(parent=shell.display_formatter)

_echo()
del _echo
"""


def init_source(folder: str | None, env: Mapping[str, str], init_code: str | None) -> str:
    """Return the start code of an interpreter with a scratch kernel.

    It makes the kernel display every top-level expression, with the text that `print` would print.

    Parameters
    ----------
    folder
        Folder to change to; None to stay in the kernel's folder.
    env
        Environment variables to set.
    init_code
        Code to run last.
    """
    lines = [_ECHO, "import os as _os", f"_os.environ.update({dict(env)!r})"]
    if folder is not None:
        lines.append(f"_os.chdir({folder!r})")
    lines += ["del _os", init_code or ""]
    return "\n".join(lines)
