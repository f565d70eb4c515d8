"""Where the system is Windows, as far as `like_windows.py` can make it so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from jupyter_agent_exec.errors import UNSUPPORTED_SYSTEM
from tests.real_server import PROJECT, TOKEN, RealServer, environment, real_server

LIKE_WINDOWS = (sys.executable, str(PROJECT / "tests" / "like_windows.py"))
LOOK = """
import os, signal, sys
from importlib.util import find_spec

assert sys.platform == "win32"
assert not hasattr(os, "geteuid") and not hasattr(signal, "SIGKILL")
for name in ("fcntl", "resource", "pwd"):
    try:
        find_spec(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(name)
"""
CLIENT = """
from jupyter_agent_exec.client import AgentExecClient

with AgentExecClient() as client, client.open_session("analyst") as session:
    print(session.run("6 * 7").text)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("elsewhere")) as running:
        yield running


def run(server: RealServer, *words: str | Path) -> subprocess.CompletedProcess[str]:
    environ = server.environ | {
        "JUPYTER_AGENT_EXEC_URL": server.url,
        "JUPYTER_AGENT_EXEC_TOKEN": server.token,
    }
    return subprocess.run(
        [*LIKE_WINDOWS, *words],
        env=environ,
        cwd=server.root_dir,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_looks_like_windows(server: RealServer, tmp_path: Path) -> None:
    script = tmp_path / "look.py"
    script.write_text(LOOK)
    done = run(server, script)
    assert done.returncode == 0, done.stderr


def test_the_client_runs_code(server: RealServer, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(CLIENT)
    done = run(server, script)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


def test_the_command_line_runs_code_lists_exports_and_verifies(server: RealServer) -> None:
    cli = "jupyter_agent_exec.cli"
    ran = run(server, cli, "run", "print(6 * 7)", "--keep")
    assert (ran.returncode, ran.stdout) == (0, "42\n"), ran.stderr
    listed = run(server, cli, "search", "print")
    assert "«print»(6 * 7)" in listed.stdout, listed.stderr
    (session,) = {word for word in ran.stderr.split() if word.startswith("s_")}
    exported = run(server, cli, "export", session)
    assert exported.returncode == 0, exported.stderr
    verified = run(server, cli, "verify", "--history", server.history_dir)
    assert "Whole" in verified.stdout, verified.stderr


def test_no_server_is_started_and_a_sentence_says_why(server: RealServer) -> None:
    elsewhere = server._replace(url="", token="", environ=environment(server.root_dir / "none"))
    done = run(elsewhere, "jupyter_agent_exec.cli", "run", "1")
    assert done.returncode == 3
    assert UNSUPPORTED_SYSTEM in done.stderr
    assert "Traceback" not in done.stderr


def test_a_jupyter_server_goes_on_without_the_extension_and_says_why(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as written:
        process = subprocess.Popen(
            [
                *(*LIKE_WINDOWS, PROJECT / "tests" / "announcing_server.py"),
                "--ServerApp.jpserver_extensions={'jupyter_agent_exec': True}",
                *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", "--ServerApp.port_retries=0"),
                *("--ServerApp.open_browser=False", "--ServerApp.allow_root=True"),
                *(f"--ServerApp.root_dir={tmp_path}", f"--IdentityProvider.token={TOKEN}"),
            ],
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
        )
        assert process.stdout is not None
        try:
            announced = process.stdout.readline()
            assert announced, log.read_text()
            url = announced.partition('"url": "')[2].partition("?")[0].partition('"')[0]
            with httpx2.Client(
                headers={"Authorization": f"token {TOKEN}"}, trust_env=False
            ) as http:
                assert http.get(f"{url}api/kernelspecs").status_code == 200
                assert http.get(f"{url}api/agent-exec/sessions").status_code == 404
        finally:
            process.terminate()
            process.wait(60)
            process.stdout.close()
    assert UNSUPPORTED_SYSTEM in log.read_text()
    assert "Traceback" not in log.read_text()
