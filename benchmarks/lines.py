"""100,000 lines, each flushed by itself: all of them, and about as fast as they can be taken."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from pathlib import Path

from kernels import RawDrain, raw_kernel
from measures import Goal, Measurement, Result, flat, interleaved, ratios, timed
from servers import server

from jupyter_agent_exec.client import Result as Answer

NAME = "lines"
LINES = 100_000
SOURCE = f"for i in range({LINES}): print(i, flush=True)"
EXPECTED = "".join(f"{i}\n" for i in range(LINES))


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; the server is in `folder`."""
    incomplete = 0
    messages: list[float] = []
    with ExitStack() as stack:
        drain = stack.enter_context(closing(RawDrain(stack.enter_context(raw_kernel()))))
        client = stack.enter_context(stack.enter_context(server(folder)).client())
        session = stack.enter_context(client.open_session(agent="benchmark"))

        def ours() -> list[float]:
            nonlocal incomplete
            results = []
            seconds = timed(lambda: results.append(session.run(SOURCE)))
            incomplete += not _complete(results[0])
            return [seconds]

        def raw() -> list[float]:
            drained = drain.run(SOURCE)
            messages.append(drained.messages)
            return [drained.seconds]

        drain.run("1+1")
        session.run("1+1")
        runs = 2 if quick else 20
        taken = interleaved(runs, {"raw": raw, "ours": ours})
    return Result(
        name=NAME,
        title="100,000 flushed lines",
        how=(
            f"`{SOURCE}`. The contenders take turns. Raw drain: a thread with its own ZMQ context "
            "reads IOPub of a bare kernel and counts messages, until reply and idle. This server: "
            "through its Python client; the answer's text is compared with what was printed."
        ),
        goals=[
            Goal(what=f"runs with a line missing, of {runs}", unit="", limit=0, value=incomplete),
            Goal.of_median(
                "this server ÷ raw drain", "×", 1.15, ratios(taken["ours"], taken["raw"])
            ),
        ],
        measurements=[
            Measurement.of("raw drain", "s", flat(taken["raw"])),
            Measurement.of("this server, by its Python client", "s", flat(taken["ours"])),
            Measurement.of("messages that the raw drain took", "", messages),
        ],
    )


def _complete(answer: Answer) -> bool:
    """Return whether all lines are there, in order, and the answer says so; if not, say why not."""
    text = "".join(output.get("text", "") for output in answer.cell["outputs"])
    if answer.status == "ok" and answer.execution.outputs_complete and text == EXPECTED:
        return True
    print(
        f"{answer.status}: {answer.execution.reason}; {text.count(chr(10)):,} lines of {LINES:,}",
        file=sys.stderr,
    )
    return False
