"""Reading that may take seconds, in threads of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Executor
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.errors import ServerStopping
from jupyter_agent_exec.models import TextQuery, TokenRef
from jupyter_agent_exec.sessions.session_history import LongReads, SessionHistory
from jupyter_agent_exec.types import TokenId

ADA = Caller(username="ada", display_name="Ada", access="full")
AGENT = replace(ADA, token=TokenRef(id=TokenId("t_1"), label="t"))


async def test_a_caller_reads_one_thing_at_a_time_and_keeps_nobody_else_waiting() -> None:
    reads, go_on, begun = LongReads(), threading.Event(), []

    def read(name: str, *, waits: bool) -> str:
        begun.append(name)
        if waits:
            go_on.wait(30)
        return name

    slow = [
        asyncio.ensure_future(reads.read(AGENT, lambda: read("slow", waits=True))) for _ in range(5)
    ]
    try:
        assert await reads.read(ADA, lambda: read("other", waits=False)) == "other"
        assert begun.count("slow") <= 1
    finally:
        go_on.set()
    assert await asyncio.gather(*slow) == ["slow"] * 5
    await reads.stop()


async def test_a_stopping_server_ends_reads_and_refuses_the_rest() -> None:
    reads, go_on, begun = LongReads(), threading.Event(), threading.Event()

    def read() -> str:
        begun.set()
        go_on.wait(30)
        return "read"

    first, second = (asyncio.ensure_future(reads.read(AGENT, read)) for _ in range(2))
    await asyncio.to_thread(begun.wait, 30)
    stopping = asyncio.ensure_future(reads.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    go_on.set()
    await stopping
    assert await first == "read"
    with pytest.raises(ServerStopping):
        await second


async def test_texts_are_not_read_where_interrupts_and_ends_are_written() -> None:
    class Text:
        text = None
        outputs = ({"output_type": "stream", "name": "stdout", "text": "one\ntwo\n"},)
        widget_texts: ClassVar[dict[str, str]] = {}

    class Histories(SessionHistory):
        async def execution(self, id: str) -> Any:
            return Text()

    class NoOtherThread(Executor):
        def submit(self, *args: Any, **named: Any) -> Any:
            raise AssertionError

    history = Histories(
        None,  # type: ignore[arg-type]
        disk=NoOtherThread(),
        log=logging.getLogger(),
    )
    assert (await history.text(ADA, "x", TextQuery())).text == "one\ntwo\n"
    await history.long_reads.stop()
