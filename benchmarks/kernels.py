"""Kernels without a server: straight over ZMQ, drained by a thread, and through nbclient."""

from __future__ import annotations

import asyncio
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from jupyter_core.paths import jupyter_runtime_dir
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_agent_exec.client import AgentExecClient

TIMEOUT = 600
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
HISTORY_IN_MEMORY = "--HistoryManager.hist_file=:memory:"
"""IPython's own history of inputs not on disk, which is how nbclient starts kernels."""
IDLE = b'{"execution_state": "idle"}'


class RawClient:
    """A kernel by jupyter_client's blocking client alone."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client

    def run(self, source: str) -> None:
        """Run `source`, until its reply and its idle have come."""
        msg_id = self.client.execute(source)
        self.wait_for_reply(msg_id)
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if (
                message["parent_header"].get("msg_id") == msg_id
                and message["msg_type"] == "status"
                and message["content"]["execution_state"] == "idle"
            ):
                return

    def wait_for_reply(self, msg_id: str) -> None:
        """Wait for the reply to a request."""
        while self.client.get_shell_msg(timeout=TIMEOUT)["parent_header"].get("msg_id") != msg_id:
            continue


class RawKernel(RawClient):
    """A kernel and a blocking client of it, both by jupyter_client."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        super().__init__(client)
        self.manager = manager


@contextmanager
def raw_kernel(*arguments: str) -> Iterator[RawKernel]:
    """Start a kernel, with more arguments if need be, and end it at the end."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(extra_arguments=[*arguments], **QUIET)
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        yield RawKernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@contextmanager
def scratch_kernel(client: AgentExecClient) -> Iterator[RawClient]:
    """Have a server of this machine start a scratch kernel, and reach it past the server.

    Found by the connection file that the server leaves in Jupyter's runtime folder.
    """
    with client.open_session(agent="past the server") as session:
        kernel = session.run("pass").execution.kernel
        assert kernel is not None
        direct = BlockingKernelClient()
        direct.load_connection_file(Path(jupyter_runtime_dir()) / f"kernel-{kernel.id}.json")
        direct.start_channels()
        try:
            direct.wait_for_ready(timeout=60)
            yield RawClient(direct)
        finally:
            direct.stop_channels()


class Drained(NamedTuple):
    """What a thread took from IOPub for one execution."""

    seconds: float
    """From the request to reply and idle."""
    messages: int


class RawDrain:
    """A thread with a ZMQ context of its own that takes a kernel's IOPub and counts, no more.

    The kernel's own client stops reading IOPub.
    """

    def __init__(self, kernel: RawKernel) -> None:
        self._kernel = kernel
        kernel.client.iopub_channel.stop()
        info = kernel.manager.get_connection_info()
        self._url = f"{info['transport']}://{info['ip']}:{info['iopub_port']}"
        self._context = zmq.Context()
        self._idle: queue.SimpleQueue[tuple[bytes, int, float]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._take, name="raw drain", daemon=True)
        self._thread.start()
        while self._idle.empty():  # until the subscription has reached the kernel
            kernel.wait_for_reply(kernel.client.execute("pass"))

    def run(self, source: str) -> Drained:
        """Run `source`, until its reply and its idle have come."""
        begin = time.perf_counter()
        msg_id = self._kernel.client.execute(source)
        while True:
            parent, messages, end = self._idle.get(timeout=TIMEOUT)
            if msg_id.encode() in parent:
                break
        self._kernel.wait_for_reply(msg_id)
        return Drained(max(end, time.perf_counter()) - begin, messages)

    def close(self) -> None:
        """End the thread."""
        self._context.term()
        self._thread.join()

    def _take(self) -> None:
        socket: zmq.Socket[bytes] = self._context.socket(zmq.SUB)
        socket.linger = 0
        socket.rcvhwm = 0
        socket.subscribe(b"")
        socket.connect(self._url)
        messages = 0
        try:
            while True:
                frames = socket.recv_multipart()
                messages += 1
                if frames[-1] == IDLE:
                    self._idle.put((frames[-3], messages, time.perf_counter()))
                    messages = 0
        except zmq.ContextTerminated:
            socket.close()


class NotebookRunner:
    """nbclient with a kernel that it keeps."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        notebook = new_notebook(cells=[new_code_cell("")])  # type: ignore[no-untyped-call]
        self._client = NotebookClient(notebook, kernel_name="python3")
        self._stack = AsyncExitStack()

    def __enter__(self) -> NotebookRunner:
        kernel = self._client.async_setup_kernel(**QUIET)
        self._loop.run_until_complete(self._stack.enter_async_context(kernel))
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._stack.aclose())
        self._loop.close()

    def times(self, source: str, count: int) -> list[float]:
        """Run `source` as a cell, `count` times, and return the seconds of each."""
        return self._loop.run_until_complete(self._times(source, count))

    async def _times(self, source: str, count: int) -> list[float]:
        times = []
        for _ in range(count):
            cell = new_code_cell(source)  # type: ignore[no-untyped-call]
            begin = time.perf_counter()
            await self._client.async_execute_cell(cell, 0)
            times.append(time.perf_counter() - begin)
        return times
