"""Reads and changes notebooks through the first backend that reaches them."""

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
"""How often to plan edits again because the notebook has changed."""

_LONG: Final = 50_000
"""Number of edits times number of cells from which on edits are planned in a thread."""


class Notebooks:
    """The user's notebooks, by contents path.

    Parameters
    ----------
    backends
        Backends in the order in which to try them: collaboration, open tabs, the contents manager.
    """

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = backends
        self._edited: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def find(self, path: str) -> NotebookHandle:
        """Return the notebook's handle of the first backend that reaches it.

        Raises
        ------
        NotebookNotFound
        """
        async for _, handle in self._handles(path):
            return handle
        raise _nowhere(path)

    async def read(self, path: str) -> tuple[NotebookHandle, Notebook]:
        """Return the current notebook, and the handle that read it.

        Raises
        ------
        NotebookNotFound, DocumentUnwritable
        """
        _, handle, notebook = await self._read(path, ())
        return handle, notebook

    async def revise(
        self,
        path: str,
        plan: Callable[[Notebook, NotebookHandle], tuple[Sequence[Change], Expected]],
    ) -> NotebookHandle:
        """Make planned changes, all or none, and return the handle that made them.

        If a backend fails in the middle, changes may be made twice. So they must not append to
        outputs; see `Unreachable`.

        Parameters
        ----------
        plan
            Returns changes of the notebook that a handle has read, and what they expect. Called
            again if the notebook has changed meanwhile, or the handle fails.

        Raises
        ------
        NotebookNotFound, DocumentUnwritable, DocumentChanged
        """
        broken: list[Backend] = []
        for _ in range(MAX_PLANS):
            backend, handle, notebook = await self._read(path, broken)
            changes, expected = plan(notebook, handle)
            try:
                if changes:
                    await handle.apply(changes, expected)
            except Moved:
                continue
            except Unreachable:
                broken.append(backend)
                continue
            return handle
        raise DocumentChanged("The notebook is being changed; try again.", path=path)

    async def edit(
        self,
        path: str,
        edits: Sequence[Edit],
        hash: Digest | None,
        about_to: Callable[[EditPlan], Awaitable[None]],
    ) -> tuple[Via, EditPlan]:
        """Make edits as `change` does.

        Parameters
        ----------
        hash
            Hash of the notebook when it was read; None to edit any version.
        """
        planner = EditPlanner(edits)

        async def make_plan(notebook: Notebook) -> EditPlan:
            check_hash(hash, notebook)
            return await planner.plan(notebook)

        return await self.change(path, make_plan, about_to)

    async def change(
        self,
        path: str,
        make_plan: Callable[[Notebook], Awaitable[EditPlan]],
        about_to: Callable[[EditPlan], Awaitable[None]],
    ) -> tuple[Via, EditPlan]:
        """Make planned changes, all or none. Return how the notebook was reached, and the plan.

        Parameters
        ----------
        make_plan
            Returns the plan for a notebook. Called again if the notebook has changed meanwhile.
        about_to
            Awaited with the plan before the notebook changes, and again if the plan changes. If it
            raises, nothing is changed.

        Raises
        ------
        NotebookNotFound, DocumentUnwritable, CellNotFound, DocumentChanged, InvalidRequest
            Nothing was changed.
        """
        broken: list[Backend] = []
        unsure: list[EditPlan] = []
        async with self._edited.setdefault(path, asyncio.Lock()):
            for _ in range(MAX_PLANS):
                backend, handle, notebook = await self._read(path, broken)
                for made in unsure:
                    if _is_made(made, notebook):
                        return handle.via, made
                planned = await make_plan(notebook)
                await about_to(planned)
                try:
                    if planned.changes:
                        await handle.apply(planned.changes, planned.expected)
                except Moved:
                    continue
                except Unreachable:
                    broken.append(backend)
                    unsure.append(planned)
                    continue
                return handle.via, planned
        raise DocumentChanged(
            f"The notebook changed {MAX_PLANS} times while it was to be edited; nothing was "
            "changed. Try again.",
            **as_told(notebook.cells),
        )

    async def _read(
        self, path: str, broken: Collection[Backend]
    ) -> tuple[Backend, NotebookHandle, Notebook]:
        async for backend, handle in self._handles(path, broken):
            try:
                return backend, handle, await handle.read()
            except Unreachable:
                continue
        raise _nowhere(path)

    async def _handles(
        self, path: str, broken: Collection[Backend] = ()
    ) -> AsyncIterator[tuple[Backend, NotebookHandle]]:
        for backend in self._backends:
            handle = None if backend in broken else await backend.find(path)
            if handle is not None:
                yield backend, handle


class EditPlanner:
    """Plans a request's edits. When they are planned again, new cells get the same ids.

    So cells are not inserted twice if a backend failed, but made the changes.
    """

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._ids: list[CellId] = []

    async def plan(self, notebook: Notebook) -> EditPlan:
        """Return the plan for a notebook; raises as `edits.plan`."""
        new_id = self._replayed().__next__
        if len(self._edits) * len(notebook.cells) < _LONG:
            return plan(notebook, self._edits, new_id)
        return await asyncio.to_thread(plan, notebook, self._edits, new_id)

    def _replayed(self) -> Iterator[CellId]:
        index = 0
        while True:
            if index == len(self._ids):
                self._ids.append(CellId(uuid4().hex[:12]))
            yield self._ids[index]
            index += 1


def check_hash(hash: Digest | None, notebook: Notebook, *others: Notebook) -> None:
    """Raise DocumentChanged if a request is for another version of the notebook.

    Parameters
    ----------
    hash
        Hash of the notebook when it was read; None for any version.
    others
        Versions of the notebook that are as good.
    """
    if hash is not None and all(hash != notebook_hash(each.cells) for each in (notebook, *others)):
        raise DocumentChanged(
            "hash: the notebook's cells have changed since it was read; nothing was "
            "changed. Read it again.",
            field="hash",
            **as_told(notebook.cells),
        )


def _is_made(planned: EditPlan, notebook: Notebook) -> bool:
    """Return whether the notebook shows that a plan with an unknown outcome was made.

    A plan that adds cells is recognized by them, even if the user has made other changes.
    """
    added = set(planned.after["order"]).difference(planned.before["order"])
    if not added.isdisjoint(order_of(notebook.cells)):
        return True
    touched = {*planned.before["cells"], *planned.after["cells"]}
    is_as_planned = state_of(notebook.cells, touched) == planned.after
    return is_as_planned and planned.before != planned.after


def _nowhere(path: str) -> NotebookNotFound:
    return NotebookNotFound(f"No notebook can be reached at {path!r}.", path=path)
