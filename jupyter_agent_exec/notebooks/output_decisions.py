"""What people decide about an execution's outputs in the notebook: accept them, or discard them.

A decision is recorded before the notebook is changed, and is what later rewrites of the cell go by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from msgspec.structs import replace

from ..auth.scopes import Caller
from ..errors import CellNotFound, DocumentChanged, NotFinished
from ..models import Document
from ..records import (
    ExecutionRecord,
    OutputsAccepted,
    OutputsDiscarded,
    OutputsRestored,
    timestamp,
)
from ..types import CellId
from .applying import id_of, joined
from .changes import Expected, Moved, Notebook
from .decisions import TRIES, DecisionsBase, no_cell
from .rewritten_cells import Decision, Rewritten, decidable, rewritten

_ENTRIES: dict[Decision, type[OutputsAccepted | OutputsDiscarded | OutputsRestored]] = {
    "accepted": OutputsAccepted,
    "discarded": OutputsDiscarded,
    "restored": OutputsRestored,
}


class OutputDecisions(DecisionsBase):
    """Accepts and discards outputs, and takes that back."""

    async def accept(self, id: str, caller: Caller) -> ExecutionRecord:
        """Bring an execution's original outputs into its cell, and trust that.

        Raises
        ------
        ExecutionNotFound, NotFinished, CellNotFound, DocumentChanged, NotebookNotFound,
        DocumentUnwritable, HistoryUnavailable
        """
        return await self._decide(id, "accepted", caller)

    async def discard(self, id: str, caller: Caller) -> ExecutionRecord:
        """Take an execution's outputs out of its cell; accepting them brings them back.

        Raises
        ------
        ExecutionNotFound, NotFinished, CellNotFound, DocumentChanged, NotebookNotFound,
        DocumentUnwritable, HistoryUnavailable
        """
        return await self._decide(id, "discarded", caller)

    async def restore(self, id: str, caller: Caller) -> ExecutionRecord:
        """Take back the last decision about an execution's outputs; what was before comes back.

        Raises
        ------
        ExecutionNotFound, NotFinished, CellNotFound, DocumentChanged, NotebookNotFound,
        DocumentUnwritable, HistoryUnavailable
        """
        return await self._decide(id, "restored", caller)

    async def accept_all(self, session_id: str, caller: Caller) -> list[ExecutionRecord]:
        """Accept the outputs of a session of which something is held, where the cell still is.

        Raises
        ------
        SessionNotFound, NotebookNotFound, DocumentUnwritable, HistoryUnavailable
        """
        held = await self._all(session_id, lambda document: document.outputs == "held")
        return await self._each(held, self.accept, caller)

    async def discard_all(self, session_id: str, caller: Caller) -> list[ExecutionRecord]:
        """Discard the outputs of a session about which nothing was decided, as `accept_all` does.

        Raises
        ------
        SessionNotFound, NotebookNotFound, DocumentUnwritable, HistoryUnavailable
        """
        undecided = await self._all(
            session_id, lambda document: document.outputs in ("inert", "held")
        )
        with_outputs = [record for record in undecided if record.outputs]
        return await self._each(with_outputs, self.discard, caller)

    async def _each(
        self,
        records: Iterable[ExecutionRecord],
        decide: Callable[[str, Caller], Awaitable[ExecutionRecord]],
        caller: Caller,
    ) -> list[ExecutionRecord]:
        decided: list[ExecutionRecord] = []
        for record in records:
            try:
                decided.append(await decide(record.id, caller))
            except (NotFinished, CellNotFound, DocumentChanged):
                continue  # it is a person's by now
        return decided

    async def _decide(self, id: str, what: Decision, caller: Caller) -> ExecutionRecord:
        record = await self._finished(id)
        async with self._placing.lock(record.id):  # else its cell is still being written
            record = await self._sessions.execution(id)
            session = await self._sessions.session(record.session_id)
            if record.document is None or session.path is None:
                raise no_cell(record)
            document = replace(record.document, path=session.path, reason=None)
            cell_id, notebook = await self._look(session.path, record)
            entry = _ENTRIES[what](at=timestamp(), by=caller.by(), execution_id=record.id)
            await self._record(session.id, [entry])
            if what == "restored":  # to what was decided before, if anything was
                record = await self._sessions.execution(id)
            as_decided = await rewritten(record, _decision(what, record))
            await self._write(document, cell_id, notebook, record, as_decided)
            return await self._sessions.execution(id)

    async def _look(self, path: str, record: ExecutionRecord) -> tuple[CellId, Notebook]:
        _, notebook = await self._placing.documents.read(path)
        return decidable(notebook, record), notebook

    async def _write(
        self,
        document: Document,
        id: CellId,
        notebook: Notebook,
        record: ExecutionRecord,
        as_decided: Rewritten,
    ) -> None:
        """Change the cell, which a person may be changing too."""
        for _ in range(TRIES):
            expected = Expected(cells={id: ("code", _source(notebook, id))})
            try:
                via = await self._placing.documents.apply(
                    document.path, as_decided.changes(id), expected
                )
            except Moved:
                _, notebook = await self._look(document.path, record)
                continue
            written = replace(document, via=via, status="written", outputs=as_decided.what)
            await self._tell(record, written)
            return
        raise DocumentChanged("The cell is being changed; try again.", cell_id=id)


def _decision(what: Decision, record: ExecutionRecord) -> Decision:
    """Return how a cell is to be after a decision that is recorded."""
    before = None if record.document is None else record.document.outputs
    if what == "restored" and (before == "accepted" or before == "discarded"):
        return before
    return what


def _source(notebook: Notebook, id: CellId) -> str:
    return next(joined(cell["source"]) for cell in notebook.cells if id_of(cell) == id)
