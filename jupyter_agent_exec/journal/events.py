"""Returns the entries of a journal that are not part of an execution's cell as events. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from ..models import JournalEvent
from ..records import (
    Accepted,
    ApprovalAsked,
    ApprovalGranted,
    By,
    CellDiscarded,
    CellRerun,
    CellRestored,
    CellWritten,
    Closed,
    Dispatched,
    DisplayUpdated,
    EditsDecided,
    EditsDeciding,
    EditsProposed,
    EnvironmentFound,
    Erased,
    FileDeleted,
    FilesWritten,
    FileUnchanged,
    FileUploaded,
    Finished,
    InputAsked,
    InputGiven,
    Interrupted,
    JournalEntry,
    KernelEnded,
    KernelInspected,
    KernelStarted,
    LateOutput,
    NotebookCreated,
    NotebookEditAsked,
    NotebookEdited,
    NotebookEditRefused,
    NotebookMoved,
    Opened,
    OutputsShown,
    PackagesChanged,
    PersonRan,
    Rejected,
    RerunBegun,
    RestoreBegun,
    RestoreEnded,
    Reviewed,
)
from ..text import counted
from ..types import Digest
from .lines import Line
from .outputs import ReadBlob
from .reruns import DIFFERENCES

MAX_CHARACTERS: Final = 500
"""Maximum number of characters of an event's text."""

_IN_CELLS: Final = (
    Opened,
    EnvironmentFound,
    Accepted,
    ApprovalAsked,
    Dispatched,
    Finished,
    FilesWritten,
    LateOutput,
    DisplayUpdated,
    CellWritten,
    EditsDeciding,
)
"""Types of entries that an execution's cell or the session itself shows."""

_WITH_PATHS: Final = (
    NotebookCreated,
    NotebookEditAsked,
    NotebookEdited,
    EditsProposed,
    CellDiscarded,
    CellRestored,
    FileUploaded,
    FileDeleted,
    FileUnchanged,
)
"""Types of entries whose text is the path of the notebook or file."""


def event_of(line: Line, last_seq: int, read_blob: ReadBlob) -> JournalEvent | None:
    """Return a line as an event; None if it is not an event.

    Parameters
    ----------
    line
        The line.
    last_seq
        The `seq` of the last execution that was accepted before the line; 0 if there is none.
    read_blob
        Reads a payload that is not on the line.
    """
    entry = line.entry
    if isinstance(entry, _IN_CELLS):
        return None
    said = _text_of(entry)
    if (named := _said_in(entry)) is not None:
        said = line.payloads.get(named)
        if said is None and (data := read_blob(named)) is not None:
            said = data.decode("utf-8", "replace")
    if isinstance(entry, CellRerun):
        said = _comparison(entry, said)
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


def _said_in(entry: JournalEntry) -> Digest | None:
    """Return the digest of the payload that is an entry's text."""
    if isinstance(entry, PersonRan):
        return entry.source
    if isinstance(entry, KernelInspected):
        return entry.code
    if isinstance(entry, InputAsked):
        return entry.prompt
    if isinstance(entry, CellRerun):
        return entry.differences
    if isinstance(entry, PackagesChanged):
        return entry.packages
    if isinstance(entry, RestoreEnded):
        return entry.variables
    return entry.value if isinstance(entry, InputGiven) else None


def _text_of(entry: JournalEntry) -> str | None:
    if isinstance(entry, (KernelStarted, Interrupted, Rejected, Closed)):
        return entry.reason
    if isinstance(entry, (KernelEnded, NotebookEditRefused)):
        return entry.message
    if isinstance(entry, NotebookMoved):
        return f"{entry.before} → {entry.path}"
    if isinstance(entry, EditsDecided):
        return _decisions(entry)
    if isinstance(entry, _WITH_PATHS):
        return entry.path
    if isinstance(entry, ApprovalGranted):
        return entry.until
    if isinstance(entry, (RerunBegun, RestoreBegun)):
        return entry.of
    if isinstance(entry, OutputsShown):
        return "on" if entry.always else "off"
    if isinstance(entry, Erased):
        return ": ".join(
            part for part in (counted(entry.payloads, "payload"), entry.reason) if part
        )
    if isinstance(entry, Reviewed):
        return ": ".join(part for part in (entry.verdict, entry.comment) if part)
    return None


def _comparison(entry: CellRerun, differences: str | None) -> str:
    """Return the verdict about a cell that ran again, with what differs."""
    found = [] if differences is None else DIFFERENCES.decode(differences)
    sentences = " ".join(filter(None, (entry.reason, *(each.what for each in found))))
    return ": ".join(filter(None, (entry.verdict.replace("_", " "), sentences)))


def _decisions(entry: EditsDecided) -> str:
    """Return how many edits were kept, undone and obsolete."""
    counts = Counter(decision.status for decision in entry.decisions)
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def _type_of(entry: JournalEntry) -> str:
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
