"""100 agents that always have one execution each, by REST and MCP, on few kernels.

Beside it the same agents straight to the kernels over ZMQ, in turns with the server.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import zmq
import zmq.asyncio
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session
from kernels import QUIET
from measures import Goal, Measurement, Result, percentile, summary
from servers import Server, server

from tests.mcp.raw_mcp import LATEST, request

NAME = "load"
AGENTS = 100
BY_MCP = 30
BY_TRIALS = 10
KERNELS = (10, 50)
SUBMIT_P95_MS = {10: 150.0, 50: 300.0}
MOST_RAW = 1 / 0.8
"""Of executions a second: this server has at least 0.8 of what bare kernels have."""
ALL_AT_ONCE_SECONDS = 1.0
SOURCES = ("1+1", "n = 1\nfor i in range(20): n += i\nprint(n)", "import math\nmath.sqrt(2)")
API = "/api/agent-exec"
WAIT = 30
TIMEOUT = 120.0


class Connection:
    """A kept HTTP connection, with as little of a client as it takes: it shares the machine."""

    def __init__(self, url: str, credential: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._address = (parts.hostname, parts.port)
        self._head = f"Host: {parts.netloc}\r\nAuthorization: {credential}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """Send a request; return the answer's status and its JSON."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Type: application/json\r\n"
        head += f"Content-Length: {len(data)}\r\n{''.join(lines)}\r\n"
        writer.write(head.encode() + data)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        found = dict(line.lower().split(": ", 1) for line in answer[1:] if line)
        if "content-length" in found:
            told = await reader.readexactly(int(found["content-length"]))
        else:
            told = b""
            while size := int(await reader.readline(), 16):
                told += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        return int(answer[0].split()[1]), json.loads(told) if told else None

    def close(self) -> None:
        """Close it."""
        if self._streams is not None:
            self._streams[1].close()


@dataclass(slots=True)
class Found:
    """What one way of running came to."""

    per_second: list[float] = field(default_factory=list)
    """Executions, by round."""
    submits: list[float] = field(default_factory=list)
    """Seconds until `wait: 0` was answered."""
    whole: list[float] = field(default_factory=list)
    """Seconds from the request to the end of the execution."""
    errors: int = 0
    begun_at: float = 0.0
    """When the round began."""
    first_submits: list[float] = field(default_factory=list)
    """The same as `submits`, just after a round began with all agents at once."""
    lags: list[float] = field(default_factory=list)
    """Seconds by which the server's loop was late."""

    def submitted(self, at: float) -> None:
        """Take note that a submit was answered that was sent at a time."""
        first = at < self.begun_at + ALL_AT_ONCE_SECONDS
        (self.first_submits if first else self.submits).append(time.perf_counter() - at)


class RestAgent:
    """Submits, and then waits for the end in another request; in trials, if `trial` is set."""

    def __init__(self, connection: Connection, session_id: str, found: Found) -> None:
        self._connection = connection
        self._session_id = session_id
        self.found = found
        self.trial = False

    async def run(self, source: str) -> bool:
        """Run a source; tell whether it succeeded."""
        begin = time.perf_counter()
        path = f"{API}/sessions/{self._session_id}/executions"
        asked = {"source": source, "wait": 0, "placement": "none", "trial": self.trial}
        status, told = await self._connection.ask("POST", path, asked)
        self.found.submitted(begin)
        if status not in (201, 202):
            return False
        while told["status"] in ("queued", "running"):
            path = f"{API}/executions/{told['id']}?wait={WAIT}"
            status, told = await self._connection.ask("GET", path)
            if status != 200:
                return False
        return bool(told["status"] == "ok")


