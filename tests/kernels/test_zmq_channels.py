"""What a kernel sends that it should not: nothing of it ends the thread that reads, or a run."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import nbformat
import pytest
import zmq
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_agent_exec.kernels.channels import NotSent
from jupyter_agent_exec.kernels.iopub import DROPPED
from jupyter_agent_exec.kernels.live_kernels import LiveKernel
from jupyter_agent_exec.kernels.messages import Message
from jupyter_agent_exec.kernels.zmq_channels import FULL_DELAY, ZMQChannels
from jupyter_agent_exec.models import Omitted
from tests.kernels.kernel_server import (
    LOG,
    SOON,
    AgentRun,
    KernelServer,
    at_foreign_work,
    kernel_server,
    text,
)
from tests.real_server import Gate

pytestmark = pytest.mark.usefixtures("jp_environ")

SENDS = """
import json, sys
kernel = get_ipython().kernel
sys.setrecursionlimit(100_000)
def send(msg_type, content, **header):
    session = kernel.session
    message = session.msg(msg_type, {}, parent=kernel.get_parent("shell"))
    message["header"].update(header)
    parts = [session.pack(message["header"]), session.pack(message["parent_header"]), b"{}"]
    parts.append(content if isinstance(content, bytes) else json.dumps(content).encode())
    frames = [b"topic", b"<IDS|MSG>", session.sign(parts), *parts]
    sys.stdout.flush()
    kernel.iopub_thread.send_multipart(frames)
def deep(depth):
    return b"[" * depth + b"]" * depth
def shown(depth):
    return b'{"data": {"application/json": %b}, "metadata": {}}' % deep(depth)
"""


async def in_new_kernel(server: KernelServer) -> LiveKernel:
    kernel = await server.live.adopt(await server.start_kernel())
    await AgentRun(1, SENDS).in_turn(kernel)
    return kernel


async def test_an_output_that_is_nested_too_deeply_is_left_out_and_counted() -> None:
    async with kernel_server() as server:
        kernel = await in_new_kernel(server)
        for number, depth in enumerate((90, 150, 1_500, 200_000), 2):
            source = f"send('display_data', shown({depth})); print('on')"
            ended = await AgentRun(number, source).in_turn(kernel)
            assert (ended.status, text(ended)) == ("ok", "on\n")
            size = len('{"data": {"application/json": }, "metadata": {}}') + 2 * depth
            left_out = Omitted() if depth < 100 else Omitted(bytes=size, outputs=1)
            assert (ended.omitted, ended.outputs_complete) == (left_out, depth < 100)
            if depth > 100:
                assert "left out" in ended.outputs[0]["data"]["text/plain"]
            nbformat.validate(new_notebook(cells=[new_code_cell("", outputs=ended.outputs)]))


async def test_what_cannot_be_read_is_counted() -> None:
    sends = [f"send('stream', {content})" for content in ("b''", "b'no JSON'", "[1]", "b'\\xff'")]
    sends.append("send('stream', {}, msg_id=5)")  # then nobody can tell whose it is
    async with kernel_server() as server:
        kernel = await in_new_kernel(server)
        for number, sent in enumerate(sends, 2):
            ended = await AgentRun(number, f"{sent}; print('on')").in_turn(kernel)
            assert (ended.status, text(ended)) == ("ok", "on\n")
            assert (ended.outputs_complete, ended.omitted.outputs) == (False, 1), sent


async def test_output_before_its_runs_turn_is_left_out(gate: Gate) -> None:
    async with kernel_server() as server:
        kernel = await in_new_kernel(server)
        person = await server.person(kernel.id)
        forged = {"msg_id": "x_2", "session": kernel.connection.channels.session}
        speaks = f"""
message = kernel.session.msg("stream", {{"name": "stdout", "text": "forged"}}, parent={forged!r})
kernel.session.send(kernel.iopub_socket, message)
"""
        cell = person.runs(gate.source + speaks)
        await asyncio.to_thread(gate.wait_until_it_runs)
        await at_foreign_work(kernel)
        run = AgentRun(2, "print('mine')")
        running = asyncio.create_task(run.go(kernel.connection))  # it waits in the kernel's queue
        await asyncio.wait_for(run.sent, SOON)
        await asyncio.to_thread(gate.let_it_go_on)
        ended = await running
        assert (await person.reply(cell))["status"] == "ok"
        assert (ended.status, text(ended)) == ("ok", "mine\n")
        assert (ended.outputs_complete, ended.omitted.outputs) == (False, 1)


async def test_an_answer_that_is_nested_too_deeply_ends_the_run() -> None:
    source = """
