"""Undo in kernels that are set up, or used, in a way of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import pytest

from tests.asking import Agent
from tests.checkpoints.asking import kept, refused, turned_on, undone
from tests.kernels.kernel_server import Person
from tests.sessions.living_notebook import NOTEBOOK, Desk

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


@pytest.fixture
def kernel_config() -> dict[str, Any]:
    """Traits of the server's kernel managers; tests override this."""
    return {}


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], kernel_config: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    with TemporaryDirectory() as folder:  # a path of sockets must be short
        place = {"ip": f"{folder}/k"} if kernel_config.get("transport") == "ipc" else {}
        yield {**jp_server_config, "KernelManager": {**kernel_config, **place}}


async def asked_debugger(person: Person, command: str, **arguments: Any) -> dict[str, Any]:
    """Ask the kernel's debugger as JupyterLab does."""
    client = person.client
    content = {"type": "request", "seq": 1, "command": command, "arguments": arguments}
    client.control_channel.send(client.session.msg("debug_request", content))
    return dict((await client.get_control_msg(timeout=30))["content"])


@pytest.mark.parametrize("kernel_config", [{"transport": "ipc"}])
async def test_channels_other_than_tcp_are_refused(agent: Agent, desk: Desk) -> None:
    kernel_id, session, _ = await turned_on(agent, desk)
    ran = await agent.run(session, "x = 1")
    assert "the kernel's channels are not TCP" in (await kept(agent, kernel_id))["reason"]
    assert "no checkpoint from before" in await refused(agent, ran)


@pytest.mark.parametrize("kernel_config", [{"transport_encryption": "required"}])
async def test_encrypted_channels_go_on(agent: Agent, desk: Desk) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    info = desk.server.kernel_manager.get_kernel(kernel_id).get_connection_info()
    assert info["curve_publickey"]
    await person.has_run("x = 1")
    ran = await agent.run(session, "x = 2")
    assert (await kept(agent, kernel_id))["reason"] is None
    await undone(agent, ran)
    assert (await person.has_run("assert x == 1"))["status"] == "ok"
    assert (await agent.run(session, "x"))["text"].startswith("1")


async def test_subshells_of_tabs_go_on(agent: Agent, desk: Desk) -> None:
    _, session, person = await turned_on(agent, desk)
    made = await person.answer_on_control("create_subshell_request")
    await undone(agent, await agent.run(session, "x = 2"))
    told = await person.answer_of_subshell(made["subshell_id"])
    assert told["status"] == "ok"
    listed = await person.answer_on_control("list_subshell_request")
    assert made["subshell_id"] in listed["subshell_id"]


async def test_a_debugger_can_begin_after_an_undo_and_then_no_copy_is_made(
    agent: Agent, desk: Desk
) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    await undone(agent, await agent.run(session, "x = 2"))
    begun = await asked_debugger(person, "initialize", clientID="test", adapterID="")
    assert begun["success"], begun
    assert (await asked_debugger(person, "attach"))["success"]
    ran = await agent.run(session, "x = 3")
    assert ran["status"] == "ok"
    told = await kept(agent, kernel_id)
    assert "an open network connection" in told["reason"]
    assert told["checkpoints"] == []
    await refused(agent, ran)


async def test_widgets_follow_the_page_after_an_undo(agent: Agent, desk: Desk) -> None:
    _, session, person = await turned_on(agent, desk)
    await person.has_run("import ipywidgets; slider = ipywidgets.IntSlider(value=3)")
    told = await agent.run(session, "slider.value = 7; print(slider.comm.comm_id)")
    assert told["status"] == "ok"
    await undone(agent, told)
    client = person.client
    data = {"method": "update", "state": {"value": 5}, "buffer_paths": []}
    content = {"comm_id": told["text"].strip(), "data": data}
    assert (await person.has_run("assert slider.value == 3"))["status"] == "ok"
    client.shell_channel.send(client.session.msg("comm_msg", content))
    assert (await person.has_run("assert slider.value == 5"))["status"] == "ok"


async def test_a_kernel_without_a_checkpoint_left_is_started_anew(agent: Agent, desk: Desk) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    manager = desk.server.kernel_manager.get_kernel(kernel_id)
    restarts: asyncio.Queue[None] = asyncio.Queue()
    manager.add_restart_callback(lambda: restarts.put_nowait(None), "restart")
    await person.has_run("x = 1")
    await agent.run(session, "x = 2")
    os.killpg(manager.provisioner.pgid, signal.SIGKILL)  # as for lack of memory
    await asyncio.wait_for(restarts.get(), 60)
    assert (await agent.run(session, "'x' in globals()"))["text"].startswith("False")
    assert len((await kept(agent, kernel_id))["checkpoints"]) == 1


@pytest.mark.parametrize("agent_exec_config", [{"checkpoints_per_kernel": 20}])
async def test_a_whole_round_of_an_agent_is_undone_from_its_first_cell(
    agent: Agent, desk: Desk, jp_root_dir: Path
) -> None:
    kernel_id, session, person = await turned_on(agent, desk)
    await person.has_run("table = {'a': [1]}")
    ran = [
        await agent.run(session, f"table['a'].append({number}); table[{number}] = {number}")
        for number in range(20)
    ]
    told = await undone(agent, ran[0])
    assert told["taken_back"] == [each["id"] for each in ran]
    assert (await person.has_run("assert table == {'a': [1]}"))["status"] == "ok"
    assert (await kept(agent, kernel_id))["checkpoints"] == []
    while len(nbformat.read(jp_root_dir / NOTEBOOK, as_version=4).cells) < 20:  # they stay
        await agent.settle(session)
    again = await agent.run(session, "table")
    assert again["text"].startswith("{'a': [1]}")
    await undone(agent, again)
