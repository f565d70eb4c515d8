"""The result of an execution, for programs, terminals and notebooks."""

from __future__ import annotations

import base64
from os import PathLike
from pathlib import Path
from typing import Any, Final

from ..models import Execution
from ..models import Image as ImageModel
from ..types import FINAL_STATUSES, Output
from .display import plain, waiting
from .errors import ClientError

_SUFFIXES: Final = {"image/svg+xml": ".svg", "image/jpeg": ".jpg"}


class Image:
    """An image among an execution's outputs.

    Parameters
    ----------
    model
        The server's model of the image.
    outputs
        The outputs of its cell. One of them holds the image.
    """

    def __init__(self, model: ImageModel, outputs: list[Output]) -> None:
        self._outputs = outputs
        self.mimetype = model.mimetype
        self.width = model.width
        """Pixels; None if unknown."""
        self.height = model.height
        self.bytes = model.bytes
        """Size of the decoded image."""
        self.url = model.url
        """Its URL path on the server; None until the execution has finished."""
        self.output = model.output
        """Index of the output that holds the image."""

    @property
    def data(self) -> bytes:
        """The image's bytes, decoded at each access."""
        value = joined(self._outputs[self.output]["data"][self.mimetype])
        return value.encode() if self.mimetype == "image/svg+xml" else base64.b64decode(value)

    @property
    def suffix(self) -> str:
        """The file name suffix of its type, with the dot."""
        return suffix_of(self.mimetype)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the image to `path`, and return the path. Add a suffix if `path` has none."""
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


class Result:
    """The result of an execution, or its state so far.

    Parameters
    ----------
    execution
        The server's model of the execution.
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.id: str = execution.id
        """The execution's id."""
        self.status = execution.status
        """The status of the execution."""
        self.ok = execution.status == "ok"
        """Whether the code ran to its end without an error."""
        self.finished = execution.status in FINAL_STATUSES
        """Whether the status is final."""
        self.text = execution.text
        """The text for a language model: streams, results and errors in order."""
        self.error = execution.error
        """The exception that ended it, as the kernel reported it."""
        self.values = execution.values or {}
        """The values of the requested expressions; empty until the code has ended.

        Each has `json` if JSON can hold the value. Otherwise, it has a description of the value, or
        the error of the expression.
        """
        self.cell = execution.cell
        """The execution as an nbformat 4.5 code cell."""
        self.outputs: list[Output] = execution.cell["outputs"]
        """The cell's nbformat outputs."""
        self.images = [Image(model, self.outputs) for model in execution.images]
        """The images among the outputs, in order."""
        self.document = execution.document
        """The state of its cell in the session's notebook; None if there is no notebook."""
        self.waiting_for = execution.waiting_for
        """The reason why it waits; None if it does not wait."""
        self.input = execution.input
        """The open input request of its code; None if there is none."""

    @property
    def summary(self) -> str:
        """One line: the status and, if it is not ok, why."""
        execution = self.execution
        line: str = execution.status
        if execution.duration is not None:
            line += f" in {execution.duration:.3g} s"
        if execution.error is not None:
            line += f": {execution.error.ename}: {execution.error.evalue}"
            line += "" if execution.reason is None else f". {execution.reason}"
        elif execution.reason is not None:
            line += f": {execution.reason}"
        elif execution.input is not None:
            line += f": it asks {execution.input.prompt!r}"
        elif execution.waiting_for is not None:
            line += f": {waiting(execution.waiting_for, execution.id)}"
        return " ".join(plain(line).split())

    def raise_on_error(self) -> Result:
        """Return this result if its status is ``ok``.

        Raises
        ------
        ExecutionFailed
            The status is not ``ok``.
        """
        if not self.ok:
            raise ExecutionFailed(self)
        return self

    def __str__(self) -> str:
        return plain(self.text)

    def __repr__(self) -> str:
        head = f"<Result [{self.execution.seq}] {self.summary}>"
        return f"{head}\n{self}" if self.text else head

    def _ipython_display_(self) -> None:
        """Show the text in a notebook, and then each output that is more than text."""
        from IPython.display import display

        display({"text/plain": repr(self)}, raw=True)  # type: ignore[no-untyped-call]
        for output in self.outputs:
            if output.get("data", {}).keys() > {"text/plain"}:
                data = {
                    mimetype: value if mimetype.endswith("json") else joined(value)
                    for mimetype, value in output["data"].items()
                }
                metadata = output["metadata"]
                display(data, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]


class ExecutionFailed(ClientError):
    """The code did not finish with status ``ok``.

    Parameters
    ----------
    result
        The result of the execution.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(result.summary)
        self.result = result


def joined(value: Any) -> Any:
    """Return a mimebundle's value, with its lines joined if nbformat has split them."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return value


def suffix_of(mimetype: str) -> str:
    """Return the file name suffix of an image type, with the dot."""
    return _SUFFIXES.get(mimetype, "." + mimetype.partition("/")[2])
