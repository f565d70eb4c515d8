"""What an execution that waits keeps in memory."""

from __future__ import annotations

import gc
import weakref
from contextvars import ContextVar, copy_context

from jupyter_agent_exec.executions.execution import QueueTime


class Request:
    """A request, which a server has in the context of what it does for it."""


async def test_time_that_runs_does_not_keep_the_request_that_began_it() -> None:
    requests: ContextVar[Request] = ContextVar("requests")
    request, time = Request(), QueueTime(600, lambda: None)
    kept = weakref.ref(request)

    def begin(request: Request) -> None:
        requests.set(request)
        time.run(True)

    copy_context().run(begin, request)
    del request
    gc.collect()
    assert kept() is None
    time.end()
