"""How a notebook is reached: by the first way that there is now, and by the next if it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from ..errors import NotebookNotFound
from ..types import Via
from .changes import Change, Expected, Notebook, Reach, Unreachable, Way


class Notebooks:
    """The person's notebooks, by contents path.

    Parameters
    ----------
    reaches
        In the order in which they are tried: collaboration, an open tab, the contents manager.
    """

    def __init__(self, reaches: Sequence[Reach]) -> None:
        self._reaches = reaches

    async def reach(self, path: str) -> Way:
        """Return the way to a notebook now.

        Raises
        ------
        NotebookNotFound
        """
        async for way in self._ways(path):
            return way
        raise NotebookNotFound(f"No notebook can be reached at {path}.", path=path)

    async def read(self, path: str) -> tuple[Way, Notebook]:
        """Return a notebook as it is now, and how it was reached.

        Raises
        ------
        NotebookNotFound, DocumentUnwritable
        """
        async for way in self._ways(path):
            try:
                return way, await way.read()
            except Unreachable:
                continue
        raise NotebookNotFound(f"No notebook can be reached at {path}.", path=path)

    async def apply(self, path: str, changes: Sequence[Change], expected: Expected) -> Via:
        """Make changes, all or none, and return how the notebook was reached.

        They may be made twice if a way breaks off in the middle, so they must not append to
        outputs; see `Unreachable`.

        Raises
        ------
        Moved, NotebookNotFound, DocumentUnwritable
        """
        async for way in self._ways(path):
            try:
                await way.apply(changes, expected)
            except Unreachable:
                continue
            return way.via
        raise NotebookNotFound(f"No notebook can be reached at {path}.", path=path)

    async def _ways(self, path: str) -> AsyncIterator[Way]:
        for reach in self._reaches:
            way = await reach.reach(path)
            if way is not None:
                yield way
