"""Kept edits in tabs, over a real WebSocket: saved, deleted, lost and proposed again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jupyter_agent_exec.notebooks.proposals import LOST
from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, mint
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": {"notebook": "none", "kernel": "none"}}


class Edits:
    """The edits that an agent proposes, and the user who decides."""

    def __init__(self, person: Agent, agent: TokenAgent, session: dict[str, Any]) -> None:
        self._person = person
        self._agent = agent
        self._route = f"sessions/{session['id']}/proposals"
        self._session_id = session["id"]

    async def propose(self, *edits: dict[str, Any]) -> list[dict[str, Any]]:
        """Propose edits; return what the agent is told of earlier ones."""
        body = {"session_id": self._session_id, "edits": list(edits)}
        answered = await self._agent.ask("PATCH", f"notebooks/{NOTEBOOK}/cells", body)
        assert answered.status == 202, answered.body
        return list(answered.json["decided_edits"])

    async def keep(self) -> None:
        """Keep all that are open."""
        answered = await self._person.ask("POST", f"{self._route}/keep", {})
        assert answered.status == 200, answered.body

    async def with_status(self, status: str) -> dict[str, dict[str, Any]]:
        """Return edits by what they do to which cell."""
        query = {"session_id": self._session_id}
        found = (await self._person.ask("GET", "proposals", query=query)).json["proposals"]
        edits = [edit for each in found for edit in each["edits"] if edit["status"] == status]
        return {f"{edit['kind']} {edit['cell_id']}": edit for edit in edits}

    async def open(self, *wanted: str) -> dict[str, dict[str, Any]]:
        """Wait until just these are open, and return them."""
        async with asyncio.timeout(60):
            while (found := await self.with_status("open")).keys() != {*wanted}:
                pass
        return found


@pytest.fixture
def edits(jp_asyncio_loop: asyncio.AbstractEventLoop, agent: Agent, ask: Send, desk: Desk) -> Edits:
    async def begin() -> Edits:
        desk.writes(NOTEBOOK, "a = 1", "b = 1", "c = 1")
        _, secret = await mint(agent, "exec:notebook", "edit:notebook")
        worker = TokenAgent(ask, secret)
        return Edits(agent, worker, await worker.open(target=notebook_target()))

    return jp_asyncio_loop.run_until_complete(begin())


def replace(id: str, source: str) -> dict[str, Any]:
    return {"op": "replace", "cell_id": id, "source": source}


async def test_kept_edits_lost_by_a_reload_are_proposed_again(edits: Edits, open_tab: Any) -> None:
    async with open_tab("one") as tab:
        a, b, c = tab.ids
        insert = {"op": "insert", "cell_type": "code", "source": "new = 1", "after": a}
        await edits.propose(
            replace(a, "a = 2"), replace(b, "b = 2"), insert, {"op": "delete", "cell_id": c}
        )
        await edits.keep()
        assert tab.sources == ["a = 2", "new = 1", "b = 2"]
        new = tab.ids[1]
        await tab.delete(b)
    async with open_tab("two") as tab:
        lost = await edits.open(f"change {a}", f"insert {new}", f"delete {c}")
        assert {(edit["fits"], edit["reason"]) for edit in lost.values()} == {(True, LOST)}
        assert {edit["decided_by"] for edit in lost.values()} == {None}
        assert tab.sources == ["a = 1", "b = 1", "c = 1"]
        assert list(await edits.with_status("kept")) == [f"change {b}"]
        await edits.keep()
        assert tab.sources == ["a = 2", "new = 1", "b = 1"]
        await tab.save()
        told = await edits.propose(replace(b, "b = 3"))
        assert [edit["status"] for edit in told] == ["kept"] * 4  # the last decision on each
        await edits.keep()
    async with open_tab("three") as tab:
        await edits.open(f"change {b}")  # and nothing that was saved
        assert tab.sources == ["a = 2", "new = 1", "b = 1"]


async def test_what_the_user_wrote_over_a_kept_edit_is_never_overwritten(
    edits: Edits, open_tab: Any
) -> None:
    async with open_tab("one") as tab:
        a, b, c = tab.ids
        await edits.propose(replace(a, "a = 2"), replace(b, "b = 2"))
        await edits.keep()
        await tab.type(a, "a = 3  # mine")
        await tab.save()
        await edits.propose(replace(c, "c = 2"))
        await edits.keep()
        await tab.type(c, "c = 3  # mine, not saved")
        await tab.read()  # the user reloads the notebook from disk
        lost = await edits.open(f"change {c}")
        assert lost[f"change {c}"]["current"]["source"] == "c = 1"
        await tab.type(c, "c = 4  # mine")
        lost = await edits.open(f"change {c}")
        assert not lost[f"change {c}"]["fits"]
        await edits.keep()
        assert list(await edits.with_status("obsolete")) == [f"change {c}"]
        assert tab.sources == ["a = 3  # mine", "b = 2", "c = 4  # mine"]


async def test_closing_the_tab_that_has_it_loses_the_edit(edits: Edits, open_tab: Any) -> None:
    async with open_tab("other") as other, open_tab("used") as tab:
        a, *_ = tab.ids
        await edits.propose(replace(a, "a = 2"))
        await edits.keep()
        holder, left = (tab, other) if "a = 2" in tab.sources else (other, tab)
        await left.save()  # which tells nothing of the edit
        await holder.page.leave()
        await edits.open(f"change {a}")


async def test_a_reload_before_the_decision_loses_the_edit(edits: Edits, open_tab: Any) -> None:
    async with open_tab("one") as tab:
        a, *_ = tab.ids
        tab.reads_again = True
        await edits.propose(replace(a, "a = 2"))
        await edits.keep()
        assert tab.sources[0] == "a = 1"
        await edits.open(f"change {a}")
