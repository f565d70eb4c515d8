"""A person's kernel, with real ipykernels: adopted, shared, and left as it was."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from jupyter_agent_exec.errors import KernelNotFound, KernelUnavailable
from jupyter_agent_exec.kernels.channels import KernelDeath
from jupyter_agent_exec.kernels.kernel_queue import KernelQueue
from jupyter_agent_exec.kernels.live_kernels import LiveKernel, LiveKernels
from jupyter_agent_exec.kernels.outputs import Late
from jupyter_agent_exec.kernels.person_executions import PersonExecution, PersonRecording
from jupyter_agent_exec.models import Omitted
from jupyter_agent_exec.types import KernelState
from tests.kernels.kernel_server import (
    LOG,
    SOON,
    AgentRun,
    KernelServer,
    Person,
    at_foreign_work,
    granted,
    kernel_server,
    text,
    with_person,
)
from tests.real_server import Gate
from tests.sessions.kernelspecs import install_ending_kernel

pytestmark = pytest.mark.usefixtures("jp_environ")

RESTARTS_SOON = {"KernelRestarter": {"time_to_dead": 0.1}}


def gates(folder: Path, count: int) -> list[Gate]:
    made = []
    for number in range(count):
        (folder / str(number)).mkdir()
        made.append(Gate(folder / str(number)))
    return made


async def running(gate: Gate) -> None:
    await asyncio.wait_for(asyncio.to_thread(gate.wait_until_it_runs), SOON)


async def opened(gate: Gate) -> None:
    await asyncio.wait_for(asyncio.to_thread(gate.let_it_go_on), SOON)


async def ended(kernel: LiveKernel) -> KernelDeath:
    return await asyncio.wait_for(kernel.death(), SOON)


# -- attaching -------------------------------------------------------------------------------------


async def test_an_idle_kernel_is_adopted_and_known() -> None:
    async with kernel_server() as server:
        kernel = await server.live.adopt(await server.start_kernel())
        assert kernel.connection.greeted.done()
        assert kernel.language_info["name"] == "python"
        assert (kernel.owned, kernel.name) == (False, "python3")
        assert text(await AgentRun(1, "print(1 + 1)").in_turn(kernel)) == "2\n"


async def test_a_kernel_that_ends_as_it_starts_is_waited_for_once_more(jp_data_dir: Path) -> None:
    starts = install_ending_kernel(jp_data_dir, fails=1)
    async with kernel_server(**RESTARTS_SOON) as server:
        kernel = await server.live.adopt(await server.start_kernel("ends"))
        assert text(await AgentRun(1, "print(1 + 1)").in_turn(kernel)) == "2\n"
        assert starts.read_text() == "xx"


async def test_a_busy_kernel_is_adopted_at_once_and_asked_only_one_thing(gate: Gate) -> None:
    async with kernel_server() as server:
        kernel_id = await server.start_kernel()
        person = await server.person(kernel_id)
        cell = person.runs(gate.source)
        await running(gate)
        await _server_knows(server, kernel_id, "busy")
        kernel = await asyncio.wait_for(server.live.adopt(kernel_id), SOON)
        turn = kernel.turns.ask()
        assert kernel.connection.execution_state == "busy"
        assert not kernel.connection.greeted.done()
        assert not turn.done()
        ahead = kernel.turns.ahead_of(turn)
        assert ahead is not None
        assert ahead.who == "person"
        heard = _requests_heard(person)
        await opened(gate)
        assert (await person.reply(cell))["status"] == "ok"
        await granted(turn)
        assert kernel.connection.activity.foreign is None
        await person.has_run("1")
        assert set(await heard) == {"kernel_info_request"}  # again, if its IOPub is late


async def _server_knows(server: KernelServer, kernel_id: str, state: KernelState) -> None:
    """Wait until the server's own watch has heard what the kernel does."""
    manager = server.kernels.get_kernel(kernel_id)
    told = asyncio.Event()
    manager.observe(lambda _: told.set(), "execution_state")
    while manager.execution_state != state:
        told.clear()
        await asyncio.wait_for(told.wait(), SOON)


