"""Clients that ask for much and never read it: what the server keeps for them is bounded."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.real_server import TOKEN
from tests.server_process import ServerProcess, server_process

READERS = 20
OUTPUT_BYTES = 9_000_000
PRINTS = f"print('x' * {OUTPUT_BYTES - 1}, flush=True)"
ROOM_BYTES = 120_000_000
"""By which the server may grow: less than one copy of the output for each takes."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server_process(tmp_path_factory.mktemp("server")) as server:
        yield server


def ask_without_reading(stack: ExitStack, server: ServerProcess, path: str) -> socket.socket:
    """Send a request over a small socket, and wait for the first byte of its answer."""
    address = urlsplit(server.api)
    assert address.hostname is not None
    connection = stack.enter_context(socket.socket())
    connection.settimeout(60)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((address.hostname, address.port or 80))
    connection.sendall(
        f"GET {address.path}{path} HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: token {TOKEN}\r\n\r\n".encode()
    )
    assert connection.recv(1)
    return connection


def followed(events: Iterator[str], until: str) -> None:
    assert any(until in line for line in events)


@pytest.mark.parametrize("is_finished", [False, True], ids=["running", "finished"])
@pytest.mark.parametrize("path", ["executions/{}/stream", "executions/{}"])
def test_what_is_kept_for_clients_that_never_read_is_bounded(
    server: ServerProcess, is_finished: bool, path: str
) -> None:
    session = server.open()
    source = PRINTS if is_finished else f"{PRINTS}\nprint('out'); import time; time.sleep(600)"
    execution = server.run(session, source, wait=60 if is_finished else 0).json()["id"]
    if not is_finished:
        with server.ask_stream(f"executions/{execution}/stream") as events:
            followed(events, r"out\n")  # as JSON
    server.ask("GET", f"executions/{execution}")  # what one answer takes is not counted
    memory = psutil.Process(server.process.pid).memory_info
    before = memory().rss
    with ExitStack() as stack:
        for _ in range(READERS):
            ask_without_reading(stack, server, path.format(execution))
        assert server.ask("GET", "status").status_code == 200
        assert memory().rss - before < ROOM_BYTES
    assert server.ask("POST", f"sessions/{session}/close").status_code == 200


def test_a_follower_that_takes_nothing_is_ended_and_resumes_without_loss(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with (
        ExitStack() as stack,
        os.fdopen(reading) as log,
        os.fdopen(writing, "w") as server_log,
        server_process(tmp_path, "--AgentExecApp.send_timeout=0.1", log=server_log) as server,
    ):
        session = server.open()
        execution = server.run(session, PRINTS, wait=60).json()["id"]
        path = f"executions/{execution}/stream"
        connection = ask_without_reading(stack, server, path)
        followed(log, f"{path} is not read any more")
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        assert b"id: 1\n" in received
        assert b"event: finished" not in received
        assert not received.endswith(b"0\r\n\r\n")  # it does not look complete
        resumed = server.ask("GET", path, headers={"Last-Event-ID": "1"}).text
        assert resumed.startswith("event: finished\n")
        whole = json.loads(resumed.partition("data: ")[2])
        (output,) = whole["cell"]["outputs"]
        assert output["text"] == "x" * (OUTPUT_BYTES - 1) + "\n"
        later = server.get(f"executions/{execution}")
        assert whole == later | {"chain": whole["chain"]}  # more may have been recorded since
