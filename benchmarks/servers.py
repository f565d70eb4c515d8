"""Jupyter servers in processes of their own, on loopback, with folders of their own."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from jupyter_agent_exec.client import AgentExecClient

HERE = Path(__file__).parent
START_SECONDS = 60.0
POLL_SECONDS = 0.005


def set_apart(folder: Path) -> None:
    """Have this process, and all that it starts, use Jupyter folders in `folder` and no others."""
    for name in [name for name in os.environ if name.startswith(("JUPYTER", "JPY_", "IPYTHON"))]:
        del os.environ[name]
    for name in ("config", "data", "runtime"):
        os.environ[f"JUPYTER_{name.upper()}_DIR"] = str(folder / name)
        (folder / name).mkdir()
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    paths = [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs and has answered."""

    url: str
    token: str = field(repr=False)
    pid: int
    start_seconds: float
    """From the start of its process to its first answer to ``GET /status``."""

    def client(self) -> AgentExecClient:
        """Return a client of its own connection."""
        return AgentExecClient(self.url, self.token)

    def http(self) -> httpx2.Client:
        """Return a plain HTTP client, below the server's base URL, with a kept connection."""
        return httpx2.Client(
            base_url=self.url, headers={"Authorization": f"token {self.token}"}, timeout=60
        )


def answered(http: httpx2.Client, path: str, **parameters: Any) -> Any:
    """Return the JSON that a GET under the extension's namespace answers."""
    response = http.get(f"/api/agent-exec{path}", params=parameters)
    response.raise_for_status()
    return response.json()


@contextmanager
def server(
    folder: Path, *options: str, extensions: Mapping[str, bool] | None = None
) -> Iterator[Server]:
    """Run a server whose history is in `folder`, which is made if need be.

    Parameters
    ----------
    folder
        For the history, the root and the log.
    options
        More of the command line.
    extensions
        What else the server loads, or does not, by name.
    """
    (folder / "root").mkdir(parents=True, exist_ok=True)
    token, port = secrets.token_hex(16), free_port()
    loaded = {"jupyter_agent_exec": True, **(extensions or {})}
    log = folder / "server.log"
    begin = time.perf_counter()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server"),
                f"--ServerApp.jpserver_extensions={loaded}",
                "--ServerApp.ip=127.0.0.1",
                f"--ServerApp.port={port}",
                "--ServerApp.port_retries=0",
                "--ServerApp.open_browser=False",
                "--ServerApp.allow_root=True",
                f"--ServerApp.root_dir={folder / 'root'}",
                f"--IdentityProvider.token={token}",
                f"--AgentExecApp.history_dir={folder / 'history'}",
                "--AgentExecApp.approval={'notebook': 'none', 'kernel': 'none'}",
                *options,
            ],
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for us; we stop it below
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_it_answers(f"{url}/api/agent-exec/status", token, process, log)
        yield Server(url, token, process.pid, time.perf_counter() - begin)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until_it_answers(
    url: str, token: str, process: subprocess.Popen[bytes], log: Path
) -> None:
    """Wait until a server that starts answers a GET of `url`; if it ends, end with its log."""
    deadline = time.monotonic() + START_SECONDS
    headers = {"Authorization": f"token {token}"}
    with httpx2.Client(headers=headers, timeout=START_SECONDS) as http:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                http.get(url).raise_for_status()
                return
            except httpx2.ConnectError:
                time.sleep(POLL_SECONDS)
            except httpx2.HTTPStatusError:
                break
    lines = log.read_text(errors="replace").splitlines()
    raise SystemExit("\n".join(["The server did not start as it should:", *lines[-30:]]))


def free_port() -> int:
    """Return a port on loopback that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
