"""Build the paths and bodies of the client's requests.

Values that JSON would silently change are refused here.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import Any, Final, Literal, TypeAlias, TypedDict
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from .. import models
from ..errors import InvalidRequest

API: Final = "/api/agent-exec"

Source: TypeAlias = str | PathLike[str]
"""Code, or the path of a file with code."""

Place: TypeAlias = models.Placement | Literal["end", "none"]
"""The place of an execution's cell in its notebook."""

Preloadable: TypeAlias = str | Callable[..., Any] | models.Preload
"""A module by name (``"pandas"``, ``"pandas as pd"``), a function, or a result of `function`."""

_MODULE: Final = re.compile(r"\s*(?P<name>[^\s]+)(\s+as\s+(?P<alias>[^\s]+))?\s*")


# -- paths -----------------------------------------------------------------------------------------


def segment(value: str) -> str:
    """Return `value` as one segment of a URL path."""
    return quote(value, safe="")


def contents_path(path: str) -> str:
    """Return a contents path as segments of a URL path."""
    return quote(path.strip("/"), safe="/")


def with_query(path: str, /, **query: str | float | None) -> str:
    """Return `path` with the arguments of `query` that are not None."""
    given = {
        name: ("true" if value else "false") if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(given)}" if given else path


def header_value(key: str) -> str:
    """Return an idempotency key as a header's value."""
    if not key.isprintable() or not key.isascii():
        raise InvalidRequest("An idempotency key is printable ASCII.", field="Idempotency-Key")
    return key


# -- bodies ----------------------------------------------------------------------------------------


def session_target(
    *,
    notebook: str | None,
    kernel_id: str | None,
    kernel_name: str | None,
    create: bool,
    cwd: str | None,
    env: Mapping[str, str] | None,
    isolated: bool = False,
) -> models.Target:
    """Return a session's target: a notebook, a running kernel, or else a scratch kernel."""
    of_scratch = {"cwd": cwd, "env": env or None, "isolated": isolated or None}
    if notebook is not None:
        _require_none("notebook", kernel_id=kernel_id, **of_scratch)
        return models.NotebookTarget(path=notebook, kernel_name=kernel_name, create=create)
    if create:
        raise InvalidRequest("create=True needs the path of a notebook=.", field="create")
    if kernel_id is not None:
        _require_none("kernel_id", kernel_name=kernel_name, **of_scratch)
        return models.KernelTarget(kernel_id=kernel_id)
    return models.ScratchTarget(
        kernel_name=kernel_name, cwd=cwd, env=dict(env or {}), isolated=isolated
    )


class ExecuteOptions(TypedDict, total=False):
    """What a source may be run with; `Execute` says what each means. None is the default."""

    timeout: float | None
    queue_timeout: float | None
    max_output_bytes: int | None
    placement: Place
    revises: str | None
    values: Mapping[str, str] | None
    claim: models.Claim | None
    trial: bool


class Filters(TypedDict, total=False):
    """What sessions and executions can be chosen by."""

    status: str | None
    agent: str | None
    target: str | None
    since: str | None
    until: str | None


class SessionFilters(Filters, total=False):
    """Which sessions to list; `SessionsQuery` says what each means."""

    unreviewed: bool | None


class SearchFilters(Filters, total=False):
    """Which executions to find; `SearchQuery` says what each means."""

    session_id: str | None
    has_image: bool | None
    review: str | None


class ErasureOptions(TypedDict, total=False):
    """What to erase; `Erase` says what each means."""

    execution_id: str | None
    session_id: str | None
    agent: str | None
    username: str | None
    text: str | None
    reason: str | None
    dry_run: bool


def source_text(source: Source) -> str:
    """Return code as it is, or the content of the file with code."""
    if isinstance(source, str):
        return source
    path = Path(source)
    if path.suffix == ".ipynb":
        raise InvalidRequest(f"source: {path} is a notebook, not source code.", field="source")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"source: {path} is not UTF-8 text.", field="source") from error


