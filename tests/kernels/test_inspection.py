"""Looking into real kernels, and that nothing else happens there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from jupyter_agent_exec.kernels.inspection import Question, Unanswered
from jupyter_agent_exec.kernels.kernel import Kernel, KernelOccupied
from jupyter_agent_exec.kernels.kernel_queue import Requester
from jupyter_agent_exec.kernels.live_kernels import LiveKernel
from jupyter_agent_exec.kernels.person_executions import PersonExecution, PersonRecording
from jupyter_agent_exec.types import KernelState
from tests.kernels.kernel_server import (
    SOON,
    AgentRun,
    KernelServer,
    at_foreign_work,
    kernel_server,
    text,
)
from tests.real_server import Gate

pytestmark = pytest.mark.usefixtures("jp_environ")

ASKER = Requester("tester", None)

ask = Kernel.ask


def variables(match: str = "", limit: int = 500) -> Question:
    return Question("variables", {"match": match, "limit": limit}, SOON)


def packages(match: str, limit: int = 500, timeout: float = SOON) -> Question:
    return Question("packages", {"match": match, "limit": limit}, timeout)


def about_to() -> None:
    """Keep nothing from being sent."""


async def names(kernel: LiveKernel) -> list[str]:
    found, _ = await ask(kernel, variables(), ASKER, about_to)
    return [name for name, *_ in found]


class Bench:
    """A kernel that an agent runs code in."""

    def __init__(self, server: KernelServer, kernel: LiveKernel) -> None:
        self.kernel_server = server
        self.kernel = kernel
        self._number = 0

    def runs(self, source: str) -> tuple[AgentRun, asyncio.Task[Any]]:
        self._number += 1
        run = AgentRun(self._number, source)
        return run, run.in_turn(self.kernel)

    async def has_run(self, source: str) -> str:
        return text(await self.runs(source)[1])

    @asynccontextmanager
    async def busy(self, gate: Gate, before: str = "", after: str = "") -> AsyncIterator[Any]:
        """Have the kernel at a cell, which goes on when the block ends."""
        _, ended = self.runs(f"{before}\n{gate.source}\n{after}")
        await asyncio.to_thread(gate.wait_until_it_runs)
        try:
            yield ended
        finally:
            await asyncio.to_thread(gate.let_it_go_on)
            await ended


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    async with kernel_server(people=PersonRecording(source=True)) as server:
        yield Bench(server, await server.live.adopt(await server.start_kernel()))


class Activity(logging.Handler):
    """The types of the messages that the server's kernel manager has read from a kernel."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.types: list[str] = []
        self._read = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("activity on"):
            _, _, what = record.getMessage().partition(": ")
            self.types.append(what.split()[0])
            self._read.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._read.clear()
            await asyncio.wait_for(self._read.wait(), SOON)


@contextmanager
def activity(log: logging.Logger) -> Iterator[Activity]:
    read, level = Activity(), log.level
    log.addHandler(read)
    log.setLevel(logging.DEBUG)
    try:
        yield read
    finally:
        log.setLevel(level)
        log.removeHandler(read)


async def test_a_look_does_not_make_the_server_take_a_busy_kernel_for_idle(gate: Gate) -> None:
    async with bench() as b:
        kernels = b.kernel_server.kernels
        with activity(kernels.log) as read:
            while not read.types:  # the server may listen later than we do
                await b.has_run("1")
            async with b.busy(gate, before="print('at it', flush=True)"):
                await read.until(lambda: "stream" in read.types)
                before = read.types.count("status")
                await names(b.kernel)
                # Busy and idle, of making the subshell and of the look.
                await read.until(lambda: read.types.count("status") == before + 4)
                assert kernels.get_kernel(b.kernel.id).execution_state == "busy"


async def test_packages_are_found_by_the_names_they_are_imported_by() -> None:
    async with bench() as b:
        found, _ = await ask(b.kernel, packages("zmq"), ASKER, about_to)
        assert [(name, imports) for name, _, imports in found] == [("pyzmq", ["zmq"])]
        found, more = await ask(b.kernel, packages("", limit=3), ASKER, about_to)
        assert [len(found), more > 50] == [3, True]


