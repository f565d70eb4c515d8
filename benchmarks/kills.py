"""200 SIGKILLs of a server with six agents, a sink and signing: what was acknowledged is there.

After each kill another server takes the history up, and the round is checked in the files: the
journals, the trace that each code leaves, the chains, and at the end what PostgreSQL has.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from measures import Broken, Measurement, Result

from jupyter_agent_exec.audit.signer import SigningKey
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.journal.verify import verify_session
from jupyter_agent_exec.records import Accepted, Dispatched, Finished, Reviewed
from tests.audit.far_sides import PostgreSQL, postgresql
from tests.mcp.raw_mcp import headers_of, request
from tests.real_server import TOKEN
from tests.server_process import ServerProcess

NAME = "kills"
LATEST_KILL_SECONDS = 2.0
SINK_KILL_EVERY = 5
VERIFY_ALL_EVERY = 25
DRAIN_SECONDS = 120.0
ROWS = "SELECT journal, n, hash FROM agent_exec_entries"


class Acknowledged(NamedTuple):
    """What an agent was told."""

    session_id: str
    execution_id: str
    mark: str
    """What its code leaves in the trace."""
    status: str
    head: str | None
    """Of the chain; None if the answer had none."""
    length: int


class Round:
    """One life of the server: six agents, until it is killed.

    Parameters
    ----------
    folder
        Of the server; `traces` is there.
    marks
        Numbers that no code has had yet.
    earlier
        What was acknowledged in the round before, for a person to review.
    """

    def __init__(
        self,
        server: ServerProcess,
        folder: Path,
        marks: Iterator[int],
        earlier: Sequence[Acknowledged],
    ) -> None:
        self._server = server
        self._traces = folder / "traces"
        self._marks = marks
        self.sessions: list[str] = []
        self.acknowledged: list[Acknowledged] = []
        self.reviewed: set[Acknowledged] = set()
        self._earlier = cycle(earlier)

    def run(self, dice: random.Random) -> None:
        """Have the agents work, and kill the server at a random moment."""
        notebook = {"kind": "notebook", "path": "person.ipynb", "create": True}
        agents: list[tuple[Callable[[str], None], dict[str, Any]]] = [
            (self._polling, {"kind": "scratch"}),
            (self._by_mcp, {"kind": "scratch"}),
            (self._waiting, notebook),
            (self._waiting, notebook),
            (self._large, notebook),
            (self._keyed, notebook),
        ]
        self.sessions = [self._server.open(target=target) for _, target in agents]
        ways = [
            partial(way, session) for (way, _), session in zip(agents, self.sessions, strict=True)
        ]
        begun = [threading.Event() for _ in ways]
        with ThreadPoolExecutor(len(ways) + 1) as pool:
            working = [
                pool.submit(self._until_killed, *each) for each in zip(ways, begun, strict=True)
            ]
            working.append(pool.submit(self._until_killed, self._review, threading.Event()))
            try:
                are_at_work = all(event.wait(60) for event in begun)
                time.sleep(dice.random() * LATEST_KILL_SECONDS)  # the moment is what is tested
            finally:
                self._server.kill()
        for each in working:
            each.result()
        _must(are_at_work, "an agent had no answer within 60 s")

    def _until_killed(self, way: Callable[[], object], begun: threading.Event) -> None:
        with suppress(httpx2.TransportError):
            while True:  # until the connection breaks
                try:
                    way()
                finally:
                    begun.set()

    def _source(self, then: str = "") -> tuple[str, str]:
        mark = f"mark-{next(self._marks)}"
        return mark, f"with open({str(self._traces)!r}, 'a') as t: t.write('{mark}\\n')\n{then}"

    def _told(self, mark: str, told: dict[str, Any]) -> None:
        chain = told["chain"]
        self.acknowledged.append(
            Acknowledged(
                told["session_id"],
                told["id"],
                mark,
                told["status"],
                chain["head"],
                chain["length"],
            )
        )

    def _ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answered = self._server.ask(method, path, body, headers=headers)
        if answered.status_code not in (200, 201, 202):
            raise Broken(f"{method} {path}: {answered.status_code} {answered.text}")
        return answered.json()

    def _waiting(self, session: str, then: str = "1") -> None:
        mark, source = self._source(then)
        body = {"source": source, "wait": 30}
        self._told(mark, self._ask("POST", f"sessions/{session}/executions", body))

    def _polling(self, session: str) -> None:
        mark, source = self._source()
        body = {"source": source, "wait": 0}
        told = self._ask("POST", f"sessions/{session}/executions", body)
        self._told(mark, told)
        self._told(mark, self._ask("GET", f"executions/{told['id']}?wait=30"))

    def _large(self, session: str) -> None:
        self._waiting(session, "print('x' * 100_000)")

    def _keyed(self, session: str) -> None:
        """Send the same step twice, as an agent whose connection broke."""
        mark, source = self._source()
        body = {"source": source, "wait": 0}
        for _ in range(2):
            path = f"sessions/{session}/executions"
            self._told(mark, self._ask("POST", path, body, **{"Idempotency-Key": mark}))

    def _by_mcp(self, session: str) -> None:
        mark, source = self._source()
        called = {"session_id": session, "source": source, "wait": 30}
        params = {"name": "execute", "arguments": called}
        message = request("tools/call", params, modern=True)
        headers = headers_of(message, TOKEN, None)
        result = self._ask("POST", "mcp", message, **headers)["result"]
        if result.get("isError"):
            raise Broken(f"MCP: {result}")
        told = result["structuredContent"]
        ended = Acknowledged(session, told["execution_id"], mark, told["status"], None, 0)
        self.acknowledged.append(ended)

    def _review(self) -> None:
        """Decide about an execution of a closed session, as a person."""
        earlier = next(self._earlier, None)
        if earlier is None:
            raise httpx2.TransportError("there was no round before")
        path = f"executions/{earlier.execution_id}/review"
        self._ask("PUT", path, {"verdict": "approved"})
        self.reviewed.add(earlier)

    def check(self, history: Path) -> Counter[str]:
        """Return how the executions ended, once another server has taken the history up.

        Raises
        ------
        Broken
            Something acknowledged is lost, something was twice, or a chain is not whole.
        """
        ended: dict[str, list[str]] = {}
        hashes: dict[str, list[str]] = {}
        sources: Counter[str] = Counter()
        dispatched: Counter[str] = Counter()
        mine: dict[str, str] = {}
        reviews: set[str | None] = set()
        for session in {*self.sessions, *(each.session_id for each in self.reviewed)}:
            hashes[session] = []
            for line in lines(history / "sessions" / session / "journal.jsonl"):
                hashes[session].append(line.hash)
                if isinstance(line.entry, Accepted):
                    ended[line.entry.execution_id] = []
                    text = line.payloads[line.entry.source]
                    mark = text.partition("t.write('")[2].partition("\\n")[0]
                    sources[mark] += 1
                    if session in self.sessions:
                        mine[line.entry.execution_id] = mark
                elif isinstance(line.entry, Dispatched):
                    dispatched[line.entry.execution_id] += 1
                elif isinstance(line.entry, Finished):
                    ended[line.entry.execution_id].append(line.entry.status)
                elif isinstance(line.entry, Reviewed):
                    reviews.add(line.entry.execution_id)
            report = verify_session(history, session)
            _must(report.outcome is Outcome.WHOLE, f"{session} is not whole: {report.findings}")
        for told in self.acknowledged:
            is_there = told.execution_id in ended and told.mark in sources
            _must(is_there, f"lost, although acknowledged: {told}")
            is_under_way = told.status in ("queued", "running")
            _must(
                is_under_way or told.status in ended[told.execution_id], f"another end than {told}"
            )
            head = hashes[told.session_id][told.length - 1 : told.length]
            _must(told.head in (None, *head), f"the chain does not have the head of {told}")
        for told in self.reviewed:
            _must(
                told.execution_id in reviews, f"the review is lost, although acknowledged: {told}"
            )
        for id, statuses in ended.items():
            _must(len(statuses) == 1, f"{id} has the ends {statuses}")
        _must(max(dispatched.values(), default=0) <= 1, "sent to a kernel twice")
        _must(max(sources.values(), default=0) <= 1, "accepted twice")
        left = Counter(self._traces.read_text().split())
        _must(max(left.values(), default=0) <= 1, f"ran twice: {left.most_common(1)}")
        _must(left.keys() <= sources.keys(), f"ran unrecorded: {left.keys() - sources.keys()}")
        for id, mark in mine.items():
            _must(ended[id] != ["ok"] or mark in left, f"{id} is said to have run, and did not")
            _must(ended[id] != ["cancelled"] or mark not in left, f"{id} ran, and is cancelled")
        self._traces.write_text("")
        return Counter(statuses[0] for id, statuses in ended.items() if id in mine)


def _must(is_so: bool, message: str) -> None:
    if not is_so:
        raise Broken(message)


def run(folder: Path, *, size: float) -> Result:
    """Kill servers; the history is in `folder`.

    Raises
    ------
    Broken
        An invariant broke; the message says which, and in which round.
    """
    kills, dice = max(3, round(200 * size)), random.Random(17)
    history, marks = folder / "history", count(1)
    (folder / "traces").touch()
    ended: Counter[str] = Counter()
    acknowledged, starts = 0, list[float]()
    with postgresql() as cluster, (folder / "server.log").open("w") as log:
        sink = {"kind": "postgresql", "address": cluster.address, "delay": 0.05}
        key = folder / "key.pem"
        configuration = folder / "configuration.py"
        configuration.write_text(
            f"c.AgentExecApp.sinks = [{sink}]\n"
            "c.AgentExecApp.sign_heads = True\n"
            f"c.AgentExecApp.signing_key = {str(key)!r}\n"
            "c.AgentExecApp.signing_interval = 0.1\n"
        )
        SigningKey.made(key)
        before: Round | None = None
        for number in range(1, kills + 2):
            begin = time.perf_counter()
            server = ServerProcess(folder, f"--config={configuration}", log=log)
            starts.append(time.perf_counter() - begin)
            try:
                server.get("sessions?limit=1")  # the history is taken up
                if before is not None:
                    ended += before.check(history)
                    acknowledged += len(before.acknowledged) + len(before.reviewed)
                if number % VERIFY_ALL_EVERY == 0:
                    _verify(history, key)
                if number > kills:
                    break
                if number % 10 == 0:
                    print(f"kill {number} of {kills} …", file=sys.stderr, flush=True)
                if number % SINK_KILL_EVERY == 0:
                    cluster.kill()
                    cluster.start()
                earlier = [] if before is None else before.acknowledged
                before = Round(server, folder, marks, earlier)
                before.run(dice)
            except Broken as broken:
                raise Broken(f"After kill {number - 1}: {broken}") from broken
            finally:
                if server.process.returncode is None:
                    server.stop()
        entries = _compare(history, cluster)
        _verify(history, key)
    total = sum(ended.values())
    return Result(
        name=NAME,
        title=f"{kills} SIGKILLs under six agents",
        how=(
            "Four agents share a person's notebook: two wait for each answer, one prints 100 kB"
            " each time, one sends each step twice with the same key. One polls and one calls "
            "the MCP tool, in scratch kernels. A person reviews what ran before. Heads are "
            "signed every 0.1 s, and a sink in PostgreSQL gets everything. The server is killed"
            " up to 2 s after all have been answered once; every fifth time, PostgreSQL is "
            "killed too. Then another server takes the history up. Asserted after each kill: "
            "each acknowledged execution is in the record, with the end and the chain's head "
            "that were told; each has one end; none was accepted, sent or run twice, none ran "
            "unrecorded; all chains of the round are whole. At the end, also: `verify --key` "
            "holds, and PostgreSQL has each entry exactly once."
        ),
        goals=[],
        measurements=[
            Measurement.of("acknowledged answers", "", [acknowledged]),
            Measurement.of("executions", "", [total]),
            *(Measurement.of(f"of which {status}", "", [n]) for status, n in ended.most_common()),
            Measurement.of("entries in PostgreSQL", "", [entries]),
            Measurement.of("start of a server", "s", starts),
        ],
    )


def _verify(history: Path, key: Path) -> None:
    """Run `verify` with the key's id; raise Broken if something is not whole or not signed."""
    command = [sys.executable, "-m", "jupyter_agent_exec.cli", "verify", "--json", str(history)]
    done = subprocess.run(
        [*command, "--key", SigningKey(key).id], capture_output=True, text=True, timeout=600
    )
    told = json.loads(done.stdout)
    _must(done.returncode == 0, f"verify: {told.get('findings')}")


def _compare(history: Path, cluster: PostgreSQL) -> int:
    """Return how many entries the sink has; raise Broken if they are not those of the files."""
    files = [*history.glob("ledger-*.jsonl"), *history.glob("sessions/*/journal.jsonl")]
    expected = Counter(
        (path.parent.name if path.name == "journal.jsonl" else path.stem, n, line[9:73].decode())
        for path in files
        for n, line in enumerate(path.read_bytes().splitlines())
    )
    deadline = time.monotonic() + DRAIN_SECONDS
    while True:
        found = Counter(cluster.rows(ROWS))
        if found == expected:
            return found.total()
        extra = found - expected
        _must(not extra, f"PostgreSQL has {len(extra)} entries too much: {next(iter(extra), None)}")
        _must(time.monotonic() < deadline, f"PostgreSQL lacks {(expected - found).total()} entries")
        time.sleep(0.2)
