"""The kernels of an interpreter by session id, no more than it may have."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future

from ..kernel_session import KernelSession


class Kernels:
    """Hands out a workplace for each session id; any event loop may ask.

    Parameters
    ----------
    make
        Makes one.
    most
        How many there are at a time; None for any number.

    Raises
    ------
    ValueError
        `most` is below 1.
    """

    def __init__(self, make: Callable[[], KernelSession], most: int | None) -> None:
        if most is not None and most < 1:
            raise ValueError(f"max_kernels: at least 1, not {most}.")
        self._make = make
        self._most = most
        self._lock = threading.Lock()
        self._places: dict[str, KernelSession] = {}
        self._closing = 0
        self._waiting: list[Future[None]] = []

    def known(self, session_id: str) -> KernelSession | None:
        """Return that of a session, if it has one."""
        return self._places.get(session_id)

    async def of(self, session_id: str) -> KernelSession:
        """Return that of a session; it is made, once there is room for it."""
        while True:
            with self._lock:
                place = self._places.get(session_id)
                if place is None and self._has_room():
                    place = self._places[session_id] = self._make()
                if place is not None:
                    return place
                freed: Future[None] = Future()
                self._waiting.append(freed)
            await asyncio.wrap_future(freed)

    async def close(self, session_id: str) -> None:
        """End that of a session, if it has one."""
        with self._lock:
            place = self._places.pop(session_id, None)
            if place is None:
                return
            self._closing += 1
        try:
            await place.close_async()
        finally:
            with self._lock:
                self._closing -= 1
                waiting, self._waiting = self._waiting, []
            for each in waiting:
                # Who has given up waiting is not told.
                if each.set_running_or_notify_cancel():
                    each.set_result(None)

    async def close_all(self) -> None:
        """End all of them."""
        await asyncio.gather(*(self.close(each) for each in list(self._places)))

    def _has_room(self) -> bool:
        return self._most is None or len(self._places) + self._closing < self._most
