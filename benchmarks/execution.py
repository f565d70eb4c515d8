"""`1+1`, one agent: how long it takes until the answer is there, against the bare kernel."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import psutil  # type: ignore[import-untyped]
from kernels import HISTORY_IN_MEMORY, NotebookRunner, raw_kernel, scratch_kernel
from load import API, WAIT, Connection, McpAgent
from measures import Goal, Measurement, Result, Rounds, flat, interleaved, ratios, timed
from servers import server

NAME = "execution"
SOURCE = "1+1"
BLOCK = 10
CONTENDERS = (
    ("raw ZMQ", "raw"),
    ("raw ZMQ, the kernel's own history in memory", "in memory"),
    ("nbclient", "nbclient"),
    ("this server, by REST on a kept connection", "rest"),
    ("this server, by its Python client", "client"),
    ("this server, by the MCP tool `execute`", "mcp"),
    ("raw ZMQ, in a kernel that this server started", "scratch"),
    ("a bare GET of `/status` on the same connection", "get"),
    ("a line of 1 kB appended and synced (`fdatasync`)", "sync"),
)
"""What each is called in the report."""
GOALS = (
    ("REST ÷ raw ZMQ", 1.0, "rest", "raw"),
    ("the client ÷ raw ZMQ", 1.1, "client", "raw"),
    ("REST ÷ nbclient", 1.25, "rest", "nbclient"),
    ("MCP ÷ REST", 1.3, "mcp", "rest"),
)
LINE = bytes(1023) + b"\n"


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; servers and files are in `folder`."""
    with ExitStack() as stack:
        raw = stack.enter_context(raw_kernel())
        in_memory = stack.enter_context(raw_kernel(HISTORY_IN_MEMORY))
        notebook = stack.enter_context(NotebookRunner())
        running = stack.enter_context(server(folder))
        client = stack.enter_context(running.client())
        session = stack.enter_context(client.open_session(agent="benchmark"))
        loop = stack.enter_context(asyncio.Runner())
        connection = Connection(running.url, f"token {running.token}")
        stack.callback(connection.close)
        by_mcp = McpAgent(connection, session.id)
        process = psutil.Process(running.pid)
        in_scratch = stack.enter_context(scratch_kernel(client))
        file = stack.enter_context((folder / "synced").open("ab", buffering=0))

        def sync() -> None:
            file.write(LINE)
            os.fdatasync(file.fileno())

        async def by_rest(source: str) -> bool:
            path = f"{API}/sessions/{session.id}/executions"
            status, told = await connection.ask("POST", path, {"source": source, "wait": WAIT})
            return status == 201 and bool(told["status"] == "ok")

        def wakes() -> list[float]:
            before = process.num_ctx_switches().voluntary
            loop.run(_times(by_rest))
            return [(process.num_ctx_switches().voluntary - before) / BLOCK]

        contenders = {
            "raw": lambda: [timed(lambda: raw.run(SOURCE)) for _ in range(BLOCK)],
            "in memory": lambda: [timed(lambda: in_memory.run(SOURCE)) for _ in range(BLOCK)],
            "nbclient": lambda: notebook.times(SOURCE, BLOCK),
            "rest": lambda: loop.run(_times(by_rest)),
            "client": lambda: [timed(lambda: session.run(SOURCE)) for _ in range(BLOCK)],
            "mcp": lambda: loop.run(_times(by_mcp.run)),
            "wakes": wakes,
            "scratch": lambda: [timed(lambda: in_scratch.run(SOURCE)) for _ in range(BLOCK)],
            "get": lambda: [timed(client.status) for _ in range(BLOCK)],
            "sync": lambda: [timed(sync) for _ in range(BLOCK)],
        }
        interleaved(3, contenders)  # to warm up
        taken = interleaved(5 if quick else 100, contenders)
    return Result(
        name=NAME,
        title="`1+1`, one agent",
        how=(
            f"Each contender has its own kernel. They take turns, {BLOCK} executions at a time. "
            "Raw ZMQ: a blocking jupyter_client, from the request until the reply and idle; once "
            "with a kernel as Jupyter starts it, which writes its inputs to IPython's own history "
            "on disk, and once without that history, which is how nbclient starts kernels. "
            "nbclient: `async_execute_cell` on a kernel that it keeps. This server: "
            "a request to run and wait by REST, `Session.run` of the Python client, and a call of "
            "the tool `execute` by MCP, each on a kept connection, with the record synced to disk. "
            "The loop wakes at most as often as Linux counts that the server's main thread gave "
            "its processor away to wait; waits for Python's lock are in it. For comparison: the "
            "least that an execution can take, which is the kernel by itself, an empty request and "
            "two syncs (before the code is sent, and before the answer)."
        ),
        goals=[
            *(
                Goal.of_median(what, "×", limit, ratios(taken[ours], taken[theirs]))
                for what, limit, ours, theirs in GOALS
            ),
            Goal.of_median("wakes of the loop, at most", "", 3, flat(taken["wakes"])),
        ],
        measurements=[
            Measurement.of(
                "REST ÷ raw ZMQ, the kernel's own history in memory",
                "×",
                ratios(taken["rest"], taken["in memory"]),
            ),
            Measurement.of(
                "the kernel by itself, an empty request and two syncs ÷ nbclient",
                "×",
                ratios(_sums(taken), taken["nbclient"]),
            ),
            *(Measurement.of_times(what, flat(taken[name])) for what, name in CONTENDERS),
        ],
    )


async def _times(run: Callable[[str], Awaitable[bool]]) -> list[float]:
    """Run it some times, and return the seconds of each."""
    times = []
    for _ in range(BLOCK):
        begin = time.perf_counter()
        if not await run(SOURCE):
            raise SystemExit("It did not go as it should.")
        times.append(time.perf_counter() - begin)
    return times


def _sums(taken: dict[str, Rounds]) -> Rounds:
    """Return what one execution takes at the least, in each round."""
    parts = zip(taken["scratch"], taken["get"], taken["sync"], strict=True)
    return [[median(kernel) + median(get) + 2 * median(sync)] for kernel, get, sync in parts]
