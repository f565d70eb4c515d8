"""Real gateways, each in a process of its own, and servers that have their kernels there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import psutil
import pytest
import websocket

from tests.ports import free_port
from tests.real_server import PROJECT, environment
from tests.server_process import ServerProcess, server_process

GATEWAY_TOKEN = "a-token-of-the-gateway"
GATEWAY_HEADER = {"Authorization": f"token {GATEWAY_TOKEN}"}

UNLIMITED = (
    "--ZMQChannelsWebsocketConnection.limit_rate=False",
    "--ZMQChannelsWebsocketConnection.kernel_info_timeout=60",
)
"""Options of a Kernel Gateway that drops no output."""


ENTERPRISE_GATEWAY = PROJECT / ".make" / "enterprise-gateway" / "bin" / "python"


class Gateway:
    """A gateway that listens.

    Parameters
    ----------
    folder
        Of Jupyter's folders.
    command
        Starts it; its options for the address, the port and the token follow.
    """

    def __init__(self, folder: Path, command: Sequence[str], options: Sequence[str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._arguments = [*command, f"--port={self.port}", *options]
        self.http = httpx2.Client(
            base_url=f"{self.url}/api/",
            headers=GATEWAY_HEADER,
            timeout=60,
            trust_env=False,
        )
        self.start()

    def start(self) -> None:
        """Start it, or start it again on the same port."""
        environ = environment(self._folder)
        environ.pop("PYTHONPATH", None)
        self.process = subprocess.Popen(
            self._arguments,
            env={**environ, "EG_AUTH_TOKEN": GATEWAY_TOKEN, "KG_AUTH_TOKEN": GATEWAY_TOKEN},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if " at http" in line:
                break
        else:
            self.process.wait(30)
            raise RuntimeError("The gateway did not start.")
        self._drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=sys.stderr)

    def kernel(self, kernel_id: str) -> psutil.Process:
        """Return the process of a kernel."""
        kernels = psutil.Process(self.process.pid).children(recursive=True)
        return next(each for each in kernels if f"kernel-{kernel_id}" in " ".join(each.cmdline()))

    def kernels(self) -> list[Any]:
        answered = self.http.get("kernels")
        assert answered.status_code == 200, answered.text
        return list(answered.json())

    def kill(self) -> None:
        """Kill it where it stands, and its kernels."""
        self.process.send_signal(signal.SIGSTOP)
        kernels = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for kernel in kernels:
            with suppress(psutil.NoSuchProcess):
                kernel.kill()
        psutil.wait_procs(kernels, timeout=30)
        self._gone()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self._gone()
            self.http.close()

    def _gone(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        self._drain.wait(30)


@contextmanager
def gateway(folder: Path, command: Sequence[str], *options: str) -> Iterator[Gateway]:
    started = Gateway(folder, command, options)
    try:
        yield started
    finally:
        started.stop()


@contextmanager
def kernel_gateway(folder: Path, *options: str) -> Iterator[Gateway]:
    """Start a Kernel Gateway."""
    command = (
        sys.executable,
        "-m",
        "kernel_gateway",
        "--KernelGatewayApp.ip=127.0.0.1",
        "--KernelGatewayApp.port_retries=0",
        "--JupyterWebsocketPersonality.list_kernels=True",
    )
    with gateway(folder, command, *options) as started:
        yield started


@contextmanager
def enterprise_gateway(folder: Path) -> Iterator[Gateway]:
    """Start an Enterprise Gateway that drops nothing, in the environment that its pins need."""
    if not ENTERPRISE_GATEWAY.exists():
        pytest.skip("there is no Enterprise Gateway: make .make/enterprise-gateway/done")
    command = (
        str(ENTERPRISE_GATEWAY),
        "-m",
        "enterprise_gateway",
        "--EnterpriseGatewayApp.ip=127.0.0.1",
        "--EnterpriseGatewayApp.port_retries=0",
        "--EnterpriseGatewayApp.list_kernels=True",
        "--EnterpriseGatewayApp.unauthorized_users=nobody",
        "--ZMQChannelsHandler.limit_rate=False",
    )
    with gateway(folder, command) as started:
        yield started


@contextmanager
def server_at(url: str, folder: Path, *options: str) -> Iterator[ServerProcess]:
    """Start a server that has its kernels at a gateway."""
    mine = (f"--gateway-url={url}", f"--GatewayClient.auth_token={GATEWAY_TOKEN}")
    with server_process(folder, *mine, *options) as server:
        yield server


def ended(server: ServerProcess, execution: str) -> dict[str, Any]:
    """Wait for the end of an execution; the answer may be longer in coming than one request."""
    while True:
        told = dict(server.get(f"executions/{execution}?wait=50"))
        if told["finished_at"] is not None:
            return told


class Person:
    """A person's page at a kernel: a bare WebSocket client, which speaks JSON and calls itself ada.

    Parameters
    ----------
    url
        Address of a gateway or a server.
    header
        What its requests have to say who asks.
    """

    def __init__(
        self, url: str, kernel_id: str, header: Mapping[str, str] = GATEWAY_HEADER
    ) -> None:
        self._session = uuid4().hex
        self._socket = websocket.create_connection(
            f"{url.replace('http', 'ws', 1)}/api/kernels/{kernel_id}/channels"
            f"?session_id={self._session}",
            header=dict(header),
            http_no_proxy=["*"],
            timeout=60,
        )

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def begins(self, source: str) -> str:
        """Run a cell; return the id of its request once the kernel has begun with it."""
        msg_id = self.sends(source)
        self.until("execute_input", msg_id)
        return msg_id

    def has_run(self, source: str) -> str:
        """Run a cell to its end; return how it ended."""
        return str(self.until("execute_reply", self.sends(source))["status"])

    def sends(self, source: str) -> str:
        """Send a cell; return the id of its request."""
        msg_id = uuid4().hex
        header = {
            "msg_id": msg_id,
            "msg_type": "execute_request",
            "session": self._session,
            "username": "ada",
            "date": datetime.now(UTC).isoformat(),
            "version": "5.3",
        }
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        request = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        self._socket.send(json.dumps({**request, "channel": "shell", "buffers": []}))
        return msg_id

    def until(self, msg_type: str, msg_id: str) -> dict[str, Any]:
        """Read until a message for a request comes; return its content."""
        while True:
            message = json.loads(self._socket.recv())
            if message["parent_header"].get("msg_id") == msg_id and (
                message["header"]["msg_type"] == msg_type
            ):
                return dict(message["content"])
