"""Scratch kernels: warm ones, fresh ones, and their ends."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_server.serverapp import ServerApp

from tests.asking import Agent
from tests.sessions.kernelspecs import (
    OtherProvisioner,
    install_kernel,
    install_kernel_with_provisioner,
)

WARM: Final = {"warm_kernels": 1}


async def kernel_ids(server: ServerApp) -> set[str]:
    return set(server.kernel_manager.list_kernel_ids())


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Look until something holds; the test's timeout is the bound."""
    while not await holds():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("agent_exec_config", [WARM])
async def test_a_warm_kernel_has_not_run_anything_and_is_in_the_right_place(
    agent: Agent, jp_serverapp: ServerApp, jp_root_dir: Path
) -> None:
    (jp_root_dir / "work").mkdir()
    target = {"kind": "scratch", "cwd": "work"}
    first = await agent.open(target=target)
    await until(lambda: two_kernels(jp_serverapp))
    warm = await kernel_ids(jp_serverapp) - {first["kernel"]["id"]}
    second = await agent.open(target=target)
    assert {second["kernel"]["id"]} == warm
    done = await agent.run(second, "import os; os.getcwd(), In")
    assert done["execution_count"] == 1
    assert str(jp_root_dir / "work") in done["text"]
    assert "import os" in done["text"]


