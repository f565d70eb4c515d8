"""Returns the entries of a journal that are not part of an execution's cell as events. Pure."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

from ..models import JournalEvent, marked
from ..records import (
    By,
    EditsDecided,
    Entry,
    Erased,
    JournalEntry,
    Mark,
    NotebookMoved,
    PlainEntry,
    Reviewed,
)
from ..text.counts import counted
from ..types import Digest
from .blobs import BlobStore
from .lines import Line

MAX_CHARACTERS: Final = 500
"""Maximum number of characters of an event's text."""
_DIGEST: Final = re.compile("[0-9a-f]{64}")


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
    said = _text_of(entry)
    if (named := _marked(entry, Mark.EVENT_PAYLOAD)) is not None:
        data = store.read(line, Digest(named))
        said = None if data is None else data.decode("utf-8", "replace")
    return JournalEvent(
        n=entry.n,
        type=_type_of(entry),
        at=entry.at,
        by=_name_of(entry.by),
        by_kind=entry.by.kind,
        after_seq=last_seq,
        execution_id=getattr(entry, "execution_id", None),
        text=None if said is None else _one_line(said) or None,
    )


def _marked(entry: Entry, mark: Mark) -> str | None:
    """Return the value of the field with a mark; None if there is none."""
    return next((getattr(entry, name) for name in marked(type(entry), mark)), None)


def _text_of(entry: JournalEntry) -> str | None:
    if isinstance(entry, NotebookMoved):
        return f"{entry.before} → {entry.path}"
    if isinstance(entry, EditsDecided):
        return _decisions(entry)
    if isinstance(entry, Erased):
        return ": ".join(
            part for part in (counted(entry.payloads, "payload"), entry.reason) if part
        )
    if isinstance(entry, PlainEntry):
        return _facts(entry)
    if isinstance(entry, Reviewed):
        return ": ".join(part for part in (entry.verdict, entry.comment) if part)
    return _marked(entry, Mark.EVENT_TEXT)


def _facts(entry: PlainEntry) -> str:
    """Return the fields of an entry whose kind is not known, without those that all have."""
    common = (*PlainEntry.__struct_fields__, "by")
    facts = {name: value for name, value in entry.fields.items() if name not in common}
    return ", ".join(
        f"{name}: {value}"
        for name, value in facts.items()
        if isinstance(value, str | int | float) and not _DIGEST.fullmatch(str(value))
    )


def _decisions(entry: EditsDecided) -> str:
    """Return how many edits were kept, rejected, obsolete and open again."""
    counts = Counter(decision.status for decision in entry.decisions)
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def _type_of(entry: JournalEntry) -> str:
    if isinstance(entry, PlainEntry):
        return entry.type
    tag: Any = entry.__struct_config__.tag
    return str(tag)


def _name_of(by: By) -> str | None:
    name = by.display_name or by.username
    if by.kind == "agent" and name is not None:
        return f"an agent on behalf of {name}"  # the user did not act
    return name


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * MAX_CHARACTERS].split())
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"
