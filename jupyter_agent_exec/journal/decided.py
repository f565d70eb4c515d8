"""What people decided about an execution: whether it may run, and what of it its notebook shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from ..models import Approval, Document, Review
from ..records import (
    Accepted,
    ApprovalAsked,
    Approved,
    CellDiscarded,
    CellRestored,
    CellWritten,
    Entry,
    Finished,
    OutputsAccepted,
    OutputsDiscarded,
    OutputsRestored,
    Rejected,
    Reviewed,
)
from ..types import Digest, Status

ReadText = Callable[[Digest], str]
"""Gives a payload's text; empty if it is gone."""


def review_of(entry: Reviewed) -> Review | None:
    """Return what an entry says; None if it takes back what was said."""
    if entry.verdict is None and not entry.comment:
        return None
    return Review(
        verdict=entry.verdict,
        comment=entry.comment,
        by=entry.by.named,
        at=entry.at,
        whole_session=entry.execution_id is None,
    )


class Asking:
    """An execution's way through approval, entry by entry."""

    def __init__(self) -> None:
        self._accepted: Accepted | None = None
        self._asked: ApprovalAsked | None = None
        self._decided: Approved | Rejected | None = None
        self._ended: Status | None = None
        self.source: Digest | None = None
        """Of what is to run, or ran."""

    def take(self, entry: Entry) -> None:
        """Take the next entry of the execution."""
        if isinstance(entry, Accepted):
            self._accepted, self.source = entry, entry.source
        elif isinstance(entry, ApprovalAsked):
            self._asked, self._decided, self.source = entry, None, entry.source
        elif isinstance(entry, (Approved, Rejected)):
            self._decided = entry
            if isinstance(entry, Approved):
                self.source = entry.source
        elif isinstance(entry, Finished):
            self._ended = entry.status

    def approval(self, read: ReadText) -> Approval | None:
        """Return what became of it; None if it did not ask."""
        asked, decided = self._asked, self._decided
        if asked is None or self._accepted is None:
            return None
        changed = isinstance(decided, Approved) and self.source != self._accepted.source
        return Approval(
            status=self._status(),
            asked_at=asked.at,
            expires_at=asked.expires_at,
            kernel_id=asked.kernel_id,
            incarnation=asked.incarnation,
            before=None if asked.before is None else read(asked.before),
            decided_at=None if decided is None else decided.at,
            decided_by=None if decided is None else decided.by.named,
            reason=decided.reason if isinstance(decided, Rejected) else None,
            asked_source=read(self._accepted.source) if changed else None,
        )

    def _status(self) -> Literal["asked", "approved", "rejected", "expired", "withdrawn"]:
        if self._decided is not None:
            return "approved" if isinstance(self._decided, Approved) else "rejected"
        if self._ended is None:
            return "asked"
        return "expired" if self._ended == "rejected" else "withdrawn"  # by nobody


class Shown:
    """What stands of an execution in its notebook, entry by entry."""

    def __init__(self) -> None:
        self._written: Document | None = None
        self._undecided: Document | None = None
        self._decisions: list[Literal["accepted", "discarded"]] = []
        self._discarded = False

    def take(self, entry: Entry) -> None:
        """Take the next entry of the execution."""
        if isinstance(entry, CellWritten):
            self._written = entry.document
            if not self._decisions and not self._discarded:
                self._undecided = entry.document
        elif isinstance(entry, (OutputsAccepted, OutputsDiscarded)):
            self._decide("accepted" if isinstance(entry, OutputsAccepted) else "discarded")
        elif isinstance(entry, OutputsRestored) and self._decisions:
            self._decisions.pop()
            self._take_back()
        elif isinstance(entry, CellDiscarded):
            self._discarded = True
        elif isinstance(entry, CellRestored):
            self._discarded = False
            self._take_back()

    def document(self) -> Document | None:
        """Return what stands there; None if it has no cell."""
        document = self._written
        if document is not None and self._decisions:
            document = replace(document, outputs=self._decisions[-1])
        if document is not None and self._discarded:
            document = replace(document, status="discarded")
        return document

    def _decide(self, what: Literal["accepted", "discarded"]) -> None:
        if not self._decisions or self._decisions[-1] != what:
            self._decisions.append(what)

    def _take_back(self) -> None:
        """Let stand what was written last before anybody decided anything."""
        written, undecided = self._written, self._undecided
        if written is None or undecided is None:
            return
        if not self._decisions:
            written = replace(written, outputs=undecided.outputs)
        if written.status == "discarded":
            written = replace(written, status=undecided.status)
        self._written = written
