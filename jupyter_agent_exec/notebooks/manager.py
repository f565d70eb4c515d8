"""Lists the notebooks in use, reads their cells, and edits them for agents."""

from __future__ import annotations

from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from msgspec import Meta
from msgspec.structs import replace

from ..auth.access import AccessControl
from ..auth.scopes import Caller
from ..errors import AgentExecError, InvalidRequest
from ..kernels.runs import Runs
from ..models import (
    EditNotebook,
    KernelRunList,
    NotebookCell,
    NotebookCells,
    NotebookEdited,
    NotebookKernel,
    OpenNotebook,
    OpenNotebookList,
    Request,
    Session,
)
from ..records import By, NotebookEditAsked, NotebookEditRefused, Payload, timestamp
from ..records import NotebookEdited as NotebookEditedEntry
from ..sessions.manager import AgentSessions
from ..sessions.session import LiveSession
from ..text.model_text import model_text, output_size, transcript, without_library_frames
from ..types import CellId, ExecutionId, Output, ProposalId, SessionId, Via
from .backends.collaboration import CollaborationBackend
from .backends.tab import OpenTabs, TabBackend
from .changes import Notebook, id_of
from .documents import Notebooks
from .edits import EditPlan, as_json, as_told_edits, notebook_hash, source_hash
from .execution_cells import NotebookWriter
from .proposals import Proposals


class CellsQuery(Request, frozen=True, kw_only=True):
    """How much of a notebook's cells to return."""

    outputs: bool = True
    """Whether to return the text of the cells' outputs."""
    proposed_by: SessionId | None = None
    """Return the cells as they would be if the user kept the open edits of this session."""
    text_limit: Annotated[int, Meta(ge=100, le=1_000_000)] = 10_000
    """Maximum characters of each cell's output. The text says how much is left out."""


class FoundNotebooks(NamedTuple):
    """Notebooks that a search found."""

    notebooks: Sequence[OpenNotebook]
    more: bool
    """Whether there are folders that it did not search."""


MOST_FOLDERS: Final = 200

LARGE = 200_000
"""Characters of a notebook from which on its response is made in a thread."""


