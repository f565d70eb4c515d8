"""`jupyter agent-exec mcp`: what goes through a process's standard streams, and what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.mcp.mcp_clients import stdio_command
from tests.mcp.raw_mcp import EARLIER, LATEST, request
from tests.ports import free_port
from tests.real_server import TOKEN, RealServer, environment, real_server

ERAS = pytest.mark.parametrize("modern", [False, True], ids=[EARLIER, LATEST])


class Talk:
    """A client that talks to the process line by line."""

    def __init__(self, process: subprocess.Popen[str], *, modern: bool) -> None:
        self.process = process
        self.modern = modern

    def say(self, message: Any) -> None:
        assert self.process.stdin is not None
        text = message if isinstance(message, str) else json.dumps(message)
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process has ended"
        heard: dict[str, Any] = json.loads(line)
        assert heard["jsonrpc"] == "2.0"
        return heard

    def answer_to(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; what comes before is news."""
        while (heard := self.hear()).get("id") != message["id"] or "method" in heard:
            assert "method" in heard
        return heard

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        asked = request(method, params, modern=self.modern)
        self.say(asked)
        return self.answer_to(asked)

    def begin(self) -> Talk:
        if not self.modern:
            said = {
                "protocolVersion": EARLIER,
                "capabilities": {},
                "clientInfo": {"name": "talk", "version": "1"},
            }
            assert self.ask("initialize", **said)["result"]["protocolVersion"] == EARLIER
            self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answered = self.ask("tools/call", name=tool, arguments=arguments)
        assert "result" in answered, answered
        result: dict[str, Any] = answered["result"]
        return result

    def opened(self) -> str:
        told = self.call("open_session", agent="talk")
        assert not told.get("isError"), told
        return str(told["structuredContent"]["session_id"])

    def end(self) -> str:
        """End the input; return what the process said to people."""
        out, err = self.process.communicate(timeout=60)
        assert out == ""
        assert self.process.returncode == 0, err
        return err


