"""One history of 1,000,000 cells: made, indexed, asked, verified, erased from and cut."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import httpx2
import psutil  # type: ignore[import-untyped]
from measures import (
    Broken,
    Goal,
    Measurement,
    Result,
    Rounds,
    flat,
    interleaved,
    ratios,
    summary,
    timed,
)
from recorded import RARE, Recorded, record
from servers import Server, answered, server

from jupyter_agent_exec.journal.tables import SCHEMA_VERSION

NAME = "history"
BLOCK = 10
QUERIES = 5
PAUSE = 0.15
"""Seconds between two executions while the index is made."""
ERASED_AGENT = "analyst 1"
Contenders = dict[str, Callable[[], list[float]]]


def run(folder: Path, *, size: float) -> Result:
    """Measure it; the histories are in `folder`.

    Raises
    ------
    Broken
        The server does not list what was written.
    """
    cells, sessions = max(2_000, round(1_000_000 * size)), max(40, round(20_000 * size))
    in_largest, rounds = cells // 100, max(2, round(40 * size))
    path = folder / "full" / "history"
    begin = time.perf_counter()
    recorded = record(path, cells=cells, sessions=sessions, in_largest=in_largest)
    written = cells / (time.perf_counter() - begin)
    indexed = _index(folder / "full", path, cells)
    starts = interleaved(max(2, round(10 * size)), _starts(folder))
    with ExitStack() as stack:
        full = stack.enter_context(server(folder / "full"))
        empty = stack.enter_context(server(folder / "empty"))
        before = _memory(full)
        executions = _executions(stack, {"full": full, "empty": empty}, max(3, round(100 * size)))
        http = stack.enter_context(full.http())
        listing = interleaved(rounds, _questions(http, _listings(recorded, in_largest)))
        search = interleaved(rounds, _questions(http, _searches(recorded)))
        exports = [_export(full, recorded, in_largest, folder) for _ in range(max(2, rounds // 4))]
        growth = _memory(full) - before
    verified = _verify(path)
    lighter = _lighten(folder / "full", recorded)
    _verify(path)
    scale = f"{cells:,} cells in {sessions:,} sessions"
    goals = [
        Goal(what="index made again", unit="s", limit=cells / 10_000, value=indexed.seconds),
        Goal(what="start, p95", unit="s", limit=3, value=summary(flat(starts["full"])).p95),
        Goal.of_median(
            "`1+1`, full history ÷ empty one",
            "×",
            1.05,
            ratios(executions["full"], executions["empty"]),
        ),
        Goal(what="lists, p95 of the slowest", unit="ms", limit=100, value=_worst(listing)),
        Goal(what="search, p95 of the slowest", unit="ms", limit=100, value=_worst(search)),
        Goal.of_median(f"export of {in_largest:,} cells", "s", 3, exports),
        Goal(what="memory that the server gains meanwhile", unit="MB", limit=50, value=growth),
        Goal(what="`verify`", unit="s", limit=100, value=verified.seconds),
        Goal(what="`verify`, memory", unit="MB", limit=300, value=verified.megabytes),
        Goal(
            what="`1+1`, p95, while a tenth is erased and a tenth removed ÷ before",
            unit="×",
            limit=1.5,
            value=summary(lighter.during).p95 / summary(lighter.before).p95,
        ),
    ]
    measurements = [
        Measurement.of("cells written a second", "", [written]),
        Measurement.of("cells indexed a second", "", [cells / indexed.seconds]),
        Measurement.of("first answer while the index is made", "s", [indexed.start_seconds]),
        Measurement.of_times("`1+1` while the index is made", indexed.executions),
        Measurement.of("memory of the server when the index is made", "MB", [indexed.megabytes]),
        Measurement.of_times("`1+1`, full history", flat(executions["full"])),
        Measurement.of_times("`1+1`, empty history", flat(executions["empty"])),
        Measurement.of("start, full history", "s", flat(starts["full"])),
        Measurement.of("start, empty history", "s", flat(starts["empty"])),
        Measurement.of("erasure of a tenth", "s", [lighter.erased_seconds]),
        Measurement.of("removal of a tenth by retention", "s", [lighter.retired_seconds]),
        Measurement.of("longest wait for a list meanwhile", "s", [max(lighter.lists)]),
        *(Measurement.of_times(f"list: {name}", flat(taken)) for name, taken in listing.items()),
        *(Measurement.of_times(f"search: {name}", flat(taken)) for name, taken in search.items()),
    ]
    return Result(
        name=NAME, title=f"One history of {scale}", how=HOW, goals=goals, measurements=measurements
    )


HOW = (
    "The journal's own writer writes the history, one in 100 cells with an image. A server starts "
    "on it with an index of the version before, which it makes again, while `1+1` runs every "
    f"{PAUSE} s. Then one on this history and one on an empty history take turns at starting "
    "(until the first answer to `GET /status`) and at `1+1`. Lists and searches are GETs of a page "
    "of 50 on a kept connection; the goal applies to the slowest kind. `jupyter agent-exec verify` "
    "reads all of it. At last, one agent's sessions, a tenth, are erased, and retention removes "
    "the oldest tenth, while `1+1` runs again and again. Asserted: all cells are listed after the "
    "index is made, a tenth less after retention, and the record verifies before and after."
)


class Indexed(NamedTuple):
    """How the index was made, and how the server served meanwhile."""

    seconds: float
    start_seconds: float
    executions: list[float]
    megabytes: float


def _index(folder: Path, history: Path, cells: int) -> Indexed:
    """Start a server whose index is of an earlier version; wait until the index is whole."""
    with sqlite3.connect(history / "index.sqlite") as earlier:
        earlier.execute(f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
    earlier.close()
    with server(folder) as running, running.http() as http, running.client() as client:
        begin = time.perf_counter() - running.start_seconds
        session = client.open_session(agent="benchmark")
        executions: list[float] = []
        while not answered(http, "/status")["search_ready"]:
            executions.append(timed(lambda: session.run("1+1")))
            time.sleep(PAUSE)
        seconds = time.perf_counter() - begin
        session.close()
        found = _listed(http)
        if found != cells + len(executions):
            raise Broken(f"{cells + len(executions):,} cells were recorded, {found:,} are listed.")
        return Indexed(seconds, running.start_seconds, executions, _memory(running))


def _listed(http: httpx2.Client) -> int:
    """Return how many executions all listed sessions have."""
    cells, page = 0, answered(http, "/sessions", limit=500)
    while True:
        cells += sum(each["executions"] for each in page["sessions"])
        if page["next_after"] is None:
            return cells
        page = answered(http, "/sessions", limit=500, after=page["next_after"])


def _memory(running: Server) -> float:
    return float(psutil.Process(running.pid).memory_info().rss) / 1e6


class Verified(NamedTuple):
    """What `verify` took."""

    seconds: float
    megabytes: float


def _verify(history: Path) -> Verified:
    """Run `jupyter agent-exec verify` on all of it; raise Broken if it is not whole."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "jupyter_agent_exec.cli", "verify", str(history)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Broken(f"verify ended with {process.returncode}.")
    return Verified(time.perf_counter() - begin, used.ru_maxrss / 1e3)


