"""A real Jupyter server with a real ipykernel, in a process of its own, and folders of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

import pytest

PROJECT = Path(__file__).parent.parent
TOKEN = "a-token-of-the-tests"

NOTHING_ASKS = {"notebook": "none", "kernel": "none", "edits": "apply"}
"""The approval policy of tests that are not about approval."""


def until(condition: Callable[[], object], timeout: float = 60) -> None:
    """Wait until something is so; fail if it does not become so."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"not within {timeout} s"
        time.sleep(0.02)


class RealServer(NamedTuple):
    """A server that runs."""

    url: str
    token: str
    environ: dict[str, str]
    """With which a program finds this server, and no other."""
    root_dir: Path
    history_dir: Path


def environment(folder: Path) -> dict[str, str]:
    """Return an environment with Jupyter's folders in `folder`, in which our package is found."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "JPY_", "IPYTHON"))
    }
    return {
        **kept,
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
        "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(folder / "matplotlib")),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")])),
        "PYTHONUNBUFFERED": "1",
    }


@contextmanager
def real_server(
    folder: Path,
    *options: str,
    approval: dict[str, str] = NOTHING_ASKS,
    port: int = 0,
    environ: Mapping[str, str] = MappingProxyType({}),
    prefix: Sequence[str] = (),
    stderr: IO[str] | None = None,
    python: str = sys.executable,
    extensions: Sequence[str] = ("jupyter_agent_exec",),
) -> Iterator[RealServer]:
    """Start a server, with more environment variables, as what a program starts that is named.

    It has to stop when it is told to.
    """
    environ = {**environment(folder), **environ}
    root_dir, history_dir = folder / "root", folder / "history"
    root_dir.mkdir()
    process = subprocess.Popen(
        [
            *prefix,
            python,
            str(PROJECT / "tests" / "announcing_server.py"),
            f"--ServerApp.jpserver_extensions={dict.fromkeys(extensions, True)}",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={port}",
            "--ServerApp.open_browser=False",
            "--ServerApp.allow_root=True",
            f"--ServerApp.root_dir={root_dir}",
            f"--IdentityProvider.token={TOKEN}",
            f"--AgentExecApp.history_dir={history_dir}",
            f"--AgentExecApp.approval={approval}",
            *options,
        ],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the server did not start; see its log above"
        yield RealServer(json.loads(line)["url"], TOKEN, environ, root_dir, history_dir)
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


class Gate:
    """Code in a kernel that says when it runs and goes on when it is let, without sleeping."""

    def __init__(self, folder: Path) -> None:
        self._started = folder / "started"
        self._go = folder / "go"
        os.mkfifo(self._started)
        os.mkfifo(self._go)

    @property
    def source(self) -> str:
        return (
            f"open({str(self._started)!r}, 'w').close()\n"
            f"open({str(self._go)!r}).read()\n"
            "print('went on')"
        )

    @property
    def deaf_source(self) -> str:
        """Code that the interrupt does not end with which Jupyter begins to end a kernel."""
        return f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{self.source}"

    def wait_until_it_runs(self) -> None:
        self._started.read_text()

    def let_it_go_on(self) -> None:
        self._go.write_text("")


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)
