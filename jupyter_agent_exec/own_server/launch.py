"""Start a Jupyter server for as long as it is needed, where none runs."""

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

    It reads the person's Jupyter configuration, loads no other extension, and stops when the block
    ends or this process dies.

    Parameters
    ----------
    root_dir
        The folder it serves, and in which kernels start.
    history_dir
        Where its history is kept; the extension's default when None.
    log_file
        Where its log, and what its kernels write outside of the protocol, is kept; nowhere when
        None.
    token
        Its credential; a new one when None.
    traits
        What else is configured, such as ``ServerApp.port``, as the command line takes it.

    Raises
    ------
    ServerUnreachable
        It did not start; the message holds the end of its log.
    """
    creator = os.getpid()
    with tempfile.TemporaryFile() if log_file is None else log_file.open("w+b") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_agent_exec.own_server.server_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            # A Ctrl-C is for us; we let it go when the execution is cancelled.
            start_new_session=os.name != "nt",
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
            if os.getpid() == creator:  # not in a process that was forked in the block
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
