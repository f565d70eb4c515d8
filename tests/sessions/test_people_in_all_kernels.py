"""What people run in any kernel of the server is recorded, with who was signed in."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import pytest
from jupyter_server.auth import IdentityProvider, User
from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

from jupyter_agent_exec.people_websockets import Senders
from tests.asking import Agent
from tests.sessions.living_notebook import Desk
from tests.sessions.test_programs import session_of

CELLS = 20
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
        exported = (await agent.get(f"sessions/{session['id']}/notebook")).json
        events = exported["metadata"]["agent_exec"]["events"]
        ran = [event for event in events if event["type"] == "person_ran"]
        if sum(event.get("via", "kernel") == via for event in ran) >= count:
            return ran


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
        for number in range(CELLS):
            await client.send(f"'{name} {number}'")
        assert await client.replies(CELLS) == ["ok"] * CELLS

    await asyncio.gather(*(work(*each) for each in clients.items()))
    total = 3 * CELLS + 2
    ran = await entries(agent, kernel_id, total, "kernel")
    sent = [event for event in ran if event.get("via") == "websocket"]
    assert len(sent) == total
    assert Counter(event["by"]["username"] for event in sent) == {
        "ada": CELLS + 1,
        "bob": CELLS,
        "eve": CELLS + 1,
    }
    for event in ran:
        author = event["source_text"].strip("'").partition(" ")[0].rstrip(",")
        assert event["by"].get("username") == author
    first_seen = [event["msg_id"] for event in ran if event["msg_id"] != stolen]
    for event in ran:  # each was on disk before the kernel had it
        if event.get("via") != "websocket" and event["msg_id"] != stolen:
            same = [e for e in ran if e["msg_id"] == event["msg_id"]]
            assert [e.get("via", "kernel") for e in same] == ["websocket", "kernel"]
    assert first_seen
    assert OperatorsConnection.seen[kernel_id] >= total


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
