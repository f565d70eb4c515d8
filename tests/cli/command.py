"""`jupyter agent-exec` in a process of its own, as people run it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tests.forks import Forks
from tests.real_server import environment

_OPTIONS = ("-W", "error")
COMMAND = [sys.executable, *_OPTIONS, "-m", "jupyter_agent_exec.cli"]

FORKS = Forks(
    *(f"jupyter_agent_exec.{name}" for name in ("cli.check", "cli.listings", "cli.run", "client")),
    options=_OPTIONS,
    **environment(Path()),
)


class Cli:
    """Run `jupyter agent-exec` in a process of its own, as people do."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self.environ = environ
        self.folder = folder

    def __call__(
        self, *words: str, stdin: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        command, env = [*COMMAND, *words], self.environ | environ
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as errors:
            given.write(stdin.encode())
            given.seek(0)
            streams = given.fileno(), out.fileno(), errors.fileno()
            if FORKS.can_start(env):
                code = FORKS.start(command, env, self.folder, streams).wait()
            else:
                names = ("stdin", "stdout", "stderr")
                options: Any = dict(zip(names, streams, strict=True))
                code = subprocess.call(command, env=env, cwd=self.folder, **options)
            texts = []
            for stream in (out, errors):
                stream.seek(0)
                texts.append(stream.read().decode())
        return subprocess.CompletedProcess(command, code, *texts)

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


def at_terminal(cli: Cli, *words: str, typed: str = "", **environ: str) -> tuple[int, str]:
    """Run a command at a terminal; return its exit code and what the terminal shows."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words],
        env=cli.environ | environ,
        cwd=cli.folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        if typed:
            os.write(ours, f"{typed}\n".encode())
        shown = b""
        # Linux reports an error when the other end of a terminal is closed.
        with suppress(OSError):
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")


def ctrl_c(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)
