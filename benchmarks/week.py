"""A week's work in an hour: ten agents, and all that happens to them and to the server meanwhile.

After each stretch of work the server is at rest, and it is measured what it holds: it may not grow.
"""

from __future__ import annotations

import hashlib
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psutil
from measures import Broken, Goal, Measurement, Result, timed

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.records import Accepted, Finished
from tests.audit.far_sides import postgresql
from tests.server_process import ServerProcess
from tests.small_disk import as_seen_by, fill, mounting

NAME = "week"
AGENTS = 10
EXECUTIONS = 50_000
STRETCHES = 50
MOST_GROWTH = 1.05
WAIT_SECONDS = 60
DISK = "size=1g"
DRAW = """
from IPython.display import Image
import os, struct, zlib
def part(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\\0" + os.urandom(300) for _ in range(100))
head = part(b"IHDR", struct.pack(">IIBBBBB", 100, 100, 8, 2, 0, 0, 0))
Image(b"\\x89PNG\\r\\n\\x1a\\n" + head + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
"""


class Agent:
    """One agent with a kernel: of its own, or of a person's notebook."""

    def __init__(self, server: ServerProcess, number: int) -> None:
        self._server = server
        self._dice = random.Random(number)
        self._path = None if number % 2 else f"week-{number}.ipynb"
        self.sessions: list[str] = []
        self._bearer: dict[str, str] = {}
        self.happened: Counter[str] = Counter()
        self._open()
        often: list[tuple[Callable[[], None], int]] = [
            (self._run, 880),
            (self._show, 20),
            (self._print_much, 30),
            (self._draw, 20),
            (self._fail, 15),
            (self._time_out, 8),
            (self._cancel, 6),
            (self._try, 5),
            (self._die, 3),
            (self._ask, 3),
            (self._open, 3),
        ]
        often.append((self._restart, 3) if self._path is None else (self._propose, 4))
        self._ways, self._weights = zip(*often, strict=True)

    def work(self, executions: int) -> None:
        """Do one thing after the other, mostly run code."""
        for _ in range(executions):
            [way] = self._dice.choices(self._ways, self._weights)
            way()
            self.happened[way.__name__.strip("_").replace("_", " ")] += 1

    def _told(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answered = self._server.ask(method, path, body, headers=headers)
        if answered.is_error:
            raise Broken(f"{method} {path}: {answered.status_code} {answered.text}")
        return answered.json() if answered.content else None

    def _open(self) -> None:
        """Close the session, and go on in the same notebook or in another kernel."""
        if self.sessions:
            self._told("POST", f"sessions/{self.sessions[-1]}/close", {})
            if self._bearer:
                self._told("DELETE", f"tokens/{self._token}")
        target = {"kind": "scratch"}
        if self._path is not None:
            target = {"kind": "notebook", "path": self._path, "create": True}
            scopes = [f"{scope}:{self._path}" for scope in ("exec:notebook", "edit:notebook")]
            self._token, self._bearer = self._mint(scopes, edits="propose")
        asked = {"agent": {"name": "analyst"}, "target": target}
        self.sessions.append(self._told("POST", "sessions", asked, **self._bearer)["id"])

    def _mint(self, scopes: list[str], **asked: str) -> tuple[str, dict[str, str]]:
        minted = self._told("POST", "tokens", {"label": "week", "scopes": scopes, **asked})
        return minted["token"]["id"], {"Authorization": f"Bearer {minted['secret']}"}

    def _executed(self, source: str, *ends: str, **asked: Any) -> None:
        path = f"sessions/{self.sessions[-1]}/executions"
        body = {"source": source, "wait": WAIT_SECONDS, "placement": "none", **asked}
        self._expect(self._told("POST", path, body, **self._bearer), *ends or ("ok",))

    def _expect(self, told: Any, *ends: str) -> None:
        if told["status"] not in ends:
            raise Broken(f"{told['id']} ended with {told['status']}: {told['text'][-500:]}")

    def _run(self) -> None:
        self._executed("n = 1\nfor i in range(20): n += i\nprint(n)")

    def _show(self) -> None:
        self._executed("print('in a cell')", placement="end")

    def _print_much(self) -> None:
        self._executed("print('x' * 50_000)")

    def _draw(self) -> None:
        self._executed(DRAW)

    def _fail(self) -> None:
        self._executed("1 / 0", "error")

    def _time_out(self) -> None:
        self._executed("while True: pass", "timed_out", timeout=0.2)

    def _try(self) -> None:
        self._executed("n = 2", trial=True)

    def _die(self) -> None:
        self._executed("import os; os._exit(1)", "kernel_died")

    def _restart(self) -> None:
        self._told("POST", f"sessions/{self.sessions[-1]}/restart", {})

    def _cancel(self) -> None:
        path = f"sessions/{self.sessions[-1]}/executions"
        body = {"source": "import time; time.sleep(600)", "wait": 0, "placement": "none"}
        id = self._told("POST", path, body, **self._bearer)["id"]
        self._told("POST", f"executions/{id}/cancel", {})
        told = self._told("GET", f"executions/{id}?wait={WAIT_SECONDS}")
        self._expect(told, "cancelled", "interrupted")

    def _ask(self) -> None:
        """Have another agent ask for approval, and approve."""
        token, bearer = self._mint(["exec:scratch"], approval="always")
        asked = {"agent": {"name": "asking"}}
        session = self._told("POST", "sessions", asked, **bearer)["id"]
        self.sessions.insert(0, session)
        body = {"source": "1", "wait": 0}
        id = self._told("POST", f"sessions/{session}/executions", body, **bearer)["id"]
        approved = {"source_sha256": hashlib.sha256(b"1").hexdigest()}
        self._told("POST", f"executions/{id}/approve", approved)
        self._expect(self._told("GET", f"executions/{id}?wait={WAIT_SECONDS}"), "ok")
        self._told("POST", f"sessions/{session}/close", {})
        self._told("DELETE", f"tokens/{token}")

    def _propose(self) -> None:
        """Propose a cell, and keep or reject it."""
        assert self._path is not None
        session = self.sessions[-1]
        edits = [{"op": "insert", "cell_type": "markdown", "source": "What was found"}]
        asked = {"session_id": session, "edits": edits}
        self._told("PATCH", f"notebooks/{quote(self._path, '')}/cells", asked, **self._bearer)
        verdict = self._dice.choice(["keep", "reject"])
        self._told("POST", f"sessions/{session}/proposals/{verdict}", {})


class Sample(NamedTuple):
    """What a server at rest holds, and how fast it is."""

    memory: float
    """Bytes that no other process shares."""
    descriptors: float
    threads: float
    processes: float
    latency: float
    """Seconds of `1+1`, the median of some."""


def _sample(server: ServerProcess, session: str) -> Sample:
    process = psutil.Process(server.process.pid)
    runs = [timed(lambda: server.run(session, "1+1")) for _ in range(30)]
    return Sample(
        process.memory_full_info().uss,
        process.num_fds(),
        process.num_threads(),
        len(process.children(recursive=True)),
        statistics.median(runs),
    )


def run(folder: Path, *, size: float) -> Result:
    """Work for a week; the server is in `folder`.

    Raises
    ------
    Broken
        Something did not end as it has to; the message says what, and in which stretch.
    """
    share = max(1, round(EXECUTIONS * size / AGENTS / STRETCHES))
    history, samples = folder / "history", list[Sample]()
    history.mkdir()
    with postgresql() as cluster, (folder / "server.log").open("w") as log:
        sink = {"kind": "postgresql", "address": cluster.address}
        configuration = folder / "configuration.py"
        configuration.write_text(f"c.AgentExecApp.sinks = [{sink}]\n")
        server = ServerProcess(
            folder, f"--config={configuration}", wrapper=mounting(DISK, history), log=log
        )
        try:
            disk = as_seen_by(server, history)
            agents = [Agent(server, number) for number in range(AGENTS)]
            probe = server.open()
            with ThreadPoolExecutor(AGENTS) as pool:
                for stretch in range(STRETCHES):
                    print(f"stretch {stretch + 1} of {STRETCHES} …", file=sys.stderr, flush=True)
                    try:
                        if stretch == STRETCHES * 2 // 5:
                            cluster.kill()
                        elif stretch == STRETCHES // 2:
                            cluster.start()
                        elif stretch == STRETCHES * 3 // 5:
                            _fill_once(server, disk, probe)
                        list(pool.map(lambda agent: agent.work(share), agents))
                    except Broken as broken:
                        raise Broken(f"In stretch {stretch + 1}: {broken}") from broken
                    samples.append(_sample(server, probe))
            ended = _check(disk, [probe, *(each for agent in agents for each in agent.sessions)])
        finally:
            server.stop()
    happened = sum((agent.happened for agent in agents), Counter[str]())
    return _result(happened, ended, samples)


def _fill_once(server: ServerProcess, disk: Path, session: str) -> None:
    """Fill the disk, see that nothing runs, and make room again."""
    filler = fill(server, disk)
    refused = server.run(session, f"1  {'#' * 5000}")  # more than a file's last page has room for
    filler.unlink()
    if refused.status_code != 503:
        raise Broken(f"It ran on a full disk: {refused.text}")
    deadline = time.monotonic() + WAIT_SECONDS
    while not server.get("status")["history_available"]:
        if time.monotonic() > deadline:
            raise Broken("The record is not taken up again after the disk was full.")
        time.sleep(0.1)


def _check(history: Path, sessions: Sequence[str]) -> Counter[str]:
    """Return how the executions ended; raise Broken if one did not, or a chain is not whole."""
    ended: Counter[str] = Counter()
    for session in sessions:
        open_ = set[str]()
        for line in lines(history / "sessions" / session / "journal.jsonl"):
            if isinstance(line.entry, Accepted):
                open_.add(line.entry.execution_id)
            elif isinstance(line.entry, Finished):
                open_.remove(line.entry.execution_id)
                ended[line.entry.status] += 1
        if open_:
            raise Broken(f"{session} has executions without an end: {open_}")
    report = verify_history(history)
    if report.outcome is not Outcome.WHOLE:
        raise Broken(f"verify: {report.findings}")
    return ended


def _result(happened: Counter[str], ended: Counter[str], samples: Sequence[Sample]) -> Result:
    tenth = len(samples) // 10
    named = {
        "memory": [each.memory / 1e6 for each in samples],
        "descriptors": [each.descriptors for each in samples],
        "threads": [each.threads for each in samples],
        "processes": [each.processes for each in samples],
        "`1+1`": [1000 * each.latency for each in samples],
    }
    goals = [
        Goal(
            what=f"{name}, the last tenth ÷ the second",
            unit="×",
            limit=MOST_GROWTH,
            value=statistics.mean(values[-tenth:]) / statistics.mean(values[tenth : 2 * tenth]),
        )
        for name, values in named.items()
    ]
    units = {"memory": "MB", "`1+1`": "ms"}
    return Result(
        name=NAME,
        title=f"A week: {sum(ended.values()):,} executions on {AGENTS} kernels",
        how=(
            f"{AGENTS} agents work at once, five in scratch kernels and five in notebooks, with "
            "tokens. Mostly they run short code. A seed decides when they print 50 kB, draw, fail, "
            "run into a timeout, cancel, try, restart a kernel, end it with `os._exit`, open "
            "another session, propose a cell that is kept or rejected, or ask a person for "
            f"approval. PostgreSQL, which a sink fills, is away from stretch {STRETCHES * 2 // 5} "
            f"to {STRETCHES // 2} of {STRETCHES}; after {STRETCHES * 3 // 5}, the disk of the "
            "history is full once. Between stretches the server is at rest and is measured. "
            "Asserted: each step ends as it has to, nothing runs on a full disk, each accepted "
            "execution has an end, and the record verifies. The history is on a disk in memory."
        ),
        goals=goals,
        measurements=[
            *(Measurement.of(name, units.get(name, ""), values) for name, values in named.items()),
            *(
                Measurement.of(f"executions: {status}", "", [n])
                for status, n in sorted(ended.items())
            ),
            *(Measurement.of(f"steps: {what}", "", [n]) for what, n in happened.most_common()),
        ],
    )
