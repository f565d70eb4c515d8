"""What the first tutorial says is done, as it says; the test is the reader and the browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agent_exec.client import AgentExecClient
from tests.person import person_at, runs
from tests.real_server import PROJECT, RealServer, real_server

PAGE = (PROJECT / "docs" / "tutorials" / "first-agent.md").read_text(encoding="utf-8")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    with real_server(tmp_path, approval={}) as running:
        yield running


def block(step: int, language: str) -> str:
    section = PAGE.partition(f"\n## {step}. ")[2].partition("\n## ")[0]
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return str(found)


def test_an_agent_works_in_the_notebook_once_the_reader_approves(server: RealServer) -> None:
    (server.root_dir / "agent.py").write_text(block(3, "python"))
    assert block(3, "bash") == "python agent.py\n"
    with person_at(server) as reader:
        reader.writes("rain.ipynb", block(2, "python"))
        with reader.at(reader.opens("rain.ipynb")) as kernel:
            assert runs(kernel, block(2, "python")) == "ok"
        agent = subprocess.Popen(
            [sys.executable, "agent.py"],
            env=server.environ,
            cwd=server.root_dir,
            stdout=subprocess.PIPE,
            text=True,
        )
        with AgentExecClient(server.url, server.token) as user:
            while not (pending := user.approvals().executions):
                assert agent.poll() is None
            (asking,) = pending
            user.approve(asking.id, asking.source_sha256)
        said, _ = agent.communicate(timeout=120)
        assert said == block(4, "text")
        sources = [cell.source for cell in reader.reads("rain.ipynb").cells]
        assert sources[1:] == re.findall(r'session\.run\("(.*?)"', block(3, "python"))
    _check(server)


def _check(server: RealServer) -> None:
    """Type the commands of the last step; each answers so."""
    command = server.root_dir / "jupyter-agent-exec"  # as it is where the package is installed
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m jupyter_agent_exec.cli "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join(map(str, (server.root_dir, Path(sys.executable).parent)))
    told = re.findall(r"^\$ (.*)\n(.*)$", block(5, "console"), re.MULTILINE)
    assert len(told) == 2
    environ = server.environ | {"PATH": f"{path}{os.pathsep}{server.environ['PATH']}"}
    for words, answer in told:
        if "verify" in words:
            words = f"{words} --history {server.history_dir}"
        done = subprocess.run(
            words, shell=True, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        for part in filter(None, answer.split("...")):
            assert part in done.stdout + done.stderr
