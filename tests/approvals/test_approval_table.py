"""The table of approval: what an agent is told before it sends code, and whether that asks.

Policy, kind of target, isolation, pause, and restarts of the kernel and the server; on one server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx2
import nbformat
import pytest

from tests.real_server import until
from tests.server_process import ServerProcess, server_process

ISOLATION = ("--AgentExecApp.isolation_way=unshare", "--AgentExecApp.isolated_processes=0")

NEVER = ("not_asked", "not_asked", "not_asked")
BY_POLICY = {
    "none": NEVER,
    "first": ("asks_first", "granted", "asks_first"),
    "always": ("asks_always", "asks_always", "asks_always"),
}
"""Before the first execution in a kernel, before the next, and after a restart of the kernel."""

TARGETS: dict[str, dict[str, Any]] = {
    "scratch": {"kind": "scratch"},
    "isolated": {"kind": "scratch", "isolated": True},
    "notebook": {"kind": "notebook", "path": "sales.ipynb"},
    "kernel": {"kind": "kernel"},
}


class Table:
    """A server, and a session with each target, which are opened when they are needed."""

    def __init__(self, folder: Any, exits: ExitStack) -> None:
        self._folder, self._exits = folder, exits
        (folder / "root").mkdir()
        nbformat.write(nbformat.v4.new_notebook(), folder / "root" / "sales.ipynb")
        self.start()

    def start(self) -> None:
        self.server: ServerProcess = self._exits.enter_context(
            server_process(self._folder, *ISOLATION)
        )
        self._sessions: dict[str, str] = {}

    def session(self, name: str) -> str:
        if name not in self._sessions:
            target = dict(TARGETS[name])
            if name == "kernel":
                target["kernel_id"] = self.kernels("POST", "").json()["id"]
            self._sessions[name] = self.server.open(target=target)
        return self._sessions[name]

    def kernels(self, method: str, path: str) -> httpx2.Response:
        """Ask one of Jupyter's own routes, as a user does."""
        return self.server.ask(method, self.server.api.replace("agent-exec/", f"kernels{path}"))

    def restarts_kernel(self, session: str) -> None:
        """Restart a session's kernel as a user, and wait until the session knows of it."""
        before = self.server.get(f"sessions/{session}")["kernel"]
        assert self.kernels("POST", f"/{before['id']}/restart").status_code == 200

        def is_another() -> bool:
            now = self.server.get(f"sessions/{session}")["kernel"]
            return now is None or now["incarnation"] != before["incarnation"]

        until(is_another)

    def put(self, what: str, **said: Any) -> None:
        assert self.server.ask("PUT", f"approvals/{what}", said).status_code == 200

    def told(self, session: str) -> str:
        return str(self.server.get(f"sessions/{session}")["next_approval"])

    def sends(self, session: str) -> tuple[str, dict[str, Any]]:
        """Send code; return what is told before and with its answer, and that."""
        before = self.told(session)
        execution = self.server.run(session, "1 + 1", wait=0).json()
        assert execution["next_approval"] == before
        return before, execution

    def lets_run(self, execution: dict[str, Any]) -> None:
        """Approve an execution if it asks, and wait until it has run."""
        path = f"executions/{execution['id']}"
        if execution["status"] == "awaiting_approval":
            seen = {"source_sha256": execution["source_sha256"]}
            assert self.server.ask("POST", f"{path}/approve", seen).status_code == 200
        assert self.server.get(f"{path}?wait=60")["status"] == "ok"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    with ExitStack() as exits:
        yield Table(tmp_path_factory.mktemp("table"), exits)


@pytest.mark.parametrize("policy", BY_POLICY)
@pytest.mark.parametrize("name", TARGETS)
def test_code_asks_as_the_agent_was_told(table: Table, name: str, policy: str) -> None:
    if name == "isolated" and sys.platform != "linux":
        pytest.skip("kernels are isolated on Linux")
    session = table.session(name)
    table.put("policy", scratch=policy, notebook=policy, kernel=policy)
    seen = []
    for _ in range(2):
        told, execution = table.sends(session)
        assert (execution["status"] == "awaiting_approval") == told.startswith("asks")
        table.lets_run(execution)
        seen.append(told)
    table.restarts_kernel(session)
    seen.append(table.told(session))
    assert tuple(seen) == (NEVER if name == "isolated" else BY_POLICY[policy])
    table.put("pause", paused=True)
    told, execution = table.sends(session)
    asks = seen[-1].startswith("asks")
    assert (told, execution["status"]) == ("paused", "awaiting_approval" if asks else "queued")
    assert table.server.ask("POST", f"executions/{execution['id']}/cancel").status_code == 200
    table.put("pause", paused=False)
    assert table.told(session) == seen[-1]


def test_a_restart_of_the_server_asks_anew_and_keeps_the_pause(table: Table) -> None:
    table.put("policy", notebook="first")
    before = table.session("notebook")
    table.lets_run(table.sends(before)[1])
    assert table.told(before) == "granted"
    table.put("pause", paused=True)
    table.server.stop()
    table.start()
    assert table.server.get(f"sessions/{before}")["next_approval"] is None
    after = table.session("notebook")
    assert table.told(after) == "paused"
    table.put("pause", paused=False)
    assert table.told(after) == "asks_first"