async def test_what_a_cell_is_at_stays_its_own(gate: Gate) -> None:
    """Its figures, its input(), what its end tells the page, and what its threads print."""
    before = """
import matplotlib.pyplot as plt, threading
plt.plot([1, 2])
get_ipython().set_next_input("next")
go_on = threading.Event()
def work():
    go_on.wait()
    print("from a thread")
thread = threading.Thread(target=work)
thread.start()
"""
    after = """
go_on.set(); thread.join()
print(plt.get_fignums(), get_ipython().kernel._allow_stdin)
plt.title("later")
"""
    async with bench() as b:
        await b.has_run("1")
        person = await b.kernel_server.person(b.kernel.id)
        cell = person.runs(f"{before}\n{gate.source}\n{after}", allow_stdin=True)
        await asyncio.to_thread(gate.wait_until_it_runs)
        await at_foreign_work(b.kernel)
        for question in (variables(), packages("zmq")):
            await ask(b.kernel, question, ASKER, about_to)
        await asyncio.to_thread(gate.let_it_go_on)
        reply = await person.reply(cell)
        assert [item["source"] for item in reply["payload"]] == ["set_next_input"]
        outputs = []
        while True:
            message = await person.client.get_iopub_msg(timeout=SOON)
            if message["parent_header"].get("msg_id") != cell:
                assert message["msg_type"] not in ("stream", "display_data")
            elif message["content"].get("execution_state") == "idle":
                break
            elif message["msg_type"] in ("stream", "display_data"):
                outputs.append(message["content"].get("text", message["msg_type"]))
        assert outputs.pop() == "display_data"
        lines = "".join(outputs).splitlines()  # those of two threads, in whatever order
        assert sorted(lines) == ["[1] True", "from a thread", "went on"]


async def test_threads_print_for_the_agents_cell_that_runs(gate: Gate) -> None:
    before = """
import threading
go_on = threading.Event()
def work():
    go_on.wait()
    print("from a thread")
thread = threading.Thread(target=work)
thread.start()
"""
    async with bench() as b, b.busy(gate, before, "go_on.set(); thread.join()") as ended:
        await names(b.kernel)
    assert sorted(text(ended.result()).splitlines()) == ["from a thread", "went on"]


async def test_it_is_nobodys_execution_and_leaves_nothing(gate: Gate) -> None:
    seen = """
new = {name for name in set(globals()) - known if not name.startswith("_")}
print(new, _, len(In), Out, get_ipython().kernel.comm_manager.comms)
"""
    async with bench() as b:
        await b.has_run("known = {*globals(), 'known'}\n7")
        states: list[KernelState] = []
        people: list[PersonExecution] = []
        b.kernel.connection.on_state = states.append
        b.kernel.connection.on_person.add(people.append)
        for _ in range(3):
            await names(b.kernel)
            await ask(b.kernel, packages("zmq"), ASKER, about_to)
        assert ("busy" in states, people) == (False, [])
        b.kernel.connection.on_state = b.kernel.turns.kernel_is
        assert await b.has_run(seen) == "set() 7 3 {1: 7} {}\n"
        person = await b.kernel_server.person(b.kernel.id)
        listed = await person.answer_on_control("list_subshell_request")
        assert len(listed["subshell_id"]) == 1
        await b.kernel.let_go()
        listed = await person.answer_on_control("list_subshell_request")
        assert listed["subshell_id"] == []


async def test_a_subshell_that_somebody_deleted_is_made_again() -> None:
    async with bench() as b:
        await b.has_run("mine = 1")
        assert await names(b.kernel) == ["mine"]
        person = await b.kernel_server.person(b.kernel.id)
        (subshell,) = (await person.answer_on_control("list_subshell_request"))["subshell_id"]
        message = person.client.session.msg("delete_subshell_request", {"subshell_id": subshell})
        person.client.control_channel.send(message)
        await person.client.get_control_msg(timeout=SOON)
        assert await names(b.kernel) == ["mine"]


