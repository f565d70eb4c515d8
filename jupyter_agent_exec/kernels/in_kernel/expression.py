"""Turns our code into an expression that an IPython kernel can evaluate. Pure.

The code runs in its own namespace in the kernel. It is compiled here if the kernel has the same
version of Python, because compiling it in the kernel would take longer than running it.
"""

from __future__ import annotations

import base64
import marshal
import sys
import zlib
from functools import cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

_SAME_LINE = 0x80 | 13 << 3
"""Entry of a line table: the instructions are on the same line as the previous ones, no column."""

_MOST_UNITS = 8
"""The most instructions, of two bytes each, that one entry covers."""

Modules = tuple[str, ...]
"""Names of files beside this one that are run one after the other in one namespace."""


def is_ipython(kernel_info: dict[str, Any]) -> bool:
    """Return whether a kernel can run our code.

    Parameters
    ----------
    kernel_info
        Content of its `kernel_info_reply`; empty if unknown.
    """
    return kernel_info.get("implementation") == "ipython"


def expression(
    kernel_info: dict[str, Any], modules: Modules, call: str, given: str | None = None
) -> str:
    """Return an expression that evaluates `call` in a namespace with the contents of `modules`.

    Parameters
    ----------
    kernel_info
        Content of the `kernel_info_reply` of an IPython kernel.
    given
        A text that `call` can use under this name.
    """
    language = kernel_info.get("language_info") or {}
    version = str(language.get("version", "")).split(".")[:2]
    is_like_ours = version == [str(part) for part in sys.version_info[:2]]
    namespace = "{}" if given is None else f"{{'given': {given!r}}}"
    if is_like_ours:
        body = (
            'b["exec"](i("marshal").loads(i("zlib").decompress('
            f'i("binascii").a2b_base64("{_packed(modules, call)}"))), {namespace})'
            f' if i("importlib.util").util.MAGIC_NUMBER == {MAGIC_NUMBER!r} else None'
        )
    else:
        body = f'b["exec"]({_source(modules, call)!r}, {namespace})'
    # It finds Python's own functions even if the user has redefined their names.
    return f'(lambda b: (lambda i: {body})(b["__import__"]))((lambda: 0).__builtins__)'


@cache
def _source(modules: Modules, call: str) -> str:
    folder = Path(__file__).parent
    texts = [(folder / f"{name}.py").read_text(encoding="utf-8") for name in modules]
    future = "from __future__ import annotations\n"  # only at the beginning
    return "\n".join([future, *(text.replace(future, "") for text in texts), call, ""])


@cache
def _packed(modules: Modules, call: str) -> str:
    code = _bare(compile(_source(modules, call), "<look>", "exec", optimize=2))
    return base64.b64encode(zlib.compress(marshal.dumps(code), 9)).decode()


def _bare(code: Any) -> Any:
    """Return code whose instructions are all on its first line, which makes it much smaller.

    Each instruction needs a line, because Python cannot format a traceback through code without
    lines. In the kernel, an error below such code would end the thread that logs it.
    Source: CPython, *Objects/locations.md*.
    """
    constants = tuple(_bare(each) if hasattr(each, "co_code") else each for each in code.co_consts)
    units = len(code.co_code) // 2
    lines = b"".join(
        bytes((_SAME_LINE | min(units - first, _MOST_UNITS) - 1, 0))
        for first in range(0, units, _MOST_UNITS)
    )
    return code.replace(co_consts=constants, co_linetable=lines)
