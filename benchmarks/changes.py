"""The time that it takes to record what an execution changed, in a user's kernel."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from jupyter_client.blocking.client import BlockingKernelClient
from kernels import TIMEOUT
from measures import Goal, Measurement, Result, Rounds, flat, interleaved, timed
from servers import Server, server

from jupyter_agent_exec.client import Session

NAME = "changes"
BLOCK = 10
GOAL_MS = 10.0
SOURCE = "n += 1"
FILLED = {
    "no other variables": "n = 0",
    "300 variables, with arrays and tables": """
import numpy, pandas
table = pandas.DataFrame({f"c{k}": numpy.arange(100_000) for k in range(20)})
for k in range(100):
    globals()[f"list_{k}"] = [{"name": str(i), "at": [i, k]} for i in range(1_000)]
    globals()[f"array_{k}"] = numpy.random.default_rng(k).random((1_000, 10))
    globals()[f"table_{k}"] = table.head(1_000 + k)
n = 0
""",
}
"""What is in the kernel, and the code that makes it. The newest variables are compared first."""
OPTIONS = {"off": "scratch", "on": "all"}
"""The values of the trait with which changes in a user's kernel are not recorded, and are."""


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; servers are in `folder`."""
    with ExitStack() as stack:
        contenders = {}
        untold: list[Session] = []
        for way, option in OPTIONS.items():
            running = stack.enter_context(
                server(folder / way, f"--AgentExecApp.record_changes={option}")
            )
            for what, source in FILLED.items():
                session, person = _in_kernel(stack, running)
                person(source)
                times = partial(_times, session, untold if way == "on" else None)
                contenders[f"{way}, {what}"] = times
                between = f"{what}, after a user's cell"
                contenders[f"{way}, {between}"] = partial(times, person)
        interleaved(2, contenders)  # to warm up
        untold.clear()
        taken = interleaved(5 if quick else 100, contenders)
    kernels = [name.removeprefix("on, ") for name in contenders if name.startswith("on, ")]
    runs = sum(len(flat(taken[f"on, {what}"])) for what in kernels)
    return Result(
        name=NAME,
        title="What an execution changed, in a user's kernel",
        how=(
            f"`{SOURCE}` by `Session.run` of the Python client, in kernels that Jupyter started, "
            "with and without the option that records which variables changed (`record_changes`). "
            f"The contenders take turns, {BLOCK} executions at a time. The cost is the difference "
            "of a round's medians; the table shows the median of the differences, and p10 to p90."
        ),
        goals=[
            *(
                Goal.of_median(
                    f"cost, {what}",
                    "ms",
                    GOAL_MS,
                    _differences(taken[f"on, {what}"], taken[f"off, {what}"]),
                )
                for what in kernels
            ),
            Goal(
                what=f"not recorded because the kernel answered too slowly, of {runs:,} executions",
                unit="",
                limit=runs // 100,
                value=len(untold),
            ),
        ],
        measurements=[Measurement.of_times(name, flat(taken[name])) for name in contenders],
    )


def _in_kernel(stack: ExitStack, running: Server) -> tuple[Session, Callable[[str], object]]:
    """Return a session in a kernel that Jupyter started, and a function that runs a user's code."""
    with running.http() as http:
        started = http.post("/api/kernels", json={})
        started.raise_for_status()
    kernel_id = started.json()["id"]
    kernel = BlockingKernelClient(
        connection_file=f"{os.environ['JUPYTER_RUNTIME_DIR']}/kernel-{kernel_id}.json"
    )
    kernel.load_connection_file()
    kernel.start_channels()
    stack.callback(kernel.stop_channels)
    kernel.wait_for_ready(timeout=TIMEOUT)
    kernel.iopub_channel.stop()  # nobody reads it, and the kernel would wait for that
    client = stack.enter_context(running.client())
    session = stack.enter_context(client.open_session(agent="benchmark", kernel_id=kernel_id))
    return session, partial(kernel.execute, reply=True, timeout=TIMEOUT)


def _times(
    session: Session,
    untold: list[Session] | None,
    person: Callable[[str], object] | None = None,
) -> list[float]:
    """Run it some times; the answers must tell what changed, or that it is not known.

    Parameters
    ----------
    untold
        Gets the session each time that nothing is told; None if nothing should be.
    person
        Runs something before each time, which does not count.
    """
    times = []
    for _ in range(BLOCK):
        if person is not None:
            person("n += 1")
        results = []
        times.append(timed(lambda: results.append(session.run(SOURCE))))  # noqa: B023
        changes = results[0].execution.changes
        names = [] if changes is None else [each.name for each in changes.variables]
        if untold is not None and changes is None:
            untold.append(session)
            names = ["n"]
        if not results[0].ok or names != ([] if untold is None else ["n"]):
            raise SystemExit(f"It did not go as it should: {results[0].text!r}, {changes}")
    return times


def _differences(ours: Rounds, without: Rounds) -> list[float]:
    """Return for each round the difference of the two medians, in milliseconds."""
    return [
        1000 * (statistics.median(a) - statistics.median(b))
        for a, b in zip(ours, without, strict=True)
    ]
