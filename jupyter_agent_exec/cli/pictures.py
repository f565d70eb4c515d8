"""Show an image in a terminal that can: the protocols of kitty and of iTerm2."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

Protocol: TypeAlias = Literal["kitty", "iterm2"]

_KITTY_CHUNK: Final = 4096
_ITERM2_PROGRAMS: Final = frozenset({"iTerm.app", "WezTerm", "mintty", "rio"})
_KITTY_PROGRAMS: Final = frozenset({"ghostty"})
_KITTY_TERMS: Final = frozenset({"xterm-kitty", "xterm-ghostty"})
_MULTIPLEXERS: Final = ("TMUX", "STY")
"""Inside of these, images do not get through."""


def protocol_of(environ: Mapping[str, str]) -> Protocol | None:
    """Return how the terminal with this environment shows images; None if it does not."""
    if any(environ.get(name) for name in _MULTIPLEXERS):
        return None
    program = environ.get("TERM_PROGRAM", "")
    if environ.get("TERM") in _KITTY_TERMS or program in _KITTY_PROGRAMS:
        return "kitty"
    if program in _ITERM2_PROGRAMS or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm2"
    return None


def sequence(protocol: Protocol, mimetype: str, data: bytes) -> str | None:
    """Return what shows the image when written to the terminal; None if it cannot.

    Source: kitty, *Terminal graphics protocol*; iTerm2, *Inline Images Protocol*.
    """
    encoded = base64.b64encode(data).decode()
    if protocol == "kitty":
        return "".join(_kitty(encoded)) + "\n" if mimetype == "image/png" else None
    if mimetype == "image/svg+xml":
        return None
    return f"\x1b]1337;File=inline=1;size={len(data)}:{encoded}\x07\n"


def _kitty(encoded: str) -> Iterator[str]:
    starts = range(0, len(encoded), _KITTY_CHUNK)
    for start in starts:
        control = "a=T,f=100,q=2," if start == 0 else ""
        more = int(start != starts[-1])
        yield f"\x1b_G{control}m={more};{encoded[start : start + _KITTY_CHUNK]}\x1b\\"
