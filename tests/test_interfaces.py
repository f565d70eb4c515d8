"""The commands of the page on the interfaces are run again, and answered as it says."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from jupyter_agent_exec.client import AgentExecClient
from tests.real_server import PROJECT, RealServer, real_server

PAGE = (PROJECT / "docs" / "tutorials" / "interfaces.md").read_text()
INTERFACE = pytest.mark.parametrize("interface", ["HTTP", "The command line"])
MARK = "--- typed ---"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def environ(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An agent's, with a token that a person gave it."""
    commands = tmp_path_factory.mktemp("bin")
    command = commands / "jupyter-agent-exec"  # as it is where the package is installed
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m jupyter_agent_exec.cli "$@"\n')
    command.chmod(0o755)
    folders = [commands, Path(sys.executable).parent, server.environ["PATH"]]
    with AgentExecClient(server.url, server.token) as person:
        secret = person.mint_token("interfaces").secret
    return server.environ | {
        "JUPYTER_AGENT_EXEC_URL": server.url.rstrip("/"),
        "JUPYTER_AGENT_EXEC_TOKEN": secret,
        "PATH": os.pathsep.join(map(str, folders)),
        "NO_PROXY": "*",
    }


def blocks(interface: str, language: str) -> list[str]:
    section = PAGE.partition(f"\n## {interface}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def typed(block: str) -> list[tuple[str, str]]:
    """Return each command of a transcript, with what it answered."""
    parts = re.findall(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    return [(command.replace("\n> ", "\n"), answer) for command, answer in parts]


@INTERFACE
def test_what_is_typed_is_answered_so(
    interface: str, environ: dict[str, str], tmp_path: Path
) -> None:
    (block,) = blocks(interface, "console")
    transcript = typed(block)
    assert len(transcript) > 3
    script = "".join(f"{command}\necho; echo '{MARK}'\n" for command, _ in transcript)
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{script}"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    answers = done.stdout.split(f"{MARK}\n")
    checker = doctest.OutputChecker()
    for (command, expected), answer in zip(transcript, answers, strict=False):
        assert checker.check_output(
            f"{expected.strip()}\n", f"{answer.strip()}\n", doctest.ELLIPSIS
        ), f"{command}\nanswered\n{answer}\nnot\n{expected}"
    (notebook,) = tmp_path.glob("*.ipynb")
    nbformat.validate(nbformat.read(notebook, as_version=4))


@pytest.mark.parametrize("interface", ["Python", "MCP"])
def test_the_program_does_what_it_asserts(
    interface: str, environ: dict[str, str], tmp_path: Path
) -> None:
    (program,) = blocks(interface, "python")
    assert "assert" in program
    subprocess.run([sys.executable, "-c", program], env=environ, cwd=tmp_path, check=True)
