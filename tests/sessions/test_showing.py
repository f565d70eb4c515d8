"""How executions come to be shown, however soon they end."""

from __future__ import annotations

from typing import Any

import pytest
from placing_bench import KERNEL, Session, record, rest
from ways import DictWay, notebook

from jupyter_agent_exec.executions.execution import LiveExecution
from jupyter_agent_exec.executions.shown_cells import Showing
from jupyter_agent_exec.models import Agent, Chain, Execute
from jupyter_agent_exec.records import By


def taken(source: str, place: Any) -> LiveExecution:
    """Return an execution that waits for its acceptance."""
    return LiveExecution(
        id="x",
        session_id="s",
        seq=1,
        source=source,
        init=False,
        agent=Agent(name="analyst"),
        username="ada",
        by=By(kind="agent"),
        timeout=None,
        queue_timeout=None,
        max_output_bytes=1000,
        idempotency_key=None,
        body_sha256=None,
        placement="end",
        place=place,
        accepted_at="2026-11-21T09:00:00.000Z",
        head=lambda: Chain(head="0" * 64, length=1),
        mode="none",
        permitted=lambda _: True,
        pausing=lambda: None,
    )


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_cell_shows_the_end_also_if_that_comes_with_the_acceptance(at_once: bool):
    tab = DictWay(notebook())
    session = Session(tab)
    showing = Showing(session.cells)
    place = await showing.place(Execute(source="1"))
    execution = taken("1", place)
    showing.show(execution, place)
    execution.accepted.set_result(None)
    if not at_once:
        await rest()
        assert tab.cells["x"]["metadata"]["agent_exec"]["status"] == "queued"
    # A loop that was busy is told of both at once.
    execution.status = "ok"
    execution.finished.set_result(
        record(
            "x",
            "1",
            status="ok",
            kernel=KERNEL,
            execution_count=3,
            started_at="2026-11-21T09:00:00.000Z",
            finished_at="2026-11-21T09:00:01.000Z",
        )
    )
    await showing.until_shown(execution, 10)
    assert tab.cells["x"]["execution_count"] == 3
    ours = tab.cells["x"]["metadata"]["agent_exec"]
    assert (ours["status"], ours["execution_count"]) == ("ok", 3)
    assert ours["finished_at"] == "2026-11-21T09:00:01.000Z"
