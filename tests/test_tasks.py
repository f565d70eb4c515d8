"""Tasks that outlive what starts them."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar

from jupyter_agent_exec.tasks import Tasks, call_later_apart, start_apart

request: ContextVar[str] = ContextVar("request")


async def seen() -> str | None:
    return request.get(None)


async def test_a_task_keeps_nothing_of_the_request_that_starts_it() -> None:
    request.set("a handler, with its body")
    assert await asyncio.create_task(seen()) == "a handler, with its body"
    assert await start_apart(seen(), "apart") is None
    assert await Tasks(logging.getLogger()).start(seen(), "owned") is None


async def test_a_timer_keeps_nothing_of_the_request_that_starts_it() -> None:
    request.set("a handler, with its body")
    found: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    call_later_apart(0, lambda: found.set_result(request.get(None)))
    assert await found is None
