"""Messages between the server and a JupyterLab page over the page's WebSocket. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from ...types import CellId
from ..changes import Change, Expected, Notebook

# -- from a page -----------------------------------------------------------------------------------


class TabState(Struct, frozen=True, kw_only=True):
    """A notebook that a page has open."""

    panel: str
    """Id of the tab within its page."""
    path: str
    collaborative: bool
    """Whether collaboration shares its model. Then the server reaches it there."""
    dirty: bool
    """Whether it has unsaved changes."""
    only_agents: bool
    """Whether all its unsaved changes are from agents."""
    unused_seconds: float
    """Seconds since the user last clicked or typed in it, or opened it."""
    kernel_starting: bool
    """Whether the page is starting a kernel for it."""
    hash: str | None
    """Hash of the file when the page last read or saved it."""


class Announce(Struct, frozen=True, kw_only=True, tag_field="op", tag="announce"):
    """All notebooks that the page has open. Sent whenever one of them changes."""

    notebooks: list[TabState]


class Answer(Struct, frozen=True, kw_only=True, tag_field="op", tag="answer"):
    """The outcome of a request."""

    id: int
    status: Literal["ok", "moved", "gone", "read_only", "failed"]
    """``ok``: done. ``moved``: an expectation does not hold. ``gone``: the notebook is not open.
    ``read_only``: it cannot be saved. ``failed``: an error. After ``moved``, ``gone`` and
    ``read_only``, nothing was changed."""
    notebook: Notebook | None = None
    """The notebook, after `Read`. Each cell has the id by which the tab knows it."""
    message: str | None = None
    """The error, for the log."""


FromPage = Announce | Answer

# -- from the server -------------------------------------------------------------------------------


class ToTab(Struct, frozen=True, kw_only=True, tag_field="op"):
    """Base of the requests to a tab. The page of the tab sets `id`, the tab sets `panel`."""

    id: int = 0
    panel: str = ""


class Read(ToTab, frozen=True, kw_only=True, tag="read"):
    """Read the notebook, unsaved edits included."""


class Apply(ToTab, frozen=True, kw_only=True, tag="apply"):
    """Make changes, all or none."""

    changes: list[Change]
    expected: Expected


class Name(ToTab, frozen=True, kw_only=True, tag="name"):
    """Know cells by other ids."""

    names: dict[str, CellId]
    """The new ids by the old ones."""


class Save(ToTab, frozen=True, kw_only=True, tag="save"):
    """Save the notebook if all its unsaved changes are from agents."""


class Reload(ToTab, frozen=True, kw_only=True, tag="reload"):
    """Reload the file if it has changed and the page has no unsaved changes."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(FromPage)


def encode(message: ToTab) -> bytes:
    """Encode a request to a tab."""
    return _encoder.encode(message)


def decode(data: str | bytes) -> FromPage:
    """Decode a message of a page.

    Raises
    ------
    msgspec.MsgspecError
        The message is not valid.
    """
    message: FromPage = _decoder.decode(data)
    return message
