"""What users decided for all servers on a history: shared by them, and not lost."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.errors import HistoryUnavailable
from jupyter_agent_exec.executions.shared_decisions import (
    PauseEntry,
    SharedDecisions,
    StoredPolicy,
)
from jupyter_agent_exec.records import AgentsPaused, AgentsResumed, By, timestamp
from jupyter_agent_exec.types import ApprovalMode

ADA = By(kind="person", username="ada", display_name="Ada")


class Server(SharedDecisions):
    """The decisions as one server has them, and what it was told of them."""

    def __init__(self, folder: Path, thread: ThreadPoolExecutor) -> None:
        super().__init__(folder, thread, logging.getLogger("test"), changed=self.hear)
        self.told: list[PauseEntry | None] = []
        self.hears = asyncio.Event()

    async def hear(self, pause: PauseEntry | None) -> None:
        self.told.append(pause)
        self.hears.set()

    async def sets(self, **modes: ApprovalMode) -> None:
        await self.change_policy(lambda before: replace(before, **modes))


@asynccontextmanager
async def server(folder: Path) -> AsyncIterator[Server]:
    with ThreadPoolExecutor(1) as thread:
        decisions = Server(folder, thread)
        yield decisions
        await decisions.stop()


def paused() -> AgentsPaused:
    return AgentsPaused(at=timestamp(), by=ADA)


def resumed() -> AgentsResumed:
    return AgentsResumed(at=timestamp(), by=ADA)


async def test_servers_that_change_the_policy_at_once_lose_no_change(tmp_path: Path) -> None:
    async with server(tmp_path) as one, server(tmp_path) as other:
        await asyncio.gather(one.sets(scratch="always"), other.sets(notebook="none"))
        await other.sets(kernel="first")
        both = StoredPolicy(scratch="always", notebook="none", kernel="first")
        assert other.policy == both
        await one.refresh()
        assert one.policy == both
    async with server(tmp_path) as next_one:
        assert next_one.policy == both


async def test_a_change_of_the_policy_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    def refuse(before: StoredPolicy) -> StoredPolicy:
        raise HistoryUnavailable("The ledger cannot be written.")

    async with server(tmp_path) as one:
        await one.sets(scratch="always")
        with pytest.raises(HistoryUnavailable):
            await one.change_policy(refuse)
        await one.sets(kernel="none")
        assert one.policy == StoredPolicy(scratch="always", kernel="none")


async def test_a_pause_and_its_end_reach_another_server_with_its_next_look(tmp_path: Path) -> None:
    async with server(tmp_path) as one, server(tmp_path) as other:
        for entry in (paused(), resumed()):
            await one.set_pause(entry)
            other.hears.clear()
            await other.refresh()
            assert one.paused == other.paused
            await other.hears.wait()
            assert one.told == other.told
            assert other.told[-1] == entry
        assert other.paused is None


async def test_the_first_of_two_pauses_holds_and_one_server_resumes_both(tmp_path: Path) -> None:
    async with server(tmp_path) as one, server(tmp_path) as other:
        first, second = paused(), replace(paused(), at="2999-11-21T09:00:00.000Z")
        await one.set_pause(first)
        await other.set_pause(second)
        assert other.paused is not None
        assert other.paused.at == first.at
        await other.set_pause(resumed())
        await one.refresh()
        assert (one.paused, other.paused) == (None, None)


async def test_a_pause_outlives_the_server(tmp_path: Path) -> None:
    async with server(tmp_path) as one:
        await one.set_pause(paused())
    async with server(tmp_path) as next_one:
        assert next_one.paused == one.paused
        assert next_one.told == []


async def test_a_pause_that_cannot_be_saved_holds_here_and_is_saved_later(tmp_path: Path) -> None:
    in_the_way = tmp_path / "pause.json.new"
    in_the_way.mkdir()
    async with server(tmp_path) as one, server(tmp_path) as other:
        with pytest.raises(HistoryUnavailable, match="paused here and now"):
            await one.set_pause(paused())
        await one.refresh()
        await other.refresh()
        assert (one.paused is not None, other.paused) == (True, None)
        in_the_way.rmdir()
        one.start()
        while other.paused is None:
            await other.refresh()
            await asyncio.sleep(0)
        assert other.paused == one.paused


async def test_what_cannot_be_resumed_stays_paused(tmp_path: Path) -> None:
    async with server(tmp_path) as one:
        await one.set_pause(paused())
        (tmp_path / "pause.json.new").mkdir()
        with pytest.raises(HistoryUnavailable, match="Nothing was changed"):
            await one.set_pause(resumed())
        await one.refresh()
        assert one.paused is not None


@pytest.mark.parametrize("name", ["approval-policy.json", "pause.json"])
async def test_a_damaged_file_changes_nothing_and_is_named_in_the_log_once(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with server(tmp_path) as one:
        await one.sets(scratch="always")
        await one.set_pause(paused())
        (tmp_path / name).write_text("{")
        for _ in range(3):
            await one.refresh()
        assert one.paused is not None
        assert one.policy == StoredPolicy(scratch="always")
    [line] = caplog.messages
    assert name in line


async def test_a_policy_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "approval-policy.json").write_text(json.dumps({"scratch": "always", "more": 1}))
    async with server(tmp_path) as one:
        assert one.policy == StoredPolicy(scratch="always")
