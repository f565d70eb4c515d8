"""Exports a session as a notebook for somebody who lacks the record, and checks that it runs.

The check is a trial in a new kernel, so it changes nothing. It is recorded as a session of its own.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from ..auth.scopes import Caller
from ..errors import AgentExecError
from ..journal.notebook import Foreword, in_markdown
from ..kernels.runs import Names, names_of
from ..models import Agent, Execute, OpenSession, ScratchTarget, Session
from ..records import ExecutionRecord, timestamp
from ..sessions.manager import AgentSessions
from ..sessions.restores import REPEATED
from ..text.counts import counted
from ..text.redaction import Redactor
from ..types import FINAL_STATUSES
from .changes import execution_in
from .documents import Notebooks

CHECK_SECONDS: Final = 120.0
"""How long the check may take, with the start of its kernel."""

_GIVEN: Final = frozenset({*dir(builtins), "In", "Out", "get_ipython", "display", "exit", "quit"})
"""Names that IPython defines; those that begin with an underscore are left out too."""
_MOST_NAMED: Final = 20


class Before(NamedTuple):
    """The user's cells that a session needs."""

    sources: list[str]
    missing: list[str]
    """Names that the code reads, and that no cell defines."""


class SharedNotebooks:
    """Exports sessions as notebooks to share.

    Parameters
    ----------
    redactor
        Replaces the secrets in the user's cells, which are not in the record.
    """

    def __init__(self, sessions: AgentSessions, documents: Notebooks, redactor: Redactor) -> None:
        self._sessions = sessions
        self._documents = documents
        self._redactor = redactor

    async def export(self, id: str, caller: Caller) -> Iterator[str]:
        """Return the text of the notebook, in pieces; reading a piece blocks.

        Raises
        ------
        SessionNotFound, HistoryUnavailable
        """
        history = self._sessions.history
        session = await history.session(id)
        records = [record async for record in history.all_executions(id)]
        shown = [each for each in records if _is_shown(each)]
        before, told = await self._before(session, records, shown)
        failed = sum(each.status == "error" for each in shown)
        if failed:
            told.append(f"Folded: {counted(failed, 'execution')} that failed.")
        left_out = sum(not each.trial for each in records) - len(shown)
        if left_out:
            told.append(f"Left out: {counted(left_out, 'execution')} stopped, not run, or undone.")
        run = [(source, False) for source in before.sources]
        run += [(each.source, each.status == "error") for each in shown]
        checked = await self._check(session, records, run, caller)
        about = [
            f"“{in_markdown(session.agent.name)}” ran this in the session {session.id}. "
            f"Exported on {timestamp()[:10]}.",
            checked,
            *told,
        ]
        foreword = Foreword(about=about, sources=before.sources, shown={each.id for each in shown})
        return await history.notebook(id, foreword=foreword)

    async def _before(
        self,
        session: Session,
        records: Sequence[ExecutionRecord],
        shown: Sequence[ExecutionRecord],
    ) -> tuple[Before, list[str]]:
        """Return the user's cells that a session needs, and what to tell of them, in Markdown."""
        told: list[str] = []
        cells: list[str] = []
        name = in_markdown(PurePosixPath(session.path or "").name)
        if session.path is not None:
            try:
                cells = await self._users_cells(session.path, records)
            except AgentExecError:
                told.append(f"The notebook {name}, in which the session worked, cannot be read.")
        sources = [each.source for each in shown]
        before = await self._sessions.history.in_thread(cells_before, cells, sources)
        if before.sources:
            number = counted(len(before.sources), "code cell")
            told.append(f"The first {number} are from {name}: the session uses what they define.")
        if before.missing:
            names = ", ".join(f"`{each}`" for each in before.missing[:_MOST_NAMED])
            more = len(before.missing) - _MOST_NAMED
            told.append(
                f"No definition was found of {names}{f' and {more} more' if more > 0 else ''}."
            )
        return before, told

    async def _users_cells(self, path: str, records: Sequence[ExecutionRecord]) -> list[str]:
        """Return the sources of a notebook's code cells, without those of the session."""
        _, notebook = await self._documents.read(path)
        ours = {record.id for record in records}
        return [
            self._redactor.text(cell["source"])[0]
            for cell in notebook.cells
            if cell["cell_type"] == "code" and execution_in(cell) not in ours
        ]

    async def _check(
        self,
        session: Session,
        records: Sequence[ExecutionRecord],
        cells: Sequence[tuple[str, bool]],
        caller: Caller,
    ) -> str:
        """Run all cells in a trial, in a new kernel; return what that showed, in Markdown."""
        names = [each.kernel.name for each in records if each.kernel is not None]
        target = session.target
        cwd = target.cwd if isinstance(target, ScratchTarget) else None
        if session.path is not None:
            cwd = session.path.rpartition("/")[0] or None
        asked = OpenSession(
            agent=Agent(name="export"),
            target=ScratchTarget(kernel_name=names[-1] if names else None, cwd=cwd),
            title=f"Check of the export of {session.id}",
        )
        try:
            opened, _ = await self._sessions.open(asked, caller)
            try:
                request = Execute(
                    source=_run_all(cells), trial=True, wait=0, values={"failed": "_failed"}
                )
                record = await self._sessions.execute(opened.id, request, caller, None)
                record = await self._sessions.history.execution(record.id, CHECK_SECONDS)
            finally:
                await self._sessions.close(opened.id, caller)
        except AgentExecError as error:
            return _not_checked(str(error))
        return _told(record)


