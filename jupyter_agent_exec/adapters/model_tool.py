"""What frameworks whose agents call a tool have in common: the tool in words, and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..client import ClientError, Result
from ..errors import AgentExecError
from .kernel_session import KernelSession, SessionOptions, SessionTarget
from .result_pieces import Picture, Shown, omitted_note, pieces

NAME: Final = "run_python"
"""Of the tool."""

DESCRIPTION: Final = (
    "Run Python code in a Jupyter kernel that keeps its state: variables, imports and functions "
    "stay from one call to the next. The answer is what the code printed, the value of its last "
    "expression, the plots that it showed, and the traceback if it raised. Print what you want to "
    "see, in small steps."
)
"""What a model reads of the tool."""

CODE: Final = "Python code, as in a notebook's cell."
"""What a model reads of the tool's only argument."""

MAX_PICTURE_BYTES: Final = 3_500_000
"""Of an image that a model is shown: with base64 it stays below what APIs of models take."""

_BEGINNINGS: Final = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""How images begin that APIs of models take."""

REFUSALS: Final = (AgentExecError, ClientError)
"""Nothing was run, or nobody knows what became of it: their message says which, and what to do."""


def workplace(
    framework: str,
    *,
    url: str | None,
    token: str | None,
    notebook: str | None,
    kernel_id: str | None,
    agent: str | None,
    timeout: float | None,
) -> KernelSession:
    """Return where a tool's code runs.

    Parameters
    ----------
    framework
        The agent's name in the history when `agent` is None.
    """
    return KernelSession(
        SessionTarget(url=url, token=token, notebook=notebook, kernel_id=kernel_id),
        SessionOptions(agent=agent or framework, timeout=timeout),
    )


def only(results: Sequence[Result]) -> Result:
    """Return what came of the one source that was run."""
    (result,) = results
    return result


def told(result: Result) -> str:
    """Return what a model reads: outputs and errors, how it ended, whether the state is gone."""
    notes = [note for note in (omitted_note(result),) if note is not None]
    text = "\n".join([*([result.text.rstrip("\n")] if result.text else []), *notes])
    return text or "The code ran; it put nothing out."


def pictures(result: Result) -> list[Picture]:
    """Return the images that a model can look at; of others, the text says that they are there."""
    shown = [piece.picture for piece in pieces(result) if isinstance(piece, Shown)]
    return [picture for picture in shown if picture is not None and _is_for_models(picture)]


def _is_for_models(picture: Picture) -> bool:
    # Code may call anything an image; APIs of models refuse what is none, and the agent ends.
    beginning = _BEGINNINGS.get(picture.mimetype)
    is_known = beginning is not None and picture.data.startswith(beginning)
    return is_known and len(picture.data) <= MAX_PICTURE_BYTES


def kept(result: Result) -> dict[str, Any]:
    """Return, as JSON, what the program may want beside the text: the nbformat cell, and ids."""
    return {
        "session_id": result.execution.session_id,
        "execution_id": result.id,
        "status": result.status,
        "cell": result.cell,
    }
