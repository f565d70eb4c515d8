"""Installations in code of agents: they are to say little."""

from __future__ import annotations

import re
from typing import Final

_MAGIC: Final = re.compile(r"^([!%] ?pip install)(?!.*-qqq)", re.MULTILINE)
_COMMAND: Final = re.compile(r"^(pip install)(?!.*-qqq)", re.MULTILINE)


def quiet(source: str, *, is_shell: bool = False) -> str:
    """Return code whose `pip install` prints nothing unless it fails.

    Parameters
    ----------
    is_shell
        Whether the code is a shell's, where it is a command too.
    """
    source = _MAGIC.sub(r"\1 -qqq", source)
    return _COMMAND.sub(r"\1 -qqq", source) if is_shell else source