def _requests_heard(person: Person) -> asyncio.Task[list[str]]:
    """Return what the kernel was asked that was not the person's, until their cell `1`."""

    async def hear() -> list[str]:
        heard = []
        while True:
            message = await person.client.get_iopub_msg(timeout=SOON)
            parent = message["parent_header"]
            if message["msg_type"] == "execute_input" and message["content"]["code"] == "1":
                return heard
            is_ours = parent.get("session") == person.client.session.session
            if message["content"].get("execution_state") == "busy" and not is_ours:
                heard.append(parent["msg_type"])

    return asyncio.ensure_future(hear())


async def test_sessions_share_one_connection_until_the_last_lets_go() -> None:
    async with kernel_server() as server:
        kernel_id = await server.start_kernel()
        one, two = await asyncio.gather(server.live.adopt(kernel_id), server.live.adopt(kernel_id))
        assert one.connection is two.connection
        assert one.turns is two.turns
        await one.let_go()
        await one.let_go()
        assert (await AgentRun(1, "1").in_turn(two)).status == "ok"
        await two.let_go()
        assert two.connection.disconnected.done()
        assert kernel_id in server.kernels
        again = await server.live.adopt(kernel_id)
        assert again.connection is not two.connection
        assert (await AgentRun(2, "2").in_turn(again)).status == "ok"


# -- turns -----------------------------------------------------------------------------------------


async def test_requests_on_other_channels_do_not_make_a_running_cell_look_idle(gate: Gate) -> None:
    async with with_person() as (person, kernel):
        states: list[KernelState] = []
        cell = person.runs(gate.source)
        await running(gate)
        await at_foreign_work(kernel)
        turn = kernel.turns.ask()
        kernel.connection.on_state = lambda state: (
            states.append(state),
            kernel.turns.kernel_is(state),
        )[1]
        await person.has_queued()
        await person.answer_on_control("kernel_info_request")
        await opened(gate)
        await person.reply(cell)
        await granted(turn)
        assert states.count("idle") == 1


async def test_an_agent_goes_in_after_all_cells_that_were_sent_at_once(gate: Gate) -> None:
    async with with_person() as (person, kernel):
        cells = [person.runs(f"{gate.source}\nran = []")]
        cells += [person.runs(f"ran.append({number})") for number in range(20)]
        await running(gate)
        await at_foreign_work(kernel)
        await person.has_queued()
        agent = AgentRun(1, "print(len(ran))").in_turn(kernel)
        await opened(gate)
        assert text(await agent) == "20\n"
        assert {(await person.reply(cell))["status"] for cell in cells} == {"ok"}


async def test_an_agent_without_patience_goes_in_between_and_no_cell_is_harmed(
    tmp_path: Path,
) -> None:
    first, second = gates(tmp_path, 2)
    async with with_person() as (person, kernel):
        cells = [person.runs(first.source), person.runs(second.source)]
        await running(first)
        await at_foreign_work(kernel)
        await person.has_queued()
        turns = KernelQueue(kernel.connection.activity, patience=0.0)
        kernel.connection.on_state = turns.kernel_is
        agent = AgentRun(1, "1 / 0")
        agent_ended = agent.in_turn(kernel, turns)
        await opened(first)
        await running(second)
        await asyncio.wait_for(agent.sent, SOON)
        await at_foreign_work(kernel, turns)
        cells.append(person.runs("after = True"))
        assert not agent.run.has_begun
        assert not kernel.connection.requests.is_running(agent.run)
        assert turns.person is not None
        assert turns.person.who == "person"
        await opened(second)
        assert (await agent_ended).status == "error"
        assert agent.begun.done()
        assert agent.run.is_behind
        assert {(await person.reply(cell))["status"] for cell in cells} == {"ok"}


