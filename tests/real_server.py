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
from typing import IO, Any, NamedTuple

import pytest

from tests.forks import Forks, KernelForks

PROJECT = Path(__file__).parent.parent
TOKEN = "a-token-of-the-tests"

SERVICES = (
    *("api", "config", "contents", "events", "kernels", "kernelspecs", "nbconvert"),
    *("security", "sessions"),
)
"""Jupyter Server's services that it imports when it starts."""

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


_SERVER_FORKS = Forks(
    "jupyter_agent_exec.app",
    "jupyter_server.serverapp",
    "tornado.platform.asyncio",
    *(f"jupyter_server.services.{name}.handlers" for name in SERVICES),
    **environment(Path()),
)
_KERNEL_FORKS = KernelForks(**environment(Path()))


def start_server(
    folder: Path,
    *options: str,
    approval: dict[str, str],
    port: int = 0,
    environ: Mapping[str, str],
    wrapper: Sequence[str] = (),
    python: str = sys.executable,
    extensions: Sequence[str] = ("jupyter_agent_exec",),
    stderr: IO[str] | None = None,
    is_forked: bool,
    forks_kernels: bool,
) -> subprocess.Popen[Any]:
    """Start a server that serves `folder / "root"`, and says on its output when it listens.

    Parameters
    ----------
    wrapper
        A command that ends by executing the one it is given.
    is_forked
        Whether it may be forked from a process that has imported what it imports.
    forks_kernels
        Whether its kernels may be forked. They are not its children then.
    """
    command = [
        *wrapper,
        python,
        str(PROJECT / "tests" / "announcing_server.py"),
        f"--ServerApp.jpserver_extensions={dict.fromkeys(extensions, True)}",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.open_browser=False",
        "--ServerApp.allow_root=True",
        f"--ServerApp.root_dir={folder / 'root'}",
        f"--IdentityProvider.token={TOKEN}",
        f"--AgentExecApp.history_dir={folder / 'history'}",
        f"--AgentExecApp.approval={approval}",
        "--AgentExecApp.warm_kernels=0",  # half of the kernels that tests would start are not used
        *options,
    ]
    is_own = python == sys.executable
    if forks_kernels and is_own and _KERNEL_FORKS.can_start(environ):
        command.append(f"--AnnouncingServer.kernel_forks={_KERNEL_FORKS.address()}")
    if wrapper or not is_forked or not is_own or not _SERVER_FORKS.can_start(environ):
        return subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    output, its_output = os.pipe()
    errors = 2 if stderr is None else stderr.fileno()
    with open(os.devnull) as nothing, open(its_output, "w") as out:
        streams = nothing.fileno(), out.fileno(), errors
        process = _SERVER_FORKS.start(command, environ, os.getcwd(), streams)
    process.stdout = os.fdopen(output)  # type: ignore[assignment]
    return process


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
    is_forked: bool = True,
) -> Iterator[RealServer]:
    """Start a server, with more environment variables, as what a program starts that is named.

    It has to stop when it is told to.
    """
    environ = {**environment(folder), **environ}
    root_dir, history_dir = folder / "root", folder / "history"
    root_dir.mkdir()
    process = start_server(
        folder,
        *options,
        approval=approval,
        port=port,
        environ=environ,
        wrapper=prefix,
        python=python,
        extensions=extensions,
        stderr=stderr,
        is_forked=is_forked,
        forks_kernels=is_forked,
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