async def test_our_code_that_somebody_removed_is_sent_again() -> None:
    async with bench() as b:
        await b.has_run("mine = 1; get_ipython().kernel.comm_manager.targets.clear()")
        assert await names(b.kernel) == ["mine"]
        assert await names(b.kernel) == ["mine"]


async def test_a_busy_kernel_that_was_not_prepared_is_told_at_once(gate: Gate) -> None:
    async with bench() as b:
        person = await b.kernel_server.person(b.kernel.id)
        person.runs(gate.source)
        await asyncio.to_thread(gate.wait_until_it_runs)
        await at_foreign_work(b.kernel)
        for question in (variables(), packages("")):
            with pytest.raises(KernelOccupied):
                await ask(b.kernel, question, ASKER, about_to)
        behind = b.kernel.turns.at_work
        assert behind is not None
        assert behind.who == "person"
        await asyncio.to_thread(gate.let_it_go_on)


async def test_who_has_the_turn_is_not_cut_into() -> None:
    async with bench() as b:
        turn = b.kernel.turns.ask(Requester("another", None)._replace(execution_id="x_1"))
        with pytest.raises(KernelOccupied):
            await ask(b.kernel, variables(), ASKER, about_to)
        b.kernel.turns.leave(turn)
        asked = [
            ask(b.kernel, variables(), ASKER, about_to) for _ in range(4)
        ]  # not yet by a subshell
        assert await asyncio.gather(*asked) == [[[], 0]] * 4
        assert not b.kernel.turns.is_taken


HANGS = """
import threading
from importlib import metadata
def distributions():
    while True:
        pass
metadata.distributions = distributions
"""


async def test_a_question_that_hangs_is_given_up_and_does_not_keep_the_kernel() -> None:
    async with bench() as b:
        person = await b.kernel_server.person(b.kernel.id)
        await person.has_run(HANGS)
        with pytest.raises(Unanswered):
            await ask(b.kernel, packages("", timeout=0.5), ASKER, about_to)  # by the kernel itself
        assert await b.has_run("print('runs')") == "runs\n"
        assert "distributions" in await names(b.kernel)


async def test_a_subshell_that_hangs_is_left_alone_and_three_are_enough() -> None:
    async with bench() as b:
        await b.has_run(HANGS.replace("while True:\n        pass", "threading.Event().wait()"))
        for _ in range(3):
            with pytest.raises(Unanswered):
                await ask(b.kernel, packages("", timeout=0.3), ASKER, about_to)
            assert await b.has_run("print('runs')") == "runs\n"
            assert "distributions" in await names(b.kernel)
        assert not b.kernel.connection.inspector.asks_aside


async def test_what_is_in_the_kernel_runs_only_if_it_is_asked_for() -> None:
    source = """
ran = []
class Meta(type):
    def __getattribute__(cls, name): ran.append(name); raise SystemExit
class Trap(metaclass=Meta):
    def __getattribute__(self, name): ran.append(name); raise SystemExit
    def __len__(self): ran.append("len"); raise SystemExit
    def __repr__(self): ran.append("repr"); raise SystemExit
class Name(str):
    def casefold(self): ran.append("casefold"); raise SystemExit
    def __lt__(self, other): ran.append("lt"); raise SystemExit
trap, kind, globals()[Name("name")] = Trap(), Trap, 1
"""
    async with bench() as b:
        await b.has_run(source)
        found, _ = await ask(b.kernel, variables(), ASKER, about_to)
        told = {name: (kind, preview) for name, kind, _, _, preview, *_ in found}
        assert told["trap"] == ("Trap", None)
        assert told["kind"] == ("Meta", None)
        assert await b.has_run("print(ran)") == "[]\n"


async def test_an_answer_that_code_in_the_kernel_made_up_is_no_answer() -> None:
    source = """
def made_up(comm, message):
    kernel.send_response(kernel.iopub_socket, "agent_exec_told", {"told": "no JSON"})
kernel = get_ipython().kernel
kernel.comm_manager.register_target("jupyter_agent_exec", made_up)
"""
    async with bench() as b:
        await b.has_run(source)
        with pytest.raises(Unanswered):
            await ask(b.kernel, variables(), ASKER, about_to)