class Lightened(NamedTuple):
    """How executions and lists were while a fifth of the history went."""

    before: list[float]
    during: list[float]
    lists: list[float]
    erased_seconds: float
    retired_seconds: float


def _lighten(folder: Path, recorded: Recorded) -> Lightened:
    """Erase an agent's sessions, and let retention remove the oldest tenth."""
    configuration = folder / "configuration.py"
    configuration.write_text(f"c.AgentExecApp.retention = [{{'days': {recorded.tenth_days}}}]")
    with ExitStack() as stack:
        running = stack.enter_context(server(folder, f"--config={configuration}"))
        http = stack.enter_context(running.http())
        client = stack.enter_context(running.client())
        session = stack.enter_context(client.open_session(agent="benchmark"))
        before = [timed(lambda: session.run("1+1")) for _ in range(20 * BLOCK)]
        cells = _listed(http)

        def lighten() -> tuple[float, float]:
            with running.http() as slow:
                slow.timeout = None
                erased = timed(lambda: _posted(slow, "erasures", agent=ERASED_AGENT))
                return erased, timed(lambda: _posted(slow, "retention"))

        during: list[float] = []
        lists: list[float] = []
        with ThreadPoolExecutor(2) as pool:
            going = pool.submit(lighten)
            listing = pool.submit(_list_until, going.done, running, lists)
            while not going.done():
                during.append(timed(lambda: session.run("1+1")))
            listing.result()
        left = _listed(http) - len(during)
        if not 0.85 < left / cells < 0.95:
            raise Broken(f"{left:,} of {cells:,} cells are left after a tenth was removed.")
        return Lightened(before, during, lists, *going.result())


def _list_until(is_over: Callable[[], bool], running: Server, lists: list[float]) -> None:
    with running.http() as http:
        http.timeout = None
        while not is_over():
            # A list that cannot be answered now says so after some seconds: that is a wait too.
            lists.append(timed(lambda: http.get("/api/agent-exec/sessions")))


def _posted(http: httpx2.Client, path: str, **body: object) -> None:
    http.post(f"/api/agent-exec/{path}", json=body).raise_for_status()


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
        "the panel, the newest 50 sessions": ("/sessions", {"limit": 50}),
        "the panel, a session's last 200 in brief": (
            executions,
            {"before": in_largest + 1, "limit": 200, "outputs": "brief"},
        ),
        "one session": (f"/sessions/{sessions[len(sessions) // 2]}", {}),
        "sessions of an agent": ("/sessions", {"agent": "reviewer"}),
        "executions, the first 50 of the largest": (executions, {}),
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
        "a day": {"since": f"{recorded.middle:%F}", "until": f"{recorded.middle:%F}"},
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
        raise Broken(f"The export holds {found:,} cells; there are {cells:,}.")
    return seconds


def _worst(questions: dict[str, Rounds]) -> float:
    return max(1000 * summary(flat(taken)).p95 for taken in questions.values())
