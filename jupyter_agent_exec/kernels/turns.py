"""Whose turn it is on a kernel: first come, first served. No I/O, no clock."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

Turn: TypeAlias = "asyncio.Future[None]"
"""Done when it is one's turn."""


class Turns:
    """A queue before one kernel, which runs one thing at a time."""

    def __init__(self) -> None:
        self._holder: Turn | None = None
        self._waiting: deque[Turn] = deque()

    def __len__(self) -> int:
        """Count those that wait."""
        return len(self._waiting)

    @property
    def free(self) -> bool:
        """Whether the next to ask gets its turn at once."""
        return self._holder is None

    def ask(self) -> Turn:
        """Queue up; the turn that comes back is done at once if the kernel is free."""
        turn: Turn = asyncio.get_running_loop().create_future()
        if self._holder is None:
            self._grant(turn)
        else:
            self._waiting.append(turn)
        return turn

    def leave(self, turn: Turn) -> None:
        """Give the turn back, or stop waiting for it."""
        if turn is self._holder:
            self._holder = None
            if self._waiting:
                self._grant(self._waiting.popleft())
        elif turn in self._waiting:
            self._waiting.remove(turn)

    def _grant(self, turn: Turn) -> None:
        self._holder = turn
        turn.set_result(None)