def _told(record: ExecutionRecord) -> str:
    """Return in Markdown what the trial of all cells showed."""
    if record.status not in FINAL_STATUSES:
        return _not_checked(f"The trial took longer than {CHECK_SECONDS:g} seconds.")
    value = (record.values or {}).get("failed")
    if record.kernel is None or record.status != "ok" or value is None or value.status != "ok":
        error = record.error
        return _not_checked(record.reason or (error.ename if error else "The trial failed."))
    kernel = f"in an empty kernel ({in_markdown(record.kernel.name)})"
    if not value.json:
        return f"**Checked on {timestamp()[:10]}:** runs from start to end {kernel}."
    number, ename = value.json
    raised = f"code cell {number} raised {ename}"
    if record.seal is not None and record.seal.refused:
        return _not_checked(f"In a trial, which cannot write, connect or start programs, {raised}.")
    return f"**Checked on {timestamp()[:10]}:** does not run {kernel}: {in_markdown(raised)}."


def _not_checked(why: str) -> str:
    return f"**Not checked.** {in_markdown(why)}"


def _run_all(cells: Sequence[tuple[str, bool]]) -> str:
    """Return the source that runs all cells, and leaves in `_failed` which failed."""
    text = files("jupyter_agent_exec.kernels.in_kernel").joinpath("run_all.py").read_text("utf-8")
    return f"{text[text.index('async def ') :]}\n\n_failed = await _run_all({list(cells)!r})\n"


def _is_shown(record: ExecutionRecord) -> bool:
    """Return whether what an execution did was in the kernel."""
    return record.status in REPEATED and not record.trial and record.undone_at is None


def cells_before(cells: Iterable[str], sources: Iterable[str]) -> Before:
    """Return which of a notebook's cells define what sources read that run in order after them.

    It is told from the sources, see `names_of`.
    """
    bound, needed = set(_GIVEN), set[str]()
    later: set[str] = set()
    for names in map(names_of, sources):
        needed |= _read(names) - bound
        later |= names.later
        bound |= _defined(names)
    needed |= later - bound
    known = [(source, names_of(source)) for source in cells]
    chosen: set[int] = set()
    while more := {
        index
        for index, (_, names) in enumerate(known)
        if index not in chosen and not needed.isdisjoint(_defined(names))
    }:
        chosen |= more
        for index in more:
            names = known[index][1]
            needed |= (_read(names) | names.later) - _GIVEN
    found = bound.union(*(_defined(known[index][1]) for index in chosen))
    missing = sorted(name for name in needed - found if not name.startswith("_"))
    return Before([known[index][0] for index in sorted(chosen)], missing)


def _read(names: Names) -> set[str]:
    """Return what a source reads of others; it may define itself what it only may read."""
    return names.reads | (names.may_read - names.may_change)


def _defined(names: Names) -> set[str]:
    return names.may_change.union(names.binds)
