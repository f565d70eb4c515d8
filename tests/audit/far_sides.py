"""The far sides of sinks: real programs, each started by the tests that use it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.ports import free_port
from tests.real_server import until

POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


class PostgreSQL:
    """A cluster of our own, which listens on a socket in its folder.

    Without other settings, it does not sync.
    """

    def __init__(self, folder: Path, user: str, settings: str = "-c fsync=off") -> None:
        self._bin = POSTGRESQL[-1].parent
        self._user = user
        self._data = folder / "data"
        self.address = f"postgresql:///postgres?host={folder}&user={user}"
        self._run("initdb", "--auth=trust", "--no-sync", f"--username={user}", f"-D{self._data}")
        settings += f" -c listen_addresses='' -c unix_socket_directories={folder}"
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
def postgresql(**settings: str) -> Iterator[PostgreSQL]:
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
        cluster = PostgreSQL(folder, user, **settings)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.kill()
    finally:
        shutil.rmtree(folder)


MOTO = Path(__file__).parents[2] / ".make" / "moto" / "bin" / "moto_server"


@contextmanager
def object_store() -> Iterator[dict[str, Any]]:
    """Start moto's S3 server with a bucket; yield the fields of a sink that writes there."""
    if not MOTO.exists():
        pytest.skip("there is no S3 server here: make .make/far-sides")
    port = free_port()
    process = subprocess.Popen(
        [MOTO, "-H", "127.0.0.1", "-p", str(port)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{port}"

        def has_bucket() -> bool:
            try:
                return httpx2.put(f"{address}/audit", trust_env=False).status_code == 200
            except httpx2.TransportError:
                return False

        until(has_bucket)
        options = {
            "endpoint": address,
            "region": "us-east-1",
            "access_key_id": "writer",
            "secret_access_key": "secret",
        }
        yield {"kind": "object-store", "url": "s3://audit/servers", "options": options, "delay": 0}
    finally:
        process.terminate()
        process.wait(30)
