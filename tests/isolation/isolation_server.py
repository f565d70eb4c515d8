"""A server with secrets around it, and what tests of isolated kernels ask of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import psutil
import pytest

from jupyter_agent_exec.client import AgentExecClient, Session
from tests.real_server import RealServer, real_server

CANARY = "canary-5f0c1d"
SOON = 60.0
AS_SOMEBODY = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""Starts a program as an ordinary user, who owns what root does."""


class IsolationServer(NamedTuple):
    """A server, and what is around it."""

    way: Literal["unshare", "bubblewrap"]
    server: RealServer
    client: AgentExecClient
    folder: Path
    temporary: Path

    def outside(self) -> list[str]:
        """Return what is none of an isolated kernel's business."""
        return [
            str(self.folder / "home" / ".ssh" / "secret"),
            str(self.folder / "outside"),
            str(self.server.history_dir),
            str(self.server.root_dir),
            *(self.server.environ[f"JUPYTER_{name}_DIR"] for name in ("RUNTIME", "DATA", "CONFIG")),
        ]


def prefix_of(way: str) -> tuple[str, ...]:
    """Return how a server is started that takes a way, or skip."""
    if way == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if way == "unshare":
        return ()
    if os.geteuid() == 0 and shutil.which("unshare") is None:
        pytest.skip("nothing starts a server as an ordinary user: util-linux is not installed")
    prefix = AS_SOMEBODY if os.geteuid() == 0 else ()
    options = ("--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev")
    tried = subprocess.run(
        [*prefix, "bwrap", *options, "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        pytest.skip(f"this machine does not let bubblewrap work: {tried.stderr.strip()}")
    return prefix


@contextmanager
def isolation_server(
    folder: Path, way: Any, *options: str, prefix: Sequence[str] = (), data: Path | None = None
) -> Iterator[IsolationServer]:
    home, temporary = folder / "home", folder / "tmp"
    for made in (home / ".ssh", temporary, folder / "data", folder / "config"):
        made.mkdir(parents=True)
        (made / "secret").write_text(CANARY)
    (temporary / "secret").unlink()
    (folder / "outside").write_text(CANARY)
    environ = {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "JUPYTER_DATA_DIR": str(data or folder / "data"),
        "A_PASSWORD": CANARY,
        "HTTPS_PROXY": f"http://somebody:{CANARY}@127.0.0.1:9",
    }
    asked = (f"--AgentExecApp.isolation_way={way}", *options)
    with (
        real_server(folder, *asked, environ=environ, prefix=prefix, is_forked=False) as server,
        AgentExecClient(server.url, server.token) as client,
    ):
        yield IsolationServer(way, server, client, folder, temporary)


def server_process(here: IsolationServer) -> psutil.Process:
    """Return the process of a server."""
    for process in psutil.Process().children():
        if f"--ServerApp.root_dir={here.server.root_dir}" in process.cmdline():
            return process
    raise AssertionError("the server has gone")


def value(session: Session, source: str, expression: str = "found") -> Any:
    """Run something, and return what it found."""
    result = session.run(source, values={"found": expression}, timeout=SOON)
    assert result.ok, result.text
    assert result.values is not None
    assert result.values["found"].status == "ok", result.values["found"]
    return result.values["found"].json


def failed(session: Session, source: str) -> str:
    """Run something that fails; return by what."""
    result = session.run(source, timeout=SOON)
    assert result.error is not None, result.text
    return f"{result.error.ename}: {result.error.evalue}"
