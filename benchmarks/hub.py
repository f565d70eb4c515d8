"""A hub's service with 1,000 users, whose servers are one light program; two servers are real."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import httpx2
import psutil  # type: ignore[import-untyped]
from load import Connection
from measures import Broken, Goal, Measurement, Result, summary, timed
from servers import HERE, free_port

from tests.hub.real_hub import RealHub, real_hub
from tests.hub.service_users import CONFIGURATION, Person, service
from tests.mcp.raw_mcp import headers_of, request

NAME = "hub"
AT_ONCE = 100
CALLS = 20
PAUSE_SECONDS = 1.0
"""Between two calls of an agent."""
FLOODING = 20
FLOOD_SECONDS = 20.0
REAL = ("ada", "bob")
RETURN_ADDRESS = "http://localhost:9/"
SPAWNER = """
from jupyterhub.spawner import SimpleLocalProcessSpawner

class Spawner(SimpleLocalProcessSpawner):
    def is_simulated(self):
        return self.user.name.startswith("simulated")

    async def start(self):
        return ("127.0.0.1", {port}) if self.is_simulated() else await super().start()

    async def poll(self):
        return None if self.is_simulated() else await super().poll()

c.JupyterHub.spawner_class = Spawner
"""


class User(NamedTuple):
    """A user whose agent has signed in."""

    name: str
    token: str


def run(folder: Path, *, size: float) -> Result:
    """Measure it; the hub is in `folder`.

    Raises
    ------
    Broken
        An answer was wrong: an error, or another user's.
    """
    users = max(20, round(1000 * size))
    with _simulated() as port:
        more = CONFIGURATION + SPAWNER.replace("{port}", str(port))
        with real_hub(folder, more) as hub:
            try:
                return _measure(hub, port, users)
            finally:
                for name in REAL:
                    hub.stop_server(name)


def _measure(hub: RealHub, port: int, count: int) -> Result:
    names = [f"simulated-{number}" for number in range(count)]
    begin = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        users = list(pool.map(lambda name: _signed_in(hub, name), names))
    signing_in = time.perf_counter() - begin
    for name in REAL:
        _check_real(hub, _signed_in(hub, name))
    before = _cpu_seconds(hub)
    through = asyncio.run(_calls(service(hub), users))
    cpu = (_cpu_seconds(hub) - before) / len(through.seconds)
    owned = [User(user.name, told) for user, told in zip(users, through.credentials, strict=True)]
    direct = asyncio.run(_calls(f"http://127.0.0.1:{port}", owned, calls=2))
    alone, flooded, flood = asyncio.run(_flood(service(hub), users))
    memory = float(_process(hub).memory_info().rss) / 1e6
    restart = _restart(hub, users[0])
    forwarding = 1000 * (summary(through.seconds).p95 - summary(direct.seconds).p95)
    return Result(
        name=NAME,
        title=f"A hub's service with {count:,} users",
        how=(
            "JupyterHub, its proxy and the service are real, and so are the servers of two users. "
            "One light program stands for all others' servers; it tells each answer's user and "
            "checks the credential. Each user signs an agent in with a browser without a screen, "
            f"eight at a time. Then each agent calls {CALLS} times, {min(AT_ONCE, count)} agents "
            "at a time, a second apart, through the hub's proxy, and twice straight to the "
            "program. At last one user's agent calls without a pause on "
            f"{FLOODING} connections. Asserted: no error, each answer is the caller's own, and "
            "after a restart of the service the tokens still hold."
        ),
        goals=[
            Goal(what="forwarding, p95 beyond the program's own", unit="ms", limit=15,
                 value=forwarding),
            Goal(what="memory of the service", unit="MB", limit=300, value=memory),
            Goal(what="restart, until a token holds again", unit="s", limit=5, value=restart),
            Goal(what="other users' p95 during a flood ÷ before", unit="×", limit=1.5,
                 value=summary(flooded).p95 / summary(alone).p95),
        ],
        measurements=[
            Measurement.of("sign-ins a second", "", [count / signing_in]),
            Measurement.of_times("a call through the service", through.seconds),
            Measurement.of_times("CPU time of the service for a call", [cpu]),
            Measurement.of_times("a call straight to the program", direct.seconds),
            Measurement.of("calls a second of the one who floods", "", [flood]),
        ],
    )  # fmt: skip


@contextmanager
def _simulated() -> Iterator[int]:
    """Run the program that stands for users' servers; yield its port."""
    port = free_port()
    program = subprocess.Popen([sys.executable, str(HERE / "simulated_users.py"), str(port)])
    try:
        yield port
    finally:
        program.terminate()
        program.wait()


