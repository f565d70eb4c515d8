"""An interpreter: a session with a kernel of its own, and what its runs are answered with."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from ...client import ClientError, Result, Step
from ...errors import AgentExecError, InitFailed
from ..kernel_session import KernelSession
from ..objects import expressions, returned
from ..outputs import (
    Picture,
    Raised,
    Shown,
    Stream,
    end_note,
    omitted_note,
    pieces,
    state_note,
)
from ..requirements import needed

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
