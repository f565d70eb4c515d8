"""Expressions with which a server sends our code to an IPython kernel, and calls it there. Pure."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from .resident import TARGET

_BUILTINS: Final = "(lambda: 0).__builtins__"
"""Python's own functions, even if the user has redefined their names."""

RESIDENT: Final = (
    "arrays.py",
    "namespace.py",
    "json_values.py",
    "resident.py",
    "ipykernel_workarounds.py",
)
"""The code that stays in a kernel."""

_SIBLING: Final = re.compile(r"^from \.\w+ import (?:\([^)]*\)|.*)\n", re.MULTILINE)
"""An import from another of these files, which are one namespace in the kernel."""


def is_ipython(kernel_info: dict[str, Any]) -> bool:
    """Return whether a kernel can run our code.

    Parameters
    ----------
    kernel_info
        Content of its `kernel_info_reply`; empty if unknown.
    """
    return kernel_info.get("implementation") == "ipython"


def expression(files: tuple[str, ...], call: str) -> str:
    """Return an expression that runs files, and then `call`, in a namespace of their own.

    Parameters
    ----------
    files
        Their paths, relative to this folder.
    """
    return f'{_BUILTINS}["exec"]({_source(files, call)!r}, {{}})'


def resident_call(function: str, *arguments: str | int) -> str:
    """Return an expression that calls a function of the code that stays in the kernel.

    It fails with a KeyError if the code is not there.
    """
    kernel = f'{_BUILTINS}["__import__"]("IPython").get_ipython().kernel'
    given = ", ".join(map(repr, arguments))
    return f"{kernel}.comm_manager.targets[{TARGET!r}].{function}({given})"


@cache
def _source(files: tuple[str, ...], call: str) -> str:
    folder = Path(__file__).parent
    texts = [(folder / name).read_text(encoding="utf-8") for name in files]
    future = "from __future__ import annotations\n"  # only at the beginning
    texts = [_SIBLING.sub("", text.replace(future, "")) for text in texts]
    return "\n".join([future, *texts, call, ""])
