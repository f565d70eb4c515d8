"""1 GB of stdout under the default cap: exact counts, little memory, no delay for others."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil  # type: ignore[import-untyped]
from kernels import NotebookRunner, RawDrain, RawKernel, raw_kernel
from measures import Goal, Measurement, Result, Rounds, flat, interleaved, ratios, timed
from servers import server

from jupyter_agent_exec.client import Result as Answer
from jupyter_agent_exec.client import Session

T = TypeVar("T")

NAME = "flood"
LINE_BYTES = 100
WRITE_LINES = 1000
SOURCE = f"""
import sys
for n in range({{writes}}):
    first = n * {WRITE_LINES}
    lines = [f"{{{{i:0{LINE_BYTES - 1}d}}}}\\n" for i in range(first, first + {WRITE_LINES})]
    _ = sys.stdout.write("".join(lines))
"""
FLUSHED = SOURCE + "    sys.stdout.flush()\n"
SAMPLE_SECONDS = 0.02
USUAL = 50
PRINT_WRITES = 1000
MEGABYTE = 1_000_000


@dataclass(slots=True)
class Found:
    """The results of the floods; times in seconds, sizes in megabytes."""

    seconds: list[float] = field(default_factory=list)
    raw_seconds: list[float] = field(default_factory=list)
    inexact: int = 0
    growth: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    usual_lags: list[float] = field(default_factory=list)
    usual: list[float] = field(default_factory=list)
    meanwhile: list[float] = field(default_factory=list)
    raw_usual: list[float] = field(default_factory=list)
    raw_meanwhile: list[float] = field(default_factory=list)
    slowdowns: list[float] = field(default_factory=list)
    raw_slowdowns: list[float] = field(default_factory=list)


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; the server is in `folder`."""
    writes = 1000 if quick else 10_000
    sources = [source.format(writes=writes) for source in (SOURCE, FLUSHED)]
    sources *= 1 if quick else 3
    found = Found()
    with ExitStack() as stack:
        drain = stack.enter_context(closing(RawDrain(stack.enter_context(raw_kernel()))))
        raw_other = stack.enter_context(raw_kernel())
        running = stack.enter_context(server(folder, extensions={"loop_probe": True}))
        lag = stack.enter_context(running.http())
        client = stack.enter_context(running.client())
        flooded = stack.enter_context(client.open_session(agent="flood"))
        other = stack.enter_context(client.open_session(agent="other"))
        process = psutil.Process(running.pid)

        def lags() -> list[float]:
            answer: dict[str, list[float]] = lag.get("/benchmark/loop-lag").json()
            return answer["seconds"]

        flooded.run("1+1")
        printed = SOURCE.format(writes=PRINT_WRITES)
        notebook = stack.enter_context(NotebookRunner())
        prints = interleaved(
            2 if quick else 5,
            {
                "ours": lambda: [timed(lambda: flooded.run(printed))],
                "nbclient": lambda: notebook.times(printed, 1),
            },
        )
        lags()
        for source in sources:
            _raw_flood(drain, raw_other, source, found)
            found.usual_lags += lags()
            with _peak_memory(process) as growth:
                answer = _flood(flooded, other, source, found)
            found.growth.append(growth() / MEGABYTE)
            found.lags += lags()
            found.inexact += not _exact(answer, writes)
    return _result(found, prints, len(sources), writes)


def _flood(flooded: Session, other: Session, source: str, found: Found) -> Answer:
    """Flood one session, and measure another meanwhile."""
    usual = [timed(lambda: other.run("1+1")) for _ in range(USUAL)]
    begin = time.perf_counter()
    answer, meanwhile = _meanwhile(lambda: flooded.run(source), lambda: other.run("1+1"))
    found.seconds.append(time.perf_counter() - begin)
    found.usual += usual
    found.meanwhile += meanwhile
    found.slowdowns.append(statistics.median(meanwhile) / statistics.median(usual))
    return answer


def _raw_flood(drain: RawDrain, other: RawKernel, source: str, found: Found) -> None:
    """Do the same without a server, to see what the machine itself costs."""
    usual = [timed(lambda: other.run("1+1")) for _ in range(USUAL)]
    drained, meanwhile = _meanwhile(lambda: drain.run(source), lambda: other.run("1+1"))
    found.raw_seconds.append(drained.seconds)
    found.raw_usual += usual
    found.raw_meanwhile += meanwhile
    found.raw_slowdowns.append(statistics.median(meanwhile) / statistics.median(usual))


