"""The preload of a session: checks what is loaded into its kernels, and makes one source of it.

Pure, and only for Python kernels. The preload is only parsed here, never run.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cache
from importlib.resources import files
from keyword import iskeyword
from textwrap import indent
from typing import Final, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from ..errors import InvalidRequest
from ..models import Preload, PreloadFunction, PreloadModule

MOST_CHARACTERS: Final = 1000
"""The most characters of a function's description."""
_PARSING: Final = threading.Lock()
"""With CPython 3.11, a parse may raise SystemError if another thread parses meanwhile."""


class Preloaded(NamedTuple):
    """A checked preload, ready to run in a kernel."""

    source: str
    told: tuple[str, ...]
    """Its definitions: `import` statements, and functions with signature and docstring."""


def preloaded(items: Sequence[Preload]) -> Preloaded | None:
    """Check a preload and return its source; None if there is nothing to load.

    Raises
    ------
    InvalidRequest
        An item is invalid; ``detail["field"]`` names it.
    """
    if not items:
        return None
    modules: dict[str, None] = {}
    requirements: dict[tuple[str, str], None] = {}
    statements: list[str] = []
    described: list[str] = []
    defined: set[str] = set()
    for at, item in enumerate(items):
        if isinstance(item, PreloadModule):
            statement = _import_of(item, f"preload[{at}]")
            statements.append(statement)
            described.append(statement)
            modules[item.name.partition(".")[0]] = None
            continue
        function = _function(item, f"preload[{at}].source")
        if function.name in defined:
            raise _wrong(f"preload[{at}].source", f"there is another {function.name!r} before it.")
        defined.add(function.name)
        for number, text in enumerate(item.requirements):
            requirements[_requirement(text, f"preload[{at}].requirements[{number}]")] = None
        for number, text in enumerate(item.imports):
            statements.append(text.strip())
            modules |= dict.fromkeys(_imported(text, f"preload[{at}].imports[{number}]"))
        statements.append(item.source.strip("\n"))
        described.append(_described(function, f"preload[{at}].source"))
    check = f"{_check()}\ntry:\n    _check_preload({list(modules)!r}, {list(requirements)!r})\n"
    source = "\n\n".join([check + "finally:\n    del _check_preload", *statements])
    return Preloaded(f"{source}\n", tuple(described))


def _import_of(item: PreloadModule, field: str) -> str:
    if not all(map(_is_name, item.name.split("."))):
        raise _wrong(f"{field}.name", f"{item.name!r} is not the name of a module.")
    if item.alias is None:
        return f"import {item.name}"
    if not _is_name(item.alias):
        raise _wrong(f"{field}.as", f"{item.alias!r} is not a valid name in Python.")
    return f"import {item.name} as {item.alias}"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)


def _function(item: PreloadFunction, field: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    body = _parsed(item.source, field)
    if len(body) != 1 or not isinstance(body[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise _wrong(
            field,
            "exactly one function definition is needed, and nothing else; imports go into "
            "`imports`.",
        )
    return body[0]


def _imported(text: str, field: str) -> Iterator[str]:
    """Yield the top-level modules that an import statement needs."""
    body = _parsed(text.strip(), field)
    statement = body[0] if len(body) == 1 else None
    if isinstance(statement, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module:
        yield statement.module.partition(".")[0]
    else:
        raise _wrong(field, "one import statement is needed, such as 'import numpy as np'.")


def _requirement(text: str, field: str) -> tuple[str, str]:
    """Return the name and the versions of a requirement."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        reason = str(error).partition("\n")[0]
        raise _wrong(field, f"{text!r} is not a requirement: {reason}.") from None
    if requirement.url or requirement.extras or requirement.marker:
        raise _wrong(field, "a name, and versions if need be, such as 'numpy>=2'; nothing else.")
    return requirement.name, str(requirement.specifier)


def _described(function: ast.FunctionDef | ast.AsyncFunctionDef, field: str) -> str:
    """Return a function's signature and docstring, as in a stub."""
    documentation = ast.get_docstring(function)
    shown = copy(function)
    shown.decorator_list, shown.body = [], [ast.Pass()]
    try:
        text = ast.unparse(shown).removesuffix("pass").rstrip()
    except (ValueError, RecursionError):  # a default of thousands of digits; nested too deep
        raise _wrong(field, "its signature cannot be written down.") from None
    if documentation:
        text += "\n" + indent(f'"""{documentation}"""', "    ")
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"


def _parsed(source: str, field: str) -> list[ast.stmt]:
    try:
        with _PARSING:
            return ast.parse(source).body
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        raise _wrong(field, f"it is not valid Python: {error.msg}{where}.") from None
    except (ValueError, RecursionError, MemoryError):  # null bytes; nested more than it can read
        raise _wrong(field, "it cannot be read as Python.") from None


def _wrong(field: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{field}: {what}", field=field)


@cache
def _check() -> str:
    """Return the source of the function that checks that all modules are installed."""
    text = (
        files("jupyter_agent_exec.kernels.in_kernel")
        .joinpath("preload_check.py")
        .read_text("utf-8")
    )
    return text[text.index("def ") :]
