"""Splits the result of an execution into the pieces from which adapters build their answers."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import uuid4

from ..client import Result
from ..client.result import joined, suffix_of
from ..models import Execution
from ..text.terminal import clean
from ..types import OF_EARLIER, RAW_IMAGE_TYPES, Output

IN_NEW_SESSION: Final = (
    "The session was closed before this code ran, and it ran in a new one: all variables are gone."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """Text that code wrote to standard output or standard error."""

    name: str
    """``stdout`` or ``stderr``."""
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """An image in the format of its file."""

    mimetype: str
    data: bytes

    @property
    def suffix(self) -> str:
        """The suffix of its file name, with the dot."""
        return suffix_of(self.mimetype)

    def save(self, folder: Path, name: str | None = None) -> Path:
        """Save it in a folder, and return its path. The name is unique when None."""
        path = folder / f"{name or uuid4().hex}{self.suffix}"
        path.write_bytes(self.data)
        return path


@dataclass(frozen=True, kw_only=True, slots=True)
class DisplayedObject:
    """A displayed object, or the value of the last expression."""

    is_result: bool
    """Whether it is the value of the last expression."""
    text: str | None
    """The ``text/plain`` data."""
    html: str | None
    picture: Picture | None
    """The raster image, else the SVG image."""
    data: dict[str, Any]
    """The whole mimebundle."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RaisedException:
    """The exception that ended the code."""

    ename: str
    evalue: str
    traceback: str
    """The traceback with colour escape sequences; see `plain_traceback`."""

    @property
    def plain_traceback(self) -> str:
        """The traceback without escape sequences."""
        return clean(self.traceback)


class ResultInNewSession(Result):
    """The first result in a new session, after someone closed the previous session.

    Its text begins with a note that variables are gone.
    """

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        self.text = f"[{IN_NEW_SESSION}]\n{execution.text}"


Piece: TypeAlias = Stream | DisplayedObject | RaisedException


def pieces(result: Result) -> Iterator[Piece]:
    """Yield the outputs of an execution in order."""
    for output in result.outputs:
        yield _piece(output)


def state_note(result: Result) -> str | None:
    """Return a note if the kernel is new since the previous execution, with the reason."""
    if isinstance(result, ResultInNewSession):
        return IN_NEW_SESSION
    kernel = result.execution.kernel
    if kernel is None or not kernel.restarted:
        return None
    why = "" if kernel.reason is None else f" ({kernel.reason})"
    if kernel.reason in OF_EARLIER:
        return f"Before this code ran, the kernel got its variables of an earlier time back{why}."
    return f"The kernel was restarted before this code ran{why}: all variables are gone."


def changed_note(result: Result) -> str | None:
    """Return a note with the new code if the user changed the code before approving it."""
    approval = result.execution.approval
    if approval is None or approval.asked_source is None:
        return None
    return f"A person changed the code before it ran:\n{joined(result.cell['source'])}"


def end_note(result: Result) -> str | None:
    """Return why the code did not finish; None if it did, or if it raised an exception."""
    if result.status in ("ok", "error"):
        return None
    return result.execution.reason or f"The code did not run to its end: {result.status}."


def omitted_note(result: Result) -> str | None:
    """Return a note if outputs are left out: how much is missing, and where it is kept."""
    if result.execution.outputs_complete:
        return None
    omitted = result.execution.omitted
    counts = {"line": omitted.lines, "byte": omitted.bytes, "output": omitted.outputs}
    said = [f"{n:,} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
    notes = []
    if said:
        notes.append(f"Left out: {', '.join(said)}; all of it is kept with execution {result.id}.")
    if omitted.unknown or not said:
        notes.append("What it printed last may be missing.")
    return " ".join(notes)


def save_html(html: str, folder: Path) -> Path:
    """Save HTML in a folder under a unique name, and return its path."""
    path = folder / f"{uuid4().hex}.html"
    path.write_text(html, encoding="utf-8")
    return path


def _piece(output: Output) -> Piece:
    kind = output["output_type"]
    if kind == "stream":
        return Stream(name=output["name"], text=joined(output["text"]))
    if kind == "error":
        lines = output["traceback"] or [f"{output['ename']}: {output['evalue']}"]
        return RaisedException(
            ename=output["ename"], evalue=output["evalue"], traceback="\n".join(lines)
        )
    data = output["data"]
    return DisplayedObject(
        is_result=kind == "execute_result",
        text=_text(data, "text/plain"),
        html=_text(data, "text/html"),
        picture=_picture(data),
        data=data,
    )


def _text(data: dict[str, Any], mimetype: str) -> str | None:
    return joined(data[mimetype]) if mimetype in data else None


def _picture(data: dict[str, Any]) -> Picture | None:
    for mimetype in RAW_IMAGE_TYPES:
        if mimetype in data:
            try:
                encoded = "".join(joined(data[mimetype]).split())
                content = base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                continue  # code may display invalid data
            return Picture(mimetype=mimetype, data=content)
    if "image/svg+xml" in data:
        return Picture(mimetype="image/svg+xml", data=joined(data["image/svg+xml"]).encode())
    return None


_MAGIC: Final = re.compile(r"^([!%] ?pip install)(?!.*-qqq)", re.MULTILINE)
_COMMAND: Final = re.compile(r"^(pip install)(?!.*-qqq)", re.MULTILINE)


def quiet(source: str, *, is_shell: bool = False) -> str:
    """Return code whose `pip install` prints nothing unless it fails.

    Parameters
    ----------
    is_shell
        Whether the code is a shell script, in which `pip install` needs no ``!`` or ``%``.
    """
    source = _MAGIC.sub(r"\1 -qqq", source)
    return _COMMAND.sub(r"\1 -qqq", source) if is_shell else source
