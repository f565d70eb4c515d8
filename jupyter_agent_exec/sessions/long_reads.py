"""Reading that may take seconds, in threads of its own: nothing else waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from ..auth.scopes import Caller
from ..errors import ServerStopping

T = TypeVar("T")

THREADS: Final = 2


class LongReads:
    """Reads for one caller one thing at a time, so that nobody takes all the threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="agent-exec-text")
        self._stopping = False
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, caller: Caller, read: Callable[[], T]) -> T:
        """Read something when the caller's reads before have ended.

        Raises
        ------
        ServerStopping
        """
        whose = caller.username if caller.token is None else caller.token.id
        async with self._locks.setdefault(whose, asyncio.Lock()):
            if self._stopping:
                raise ServerStopping("The server is stopping; nothing new is read.")
            return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    async def stop(self) -> None:
        """Take nothing new, and return when what is being read has been. Idempotent."""
        self._stopping = True
        await asyncio.to_thread(self._threads.shutdown)
