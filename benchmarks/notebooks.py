"""One execution in a notebook of 10, 400 and 2,000 cells, by each way to the document."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from kernels import RawDrain, raw_kernel
from measures import Goal, Measurement, Result, Rounds, flat, interleaved, ratios, timed
from pages import lab_server, make_notebook, page, until_written
from servers import Server

from jupyter_agent_exec.client import AgentExecClient, Session

NAME = "notebooks"
SOURCE = "1+1"
BLOCK = 3
SIZES = (10, 400, 2000)
WAYS = {
    "contents": "not open",
    "tab": "open in a JupyterLab tab",
    "collaboration": "open in collaboration",
}
"""Ways to a document, and what each is called in the report."""
LINES = 3000
LINES_CELLS = 200
LINES_SOURCE = f"for n in range({LINES}): print(n, flush=True)"
GOAL_LINES = 2.0
GOAL_SIZE = 1.1


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; servers and notebooks are in `folder`."""
    with ExitStack() as stack:
        lines = _lines(folder / "lines", rounds=2 if quick else 10)
        servers = {
            way: stack.enter_context(lab_server(folder / way, collaboration=way == "collaboration"))
            for way in WAYS
        }
        _, scratch = _session(stack, servers["contents"])
        contenders = {"scratch": partial(_times, scratch, None)}
        for way, server in servers.items():
            for cells in SIZES:
                path = f"n{cells}.ipynb"
                _, session = _open(stack, folder / way, server, way, path, cells)
                contenders[_name(way, cells)] = partial(_times, session, way)
        interleaved(2, contenders)  # to warm up
        taken = interleaved(3 if quick else 30, contenders)
    return Result(
        name=NAME,
        title="One execution in a notebook",
        how=(
            "`1+1` by `Session.run` of the Python client, until the answer: in a scratch kernel, "
            "and in the kernels of notebooks of 10, 400 and 2,000 cells, each with a line of "
            "output. There, the execution adds a cell at the end. If the notebook is not open, "
            "the answer does not wait for the file; otherwise it comes when the cell has been "
            "acknowledged. Pages are JupyterLab in headless Chromium. The contenders take turns, "
            f"{BLOCK} executions at a time. Then {LINES:,} lines, each flushed by itself, in an "
            f"open notebook of {LINES_CELLS} cells, until the last line is in the document; for "
            "comparison, a bare kernel drained by a thread."
        ),
        goals=[*_goals(taken), *lines[0]],
        measurements=[
            Measurement.of_times("in a scratch kernel", flat(taken["scratch"])),
            *(
                Measurement.of_times(
                    f"notebook of {cells:,} cells, {told}", flat(taken[_name(way, cells)])
                )
                for way, told in WAYS.items()
                for cells in SIZES
            ),
            *lines[1],
        ],
    )


def _name(way: str, cells: int) -> str:
    return f"{way} {cells}"


def _goals(taken: dict[str, Rounds]) -> list[Goal]:
    small = SIZES[0]
    return [
        Goal.of_median(
            f"{told}: {cells:,} cells ÷ {small} cells",
            "×",
            GOAL_SIZE,
            ratios(taken[_name(way, cells)], taken[_name(way, small)]),
        )
        for way, told in WAYS.items()
        for cells in SIZES[1:]
    ]


def _session(
    stack: ExitStack, server: Server, notebook: str | None = None
) -> tuple[AgentExecClient, Session]:
    client = stack.enter_context(server.client())
    return client, stack.enter_context(client.open_session(agent="benchmark", notebook=notebook))


def _open(
    stack: ExitStack, folder: Path, server: Server, way: str, path: str, cells: int
) -> tuple[AgentExecClient, Session]:
    """Return a session in a notebook that was made, and opened if the way asks for that."""
    make_notebook(folder / "root" / path, cells)
    if way != "contents":
        stack.enter_context(page(folder, server, path))
    return _session(stack, server, path)


def _times(session: Session, way: str | None) -> list[float]:
    """Run it some times; the answers must have come by the way that is measured."""
    times = []
    for _ in range(BLOCK):
        results = []
        times.append(timed(lambda: results.append(session.run(SOURCE))))  # noqa: B023
        document = results[0].document
        if results[0].text != "2" or (document is not None and document.via not in (way, None)):
            raise SystemExit(f"It did not go as it should: {results[0].text!r}, {document}")
    return times


def _lines(folder: Path, *, rounds: int) -> tuple[list[Goal], list[Measurement]]:
    """Print lines into open notebooks, and in a bare kernel."""
    path = "lines.ipynb"
    with ExitStack() as stack:
        drain = stack.enter_context(closing(RawDrain(stack.enter_context(raw_kernel()))))
        sessions = {}
        for way in ("tab", "collaboration"):
            server = stack.enter_context(
                lab_server(folder / way, collaboration=way == "collaboration")
            )
            sessions[way] = _open(stack, folder / way, server, way, path, LINES_CELLS)
        contenders: dict[str, Callable[[], list[float]]] = {
            "raw": lambda: [drain.run(LINES_SOURCE).seconds],
            **{way: partial(_printed, *opened) for way, opened in sessions.items()},
        }
        interleaved(1, contenders)
        taken = interleaved(rounds, contenders)
    goals = [
        Goal.of_median(
            f"{LINES:,} lines, {WAYS[way]} ÷ bare kernel",
            "×",
            GOAL_LINES,
            ratios(taken[way], taken["raw"]),
        )
        for way in sessions
    ]
    measurements = [
        Measurement.of_times(f"{LINES:,} lines, {told}", flat(taken[name]))
        for name, told in {"raw": "bare kernel", **{way: WAYS[way] for way in sessions}}.items()
    ]
    return goals, measurements


def _printed(client: AgentExecClient, session: Session) -> list[float]:
    """Print the lines; the time ends when the last is in the document."""
    return [timed(lambda: until_written(client, session.run(LINES_SOURCE)))]
