"""`jupyter agent-exec` in a process of its own, as people run it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tests.forks import ForkedProcess, Forks
from tests.real_server import environment

_OPTIONS = ("-W", "error")
COMMAND = [sys.executable, *_OPTIONS, "-m", "jupyter_agent_exec.cli"]

FORKS = Forks("jupyter_agent_exec.cli", "tqdm", options=_OPTIONS, **environment(Path()))


class Started:
    """A command that runs. It leads a process group, so that a Ctrl-C can be sent to it."""

    def __init__(self, process: ForkedProcess, out: int, errors: int) -> None:
        self.process = process
        self.stdout = os.fdopen(out, encoding="utf-8")
        self.stderr = os.fdopen(errors, encoding="utf-8")

    def communicate(self) -> tuple[str, str]:
        """Wait until it has ended; return what it wrote to standard output and error."""
        with self.stdout, self.stderr, ThreadPoolExecutor() as threads:
            out, errors = threads.map(lambda stream: stream.read(), (self.stdout, self.stderr))
        self.process.wait(60)
        return out, errors

    @property
    def returncode(self) -> int | None:
        return self.process.returncode

    def ctrl_c(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)


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

    def start(self, *words: str) -> Started:
        (out, their_out), (errors, their_errors) = os.pipe(), os.pipe()
        with open(os.devnull) as nothing:
            streams = nothing.fileno(), their_out, their_errors
            process = FORKS.start([*COMMAND, *words], self.environ, self.folder, streams)
        os.close(their_out)
        os.close(their_errors)
        return Started(process, out, errors)


def at_terminal(cli: Cli, *words: str, typed: str = "", **environ: str) -> tuple[int, str]:
    """Run a command at a terminal; return its exit code and what the terminal shows."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    streams = theirs, theirs, theirs
    process = FORKS.start([*COMMAND, *words], cli.environ | environ, cli.folder, streams)
    os.close(theirs)
    if typed:
        os.write(ours, f"{typed}\n".encode())
    shown = b""
    # Linux reports an error when the other end of a terminal is closed.
    with suppress(OSError):
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    return process.wait(), shown.decode().replace("\r\n", "\n")
