"""What the server and a JupyterLab page say to each other over the page's WebSocket. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from ..changes import Change, Expected, Notebook

# -- a page says -----------------------------------------------------------------------------------


class TabState(Struct, frozen=True, kw_only=True):
    """A notebook that a page has open."""

    panel: str
    """Names it within its page."""
    path: str
    collaborative: bool
    """Whether its model is shared through the server; then it is reached there."""
    writable: bool
    dirty: bool
    """Whether there is anything in it that its file has not."""
    only_agents: bool
    """Whether all of that is from agents."""
    unused_seconds: float
    """Since the person last clicked or typed in it, or opened it."""
    kernel_id: str | None
    kernel_starting: bool
    """Whether the page is about to have a kernel for it."""
    hash: str | None
    """Of the file's contents, as the page last read or saved it."""


class Announce(Struct, frozen=True, kw_only=True, tag_field="op", tag="announce"):
    """All notebooks that the page has open, whenever something about one of them changes."""

    notebooks: list[TabState]


class Answer(Struct, frozen=True, kw_only=True, tag_field="op", tag="answer"):
    """How a request went."""

    id: int
    status: Literal["ok", "moved", "gone", "read_only", "failed"]
    """Done; what was expected does not hold; the notebook is not open any more; it cannot be
    saved; it went wrong. In the second to fourth case nothing was changed."""
    notebook: Notebook | None = None
    """What was read."""
    message: str | None = None
    """What went wrong, for the log."""


FromPage = Announce | Answer

# -- the server says -------------------------------------------------------------------------------


class Read(Struct, frozen=True, kw_only=True, tag_field="op", tag="read"):
    """Tell what the notebook is now, unsaved edits included."""

    id: int
    panel: str


class Apply(Struct, frozen=True, kw_only=True, tag_field="op", tag="apply"):
    """Make changes, all or none."""

    id: int
    panel: str
    changes: list[Change]
    expected: Expected


class Save(Struct, frozen=True, kw_only=True, tag_field="op", tag="save"):
    """Save the notebook if all that its file has not is from agents."""

    id: int
    panel: str


class Reload(Struct, frozen=True, kw_only=True, tag_field="op", tag="reload"):
    """Read the file again if it has changed and the page has nothing unsaved."""

    id: int
    panel: str


ToPage = Read | Apply | Save | Reload

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(FromPage)


def encode(message: ToPage) -> bytes:
    """Return a message as a page reads it."""
    return _encoder.encode(message)


def decode(data: str | bytes) -> FromPage:
    """Return what a page says.

    Raises
    ------
    msgspec.MsgspecError
        If it is nothing that a page of ours says.
    """
    message: FromPage = _decoder.decode(data)
    return message
