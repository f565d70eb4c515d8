"""`jupyter agent-exec` in a process of its own, as people run it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-W", "error", "-m", "jupyter_agent_exec.cli"]


class Cli:
    """Run `jupyter agent-exec` in a process of its own, as people do."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self.environ = environ
        self.folder = folder

    def __call__(self, *words: str, stdin: str = "", **environ: str) -> Any:
        return subprocess.run(
            [*COMMAND, *words],
            env=self.environ | environ,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *words],
            env=self.environ,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            # A process group of its own, so that a Ctrl-C can be sent to it as a terminal does.
            start_new_session=True,
        )


def ctrl_c(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)
