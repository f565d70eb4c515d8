"""What an execution came to, as lagent's `ActionReturn`."""

from __future__ import annotations

from lagent.schema import ActionReturn, ActionStatusCode

from ...client import Result
from ...errors import InvalidRequest
from ..outputs import (
    Picture,
    Raised,
    Stream,
    changed_note,
    end_note,
    omitted_note,
    pieces,
    state_note,
)
from .extracting import escape_ansi
from .images import saved


def told(name: str, command: str, result: Result, work_dir: str) -> ActionReturn:
    """Return what code came to; its images are written into the folder if it ran to its end."""
    text, pictures = _read(result)
    answer = ActionReturn({"text": command}, type=name)
    if not result.ok:
        answer.errmsg = text
        answer.state = ActionStatusCode.API_ERROR
        return answer
    answer.result = [
        {"type": "text", "content": text},
        *({"type": "image", "content": saved(each, work_dir)} for each in pictures),
    ]
    return answer


def refused(name: str, command: str, error: Exception) -> ActionReturn:
    """Return why code was not run, or why its images cannot be written."""
    wrong = isinstance(error, InvalidRequest)
    return ActionReturn(
        {"text": command},
        type=name,
        errmsg=str(error),
        state=ActionStatusCode.ARGS_ERROR if wrong else ActionStatusCode.API_ERROR,
    )


def _read(result: Result) -> tuple[str, list[Picture]]:
    text = ""
    pictures = []
    for piece in pieces(result):
        if isinstance(piece, Stream):
            text += piece.text
        elif isinstance(piece, Raised):
            text += escape_ansi(piece.traceback)
        else:
            # What is shown as an image is not told in words too, but for a value.
            if piece.text is not None and (piece.is_result or piece.picture is None):
                text += piece.text
            if piece.picture is not None:
                pictures.append(piece.picture)
    if after := _notes_after(result):
        text = "\n".join([*([text.removesuffix("\n")] if text else []), *after])
    return "".join(f"{note}\n" for note in _notes_before(result)) + text, pictures


def _notes_before(result: Result) -> list[str]:
    return [note for note in (state_note(result), changed_note(result)) if note is not None]


def _notes_after(result: Result) -> list[str]:
    end = end_note(result)
    if end is not None and result.status == "timed_out":
        end = f"Timeout. {end}"
    return [note for note in (omitted_note(result), end) if note is not None]
