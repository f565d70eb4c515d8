"""A gateway that is not there."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.server_process import server_process


def test_an_absent_gateway_is_named_without_a_traceback(
    tmp_path: Path,
) -> None:
    with socket.socket() as closed:  # bound, so that nobody else gets the port, and not listening
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        log = tmp_path / "log"
        with (
            log.open("w") as file,
            server_process(tmp_path, f"--GatewayClient.url={url}", log=file) as server,
        ):
            for target in ({"kind": "scratch"}, {"kind": "scratch", "kernel_name": "python3"}):
                asked = {"agent": {"name": "tester"}, "target": target}
                refused = server.ask("POST", "sessions", asked)
                told = refused.json()
                assert (refused.status_code, told["code"]) == (503, "kernel_unavailable"), told
                assert "refused" in told["message"].lower()
                assert told["detail"]["gateway"] == url
    assert "Traceback" not in log.read_text()
