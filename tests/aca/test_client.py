"""Whose a dynamic session is, and what is kept of its clients."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from jupyter_server.auth import IdentityProvider, User

from jupyter_agent_exec.aca.handlers import DynamicUploadHandler
from jupyter_agent_exec.aca.manager import Client, KnownClients
from jupyter_agent_exec.types import SessionId
from tests.aca.dynamic_asking import DynamicSession
from tests.asking import Agent

SessionOf = Callable[..., DynamicSession]


class ByHeader(IdentityProvider):
    """Takes a header for who asks, as behind a proxy that lets people in."""

    def get_user(self, handler: Any) -> Any:
        username = handler.request.headers.get("X-Person")
        return super().get_user(handler) if username is None else User(username)

    def is_token_authenticated(self, handler: Any) -> bool:
        return True


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any]) -> dict[str, Any]:
    jp_server_config["ServerApp"]["identity_provider_class"] = ByHeader
    return jp_server_config


async def test_two_people_with_one_identifier_share_nothing(session_of: SessionOf) -> None:
    headers = [{"X-Person": "ada"}, {"X-Person": "bob"}, None]  # the last has the server's token
    sessions = [session_of("default", shown) for shown in headers]
    for number, session in enumerate(sessions):
        assert (await session.run(f"x = {number}"))["status"] == "Success"
        assert (await session.upload(b"", f"{number}.txt")).status == 200
    for number, session in enumerate(sessions):
        assert (await session.run("x"))["result"] == str(number)
        assert await session.names() == [f"{number}.txt"]


def test_no_clients_session_is_named_as_anothers() -> None:
    clients = [
        Client("b:c", None, "a"),
        Client("c", None, "a:b"),
        Client("a:c", None),
        Client("@a:c", None),
        Client("c", None, "a"),
        Client("c", None, "a%3A"),
        Client("c", None, ""),
        Client("c", None),
    ]
    assert len({client.id for client in clients}) == len(clients)


def test_a_client_is_told_once_of_a_session_that_it_does_not_know() -> None:
    known, client = KnownClients(), Client("one", None)
    first, second = SessionId("s_1"), SessionId("s_2")
    known.heard(client, first)
    assert not known.is_news(client, first)
    known.heard(client, second)
    assert known.is_news(client, second)
    assert not known.is_news(client, second)


def test_only_the_clients_that_were_heard_last_are_known() -> None:
    known = KnownClients(most=2)
    first, second = SessionId("s_1"), SessionId("s_2")
    one, two, three = (Client(name, None) for name in ("one", "two", "three"))
    for client in (one, two, one, three):
        known.heard(client, first)
    assert known.is_news(one, second)
    assert not known.is_news(two, second)  # it was forgotten
    assert not known.is_news(three, second)


async def test_nothing_is_kept_of_requests_and_closed_sessions(
    session_of: SessionOf, agent: Agent, jp_serverapp: Any
) -> None:
    app = next(iter(jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]))
    session = session_of("one")
    await session.run("1")
    await session.upload(b"data", "a.txt")
    (opened,) = (await agent.get("sessions")).json["sessions"]
    live = weakref.ref(app.services.manager.history.open_session(opened["id"]))
    assert live() is not None
    await agent.ask("POST", f"sessions/{opened['id']}/close")

    def is_upload(thing: object) -> bool:
        return type(thing) is DynamicUploadHandler and thing.serverapp is jp_serverapp

    while live() is not None or any(map(is_upload, gc.get_objects())):
        await agent.get("status")
        gc.collect()
