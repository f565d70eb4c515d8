"""Records which files were written in a kernel's folder while its executions ran.

Nobody waits for that: the folder is looked through a moment after an execution has ended, for all
that have ended since the last time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from ..kernels.kernel import WorkingFolder
from ..models import FileChange
from ..records import SERVER, ExecutionRecord, FilesWritten, Payload, timestamp
from ..tasks import Tasks, settle
from ..types import ExecutionId
from .execution import LiveExecution
from .folder_scan import Seen, Span, Written, span, written
from .recorder import Recorder

DELAY: Final = 0.1
"""Seconds from an execution's end to the look at the folder, which is for others that end then."""


class WrittenFiles:
    """Looks through the folder of one session's kernel.

    Parameters
    ----------
    told
        Called on the loop with an execution of which files are recorded.
    leave_out
        The history's folder.
    """

    def __init__(
        self,
        recorder: Recorder,
        told: Callable[[LiveExecution], None],
        *,
        leave_out: Path,
        tasks: Tasks,
        disk: Executor,
    ) -> None:
        self._recorder = recorder
        self._told = told
        self._leave_out = leave_out
        self._tasks = tasks
        self._disk = disk
        self._seen: Seen = {}
        self._folder: WorkingFolder | None = None
        self._ended: dict[ExecutionId, tuple[LiveExecution, Span]] = {}
        self._hurry: asyncio.Future[None] | None = None
        self._looked: asyncio.Future[None] | None = None
        self.last: dict[str, tuple[ExecutionId, FileChange]] = {}
        """The last execution that wrote each file, and as what."""

    def ended(self, execution: LiveExecution, folder: WorkingFolder) -> None:
        """Look, soon, which files were written while an execution ran."""
        record: ExecutionRecord = execution.finished.result()
        if record.started_at is None or record.finished_at is None:
            return
        self._folder = folder
        ran = span(record.id, record.started_at, record.finished_at)
        self._ended[record.id] = (execution, ran)
        if self._hurry is None:
            loop = asyncio.get_running_loop()
            self._hurry, self._looked = loop.create_future(), loop.create_future()
            look = self._look(self._hurry, self._looked)
            self._tasks.start(look, f"files of {record.session_id}")

    def close(self) -> None:
        """Look now, if there is anything to look for."""
        if self._hurry is not None:
            settle(self._hurry)

    async def known(self) -> None:
        """Look now, and wait until `last` tells of all executions that have ended."""
        self.close()
        if self._looked is not None:
            await asyncio.wait({self._looked})

    async def _look(self, hurry: asyncio.Future[None], looked: asyncio.Future[None]) -> None:
        try:
            await self._look_while_any(hurry)
        finally:
            self._hurry = None
            settle(looked)

    async def _look_while_any(self, hurry: asyncio.Future[None]) -> None:
        while self._ended:
            await asyncio.wait({hurry}, timeout=DELAY)
            ended, self._ended = self._ended, {}
            assert self._folder is not None
            look = partial(
                written,
                self._folder,
                [ran for _, ran in ended.values()],
                self._seen,
                leave_out=self._leave_out,
            )
            found = await asyncio.get_running_loop().run_in_executor(self._disk, look)
            for id, files in found.items():
                self.last |= {file.path: (id, file) for file in files.files}
                await self._record(id, files)
                self._told(ended[id][0])

    async def _record(self, id: ExecutionId, found: Written) -> None:
        told = {"files": found.files, "more_files": found.more}
        payload = Payload.of(msgspec.json.encode(told))
        entry = FilesWritten(at=timestamp(), by=SERVER, execution_id=id, files=payload.digest)
        await self._recorder.record(entry, [payload])