class NotebookManager:
    """Reads and edits the notebooks of this server for agents.

    Parameters
    ----------
    kernels
        Returns the kernels of notebooks by contents path.
    runs
        Returns what was seen to run in a kernel; None if nothing was.
    folder
        Returns type and contents path of what is in a folder.
    located
        Returns the contents path for a path that may also be absolute on the server's machine.
    """

    def __init__(
        self,
        notebooks: Notebooks,
        sessions: AgentSessions,
        writer: NotebookWriter,
        collaboration: CollaborationBackend,
        tabs: TabBackend,
        proposals: Proposals,
        *,
        kernels: Callable[[], Awaitable[Mapping[str, NotebookKernel]]],
        runs: Callable[[str], Runs | None],
        folder: Callable[[str], Awaitable[Sequence[tuple[str, str]]]],
        located: Callable[[str], str],
    ) -> None:
        self._notebooks = notebooks
        self._sessions = sessions
        self._writer = writer
        self._collaboration = collaboration
        self._tabs = tabs
        self._proposals = proposals
        self._kernels = kernels
        self._runs = runs
        self._folder = folder
        self._located = located

    async def list(self, caller: Caller, access: AccessControl) -> OpenNotebookList:
        """Return the notebooks in use that a caller may read, by path.

        A notebook is in use if it has a kernel, an agent session or an open document. Its sessions
        are only those that the caller may see.
        """
        kernels = await self._kernels()
        tabs, live = self._tabs.open_notebooks(), set(self._collaboration.paths())
        sessions: dict[str, list[SessionId]] = {}
        for session in (each.record() for each in self._sessions.history.all_open()):
            if session.path is not None and access.sees(caller, session):
                sessions.setdefault(session.path, []).append(session.id)
        paths = sorted({*kernels, *tabs, *live, *sessions})
        paths = [path for path in paths if access.reads(caller, path)]
        return OpenNotebookList(
            notebooks=[
                OpenNotebook(
                    path=path,
                    via=_via(path, tabs.get(path), live),
                    kernel=kernels.get(path),
                    tabs=tabs[path].tabs if path in tabs else 0,
                    unsaved=tabs[path].unsaved if path in tabs else None,
                    session_ids=sessions.get(path, []),
                )
                for path in paths
            ]
        )

    async def find(self, folder: str, caller: Caller, access: AccessControl) -> FoundNotebooks:
        """Return the notebooks in a folder and its subfolders that a caller may read, by path.

        Notebooks in use come first. The search ends after `MOST_FOLDERS` folders.
        """
        folder = self._located(folder).strip("/")
        above = f"{folder}/" if folder else ""
        in_use = [
            notebook
            for notebook in (await self.list(caller, access)).notebooks
            if notebook.path.startswith(above)
        ]
        shown = {notebook.path for notebook in in_use}
        paths: list[str] = []
        waiting = deque([folder])
        for _ in range(MOST_FOLDERS):
            if not waiting:
                break
            for kind, path in await self._folder(waiting.popleft()):
                if kind == "directory":
                    waiting.append(path)
                elif kind == "notebook" and path not in shown and access.reads(caller, path):
                    paths.append(path)
        on_disk = [
            OpenNotebook(
                path=path, via="contents", kernel=None, tabs=0, unsaved=None, session_ids=[]
            )
            for path in sorted(paths)
        ]
        return FoundNotebooks([*in_use, *on_disk], bool(waiting))

    async def outputs(self, path: str, ids: Iterable[CellId]) -> Sequence[Output]:
        """Return the outputs of those of some cells that are in a notebook."""
        _, notebook = await self._notebooks.read(path)
        cells = {id_of(cell): cell for cell in notebook.cells}
        found = [cells[id] for id in ids if id in cells]
        return [output for cell in found for output in cell.get("outputs", ())]

    async def cells(self, path: str, query: CellsQuery, read_on: ReadExecutionOn) -> NotebookCells:
        """Return a notebook's current cells.

        Raises
        ------
        NotebookNotFound, DocumentUnwritable, SessionNotFound, InvalidRequest
        """
        path = self._located(path).strip("/")
        await self._writer.flush(path)
        handle, notebook = await self._notebooks.read(path)
        if query.proposed_by is not None:
            notebook = await self._proposals.proposed(query.proposed_by, path, notebook)
        make = partial(told, path, handle.via, notebook, query, read_on)
        made = await self._made(notebook, make)
        kernel = (await self._kernels()).get(path)
        runs = None if kernel is None else self._runs(kernel.id)
        if runs is None or query.proposed_by is not None:
            return made
        return replace(made, cells=[replace(cell, stale=runs.stale(cell)) for cell in made.cells])

    def runs(self, kernel_id: str) -> KernelRunList:
        """Return what was seen to run in a kernel; raise KernelNotFound if there is none."""
        runs = self._runs(kernel_id)
        return KernelRunList(runs=[] if runs is None else runs.listed())

    async def edit(self, path: str, asked: EditNotebook, caller: Caller) -> NotebookEdited:
        """Edit a notebook's cells, or propose that to the user: all edits, or none.

        Code cells are changed only if the session may run code, and never while an execution waits
        or runs in them. So only approved code runs. The journal records the edits before they are
        made, and then the result.

        Raises
        ------
        SessionNotFound, SessionClosed, InvalidRequest, Paused, ApprovalRequired, CellBusy,
        NotebookNotFound, CellNotFound, DocumentChanged, DocumentUnwritable, HistoryUnavailable
            Nothing was changed.
        """
        path = self._located(path).strip("/")
        session = await self._sessions.history.live_session(asked.session_id)
        _check_target(session.record(), path)
        await self._writer.flush(path)
        proposes = session.gate.edit_mode == "propose"
        check = partial(self._check, session, path, caller, proposes)
        proposal_id: ProposalId | None = None
        if proposes:
            via, planned, proposal_id = await self._proposals.propose(
                session, path, asked, caller, check
            )
        else:
            via, planned = await self._make(session, path, asked, caller, check)
        return NotebookEdited(
            path=path,
            hash=planned.hash,
            via=via,
            cell_ids=planned.cell_ids,
            source_sha256=planned.source_sha256,
            chain=session.record().chain,
            proposal_id=proposal_id,
            decided_edits=session.take_decided_edits(),
        )

    async def _make(
        self,
        session: LiveSession,
        path: str,
        asked: EditNotebook,
        caller: Caller,
        check: Callable[[EditPlan], None],
    ) -> tuple[Via, EditPlan]:
        """Make edits at once, and record them."""
        by = caller.by()
        async with _recorded(session, path, asked, by) as record:

            async def about_to(planned: EditPlan) -> None:
                check(planned)
                await record()

            via, planned = await self._notebooks.edit(path, asked.edits, asked.hash, about_to)
        cells = {**planned.before["cells"], **planned.lost}
        before = Payload.of(as_json({**planned.before, "cells": cells}))
        after = Payload.of(as_json(planned.after))
        entry = NotebookEditedEntry(
            at=timestamp(),
            by=by,
            path=path,
            via=via,
            before=before.digest,
            after=after.digest,
            moved=tuple(planned.moved),
            cleared=tuple(planned.cleared),
        )
        await session.note(entry, [before, after])
        self._writer.settle(path, via)
        return via, planned

    def _check(
        self, session: LiveSession, path: str, caller: Caller, proposes: bool, planned: EditPlan
    ) -> None:
        """Raise an error if the edits may not be made, or proposed, now.

        A proposal needs no approval: the user decides about each cell, and nothing runs.
        """
        what = "An edit of code cells" if planned.is_code else "An edit of the notebook"
        is_code = planned.is_code and not proposes
        self._sessions.admit(session, caller, what, is_code=is_code)
        self._writer.check_free(path, planned.touched)

    async def _made(self, notebook: Notebook, make: Callable[[], NotebookCells]) -> NotebookCells:
        if size(notebook, most=LARGE) < LARGE:
            return make()
        return await self._sessions.history.in_thread(make)


