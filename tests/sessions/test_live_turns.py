"""An agent and a person at one kernel: who waits, for whom, and what nobody may touch."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.kernels.kernel_queue import KernelQueue
from jupyter_agent_exec.sessions.activity import EVENTS_SCHEMA_ID
from tests.asking import NAMESPACE, Agent
from tests.kernels.kernel_server import Person
from tests.real_server import Gate
from tests.sessions.living_notebook import (
    Desk,
    at_persons_cell,
    entries,
    finished,
    notebook_target,
    until_it_prints,
    until_it_waits_for,
    until_status,
)


async def together(agent: Agent, desk: Desk, **asked: Any) -> tuple[Person, dict[str, Any]]:
    """Return a person and an agent's session at one notebook."""
    kernel_id = (await desk.opens())["kernel"]["id"]
    person = await desk.sits_at(kernel_id)
    return person, await agent.open(target=notebook_target(), **asked)


async def started(agent: Agent, session: dict[str, Any], source: str, **asked: Any) -> Any:
    return await agent.run(session, source, placement="none", wait=0, **asked)


async def test_an_agent_waits_for_the_persons_cell_and_says_so(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    person, session = await together(agent, desk)
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    waiting = await started(agent, session, "1")
    behind = await until_it_waits_for(agent, waiting, "person")
    assert behind["agent"] is None
    gate.let_it_go_on()
    assert (await finished(agent, waiting))["status"] == "ok"
    assert (await person.reply(cell))["status"] == "ok"


async def test_what_waits_is_taken_back_and_the_kernel_never_saw_it(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    person, session = await together(agent, desk)
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    cancelled = await started(agent, session, "touched = 1")
    late = await started(agent, session, "touched = 1", queue_timeout=0.2)
    await agent.ask("POST", f"executions/{cancelled['id']}/cancel")
    assert (await finished(agent, cancelled))["status"] == "cancelled"
    ended = await finished(agent, late)
    assert (ended["status"], "0.2 seconds" in ended["reason"]) == ("timed_out", True)
    gate.let_it_go_on()
    assert (await person.reply(cell))["status"] == "ok"
    assert (await person.has_run("touched"))["ename"] == "NameError"
    types = [entry["type"] for entry in await entries(agent, session)]
    assert "dispatched" not in types
    assert "interrupted" not in types


async def test_the_time_limit_does_not_count_while_the_person_runs(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    person, session = await together(agent, desk)
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    waiting = await started(agent, session, "1", timeout=5)
    short = await started(agent, session, "1", timeout=0.001, queue_timeout=60)
    assert (await until_it_waits_for(agent, waiting, "person"))["agent"] is None
    gate.let_it_go_on()
    assert (await finished(agent, waiting))["status"] == "ok"
    assert (await finished(agent, short))["status"] in ("ok", "timed_out")
    assert (await person.reply(cell))["status"] == "ok"


async def test_a_timeout_interrupts_the_agent_and_the_persons_queued_cells_still_run(
    agent: Agent, desk: Desk
) -> None:
    person, session = await together(agent, desk)
    looping = await started(agent, session, "print('on', flush=True)\nwhile True: pass", timeout=1)
    await until_it_prints(agent, looping)
    queued = [person.runs("a = 1"), person.runs("a + 1")]
    assert (await finished(agent, looping))["status"] == "timed_out"
    assert [(await person.reply(cell))["status"] for cell in queued] == ["ok", "ok"]


async def test_an_agents_error_leaves_the_persons_queued_cells(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    person, session = await together(agent, desk)
    failing = await started(agent, session, gate.source + "\n1 / 0")
    await asyncio.to_thread(gate.wait_until_it_runs)
    queued = person.runs("'still here'")
    gate.let_it_go_on()
    assert (await finished(agent, failing))["status"] == "error"
    assert (await person.reply(queued))["status"] == "ok"


async def test_a_person_who_interrupts_in_jupyterlab_is_told_to_the_agent(
    agent: Agent, desk: Desk
) -> None:
    _, session = await together(agent, desk)
    looping = await started(agent, session, "print('on', flush=True)\nwhile True: pass")
    await until_it_prints(agent, looping)
    await desk.ask("POST", f"kernels/{session['kernel']['id']}/interrupt")
    ended = await finished(agent, looping)
    assert ended["status"] == "interrupted"
    assert ended["reason"].startswith("Somebody interrupted the kernel")


async def test_a_person_who_stops_the_agent_stops_what_waits_as_well(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    person, session = await together(agent, desk)
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    waiting = await started(agent, session, "1")
    await agent.ask("POST", f"sessions/{session['id']}/interrupt")
    ended = await finished(agent, waiting)
    assert (ended["status"], "Interrupted by" in ended["reason"]) == ("cancelled", True)
    gate.let_it_go_on()
    assert (await person.reply(cell))["status"] == "ok"


async def test_two_agents_at_one_notebook_wait_for_each_other(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    _, first = await together(agent, desk)
    second = await agent.open(target=notebook_target(), title="second")
    running = await started(agent, first, "x = 1\n" + gate.source)
    await asyncio.to_thread(gate.wait_until_it_runs)
    waiting = await started(agent, second, "x + 1")
    behind = await until_it_waits_for(agent, waiting, "agent")
    assert (behind["agent"], behind["execution_id"]) == ("tester", running["id"])
    await agent.ask("POST", f"sessions/{second['id']}/interrupt")  # not its to interrupt
    assert (await finished(agent, waiting))["status"] == "cancelled"
    gate.let_it_go_on()
    assert (await finished(agent, running))["status"] == "ok"
    assert (await agent.run(second, "x + 1", placement="none"))["text"].strip() == "2"


async def test_two_notebooks_on_one_kernel_are_two_sessions_in_turn(
    agent: Agent, desk: Desk
) -> None:
    kernel_id = (await desk.opens("a.ipynb"))["kernel"]["id"]
    await desk.opens("b.ipynb", id=kernel_id)
    a = await agent.open(target=notebook_target("a.ipynb"))
    b = await agent.open(target=notebook_target("b.ipynb"))
    assert a["kernel"]["id"] == b["kernel"]["id"] == kernel_id
    await asyncio.gather(
        *(
            agent.run(session, f"ran = globals().get('ran', 0) + 1; print({i})", placement="none")
            for i in range(3)
            for session in (a, b)
        )
    )
    assert (await agent.run(a, "ran", placement="none"))["text"].strip() == "6"
    await agent.ask("POST", f"sessions/{b['id']}/close")
    assert (await agent.run(a, "ran", placement="none"))["status"] == "ok"
    for session in (a, b):
        for execution in (await agent.get(f"sessions/{session['id']}/executions")).json[
            "executions"
        ]:
            assert execution["session_id"] == session["id"]


@pytest.mark.parametrize("agent_exec_config", [{"interrupt_grace": 0.2}])
async def test_code_that_ignores_its_interrupt_is_waited_for_and_can_be_left(
    agent: Agent, desk: Desk, gate: Gate, tmp_path: Path
) -> None:
    person, session = await together(agent, desk)
    stubborn = (
        "import signal\n"
        "before = signal.signal(signal.SIGINT, lambda *_: None)\n"
        f"{gate.source}\n"
        "signal.signal(signal.SIGINT, before)"
    )
    running = await started(agent, session, stubborn, timeout=0.5)
    await asyncio.to_thread(gate.wait_until_it_runs)
    ended = await finished(agent, running)
    assert (ended["status"], ended["interrupt_ignored"]) == ("timed_out", True)
    waiting = await started(agent, session, "1")
    await until_it_waits_for(agent, waiting, "agent")
    await agent.ask("POST", f"executions/{waiting['id']}/cancel")
    assert (await finished(agent, waiting))["status"] == "cancelled"
    other = await agent.open(target=notebook_target())
    queued = await started(agent, other, "'at last'")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    gate.let_it_go_on()
    assert (await finished(agent, queued))["status"] == "ok"
    assert (await person.has_run("1"))["status"] == "ok"


async def test_the_stream_tells_what_is_waited_for(
    agent: Agent, desk: Desk, gate: Gate, tmp_path: Path, jp_fetch: Any
) -> None:
    person, session = await together(agent, desk)
    other = await agent.open(target=notebook_target(), title="other")
    (tmp_path / "other").mkdir()
    others_gate = Gate(tmp_path / "other")
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    first = await started(agent, other, others_gate.source)
    waiting = await started(agent, session, "1")
    await until_it_waits_for(agent, waiting, "person")
    told = bytearray()
    waits = {"person": asyncio.Event(), "agent": asyncio.Event()}

    def tell(chunk: bytes) -> None:
        told.extend(chunk)
        for who, event in waits.items():
            if b'"waiting_for":{"who":"%s"' % who.encode() in told:
                event.set()

    path = f"{NAMESPACE}/executions/{waiting['id']}/stream"
    stream = asyncio.ensure_future(jp_fetch(*path.split("/"), streaming_callback=tell))
    await waits["person"].wait()
    assert not waits["agent"].is_set()
    gate.let_it_go_on()
    await waits["agent"].wait()
    assert first["id"].encode() in told
    assert b"event: finished" not in told
    await asyncio.to_thread(others_gate.wait_until_it_runs)
    others_gate.let_it_go_on()
    await stream
    assert b"event: finished" in told
    await person.reply(cell)


async def test_waiting_code_runs_after_a_restart_ends_the_cell(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    person, session = await together(agent, desk)
    person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    waiting = await started(agent, session, "'x' in globals()")
    await until_it_waits_for(agent, waiting, "person")
    await desk.ask("POST", f"kernels/{session['kernel']['id']}/restart")
    went_on = await finished(agent, waiting)
    assert (went_on["status"], went_on["text"].splitlines()[0]) == ("ok", "False")
    assert (went_on["kernel"]["incarnation"], went_on["kernel"]["reason"]) == (2, "restarted")


async def test_the_init_source_waits_its_turn_and_runs_once_in_a_life(
    agent: Agent, desk: Desk
) -> None:
    _, session = await together(agent, desk, init_source="inits = globals().get('inits', 0) + 1")
    for _ in range(2):
        done = await agent.run(session, "inits", placement="none")
        assert done["text"].strip() == "1"
    assert done["execution_count"] == 2
    await desk.ask("POST", f"kernels/{session['kernel']['id']}/restart")
    again = await agent.run(session, "inits", placement="none")
    assert again["text"].splitlines()[0] == "1"
    listed = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"]
    assert [execution["init"] for execution in listed] == [True, False, False, False, True]


@pytest.mark.parametrize("agent_exec_config", [{"record_people": "outputs"}])
async def test_what_the_person_runs_is_recorded_if_the_operator_wants(
    agent: Agent, desk: Desk, jp_serverapp: Any
) -> None:
    told_of: list[str | None] = []

    async def listen(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data["action"] == "person":
            told_of.append(data["session_id"])

    jp_serverapp.event_logger.add_listener(schema_id=EVENTS_SCHEMA_ID, listener=listen)
    person, session = await together(agent, desk)
    other = await agent.open(target=notebook_target())
    assert session["record_people"] == "outputs"
    await person.has_run("print('by a person')\n6 * 7")
    await agent.run(other, "'by an agent'", placement="none")
    told = await until_recorded(agent, session, "person_ran")
    assert [(e["by"]["kind"], e["status"], e["execution_count"]) for e in told] == [
        ("person", "ok", 1)
    ]
    journal = (await agent.get(f"sessions/{session['id']}/journal")).body.decode()
    assert "by a person" in journal
    assert "by an agent" not in journal
    exported = (await agent.get(f"sessions/{session['id']}/notebook")).json
    events = exported["metadata"]["agent_exec"]["events"]
    (event,) = [event for event in events if event["type"] == "person_ran"]
    assert event["source_text"] == "print('by a person')\n6 * 7"
    while session["id"] not in told_of:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("agent_exec_config", [{"record_people": "source"}])
async def test_it_is_recorded_from_when_the_session_is_attached_until_it_ends(
    agent: Agent, desk: Desk
) -> None:
    person = await desk.sits_at((await desk.opens())["kernel"]["id"])
    await person.has_run("'before'")
    session = await agent.open(target=notebook_target())
    await person.has_run("'meanwhile'")
    await until_recorded(agent, session, "person_ran")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    await person.has_run("'after'")
    journal = (await agent.get(f"sessions/{session['id']}/journal")).body.decode()
    found = [word for word in ("before", "meanwhile", "after") if f"'{word}'" in journal]
    assert found == ["meanwhile"]


async def until_recorded(agent: Agent, session: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    while not (found := [e for e in await entries(agent, session) if e["type"] == kind]):
        await asyncio.sleep(0.01)
    return found


async def test_what_the_person_runs_is_not_recorded_by_default(agent: Agent, desk: Desk) -> None:
    person, session = await together(agent, desk)
    await person.has_run("print('private')")
    await agent.run(session, "1", placement="none")
    journal = (await agent.get(f"sessions/{session['id']}/journal")).body.decode()
    assert session["record_people"] == "off"
    assert "private" not in journal
    assert "person_ran" not in journal


async def test_an_agents_code_leaves_nothing_behind(agent: Agent, desk: Desk) -> None:
    person, session = await together(agent, desk)
    names = "sorted(name for name in globals() if not name.startswith('_'))"
    before = await agent.run(session, names, placement="none")
    await agent.run(session, "1 + 1", placement="none")
    after = await agent.run(session, names, placement="none")
    assert before["text"] == after["text"]
    assert (await person.has_run("_2"))["status"] == "ok"  # as the kernel itself keeps it


async def test_a_session_whose_server_is_asked_again_has_the_same_answer(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    person, session = await together(agent, desk)
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    asked = {"source": "n = globals().get('n', 0) + 1", "placement": "none", "wait": 0}
    route, key = f"sessions/{session['id']}/executions", {"Idempotency-Key": "step-1"}
    both = await asyncio.gather(
        agent.ask("POST", route, asked, headers=key), agent.ask("POST", route, asked, headers=key)
    )
    assert both[0].json["id"] == both[1].json["id"]
    gate.let_it_go_on()
    await until_status(agent, both[0].json, "ok")
    await person.reply(cell)
    assert (await agent.run(session, "n", placement="none"))["text"].strip() == "1"


@pytest.mark.parametrize("agent_exec_config", [{"interrupt_grace": 0.2}])
@pytest.mark.parametrize("how", ["close", "cancel"])
async def test_code_in_the_kernels_queue_is_stopped_when_it_begins(
    agent: Agent, desk: Desk, slow_kernel: str, tmp_path: Path, how: str, monkeypatch: Any
) -> None:
    """A person who always has a cell queued is first, until the agent has lost its patience."""
    monkeypatch.setitem(KernelQueue.__init__.__kwdefaults__, "patience", 1.0)
    first, second = gate_in(tmp_path / "first"), gate_in(tmp_path / "second")
    await desk.opens(name=slow_kernel)
    person, session = await together(agent, desk)
    cells = [person.runs(first.source), person.runs(second.source)]
    await at_persons_cell(agent, session, first)
    looping = await started(agent, session, "while True: pass")
    clock = await agent.open(target=notebook_target())
    await finished(agent, await started(agent, clock, "1", queue_timeout=1.5))
    first.let_it_go_on()
    await asyncio.to_thread(second.wait_until_it_runs)
    await until_recorded(agent, session, "dispatched")
    assert (await until_it_waits_for(agent, looping, "person"))["execution_id"] is None
    if how == "close":
        await agent.ask("POST", f"sessions/{session['id']}/close")
        ended = await finished(agent, looping)
        assert (ended["status"], "closed" in ended["reason"]) == ("cancelled", True)
    else:
        cancelled = await agent.ask("POST", f"executions/{looping['id']}/cancel")
        assert cancelled.json["status"] == "queued"
    second.let_it_go_on()
    assert [(await person.reply(cell))["status"] for cell in cells] == ["ok", "ok"]
    if how == "cancel":
        assert (await finished(agent, looping))["status"] == "interrupted"
    assert (await person.has_run("1"))["status"] == "ok"
    assert (await agent.run(clock, "1", placement="none"))["status"] == "ok"


def gate_in(folder: Path) -> Gate:
    folder.mkdir()
    return Gate(folder)


async def test_a_scratch_session_says_what_its_next_execution_waits_for(
    agent: Agent, gate: Gate
) -> None:
    session = await agent.open()
    running = await agent.run(session, gate.source, wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    waiting = await agent.run(session, "1", wait=0)
    behind = await until_it_waits_for(agent, waiting, "agent")
    assert (behind["agent"], behind["execution_id"]) == ("tester", running["id"])
    gate.let_it_go_on()
    assert (await finished(agent, waiting))["waiting_for"] is None
