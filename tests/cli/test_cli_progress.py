"""Work of the server that takes long is shown on a terminal; here a server says how far it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from tests.cli.command import Cli, at_terminal

LOOKS = 12


class WorkingServer(ThreadingHTTPServer):
    """Builds its index anew, or erases, until it has said a few times how far it is."""

    def __init__(self, work: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.work = work
        self.looks = 0
        self.done = Event()

    @property
    def environ(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.server_port}"
        return {"JUPYTER_AGENT_EXEC_URL": url, "JUPYTER_AGENT_EXEC_TOKEN": "x"}


class Handler(BaseHTTPRequestHandler):
    server: WorkingServer

    def do_GET(self) -> None:
        if not self.path.endswith("/status"):
            name = "hits" if "/search" in self.path else "sessions"
            self.answer({name: [], "next_after": None})
            return
        self.server.looks += 1
        if self.server.looks > LOOKS:
            self.server.done.set()
        is_done = self.server.done.is_set()
        progress = None if is_done else {"done": 100 * self.server.looks, "total": 3000}
        self.answer(
            {
                "version": "",
                "history_available": True,
                "open_sessions": 0,
                "kernels": 0,
                "running": 0,
                "queued": 0,
                "ledger": {"head": "0" * 64, "length": 0},
                "search_ready": is_done,
                self.server.work: progress,
            }
        )

    def do_POST(self) -> None:
        is_dry = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["dry_run"]
        if not is_dry:
            assert self.server.done.wait(60)
        session = {"session_id": "s_1", "agent": "a", "title": None, "is_open": False}
        counts = {"executions": 1, "payloads": 1, "bytes": 1, "facts": 0}
        self.answer({"dry_run": is_dry, "sessions": [session | counts], "remains": []})

    def answer(self, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def working(request: pytest.FixtureRequest) -> Iterator[WorkingServer]:
    with WorkingServer(request.param) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("working", ["indexing"], indirect=True)
def test_an_index_that_is_built_anew_is_waited_for_on_a_terminal(
    cli_alone: Cli, working: WorkingServer
) -> None:
    for words in (("sessions",), ("search", "mean", "--json")):
        done = cli_alone(*words, **working.environ)
        assert done.returncode == 0
        assert done.stderr == ""
    code, shown = at_terminal(cli_alone, "sessions", **working.environ)
    assert (code, "indexing: " in shown, "00/3000 " in shown) == (0, True, True), shown


@pytest.mark.parametrize("working", ["erasing"], indirect=True)
def test_an_erasure_is_followed_on_a_terminal(cli_alone: Cli, working: WorkingServer) -> None:
    code, shown = at_terminal(cli_alone, "erase", "s_1", "--yes", **working.environ)
    assert (code, "erasing: " in shown, "00/3000 " in shown) == (0, True, True), shown
    assert "erased" in shown
    assert "erasing" not in cli_alone("erase", "s_1", "--yes", **working.environ).stderr
