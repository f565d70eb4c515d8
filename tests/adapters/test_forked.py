"""A program that forks has its sessions and servers for itself: the other process does no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real_server import environment

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
from jupyter_agent_exec.own_server.launch import own_server

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
from jupyter_agent_exec.adapters.kernel_session import Target, SessionOptions, KernelSession

used, unused = (
    KernelSession(Target(), SessionOptions(agent="own", folder=Path(), timeout=60))
    for _ in range(2)
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


def test_a_killed_program_leaves_no_server_though_what_it_forked_lives(tmp_path: Path) -> None:
    program = """
import os
import signal
from pathlib import Path
from jupyter_agent_exec.adapters.kernel_session import Target, SessionOptions, KernelSession

reader, writer = os.pipe()
place = KernelSession(Target(), SessionOptions(agent="own", folder=Path(), timeout=60))
(told,) = place.run(["import os; print(os.getppid(), os.getpid())"])
owner = os.getpid()
if os.fork():
    os.kill(owner, signal.SIGKILL)
# What it has forked has its pipes, and goes on.
import psutil
left = [psutil.Process(int(pid)) for pid in told.text.split() if psutil.pid_exists(int(pid))]
gone, alive = psutil.wait_procs(left, timeout=60)
Path("told").write_text(f"{len(gone)} {len(alive)}")
"""
    folder = tmp_path / "run"
    folder.mkdir()
    subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment(folder), check=False
    )
    while not (folder / "told").exists() or not (folder / "told").read_text():
        pass
    assert (folder / "told").read_text().split()[1] == "0"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to another process")
def test_what_code_has_detached_ends_with_the_program(tmp_path: Path) -> None:
    program = """
from pathlib import Path
from jupyter_agent_exec.adapters.kernel_session import Target, SessionOptions, KernelSession

place = KernelSession(Target(), SessionOptions(agent="own", folder=Path(), timeout=60))
source = '''
import os, subprocess, sys
started = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(started.pid)
daemon = "import os, subprocess; print(subprocess.Popen(['sleep', '1000'], stdout=-3).pid)"
print(subprocess.check_output(["setsid", sys.executable, "-c", daemon], text=True))
'''
(told,) = place.run([source])
place.close()
import psutil
print(told.status, [pid for pid in told.text.split() if psutil.pid_exists(int(pid))])
"""
    assert output(program, tmp_path).strip() == "ok []"
