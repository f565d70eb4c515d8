"""What an execution came to, for programs, terminals and notebooks."""

from __future__ import annotations

import base64
from os import PathLike
from pathlib import Path
from typing import Any

from ..models import Document, Execution, ExecutionError, Input, Value, WaitingFor
from ..models import Image as ImageModel
from ..types import FINAL_STATUSES, Output, Status
from .errors import ExecutionFailed
from .mimebundle import joined, mimebundle, suffix_of
from .plain import plain
from .wording import waiting


class Image:
    """An image among an execution's outputs.

    Parameters
    ----------
    model
        What the server says of it.
    outputs
        The outputs of its cell, one of which holds it.
    """

    def __init__(self, model: ImageModel, outputs: list[Output]) -> None:
        self._outputs = outputs
        self.mimetype = model.mimetype
        self.width = model.width
        """Pixels; None when the data does not tell."""
        self.height = model.height
        self.bytes = model.bytes
        """Size of the image itself."""
        self.url = model.url
        """Its path on the server; None until the execution has finished."""
        self.output = model.output
        """Index of the output that holds it."""

    @property
    def data(self) -> bytes:
        """The image's bytes, decoded each time this is asked for."""
        value = joined(self._outputs[self.output]["data"][self.mimetype])
        return value.encode() if self.mimetype == "image/svg+xml" else base64.b64decode(value)

    @property
    def suffix(self) -> str:
        """The file name's end that its type is known by, with the dot."""
        return suffix_of(self.mimetype)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the image to `path`, with its suffix when `path` has none; return where."""
        target = Path(path)
        if not target.suffix:
            target = target.with_suffix(self.suffix)
        target.write_bytes(self.data)
        return target

    def __repr__(self) -> str:
        pixels = (
            f" {self.width}\N{MULTIPLICATION SIGN}{self.height}"
            if self.width and self.height
            else ""
        )
        return f"<Image {self.mimetype}{pixels}, {self.bytes} bytes>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {
            "text/plain": repr(self),
            self.mimetype: joined(self._outputs[self.output]["data"][self.mimetype]),
        }


class Result:
    """What an execution came to, or is so far.

    Parameters
    ----------
    execution
        The execution as the server answered it.
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution

    @property
    def id(self) -> str:
        """The execution's id."""
        return self.execution.id

    @property
    def status(self) -> Status:
        """Where the execution stands."""
        return self.execution.status

    @property
    def ok(self) -> bool:
        """Whether the code ran to its end without an error."""
        return self.execution.status == "ok"

    @property
    def finished(self) -> bool:
        """Whether the status is final."""
        return self.execution.status in FINAL_STATUSES

    @property
    def text(self) -> str:
        """What a language model should read: streams, results and errors in order."""
        return self.execution.text

    @property
    def error(self) -> ExecutionError | None:
        """The exception that ended it, as the kernel told it."""
        return self.execution.error

    @property
    def values(self) -> dict[str, Value] | None:
        """What the expressions came to that were asked for; None if none were, or before its end.

        Each has `json` if it was JSON, else a description, or the error of this one expression.
        """
        return self.execution.values

    @property
    def cell(self) -> dict[str, Any]:
        """The execution as an nbformat 4.5 code cell."""
        return self.execution.cell

    @property
    def outputs(self) -> list[Output]:
        """The cell's nbformat outputs."""
        outputs: list[Output] = self.execution.cell["outputs"]
        return outputs

    @property
    def images(self) -> list[Image]:
        """The images among the outputs, in order."""
        return [Image(model, self.outputs) for model in self.execution.images]

    @property
    def document(self) -> Document | None:
        """What became of its cell in the session's notebook; None if there is no notebook."""
        return self.execution.document

    @property
    def waiting_for(self) -> WaitingFor | None:
        """Behind whom it waits for its turn; None unless it waits."""
        return self.execution.waiting_for

    @property
    def input(self) -> Input | None:
        """What its code asks for, and nobody has given yet; None if it does not."""
        return self.execution.input

    @property
    def summary(self) -> str:
        """One line: the status and, if it is not ok, why."""
        execution = self.execution
        line: str = execution.status
        if execution.duration is not None:
            line += f" in {execution.duration:.3g} s"
        if execution.error is not None:
            line += f": {execution.error.ename}: {execution.error.evalue}"
        elif execution.reason is not None:
            line += f": {execution.reason}"
        elif execution.input is not None:
            line += f": it asks {execution.input.prompt!r}"
        elif execution.waiting_for is not None:
            line += f": {waiting(execution.waiting_for)}"
        return " ".join(plain(line).split())

    def raise_on_error(self) -> Result:
        """Return this result if its status is ``ok``.

        Raises
        ------
        ExecutionFailed
            The status is another.
        """
        if not self.ok:
            raise ExecutionFailed(self)
        return self

    def __str__(self) -> str:
        return plain(self.text)

    def __repr__(self) -> str:
        head = f"<Result [{self.execution.seq}] {self.summary}>"
        return f"{head}\n{self}" if self.text else head

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return mimebundle(self.outputs, repr(self))
