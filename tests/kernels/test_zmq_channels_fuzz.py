"""A kernel that sends anything: all runs end, with outputs that are valid, and counts that say so.

Each example is what a kernel sends before it answers an ordinary request.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_agent_exec.journal.blobs import pack_outputs
from jupyter_agent_exec.kernels.channels import MessageReceiver
from jupyter_agent_exec.kernels.connection import KernelConnection
from jupyter_agent_exec.kernels.execute_request import ExecuteOutcome
from jupyter_agent_exec.kernels.person_executions import PersonRecording
from jupyter_agent_exec.kernels.zmq_channels import ZMQChannels
from jupyter_agent_exec.records import Payload
from tests.fuzzing import examples, json_values, nested, texts
from tests.kernels.fuzzed_kernel import CHANNELS, FuzzedKernel, Sent, fuzzed_kernel
from tests.kernels.kernel_server import SOON, AgentRun, text

BUNDLE = {"text/plain": "x", "application/json": {"a": 1}, "image/png": "iVBORw0KGgo="}
FIELDS: dict[str, dict[str, Any]] = {
    "status": {"execution_state": "idle"},
    "stream": {"name": "stdout", "text": "x"},
    "display_data": {"data": BUNDLE, "metadata": {}, "transient": {"display_id": "d"}},
    "update_display_data": {"data": BUNDLE, "metadata": {}, "transient": {"display_id": "d"}},
    "execute_result": {"data": BUNDLE, "metadata": {}, "execution_count": 1},
    "error": {"ename": "E", "evalue": "v", "traceback": ["t"]},
    "clear_output": {"wait": True},
    "execute_input": {"code": "x", "execution_count": 1},
    "comm_open": {"comm_id": "c", "target_name": "t", "data": {"state": {"msg_id": "x_1"}}},
    "comm_msg": {"comm_id": "c", "data": {"state": {"msg_id": ""}}},
    "comm_close": {"comm_id": "c", "data": {}},
    "execute_reply": {
        "status": "ok",
        "execution_count": 1,
        "payload": [{"source": "agent_exec", "variables": "[0, []]"}],
        "user_expressions": {},
        "ename": "E",
        "evalue": "v",
        "traceback": ["t"],
    },
    "kernel_info_reply": {
        "implementation": "ipython",
        "language_info": {"name": "python", "version": "3.11"},
        "supported_features": ["kernel subshells"],
    },
    "input_request": {"prompt": "p", "password": False},
    "agent_exec_told": {"told": "[]"},
    "create_subshell_reply": {"subshell_id": "s"},
    "shutdown_reply": {"restart": True},
    "": {},
    "never heard of": {"a": 1},
}
MISSING = object()


@st.composite
def contents(draw: st.DrawFn, msg_type: str) -> bytes:
    """Content of a message: each field right, wrong or missing; or what is no object at all."""
    kind = draw(st.sampled_from(["fields"] * 6 + ["json", "raw", "deep", "twice", "huge"]))
    if kind == "json":
        return json.dumps(draw(json_values)).encode()
    if kind == "raw":
        return draw(st.binary(max_size=30))
    if kind == "deep":
        depth = draw(st.sampled_from([95, 99, 100, 1_500, 100_000]))
        return b'{"data": %b%b}' % (b"[" * depth, b"]" * depth)
    fields = {}
    for name, right in FIELDS[msg_type].items():
        value = draw(st.one_of(st.just(right), st.just(MISSING), json_values))
        if isinstance(right, dict) and value is right:
            inner = {key: draw(st.one_of(st.just(at), json_values)) for key, at in right.items()}
            value = draw(st.sampled_from([right, inner]))
        if value is not MISSING:
            fields[name] = value
    if kind == "huge":
        fields[draw(texts)] = "x" * 1_000_000
    told = json.dumps(fields).encode()
    if kind == "twice" and fields:
        return told[:-1] + b", " + json.dumps(FIELDS[msg_type]).encode()[1:]
    return told


@st.composite
def messages(draw: st.DrawFn) -> Any:
    """Return a function from the header of a request to a message."""
    msg_type = draw(st.sampled_from(list(FIELDS)))
    channel = draw(st.sampled_from(["iopub", "iopub", "iopub", *CHANNELS]))
    content = draw(contents(msg_type))
    whose = draw(st.sampled_from(["request"] * 6 + ["other", "odd", "none", "deep", "person"]))
    odd = {name: draw(json_values) for name in ("msg_id", "session", "msg_type")}
    ids = [
        "x_0",
        "x_1.before",
        "x_",
        "hello",
        "aside-0",
        "aside-register",
        "aside-wake",
        "look-0",
        "",
    ]
    other = draw(st.sampled_from(ids))
    header = draw(st.sampled_from([{"msg_type": msg_type, "msg_id": "m"}] * 8 + [odd, [], 5, {}]))
    broken = draw(st.sampled_from([None] * 10 + ["signature", "short", "nothing"]))

    def message(asked: dict[str, Any]) -> Sent:
        parent = {
            "request": asked,
            "other": {**asked, "msg_id": other},
            "odd": odd,
            "none": {},
            "deep": nested(900),
            "person": {"msg_id": "p", "session": "p", "msg_type": "execute_request"},
        }[whose]
        frames = {
            "signature": [b"<IDS|MSG>", b"0" * 64, b"{}", b"{}", b"{}", content],
            "short": [b"<IDS|MSG>", b"0" * 64, content],
            "nothing": [content],
        }.get(broken or "")
        return Sent(channel, header, parent, content, frames)

    return message


class Bench:
    """A connection to a kernel that a fuzzer drives; all examples share it."""

    def __init__(self, kernel: FuzzedKernel) -> None:
        self.kernel = kernel
        self.loop = asyncio.new_event_loop()
        self.number = 0
        self.connection = self.loop.run_until_complete(self._connect())

    async def _connect(self) -> KernelConnection:
        def opened(receiver: MessageReceiver) -> ZMQChannels:
            self.channels = ZMQChannels(
                self.kernel.connection, receiver, name="fuzzed", log=logging.getLogger("fuzz")
            )
            return self.channels

        connection = KernelConnection(
            opened,
            kernel_id="fuzzed",
            kernel_name="fuzzed",
            people=PersonRecording(source=True, outputs_bytes=10_000),
        )
        connection.on_late.add(lambda late: check(late.outputs))
        connection.hear_people(lambda ran: check(ran.outputs or []))
        await asyncio.wait_for(connection.ready(), SOON)
        return connection

    def runs(self, source: str) -> ExecuteOutcome:
        self.number += 1
        return self.loop.run_until_complete(self._runs(source))

    async def _runs(self, source: str) -> ExecuteOutcome:
        run = AgentRun(self.number, source)
        run.run.looks = True
        run.run.values = {"a": "a"}
        return await run.go(self.connection)

    def close(self) -> None:
        self.loop.run_until_complete(self.connection.close())
        self.loop.close()


def check(outputs: list[Any]) -> None:
    """What is stored is valid, and can be recorded and answered."""
    for payload in pack_outputs(outputs).payloads:
        assert isinstance(payload, Payload)
    nbformat.validate(new_notebook(cells=[new_code_cell("", outputs=outputs)]))
    json.dumps(outputs, allow_nan=False).encode()
    json.dumps(outputs, ensure_ascii=False).encode()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with fuzzed_kernel() as kernel:
        bench = Bench(kernel)
        yield bench
        bench.close()


@examples(short=150)
@given(sent=st.lists(messages(), max_size=6), twice=st.booleans())
def test_every_run_ends_whatever_the_kernel_sends(
    bench: Bench, caplog: pytest.LogCaptureFixture, sent: list[Any], twice: bool
) -> None:
    caplog.clear()
    bench.kernel.before = lambda header: [message(header) for message in sent] * (1 + twice)
    check(bench.runs("first").outputs)
    bench.kernel.before = lambda header: []
    second = bench.runs("second")
    check(second.outputs)
    assert bench.channels._thread.is_alive()
    unexpected = [record for record in caplog.records if "unexpected" in record.message]
    assert not unexpected, unexpected[0].exc_info
    # What it sent before may come late, with any parent, but what it answers now is there.
    assert (second.status, "second" in text(second)) == ("ok", True)
