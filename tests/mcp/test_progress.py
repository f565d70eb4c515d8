"""Waiting for an execution that goes on while its client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from jupyter_agent_exec.mcp.call import Call, ClientGone
from jupyter_agent_exec.mcp.progress import until_finished
from jupyter_agent_exec.types import ExecutionId


class Execution:
    """One that goes on, silently."""

    input = None
    waiting_for = None

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.finished, self.input_requested = loop.create_future(), loop.create_future()
        self.input_requested.set_result(None)  # nobody waits for the first that is told

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        yield asyncio.Event()

    def changes(self, version: int) -> tuple[int, list[Any]]:
        return version, []


class Managers:
    """Of a server with one execution."""

    def __init__(self) -> None:
        self.sessions = self.settings = self.history = self

    def wait(self, asked: float) -> float:
        return asked

    def watching(self, id: str) -> tuple[None, Execution]:
        return None, Execution()


class ToldCall(Call):
    """A call whose client leaves as soon as it is told anything."""

    def __init__(self) -> None:
        given: Any = {"asker": RequestSender(), "managers": Managers(), "levels": None}
        super().__init__(None, **given)  # type: ignore[arg-type]
        self.told = asyncio.Event()

    async def _send(self, progress: str, output: str) -> None:
        self.told.set()


class RequestSender:
    """Somebody with a person's credential."""

    caller = None

    def check_still(self) -> None:
        """Find nothing."""


async def test_a_client_that_leaves_leaves_nothing_that_waits() -> None:
    call = ToldCall()
    waits = asyncio.ensure_future(until_finished(call, ExecutionId("x_1"), 60))
    await call.told.wait()
    call.cancel()
    with pytest.raises(ClientGone):
        await waits
    assert call.watched == "x_1"
    for _ in range(3):  # what was cancelled ends
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
