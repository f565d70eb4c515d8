"""The far sides of sinks: real programs, each started by the tests that use it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


def until(condition: Callable[[], object], timeout: float = 60) -> None:
    """Wait until something is so; fail if it does not become so."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"not within {timeout} s"
        time.sleep(0.02)


class PostgreSQL:
    """A cluster of our own, which listens on a socket in its folder."""

    def __init__(self, folder: Path, user: str) -> None:
        self._bin = POSTGRESQL[-1].parent
        self._user = user
        self._data = folder / "data"
        self.address = f"postgresql:///postgres?host={folder}&user={user}"
        self._run("initdb", "--auth=trust", "--no-sync", f"--username={user}", f"-D{self._data}")
        settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        self._options = ("-w", f"-D{self._data}", f"-l{folder / 'log'}", f"-o{settings}")

    def _run(self, command: str, *options: str) -> None:
        mine = self._user == pwd.getpwuid(os.getuid()).pw_name
        subprocess.run(
            [self._bin / command, *options],
            user=None if mine else self._user,
            cwd=self._data.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=60,
            check=True,
        )

    def start(self) -> None:
        self._run("pg_ctl", "start", *self._options)

    def kill(self) -> None:
        """End it as a machine without power does."""
        self._run("pg_ctl", "stop", "-mimmediate", f"-D{self._data}")

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.address, autocommit=True) as connection:
            return connection.execute(query, values).fetchall()  # type: ignore[call-overload]

    def do(self, command: str) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(command)  # type: ignore[call-overload]


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """Start a cluster; skip the test where there is no PostgreSQL."""
    if not POSTGRESQL:
        pytest.skip("there is no PostgreSQL here: scripts/apt-install postgresql")
    user = pwd.getpwuid(os.getuid()).pw_name
    if os.getuid() == 0:
        user = "postgres"
    folder = Path(tempfile.mkdtemp(prefix="agent-exec-pg-"))
    try:
        if os.getuid() == 0:
            shutil.chown(folder, user)
        cluster = PostgreSQL(folder, user)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.kill()
    finally:
        shutil.rmtree(folder)
