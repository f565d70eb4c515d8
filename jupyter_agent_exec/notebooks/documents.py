"""How a notebook is reached: by the first way that there is now, and by the next if it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from typing import Final
from uuid import uuid4
from weakref import WeakValueDictionary

from ..errors import DocumentChanged, NotebookNotFound
from ..models import Edit
from ..types import CellId, Digest, Via
from .changes import (
    Backend,
    Change,
    Expected,
    Moved,
    Notebook,
    NotebookHandle,
    Unreachable,
    order_of,
)
from .edits import EditPlan, as_told, notebook_hash, plan, state_of

MAX_PLANS: Final = 10
"""How often edits are planned anew when the notebook moves under them."""

_LONG: Final = 50_000
"""Edits times cells from which on planning would hold up the loop."""


class Notebooks:
    """The person's notebooks, by contents path.

    Parameters
    ----------
    reaches
        In the order in which they are tried: collaboration, an open tab, the contents manager.
    """

    def __init__(self, reaches: Sequence[Backend]) -> None:
        self._reaches = reaches
        self._edited: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def find(self, path: str) -> NotebookHandle:
        """Return the way to a notebook now.

        Raises
        ------
        NotebookNotFound
        """
        async for _, way in self._ways(path):
            return way
        raise _nowhere(path)

    async def read(self, path: str) -> tuple[NotebookHandle, Notebook]:
        """Return a notebook as it is now, and how it was reached.

        Raises
        ------
        NotebookNotFound, DocumentUnwritable
        """
        _, way, notebook = await self._read(path, ())
        return way, notebook

    async def apply(self, path: str, changes: Sequence[Change], expected: Expected) -> Via:
        """Make changes, all or none, and return how the notebook was reached.

        They may be made twice if a way breaks off in the middle, so they must not append to
        outputs; see `Unreachable`.

        Raises
        ------
        Moved, NotebookNotFound, DocumentUnwritable
        """
        async for _, way in self._ways(path):
            try:
                await way.apply(changes, expected)
            except Unreachable:
                continue
            return way.via
        raise _nowhere(path)

    async def edit(
        self,
        path: str,
        edits: Sequence[Edit],
        hash: Digest | None,
        about_to: Callable[[EditPlan], Awaitable[None]],
    ) -> tuple[Via, EditPlan]:
        """Make edits, all or none; return how the notebook was reached, and what was done.

        Parameters
        ----------
        hash
            Of the notebook as it was read; None if whatever it is now will do.
        about_to
            Awaited with what is to be done, before anything is; once more if that changes. What it
            raises keeps it from being done.

        Raises
        ------
        NotebookNotFound, DocumentUnwritable, CellNotFound, DocumentChanged, InvalidRequest
            Nothing was done.
        """
        lock = self._edited.setdefault(path, asyncio.Lock())
        async with lock:
            return await self._edit(path, edits, hash, about_to)

    async def _edit(
        self,
        path: str,
        edits: Sequence[Edit],
        hash: Digest | None,
        about_to: Callable[[EditPlan], Awaitable[None]],
    ) -> tuple[Via, EditPlan]:
        ids: list[CellId] = []
        broken: list[Backend] = []
        unsure: list[EditPlan] = []
        for _ in range(MAX_PLANS):
            reach, way, notebook = await self._read(path, broken)
            for made in unsure:
                if _is_made(made, notebook):
                    return way.via, made
            if hash is not None and hash != notebook_hash(notebook.cells):
                raise DocumentChanged(
                    "hash: the notebook's cells have changed since it was read; nothing was "
                    "changed. Read it again.",
                    field="hash",
                    **as_told(notebook.cells),
                )
            planned = await _plan(notebook, edits, ids)
            await about_to(planned)
            try:
                await way.apply(planned.changes, planned.expected)
            except Moved:
                continue
            except Unreachable:
                broken.append(reach)
                unsure.append(planned)
                continue
            return way.via, planned
        raise DocumentChanged(
            f"The notebook changed {MAX_PLANS} times while it was to be edited; nothing was "
            "changed. Try again.",
            **as_told(notebook.cells),
        )

    async def _read(
        self, path: str, broken: Collection[Backend]
    ) -> tuple[Backend, NotebookHandle, Notebook]:
        async for reach, way in self._ways(path, broken):
            try:
                return reach, way, await way.read()
            except Unreachable:
                continue
        raise _nowhere(path)

    async def _ways(
        self, path: str, broken: Collection[Backend] = ()
    ) -> AsyncIterator[tuple[Backend, NotebookHandle]]:
        for reach in self._reaches:
            way = None if reach in broken else await reach.find(path)
            if way is not None:
                yield reach, way


async def _plan(notebook: Notebook, edits: Sequence[Edit], ids: list[CellId]) -> EditPlan:
    """Return a plan; planned again, the same cells get the same ids.

    Then a way that broke off, and makes the plan after all, does not put them a second time.
    """
    new_id = _replayed(ids).__next__
    if len(edits) * len(notebook.cells) < _LONG:
        return plan(notebook, edits, new_id)
    return await asyncio.to_thread(plan, notebook, edits, new_id)


def _replayed(ids: list[CellId]) -> Iterator[CellId]:
    index = 0
    while True:
        if index == len(ids):
            ids.append(CellId(uuid4().hex[:12]))
        yield ids[index]
        index += 1


def _is_made(planned: EditPlan, notebook: Notebook) -> bool:
    """Whether a plan of which it is not known was made, as far as the notebook tells.

    One that adds cells is known by them, whatever else a person has done meanwhile.
    """
    added = set(planned.after["order"]).difference(planned.before["order"])
    if not added.isdisjoint(order_of(notebook.cells)):
        return True
    touched = {*planned.before["cells"], *planned.after["cells"]}
    is_as_planned = state_of(notebook.cells, touched) == planned.after
    return is_as_planned and planned.before != planned.after


def _nowhere(path: str) -> NotebookNotFound:
    return NotebookNotFound(f"No notebook can be reached at {path!r}.", path=path)
