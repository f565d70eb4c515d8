"""Ways to a notebook that is a plain dict, with everything that may happen on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from jupyter_agent_exec.notebooks import changes as notebook_changes
from jupyter_agent_exec.notebooks.changes import Change, Expected, Notebook, Unreachable
from jupyter_agent_exec.types import Via


def code(id: str, source: str = "", outputs: Sequence[Any] = (), **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": id,
        "metadata": metadata,
        "outputs": list(outputs),
        "source": source,
    }


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


class DictWay:
    """A way to a dict; it takes note of what it was asked, and does what the test says."""

    def __init__(self, content: dict[str, Any], *, via: Via = "tab", streams: bool = True) -> None:
        self.via: Via = via
        self.streams = streams
        self.content = content
        self.applied: list[list[Change]] = []
        self.attempts = 0
        self.under_way = 0
        self.most_under_way = 0
        self.before: Callable[[], None] | None = None
        """Called once, before the next changes are made; may raise."""
        self.breaks_after = False
        """Whether the next changes are made but not acknowledged."""
        self.acknowledged: asyncio.Event | None = None
        """Set it to let what is under way be acknowledged."""

    async def find(self, path: str) -> DictWay | None:
        return self

    async def read(self) -> Notebook:
        return Notebook(cells=self.content["cells"], nbformat_minor=5)

    async def apply(self, changes: Sequence[Change], expected: Expected) -> None:
        self.attempts += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            before, self.before = self.before, None
            if before is not None:
                before()
            self.content = notebook_changes.apply(self.content, changes, expected)
            self.applied.append(list(changes))
            await asyncio.sleep(0)
            if self.acknowledged is not None:
                await self.acknowledged.wait()
            if self.breaks_after:
                self.breaks_after = False
                raise Unreachable("The tab was closed.")
        finally:
            self.under_way -= 1

    @property
    def cells(self) -> dict[str, dict[str, Any]]:
        """Cells by id; fails if one is there twice."""
        found = {cell["id"]: cell for cell in self.content["cells"]}
        assert len(found) == len(self.content["cells"])
        return found

    @property
    def order(self) -> list[str]:
        return [cell["id"] for cell in self.content["cells"]]


class Switch:
    """Leads to whichever way the test says, or to none."""

    def __init__(self, way: DictWay | None) -> None:
        self.way = way
        self.asked: list[str] = []
        self.error: Exception | None = None

    async def find(self, path: str) -> DictWay | None:
        self.asked.append(path)
        if self.error is not None:
            raise self.error
        return self.way
