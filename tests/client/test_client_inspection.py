"""The client looks into real kernels, and asks for values."""

from __future__ import annotations

import asyncio
from typing import Any, get_type_hints

import msgspec
import pytest

from jupyter_agent_exec.client import AsyncAgentExecClient, Session
from jupyter_agent_exec.errors import InvalidRequest
from jupyter_agent_exec.models import Value
from tests.real_server import RealServer


def test_values_come_with_the_result(session: Session) -> None:
    result = session.run("x = [1, 2]", values={"n": "len(x)", "x": "x", "bad": "y"})
    assert (result.values["n"].json, result.values["x"].json) == (2, [1, 2])
    assert (result.values["bad"].ename, result.ok) == ("NameError", True)
    assert session.run("x").values == {}
    # A program that is checked by mypy needs no test for None.
    assert get_type_hints(Value)["json"] == Any


def test_a_kernel_is_looked_into(session: Session) -> None:
    session.run("quokka = 7\nimport os")
    listed = session.variables("QUOK")
    assert [(each.name, each.preview) for each in listed.variables] == [("quokka", "7")]
    assert [each.import_names for each in session.packages("pyzmq").packages] == [["zmq"]]
    with pytest.raises(InvalidRequest, match="limit"):
        session.variables(limit=0)


def test_who_awaits_is_told_the_same(session: Session, server: RealServer) -> None:
    session.run("quokka = 7")

    async def ask() -> list[msgspec.Struct]:
        async with AsyncAgentExecClient(server.url, server.token) as client:
            there = await client.session(session.id)
            return [
                await there.variables("quo", limit=3),
                await there.packages("pyzmq"),
            ]

    assert asyncio.run(ask()) == [
        session.variables("quo", limit=3),
        session.packages("pyzmq"),
    ]