async def test_a_run_behind_a_cell_starts_when_the_kernel_takes_it_up(gate: Gate) -> None:
    async with with_person() as (person, kernel):
        cell = person.runs(
            f"{gate.source}\nimport datetime as d\nt = d.datetime.now(d.timezone.utc)"
        )
        await running(gate)
        await at_foreign_work(kernel)
        agent = AgentRun(1, "print(t.isoformat())")
        agent_ended = asyncio.ensure_future(agent.go(kernel.connection))
        await asyncio.wait_for(agent.sent, SOON)
        assert not agent.begun.done()
        await opened(gate)
        ended = await agent_ended
        await person.reply(cell)
        assert ended.started_at.isoformat() > text(ended).strip()


async def test_an_agents_run_behind_a_cell_that_fails_is_told_as_not_run(gate: Gate) -> None:
    async with with_person() as (person, kernel):
        person.runs(f"{gate.source}\n1 / 0")
        await running(gate)
        await at_foreign_work(kernel)
        agent = AgentRun(1, "ran = True")
        agent_ended = asyncio.ensure_future(agent.go(kernel.connection))
        await asyncio.wait_for(agent.sent, SOON)
        await opened(gate)
        ended = await agent_ended
        assert ended.aborted
        assert ended.status == "error"
        assert "did not run it" in (ended.reason or "")
        assert text(await AgentRun(2, "print('ran' in globals())").in_turn(kernel)) == "False\n"


async def test_an_agents_error_leaves_the_cells_behind_it(gate: Gate) -> None:
    async with with_person() as (person, kernel):
        agent = AgentRun(1, f"{gate.source}\n1 / 0").in_turn(kernel)
        await running(gate)
        cells = [person.runs(f"behind = {number}") for number in range(3)]
        await opened(gate)
        assert (await agent).status == "error"
        assert {(await person.reply(cell))["status"] for cell in cells} == {"ok"}


async def test_interrupting_an_agent_leaves_the_cells_behind_it(gate: Gate) -> None:
    async with with_person() as (person, kernel):
        agent = AgentRun(1, gate.source)
        agent_ended = agent.in_turn(kernel)
        await running(gate)
        cells = [person.runs(f"behind = {number}") for number in range(3)]
        await asyncio.wait_for(agent.begun, SOON)
        assert kernel.connection.requests.is_running(agent.run)
        await kernel.interrupt()
        ended = await agent_ended
        assert ended.error is not None
        assert ended.error.ename == "KeyboardInterrupt"
        assert {(await person.reply(cell))["status"] for cell in cells} == {"ok"}
        assert not kernel.connection.requests.is_running(agent.run)


async def test_late_output_is_told_to_all_that_listen(gate: Gate) -> None:
    async with kernel_server() as server:
        kernel_id = await server.start_kernel()
        one, two = await server.live.adopt(kernel_id), await server.live.adopt(kernel_id)
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[tuple[str, Late]] = asyncio.Queue()
        for name, kernel in (("one", one), ("two", two)):
            kernel.connection.on_late.add(
                lambda late, name=name: loop.call_soon_threadsafe(told.put_nowait, (name, late))
            )
        late = f"import threading\nthreading.Thread(target=exec, args=({gate.source!r},)).start()"
        await AgentRun(1, late).in_turn(one)
        await running(gate)
        await opened(gate)
        heard = [await asyncio.wait_for(told.get(), SOON) for _ in range(2)]
        assert [(name, late.execution_id) for name, late in heard] == [
            ("one", "x_1"),
            ("two", "x_1"),
        ]


# -- endings ---------------------------------------------------------------------------------------


