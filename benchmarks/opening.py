"""A session with a kernel that is ready: from the warm pool, and without it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx2
from kernels import raw_kernel
from measures import Goal, Measurement, Result, flat, interleaved
from servers import server

from jupyter_agent_exec.client import AgentExecClient

NAME = "open"
WARM_SECONDS = 60.0
POLL_SECONDS = 0.05


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; servers are in `folder`."""
    with ExitStack() as stack:
        warm_server = stack.enter_context(server(folder / "warm"))
        cold_server = stack.enter_context(server(folder / "cold", "--AgentExecApp.warm_kernels=0"))
        warm = stack.enter_context(warm_server.client())
        cold = stack.enter_context(cold_server.client())
        kernels = stack.enter_context(warm_server.http())
        first_results: list[float] = []

        def from_pool() -> list[float]:
            _wait_until_warm(kernels)
            return [_opened(warm, first_results.append)]

        _opened(warm)
        _opened(cold)
        contenders = {
            "warm": from_pool,
            "cold": lambda: [_opened(cold)],
            "raw": lambda: [_raw_start()],
        }
        taken = interleaved(2 if quick else 20, contenders)
    return Result(
        name=NAME,
        title="A session ready",
        how=(
            "`POST /sessions` by the Python client, until the answer, which comes when the kernel "
            "is ready. The pool of one kernel is full again before each measurement. For "
            "comparison: a server without a pool, and a bare kernel that jupyter_client starts, "
            "until it is ready."
        ),
        goals=[Goal.of_median("opened from the warm pool", "ms", 60, _ms(flat(taken["warm"])))],
        measurements=[
            Measurement.of_times("from the warm pool", flat(taken["warm"])),
            Measurement.of_times("from the warm pool, with the first `1+1` run", first_results),
            Measurement.of_times("without a pool", flat(taken["cold"])),
            Measurement.of_times("a bare kernel, by jupyter_client", flat(taken["raw"])),
        ],
    )


def _opened(client: AgentExecClient, ran: Callable[[float], object] = lambda _: None) -> float:
    """Open a session, run something in it and close it; return the seconds until it was open."""
    begin = time.perf_counter()
    with client.open_session(agent="benchmark") as session:
        ready = time.perf_counter() - begin
        result = session.run("1+1")
        ran(time.perf_counter() - begin)
        if result.text != "2" or result.execution.execution_count != 1:
            raise SystemExit(f"A fresh kernel answered {result.text!r}, {result.execution}")
    return ready


def _raw_start() -> float:
    begin = time.perf_counter()
    with raw_kernel():
        return time.perf_counter() - begin


def _wait_until_warm(http: httpx2.Client) -> None:
    """Wait until Jupyter's list of running kernels is one that idles: that of the pool."""
    deadline = time.monotonic() + WARM_SECONDS
    while time.monotonic() < deadline:
        states = [kernel["execution_state"] for kernel in http.get("/api/kernels").json()]
        if states == ["idle"]:
            return
        time.sleep(POLL_SECONDS)
    raise SystemExit(f"The pool did not become warm within {WARM_SECONDS:g} seconds: {states}")


def _ms(seconds: list[float]) -> list[float]:
    return [1000 * value for value in seconds]
