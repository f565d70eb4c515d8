"""An interpreter: a session with a kernel of its own, and what its runs are answered with."""

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
    Picture,
    Raised,
    Shown,
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
    """Where code of one client runs."""

    place: KernelSession
    """Its session."""
    client: str | None
    """Who may use it; None for all."""
    folder: Path
    """Where code runs and figures are kept."""
    timeout: float | None
    """Seconds that code may run; its start may take longer."""

    def serves(self, client: str | None) -> bool:
        """Whether a client may use it; None is the program itself, and may use all."""
        return client is None or self.client in (None, client)

    async def status(self) -> Literal["running", "failed"]:
        """Return, in Pantheon's words, whether its variables are there; the next run starts it."""
        try:
            return "failed" if await self.place.is_dead() else "running"
        except (AgentExecError, ClientError):
            return "failed"

    async def run(self, code: str, variable: str | None) -> dict[str, Any]:
        """Run code; return Pantheon's answer.

        Parameters
        ----------
        code
            What to run.
        variable
            Whose value to return; None for none.

        Raises
        ------
        PythonInterpreterError
            The code raised, or the interpreter could not be started.
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
    """What an execution has come to, in the pieces that answers are made of."""

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
            elif isinstance(piece, Raised):
                read.traceback = piece.plain_traceback
            else:
                read._show(piece)
        read._note("stdout", omitted_note(result))
        read._note("stderr", end_note(result))
        return read

    def failure(self, reason: str | None, figures: list[str]) -> str:
        """Say what was printed before the exception, then the exception."""
        parts = [reason, self.stdout, self.stderr, *figures, self.traceback]
        return "\n".join(part.rstrip("\n") for part in parts if part)

    def _show(self, shown: Shown) -> None:
        picture = shown.picture
        # A figure that is an expression is shown once more when the code has ended.
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
    """Write figures into their folder; give their paths, relative to the interpreter's folder."""
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
"""What an interpreter starts with when nothing else is asked for: code finds ``matplotlib``,
``plt``, ``os`` and ``uuid``, may call `asyncio.run`, and its figures are shown whether it selects
Agg or not."""

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
    """Return what starts an interpreter of its own.

    Every expression of the top level is displayed, with what `print` would print as its text.

    Parameters
    ----------
    folder
        Where to go; None to stay where the kernel starts.
    env
        Environment variables.
    init_code
        What comes last.
    """
    lines = [_ECHO, "import os as _os", f"_os.environ.update({dict(env)!r})"]
    if folder is not None:
        lines.append(f"_os.chdir({folder!r})")
    lines += ["del _os", init_code or ""]
    return "\n".join(lines)
