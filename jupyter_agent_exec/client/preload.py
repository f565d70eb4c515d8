"""What a session loads into its kernels, from what a program has at hand: names and functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from textwrap import dedent
from types import FunctionType
from typing import Any, Final, TypeAlias

from ..errors import InvalidRequest
from ..models import Preload, PreloadFunction, PreloadModule

Preloadable: TypeAlias = str | Callable[..., Any] | Preload
"""A module by its name (``"pandas"``, ``"pandas as pd"``), a function, or what `function` makes."""

_MODULE: Final = re.compile(r"\s*(?P<name>[^\s]+)(\s+as\s+(?P<alias>[^\s]+))?\s*")


def function(
    definition: str | Callable[..., Any],
    *,
    requirements: Iterable[str] = (),
    imports: Iterable[str] = (),
) -> PreloadFunction:
    """Return a function as something to preload.

    It runs in the kernel, where only `imports` and what else is preloaded is there: not the names
    of the module that it is from.

    Parameters
    ----------
    definition
        The function, or its source: one ``def`` or ``async def``.
    requirements
        What must be installed where the kernel runs, such as ``"numpy>=2"``. It is looked for, and
        never installed.
    imports
        Modules that it needs, as names (``"numpy"``) or as statements (``"import numpy as np"``).

    Raises
    ------
    InvalidRequest
        It is a lambda, a closure, a method or a class, or its source is not known.
    """
    source = definition if isinstance(definition, str) else _source_of(definition)
    return PreloadFunction(
        source=dedent(source),
        requirements=list(requirements),
        imports=[each if " " in each.strip() else f"import {each.strip()}" for each in imports],
    )


def to_preload(items: Iterable[Preloadable]) -> list[Preload]:
    """Return what is sent for each item."""
    return [_preload(item) for item in items]


def _preload(item: Preloadable) -> Preload:
    if isinstance(item, (PreloadModule, PreloadFunction)):
        return item
    if not isinstance(item, str):
        return function(item)
    named = _MODULE.fullmatch(item)
    if named is None:
        raise InvalidRequest(
            f"preload: {item!r} is no module's name. For the source of a function use "
            "function(source).",
            field="preload",
        )
    return PreloadModule(name=named["name"], alias=named["alias"])


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
