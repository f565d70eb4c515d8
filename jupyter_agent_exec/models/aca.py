"""Dynamic sessions as Azure Container Apps has them, in that protocol's own names."""

from __future__ import annotations

from typing import Literal

from .base import Answer, Request, Seconds


class CodeToExecute(Request, frozen=True, kw_only=True, rename="camel"):
    """Code, and how it is to be run."""

    code: str
    code_input_type: Literal["inline"] = "inline"
    execution_type: Literal["synchronous"] = "synchronous"
    timeout_in_seconds: Seconds | None = None
    """Seconds it may run; null is the server's default."""


class ExecuteCode(Request, frozen=True, kw_only=True):
    """Run code in a dynamic session, and wait for it."""

    properties: CodeToExecute


class CodeOutcome(Answer, frozen=True, kw_only=True):
    """What came of code."""

    status: Literal["Success", "Failure"]
    stdout: str
    """What it wrote there and displayed; an image is a note of where it is."""
    stderr: str
    """What it wrote there, the traceback, and sentences about how it went, in brackets."""
    result: str
    """Text of the value of the last expression; empty if there is none, or after a failure."""


class CodeExecuted(Answer, frozen=True, kw_only=True):
    """Code that has come to its end, whichever."""

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
