"""A look at a table: as a trial, in a copy of the kernel, against the same in the kernel itself."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from measures import Goal, Measurement, Result, flat, interleaved, timed
from servers import server

from jupyter_agent_exec.client import Session

NAME = "trials"
SOURCE = "df.describe()"
FILL = """
import numpy, pandas
df = pandas.DataFrame({f"c{k}": numpy.arange(100_000) for k in range(20)})
"""
BLOCK = 5
EXTRA_MS = 15.0


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; the server is in `folder`."""
    with ExitStack() as stack:
        client = stack.enter_context(stack.enter_context(server(folder)).client())
        session = stack.enter_context(client.open_session(agent="benchmark"))
        session.run(FILL)
        contenders = {
            "trial": partial(_times, session, trial=True),
            "execute": partial(_times, session, trial=False),
        }
        interleaved(2, contenders)  # to warm up
        taken = interleaved(3 if quick else 30, contenders)
    beyond = [
        1000 * (median(trial) - median(run))
        for trial, run in zip(taken["trial"], taken["execute"], strict=True)
    ]
    return Result(
        name=NAME,
        title="A look as a trial",
        how=(
            f"`{SOURCE}` of a table with 2 million numbers by `Session.run` of the Python client, "
            f"in one kernel, as a trial and as an execution, which take turns, {BLOCK} at a time. "
            "The cost is what a round's median trial takes beyond its median execution. By parts, "
            "looked at once: a sixth of it are the two forks, a third is sealing both processes, a "
            "fifth comparing the variables before and after, a tenth the end of the copy."
        ),
        goals=[Goal.of_median("trial − execution", "ms", EXTRA_MS, beyond)],
        measurements=[Measurement.of_times(name, flat(taken[name])) for name in contenders],
    )


def _times(session: Session, *, trial: bool) -> list[float]:
    times = []
    for _ in range(BLOCK):
        results = []
        times.append(timed(lambda: results.append(session.run(SOURCE, trial=trial))))  # noqa: B023
        if not results[0].ok:
            raise SystemExit(f"It did not go as it should: {results[0].text!r}")
    return times
