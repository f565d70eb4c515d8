"""The client against a real server with a real kernel."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest

from jupyter_agent_exec import errors
from jupyter_agent_exec.client import (
    Agent,
    AgentExecClient,
    AsyncAgentExecClient,
    CannotConnect,
    Finished,
    OutputChanged,
    Session,
    StatusChanged,
)
from tests.client.cutting_proxy import CuttingProxy
from tests.real_server import PROJECT, Gate, RealServer


def in_thread(run: Any) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(run()))
    thread.start()
    return thread, results


def test_the_example_in_the_docs_follows_an_execution(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(
        r"```python\n(.*?)```", (PROJECT / "docs" / "reference" / "client.md").read_text(), re.S
    )
    (example,) = (block for block in blocks if "session.stream(" in block)
    names: dict[str, Any] = {"session": session}
    exec(example, names)
    assert capsys.readouterr().out.split()[-1] == "ok"
    assert names["outputs"] == names["result"].outputs


def test_output_is_told_while_the_code_runs(session: Session, gate: Gate) -> None:
    events = session.stream(f"print('before')\n{gate.source}")
    first = next(event for event in events if isinstance(event, OutputChanged))
    assert isinstance(first.change.output, dict)
    assert first.change.output["text"] == "before\n"
    gate.wait_until_it_runs()
    gate.let_it_go_on()
    *_, last = events
    assert isinstance(last, Finished)
    assert last.result.text.split() == ["before", "went", "on"]


def test_a_connection_cut_in_mid_wait_runs_nothing_twice(
    server: RealServer, session: Session, gate: Gate
) -> None:
    with CuttingProxy(server.url) as proxy, AgentExecClient(proxy.url, server.token) as client:
        through = client.session(session.id)
        thread, results = in_thread(lambda: through.run("n = 0\nn += 1\n" + gate.source))
        gate.wait_until_it_runs()
        proxy.cut()
        proxy.mend()
        gate.let_it_go_on()
        thread.join()
        assert proxy.connections > 1
    assert results[0].text.strip() == "went on"
    assert [execution.id for execution in session.executions()] == [results[0].id]


def test_a_connection_is_kept_while_a_model_thinks(
    server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CuttingProxy(server.url) as proxy, AgentExecClient(proxy.url, server.token) as client:
        client.status()
        clock = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 100)
        client.status()
        assert proxy.connections == 1


def test_a_stream_cut_in_the_middle_ends_with_the_whole_result(
    server: RealServer, session: Session, gate: Gate
) -> None:
    with CuttingProxy(server.url) as proxy, AgentExecClient(proxy.url, server.token) as client:
        events = client.session(session.id).stream("print('before', flush=True)\n" + gate.source)
        next(event for event in events if isinstance(event, StatusChanged))
        gate.wait_until_it_runs()
        proxy.cut()
        proxy.mend()
        gate.let_it_go_on()
        *_, last = events
    assert isinstance(last, Finished)
    assert last.result.text.split() == ["before", "went", "on"]
    assert len(list(session.executions())) == 1


def test_a_session_is_closed_at_the_end_of_its_block(client: AgentExecClient) -> None:
    agent = Agent(name="analyst", version="1.2", model="any")
    with client.open_session(agent, title="A title", timeout=5, init_source="y = 7") as session:
        assert session.run("y").text.strip() == "7"
    info = client.session(session.id).info
    assert (info.status, info.agent, info.title) == ("closed", agent, "A title")
    with pytest.raises(errors.SessionClosed):
        session.run("1")
    session.close()


def test_nobody_at_an_address_is_told_at_once(server: RealServer) -> None:
    with CuttingProxy(server.url) as proxy:
        url = proxy.url
    with AgentExecClient(url, "x") as client, pytest.raises(CannotConnect, match="Does it run"):
        client.status()


def test_a_running_server_is_found(server: RealServer) -> None:
    program = (
        "from jupyter_agent_exec.client import AgentExecClient\n"
        "with AgentExecClient() as client, client.open_session('finder') as session:\n"
        "    print(client.address, session.run('40 + 2').text)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=server.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [server.url.rstrip("/"), "42"]


def test_the_awaiting_client_does_the_same(server: RealServer, gate: Gate, tmp_path: Path) -> None:
    async def use() -> None:
        async with (
            AsyncAgentExecClient(server.url, server.token) as client,
            await client.open_session("awaiter") as session,
            await client.open_session("another") as other,
        ):
            waiting = asyncio.create_task(session.run(gate.source))
            await asyncio.to_thread(gate.wait_until_it_runs)
            assert (await other.run("1 + 1")).text.strip() == "2"
            gate.let_it_go_on()
            assert (await waiting).text.strip() == "went on"
            assert (await other.run("1/0")).status == "error"
            events = [event async for event in other.stream("print('a')")]
            assert isinstance(events[-1], Finished)
            assert [result.execution.seq async for result in other.executions()] == [1, 2, 3]
            assert client.address == server.url.rstrip("/")
            assert (await client.status()).open_sessions >= 2
            assert (await anext(aiter(client.sessions()))).id == other.id
            assert (await client.session(session.id)).id == session.id
            assert (await client.execution(events[-1].result.id)).ok
            assert (await client.wait(events[-1].result.id)).ok
            followed = [event async for event in client.follow(events[-1].result.id)]
            assert isinstance(followed[-1], Finished)
            with pytest.raises(errors.AlreadyFinished):
                await client.cancel(events[-1].result.id)
            assert (await client.text(events[-1].result.id)).text == "a\n"
            assert (await client.text(events[-1].result.id, match="a")).text == "0: a\n"
            assert [hit.seq async for hit in client.search("1/0", session_id=other.id)] == [2]
            await other.interrupt()
            await other.restart()
            assert len((await other.export())["cells"]) == 3
            clean = await other.export(tmp_path / "clean.ipynb", clean=True)
            assert len(nbformat.read(clean, as_version=4).cells) == 3
            shared = (await other.export(share=True))["cells"]
            assert [each["cell_type"] for each in shared[:2]] == ["markdown", "markdown"]
            assert "hecked" in "".join(shared[1]["source"])
            path = await other.journal(tmp_path / "j.jsonl")
            assert path.read_bytes() == await other.journal()
        with pytest.raises(errors.SessionClosed):
            await session.run("1")
        await client.close()

    asyncio.run(use())