def execute_request(source: Source | None, options: ExecuteOptions) -> models.Execute:
    """Return the request that runs `source`, or the source of the cell that `placement` names."""
    given: dict[str, Any] = {name: each for name, each in options.items() if each is not None}
    require_finite("timeout", given.get("timeout"))
    require_finite("queue_timeout", given.get("queue_timeout"))
    return models.Execute(source=None if source is None else source_text(source), **given)


def steps_request(
    steps: Iterable[Source | models.Step], *, stop_on_error: bool, timeout: float | None
) -> models.RunSteps:
    """Return the request that runs several sources."""
    require_finite("timeout", timeout)
    asked = [
        each if isinstance(each, models.Step) else models.Step(source=source_text(each))
        for each in steps
    ]
    return models.RunSteps(
        steps=[replace(each, timeout=each.timeout or timeout) for each in asked],
        stop_on_error=stop_on_error,
    )


def _require_none(given: str, **others: object) -> None:
    """Refuse arguments that cannot be combined with `given`, which selects an existing kernel."""
    for field, value in others.items():
        if value is not None:
            raise InvalidRequest(f"{given}= and {field}= exclude each other.", field=field)


def require_finite(field: str, seconds: float | None) -> None:
    """Refuse infinity and NaN, which JSON would turn into null, the default."""
    if seconds is not None and not math.isfinite(seconds):
        raise InvalidRequest(
            f"{field} must be a finite number of seconds, not {seconds}.", field=field
        )


# -- preload ---------------------------------------------------------------------------------------


def function(
    definition: str | Callable[..., Any],
    *,
    requirements: Iterable[str] = (),
    imports: Iterable[str] = (),
) -> models.PreloadFunction:
    """Return a function for `preload`, with its requirements and imports.

    The function runs in the kernel. It can use only its `imports` and other preloaded modules and
    functions, not the names of the module that defines it.

    Parameters
    ----------
    definition
        The function, or its source: one ``def`` or ``async def``.
    requirements
        Distributions that must be installed in the kernel's environment, such as ``"numpy>=2"``.
        They are checked, but never installed.
    imports
        Modules that it needs, as names (``"numpy"``) or as statements (``"import numpy as np"``).

    Raises
    ------
    InvalidRequest
        `definition` is a lambda, a closure, a method or a class, or its source cannot be found.
    """
    source = definition if isinstance(definition, str) else _source_of(definition)
    return models.PreloadFunction(
        source=dedent(source),
        requirements=list(requirements),
        imports=[each if " " in each.strip() else f"import {each.strip()}" for each in imports],
    )


def to_preload(items: Iterable[Preloadable]) -> list[models.Preload]:
    """Return the model of each item."""
    return [_preload(item) for item in items]


def _preload(item: Preloadable) -> models.Preload:
    if isinstance(item, (models.PreloadModule, models.PreloadFunction)):
        return item
    if not isinstance(item, str):
        return function(item)
    named = _MODULE.fullmatch(item)
    if named is None:
        raise InvalidRequest(
            f"preload: {item!r} is not the name of a module. For the source of a function use "
            "function(source).",
            field="preload",
        )
    return models.PreloadModule(name=named["name"], alias=named["alias"])


def _source_of(definition: Callable[..., Any]) -> str:
    if not isinstance(definition, FunctionType):
        kind = type(definition).__name__
        raise _refused(definition, f"is a {kind}, not a function defined with def")
    if definition.__name__ == "<lambda>":
        raise _refused(definition, "is a lambda: define it with def, so that it has a name")
    if definition.__closure__:
        names = ", ".join(definition.__code__.co_freevars)
        raise _refused(
            definition,
            f"is a closure over {names}, which the kernel does not have: pass them as parameters",
        )
    try:
        return inspect.getsource(definition)
    except (OSError, TypeError):
        raise _refused(definition, "has no source that can be found: pass its text") from None


def _refused(definition: object, why: str) -> InvalidRequest:
    name = getattr(definition, "__qualname__", repr(definition))
    return InvalidRequest(f"preload: {name} {why}.", field="preload")