@asynccontextmanager
async def _recorded(
    session: LiveSession, path: str, asked: EditNotebook, by: By
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Yield what records a request, before the notebook changes. Then a refusal is recorded too."""
    is_recorded = False

    async def record() -> None:
        nonlocal is_recorded
        if not is_recorded:
            edits = Payload.of(as_told_edits(asked.edits))
            entry = NotebookEditAsked(
                at=timestamp(), by=by, path=path, purpose=asked.purpose, edits=edits.digest
            )
            await session.write(entry, [edits])
            is_recorded = True

    try:
        yield record
    except AgentExecError as error:
        if is_recorded:
            refused = NotebookEditRefused(
                at=timestamp(), by=by, path=path, code=error.code, message=error.message
            )
            await session.note(refused)
        raise


def _check_target(session: Session, path: str) -> None:
    """Raise InvalidRequest if a session's notebook is not the one at a path."""
    if session.path is None:
        raise InvalidRequest(
            "session_id: the session's target is not a notebook. Open a session in this notebook.",
            field="session_id",
        )
    if session.path != path:
        raise InvalidRequest(
            f"session_id: the session's notebook is {session.path!r}, not {path!r}.",
            field="session_id",
            path=session.path,
        )


def _via(path: str, tabs: OpenTabs | None, live: Collection[str]) -> Via:
    if path in live or (tabs is not None and tabs.collaborative):
        return "collaboration"
    return "contents" if tabs is None else "tab"


ReadExecutionOn: TypeAlias = Callable[[ExecutionId, int], str]
"""Returns instructions to read the rest of an execution's text, from a byte offset."""


def told(
    path: str, via: Via, notebook: Notebook, query: CellsQuery, read_on: ReadExecutionOn
) -> NotebookCells:
    """Return the cells of a notebook for an agent.

    Parameters
    ----------
    read_on
        Returns instructions to read the rest of an execution's text.
    """
    return NotebookCells(
        path=path,
        hash=notebook_hash(notebook.cells),
        via=via,
        cells=[_cell(index, cell, query, read_on) for index, cell in enumerate(notebook.cells)],
    )


def size(notebook: Notebook, *, most: int) -> int:
    """Return the approximate number of characters in a notebook. Stops counting at `most`."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return sum(len(cell["source"]) for cell in notebook.cells) + output_size(outputs, most=most)


def _cell(
    index: int, cell: dict[str, Any], query: CellsQuery, read_on: ReadExecutionOn
) -> NotebookCell:
    ours = cell["metadata"].get("agent_exec")
    ours = ours if isinstance(ours, dict) else {}
    execution_id, agent = ours.get("execution_id"), ours.get("agent")
    agent = agent.get("name") if isinstance(agent, dict) else agent
    execution_id = ExecutionId(execution_id) if isinstance(execution_id, str) else None
    text = transcript(without_library_frames(cell.get("outputs", ()))) if query.outputs else ""
    return NotebookCell(
        id=id_of(cell),
        index=index,
        cell_type=cell["cell_type"],
        source=_encodable(cell["source"]),
        source_sha256=source_hash(cell["source"]),
        execution_count=cell.get("execution_count"),
        text=model_text(
            _encodable(text),
            limit=query.text_limit,
            read_on=None if execution_id is None else partial(read_on, execution_id),
        ),
        execution_id=execution_id,
        agent=agent if isinstance(agent, str) else None,
    )


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which JSON allows and UTF-8 does not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
