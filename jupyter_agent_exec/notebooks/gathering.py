"""Writes to one file that are wanted within a while, made together: each costs the whole file."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

GATHER_DELAY = 1.0
"""Seconds for which writes are gathered."""


class Gatherings:
    """Tells writers of files when to write: all that joined meanwhile, in the order in which.

    Parameters
    ----------
    delay
        Seconds from the first that joins until it is time.
    """

    def __init__(self, delay: float = GATHER_DELAY) -> None:
        self._delay = delay
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._hurried: Counter[str] = Counter()

    def join(self, path: str) -> asyncio.Future[None]:
        """Return what is done when it is time to write to a path."""
        loop = asyncio.get_running_loop()
        time: asyncio.Future[None] = loop.create_future()
        waiting = self._waiting.setdefault(path, [])
        waiting.append(time)
        if self._hurried[path]:
            self._tell(path)
        elif len(waiting) == 1:
            self._timers[path] = loop.call_later(self._delay, self._tell, path)
        return time

    @contextmanager
    def hurrying(self, path: str) -> Iterator[None]:
        """Have writes to a path made at once, for as long as somebody waits for them."""
        self._hurried[path] += 1
        self._tell(path)
        try:
            yield
        finally:
            self._hurried[path] -= 1
            if not self._hurried[path]:
                del self._hurried[path]

    def _tell(self, path: str) -> None:
        timer = self._timers.pop(path, None)
        if timer is not None:
            timer.cancel()
        for time in self._waiting.pop(path, []):
            if not time.done():
                time.set_result(None)
