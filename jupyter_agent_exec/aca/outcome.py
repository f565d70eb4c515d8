"""Requests and responses of Azure Container Apps' dynamic sessions, with the protocol's names.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ..journal.outputs import read_outputs
from ..models import Answer, Request, Seconds
from ..records import ExecutionRecord
from ..sessions.answers import notes
from ..text.model_text import FoundImage, Transcript


class CodeToExecute(Request, frozen=True, kw_only=True, rename="camel"):
    """Code to run, and its options."""

    code: str
    code_input_type: Literal["inline"] = "inline"
    execution_type: Literal["synchronous"] = "synchronous"
    timeout_in_seconds: Seconds | None = None
    """Seconds that the code may run; null for the server's default."""


class ExecuteCode(Request, frozen=True, kw_only=True):
    """Run code in a dynamic session, and wait for it."""

    properties: CodeToExecute


class CodeOutcome(Answer, frozen=True, kw_only=True):
    """The outcome of code."""

    status: Literal["Success", "Failure"]
    stdout: str
    """Standard output and displayed data. A note with a path stands for each image."""
    stderr: str
    """Standard error, the traceback, and notes about the execution in brackets."""
    result: str
    """The value of the last expression as text; empty without a value or after a failure."""


class CodeExecuted(Answer, frozen=True, kw_only=True):
    """Finished code, whether it succeeded or failed."""

    properties: CodeOutcome


class DynamicFileProperties(Answer, frozen=True, kw_only=True, rename="camel"):
    """A file in a dynamic session's folder."""

    filename: str
    size: int
    last_modified_time: str


class DynamicFile(Answer, frozen=True, kw_only=True):
    """A file of a dynamic session."""

    properties: DynamicFileProperties


class DynamicFileList(Answer, frozen=True, kw_only=True):
    """Files of a dynamic session, by name."""

    value: list[DynamicFile]


def outcome(
    record: ExecutionRecord, images: Mapping[int, str], remarks: Sequence[str] = ()
) -> CodeOutcome:
    """Return the outcome of a finished execution.

    Parameters
    ----------
    images
        Paths or URLs of images by output.
    remarks
        Further notes besides those about the execution itself.
    """
    stdout, stderr, result = _Text(), _Text(), _Text()
    for index, output in enumerate(read_outputs(record)):
        kind = output["output_type"]
        on_stderr = kind == "error" or (kind == "stream" and output["name"] == "stderr")
        text = result if kind == "execute_result" else stderr if on_stderr else stdout
        text.image_at = images.get(index)
        text.transcript.output(output)
    for remark in (*remarks, *notes(record)):
        stderr.transcript.note(remark)
    succeeded = record.status == "ok"
    return CodeOutcome(
        status="Success" if succeeded else "Failure",
        stdout=stdout.whole(),
        stderr=_ended(stderr.whole()),
        result=result.whole() if succeeded else "",
    )


def encoded(
    record: ExecutionRecord, images: Mapping[int, str], remarks: Sequence[str]
) -> msgspec.Raw:
    """Return a `CodeExecuted` as JSON, with what `outcome` returns. Slow for large outputs."""
    executed = CodeExecuted(properties=outcome(record, images, remarks))
    return msgspec.Raw(msgspec.json.encode(executed))


def _ended(text: str) -> str:
    """Return a text with a final newline, because clients append the next text directly."""
    return text if not text or text.endswith("\n") else f"{text}\n"


class _Text:
    """A text of an outcome."""

    def __init__(self) -> None:
        self.image_at: str | None = None
        self._pieces: list[str] = []
        self.transcript = Transcript(self._pieces.append, image_note=self._note)

    def whole(self) -> str:
        """Finish the text and return it."""
        self.transcript.finish()
        return "".join(self._pieces)

    def _note(self, number: int, image: FoundImage) -> str:
        return f"[image {self.image_at or number}: {image.in_words}]"