def _signed_in(hub: RealHub, name: str) -> User:
    """Sign an agent in, as a client of MCP and its user do."""
    address = service(hub)
    person = Person(hub, name)
    verifier = secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    client = {"client_name": "Agent", "redirect_uris": [RETURN_ADDRESS]}
    with person.browser:
        registered = person.browser.post(f"{address}/sign-in/register", json=client).json()
        asked = {
            "response_type": "code",
            "client_id": registered["client_id"],
            "redirect_uri": RETURN_ADDRESS,
            "code_challenge": challenge.decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        answered = person.agree(f"{address}/sign-in/authorize?{urlencode(asked)}")
        fields = {
            "grant_type": "authorization_code",
            "code": answered.params["code"],
            "client_id": registered["client_id"],
            "redirect_uri": RETURN_ADDRESS,
            "code_verifier": verifier,
            **{n: registered[n] for n in ("client_secret",) if n in registered},
        }
        told = person.browser.post(f"{address}/sign-in/token", data=fields)
    if told.status_code != 200:
        raise Broken(f"{name} is not signed in: {told.status_code} {told.text}")
    return User(name, str(told.json()["access_token"]))


def _check_real(hub: RealHub, user: User) -> None:
    """See that a real server answers its user's agent."""
    body = request("tools/list", modern=True)
    headers = headers_of(body, user.token, None)
    answered = httpx2.post(f"{service(hub)}/mcp", json=body, headers=headers, timeout=60)
    if "execute" not in answered.text:
        raise Broken(f"{user.name}: {answered.status_code} {answered.text}")


class Agent:
    """Calls for one user, on a connection of its own."""

    def __init__(self, address: str, user: User) -> None:
        self.user = user
        is_service = "/services/" in address
        self._path = f"{urlsplit(address).path}/mcp"
        if not is_service:
            self._path = f"/user/{user.name}/api/agent-exec/mcp"
        self._connection = Connection(address, f"Bearer {user.token}")
        self.credential = ""
        """The agent token that the last answer was for."""

    async def call(self) -> None:
        """Call once; raise Broken if the answer is not this user's."""
        called = {"name": "execute", "arguments": {"source": "1"}}
        message = request("tools/call", called, modern=True)
        status, told = await self._connection.ask("POST", self._path, message)
        result = told.get("result", {}) if status == 200 else {}
        if (result.get("user"), told.get("id")) != (self.user.name, message["id"]):
            raise Broken(f"{self.user.name}, call {message['id']}: {status} {told}")
        self.credential = result["credential"]

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()


class Calls(NamedTuple):
    """What the calls of all users took, and which agent tokens arrived."""

    seconds: list[float]
    credentials: list[str]


async def _calls(address: str, users: Sequence[User], calls: int = CALLS) -> Calls:
    """Have each user's agent call some times, so many agents at once."""
    taken: list[float] = []
    credentials: dict[str, str] = {}
    left = iter(users)

    async def work(number: int) -> None:
        await asyncio.sleep(PAUSE_SECONDS * number / AT_ONCE)  # not all at the same moment
        for user in left:
            agent = Agent(address, user)
            await _in_time(agent, calls, taken)
            credentials[user.name] = agent.credential
            agent.close()

    await asyncio.gather(*(work(number) for number in range(min(AT_ONCE, len(users)))))
    return Calls(taken, [credentials[user.name] for user in users])


async def _in_time(agent: Agent, calls: int, taken: list[float]) -> None:
    for _ in range(calls):
        begin = time.perf_counter()
        await agent.call()
        taken.append(time.perf_counter() - begin)
        await asyncio.sleep(PAUSE_SECONDS)


async def _flood(address: str, users: Sequence[User]) -> tuple[list[float], list[float], float]:
    """Return what others' calls take before and during one user's flood, and how fast that is."""
    others = [Agent(address, user) for user in users[1 : AT_ONCE + 1]]
    flooding = [Agent(address, users[0]) for _ in range(FLOODING)]

    async def together() -> list[float]:
        taken: list[float] = []

        async def work(number: int, agent: Agent) -> None:
            await asyncio.sleep(PAUSE_SECONDS * number / AT_ONCE)
            await _in_time(agent, round(FLOOD_SECONDS / PAUSE_SECONDS), taken)

        await asyncio.gather(*(work(*each) for each in enumerate(others)))
        return taken

    calls = 0

    async def flood(agent: Agent) -> None:
        nonlocal calls
        while True:
            await agent.call()
            calls += 1

    alone = await together()
    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        flooders = [group.create_task(flood(agent)) for agent in flooding]
        during = await together()
        for flooder in flooders:
            flooder.cancel()
    per_second = calls / (time.perf_counter() - begin)
    for agent in (*others, *flooding):
        agent.close()
    return alone, during, per_second


def _process(hub: RealHub) -> psutil.Process:
    children = psutil.Process(hub.process.pid).children()
    return next(each for each in children if "jupyter_agent_exec.cli" in each.cmdline())


def _cpu_seconds(hub: RealHub) -> float:
    used = _process(hub).cpu_times()
    return float(used.user + used.system)


def _restart(hub: RealHub, user: User) -> float:
    """End the service, which the hub starts again; return the seconds until a token holds."""
    ended = _process(hub)
    ended.terminate()
    ended.wait(30)
    return timed(lambda: _wait_for(hub, user))


def _wait_for(hub: RealHub, user: User) -> None:
    deadline = time.monotonic() + 120
    headers = {"Authorization": f"Bearer {user.token}"}
    while True:
        try:
            message = request("tools/call", modern=True)
            told = httpx2.post(f"{service(hub)}/mcp", json=message, headers=headers, timeout=30)
            if told.status_code == 200 and told.json().get("result", {}).get("user") == user.name:
                return
            if told.status_code < 500:
                raise Broken(f"After a restart: {told.status_code} {told.text}")
        except httpx2.TransportError:
            pass
        if time.monotonic() > deadline:
            raise Broken("The service was not back within 120 s.")
        time.sleep(0.02)