async def test_a_restart_in_place_is_told_and_the_next_life_is_adopted(gate: Gate) -> None:
    async with kernel_server() as server:
        kernel_id = await server.start_kernel()
        kernel = await server.live.adopt(kernel_id)
        agent = AgentRun(1, gate.deaf_source).in_turn(kernel)
        await running(gate)
        waiting = kernel.turns.ask()
        restarting = asyncio.ensure_future(server.kernels.restart_kernel(kernel_id))
        assert (await ended(kernel)).reason == "restarted"
        assert waiting.cancelled()
        kernel.connection.abandon("It was restarted.")
        assert (await agent).status == "abandoned"
        again, _ = await asyncio.gather(server.live.adopt(kernel_id), restarting)
        assert again.connection is not kernel.connection
        assert text(await AgentRun(2, "print(len(In))").in_turn(again)) == "2\n"


async def test_a_kernel_that_restarts_by_itself_is_reported_dead() -> None:
    async with kernel_server(**RESTARTS_SOON) as server:
        kernel_id = await server.start_kernel()
        kernel = await server.live.adopt(kernel_id)
        os.kill(server.kernels.get_kernel(kernel_id).provisioner.pid, signal.SIGKILL)
        death = await ended(kernel)
        assert death.reason == "died"
        assert "SIGKILL" in death.message
        again = await server.live.adopt(kernel_id)
        assert (await AgentRun(1, "1").in_turn(again)).status == "ok"


async def test_a_death_is_seen_also_when_a_child_holds_the_connection_open(gate: Gate) -> None:
    async with kernel_server(KernelRestarter={"time_to_dead": 0.1, "restart_limit": 0}) as server:
        kernel_id = await server.start_kernel()
        kernel = await server.live.adopt(kernel_id)
        fork = "import os\nif os.fork() == 0:\n    os.setsid()\n    " + gate.source.replace(
            "\n", "\n    "
        )
        await AgentRun(1, f"{fork}\n    os._exit(0)").in_turn(kernel)
        await running(gate)
        os.kill(server.kernels.get_kernel(kernel_id).provisioner.pid, signal.SIGKILL)
        assert (await ended(kernel)).reason == "died"
        await opened(gate)


async def test_a_kernel_that_is_shut_down_is_told_so_and_found_no_more() -> None:
    async with kernel_server() as server:
        kernel_id = await server.start_kernel()
        one, two = await server.live.adopt(kernel_id), await server.live.adopt(kernel_id)
        await server.kernels.shutdown_kernel(kernel_id)
        assert {(await ended(one)).reason, (await ended(two)).reason} == {"shut_down"}
        with pytest.raises(KernelNotFound):
            await server.live.adopt(kernel_id)


async def test_a_dead_kernel_that_nobody_restarts_is_refused() -> None:
    async with kernel_server(KernelManager={"autorestart": False}) as server:
        kernel_id = await server.start_kernel()
        kernel = await server.live.adopt(kernel_id)
        os.kill(server.kernels.get_kernel(kernel_id).provisioner.pid, signal.SIGKILL)
        assert (await ended(kernel)).reason == "died"
        patient = LiveKernels(server.kernels, log=LOG, start_timeout=10 * SOON)
        with pytest.raises(KernelUnavailable):
            await asyncio.wait_for(patient.adopt(kernel_id), SOON)


# -- what people run -------------------------------------------------------------------------------


WITH_OUTPUTS = PersonRecording(source=True, outputs_bytes=100_000)


def told_by(kernel: LiveKernel) -> asyncio.Queue[PersonExecution]:
    """Return where it comes what people run in a kernel."""
    told: asyncio.Queue[PersonExecution] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    kernel.connection.hear_people(
        lambda execution: loop.call_soon_threadsafe(told.put_nowait, execution)
    )
    return told


async def test_the_source_of_what_a_person_runs_is_told() -> None:
    async with kernel_server(people=PersonRecording(source=True)) as server:
        kernel_id = await server.start_kernel()
        person = await server.person(kernel_id)
        told = told_by(await server.live.adopt(kernel_id))
        await person.has_run("print('source')")
        execution = await asyncio.wait_for(told.get(), SOON)
        assert (execution.source, execution.execution_count) == ("print('source')", 1)
        assert (execution.outputs, execution.status) == (None, None)


