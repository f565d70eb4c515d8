"""A kernel at a gateway: how long until the answer is there, and what is missing from it."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import httpx2
import websocket
from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)
from measures import Goal, Measurement, Result, flat, interleaved, ratios, timed
from servers import free_port, server, wait_until_it_answers

from jupyter_agent_exec.client import Session

NAME = "remote"
SOURCE = "1+1"
BLOCK = 10
LINES = 10_000
FLUSHED = f"for i in range({LINES}): print(i, flush=True)"
EXPECTED = "".join(f"{i}\n" for i in range(LINES))
BARE = "a bare WebSocket client"
OURS = "this server, by its Python client"
OTHER = "jupyter_kernel_client"
PROTOCOL = "v1.kernel.websocket.jupyter.org"

Run = Callable[[str], str]
"""Runs a source, and returns what it printed."""


class BareClient:
    """A kernel's WebSocket at a gateway, and nothing else.

    It acknowledges at once what it reads, as this server does: a gateway waits for that.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._kernel_id = gateway.start_kernel()
        self._socket = websocket.WebSocket(sockopt=((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),))

    def connect(self) -> None:
        """Connect again: a gateway closes a WebSocket that has not answered its pings for long."""
        self._socket.close()
        self._session = uuid4().hex
        self._socket.connect(
            f"{self._gateway.url.replace('http', 'ws', 1)}/api/kernels/{self._kernel_id}/channels"
            f"?session_id={self._session}",
            header={"Authorization": f"token {self._gateway.token}"},
            subprotocols=[PROTOCOL],
            http_no_proxy=["*"],
            timeout=600,
        )

    def __enter__(self) -> BareClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def run(self, source: str) -> str:
        """Run `source`, until its reply and its idle have come; return what it printed."""
        msg_id = uuid4().hex
        header = {
            "msg_id": msg_id,
            "msg_type": "execute_request",
            "session": self._session,
            "username": "benchmark",
            "date": datetime.now(UTC).isoformat(),
            "version": "5.4",
        }
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
        self._socket.send_binary(serialize_msg_to_ws_v1(parts, "shell"))
        printed, waits_for = [], {"execute_reply", "idle"}
        while waits_for:
            _, parts = deserialize_msg_from_ws_v1(self._socket.recv())
            if hasattr(socket, "TCP_QUICKACK"):
                self._socket.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            told, parent, _, content = (json.loads(part) for part in parts[:4])
            if parent.get("msg_id") != msg_id:
                continue
            if told["msg_type"] == "stream":
                printed.append(content["text"])
            waits_for -= {told["msg_type"], content.get("execution_state")}
        return "".join(printed)


class Gateway:
    """A Kernel Gateway that listens and drops no output."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def start_kernel(self) -> str:
        """Start a kernel; return its id."""
        headers = {"Authorization": f"token {self.token}"}
        body = {"name": "python3"}
        made = httpx2.post(f"{self.url}/api/kernels", headers=headers, json=body, timeout=60)
        made.raise_for_status()
        return str(made.json()["id"])


def run(folder: Path, *, quick: bool) -> Result:
    """Measure it; the server and the gateway's log are in `folder`."""
    with ExitStack() as stack:
        there = stack.enter_context(_gateway(folder))
        options = (f"--gateway-url={there.url}", f"--GatewayClient.auth_token={there.token}")
        client = stack.enter_context(stack.enter_context(server(folder, *options)).client())
        session = stack.enter_context(client.open_session(agent="benchmark"))
        bare = stack.enter_context(BareClient(there))
        bare.connect()
        runs: dict[str, Run] = {
            BARE: bare.run,
            OURS: partial(_ours, session),
        }
        if find_spec("jupyter_kernel_client") is not None:
            runs[OTHER] = stack.enter_context(_kernel_client(there))
        small = {name: partial(_times, partial(one, SOURCE), BLOCK) for name, one in runs.items()}
        interleaved(3, small)  # to warm up
        taken = interleaved(5 if quick else 100, small)
        incomplete = {BARE: 0, OURS: 0}

        def flushed(name: str) -> list[float]:
            texts: list[str] = []
            bare.connect()
            seconds = timed(lambda: texts.append(runs[name](FLUSHED)))
            incomplete[name] += texts != [EXPECTED]
            return [seconds]

        count = 2 if quick else 20
        lines = interleaved(count, {name: partial(flushed, name) for name in (BARE, OURS)})
    return Result(
        name=NAME,
        title="a kernel at a gateway",
        how=(
            f"A Kernel Gateway without limits for output. Each contender has a kernel of its own "
            f"there. They take turns: {BLOCK} times `{SOURCE}`, later once `{FLUSHED}`. The bare "
            f"client does nothing but read and write the frames of `{PROTOCOL}` until reply and "
            "idle. This server has its kernels at the gateway and records each execution. "
            f"jupyter_kernel_client takes part with `{SOURCE}` only: with many lines, its wait "
            "may not end."
        ),
        goals=[
            Goal.of_median(f"`{SOURCE}`, this server ÷ {BARE}", "×", 1.15, _ratios(taken)),
            Goal(
                what=f"runs of {LINES:,} flushed lines with a line missing, of {count}",
                unit="",
                limit=0,
                value=incomplete[OURS],
            ),
        ],
        measurements=[
            Measurement.of(f"{LINES:,} lines, this server ÷ {BARE}", "×", _ratios(lines)),
            *(Measurement.of_times(f"`{SOURCE}`, {name}", flat(taken[name])) for name in runs),
            *(
                Measurement.of_times(
                    f"{LINES:,} lines, {name} ({incomplete[name]} of {count} incomplete)",
                    flat(lines[name]),
                )
                for name in incomplete
            ),
        ],
    )


def _ratios(taken: dict[str, list[list[float]]]) -> list[float]:
    return ratios(taken[OURS], taken[BARE])


def _times(call: Callable[[], object], count: int) -> list[float]:
    return [timed(call) for _ in range(count)]


def _ours(session: Session, source: str) -> str:
    return "".join(output.get("text", "") for output in session.run(source).cell["outputs"])


@contextmanager
def _kernel_client(gateway: Gateway) -> Iterator[Run]:
    from jupyter_kernel_client import JupyterKernelClient  # type: ignore[import-not-found]

    client = JupyterKernelClient(
        server_url=gateway.url,
        token=gateway.token,
        # Its own header, Bearer, is not one that a Kernel Gateway takes.
        headers={"Authorization": f"token {gateway.token}"},
    )
    client.start(name="python3")
    try:
        yield lambda source: "".join(
            output.get("text", "") for output in client.execute(source, timeout=600)["outputs"]
        )
    finally:
        client.stop()


@contextmanager
def _gateway(folder: Path) -> Iterator[Gateway]:
    token, port = secrets.token_hex(16), free_port()
    url = f"http://127.0.0.1:{port}"
    log = folder / "gateway.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kernel_gateway"),
                "--KernelGatewayApp.ip=127.0.0.1",
                f"--KernelGatewayApp.port={port}",
                "--KernelGatewayApp.port_retries=0",
                f"--KernelGatewayApp.auth_token={token}",
                "--JupyterWebsocketPersonality.list_kernels=True",
                "--ZMQChannelsWebsocketConnection.limit_rate=False",
            ],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        wait_until_it_answers(f"{url}/api/kernelspecs", token, process, log)
        yield Gateway(url, token)
    finally:
        process.terminate()
        process.wait(30)
