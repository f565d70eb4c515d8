"""`1+1`, one agent: how long it takes until the answer is there, against the bare kernel."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from kernels import HISTORY_IN_MEMORY, NotebookRunner, raw_kernel, scratch_kernel
from measures import Goal, Measurement, Result, Rounds, flat, interleaved, ratios, timed
from servers import server

NAME = "execution"
SOURCE = "1+1"
BLOCK = 10
CONTENDERS = (
    ("raw ZMQ", "raw"),
    ("raw ZMQ, the kernel's own history in memory", "in memory"),
    ("nbclient", "nbclient"),
    ("this server, by its Python client", "rest"),
    ("raw ZMQ, in a kernel that this server started", "scratch"),
    ("a bare GET of `/status` on the same connection", "get"),
    ("a line of 1 kB appended and synced (`fdatasync`)", "sync"),
)
"""What each is called in the report."""
LINE = bytes(1023) + b"\n"


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; servers and files are in `folder`."""
    with ExitStack() as stack:
        raw = stack.enter_context(raw_kernel())
        in_memory = stack.enter_context(raw_kernel(HISTORY_IN_MEMORY))
        notebook = stack.enter_context(NotebookRunner())
        client = stack.enter_context(stack.enter_context(server(folder)).client())
        session = stack.enter_context(client.open_session(agent="benchmark"))
        in_scratch = stack.enter_context(scratch_kernel(client))
        file = stack.enter_context((folder / "synced").open("ab", buffering=0))

        def sync() -> None:
            file.write(LINE)
            os.fdatasync(file.fileno())

        contenders = {
            "raw": lambda: [timed(lambda: raw.run(SOURCE)) for _ in range(BLOCK)],
            "in memory": lambda: [timed(lambda: in_memory.run(SOURCE)) for _ in range(BLOCK)],
            "nbclient": lambda: notebook.times(SOURCE, BLOCK),
            "rest": lambda: [timed(lambda: session.run(SOURCE)) for _ in range(BLOCK)],
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
            "nbclient: `async_execute_cell` on a kernel that it keeps. This server: `Session.run` "
            "of the Python client on a kept connection, with the record synced to disk. For "
            "comparison: the least that an execution can take, which is the kernel by itself, an "
            "empty request and two syncs (before the code is sent, and before the answer)."
        ),
        goals=[
            Goal.of_median("this server ÷ raw ZMQ", "×", 1.25, ratios(taken["rest"], taken["raw"])),
            Goal.of_median(
                "this server ÷ nbclient", "×", 1.0, ratios(taken["rest"], taken["nbclient"])
            ),
        ],
        measurements=[
            Measurement.of(
                "this server ÷ raw ZMQ, the kernel's own history in memory",
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


def _sums(taken: dict[str, Rounds]) -> Rounds:
    """Return what one execution takes at the least, in each round."""
    parts = zip(taken["scratch"], taken["get"], taken["sync"], strict=True)
    return [[median(kernel) + median(get) + 2 * median(sync)] for kernel, get, sync in parts]
