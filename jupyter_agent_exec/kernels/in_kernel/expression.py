"""Code of ours that an IPython kernel is given to run, as an expression. Pure.

It runs there in a namespace of its own. It is compiled here where the kernel has the same Python,
since compiling it there takes longer than running it.
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
"""Entry of a table of lines: instructions that are on the line of those before, no column."""

_MOST_UNITS = 8
"""Of an instruction's two bytes, that one entry is for."""

Modules = tuple[str, ...]
"""Names of files beside this one that are run one after the other in one namespace."""


def is_ipython(kernel_info: dict[str, Any]) -> bool:
    """Tell whether a kernel can be given code of ours.

    Parameters
    ----------
    kernel_info
        Content of its `kernel_info_reply`; empty if that is not known.
    """
    return kernel_info.get("implementation") == "ipython"


def expression(
    kernel_info: dict[str, Any], modules: Modules, call: str, given: str | None = None
) -> str:
    """Return an expression that does `call` in what `modules` define.

    Parameters
    ----------
    kernel_info
        Of an IPython kernel.
    given
        A text that `call` knows by this name.
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
    # It finds Python's own functions though others have their names.
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
    """Return code that is all on its first line: most of its size is where its lines begin.

    Each instruction has a line, since Python cannot format a traceback through code without: in the
    kernel, an error below such code would end the thread that logs it.
    Source: CPython, *Objects/locations.md*.
    """
    constants = tuple(_bare(each) if hasattr(each, "co_code") else each for each in code.co_consts)
    units = len(code.co_code) // 2
    lines = b"".join(
        bytes((_SAME_LINE | min(units - first, _MOST_UNITS) - 1, 0))
        for first in range(0, units, _MOST_UNITS)
    )
    return code.replace(co_consts=constants, co_linetable=lines)
