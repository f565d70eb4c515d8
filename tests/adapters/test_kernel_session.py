from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

import pytest

from jupyter_agent_exec.adapters.kernel_session import (
    KernelSession,
    OpenSession,
    SessionOptions,
    Submission,
    Target,
    life_of,
)
from jupyter_agent_exec.adapters.own_servers import OWN_SERVERS
from jupyter_agent_exec.adapters.result_pieces import state_note
from jupyter_agent_exec.client import AgentExecClient, ClientError, Session
from jupyter_agent_exec.errors import SessionClosed
from tests.real_server import Gate, RealServer, environment, real_server

STARTED = "open('started', 'w').close()\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def place(server: RealServer) -> Iterator[KernelSession]:
    where = Target(url=server.url, token=server.token)
    workplace = KernelSession(where, SessionOptions(agent="adapter", timeout=60))
    yield workplace
    workplace.close()


def look(_: Session) -> None:
    """Do nothing with a session that is open."""


def restarted(session: Session) -> None:
    session.restart()


class Opening(NamedTuple):
    """A session that opens when its gate is let go."""

    place: KernelSession
    gate: Gate
    attempts: Path
    """A byte for each."""


@contextmanager
def opening(server: RealServer, folder: Path, agent: str, then: str) -> Iterator[Opening]:
    gate, attempts = Gate(folder), folder / "attempts"
    counted = f"import os\nattempts = open({str(attempts)!r}, 'ab', 0)\nattempts.write(b'.')\n"
    held = f"if attempts.tell() == 1:\n{indent(gate.source, '    ')}\n"
    options = SessionOptions(agent=agent, init_source=counted + held + then)
    place = KernelSession(Target(url=server.url, token=server.token), options)
    yield Opening(place, gate, attempts)
    place.close()


def statuses(server: RealServer, agent: str) -> list[list[str]]:
    with AgentExecClient(server.url, server.token) as client:
        return [[r.status for r in s.executions()] for s in client.sessions(agent=agent)]


def test_sources_run_in_order_and_what_follows_a_failure_does_not_run(place: KernelSession) -> None:
    first, failed, last = place.run(["x = 1", "1 / 0", "x = 2"])
    assert [first.status, failed.status, last.status] == ["ok", "error", "cancelled"]
    (value,) = place.run(["x"])
    assert value.text == "1"


def test_it_serves_a_loop_that_runs_blocking_and_awaited(place: KernelSession) -> None:
    async def both() -> list[str]:
        (blocking,) = place.run(["40 + 2"])
        (awaited,) = await place.run_async(["40 + 3"])
        return [blocking.text, awaited.text]

    assert asyncio.run(both()) == ["42", "43"]
    assert asyncio.run(both()) == ["42", "43"]


def test_calls_at_once_run_in_their_order(place: KernelSession) -> None:
    async def calls() -> str:
        await place.run_async(["order = []"])
        await asyncio.gather(*(place.run_async([f"order.append({n})"]) for n in range(30)))
        [shown] = await place.run_async(["print(*order)"])
        return shown.text

    assert asyncio.run(calls()).split() == [str(n) for n in range(30)]


def test_nothing_waits_for_what_could_not_begin() -> None:
    place = OpenSession(Target(url="http://127.0.0.1:1"), SessionOptions(agent="adapter"))
    asked = Submission(["1"])
    before = threading.stack_size(1 << 46)  # for which there is no memory
    try:
        with pytest.raises(RuntimeError, match="thread"):
            place.submit(asked)
    finally:
        threading.stack_size(before)
    with pytest.raises(ClientError):
        place.submit(Submission(["2"])).result(60)
    assert asked.sending.is_set()
    place.close()


def test_threads_share_one_session(place: KernelSession, server: RealServer) -> None:
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: texts.append(place.run([f"'t{n}'"])[0].text))
        for n in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts) == [f"'t{n}'" for n in range(5)]