async def test_what_a_person_runs_is_told_with_its_outputs() -> None:
    async with with_person(people=WITH_OUTPUTS) as (person, kernel):
        told = told_by(kernel)
        await AgentRun(1, "print('agent')").in_turn(kernel)
        await person.has_run("print('a')\n1 / 0")
        execution = await asyncio.wait_for(told.get(), SOON)
        assert execution.outputs is not None
        assert [output["output_type"] for output in execution.outputs] == ["stream", "error"]
        assert (execution.status, execution.omitted) == ("error", Omitted())


async def test_what_a_person_ran_before_anybody_listened_is_told_to_the_first() -> None:
    async with with_person(people=WITH_OUTPUTS) as (person, kernel):
        await person.has_run("'early'")
        await AgentRun(1, "1").in_turn(kernel)  # then all of what came before was heard
        first, second = told_by(kernel), told_by(kernel)
        assert (await asyncio.wait_for(first.get(), SOON)).source == "'early'"
        await person.has_run("'later'")
        for told in (first, second):
            assert (await asyncio.wait_for(told.get(), SOON)).source == "'later'"


async def test_a_persons_update_of_an_agents_display_is_told() -> None:
    async with with_person() as (person, kernel):
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[Late] = asyncio.Queue()
        kernel.connection.on_late.add(lambda late: loop.call_soon_threadsafe(told.put_nowait, late))
        await AgentRun(1, "shown = display('one', display_id='d')").in_turn(kernel)
        await person.has_run("shown.update('two')")
        late = await asyncio.wait_for(told.get(), SOON)
        assert (late.execution_id, late.outputs) == ("x_1", [])
        (update,) = late.display_updates
        assert update.output["data"] == {"text/plain": "'two'"}
        assert [(ref.execution_id, ref.index) for ref in update.targets] == [("x_1", 0)]


async def test_a_persons_cell_whose_end_is_not_seen_is_told_as_incomplete(gate: Gate) -> None:
    async with kernel_server(people=WITH_OUTPUTS, KernelManager={"autorestart": False}) as server:
        kernel_id = await server.start_kernel()
        person = await server.person(kernel_id)
        kernel = await server.live.adopt(kernel_id)
        told: list[PersonExecution] = []
        kernel.connection.hear_people(told.append)
        source = f"print('on', flush=True)\n{gate.source}"
        msg_id = person.runs(source)
        await running(gate)
        await person.sees_output(msg_id)  # then all who listen have been sent what came before
        os.kill(server.kernels.get_kernel(kernel_id).provisioner.pid, signal.SIGKILL)
        await ended(kernel)
        await kernel.let_go()
        assert [(it.source, it.status, it.omitted.unknown) for it in told] == [(source, None, True)]


# -- manners ---------------------------------------------------------------------------------------

NAMESPACE = """
import json as _json, io as _io, contextlib as _contextlib
_told = _io.StringIO()
with _contextlib.redirect_stdout(_told):
    %history
print(_json.dumps([sorted(get_ipython().user_ns), _told.getvalue(), repr(_), sorted(Out)]))
"""


async def test_nothing_of_ours_is_left_in_the_namespace() -> None:
    """A person's kernel after an agent's cell is as one after a person's same cell."""

    async def left_by(agent_runs: bool) -> str:
        async with kernel_server() as server:
            kernel_id = await server.start_kernel()
            person = await server.person(kernel_id)
            await person.has_run("x = 20\nx")
            if agent_runs:
                kernel = await server.live.adopt(kernel_id)
                assert (await AgentRun(1, "y = x + 1\ny").in_turn(kernel)).execution_count == 2
                await kernel.let_go()
            else:
                await person.has_run("y = x + 1\ny")
            last = await server.live.adopt(kernel_id)
            return text(await AgentRun(2, NAMESPACE).in_turn(last))

    by_agent, by_person = await left_by(agent_runs=True), await left_by(agent_runs=False)
    assert "y = x + 1" in by_agent
    assert by_agent == by_person
