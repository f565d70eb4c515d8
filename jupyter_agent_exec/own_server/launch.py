"""Start a temporary Jupyter server if none is running."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

import msgspec

from ..client.errors import ServerUnreachable
from ..client.servers import Server
from ..errors import UNSUPPORTED_SYSTEM

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 30.0

_LOG_LINES: Final = 15


class _Ready(msgspec.Struct):
    url: str


@contextmanager
def own_server(
    root_dir: Path,
    history_dir: Path | None = None,
    log_file: Path | None = None,
    *,
    token: str | None = None,
    traits: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Server]:
    """Run a Jupyter server with this extension on a free loopback port.

    It reads the user's Jupyter configuration and loads no other extension. It stops when the
    ``with`` block ends or this process dies.

    Parameters
    ----------
    root_dir
        The server's root folder, in which kernels start.
    history_dir
        Folder of the history; the extension's default when None.
    log_file
        File for the server's log and for text that kernels write to their standard output and error
        directly; a temporary file when None.
    token
        The server's token; a new one when None.
    traits
        Further configuration, such as ``ServerApp.port``, in the format of the command line.

    Raises
    ------
    ServerUnreachable
        The server did not start. The message contains the end of its log, or names Windows.
    """
    if sys.platform == "win32":
        raise ServerUnreachable(UNSUPPORTED_SYSTEM)
    creator = os.getpid()
    with tempfile.TemporaryFile() if log_file is None else log_file.open("w+b") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_agent_exec.own_server.server_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            # Ctrl-C must reach only this process. It stops the server later, after it has
            # cancelled the execution.
            start_new_session=True,
        )
        try:
            options = {
                "token": token or secrets.token_hex(24),
                "root_dir": str(root_dir.resolve()),
                "owner": os.getpid(),
                "history_dir": None if history_dir is None else str(history_dir.resolve()),
                "traits": dict(traits),
            }
            yield _started(process, log, options)
        finally:
            if os.getpid() == creator:  # not in a process that the block has forked
                _stop(process)


def _started(process: subprocess.Popen[bytes], log: IO[bytes], options: dict[str, Any]) -> Server:
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = threading.Timer(START_SECONDS, process.kill)
    deadline.start()
    try:
        process.stdin.write(msgspec.json.encode(options) + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except BrokenPipeError:
        line = b""
    finally:
        deadline.cancel()
    if not line:
        process.wait()
        log.seek(0)
        tail = log.read().decode(errors="replace").splitlines()[-_LOG_LINES:]
        raise ServerUnreachable(
            "A Jupyter server could not be started. The end of its log:\n" + "\n".join(tail)
        )
    return Server.at(msgspec.json.decode(line, type=_Ready).url, options["token"])


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # if it has ended already
        # Closing is not enough if a forked process also has the other end open.
        process.stdin.write(b"\n")
        process.stdin.close()
    process.stdout.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