def test_cancelling_the_task_stops_the_code(place: KernelSession, server: RealServer) -> None:
    async def cancelled() -> None:
        place.options.agent = "cancelled"
        marked = server.root_dir / "started"
        source = STARTED + "import time\nwhile True: time.sleep(0.01)"
        task = asyncio.create_task(place.run_async([source, "never = 1"]))
        while not marked.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert place.run(["'never' in dir()"])[0].text == "False"
    assert statuses(server, "cancelled") == [["interrupted", "cancelled", "ok"]]


def test_cancelled_code_stops_though_the_event_loop_ends_at_once(
    place: KernelSession, server: RealServer
) -> None:
    async def left() -> None:
        place.options.agent = "left"
        marked = server.root_dir / "started"
        marked.unlink(missing_ok=True)
        task = asyncio.create_task(place.run_async([STARTED + "while True: pass"]))
        while not marked.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0)

    asyncio.run(left())
    assert place.run(["1"])[0].text == "1"
    assert statuses(server, "left") == [["interrupted", "ok"]]


def test_cancelling_while_a_session_fails_to_open_does_not_open_another(
    server: RealServer, tmp_path: Path
) -> None:
    async def cancelled(here: Opening) -> None:
        task = asyncio.create_task(here.place.run_async(["1"]))
        await asyncio.to_thread(here.gate.wait_until_it_runs)
        task.cancel()
        await asyncio.to_thread(here.gate.let_it_go_on)
        with pytest.raises(asyncio.CancelledError):
            await task

    with opening(server, tmp_path, "fails", "1 / 0") as here:
        asyncio.run(cancelled(here))
    assert here.attempts.read_bytes() == b"."


def test_ctrl_c_while_a_session_fails_to_open_does_not_open_another(
    server: RealServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opening(server, tmp_path, "fails", "1 / 0") as here:
        pressed = threading.Event()

        def press() -> None:
            here.gate.wait_until_it_runs()
            os.kill(os.getpid(), signal.SIGINT)
            pressed.wait()
            here.gate.let_it_go_on()

        def handle(*_: object) -> None:
            pressed.set()
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, handle)
        presser = threading.Thread(target=press)
        presser.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                here.place.run(["1"])
        finally:
            signal.signal(signal.SIGINT, before)
            presser.join()
    assert here.attempts.read_bytes() == b"."


def test_what_was_cancelled_while_it_opened_is_closed_with_the_rest(
    server: RealServer, tmp_path: Path
) -> None:
    async def cancelled(here: Opening) -> None:
        task = asyncio.create_task(here.place.do_async(look))
        await asyncio.to_thread(here.gate.wait_until_it_runs)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(here.gate.let_it_go_on)
        await here.place.close_async()

    with opening(server, tmp_path, "left behind", "") as here:
        asyncio.run(cancelled(here))
    assert states(server, "left behind") == ["closed"]


def test_code_that_is_cancelled_while_the_session_opens_never_runs(
    server: RealServer, tmp_path: Path
) -> None:
    async def cancelled(here: Opening) -> None:
        task = asyncio.create_task(here.place.run_async(["1"]))
        await asyncio.to_thread(here.gate.wait_until_it_runs)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(here.gate.let_it_go_on)
        [result] = await here.place.run_async(["2"])
        assert result.text == "2"

    with opening(server, tmp_path, "given up", "") as here:
        asyncio.run(cancelled(here))
    with AgentExecClient(server.url, server.token) as client:
        [session] = client.sessions(agent="given up")
        init, *others = session.executions()
    assert init.execution.init
    assert [each.execution.source for each in others] == ["2"]