class McpAgent:
    """Calls the tool `execute`, which answers when the execution has ended."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self._connection = connection
        self._session_id = session_id

    async def run(self, source: str) -> bool:
        """Run a source; tell whether it succeeded."""
        asked = {"session_id": self._session_id, "source": source, "wait": WAIT}
        message = request("tools/call", {"name": "execute", "arguments": asked}, modern=True)
        status, told = await self._connection.ask(
            "POST",
            f"{API}/mcp",
            message,
            Accept="application/json, text/event-stream",
            MCP_Protocol_Version=LATEST,
            Mcp_Method="tools/call",
            Mcp_Name="execute",
        )
        return status == 200 and not told.get("result", {"isError": True}).get("isError")


class ZmqAgent:
    """Has sockets of its own to a kernel, as any client of Jupyter's kernels has."""

    def __init__(self, info: dict[str, Any], context: zmq.asyncio.Context) -> None:
        self._session = Session(key=info["key"], signature_scheme=info["signature_scheme"])
        self._shell = context.socket(zmq.DEALER)
        self._iopub = context.socket(zmq.SUB)
        self._iopub.subscribe(b"")
        for socket, port in ((self._shell, "shell_port"), (self._iopub, "iopub_port")):
            socket.linger = 0
            socket.connect(f"ipc://{info['ip']}-{info[port]}")

    async def run(self, source: str) -> bool:
        """Run a source until its reply and its idle have come; tell whether it succeeded."""
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        message = self._session.msg("execute_request", content)
        parts = self._session.serialize(message)
        await self._shell.send_multipart(parts)
        id = message["header"]["msg_id"]
        ok, idle = await asyncio.gather(self._reply(id), self._idle(id))
        return ok and idle

    async def _reply(self, id: str) -> bool:
        while True:
            _, parts = self._session.feed_identities(await self._shell.recv_multipart())
            told = self._session.deserialize(parts)
            if told["parent_header"].get("msg_id") == id:
                return bool(told["content"]["status"] == "ok")

    async def _idle(self, id: str) -> bool:
        while True:
            _, parts = self._session.feed_identities(await self._iopub.recv_multipart())
            told = self._session.deserialize(parts)
            of = told["parent_header"].get("msg_id")
            if of == id and told["content"].get("execution_state") == "idle":
                return True

    def close(self) -> None:
        """Close its sockets."""
        self._shell.close()
        self._iopub.close()