@contextmanager
def talking(
    command: dict[str, Any], *, modern: bool = True, cwd: Path | None = None
) -> Iterator[Talk]:
    process = subprocess.Popen(
        [command["command"], *command["args"]],
        env=command["env"],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Talk(process, modern=modern)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@ERAS
def test_code_is_run_and_news_come_before_the_answer(
    server: RealServer, tmp_path: Path, modern: bool
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    source = f"open({str(gate)!r}).read()\nprint('went on')"
    with talking(stdio_command(server), modern=modern) as talk:
        session_id = talk.begin().opened()
        arguments = {"session_id": session_id, "source": source}
        said = {"name": "execute", "arguments": arguments, "_meta": {"progressToken": 7}}
        asked = request("tools/call", said, modern=modern)
        talk.say(asked)
        news = talk.hear()
        assert (news["method"], news["params"]["progressToken"]) == ("notifications/progress", 7)
        meanwhile = talk.ask("tools/list")
        assert meanwhile["result"]["tools"]
        gate.write_text("")
        result = talk.answer_to(asked)["result"]
        assert "went on" in result["content"][0]["text"]
        assert talk.end() == ""


@ERAS
def test_a_call_that_is_cancelled_is_given_up_and_its_code_goes_on(
    server: RealServer, tmp_path: Path, modern: bool
) -> None:
    here, gate = tmp_path / "here", tmp_path / "gate"
    os.mkfifo(here)
    os.mkfifo(gate)
    source = f"open({str(here)!r}, 'w').close(); open({str(gate)!r}).read(); print('went on')"
    with talking(stdio_command(server), modern=modern) as talk:
        session_id = talk.begin().opened()
        arguments = {"session_id": session_id, "source": source, "idempotency_key": "once"}
        asked = request("tools/call", {"name": "execute", "arguments": arguments}, modern=modern)
        talk.say(asked)
        here.read_text()
        cancelled = {"requestId": asked["id"]}
        talk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        talk.ask("tools/list")  # when this is answered, the cancellation was read
        gate.write_text("")
        again = talk.call("execute", **arguments)
        assert "went on" in again["content"][0]["text"]
        talk.end()


@ERAS
def test_an_end_of_input_ends_it_at_once_whatever_goes_on(
    server: RealServer, tmp_path: Path, modern: bool
) -> None:
    here, gate = tmp_path / "here", tmp_path / "gate"
    os.mkfifo(here)
    os.mkfifo(gate)
    source = f"open({str(here)!r}, 'w').close(); open({str(gate)!r}).read()"
    with talking(stdio_command(server), modern=modern) as talk:
        session_id = talk.begin().opened()
        arguments = {"session_id": session_id, "source": source}
        talk.say(request("tools/call", {"name": "execute", "arguments": arguments}, modern=modern))
        here.read_text()
        talk.end()
        gate.write_text("")


def test_an_input_that_ends_before_it_began(server: RealServer) -> None:
    with talking(stdio_command(server)) as talk:
        assert talk.end() == ""


def test_what_is_no_json_is_refused_and_the_next_line_is_heard(server: RealServer) -> None:
    with talking(stdio_command(server)) as talk:
        talk.say("{")
        assert talk.hear()["error"]["code"] == -32700
        talk.say("")
        assert talk.ask("tools/list")["result"]["tools"]
        talk.end()


VERSION = {"_meta": {"io.modelcontextprotocol/protocolVersion": LATEST}}


@pytest.mark.parametrize(
    "odd",
    [
        '{"a":' * 100_000,
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "id": 1, "method": ["tools/call"], "params": VERSION},
        {"jsonrpc": "2.0", "method": {}, "params": VERSION},
        [1, None],
        None,
    ],
    ids=["deep", "list", "no id", "method", "no method", "batch", "null"],
)
def test_an_odd_message_keeps_nobody_from_the_next(server: RealServer, odd: Any) -> None:
    with talking(stdio_command(server)) as talk:
        talk.say(odd)
        listed = request("tools/list", {}, modern=True)
        talk.say(listed)
        while (heard := talk.hear()).get("id") != listed["id"]:
            assert "error" in heard
        assert heard["result"]["tools"]


def test_a_name_that_no_header_can_hold_is_answered(server: RealServer) -> None:
    with talking(stdio_command(server)) as talk:
        assert "error" in talk.ask("tools/call", name="\ud800", arguments={})
        assert talk.ask("tools/list")["result"]["tools"]


@ERAS
def test_a_refusal_names_the_request(server: RealServer, modern: bool) -> None:
    with talking(stdio_command(server), modern=modern) as talk:
        talk.begin()
        answered = talk.ask("tools/call", name="nöthing", arguments={})
        assert answered["error"]["code"] == -32602
        assert talk.ask("no/such/method")["error"]["code"] == -32601
        answered = talk.ask("tools/call", name="execute", arguments={"source": "x" * 5_000_000})
        assert answered["error"]["data"]["code"] == "payload_too_large"
        talk.end()


@pytest.mark.parametrize(
    ("changed", "code", "said"),
    [
        ({"JUPYTER_AGENT_EXEC_TOKEN": "wrong"}, 4, "The token was refused (401)"),
        (
            {"JUPYTER_AGENT_EXEC_URL": "", "JUPYTER_AGENT_EXEC_TOKEN": "wrong"},
            3,
            "The token was refused (401)",
        ),
        ({"JUPYTER_AGENT_EXEC_URL": "http://127.0.0.1:9"}, 3, "Cannot connect"),
        ({"JUPYTER_AGENT_EXEC_URL": "nonsense"}, 2, "Not the address"),
    ],
    ids=["token", "token here", "nobody", "address"],
)
def test_a_server_that_cannot_be_used_is_told_of_on_standard_error(
    server: RealServer, changed: dict[str, str], code: int, said: str
) -> None:
    command = stdio_command(server)
    done = subprocess.run(
        [command["command"], *command["args"]],
        env=command["env"] | changed,
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


@ERAS
def test_a_server_that_comes_back_is_talked_to_again(tmp_path: Path, modern: bool) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    port = free_port()
    with ExitStack() as open_to_the_end:
        with real_server(first, port=port) as server:
            talk = open_to_the_end.enter_context(talking(stdio_command(server), modern=modern))
            talk.begin().opened()
        gone = talk.ask("tools/list")
        assert "Cannot connect" in gone["error"]["message"]
        with real_server(second, port=port):
            assert talk.opened()


# -- a server of its own -----------------------------------------------------------------------


def own(folder: Path, *more: str) -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-m", "jupyter_agent_exec.cli", "mcp", *more],
        "env": environment(folder),
    }


@ERAS
def test_a_server_is_started_if_none_runs_and_ends_with_the_client(
    tmp_path: Path, modern: bool
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with talking(own(tmp_path), modern=modern, cwd=work) as talk:
        session_id = talk.begin().opened()
        source = "open('made', 'w').close(); 6 * 7"
        assert (
            "42" in talk.call("execute", session_id=session_id, source=source)["content"][0]["text"]
        )
        started = psutil.Process(talk.process.pid).children(recursive=True)
        assert len(started) >= 2  # the server and a kernel
        said = talk.end()
    assert (work / "made").exists()
    assert "Starting one" in said
    psutil.wait_procs(started, timeout=20)
    assert not [process for process in started if process.is_running()]


def test_a_server_is_started_for_whoever_wants_one_of_their_own(
    server: RealServer, tmp_path: Path
) -> None:
    command = stdio_command(server, "--start")
    with talking(command, cwd=tmp_path) as talk:
        talk.ask("tools/list")
        assert psutil.Process(talk.process.pid).children()
        talk.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_process_that_is_killed(tmp_path: Path, number: int) -> None:
    with talking(own(tmp_path), cwd=tmp_path) as talk:
        talk.opened()
        started = psutil.Process(talk.process.pid).children(recursive=True)
        talk.process.send_signal(number)
        talk.process.wait(30)
        _, alive = psutil.wait_procs(started, timeout=30)
        assert alive == []


def test_the_token_is_in_no_list_of_processes(tmp_path: Path, server: RealServer) -> None:
    with talking(stdio_command(server)) as talk:
        talk.ask("tools/list")
        assert TOKEN not in " ".join(psutil.Process(talk.process.pid).cmdline())
        talk.end()