def test_what_goes_on_while_it_is_closed_opens_nothing_again(
    place: KernelSession, server: RealServer
) -> None:
    place.options.agent = "closing"
    inside, go = threading.Event(), threading.Event()

    def work(session: Session) -> str:
        inside.set()
        go.wait()
        return session.run("1").text

    async def closed() -> None:
        doing = asyncio.create_task(place.do_async(work))
        await asyncio.to_thread(inside.wait)
        closing = asyncio.create_task(place.close_async())
        while await asyncio.to_thread(states, server, "closing") != ["closed"]:
            pass
        go.set()
        with pytest.raises(SessionClosed):
            await doing
        await closing

    asyncio.run(closed())
    assert statuses(server, "closing") == [[]]


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_whatever_a_signal_raises_stops_the_code(
    place: KernelSession, server: RealServer, error: type[BaseException]
) -> None:
    place.options.agent = error.__name__
    marked = server.root_dir / "started"
    marked.unlink(missing_ok=True)

    def press() -> None:
        while not marked.exists():
            pass
        os.kill(os.getpid(), signal.SIGINT)

    def handle(*_: object) -> None:
        raise error

    before = signal.signal(signal.SIGINT, handle)
    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(error):
            place.run([STARTED + "while True: pass"])
    finally:
        signal.signal(signal.SIGINT, before)
        presser.join()
    assert place.run(["1"])[0].text == "1"
    assert statuses(server, error.__name__) == [["interrupted", "ok"]]


def test_closing_ends_what_runs_and_returns_after_it(
    place: KernelSession, server: RealServer
) -> None:
    place.options.agent = "closed on"
    marked = server.root_dir / "started"
    marked.unlink(missing_ok=True)

    async def closed() -> str:
        running = asyncio.create_task(place.run_async([STARTED + "while True: pass"]))
        while not marked.exists():
            await asyncio.sleep(0.01)
        await place.close_async()
        assert "agent-exec-adapter" not in {thread.name for thread in threading.enumerate()}
        (result,) = await running
        return result.status

    assert asyncio.run(closed()) == "interrupted"
    assert statuses(server, "closed on") == [["interrupted"]]


def states(server: RealServer, agent: str) -> list[str]:
    with AgentExecClient(server.url, server.token) as client:
        return [session.info.status for session in client.sessions(agent=agent)]


def close_sessions(server: RealServer, agent: str) -> None:
    with AgentExecClient(server.url, server.token) as client:
        for session in client.sessions(agent=agent):
            session.close()


def test_a_session_that_somebody_closed_is_opened_anew_and_the_answer_says_so(
    place: KernelSession, server: RealServer
) -> None:
    place.options.agent = "closed"
    place.run(["x = 1"])
    close_sessions(server, "closed")
    assert place.do(look) is None  # whatever opens the other one
    first, second = place.run(["'x' in dir()", "1"])
    assert "variables are gone" in (state_note(first) or "")
    assert first.text == f"[{state_note(first)}]\nFalse"
    assert state_note(second) is None
    assert [each.text for each in asyncio.run(place.run_async(["2"]))] == ["2"]
    assert statuses(server, "closed") == [["ok", "ok", "ok"], ["ok"]]


def test_a_session_that_was_to_be_another_tells_nothing(
    place: KernelSession, server: RealServer
) -> None:
    place.options.agent = "anew"
    place.run(["x = 1"])
    place.begin_anew()
    (result,) = place.run(["'x' in dir()"])
    assert (result.text, state_note(result)) == ("False", None)
    assert statuses(server, "anew") == [["ok"], ["ok"]]


def test_another_session_in_a_kernel_that_went_on_tells_nothing(server: RealServer) -> None:
    with AgentExecClient(server.url, server.token) as client:
        client.open_session("guest", notebook="work.ipynb", create=True)
    where = Target(url=server.url, token=server.token, notebook="work.ipynb")
    place = KernelSession(where, SessionOptions(agent="guest", timeout=60))
    place.run(["x = 1"])
    close_sessions(server, "guest")
    (result,) = place.run(["x"])
    assert (result.text, state_note(result)) == ("1", None)
    place.close()


def test_the_life_of_the_kernel_is_known_before_code_runs(
    place: KernelSession, server: RealServer
) -> None:
    place.options.agent = "lives"
    (first,) = place.run(["1"])
    assert place.life() == life_of(first)
    place.do(restarted)
    assert place.life() != life_of(first)
    place.run(["import os\nos.kill(os.getpid(), 9)"])
    assert place.life() is None
    place.run(["1"])
    close_sessions(server, "lives")
    assert place.life() is None


