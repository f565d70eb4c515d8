"""What users decided for all servers on a history: the approval policy, and the pause."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from ..errors import HistoryUnavailable
from ..models import Pause
from ..records import AgentsPaused, AgentsResumed
from ..storage.shared_file import SharedFile, SharedReads
from ..tasks import Tasks
from ..types import ApprovalMode, EditMode

PauseEntry: TypeAlias = AgentsPaused | AgentsResumed

NO_RULES: Final = (
    "The mode is gone, because code that it let through could do harm. Use 'first', which asks "
    "once, or 'always'."
)

WATCH_INTERVAL: Final = 1.0
"""Seconds between two looks at what users decided on other servers. Before something is sent to a
kernel, the server looks in any case."""


class StoredPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What users have set of the approval policy."""

    scratch: ApprovalMode | None = None
    notebook: ApprovalMode | None = None
    kernel: ApprovalMode | None = None
    edits: EditMode | None = None


class SharedDecisions:
    """Reads and changes the decisions, and applies what was decided on another server.

    A file that cannot be read changes nothing: what was read before holds.

    Parameters
    ----------
    folder
        The history's folder.
    thread
        An executor with one thread, for blocking work.
    changed
        Called after a change of the policy or of the pause. It gets the pause, or its end; None if
        that has not changed.
    """

    def __init__(
        self,
        folder: Path,
        thread: Executor,
        log: logging.Logger,
        *,
        changed: Callable[[PauseEntry | None], Awaitable[None]],
    ) -> None:
        self._thread = thread
        self._log = log
        self._changed = changed
        self._logged: set[str] = set()
        self._policy = SharedFile(
            folder / "approval-policy.json",
            "The approval policy",
            self._policy_of,
            StoredPolicy(),
        )
        self._pause: SharedFile[PauseEntry | None] = SharedFile(
            folder / "pause.json",
            "The pause of all agents",
            msgspec.json.Decoder(PauseEntry).decode,
            None,
        )
        self._reads = SharedReads(self._read, thread, folder, self._is_unchanged)
        self._unsaved: AgentsPaused | None = None
        self._lock = asyncio.Lock()  # held while the pause changes
        self._tasks = Tasks(log)
        self._watching: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._pause_changes: asyncio.Future[None] | None = None
        self._read()
        self._applied = self._current

    def start(self) -> None:
        """Watch for changes by other servers."""
        self._watching = self._tasks.start(self._watch(), "watch users' decisions")

    async def stop(self) -> None:
        """Stop watching; the thread may end."""
        self._is_stopped = True
        if self._watching is not None:
            self._watching.cancel()
        await self._tasks.end()

    # -- read --------------------------------------------------------------------------------------

    @property
    def policy(self) -> StoredPolicy:
        """What users have set of the approval policy."""
        return self._policy.content

    @property
    def paused(self) -> Pause | None:
        """The pause of all agents; None if they are not paused."""
        pause = self._last_pause
        return Pause(by=pause.by.named, at=pause.at) if isinstance(pause, AgentsPaused) else None

    async def refresh(self) -> None:
        """Read what other servers changed, and have it applied; not once this is stopped."""
        if self._is_stopped:
            return
        await self._reads.fresh()
        if self._applied != self._current:
            self._tasks.start(self._apply(), "apply users' decisions")

    def until_pause_changes(self) -> asyncio.Future[None]:
        """Return a future that is done when agents are paused or resumed."""
        if self._pause_changes is None:
            self._pause_changes = asyncio.get_running_loop().create_future()
        return self._pause_changes

    # -- change ------------------------------------------------------------------------------------

    async def change_policy(self, change: Callable[[StoredPolicy], StoredPolicy]) -> None:
        """Change the policy, durable on return.

        Parameters
        ----------
        change
            Gets what users have set, and returns what they set now. It may block and raise.

        Raises
        ------
        HistoryUnavailable
            Nothing was changed.
        """
        await self._in_thread(partial(self._policy.change, change))
        await self._apply()

    async def set_pause(self, entry: PauseEntry) -> None:
        """Pause or resume all agents; the entry says who does, and when.

        Raises
        ------
        HistoryUnavailable
            It cannot be saved. A pause holds on this server, and is saved when that is possible
            again. A resume changed nothing.
        """
        async with self._lock:
            if isinstance(entry, AgentsResumed):
                await self._save_pause(entry)
            elif self.paused is None:
                self._unsaved = entry
                await self._apply()
                try:
                    await self._save_pause(entry)
                except HistoryUnavailable as error:
                    raise HistoryUnavailable(
                        "All agents are paused here and now, but that cannot be written yet, so "
                        f"other servers and the next one may not know of it. {error.message}"
                    ) from error

    # -- helpers -----------------------------------------------------------------------------------

    @property
    def _last_pause(self) -> PauseEntry | None:
        return self._unsaved or self._pause.content

    @property
    def _current(self) -> tuple[StoredPolicy, PauseEntry | None]:
        return self.policy, self._last_pause

    async def _save_pause(self, entry: PauseEntry) -> None:
        def change(before: PauseEntry | None) -> PauseEntry | None:
            is_same = isinstance(before, AgentsPaused) == isinstance(entry, AgentsPaused)
            return before if is_same else entry

        await self._in_thread(partial(self._pause.change, change))
        self._unsaved = None
        await self._apply()

    async def _apply(self) -> None:
        """Tell what has changed, once."""
        (policy, pause), (_, last_pause) = self._current, self._applied
        if self._applied == (policy, pause):
            return
        self._applied = policy, pause
        if pause != last_pause and self._pause_changes is not None:
            self._pause_changes.set_result(None)
            self._pause_changes = None
        await self._changed(pause if pause != last_pause else None)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_INTERVAL)
            await self.refresh()
            async with self._lock:
                if self._unsaved is not None:
                    with suppress(HistoryUnavailable):
                        await self._save_pause(self._unsaved)

    def _read(self) -> None:
        for file in (self._policy, self._pause):
            try:
                file.read()
            except HistoryUnavailable as error:
                self._warn(error.message)

    def _is_unchanged(self) -> bool:
        return self._policy.is_unchanged and self._pause.is_unchanged

    def _policy_of(self, data: bytes) -> StoredPolicy:
        """Read a policy; the mode `rules`, of earlier versions, is `first` now."""
        stored = msgspec.json.decode(data, type=dict[str, Any])
        of_rules = [kind for kind, mode in stored.items() if mode == "rules"]
        if of_rules:
            kinds = ", ".join(of_rules)
            self._warn(f"The approval policy for {kinds} is 'first' now, not 'rules'. {NO_RULES}")
        return msgspec.convert(stored | dict.fromkeys(of_rules, "first"), StoredPolicy)

    def _warn(self, message: str) -> None:
        """Log a message once."""
        if message not in self._logged:
            self._logged.add(message)
            self._log.warning("%s", message)

    async def _in_thread(self, call: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, call)
