"""Ask whoever sits at the terminal what code in a kernel asks for."""

from __future__ import annotations

import sys
from getpass import getpass

from ..client.display import one_line
from ..models import Input
from .console import Console

PROMPT_WIDTH = 500


def ask_at_terminal(asked: Input, console: Console) -> str:
    """Return what is typed; the prompt goes to standard error.

    Raises
    ------
    KeyboardInterrupt
        Nothing more can be typed, which ends what asks.
    """
    prompt = one_line(asked.prompt, PROMPT_WIDTH)
    console.out.flush()
    if asked.password and sys.stdin.isatty():
        try:
            return getpass(f"{prompt} ", stream=console.err)
        except EOFError:
            raise KeyboardInterrupt from None
    console.err.write(f"{prompt} ")
    console.err.flush()
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.removesuffix("\n")
