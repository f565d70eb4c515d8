"""A cell that has an agent run code in the cell's own kernel: a real server and real kernels."""

from __future__ import annotations

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

    def runs(self, source: str, *, said: str | None = None) -> str:
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
            allow_stdin=said is not None,
            timeout=60,
            output_hook=hear,
            stdin_hook=lambda _: self._client.input(said),
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


def test_a_cell_runs_code_in_its_own_kernel_and_goes_on_with_its_values(
    kernel: Kernel, client: AgentExecClient
) -> None:
    printed = kernel.runs(
        f"""
        x = 20
        session = client.open_session("tester", notebook={PATH!r}, preload=["math"])
        first = session.run("y = x + 1; print('from the agent'); math.floor(y)")
        failed = session.run("1 / 0")
        last, = session.run_steps(["y"])
        valued = session.run("0", values={{"y": "y"}})
        print(first.id, failed.status, failed.error.ename, valued.values["y"].json, y)
        """
    )
    id, *told = printed.split()
    assert told == ["error", "ZeroDivisionError", "21", "21"]
    recorded = client.execution(id)
    assert (recorded.status, recorded.text) == ("ok", "from the agent\n21")
    assert recorded.execution.execution_count is None
    assert recorded.document is not None
    assert recorded.document.path == PATH


def test_code_that_is_awaited_in_a_cell_runs_beside_it(kernel: Kernel) -> None:
    printed = kernel.runs(
        f"""
        import asyncio
        async with AsyncAgentExecClient() as other:
            async with await other.open_session("tester", notebook={PATH!r}) as theirs:
                aside = asyncio.to_thread(session.run, "b = 2")
                both = await asyncio.gather(theirs.run("a = 1"), aside)
        print([each.status for each in both], a + b)
        """
    )
    assert printed == "['ok', 'ok'] 3\n"


def test_a_timeout_ends_nested_code_and_neither_the_cell_nor_the_next(kernel: Kernel) -> None:
    printed = kernel.runs(
        f"""
        with client.open_session("tester", notebook={PATH!r}) as late:
            first = late.run("while True: pass", timeout=0.5)
            ignoring = late.run("import time; time.sleep(1000)", timeout=0.5)
            then = late.run("'next'")
        print(first.status, ignoring.status, ignoring.execution.interrupt_ignored, then.text)
        """
    )
    assert printed == "timed_out timed_out True 'next'\n"


def test_what_a_cell_starts_may_ask_too(kernel: Kernel, server: RealServer) -> None:
    printed = kernel.runs(
        f"""
        word = "known"
        !{sys.executable} -m jupyter_agent_exec.cli run --quiet --notebook {PATH} -c "print(word)"
        """
    )
    assert printed.split() == ["known"]


def test_an_mcp_client_in_the_kernel_may_ask_too(kernel: Kernel) -> None:
    asked = request(
        "tools/call",
        {"name": "execute", "arguments": {"session_id": "SESSION", "source": "word = 'mcp'"}},
        modern=True,
    )
    printed = kernel.runs(
        f"""
        import json, subprocess
        asked = json.dumps({asked!r}).replace("SESSION", session.id)
        bridge = [{sys.executable!r}, "-m", "jupyter_agent_exec.cli", "mcp", "--quiet"]
        pipe = subprocess.PIPE
        with subprocess.Popen(bridge, stdin=pipe, stdout=pipe, text=True) as process:
            print(asked, file=process.stdin, flush=True)
            told = process.stdout.readline()
            process.stdin.close()
        print(json.loads(told)["result"]["structuredContent"]["status"], word)
        """
    )
    assert printed == "ok mcp\n"


def test_after_it_the_cell_can_ask_for_input_and_its_threads_print_into_it(kernel: Kernel) -> None:
    printed = kernel.runs(
        """
        import threading
        inner = session.run("print('inner')")
        thread = threading.Thread(target=print, args=("of a thread",))
        thread.start()
        thread.join()
        print(input("Your name? "), inner.text)
        """,
        said="Ada",
    )
    assert printed == "of a thread\nAda inner\n\n"


def test_code_of_an_agent_that_asks_for_its_own_kernel_is_refused_at_once(
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


def test_a_kernel_without_subshells_refuses_at_once_and_serves_the_next_cell(
    server: RealServer,
) -> None:
    with kernel_of(server, "older.ipynb") as kernel:
        kernel.runs("type(get_ipython().kernel)._supports_kernel_subshells = False")
        printed = kernel.runs(
            """
            for preload in ["math"], []:
                try:
                    session = client.open_session("tester", notebook="older.ipynb", preload=preload)
                    session.run("1")
                except errors.KernelWaitsForItself as error:
                    print(error.code, "ipykernel 7" in error.message)
            """
        )
        assert printed == "kernel_waits_for_itself True\n" * 2
        assert kernel.runs("print('next')") == "next\n"


def test_who_cannot_read_the_connection_file_waits_for_the_kernel_as_others_do(
    kernel: Kernel, client: AgentExecClient
) -> None:
    printed = kernel.runs(
        f"""
        from jupyter_agent_exec.host_kernel import HEADER
        import httpx2
        headers = {{**HEADERS, HEADER: "{kernel.id}=0123"}}
        http = httpx2.Client(headers=headers, timeout=60)
        url = f"{{URL}}/api/agent-exec/sessions/{{session.id}}/executions"
        answered = http.post(url, json={{"source": "1", "wait": 0}}).json()
        print(answered["id"], answered["status"])
        """
    )
    id, status = printed.split()
    assert status == "queued"
    *_, last = client.follow(id)
    assert isinstance(last, Finished)
    assert client.execution(id).ok
