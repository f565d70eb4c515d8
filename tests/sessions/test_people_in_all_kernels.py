"""What people run in any kernel of the server is recorded, with who was signed in.

The environment sets how much: `AGENT_EXEC_PEOPLE_CELLS=2500`, of each of four clients.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import islice
from types import SimpleNamespace
from typing import Any, ClassVar

import nbformat
import pytest
from jupyter_agent_exec.people_websockets import People, Senders, recording
from jupyter_agent_exec.sessions.program_kernels import SentRequest
from jupyter_client.session import Session
from jupyter_server.auth import IdentityProvider, User
from jupyter_server.services.kernels.connection.base import (
    BaseKernelWebsocketConnection,
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from nbclient import NotebookClient

from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.errors import KernelUnavailable
from tests.asking import Agent
from tests.sessions.living_notebook import Desk
from tests.sessions.test_programs import session_of

CELLS = int(os.environ.get("AGENT_EXEC_PEOPLE_CELLS", "20"))
"""How many cells each client runs."""

AT_ONCE = 200
"""How many of them it sends at once: ipykernel stops answering if it gets some thousands."""
V1 = "v1.kernel.websocket.jupyter.org"


class NamedProvider(IdentityProvider):
    """Signs in whoever a header names, as a proxy in front of the server would."""

    def get_user(self, handler: Any) -> Any:
        name = handler.request.headers.get("X-Test-User")
        return super().get_user(handler) if name is None else User(username=name)


class OperatorsConnection(ZMQChannelsWebsocketConnection):
    """A class of connections that an operator has set."""

    seen: ClassVar[Counter[str]] = Counter()

    def handle_incoming_message(self, incoming_msg: Any) -> None:
        self.seen[self.kernel_id] += 1
        super().handle_incoming_message(incoming_msg)


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"record_people": "source", "record_people_in": "all", "max_sessions": 1}


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any]) -> dict[str, Any]:
    server = jp_server_config["ServerApp"] | {
        "identity_provider_class": NamedProvider,
        "kernel_websocket_connection_class": OperatorsConnection,
    }
    return {**jp_server_config, "ServerApp": server}


class Frontend:
    """A client of the kernel's WebSocket, in JupyterLab's protocol or in the one before."""

    def __init__(self, socket: Any, is_v1: bool) -> None:
        self._socket = socket
        self._is_v1 = is_v1

    async def send(self, source: str, *, channel: str = "shell", **named: Any) -> str:
        """Send a request to run code under a forged name."""
        msg_id = named.pop("msg_id", uuid.uuid4().hex)
        header = {
            "msg_id": msg_id,
            "msg_type": "execute_request",
            "username": "ada",
            "session": "forged",
            "date": "2026-11-24T00:00:00Z",
            "version": "5.3",
        }
        content = {"code": source, "silent": False, "store_history": True, **named}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        if self._is_v1:
            data = serialize_msg_to_ws_v1(message, channel, lambda part: json.dumps(part).encode())
            await self._socket.write_message(data, binary=True)
        else:
            await self._socket.write_message(json.dumps({**message, "channel": channel}))
        return msg_id

    async def replies(self, count: int) -> list[str]:
        """Wait for the statuses of so many replies."""
        found: list[str] = []
        while len(found) < count:
            data = await self._socket.read_message()
            assert data is not None
            if self._is_v1:
                parts = deserialize_msg_from_ws_v1(data)[1]
                header, content = json.loads(parts[0]), json.loads(parts[3])
            else:
                message = json.loads(data)
                header, content = message["header"], message["content"]
            if header["msg_type"] == "execute_reply":
                found.append(content["status"])
        return found


Connect = Callable[..., Awaitable[Frontend]]


@pytest.fixture
def connect(jp_ws_fetch: Callable[..., Awaitable[Any]]) -> Connect:
    async def connect(kernel_id: str, user: str, *, is_v1: bool = True) -> Frontend:
        headers = {"X-Test-User": user} | ({"Sec-WebSocket-Protocol": V1} if is_v1 else {})
        return Frontend(
            await jp_ws_fetch("api", "kernels", kernel_id, "channels", headers=headers), is_v1
        )

    return connect


async def entries(agent: Agent, kernel_id: str, count: int, via: str) -> list[dict[str, Any]]:
    """Wait until there are so many entries about people's code in a kernel; return all of them."""
    session = await session_of(agent, kernel_id)
    while True:
        chain = (await agent.get(f"sessions/{session['id']}")).json["chain"]
        if chain["length"] <= count:
            continue
        exported = (await agent.get(f"sessions/{session['id']}/notebook")).json
        events = exported["metadata"]["agent_exec"]["events"]
        ran = [event for event in events if event["type"] == "person_ran"]
        if sum(event.get("via", "kernel") == via for event in ran) >= count:
            return ran