@pytest.mark.parametrize("agent_exec_config", [WARM])
async def test_a_kernelspec_that_was_removed_is_named_when_no_kernel_of_it_can_be_warm(
    agent: Agent, jp_serverapp: ServerApp, jp_data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = install_kernel(jp_data_dir, "removed", "-m", "ipykernel_launcher")
    session = await agent.open(target={"kind": "scratch", "kernel_name": "removed"})
    await until(lambda: two_kernels(jp_serverapp))
    shutil.rmtree(folder)
    await agent.ask("POST", f"sessions/{session['id']}/restart")  # takes the warm one

    async def is_logged() -> bool:
        return "No warm kernel: No kernel is named 'removed'" in caplog.text

    async with asyncio.timeout(30):
        await until(is_logged)


async def two_kernels(server: ServerApp) -> bool:
    return len(await kernel_ids(server)) == 2


async def test_what_agents_run_stays_out_of_the_persons_own_history(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "get_ipython().history_manager.hist_file")
    assert done["text"].strip() == "':memory:'"
    again = await agent.run(session, "%history")
    assert "hist_file" in again["text"]


async def test_a_flush_waits_for_nobody_if_there_is_nothing_to_send(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(
        session,
        """
import sys
thread, asked = get_ipython().kernel.iopub_thread, []
thread.schedule = asked.append
sys.stdout.flush()
sys.stderr.flush()
del thread.schedule
len(asked)
""",
    )
    assert done["text"].strip() == "0"


async def test_text_that_is_just_being_sent_is_waited_for(agent: Agent) -> None:
    session = await agent.open()
    source = """
import sys, threading
session, sending = sys.stdout.session, threading.Event()
message = session.msg
def slow_message(msg_type, *args, **more):
    if msg_type == "stream":
        sending.set()
        threading.Event().wait(0.5)  # the cell would end meanwhile
    return message(msg_type, *args, **more)
session.msg = slow_message
print("printed")
sending.wait()
"""
    assert (await agent.run(session, source))["text"].split() == ["printed", "True"]


async def test_what_is_printed_and_what_is_displayed_come_in_their_order(agent: Agent) -> None:
    session = await agent.open()
    source = """
import sys
for n in range(200):
    print("out", n)
    display(n)
    print("err", n, file=sys.stderr, flush=True)
"""
    outputs = (await agent.run(session, source))["cell"]["outputs"]
    told = [each.get("text") or each["data"]["text/plain"] for each in outputs]
    assert told == [text for n in range(200) for text in (f"out {n}\n", f"{n}", f"err {n}\n")]


@pytest.mark.parametrize("agent_exec_config", [WARM])
async def test_a_kernel_elsewhere_is_not_taken_from_the_warm_ones(
    agent: Agent, jp_serverapp: ServerApp, jp_root_dir: Path
) -> None:
    (jp_root_dir / "other").mkdir()
    await agent.open()
    await until(lambda: two_kernels(jp_serverapp))
    session = await agent.open(target={"kind": "scratch", "cwd": "other"})
    done = await agent.run(session, "import os; os.getcwd()")
    assert str(jp_root_dir / "other") in done["text"]
    assert done["execution_count"] == 1


async def test_no_environment_variable_is_on_the_allow_list_by_default(agent: Agent) -> None:
    target = {"kind": "scratch", "env": {"COLOUR": "blue"}}
    refused = await agent.ask("POST", "sessions", {"agent": {"name": "a"}, "target": target})
    assert (refused.status, refused.json["detail"]["field"]) == (400, "target.env")


@pytest.mark.parametrize("agent_exec_config", [{"allowed_env": ["COLOUR"]}])
async def test_environment_from_the_allow_list_reaches_the_kernel(agent: Agent) -> None:
    session = await agent.open(target={"kind": "scratch", "env": {"COLOUR": "blue"}})
    done = await agent.run(session, "import os; os.environ['COLOUR'], bool(os.environ['PATH'])")
    assert done["text"].strip() == "('blue', True)"


async def test_a_closed_session_leaves_no_kernel(agent: Agent, jp_serverapp: ServerApp) -> None:
    session = await agent.open()
    assert await kernel_ids(jp_serverapp) == {session["kernel"]["id"]}
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert await kernel_ids(jp_serverapp) == set()


@pytest.mark.parametrize("agent_exec_config", [{"kernel_idle_timeout": 0.3}])
async def test_a_session_gets_a_fresh_kernel_after_culling(
    agent: Agent, jp_serverapp: ServerApp
) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1")

    async def culled() -> bool:
        return not await kernel_ids(jp_serverapp)

    await until(culled)
    looked = (await agent.get(f"sessions/{session['id']}")).json
    assert (looked["status"], looked["kernel"]) == ("open", None)
    after = await agent.run(session, "'x' in globals()")
    assert after["text"].endswith("False") or "False" in after["text"]
    assert (after["kernel"]["restarted"], after["kernel"]["reason"]) == (True, "culled")


async def test_a_kernel_that_somebody_else_shut_down_is_told_and_replaced(
    agent: Agent, jp_serverapp: ServerApp
) -> None:
    session = await agent.open()
    await jp_serverapp.kernel_manager.shutdown_kernel(session["kernel"]["id"], now=True)

    async def noticed() -> bool:
        return (await agent.get(f"sessions/{session['id']}")).json["kernel"] is None

    await until(noticed)
    after = await agent.run(session, "1")
    assert after["status"] == "ok"
    assert (after["kernel"]["restarted"], after["kernel"]["reason"]) == (True, "shut_down")


async def test_init_source_runs_first_in_each_kernel_outside_its_history(agent: Agent) -> None:
    session = await agent.open(init_source="ready = 'yes'")
    done = await agent.run(session, "ready")
    assert done["execution_count"] == 1
    assert done["text"].strip() == "'yes'"
    await agent.ask("POST", f"sessions/{session['id']}/restart")
    again = await agent.run(session, "ready")
    assert "'yes'" in again["text"]
    assert again["kernel"]["restarted"] is True
    listed = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"]
    assert [execution["init"] for execution in listed] == [True, False, True, False]


async def test_a_failing_init_source_opens_nothing(agent: Agent, jp_serverapp: ServerApp) -> None:
    refused = await agent.ask(
        "POST", "sessions", {"agent": {"name": "a"}, "init_source": "import nothing_like_it"}
    )
    assert (refused.status, refused.json["code"]) == (422, "init_failed")
    assert refused.json["detail"]["error"]["ename"] == "ModuleNotFoundError"
    session_id = refused.json["detail"]["session_id"]
    looked = (await agent.get(f"sessions/{session_id}")).json
    assert (looked["status"], looked["close_reason"]) == ("closed", "init_failed")


async def test_a_scratch_kernel_is_in_jupyters_list_with_its_state(
    agent: Agent, jp_serverapp: ServerApp
) -> None:
    session = await agent.open()
    running = await agent.run(session, "while True: pass", wait=0)

    def state() -> str:
        model: dict[str, Any] = jp_serverapp.kernel_manager.kernel_model(session["kernel"]["id"])
        return str(model["execution_state"])

    async def busy() -> bool:
        return state() == "busy"

    async def idle() -> bool:  # the list is told a moment after whoever asked for the execution
        return state() == "idle"

    await until(busy)
    await agent.ask("POST", f"executions/{running['id']}/cancel")
    await until(idle)


async def test_a_stopping_server_records_what_ran_and_leaves_no_kernel(
    agent: Agent, jp_serverapp: ServerApp, history_dir: Path
) -> None:
    session = await agent.open()
    looping = await agent.run(session, "print('on', flush=True)\nwhile True: pass", wait=0)
    waiting = await agent.run(session, "1", wait=0)
    extension = next(iter(jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]))
    await extension.stop_extension()
    refused = await agent.ask("POST", "sessions", {"agent": {"name": "a"}})
    assert (refused.status, refused.json["code"]) == (503, "server_stopping")
    assert await kernel_ids(jp_serverapp) == set()
    journal = (history_dir / "sessions" / session["id"] / "journal.jsonl").read_text()
    assert f'"execution_id":"{looping["id"]}"' in journal
    assert '"status":"interrupted"' in journal
    assert f'"execution_id":"{waiting["id"]}"' in journal
    assert '"status":"cancelled"' in journal
    assert '"reason":"server_stopped"' in journal.splitlines()[-1]


async def test_the_event_bus_is_told_ids_and_statuses_only(
    agent: Agent, jp_serverapp: ServerApp
) -> None:
    told: list[dict[str, Any]] = []

    async def listen(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        told.append(data)

    schema_id = "https://schema.jupyter.org/jupyter_agent_exec/activity/v1"
    session = await agent.open()
    jp_serverapp.event_logger.add_listener(schema_id=schema_id, listener=listen)
    done = await agent.run(session, "secret = 'canary'")

    async def heard() -> bool:
        return any(event.get("status") == "ok" for event in told)

    await until(heard)
    event = next(event for event in told if event.get("status") == "ok")
    assert event["execution_id"] == done["id"]
    assert event["session_id"] == session["id"]
    assert "canary" not in str(told)
    serials = [event["serial"] for event in told]
    assert serials == list(range(serials[0], serials[0] + len(serials)))


async def test_a_kernel_with_a_provisioner_of_its_own_is_not_isolated_instead(
    agent: Agent, jp_serverapp: ServerApp, jp_data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_kernel_with_provisioner(jp_data_dir, "own")
    target = {"kind": "scratch", "kernel_name": "own"}
    isolated: dict[str, Any] = {"agent": {"name": "a"}, "target": {**target, "isolated": True}}
    refused = await agent.ask("POST", "sessions", isolated)
    assert (refused.status, refused.json["code"]) == (501, "isolation_unavailable")
    assert refused.json["detail"] == {"field": "target.isolated", "provisioner": "other"}
    session = await agent.open(target=target)
    assert (await agent.run(session, "1"))["status"] == "ok"
    manager = jp_serverapp.kernel_manager.get_kernel(session["kernel"]["id"])
    assert type(manager.provisioner) is OtherProvisioner
    # Nor where the operator chose another for all kernels.
    factory = KernelProvisionerFactory.instance()
    monkeypatch.setattr(factory, "default_provisioner_name", "other")
    refused = await agent.ask(
        "POST",
        "sessions",
        {"agent": {"name": "a"}, "target": {"kind": "scratch", "isolated": True}},
    )
    assert refused.json["code"] == "isolation_unavailable"
