"""Requests to a gateway that cannot even be sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import (
    GatewayKernelSpecManager,
    GatewayMappingKernelManager,
)
from traitlets import Any as AnyTrait
from traitlets.config import LoggingConfigurable

from jupyter_agent_exec.gateway import kernels as gateway_kernels
from jupyter_agent_exec.gateway.kernels import GatewayKernels
from tests.gateway.gateways import GATEWAY_TOKEN, kernel_gateway


class App(LoggingConfigurable):
    kernel_spec_manager = AnyTrait()


@pytest.fixture
def kernels(tmp_path: Path) -> Iterator[GatewayKernels]:
    with kernel_gateway(tmp_path) as gateway:
        GatewayClient.clear_instance()
        GatewayClient.instance(url=gateway.url, auth_token=GATEWAY_TOKEN)
        try:
            app = App()
            app.kernel_spec_manager = GatewayKernelSpecManager(parent=app)
            yield GatewayKernels(GatewayMappingKernelManager(parent=app))
        finally:
            GatewayClient.clear_instance()


async def test_an_interrupt_and_an_end_that_cannot_be_sent_are_only_logged(
    kernels: GatewayKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_kernels, "SHUTDOWN_DELAYS", (0.0,))
    id = await kernels.start_kernel(kernel_name="python3", path=None, env={}, extra_arguments=[])
    manager: Any = kernels._kernels.get_kernel(id)
    manager.kernel_url = f"http://[fe80::1]:80/api/kernels/{id}"  # no address without its link
    await kernels.interrupt_kernel(id)
    await kernels.shutdown_kernel(id, now=True)
    assert id not in kernels
