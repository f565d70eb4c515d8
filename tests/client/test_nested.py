"""A cell that asks for code in the cell's own kernel: a real server and real kernels."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from jupyter_agent_exec.client import AgentExecClient, Finished
from tests.mcp.raw_mcp import request
from tests.person import person_at
from tests.real_server import RealServer

PATH = "nested.ipynb"


class Kernel:
    """A person's kernel, in which their cells run to their end, with what they print."""

    def __init__(self, client: Any, kernel_id: str) -> None:
        self._client = client
        self.id = kernel_id

    def runs(self, source: str) -> str:
        """Run a cell; return what it printed. It must not fail, and must end."""
        printed: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])
            elif message["msg_type"] == "error":
                printed.append("\n".join(message["content"]["traceback"]))

        source = textwrap.dedent(source)
        reply = self._client.execute_interactive(
            source,
            allow_stdin=False,
            timeout=60,
            output_hook=hear,
        )
        assert reply["content"]["status"] == "ok", "".join(printed)
        return "".join(printed)


@contextmanager
def kernel_of(server: RealServer, path: str) -> Iterator[Kernel]:
    url = server.url.partition("?")[0].rstrip("/")
    with person_at(server) as person:
        person.writes(path, "")
        kernel_id = person.opens(path)
        with person.at(kernel_id) as client:
            kernel = Kernel(client, kernel_id)
            kernel.runs(
                f"""
                from jupyter_agent_exec import errors
                from jupyter_agent_exec.client import AgentExecClient, AsyncAgentExecClient
                URL, HEADERS = {url!r}, {{"Authorization": "token {server.token}"}}
                client = AgentExecClient(URL, {server.token!r})
                """
            )
            yield kernel


@pytest.fixture(scope="module")
def kernel(server: RealServer) -> Iterator[Kernel]:
    with kernel_of(server, PATH) as kernel:
        yield kernel


REFUSED = "kernel_waits_for_itself True\n"


def test_a_cell_that_waits_for_its_own_kernel_is_refused(
    kernel: Kernel, client: AgentExecClient
) -> None:
    before = client.open_session("tester", notebook=PATH)
    printed = kernel.runs(
        f"""
        def refused(call, *args, **asked):
            try:
                call(*args, **asked)
            except errors.KernelWaitsForItself as error:
                print(error.code, "Leave out notebook= and kernel_id=" in error.message)
        refused(client.open_session, "tester", notebook={PATH!r}, preload=["math"])
        session = client.session({before.id!r})
        refused(session.run, "1")
        refused(session.run_steps, ["1"])
        async with AsyncAgentExecClient() as other:
            theirs = await other.session({before.id!r})
            try:
                await theirs.run("1")
            except errors.KernelWaitsForItself as error:
                print(error.code, True)
        """
    )
    assert printed == REFUSED * 4
    assert before.run("x = 1; x").text == "1"
    assert len(list(before.executions())) == 1  # nothing was recorded of what was refused
    assert kernel.runs("print(x)") == "1\n"


def test_a_cell_has_code_run_in_a_kernel_of_its_own(kernel: Kernel) -> None:
    printed = kernel.runs(
        """
        with client.open_session("tester") as aside:
            print(aside.run("6 * 7").text)
        """
    )
    assert printed == "42\n"


def test_what_a_cell_starts_is_refused_too(kernel: Kernel) -> None:
    printed = kernel.runs(
        f"""
        !{sys.executable} -m jupyter_agent_exec.cli run --quiet --notebook {PATH} -c "print(1)"
        """
    )
    assert "runs in this kernel itself" in " ".join(printed.split())


def test_an_mcp_client_in_the_kernel_is_refused_too(
    kernel: Kernel, client: AgentExecClient
) -> None:
    session = client.open_session("tester", notebook=PATH)
    asked = request(
        "tools/call",
        {"name": "execute", "arguments": {"session_id": session.id, "source": "1"}},
        modern=True,
    )
    printed = kernel.runs(
        f"""
        import json, subprocess
        bridge = [{sys.executable!r}, "-m", "jupyter_agent_exec.cli", "mcp", "--quiet"]
        pipe = subprocess.PIPE
        with subprocess.Popen(bridge, stdin=pipe, stdout=pipe, text=True) as process:
            print({json.dumps(asked)!r}, file=process.stdin, flush=True)
            told = process.stdout.readline()
            process.stdin.close()
        print("runs in this kernel itself" in told)
        """
    )
    assert printed == "True\n"


def test_code_that_waits_for_its_own_kernel_is_refused(
    client: AgentExecClient, server: RealServer
) -> None:
    with client.open_session("tester") as session:
        asks = f"""
            from jupyter_agent_exec import errors
            from jupyter_agent_exec.client import AgentExecClient
            with AgentExecClient({server.url!r}, {server.token!r}) as client:
                try:
                    client.session({session.id!r}).run("1")
                except errors.KernelWaitsForItself as error:
                    print(error.message)
            """
        result = session.run(textwrap.dedent(asks))
        assert "Leave out notebook= and kernel_id=" in result.text
        assert session.run("1").ok


def test_code_that_does_not_prove_its_kernel_waits_for_it_as_others_do(
    kernel: Kernel, client: AgentExecClient
) -> None:
    session = client.open_session("tester", notebook=PATH)
    printed = kernel.runs(
        f"""
        from jupyter_agent_exec.host_kernel import HEADER
        import httpx2
        headers = {{**HEADERS, HEADER: "{kernel.id}=0123"}}
        http = httpx2.Client(headers=headers, timeout=60)
        url = f"{{URL}}/api/agent-exec/sessions/{session.id}/executions"
        answered = http.post(url, json={{"source": "1", "wait": 0}}).json()
        print(answered["id"], answered["status"])
        """
    )
    id, status = printed.split()
    assert status == "queued"
    *_, last = client.follow(id)
    assert isinstance(last, Finished)
    assert client.execution(id).ok
