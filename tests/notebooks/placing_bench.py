"""A session's cells in a notebook, with executions that are run by hand."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from jupyter_agent_exec.executions.spec import ExecutionSpec
from jupyter_agent_exec.models import (
    Agent,
    Chain,
    Execute,
    ExecutionKernel,
    Omitted,
    OutputChange,
)
from jupyter_agent_exec.notebooks.documents import Notebooks
from jupyter_agent_exec.notebooks.execution_cells import NotebookWriter, SessionCells
from jupyter_agent_exec.records import By, CellWritten, ExecutionRecord

AT = "2026-11-21T09:00:00.000Z"
KERNEL = ExecutionKernel(id="k", name="python3", incarnation=1, restarted=False, reason=None)


def record(id: str, source: str, **fields: Any) -> ExecutionRecord:
    whole: dict[str, Any] = {
        "id": id,
        "session_id": "s",
        "seq": 1,
        "init": False,
        "status": "queued",
        "reason": None,
        "source": source,
        "agent": Agent(name="analyst"),
        "username": "ada",
        "timeout": None,
        "kernel": None,
        "values": None,
        "token": None,
        "duration": None,
        "waiting_for": None,
        "document": None,
        "execution_count": None,
        "outputs": [],
        "blobs": (),
        "error": None,
        "accepted_at": AT,
        "started_at": None,
        "finished_at": None,
        "outputs_complete": True,
        "omitted": Omitted(),
        "interrupt_ignored": False,
        "text": None,
        "text_bytes": 0,
        "omitted_text_bytes": 0,
        "entry_hash": None,
        "chain": Chain(head="0" * 64, length=1),
    }
    return ExecutionRecord(**{**whole, **fields})


class Live:
    """An execution that goes on."""

    waiting_for = None
    is_proposed = False
    edits_cell = False
    by = By(kind="agent")

    def __init__(self, id: str, source: str, place: Any, placement: Any) -> None:
        self.id = id
        self.source = source
        self.spec = ExecutionSpec(
            source=source,
            by=self.by,
            timeout=30,
            queue_timeout=None,
            max_output_bytes=1,
            place=place,
            placement=placement,
        )
        self.status = "queued"
        self.steps: list[OutputChange] = []

    def standing(self) -> ExecutionRecord:
        return record(self.id, self.source, status=self.status, kernel=KERNEL)

    def changes(self, version: int) -> tuple[int, list[OutputChange]]:
        return len(self.steps), self.steps[version:]

    def prints(self, text: str) -> None:
        output = {"output_type": "stream", "name": "stdout", "text": text}
        self.steps.append(OutputChange(index=len(self.steps), output=output))

    def outputs(self) -> list[Any]:
        return [step.output for step in self.steps]


class Gate:
    """A session whose edits are made at once."""

    edit_mode = "apply"


class Owner:
    """The session."""

    id = "s"
    gate = Gate()
    shows_outputs = None

    def __init__(self) -> None:
        self.path: str | None = "a.ipynb"
        self.entries: list[CellWritten] = []
        self.records: dict[str, ExecutionRecord] = {}
        self.told: list[str] = []

    async def note(self, entry: CellWritten, payloads: Any = ()) -> None:
        self.entries.append(entry)
        if entry.execution_id in self.records:
            self.records[entry.execution_id] = replace(
                self.records[entry.execution_id], document=entry.document
            )

    async def recorded(self, execution_id: str) -> ExecutionRecord:
        return self.records[execution_id]

    def document_changed(self, execution_id: str) -> None:
        self.told.append(execution_id)


class Session:
    """A session's cells, with executions that are run by hand."""

    def __init__(self, *reaches: Any) -> None:
        self.owner = Owner()
        self.settled: list[str] = []
        self.placing = NotebookWriter(
            Notebooks(reaches),
            settle=self.settled.append,
            log=logging.getLogger(__name__),
            merge_delay=0,
            batch_delay=0,
        )
        self.cells: SessionCells = self.placing.cells(self.owner)

    async def find(self, source: str | None, placement: Any, by: SessionCells | None = None) -> Any:
        return await (by or self.cells).place(Execute(source=source, placement=placement))

    async def written(self, id: str) -> None:
        execution: Any = SimpleNamespace(id=id)
        await self.cells.until_shown(execution, 10)

    async def accept(
        self,
        id: str,
        source: str | None,
        placement: Any = "end",
        *,
        by: SessionCells | None = None,
    ) -> Live:
        cells = by or self.cells
        place = await self.find(source, placement, cells)
        execution = Live(id, place.source, place, placement)
        cells.accepted(execution)
        await rest()
        return execution

    def finish(self, execution: Live, **fields: Any) -> ExecutionRecord:
        done = record(
            execution.id,
            execution.source,
            kernel=KERNEL,
            outputs=execution.outputs(),
            **{"status": "ok", "execution_count": 3, "entry_hash": "f" * 64, **fields},
        )
        self.owner.records[execution.id] = done
        self.cells.finished(done)
        return done

    async def run(self, id: str, source: str | None, placement: Any = "end") -> Live:
        execution = await self.accept(id, source, placement)
        execution.prints("out\n")
        self.finish(execution)
        await self.written(id)
        await rest()
        return execution


async def rest() -> None:
    for _ in range(40):
        await asyncio.sleep(0)


async def late_is_written(session: Session, id: str) -> None:
    """Wait until nothing writes to a cell any more."""
    await rest()
    async with session.placing.lock(id):
        await rest()
