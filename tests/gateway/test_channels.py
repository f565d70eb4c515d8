"""The channels of a kernel at a gateway, by themselves."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from jupyter_server.gateway.gateway_client import GatewayClient

from jupyter_agent_exec.gateway.channels import GatewayChannels
from jupyter_agent_exec.kernels.channels import KernelDeath, NotSent
from jupyter_agent_exec.kernels.messages import Message

SOON = 60.0


class Receiver:
    """Receives the end of a kernel."""

    largest_message = 0
    is_full = False

    def __init__(self) -> None:
        self.deaths: queue.Queue[KernelDeath | None] = queue.Queue()

    def channels_ended(self, death: KernelDeath | None = None) -> None:
        self.deaths.put(death)

    def iopub_message(self, message: Message) -> None: ...
    def shell_message(self, message: Message) -> None: ...
    def stdin_message(self, message: Message) -> None: ...
    def messages_missing(self, reason: str) -> None: ...
    def reconnected(self) -> None: ...
    def all_read(self) -> float | None: ...


class NoKernels(BaseHTTPRequestHandler):
    """Answers as a gateway that has no such kernel."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def empty_gateway() -> Iterator[None]:
    with HTTPServer(("127.0.0.1", 0), NoKernels) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            GatewayClient.instance(url=url, ws_url=url.replace("http", "ws"))
            yield
        finally:
            GatewayClient.clear_instance()
            server.shutdown()
            thread.join()


@pytest.mark.usefixtures("empty_gateway")
def test_a_request_to_a_kernel_that_has_ended_is_refused() -> None:
    """It would wait for ever for a connection, and its execution with it."""
    receiver, refused = Receiver(), queue.Queue[bool]()
    channels = GatewayChannels("nowhere", receiver, log=logging.getLogger("tests"))

    def send() -> None:
        try:
            channels.send("shell", "kernel_info_request", {}, msg_id="m")
        except NotSent:
            refused.put(True)
        else:
            refused.put(False)

    channels.start()
    try:
        death = receiver.deaths.get(timeout=SOON)
        assert death is not None
        assert death.reason == "died"
        channels.call(send)
        assert refused.get(timeout=SOON)
    finally:
        channels.stop()