def _meanwhile(long: Callable[[], T], short: Callable[[], object]) -> tuple[T, list[float]]:
    """Make one long call, and meanwhile short ones; return its answer and their seconds."""
    with ThreadPoolExecutor(1) as executor:
        future: Future[T] = executor.submit(long)
        seconds: list[float] = []
        while not future.done():
            seconds.append(timed(short))
        return future.result(), seconds


@contextmanager
def _peak_memory(process: psutil.Process) -> Iterator[Callable[[], int]]:
    """Watch a process's resident memory; yield a function that returns its largest growth."""
    before: int = process.memory_info().rss
    peak = before
    stopped = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stopped.wait(SAMPLE_SECONDS):
            peak = max(peak, process.memory_info().rss)

    thread = threading.Thread(target=watch, name="memory", daemon=True)
    thread.start()
    try:
        yield lambda: peak - before
    finally:
        stopped.set()
        thread.join()


def _exact(answer: Answer, writes: int) -> bool:
    """Return whether the kept text and the count of what was left out match what was printed."""
    texts = ["".join(output.get("text", "")) for output in answer.cell["outputs"]]
    omitted = answer.execution.omitted
    kept_bytes = sum(len(text.encode()) for text in texts)
    kept_lines = sum(text.count("\n") for text in texts)
    lines = writes * WRITE_LINES
    return (
        answer.status == "ok"
        and kept_bytes + omitted.bytes == lines * LINE_BYTES
        and kept_lines + omitted.lines == lines
    )


def _result(found: Found, prints: dict[str, Rounds], floods: int, writes: int) -> Result:
    size = f"{writes * WRITE_LINES * LINE_BYTES / 1e9:g} GB"
    return Result(
        name=NAME,
        title=f"{size} of stdout under the default cap",
        how=(
            f"{writes:,} writes of 100 kB, numbered lines, {floods} times. In half of the runs, "
            "the kernel decides when to send, which makes few messages of some 50 MB. In the "
            "other half, the code flushes after each write, which makes many small ones. "
            "Meanwhile another session runs `1+1` again and again, the server's resident memory "
            "is read every 20 ms, and an extension in the server measures every 5 ms how late the "
            "event loop is. The same without a server takes turns with it: a raw drain takes the "
            "flood while a bare jupyter_client runs `1+1` in another kernel. Before that, 100 MB "
            "are printed in turns with nbclient, which keeps all of it."
        ),
        goals=[
            Goal(what=f"inexact counts, of {floods}", unit="", limit=0, value=found.inexact),
            Goal(
                what="largest growth of the server's memory",
                unit="MB",
                limit=150,
                value=max(found.growth),
            ),
            Goal.of_median(
                "100 MB printed ÷ nbclient", "×", 2.0, ratios(prints["ours"], prints["nbclient"])
            ),
            Goal.of_median(
                "another `1+1` during the flood ÷ without it", "×", 2.0, found.slowdowns
            ),
            Goal(
                what="largest lag of the event loop",
                unit="ms",
                limit=100,
                value=1000 * max(found.lags),
            ),
        ],
        measurements=[
            Measurement.of_times("100 MB printed, this server", flat(prints["ours"])),
            Measurement.of_times("100 MB printed, nbclient", flat(prints["nbclient"])),
            Measurement.of("the flood, this server", "s", found.seconds),
            Measurement.of("the flood, raw drain", "s", found.raw_seconds),
            Measurement.of_times("`1+1` without the flood, this server", found.usual),
            Measurement.of_times("`1+1` during the flood, this server", found.meanwhile),
            Measurement.of_times("`1+1` without the flood, raw ZMQ", found.raw_usual),
            Measurement.of_times("`1+1` during the flood, raw ZMQ", found.raw_meanwhile),
            Measurement.of("during the flood ÷ without it, raw ZMQ", "×", found.raw_slowdowns),
            Measurement.of_times("lag of the event loop without the flood", found.usual_lags),
            Measurement.of_times("lag of the event loop during the flood", found.lags),
            Measurement.of("growth of the server's memory", "MB", found.growth),
        ],
    )
