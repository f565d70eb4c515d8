"""How many executions a token may ask for in a minute, whichever minute that is."""

from __future__ import annotations

import asyncio

import pytest

from jupyter_agent_exec.auth.scopes import Caller, Grants
from jupyter_agent_exec.errors import TooManyRequests
from jupyter_agent_exec.models import Caps, TokenRef
from jupyter_agent_exec.sessions.quotas import Quotas
from jupyter_agent_exec.types import TokenId


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def caller(id: str, most: int | None) -> Caller:
    return Caller(
        username="ada",
        display_name="Ada",
        access="token",
        token=TokenRef(id=TokenId(id), label="t"),
        grants=Grants.parse(["exec:scratch"]),
        caps=Caps(executions_per_minute=most),
    )


def refused_for(usage: Quotas, asking: Caller, count: int = 1) -> int | None:
    """Return after how many seconds to come again; None for whoever may go on."""
    try:
        usage.check_execute(asking, [], count)
    except TooManyRequests as refused:
        return int(refused.detail["retry_after"])
    return None


def test_the_minute_slides() -> None:
    clock, usage, agent = Clock(), Quotas(100, 0, 100), caller("t_1", 3)

    async def ask() -> None:
        assert refused_for(usage, agent, 3) is None
        usage.executed(agent, 1)
        clock.ahead = 30
        usage.executed(agent, 2)
        assert refused_for(usage, agent) in (30, 31)
        assert refused_for(usage, caller("t_2", 3)) is None
        clock.ahead = 60
        assert refused_for(usage, agent) is None
        assert refused_for(usage, agent, 2) in (30, 31)
        clock.ahead = 90
        assert refused_for(usage, agent, 3) is None

    try:
        clock.run_until_complete(ask())
    finally:
        clock.close()


@pytest.mark.parametrize(
    "asking", [caller("t_1", None), Caller(username="a", display_name="A", access="full")]
)
def test_who_has_no_cap_may_ask_as_often_as_they_like(asking: Caller) -> None:
    async def ask() -> None:
        usage = Quotas(100, 0, 100)
        for _ in range(1000):
            assert refused_for(usage, asking) is None
            usage.executed(asking, 1)

    asyncio.run(ask())
