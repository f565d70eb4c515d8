"""The code in what a language model writes, and other text."""

from __future__ import annotations

import ast
import re
from typing import Final

import json5
from IPython.core.inputtransformer2 import TransformerManager

from ...terminal import clean

_FENCED: Final = re.compile(r"```[^\n]*\n(.+?)```", re.DOTALL)
_SPAN: Final = re.compile(r"`([^`]*)`")


def extract_code(text: str) -> str:
    """Return the code in a text.

    It is the first fenced block, else the first span in single backticks, else what a JSON object
    has under ``code``, else the whole.
    """
    marked = _FENCED.search(text) or _SPAN.search(text)
    return _code_in_json(text) if marked is None else marked.group(1)


def code_in(command: str) -> str:
    """Return the code to run: what is Python, or IPython's, is left alone with its backticks."""
    return _code_in_json(command) if _is_python(command) else extract_code(command)


def escape_ansi(line: str) -> str:
    """Return a text without its escape sequences."""
    return clean(line)


def get_multiline_input(hint: str) -> str:
    """Read lines from standard input until it ends, after a hint, and return them as one text."""
    print(hint)  # noqa: T201 - it asks a person in a terminal
    print("Enter begins a new line, Ctrl-D ends the input.")  # noqa: T201
    lines = []
    while True:
        try:
            lines.append(input())
        except EOFError:
            return "\n".join(lines)


def _code_in_json(text: str) -> str:
    # Python has the same braces: the object that a model wrote is no code of its own. To read what
    # is no object, however long, would take json5 a while.
    if not text.lstrip().startswith(("{", "/")):
        return text
    try:
        code = json5.loads(text)["code"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return text
    return code if isinstance(code, str) else text


def _is_python(text: str) -> bool:
    try:
        transform = TransformerManager().transform_cell  # type: ignore[no-untyped-call]
        ast.parse(transform(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