Agent = RestAgent | McpAgent | ZmqAgent


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; the server is in `folder`."""
    rounds, seconds = (1, 3.0) if quick else (5, 10.0)
    measured = {}
    for kernels in KERNELS[:1] if quick else KERNELS:
        with (
            server(folder / str(kernels), extensions={"loop_probe": True}) as running,
            raw_kernels(folder, kernels) as infos,
        ):
            measured[kernels] = asyncio.run(_measure(running, infos, rounds, seconds))
    return _result(measured)


@contextmanager
def raw_kernels(folder: Path, count: int) -> Iterator[list[dict[str, Any]]]:
    """Start kernels that no server knows, and end them at the end; their connections."""
    managers = [
        KernelManager(kernel_name="python3", transport="ipc", ip=str(folder / f"raw-{number}"))
        for number in range(count)
    ]
    try:
        for manager in managers:
            manager.start_kernel(**QUIET)
        yield [manager.get_connection_info() for manager in managers]
    finally:
        for manager in managers:
            manager.shutdown_kernel(now=True)


async def _measure(
    running: Server, infos: list[dict[str, Any]], rounds: int, seconds: float
) -> tuple[Found, Found, Found]:
    """Let the server and bare kernels take turns, then the server with trials; what was found."""
    ours, raw, mixed = Found(), Found(), Found()
    context = zmq.asyncio.Context(io_threads=1)
    context.max_sockets = 4096
    async with AsyncExitStack() as stack:
        raws = [ZmqAgent(infos[index % len(infos)], context) for index in range(AGENTS)]
        for each in raws:
            stack.callback(each.close)
        await asyncio.gather(*(each.run("1") for each in raws))  # all have their ports by then
        person = Connection(running.url, f"token {running.token}")
        stack.callback(person.close)
        kernels: list[str] = []
        agents: list[RestAgent | McpAgent] = []
        for index in range(AGENTS):
            if index < len(infos):  # one after the other: they look for free ports
                kernels.append((await _asked(person, "/api/kernels", {"name": "python3"}))["id"])
            kernel_id = kernels[index % len(infos)]
            agents.append(await _agent(stack, person, running, kernel_id, index, ours))
        await asyncio.gather(*(each.run("1") for each in agents))
        ours.submits.clear()
        await _lags(person)
        for number in range(rounds):
            ways: list[tuple[Sequence[Agent], Found]] = [(agents, ours), (raws, raw)]
            for chosen, found in ways if number % 2 == 0 else reversed(ways):
                await _round(chosen, found, seconds)
                found.lags += await _lags(person)
        for index, agent in enumerate(agents):
            if isinstance(agent, RestAgent):
                agent.found, agent.trial = mixed, index < BY_TRIALS
        for _ in range(rounds):
            await _round(agents, mixed, seconds)
            mixed.lags += await _lags(person)
    context.destroy()
    return ours, raw, mixed


async def _lags(person: Connection) -> list[float]:
    _, told = await person.ask("GET", "/benchmark/loop-lag")
    return list(told["seconds"])


async def _agent(
    stack: AsyncExitStack,
    person: Connection,
    running: Server,
    kernel_id: str,
    index: int,
    found: Found,
) -> RestAgent | McpAgent:
    """Give an agent a token, a connection and a session in a kernel."""
    asked = {"label": f"agent {index}", "scopes": ["exec:notebook", "history:read"]}
    minted = await _asked(person, f"{API}/tokens", asked)
    connection = Connection(running.url, f"Bearer {minted['secret']}")
    stack.callback(connection.close)
    target = {"kind": "kernel", "kernel_id": kernel_id}
    opened = {"agent": {"name": f"agent {index}"}, "target": target}
    session = (await _asked(connection, f"{API}/sessions", opened))["id"]
    if index >= AGENTS - BY_MCP:
        return McpAgent(connection, session)
    return RestAgent(connection, session, found)


async def _asked(connection: Connection, path: str, body: Any) -> Any:
    status, told = await connection.ask("POST", path, body)
    assert status in (200, 201), told
    return told


async def _round(agents: Sequence[Agent], found: Found, seconds: float) -> None:
    """Have each agent run one source after the other for some seconds."""
    begin = found.begun_at = time.perf_counter()
    ended = 0

    async def work(agent: Agent, index: int) -> None:
        nonlocal ended
        while (begun := time.perf_counter()) < begin + seconds:
            succeeded = await agent.run(SOURCES[index % len(SOURCES)])
            now = time.perf_counter()
            found.whole.append(now - begun)
            found.errors += not succeeded
            ended += now < begin + seconds
            index += 1

    await asyncio.gather(*(work(agent, index) for index, agent in enumerate(agents)))
    found.per_second.append(ended / seconds)


def _result(measured: dict[int, tuple[Found, Found, Found]]) -> Result:
    goals, measurements = [], []
    for kernels, (ours, raw, mixed) in measured.items():
        on = f"on {kernels} kernels"
        pairs = zip(raw.per_second, ours.per_second, strict=True)
        what = f"{on}: raw ZMQ ÷ this server, executions a second"
        goals += [
            Goal.of_median(what, "×", MOST_RAW, [theirs / own for theirs, own in pairs]),
            Goal(
                what=f"{on}: errors",
                unit="",
                limit=0,
                value=ours.errors + raw.errors + mixed.errors,
            ),
        ]
        for found, how in ((ours, on), (mixed, f"{on}, with {BY_TRIALS} by trials")):
            submits = summary([1000 * seconds for seconds in found.submits])
            goals.append(
                Goal(
                    what=f"{how}: a submit answered, p95",
                    unit="ms",
                    limit=SUBMIT_P95_MS[kernels],
                    value=submits.p95,
                )
            )
            measurements += [
                Measurement.of(f"{how}: executions a second", "", found.per_second),
                Measurement.of_times(f"{how}: a submit answered", found.submits),
                Measurement.of_times(f"{how}: a submit answered, all at once", found.first_submits),
                Measurement.of_times(f"{how}: an execution", found.whole),
                Measurement.of_times(f"{how}: the loop's lag", found.lags),
                Measurement.of(
                    f"{how}: the loop's lag, p99", "ms", [1000 * percentile(found.lags, 99)]
                ),
            ]
        measurements += [
            Measurement.of(f"{on}: executions a second, raw ZMQ", "", raw.per_second),
            Measurement.of_times(f"{on}: an execution, raw ZMQ", raw.whole),
        ]
    return Result(
        name=NAME,
        title=f"{AGENTS} agents at once",
        how=(
            f"{AGENTS} agents always have one execution each. They share kernels that Jupyter "
            f"started. Each agent has its own session, token and connection. {AGENTS - BY_MCP} of "
            "them use REST: they submit with `wait: 0` and wait for the end in another request. "
            f"{BY_MCP} call the MCP tool `execute`. In turns with them, {AGENTS} agents use as "
            "many other kernels directly over ZMQ, each with its own sockets and jupyter_client's "
            "`Session`. At last, the server has turns in which "
            f"{BY_TRIALS} of the agents that use REST run trials. Agents, server and kernels share "
            "the machine. Each turn begins with all agents at once; submits of its first second "
            "are shown separately."
        ),
        goals=goals,
        measurements=measurements,
    )
