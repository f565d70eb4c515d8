"""Inspection of a session's kernel: variables, completions, documentation, packages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from .base import Answer, Request

MOST_CODE = 100_000
"""Characters: to complete more takes a kernel longer than anybody waits."""

CursorPos = Annotated[int, Meta(ge=0)]
"""Code points from the start of the code."""


class Complete(Request, frozen=True, kw_only=True):
    """Ask what may follow at a place in code."""

    code: Annotated[str, Meta(max_length=MOST_CODE)]
    cursor_pos: CursorPos | None = None
    """Null is the end of the code."""


class Inspect(Request, frozen=True, kw_only=True):
    """Ask for the documentation of what stands at a place in code."""

    code: Annotated[str, Meta(min_length=1, max_length=MOST_CODE)]
    cursor_pos: CursorPos | None = None
    """Null is the end of the code."""
    detail_level: Literal[0, 1] = 0
    """1 adds the source, where the kernel has it."""


class Variable(Answer, frozen=True, kw_only=True):
    """A variable of the kernel's user."""

    name: str
    type: str
    """Qualified name of its type."""
    shape: list[int] | None = None
    """Of an array or a table."""
    length: int | None = None
    """Of a text or a collection."""
    preview: str | None = None
    """Its value, or the start of it; only of what can be told cheaply."""


class VariableList(Answer, frozen=True, kw_only=True):
    """The variables of the kernel's user, by name."""

    variables: list[Variable]
    more: int
    """How many more there are."""


class Completion(Answer, frozen=True, kw_only=True):
    """A text that may stand between `cursor_start` and `cursor_end`."""

    text: str
    type: str | None
    """What it is, as the kernel says: `function`, `module`, …"""


class Completions(Answer, frozen=True, kw_only=True):
    """What may follow at a place in code."""

    completions: list[Completion]
    cursor_start: int
    cursor_end: int
    more: int
    """How many more there are."""
    static: bool = False
    """Whether nothing was evaluated, since code may not run: only names and attributes are told
    that are known without that."""


class Inspection(Answer, frozen=True, kw_only=True):
    """The documentation of what stands at a place in code."""

    found: bool
    text: str
    """As a language model should read it; empty if nothing was found."""


class Package(Answer, frozen=True, kw_only=True):
    """A distribution that code in the kernel can import."""

    name: str
    version: str
    import_names: list[str]


class PackageList(Answer, frozen=True, kw_only=True):
    """The distributions that code in the kernel can import, by name."""

    packages: list[Package]
    more: int
    """How many more there are."""


class Value(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """What an expression was after an execution: JSON where it is, else a description."""

    status: Literal["ok", "error"]
    json: Any | UnsetType = UNSET
    """The value, if it is JSON: null, booleans, finite numbers, texts, lists, objects."""
    type: str | None = None
    """Qualified name of its type."""
    shape: list[int] | None = None
    dtype: str | None = None
    """Of an array."""
    dtypes: dict[str, str] | None = None
    """Of a table, by column."""
    head: list[dict[str, Any]] | None = None
    """A table's first rows."""
    range: list[float] | None = None
    """An array's least and greatest number."""
    repr: str | None = None
    truncated: bool = False
    """Whether some of it was cut off."""
    ename: str | None = None
    """Name of the error; `NotEvaluated` if nobody looked at the expression."""
    evalue: str | None = None

    @classmethod
    def not_evaluated(cls, because: str) -> Value:
        """Return what is told of an expression that nobody looked at."""
        return cls(status="error", ename="NotEvaluated", evalue=because)
