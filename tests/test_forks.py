"""Kernels that are forked are like those that are started."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.client import AgentExecClient, Session
from tests.real_server import Gate, RealServer, gate, real_server

__all__ = ["gate"]

OF_A_KERNEL = """
import json, os, resource, signal, sys, threading
found = {
    "arguments": [word for word in sys.argv if not word.endswith(".json")],
    "command": len(sys.orig_argv),
    "shown": [
        word for word in open("/proc/self/cmdline").read().split("\\0")[1:]
        if word and not word.endswith(".json")
    ],
    "path": sys.path,
    "name": __name__,
    "folder": os.getcwd(),
    "leads its group": os.getpgid(0) == os.getpid() == os.getsid(0),
    "signals": {
        name: str(signal.getsignal(getattr(signal, name)))
        for name in ("SIGINT", "SIGTERM", "SIGCHLD", "SIGPIPE", "SIGHUP")
    },
    "threads": sorted(each.name.split("-")[0] for each in threading.enumerate()),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "flags": str(sys.flags),
    "umask": oct(os.umask(0o022)),
    "variables": sorted(name for name in globals() if not name.startswith("_")),
    "environment": {
        name: value for name, value in os.environ.items() if name != "JPY_PARENT_PID"
    },
}
print(json.dumps(found))
"""
OF_A_PROCESS = "import os; print(os.getpid(), os.getppid(), os.environ['JPY_PARENT_PID'])"


def told(session: Session, source: str) -> str:
    result = session.run(source, timeout=60)
    assert result.ok, result.text
    return result.text


def kernel_of(folder: Path, notebook: str | None, *, is_forked: bool) -> dict[str, Any]:
    with (
        real_server(folder, is_forked=is_forked) as server,
        AgentExecClient(server.url, server.token) as client,
        client.open_session("tester", notebook=notebook, create=notebook is not None) as session,
    ):
        text = told(session, OF_A_KERNEL).replace(str(folder), "FOLDER")
        return dict(json.loads(text))


@pytest.mark.parametrize("notebook", [None, "a.ipynb"], ids=["ours", "Jupyter's"])
def test_a_forked_kernel_is_like_one_that_is_started(tmp_path: Path, notebook: str | None) -> None:
    folders = [tmp_path / name for name in ("forked", "started")]
    for folder in folders:
        folder.mkdir()
    forked, started = (
        kernel_of(folder, notebook, is_forked=folder.name == "forked") for folder in folders
    )
    for what, here in started.items():
        assert (what, forked[what]) == (what, here)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with real_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def session(server: RealServer) -> Any:
    with (
        AgentExecClient(server.url, server.token) as client,
        client.open_session("tester") as session,
    ):
        yield session


def test_a_forked_kernel_is_interrupted_restarted_and_dies(session: Session, gate: Gate) -> None:
    pid, parent, named = told(session, OF_A_PROCESS).split()
    assert named == parent
    assert "forks.py" in Path("/proc", parent, "cmdline").read_text()
    with ThreadPoolExecutor() as pool:
        running = pool.submit(session.run, gate.source)
        gate.wait_until_it_runs()
        session.interrupt()
        assert running.result(60).status == "interrupted"
    assert told(session, OF_A_PROCESS).split()[0] == pid
    session.restart()
    again = told(session, OF_A_PROCESS).split()[0]
    assert again != pid
    assert not Path("/proc", pid).exists()
    assert session.run("import os; os._exit(7)").status == "kernel_died"
    assert not Path("/proc", again).exists()
