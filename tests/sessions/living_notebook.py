"""A person at the server of a test, with a notebook and its kernel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from tornado.httpclient import HTTPResponse

from jupyter_agent_exec.notebooks import execution_cells
from tests.asking import Agent, Answered
from tests.kernels.kernel_server import Person
from tests.real_server import Gate

NOTEBOOK = "sales.ipynb"
MARKER = """\
kernel = get_ipython().kernel
kernel.send_response(kernel.iopub_socket, "status", {"execution_state": "starting"})
"""
"""A cell with a state of its own: the server hears the kernel on another socket than a client."""


class Desk:
    """What a person does over Jupyter's own routes, as JupyterLab does."""

    def __init__(
        self, server: Any, fetch: Callable[..., Awaitable[HTTPResponse]], root: Path
    ) -> None:
        self.server = server
        self.root = root
        self._fetch = fetch
        self._people: list[Person] = []

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        response = await self._fetch(
            "api",
            *path.split("/"),
            method=method,
            body=None if body is None and method in ("GET", "DELETE") else json.dumps(body or {}),
            request_timeout=60,
        )
        return json.loads(response.body) if response.body else None

    def writes(self, path: str = NOTEBOOK, *sources: str, **metadata: Any) -> None:
        """Save a notebook."""
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        file = self.root / path
        file.parent.mkdir(exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), file)

    async def opens(self, path: str = NOTEBOOK, **kernel: Any) -> dict[str, Any]:
        """Open a notebook; return its Jupyter session."""
        if not (self.root / path).exists():
            self.writes(path)
        session: dict[str, Any] = await self.ask(
            "POST",
            "sessions",
            {"path": path, "name": path, "type": "notebook", "kernel": kernel or {}},
        )
        return session

    async def sits_at(self, kernel_id: str) -> Person:
        """Talk to a kernel."""
        person = Person(self.server.kernel_manager.get_kernel(kernel_id))
        self._people.append(person)
        await person.client.wait_for_ready(timeout=60)
        return person

    async def has_run(self, kernel_id: str) -> None:
        """Run a cell in a kernel, and wait until the server, too, has heard its end."""
        manager = self.server.kernel_manager.get_kernel(kernel_id)
        heard: asyncio.Queue[str] = asyncio.Queue()

        def hear(change: Any) -> None:
            heard.put_nowait(change.new)

        manager.observe(hear, "execution_state")
        try:
            await (await self.sits_at(kernel_id)).has_run(MARKER)
            for state in ("starting", "idle"):
                while await asyncio.wait_for(heard.get(), 60) != state:
                    pass
        finally:
            manager.unobserve(hear, "execution_state")

    async def sessions(self) -> list[dict[str, Any]]:
        return list(await self.ask("GET", "sessions"))

    def leaves(self) -> None:
        for person in self._people:
            person.client.stop_channels()


@pytest.fixture
def desk(
    jp_serverapp: Any, jp_fetch: Callable[..., Awaitable[HTTPResponse]], jp_root_dir: Path
) -> Iterator[Desk]:
    desk = Desk(jp_serverapp, jp_fetch, jp_root_dir)
    yield desk
    desk.leaves()


@pytest.fixture
def cells_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for agents' cells before a notebook is read: the server waits two seconds at most."""
    monkeypatch.setattr(execution_cells, "FLUSH_TIMEOUT", 60.0)


def notebook_target(path: str = NOTEBOOK, **asked: Any) -> dict[str, Any]:
    return {"kind": "notebook", "path": path, **asked}


async def ask_to_open(agent: Agent, target: dict[str, Any], **asked: Any) -> Answered:
    """Ask for a session, which may be refused."""
    return await agent.ask(
        "POST", "sessions", {"agent": {"name": "tester"}, "target": target, **asked}
    )


async def until_status(agent: Agent, execution: dict[str, Any], *statuses: str) -> dict[str, Any]:
    """Look until an execution has one of the statuses; the test's timeout is the bound."""
    while True:
        looked: dict[str, Any] = (await agent.get(f"executions/{execution['id']}")).json
        if looked["status"] in statuses:
            return looked


async def at_persons_cell(agent: Agent, session: dict[str, Any], gate: Gate) -> None:
    """Wait until a person's cell runs, and until the session knows that."""
    await asyncio.to_thread(gate.wait_until_it_runs)
    state = None
    while state != "busy":
        state = (await agent.get(f"sessions/{session['id']}")).json["kernel"]["execution_state"]


async def until_it_prints(agent: Agent, execution: dict[str, Any]) -> None:
    """Look until an execution has printed something."""
    while not (await agent.get(f"executions/{execution['id']}")).json["text"]:
        pass


async def until_it_waits_for(agent: Agent, execution: dict[str, Any], who: str) -> dict[str, Any]:
    """Look until an execution waits for somebody; return whom."""
    while True:
        looked = (await agent.get(f"executions/{execution['id']}")).json
        assert looked["status"] == "queued", looked
        if looked["waiting_for"] is not None and looked["waiting_for"]["who"] == who:
            return dict(looked["waiting_for"])


async def finished(agent: Agent, execution: dict[str, Any]) -> dict[str, Any]:
    """Wait until an execution has finished."""
    return dict((await agent.get(f"executions/{execution['id']}", wait=60)).json)


async def entries(agent: Agent, session: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of a session's journal.

    Without the one that its kernel tells when it is idle, which may come at any time.
    """
    answered = await agent.get(f"sessions/{session['id']}/journal")
    told = [json.loads(line)["entry"] for line in answered.body.decode().splitlines()]
    return [entry for entry in told if entry["type"] != "environment_found"]
