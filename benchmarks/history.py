"""100,000 cells in the history: how fast executions, lists, searches, a start and an export are."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx2
from measures import Goal, Measurement, Result, Rounds, flat, interleaved, ratios, summary, timed
from recorded import RARE, Recorded, record
from servers import Server, answered, server

NAME = "history"
BLOCK = 10
QUERIES = 5
Contenders = dict[str, Callable[[], list[float]]]


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; the histories are in `folder`."""
    cells, in_largest = (2_000, 1_000) if quick else (100_000, 10_000)
    recorded = record(folder / "full" / "history", cells=cells, in_largest=in_largest)
    starts = interleaved(2 if quick else 10, _starts(folder))
    with ExitStack() as stack:
        full = stack.enter_context(server(folder / "full"))
        empty = stack.enter_context(server(folder / "empty"))
        executions = _executions(stack, {"full": full, "empty": empty}, 3 if quick else 100)
        http = stack.enter_context(full.http())
        rounds = 2 if quick else 40
        listing = interleaved(rounds, _questions(http, _listings(recorded, in_largest)))
        search = interleaved(rounds, _questions(http, _searches(recorded)))
        exports = [_export(full, recorded, in_largest, folder) for _ in range(2 if quick else 10)]
    return _result(cells, in_largest, starts, executions, listing, search, exports)


def _starts(folder: Path) -> Contenders:
    """Start and stop a server on each history."""

    def start(name: str) -> list[float]:
        with server(folder / name) as started:
            return [started.start_seconds]

    return {"full": lambda: start("full"), "empty": lambda: start("empty")}


def _executions(stack: ExitStack, servers: dict[str, Server], rounds: int) -> dict[str, Rounds]:
    """Run `1+1` on each server, in turns."""
    contenders: Contenders = {}
    for name, running in servers.items():
        client = stack.enter_context(running.client())
        session = stack.enter_context(client.open_session(agent="benchmark"))
        contenders[name] = lambda run=session.run: [timed(lambda: run("1+1")) for _ in range(BLOCK)]  # type: ignore[misc]
    interleaved(3, contenders)  # to warm up
    return interleaved(rounds, contenders)


def _listings(recorded: Recorded, in_largest: int) -> dict[str, tuple[str, dict[str, object]]]:
    """Return pages of lists: the requests, by name."""
    sessions = sorted(recorded.sessions)
    executions = f"/sessions/{recorded.largest}/executions"
    return {
        "sessions, the newest 50": ("/sessions", {}),
        "sessions, 50 in the middle": ("/sessions", {"after": sessions[len(sessions) // 2]}),
        "sessions of an agent": ("/sessions", {"agent": "reviewer"}),
        "executions, the first 50 of 10,000": (executions, {}),
        "executions, 50 in the middle": (executions, {"after": in_largest // 2}),
        "executions, the last 50": (executions, {"before": in_largest + 1}),
        "executions, the last 50 in brief": (
            executions,
            {"before": in_largest + 1, "outputs": "brief"},
        ),
        "events of a session": (f"/sessions/{recorded.largest}/events", {}),
        "images of a session": ("/images", {"session_id": recorded.largest}),
        "images, the newest 50": ("/images", {}),
    }


def _searches(recorded: Recorded) -> dict[str, tuple[str, dict[str, object]]]:
    """Return searches: the requests, by name."""
    parameters: dict[str, dict[str, object]] = {
        "a frequent word": {"q": "penguin"},
        "a rare word": {"q": RARE},
        "two words": {"q": "median penguin"},
        "a phrase": {"q": '"mass per island"'},
        "a word that does not occur": {"q": "unheardof"},
        "a word, of an agent": {"q": "penguin", "agent": "reviewer"},
        "a word, in one session": {"q": "penguin", "session_id": recorded.largest},
        "errors": {"status": "error"},
        "errors with a word": {"q": "KeyError", "status": "error"},
        "images": {"has_image": "true"},
        "a day": {"since": "2026-01-10", "until": "2026-01-10"},
    }
    return {name: ("/search", asked) for name, asked in parameters.items()}


def _questions(http: httpx2.Client, asked: dict[str, tuple[str, dict[str, object]]]) -> Contenders:
    def ask(path: str, parameters: dict[str, object]) -> list[float]:
        return [timed(lambda: answered(http, path, **parameters)) for _ in range(QUERIES)]

    return {name: (lambda p=path, q=query: ask(p, q)) for name, (path, query) in asked.items()}  # type: ignore[misc]


def _export(full: Server, recorded: Recorded, cells: int, folder: Path) -> float:
    """Export the largest session; return the seconds until it is all there."""
    path = folder / "export.ipynb"
    with full.client() as client:
        session = client.session(recorded.largest)
        seconds = timed(lambda: session.export(path))
    found = len(json.loads(path.read_bytes())["cells"])
    if found != cells:
        raise SystemExit(f"The export holds {found:,} cells; there are {cells:,}.")
    return seconds


def _result(
    cells: int,
    in_largest: int,
    starts: dict[str, Rounds],
    executions: dict[str, Rounds],
    listing: dict[str, Rounds],
    search: dict[str, Rounds],
    exports: list[float],
) -> Result:
    slower = [a - b for a, b in zip(flat(starts["full"]), flat(starts["empty"]), strict=True)]
    return Result(
        name=NAME,
        title=f"{cells:,} cells in the history",
        how=(
            "The journal's own writer writes the history; one in 100 cells has an image. A server "
            "on this history and one on an empty history take turns at `1+1`, and at starting: "
            "from the start of the process to the first answer to `GET /status`. Lists and "
            "searches are GETs of a page of 50 on a kept connection; the goal applies to the "
            f"slowest kind. The Python client exports the session of {in_largest:,} cells to a "
            "file."
        ),
        goals=[
            Goal.of_median(
                "`1+1`, full history ÷ empty one",
                "×",
                1.05,
                ratios(executions["full"], executions["empty"]),
            ),
            Goal(what="listing, p95 of the slowest", unit="ms", limit=50, value=_worst(listing)),
            Goal(what="search, p95 of the slowest", unit="ms", limit=50, value=_worst(search)),
            Goal.of_median("start, full history minus empty one", "s", 0.5, slower),
            Goal.of_median(f"export of {in_largest:,} cells", "s", 3, exports),
        ],
        measurements=[
            Measurement.of_times("`1+1`, full history", flat(executions["full"])),
            Measurement.of_times("`1+1`, empty history", flat(executions["empty"])),
            Measurement.of("start, full history", "s", flat(starts["full"])),
            Measurement.of("start, empty history", "s", flat(starts["empty"])),
            Measurement.of(f"export of {in_largest:,} cells", "s", exports),
            *(
                Measurement.of_times(f"list: {name}", flat(taken))
                for name, taken in listing.items()
            ),
            *(
                Measurement.of_times(f"search: {name}", flat(taken))
                for name, taken in search.items()
            ),
        ],
    )


def _worst(questions: dict[str, Rounds]) -> float:
    return max(1000 * summary(flat(taken)).p95 for taken in questions.values())