async def run_by_nbclient(desk: Desk, kernel_id: str, sources: list[str]) -> None:
    """Run cells with nbclient, which talks to the kernel itself, under a forged name."""
    manager = desk.server.kernel_manager.get_kernel(kernel_id)
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, sources)))
    client = NotebookClient(notebook, km=manager)
    client.kc = manager.client()
    client.kc.session = Session(key=manager.session.key, username="ada")
    client.kc.start_channels()
    try:
        await client.kc.wait_for_ready(timeout=60)
        for index, cell in enumerate(notebook.cells):
            await client.async_execute_cell(cell, index)
    finally:
        client.kc.stop_channels()


async def test_nobody_is_missing_and_nobody_is_taken_for_another(
    agent: Agent, desk: Desk, connect: Connect
) -> None:
    jupyter_session = await desk.opens()
    kernel_id = jupyter_session["kernel"]["id"]
    ada = await connect(kernel_id, "ada")
    bob = await connect(kernel_id, "bob", is_v1=False)
    eve = await connect(kernel_id, "eve")
    stolen = await ada.send("'ada first'")
    await ada.replies(1)
    await eve.send("'eve, with an id of ada'", msg_id=stolen)
    await eve.replies(1)
    clients = {"ada": ada, "bob": bob, "eve": eve}

    async def work(name: str, client: Frontend) -> None:
        numbers = iter(range(CELLS))
        while sources := [f"'{name} {number}'" for number in islice(numbers, AT_ONCE)]:
            for source in sources:
                await client.send(source)
            assert await client.replies(len(sources)) == ["ok"] * len(sources)

    unnamed = {f"'ada, says nbclient {number}'" for number in range(CELLS)}
    await asyncio.gather(
        *(work(*each) for each in clients.items()),
        run_by_nbclient(desk, kernel_id, sorted(unnamed)),
    )
    sent_by_people = 3 * CELLS + 2
    ran = await entries(agent, kernel_id, sent_by_people + CELLS, "kernel")
    at_the_kernel = [event for event in ran if event["source_text"] in unnamed]
    assert sorted(event["source_text"] for event in at_the_kernel) == sorted(unnamed)
    for event in at_the_kernel:
        assert (event["by"].get("username"), event.get("via")) == (None, None)
    ran = [event for event in ran if event["source_text"] not in unnamed]
    sent = [event for event in ran if event.get("via") == "websocket"]
    assert (len(sent), len(ran)) == (sent_by_people, 2 * sent_by_people)
    assert Counter(event["by"]["username"] for event in sent) == {
        "ada": CELLS + 1,
        "bob": CELLS,
        "eve": CELLS + 1,
    }
    for event in ran:
        author = event["source_text"].strip("'").partition(" ")[0].rstrip(",")
        assert event["by"].get("username") == author
    places: dict[str, list[str]] = {}
    for event in ran:
        places.setdefault(event["msg_id"], []).append(event.get("via", "kernel"))
    for event in ran:  # each was on disk before the kernel had it
        if event.get("via") != "websocket" and event["msg_id"] != stolen:
            assert places[event["msg_id"]] == ["websocket", "kernel"]
    assert OperatorsConnection.seen[kernel_id] >= sent_by_people


async def test_what_the_kernel_does_not_report_is_recorded_too(
    agent: Agent, desk: Desk, connect: Connect
) -> None:
    kernel_id = (await desk.ask("POST", "kernels"))["id"]
    ada = await connect(kernel_id, "ada")
    await ada.send("'silent'", silent=True)
    await ada.send("", user_expressions={"hidden": "1 + 1"})
    await ada.replies(2)
    await ada.send("'at the other door'", channel="control")
    sent = await entries(agent, kernel_id, 3, "websocket")
    sent = [event for event in sent if event.get("via") == "websocket"]
    assert [event["source_text"] for event in sent] == ["'silent'", "", "'at the other door'"]
    assert [bool(event.get("expressions")) for event in sent] == [False, True, False]


