"""The result of an execution, for programs, terminals and notebooks."""

from __future__ import annotations

import base64
import html
from os import PathLike
from pathlib import Path
from typing import Any, Final

from ..models import Document, Execution, ExecutionError, Input, Value, WaitingFor
from ..models import Image as ImageModel
from ..text.terminal import clean
from ..types import FINAL_STATUSES, RAW_IMAGE_TYPES, Output, Status
from .display import plain, waiting
from .errors import ClientError

_SUFFIXES: Final = {"image/svg+xml": ".svg", "image/jpeg": ".jpg"}
_PRE: Final = '<pre style="margin: 0; white-space: pre-wrap">{}</pre>'
_PRE_STDERR: Final = (
    '<pre style="margin: 0; white-space: pre-wrap; '
    'background: var(--jp-rendermime-error-background, #fdd)">{}</pre>'
)


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

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {
            "text/plain": repr(self),
            self.mimetype: joined(self._outputs[self.output]["data"][self.mimetype]),
        }


class Result:
    """The result of an execution, or its state so far.

    Parameters
    ----------
    execution
        The server's model of the execution.
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution

    @property
    def id(self) -> str:
        """The execution's id."""
        return self.execution.id

    @property
    def status(self) -> Status:
        """The status of the execution."""
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
        """The text for a language model: streams, results and errors in order."""
        return self.execution.text

    @property
    def error(self) -> ExecutionError | None:
        """The exception that ended it, as the kernel reported it."""
        return self.execution.error

    @property
    def values(self) -> dict[str, Value]:
        """The values of the requested expressions; empty until the code has ended.

        Each has `json` if JSON can hold the value. Otherwise, it has a description of the value, or
        the error of the expression.
        """
        return self.execution.values or {}

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
        """The state of its cell in the session's notebook; None if there is no notebook."""
        return self.execution.document

    @property
    def waiting_for(self) -> WaitingFor | None:
        """The reason why it waits; None if it does not wait."""
        return self.execution.waiting_for

    @property
    def input(self) -> Input | None:
        """The open input request of its code; None if there is none."""
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

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return mimebundle(self.outputs, repr(self))


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


def mimebundle(outputs: list[Output], text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return data and metadata that show `outputs` as one output of a notebook.

    A single output stays unchanged. Several outputs become one HTML document, in order, because a
    mimebundle holds alternatives of one output, not a sequence. `text` is for programs that cannot
    show HTML.

    Display ids are left out, because later updates do not reach this copy.
    """
    if len(outputs) == 1 and "data" in outputs[0]:
        data = {
            mimetype: value if mimetype.endswith("json") else joined(value)
            for mimetype, value in outputs[0]["data"].items()
        }
        return {**data, "text/plain": text}, dict(outputs[0].get("metadata", {}))
    if not outputs:
        return {"text/plain": text}, {}
    return {"text/plain": text, "text/html": "\n".join(map(_as_html, outputs))}, {}


def joined(value: Any) -> Any:
    """Return a mimebundle's value, with its lines joined if nbformat has split them."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return value


def suffix_of(mimetype: str) -> str:
    """Return the file name suffix of an image type, with the dot."""
    return _SUFFIXES.get(mimetype, "." + mimetype.partition("/")[2])


def _as_html(output: Output) -> str:
    kind = output["output_type"]
    if kind == "stream":
        frame = _PRE_STDERR if output["name"] == "stderr" else _PRE
        return frame.format(html.escape(plain(clean(joined(output["text"])))))
    if kind == "error":
        lines = output["traceback"] or [f"{output['ename']}: {output['evalue']}"]
        return _PRE_STDERR.format(html.escape(plain("\n".join(lines))))
    return _data_as_html(output["data"], output.get("metadata", {}))


def _data_as_html(data: dict[str, Any], metadata: dict[str, Any]) -> str:
    if "text/html" in data:
        return f"<div>{joined(data['text/html'])}</div>"
    if "image/svg+xml" in data:
        return f"<div>{joined(data['image/svg+xml'])}</div>"
    for mimetype in RAW_IMAGE_TYPES:
        if mimetype in data:
            known = metadata.get(mimetype, {})
            pixels = "".join(
                f' {side}="{int(known[side])}"'
                for side in ("width", "height")
                if isinstance(known, dict) and isinstance(known.get(side), (int, float))
            )
            encoded = html.escape("".join(joined(data[mimetype]).split()))
            return f'<div><img src="data:{mimetype};base64,{encoded}"{pixels}></div>'
    return _PRE.format(html.escape(plain(str(joined(data.get("text/plain", ""))))))
