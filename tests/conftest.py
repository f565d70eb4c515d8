"""A real Jupyter Server with the extension, for each test that asks for it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import zmq
from jupyter_client.connect import LocalPortCache
from jupyter_client.provisioning import local_provisioner
from jupyter_server.serverapp import ServerApp
from tornado.httpclient import HTTPResponse

from tests.asking import NAMESPACE, Agent, Answered, Send
from tests.forks import KernelForks
from tests.ports import free_port
from tests.real_server import NOTHING_ASKS

pytest_plugins = ["pytest_jupyter.jupyter_server"]


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    """Traits of the extension; tests override this."""
    return {}


@pytest.fixture
def history_dir(tmp_path: Path) -> Path:
    return tmp_path / "history"


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], history_dir: Path, agent_exec_config: dict[str, Any]
) -> dict[str, Any]:
    return {
        **jp_server_config,
        "ServerApp": {
            "jpserver_extensions": {"jupyter_agent_exec": True},
            "allow_unauthenticated_access": False,
        },
        "AgentExecApp": {
            "history_dir": str(history_dir),
            "approval": NOTHING_ASKS,
            "warm_kernels": 0,  # half of the kernels that tests would start are not used
            **agent_exec_config,
        },
    }


@pytest.fixture
def agent(jp_fetch: Callable[..., Awaitable[HTTPResponse]]) -> Agent:
    return Agent(jp_fetch)


@pytest.fixture
def send(jp_serverapp: Any, http_server_client: Any, jp_base_url: str) -> Send:
    """Send a request with just the headers that are given, and take any answer."""

    async def send(
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
        body: str | None = None,
    ) -> Answered:
        url = f"{jp_base_url}{path}" + (f"?{urlencode(query)}" if query else "")
        response: HTTPResponse = await http_server_client.fetch(
            url,
            method=method,
            headers=headers or {},
            body=body,
            follow_redirects=False,
            raise_error=False,
            allow_nonstandard_methods=True,
            request_timeout=60,
        )
        return Answered(response)

    return send


@pytest.fixture
def ask(send: Send) -> Send:
    """Send a request to a path of ours."""

    async def ask(method: str, path: str, **named: Any) -> Answered:
        return await send(method, f"{NAMESPACE}/{path}", **named)

    return ask


@pytest.fixture(scope="session", autouse=True)
def kernel_forks() -> Iterator[None]:
    """Fork the kernels of servers in this process, and give each ports that stay free."""
    forks = KernelForks(PYTHONPATH=os.pathsep.join(sys.path))  # as pytest-jupyter sets it
    with pytest.MonkeyPatch.context() as patch:
        launch = local_provisioner.launch_kernel
        patch.setattr(local_provisioner, "launch_kernel", forks.launcher(launch))
        patch.setattr(LocalPortCache, "find_available_port", lambda _, ip: free_port(ip))
        yield
    forks.stop()


@pytest.fixture(scope="session")
def ended_contexts() -> Iterator[list[zmq.Context[Any]]]:
    """ZeroMQ contexts of servers that have ended."""
    contexts: list[zmq.Context[Any]] = []
    yield contexts
    for context in contexts:
        context.destroy(linger=0)


@pytest.fixture(autouse=True)
def jp_server_cleanup(
    jp_asyncio_loop: asyncio.AbstractEventLoop, ended_contexts: list[zmq.Context[Any]]
) -> Iterator[None]:
    """End the server of a test, in place of pytest-jupyter's fixture of this name.

    Jupyter's sockets outlive their end by up to a second, for which their context would wait: it
    is ended some tests later.
    """
    yield
    app = ServerApp.instance()
    ServerApp.clear_instance()
    jp_asyncio_loop.run_until_complete(app._cleanup())
    while len(ended_contexts) > 2:
        ended_contexts.pop(0).destroy(linger=0)
    if hasattr(app, "kernel_manager"):
        ended_contexts.append(app.kernel_manager.context)
        # Else it would end its context when it is collected, and have any thread wait for that.
        app.kernel_manager._created_context = False
