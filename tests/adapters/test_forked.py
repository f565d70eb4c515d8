"""A program that forks has its sessions and servers for itself: the other process does no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from real_server import environment

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


def output(program: str, folder: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,  # what a forked process waits for may never come
    )
    return ended.stdout


def test_a_server_is_let_go_while_a_forked_process_lives(tmp_path: Path) -> None:
    program = """
import os
from pathlib import Path
from jupyter_agent_exec.own_server.starting import own_server

reader, writer = os.pipe()
with own_server(Path(), log_file=Path("log")):
    forked = os.fork()
    if not forked:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
print(Path("log").read_text())
os.close(writer)
os.waitpid(forked, 0)
"""
    # It is not told before it is killed.
    assert "Shutting down" in output(program, tmp_path)


def test_a_forked_process_has_a_session_of_its_own_and_ends_no_others(tmp_path: Path) -> None:
    program = """
import os
from pathlib import Path
from jupyter_agent_exec.adapters.workplace import Where, Wishes, Workplace

used, unused = (
    Workplace(Where(), Wishes(agent="own", folder=Path(), timeout=60)) for _ in range(2)
)
used.run(["x = 42"])
unused.run(["x = 43"])
if forked := os.fork():
    os.waitpid(forked, 0)
    print(*(place.run(["x"])[0].text for place in (used, unused)))
    used.close()
    unused.close()
else:
    print(used.run(["'x' in dir()"])[0].outputs[0]["data"]["text/plain"])
"""
    assert output(program, tmp_path).split() == ["False", "42", "43"]