async def test_a_session_that_somebody_closes_is_opened_again(
    agent: Agent, desk: Desk, connect: Connect
) -> None:
    kernel_id = (await desk.ask("POST", "kernels"))["id"]
    ada = await connect(kernel_id, "ada")
    first = await session_of(agent, kernel_id)
    await agent.ask("POST", f"sessions/{first['id']}/close")
    await ada.send("'after'")
    await ada.replies(1)
    (sent, *_) = await entries(agent, kernel_id, 1, "websocket")
    assert (sent["source_text"], sent["by"]["username"]) == ("'after'", "ada")
    assert (await session_of(agent, kernel_id))["id"] != first["id"]


async def test_these_sessions_take_no_room_from_agents(
    agent: Agent, desk: Desk, connect: Connect
) -> None:
    for _ in range(2):
        kernel_id = (await desk.ask("POST", "kernels"))["id"]
        await session_of(agent, kernel_id)
    session = await agent.open()
    kernel_id = session["kernel"]["id"]
    ada = await connect(kernel_id, "ada")  # in an agent's own kernel
    await ada.send("'in the agent\\'s kernel'")
    await ada.replies(1)
    exported = (await agent.get(f"sessions/{session['id']}/notebook")).json
    (event,) = [
        each
        for each in exported["metadata"]["agent_exec"]["events"]
        if each["type"] == "person_ran"
    ]
    assert (event["by"]["username"], event["via"]) == ("ada", "websocket")


def test_an_id_of_two_senders_names_neither() -> None:
    senders = Senders()
    senders.note("1", "a", "ada")
    senders.note("1", "a", "eve")
    assert senders.take("1", "a") is None
    senders.note("2", "a", "ada")
    assert senders.take("2", "b") is None
    senders.note("3", "a", "ada")
    assert (senders.take("3", "a"), senders.take("3", "a")) == ("ada", None)


@pytest.mark.parametrize(
    "agent_exec_config", [{"record_people": "outputs", "record_people_in": "all"}]
)
async def test_outputs_are_recorded_too_if_the_operator_wants(
    agent: Agent, desk: Desk, connect: Connect
) -> None:
    kernel_id = (await desk.ask("POST", "kernels"))["id"]
    ada = await connect(kernel_id, "ada")
    await ada.send("print('pri' + 'nted')")
    await ada.send("1 / 0")
    await ada.replies(2)
    ran = await entries(agent, kernel_id, 2, "kernel")
    ended = [event for event in ran if "via" not in event]
    assert [(event["by"]["username"], event["status"]) for event in ended] == [
        ("ada", "ok"),
        ("ada", "error"),
    ]
    session = await session_of(agent, kernel_id)
    journal = (await agent.get(f"sessions/{session['id']}/journal")).body.decode()
    assert "printed" in journal
    assert "ZeroDivisionError" in journal


class Wire(BaseKernelWebsocketConnection):
    """A connection without a kernel; `sent` has what the kernel would get."""

    websocket_handler = SimpleNamespace(current_user=User(username="ada"))
    kernel_id = "k"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.sent: asyncio.Queue[str] = asyncio.Queue()

    def handle_incoming_message(self, incoming_msg: str) -> None:
        self.sent.put_nowait(incoming_msg)


def message(msg_type: str, msg_id: str) -> str:
    header = {"msg_type": msg_type, "msg_id": msg_id}
    return json.dumps({"header": header, "content": {"code": "1"}, "channel": "shell"})


async def test_a_recording_that_takes_long_or_fails_holds_nobody_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    may_record = asyncio.Event()
    recorded: list[str] = []

    async def record(_kernel_id: str, _caller: Caller, request: SentRequest) -> None:
        if request.msg_id == "fails":
            raise KernelUnavailable("It does not answer.")
        await may_record.wait()
        recorded.append(request.msg_id)

    people = People(lambda *_: None, record, Senders(), logging.getLogger("tests"))
    connection = recording(Wire, people)()
    sent = [message("execute_request", id) for id in ("late", "fails")]
    sent.insert(1, message("comm_msg", "after"))
    for each in sent:
        connection.handle_incoming_message(each)
    assert connection.sent.empty(), "it waits for the record"
    assert [await connection.sent.get() for _ in sent] == sent
    assert recorded == []
    may_record.set()
    while recorded != ["late"]:
        await asyncio.sleep(0)
    assert "What ada runs in kernel k is not recorded: It does not answer." in caplog.text
