"""The ways in which agents reach a server, each driven by what its users use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import httpx2
from anyio.from_thread import start_blocking_portal

from jupyter_agent_exec.cli import exit_codes
from jupyter_agent_exec.client import AgentExecClient, Result
from jupyter_agent_exec.errors import AgentExecError
from tests.cli.command import Cli
from tests.mcp.mcp_clients import connected, text_of
from tests.real_server import RealServer


class Told(NamedTuple):
    """What a way says of an execution."""

    id: str
    status: str
    text: str
    ename: str | None


class Refused(Exception):
    """The server has refused a request; the message is what the user of this way sees."""


class Front(Protocol):
    """One way to a server, with one token."""

    def __init__(self, server: RealServer, folder: Path, stack: ExitStack) -> None: ...

    def open(self, kernel_name: str | None = None) -> str: ...

    def run(self, session_id: str, source: str, **asked: Any) -> Told: ...

    def read(self, execution_id: str) -> Told: ...

    def stop(self, execution_id: str) -> None: ...

    def restart(self, session_id: str) -> None: ...

    def close(self, session_id: str) -> None: ...


def _told(execution: dict[str, Any]) -> Told:
    error = execution.get("error") or {}
    id = execution.get("id") or execution["execution_id"]
    return Told(id, execution["status"], execution["text"], error.get("ename"))


class Rest:
    """The routes themselves."""

    def __init__(self, server: RealServer, folder: Path, stack: ExitStack) -> None:
        headers = {"Authorization": f"token {server.token}"}
        self._http = stack.enter_context(
            httpx2.Client(
                base_url=f"{server.url}api/agent-exec/",
                headers=headers,
                timeout=60,
                trust_env=False,
            )
        )

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request and return its answer's body; raise `Refused` with its message."""
        answer = self._http.request(method, path, json=body, headers=headers)
        if answer.is_error:
            raise Refused(answer.json()["message"])
        return answer.json() if answer.content else None

    def open(self, kernel_name: str | None = None) -> str:
        target = {"kind": "scratch"} | ({"kernel_name": kernel_name} if kernel_name else {})
        asked = {"agent": {"name": "tester"}, "target": target}
        return str(self.ask("POST", "sessions", asked)["id"])

    def run(self, session_id: str, source: str, **asked: Any) -> Told:
        key = asked.pop("idempotency_key", None)
        body = {"source": source, "wait": 60, **asked}
        headers = {"Idempotency-Key": key} if key else {}
        return _told(self.ask("POST", f"sessions/{session_id}/executions", body, **headers))

    def read(self, execution_id: str) -> Told:
        return _told(self.ask("GET", f"executions/{execution_id}"))

    def stop(self, execution_id: str) -> None:
        self.ask("POST", f"executions/{execution_id}/cancel", {})

    def restart(self, session_id: str) -> None:
        self.ask("POST", f"sessions/{session_id}/restart", {})

    def close(self, session_id: str) -> None:
        self.ask("POST", f"sessions/{session_id}/close", {})


@contextmanager
def refusals() -> Iterator[None]:
    """Raise what the client raises as the others do."""
    try:
        yield
    except AgentExecError as error:
        raise Refused(error.message) from error


def _of(result: Result) -> Told:
    error = result.error
    return Told(result.id, result.status, result.text, error.ename if error else None)


class Client:
    """The Python client; the one that awaits is its twin."""

    def __init__(self, server: RealServer, folder: Path, stack: ExitStack) -> None:
        self._client = stack.enter_context(AgentExecClient(server.url, server.token))

    def open(self, kernel_name: str | None = None) -> str:
        with refusals():
            return self._client.open_session("tester", kernel_name=kernel_name).id

    def run(self, session_id: str, source: str, **asked: Any) -> Told:
        with refusals():
            return _of(self._client.session(session_id).run(source, **asked))

    def read(self, execution_id: str) -> Told:
        with refusals():
            return _of(self._client.execution(execution_id))

    def stop(self, execution_id: str) -> None:
        with refusals():
            self._client.cancel(execution_id)

    def restart(self, session_id: str) -> None:
        with refusals():
            self._client.session(session_id).restart()

    def close(self, session_id: str) -> None:
        with refusals():
            self._client.session(session_id).close()


class CommandLine:
    """`jupyter agent-exec`."""

    def __init__(self, server: RealServer, folder: Path, stack: ExitStack) -> None:
        self._cli = Cli(server.environ | {"JUPYTER_AGENT_EXEC_TOKEN": server.token}, folder)
        self._cli.environ["JUPYTER_AGENT_EXEC_URL"] = server.url

    def _ask(self, *words: str) -> str:
        done = self._cli(*words)
        if done.returncode in (exit_codes.REFUSED, exit_codes.UNREACHABLE, exit_codes.USAGE):
            raise Refused(done.stderr)
        return done.stdout

    def open(self, kernel_name: str | None = None) -> str:
        kernel = ["--kernel-name", kernel_name] if kernel_name else []
        return str(json.loads(self._ask("run", "0", "--keep", "--json", *kernel))["session_id"])

    def run(self, session_id: str, source: str, **asked: Any) -> Told:
        words = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
        ran = self._ask("run", "--code", source, "--session", session_id, "--json", *words)
        return _told(json.loads(ran))

    def read(self, execution_id: str) -> Told:
        return _told(json.loads(self._ask("show", execution_id, "--json")))

    def stop(self, execution_id: str) -> None:
        self._ask("stop", execution_id)

    def restart(self, session_id: str) -> None:
        self._ask("stop", session_id, "--restart")

    def close(self, session_id: str) -> None:
        self._ask("stop", session_id, "--close")


class Mcp:
    """The tools of MCP, called with the official client."""

    def __init__(self, server: RealServer, folder: Path, stack: ExitStack) -> None:
        self._portal = stack.enter_context(start_blocking_portal())
        client = connected(server, token=server.token)
        self._client = stack.enter_context(self._portal.wrap_async_context_manager(client))

    def _call(self, tool: str, **asked: Any) -> Any:
        answered = self._portal.call(self._client.call_tool, tool, asked)
        if answered.is_error:
            raise Refused(text_of(answered))
        return answered.structured_content

    def open(self, kernel_name: str | None = None) -> str:
        target = {"kind": "scratch"} | ({"kernel_name": kernel_name} if kernel_name else {})
        return str(self._call("open_session", agent="tester", target=target)["session_id"])

    def run(self, session_id: str, source: str, **asked: Any) -> Told:
        asked = {"session_id": session_id, "source": source, "wait": 60, **asked}
        return _told(self._call("execute", **asked))

    def read(self, execution_id: str) -> Told:
        return _told(self._call("get_execution", execution_id=execution_id))

    def stop(self, execution_id: str) -> None:
        self._call("stop", execution_id=execution_id)

    def restart(self, session_id: str) -> None:
        self._call("stop", session_id=session_id, restart=True)

    def close(self, session_id: str) -> None:
        self._call("stop", session_id=session_id)


FRONTS: dict[str, type[Front]] = {
    "rest": Rest,
    "client": Client,
    "command line": CommandLine,
    "mcp": Mcp,
}