def test_a_kernel_that_died_is_told_of_in_the_next_answer(place: KernelSession) -> None:
    (died,) = place.run(["import os\nos.kill(os.getpid(), 9)"])
    assert died.status == "kernel_died"
    (after,) = place.run(["1"])
    assert after.ok
    assert "variables are gone" in (state_note(after) or "")


def test_without_a_server_one_is_started_and_ends_with_the_last_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "work"
    folder.mkdir()
    first, second = (
        KernelSession(Target(), SessionOptions(agent="own", folder=folder, timeout=30))
        for _ in range(2)
    )
    ((where,), (parent,)) = (
        place.run(["import os\nprint(os.getcwd(), os.getppid(), os.getpid())"])
        for place in (first, second)
    )
    cwd, ppid, pid = where.text.split()
    assert cwd == str(folder)
    assert parent.text.split()[1] == ppid
    first.close()
    assert second.run(["1"])[0].text == "1"
    second.close()
    second.close()
    for process in (ppid, pid):
        assert not Path(f"/proc/{process}").exists()
    with pytest.raises(KeyError):
        OWN_SERVERS.release(folder)


def test_what_is_asked_for_runs_once_when_a_person_has_approved_it(
    place: KernelSession, server: RealServer
) -> None:
    place.options.agent = "asking"
    sources = ["x = 41", "x + 1"]

    def decide(client: AgentExecClient, approved: bool) -> None:
        while not (asking := client.approvals().executions):
            pass
        if not approved:
            client.reject(asking[0].id, "not today")
            return
        for each in asking:
            client.approve(each.id, hashlib.sha256(each.cell["source"].encode()).hexdigest())

    async def asked(client: AgentExecClient, key: str, approved: bool) -> str:
        deciding = asyncio.to_thread(decide, client, approved)
        first, _ = await asyncio.gather(place.ask_async(sources, key=key), deciding)
        assert first is not None
        return first.execution.approval.status if first.execution.approval else ""

    async def all_of_it(client: AgentExecClient) -> None:
        assert await place.ask_async(sources, key="0") is None
        client.set_policy(scratch="always")
        assert await asked(client, "1", True) == "approved"
        assert [each.text for each in await place.run_async(sources, key="1")] == ["", "42"]
        assert await asked(client, "2", False) == "rejected"

    with AgentExecClient(server.url, server.token) as client:
        try:
            asyncio.run(all_of_it(client))
        finally:
            client.set_policy(scratch="none")
    assert statuses(server, "asking") == [["ok", "ok", "rejected", "cancelled"]]


def test_a_program_that_forgets_to_close_ends_and_its_server_too(tmp_path: Path) -> None:
    program = """
import os
from pathlib import Path
from jupyter_agent_exec.adapters.kernel_session import Target, SessionOptions, KernelSession

place = KernelSession(Target(), SessionOptions(agent="own", folder=Path(), timeout=30))
print(place.run(["import os\\nprint(os.getppid(), os.getpid())"])[0].text)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    for process in ended.stdout.split():
        assert not Path(f"/proc/{process}").exists()


def test_a_program_that_ends_while_code_runs_ends_it_and_its_server_too(tmp_path: Path) -> None:
    program = """
import threading
from pathlib import Path
from jupyter_agent_exec.adapters.kernel_session import Target, SessionOptions, KernelSession

source = '''
import os
with open("written", "w") as file:
    print(os.getppid(), os.getpid(), file=file)
os.rename("written", "started")
while True: pass
'''
place = KernelSession(Target(), SessionOptions(agent="own", folder=Path(), timeout=600))
threading.Thread(target=place.run, args=[[source]], daemon=True).start()
while not Path("started").exists():
    pass
"""
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path),
        check=True,
        timeout=120,  # it would go on for ever
    )
    for process in (tmp_path / "started").read_text().split():
        assert not Path(f"/proc/{process}").exists()
