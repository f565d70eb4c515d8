"""Who listens to a kernel, and takes nothing for a while: the server, or somebody beside it."""

from __future__ import annotations

import signal
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
import zmq

from jupyter_agent_exec.kernels import inspection
from jupyter_agent_exec.kernels.iopub import DROPPED
from tests.kernels.kernel_server import AgentRun, kernel_server, text, with_person
from tests.server_process import Gate, server_process

LINES = 4_000
LINE_BYTES = 10_000
"""So many that neither the network holds them, nor the 1,000 messages of a kernel of its own."""

PRINTS = f"""
for n in range({LINES}):
    print("." * {LINE_BYTES - 1}, flush=True)
"""


def wakes(seconds: float) -> str:
    """Code that prints, and has the server go on when all is printed, or if the kernel waits."""
    return f"""
import os, signal, threading
printed = threading.Event()
def wake():
    printed.wait({seconds})
    os.kill(os.getppid(), signal.SIGCONT)
threading.Thread(target=wake).start()
{PRINTS}
printed.set()
"""


@pytest.mark.parametrize(("whose", "seconds"), [("own", 4), ("person's", 1)])
def test_what_a_kernel_tells_while_the_server_stands_still_comes_whole(
    tmp_path: Path, whose: str, seconds: float
) -> None:
    begun = Gate(tmp_path, "begun")
    with server_process(tmp_path) as server:
        target: dict[str, Any] = {"kind": "scratch"}
        if whose == "person's":
            nbformat.write(nbformat.v4.new_notebook(), tmp_path / "root" / "a.ipynb")
            target = {"kind": "notebook", "path": "a.ipynb"}
        session = server.open(target=target)
        source = f"{begun.here}{begun.wait}{wakes(seconds)}"
        limits = {"placement": "none", "max_output_bytes": 100_000}
        asked = server.run(session, source, wait=0, **limits).json()
        begun.until_it_is_here()
        server.process.send_signal(signal.SIGSTOP)
        begun.let_it_on()
        told = server.get(f"executions/{asked['id']}?wait=60")
        assert told["status"] == "ok"
        head, _, tail = told["cell"]["outputs"]
        came = len(head["text"]) + told["omitted"]["bytes"] + len(tail["text"])
        assert came == LINES * LINE_BYTES


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(inspection, "PATIENCE", 0.5)
    return inspection.PATIENCE


@pytest.mark.usefixtures("jp_environ")
async def test_somebody_who_has_stopped_keeps_a_persons_kernel_waiting_only_once(
    patience: float,
) -> None:
    async with kernel_server() as server:
        kernel_id = await server.start_kernel()
        kernel = await server.live.adopt(kernel_id)
        port = server.kernels.get_kernel(kernel_id).iopub_port
        with zmq.Context() as context, context.socket(zmq.SUB) as stopped:
            stopped.linger = 0
            stopped.rcvhwm = 1
            stopped.subscribe("")
            stopped.connect(f"tcp://127.0.0.1:{port}")
            while not stopped.poll(0):
                await AgentRun(1, "1").in_turn(kernel)
            ended = await AgentRun(2, PRINTS).in_turn(kernel)
        assert ended.status == "ok"
        assert ended.finished_at - ended.started_at > timedelta(seconds=patience)
        is_whole = len(text(ended)) + ended.omitted.bytes == LINES * LINE_BYTES
        assert is_whole != ended.omitted.unknown


@pytest.mark.usefixtures("jp_environ", "patience")
async def test_what_a_persons_kernel_dropped_for_us_is_said_to_be_missing() -> None:
    async with with_person() as (person, kernel):
        await AgentRun(1, "1").in_turn(kernel)
        run = AgentRun(2, PRINTS)
        running = run.in_turn(kernel)
        await run.begun
        goes_on = threading.Event()
        kernel.connection.channels.call(goes_on.wait)
        await person.has_run("")
        goes_on.set()
        ended = await running
        assert (ended.status, ended.reason) == ("ok", DROPPED)
        assert ended.omitted.unknown
        assert len(text(ended)) + ended.omitted.bytes < LINES * LINE_BYTES
        again = await AgentRun(3, "print(3)").in_turn(kernel)
        assert (again.status, again.reason, text(again)) == ("ok", None, "3\n")
