"""A notebook that a page opens at the moment in which an agent comes: they meet in one kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.asking import Agent
from tests.notebooks.page import Page, shown
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target

Opens = Callable[[Desk], Awaitable[dict[str, Any]]]


async def as_jupyterlab(desk: Desk) -> dict[str, Any]:
    """Open a notebook as JupyterLab does: at another path, until its kernel has started."""
    session = await desk.ask(
        "POST", "sessions", {"path": str(uuid4()), "name": NOTEBOOK, "type": "notebook"}
    )
    moved: dict[str, Any] = await desk.ask("PATCH", f"sessions/{session['id']}", {"path": NOTEBOOK})
    return moved


async def as_others(desk: Desk) -> dict[str, Any]:
    return await desk.opens()


@pytest.mark.parametrize("opens", [as_jupyterlab, as_others])
async def test_a_page_and_an_agent_that_come_at_once_meet_in_one_kernel(
    agent: Agent, desk: Desk, opens: Opens
) -> None:
    for _ in range(4):
        desk.writes()
        theirs, session = await asyncio.gather(opens(desk), agent.open(target=notebook_target()))
        done = await agent.run(session, "1", placement="none")
        (jupyter_session,) = await desk.sessions()
        kernel_id = jupyter_session["kernel"]["id"]
        assert (done["status"], done["kernel"]["id"]) == ("ok", kernel_id)
        assert jupyter_session["id"] == theirs["id"]
        assert [kernel["id"] for kernel in await desk.ask("GET", "kernels")] == [kernel_id]
        await agent.ask("POST", f"sessions/{session['id']}/close")
        await desk.ask("DELETE", f"sessions/{jupyter_session['id']}")


async def test_two_agents_go_over_to_the_kernel_of_the_page_together(
    agent: Agent, desk: Desk
) -> None:
    desk.writes()
    first = await agent.open(target=notebook_target())
    second = await agent.open(target=notebook_target())
    theirs = await as_jupyterlab(desk)
    for session in first, second:
        done = await agent.run(session, "1", placement="none")
        assert (done["status"], done["kernel"]["id"]) == ("ok", theirs["kernel"]["id"])
        assert done["kernel"]["reason"] == "changed"
    assert [session["id"] for session in await desk.sessions()] == [theirs["id"]]


@pytest.mark.parametrize("who", ["init", "agent", "another agent", "person"])
async def test_a_kernel_in_which_something_was_run_stays(
    agent: Agent, desk: Desk, who: str
) -> None:
    desk.writes()
    init = {"init_source": "kept = 1"} if who == "init" else {}
    session = await agent.open(target=notebook_target(), **init)
    if who == "person":
        await (await desk.sits_at(session["kernel"]["id"])).has_run("kept = 1")
    elif who != "init":
        runs = session if who == "agent" else await agent.open(target=notebook_target())
        await agent.run(runs, "kept = 1", placement="none")
    await as_jupyterlab(desk)
    done = await agent.run(session, "kept", placement="none")
    assert (done["status"], done["kernel"]["id"]) == ("ok", session["kernel"]["id"])
    assert len(await desk.sessions()) == 2


async def test_a_kernel_that_a_page_has_found_stays(
    agent: Agent, desk: Desk, jp_ws_fetch: Callable[..., Any]
) -> None:
    desk.writes()
    session = await agent.open(target=notebook_target())
    kernel_id = session["kernel"]["id"]
    socket = await jp_ws_fetch("api", "kernels", kernel_id, "channels")
    await as_jupyterlab(desk)
    done = await agent.run(session, "1", placement="none")
    assert done["kernel"]["id"] == kernel_id
    socket.close()
    # Else the server may end first, and leave open what Jupyter has for the page.
    while await socket.read_message() is not None:
        pass


async def test_the_kernel_that_a_page_is_starting_is_the_agents(
    agent: Agent, desk: Desk, jp_ws_fetch: Callable[..., Any]
) -> None:
    desk.writes()
    path = ("api", "agent-exec", "notebooks", "channel")
    page = Page(await jp_ws_fetch(*path), lambda asked: None)
    await page.announce(shown(NOTEBOOK, kernel_starting=True))
    while not (await agent.get("notebooks")).json["notebooks"]:
        pass
    opening = asyncio.create_task(agent.open(target=notebook_target()))
    for _ in range(20):
        assert await desk.ask("GET", "kernels") == []
    theirs = await as_jupyterlab(desk)
    await page.announce(shown(NOTEBOOK, kernel_id=theirs["kernel"]["id"]))
    assert (await opening)["kernel"]["id"] == theirs["kernel"]["id"]
    await page.leave()
