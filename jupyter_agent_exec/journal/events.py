"""Returns the entries of a journal that are not part of an execution's cell as events. Pure."""

from __future__ import annotations

from typing import Final

from ..models import JournalEvent, marked
from ..records import By, Mark
from .blobs import BlobStore
from .lines import Line

MAX_CHARACTERS: Final = 500
"""Maximum number of characters of an event's text."""


def event_of(line: Line, last_seq: int, store: BlobStore) -> JournalEvent | None:
    """Return a line as an event; None if it is not an event.

    Parameters
    ----------
    line
        The line.
    last_seq
        The `seq` of the last execution that was accepted before the line; 0 if there is none.
    store
        The payloads of its session.
    """
    entry = line.entry
    if not entry.is_event:
        return None
    said = entry.event_text
    for name in marked(type(entry), Mark.EVENT_PAYLOAD):
        named = getattr(entry, name)
        data = None if named is None else store.read(line, named)
        said = None if data is None else data.decode("utf-8", "replace")
    return JournalEvent(
        n=entry.n,
        type=entry.kind,
        at=entry.at,
        by=_name_of(entry.by),
        by_kind=entry.by.kind,
        after_seq=last_seq,
        execution_id=getattr(entry, "execution_id", None),
        text=None if said is None else _one_line(said) or None,
    )


def _name_of(by: By) -> str | None:
    name = by.display_name or by.username
    if by.kind == "agent" and name is not None:
        return f"an agent on behalf of {name}"  # the user did not act
    return name


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * MAX_CHARACTERS].split())
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"
