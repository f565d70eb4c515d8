"""The tool that adapters for LangChain, the OpenAI Agents SDK and Pydantic AI share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..client import ClientError, Result
from ..errors import AgentExecError
from .kernel_session import KernelSession, SessionOptions, Target
from .result_pieces import DisplayedObject, Picture, omitted_note, pieces

NAME: Final = "run_python"
"""The tool's name."""

DESCRIPTION: Final = (
    "Run Python code in a Jupyter kernel that keeps its state: variables, imports and functions "
    "stay from one call to the next. The answer is what the code printed, the value of its last "
    "expression, the plots that it showed, and the traceback if it raised. Print what you want to "
    "see, in small steps."
)
"""The tool's description for models."""

CODE: Final = "Python code, as in a notebook's cell."
"""The description of the tool's only argument for models."""

MAX_PICTURE_BYTES: Final = 3_500_000
"""Bytes of the largest image for a model. In base64, it stays below the limits of model APIs."""

_BEGINNINGS: Final = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""The first bytes of each image type that model APIs accept."""

REFUSALS: Final = (AgentExecError, ClientError)
"""Errors that mean that no code ran, or that its outcome is unknown. The message says which."""


def workplace(target: Target, agent: str, timeout: float | None) -> KernelSession:
    """Return the session of a tool."""
    return KernelSession(target, SessionOptions(agent=agent, timeout=timeout))


def only(results: Sequence[Result]) -> Result:
    """Return the only result."""
    (result,) = results
    return result


def told(result: Result) -> str:
    """Return the text for a model: outputs, errors, how the code ended, and lost variables."""
    notes = [note for note in (omitted_note(result),) if note is not None]
    text = "\n".join([*([result.text.rstrip("\n")] if result.text else []), *notes])
    return text or "The code ran; it put nothing out."


def pictures(result: Result) -> list[Picture]:
    """Return the images that a model can see. The text mentions the other ones."""
    shown = [piece.picture for piece in pieces(result) if isinstance(piece, DisplayedObject)]
    return [picture for picture in shown if picture is not None and _is_for_models(picture)]


def _is_for_models(picture: Picture) -> bool:
    # Code can label any data an image. Model APIs refuse invalid images, which ends the agent.
    beginning = _BEGINNINGS.get(picture.mimetype)
    is_known = beginning is not None and picture.data.startswith(beginning)
    return is_known and len(picture.data) <= MAX_PICTURE_BYTES


def kept(result: Result) -> dict[str, Any]:
    """Return the nbformat cell and ids as JSON, for the program that uses the tool."""
    return {
        "session_id": result.execution.session_id,
        "execution_id": result.id,
        "status": result.status,
        "cell": result.cell,
    }
