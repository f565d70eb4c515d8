"""A gateway that answers some requests, and not others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import (
    GatewayKernelSpecManager,
    GatewayMappingKernelManager,
)
from traitlets import Any as AnyTrait
from traitlets.config import LoggingConfigurable

from jupyter_agent_exec.errors import KernelUnavailable
from jupyter_agent_exec.gateway import kernels as gateway_kernels
from jupyter_agent_exec.gateway.kernels import GatewayKernels

KERNEL = {
    "id": "k",
    "name": "python3",
    "last_activity": "2026-11-29T12:00:00.000000Z",
    "execution_state": "idle",
    "connections": 0,
}


class HalfGateway(HTTPServer):
    """Starts kernels; tells kernelspecs if it is to."""

    has_specs = True
    has_started = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)


class Answers(BaseHTTPRequestHandler):
    server: HalfGateway

    def do_GET(self) -> None:
        if self.server.has_specs:
            self._answer(200, {"name": "python3", "spec": {"argv": [], "language": "python"}})
        else:
            self.send_error(500)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.has_started = True
        self._answer(201, KERNEL)

    def _answer(self, status: int, answer: dict[str, Any]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: Any) -> None: ...


class App(LoggingConfigurable):
    kernel_spec_manager = AnyTrait()


@pytest.fixture
def gateway() -> Iterator[HalfGateway]:
    with HalfGateway() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            GatewayClient.instance(url=f"http://127.0.0.1:{server.server_port}")
            yield server
        finally:
            GatewayClient.clear_instance()
            server.shutdown()
            thread.join()


@pytest.fixture
def kernels(gateway: HalfGateway) -> GatewayKernels:
    app = App()
    app.kernel_spec_manager = GatewayKernelSpecManager(parent=app)
    return GatewayKernels(GatewayMappingKernelManager(parent=app))


async def start(kernels: GatewayKernels) -> str:
    return await kernels.start_kernel(kernel_name="python3", path=None, env={}, extra_arguments=[])


async def test_no_kernel_is_started_whose_kernelspec_it_does_not_tell(
    gateway: HalfGateway, kernels: GatewayKernels
) -> None:
    gateway.has_specs = False
    with pytest.raises(KernelUnavailable):
        await start(kernels)
    assert not gateway.has_started


async def test_an_interrupt_and_an_end_that_fail_below_http_are_only_logged(
    kernels: GatewayKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_kernels, "SHUTDOWN_DELAYS", (0.0,))
    id = await start(kernels)
    manager: Any = kernels._kernels.get_kernel(id)
    manager.kernel_url = manager.kernel_url.replace("http:", "https:")  # it speaks no TLS
    await kernels.interrupt_kernel(id)
    await kernels.shutdown_kernel(id, now=True)
    assert id not in kernels