answer = kernel.do_execute
async def odd(*args, **options):
    kernel.do_execute = answer
    deep = []
    for _ in range(150): deep = [deep]
    return {**await answer(*args, **options), "more": deep}
kernel.do_execute = odd
"""
    async with kernel_server() as server:
        kernel = await in_new_kernel(server)
        await AgentRun(2, source).in_turn(kernel)
        ended = await AgentRun(3, "print('on')").in_turn(kernel)
        assert (ended.status, text(ended), ended.outputs_complete) == ("error", "on\n", True)
        assert ended.reason == "The kernel's answer could not be read."
        assert text(await AgentRun(4, "print(4)").in_turn(kernel)) == "4\n"


@pytest.mark.parametrize("encryption", ["disabled", "required"])
async def test_messages_that_a_kernel_dropped_are_said_to_be_missing(encryption: str) -> None:
    skips = """
session, thread = kernel.session, kernel.iopub_thread
message = session.msg("stream", {"name": "stdout", "text": "a"}, parent=kernel.get_parent("shell"))
frames = session.serialize(message, ident=[b"topic", b"jupyter-agent-exec 1000000"])
thread.schedule(lambda: type(thread.socket).send_multipart(thread.socket, frames))
"""
    config = {"KernelManager": {"transport_encryption": encryption}}
    async with kernel_server(**config) as server:
        kernel = await in_new_kernel(server)
        ended = await AgentRun(2, skips).in_turn(kernel)
        assert (ended.status, ended.reason, text(ended)) == ("ok", DROPPED, "a")
        assert ended.omitted.unknown
        again = await AgentRun(3, "print(3)").in_turn(kernel)
        assert (again.status, again.reason, again.outputs_complete) == ("ok", None, True)


async def test_the_end_of_the_thread_ends_the_kernels_life() -> None:
    async with kernel_server() as server:
        kernel = await in_new_kernel(server)
        channels: Any = kernel.connection.channels
        run = AgentRun(2, "x = 1\nimport time; time.sleep(1)")
        running = run.in_turn(kernel)
        await asyncio.wait_for(run.begun, SOON)
        channels.call(partial(setattr, channels, "_poller", None))  # as if ZMQ had failed
        death = await asyncio.wait_for(kernel.death(), SOON)
        assert death.message == "The server lost its connection to the kernel."
        assert not channels._thread.is_alive()
        kernel.connection.abandon(death.message)  # as a session does
        assert (await running).status == "abandoned"
        await kernel.let_go()
        again = await server.live.adopt(kernel.id)
        assert again.connection is not kernel.connection
        assert text(await AgentRun(3, "print(x)").in_turn(again)) == "1\n"


async def test_a_request_to_what_is_no_kernel_is_refused_instead_of_waited_for() -> None:
    refused = threading.Event()

    def send() -> None:
        try:
            channels.send("shell", "kernel_info_request", {}, msg_id="m")
        except NotSent:
            refused.set()

    with zmq.Context() as context, context.socket(zmq.PUB) as other:
        port = other.bind_to_random_port("tcp://127.0.0.1")
        channels = ZMQChannels(at(port), Nobody(), name="none", log=LOG)
        channels.start()
        try:
            async with asyncio.timeout(SOON):
                while not refused.is_set():  # it is seen in a moment that ZMQ does not talk to it
                    channels.call(send)
                    await asyncio.sleep(0.01)
        finally:
            await asyncio.to_thread(channels.stop)


def test_encrypted_output_is_not_waited_for_while_the_receiver_is_full() -> None:
    """Else the thread would wake for it at once, again and again."""
    public, secret = (key.decode() for key in zmq.curve_keypair())
    receiver = Nobody()
    encrypted = at(1) | {"curve_publickey": public, "curve_secretkey": secret}
    channels: Any = ZMQChannels(encrypted, receiver, name="none", log=LOG)
    try:
        for receiver.is_full, delay in ((False, None), (True, FULL_DELAY), (False, None)):
            assert channels._poll_iopub() == delay
            assert (channels._zmq_iopub in channels._poller) is not receiver.is_full
    finally:
        channels.start()
        channels.stop()


def at(port: int) -> dict[str, Any]:
    """Return the connection information of a kernel at a port."""
    info = {"transport": "tcp", "ip": "127.0.0.1", "shell_port": port, "iopub_port": port}
    return info | {"key": "", "signature_scheme": "hmac-sha256"}


class Nobody:
    """Takes no message."""

    largest_message = 0
    is_full = False

    def iopub_message(self, message: Message) -> None: ...

    def shell_message(self, message: Message) -> None: ...

    def stdin_message(self, message: Message) -> None: ...

    def channels_ended(self) -> None: ...

    def all_read(self) -> float | None:
        return None
