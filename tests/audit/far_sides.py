"""The far sides of sinks: real programs, each started by the tests that use it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

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


RSYSLOG = shutil.which("rsyslogd", path="/usr/sbin:/usr/bin:/sbin")
HAS_GTLS = any(Path("/usr/lib").glob("*/rsyslog/lmnsd_gtls.so"))


class Rsyslog:
    """An rsyslog that takes messages over TCP, and over TLS if it has a certificate."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.messages = folder / "messages"
        self.ca_file = folder / "certificate.pem"
        self._config = folder / "rsyslog.conf"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, tls: bool) -> None:
        driver = ""
        if tls:
            driver = 'streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="anon"'
        key = self._folder / "key.pem"
        if tls and not key.exists():
            subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject,
                 "-keyout", key, "-out", self.ca_file],
                check=True, capture_output=True, timeout=60,
            )  # fmt: skip
        files = ""
        if tls:
            files = (
                f'defaultNetstreamDriverCAFile="{self.ca_file}" '
                f'defaultNetstreamDriverCertFile="{self.ca_file}" '
                f'defaultNetstreamDriverKeyFile="{key}"'
            )
        self._config.write_text(
            f'global(workDirectory="{self._folder}" maxMessageSize="64k" '
            f'parser.escapeControlCharactersOnReceive="off" {files})\n'
            'module(load="imtcp")\n'
            'template(name="kept" type="string" string="%pri% %hostname% %msg%\\n")\n'
            f'input(type="imtcp" address="127.0.0.1" port="{self.port}" {driver})\n'
            f'action(type="omfile" file="{self.messages}" template="kept")\n'
        )
        assert RSYSLOG is not None
        command = [RSYSLOG, "-n", "-f", str(self._config), "-i", str(self._folder / "pid")]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self._listens)

    def _listens(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def halt(self) -> None:
        """Let it read nothing more; the system still takes connections for it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def lines(self) -> list[str]:
        return self.messages.read_text().splitlines() if self.messages.exists() else []


@contextmanager
def rsyslog() -> Iterator[Rsyslog]:
    """Return an rsyslog that is not started yet; skip the test where there is none."""
    if RSYSLOG is None or not HAS_GTLS:
        pytest.skip("there is no rsyslog here: scripts/apt-install rsyslog rsyslog-gnutls")
    with tempfile.TemporaryDirectory(prefix="agent-exec-rsyslog-") as folder:
        server = Rsyslog(Path(folder))
        try:
            yield server
        finally:
            server.kill()


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


class Collector(ThreadingHTTPServer):
    """Takes OTLP over HTTP, as a collector does; `records` and `spans` have what came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _CollectorHandler)
        self.records: list[LogRecord] = []
        self.spans: list[Span] = []
        self.refuses = False
        self.address = f"http://127.0.0.1:{self.server_address[1]}/v1/logs"


class _CollectorHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        collector = self.server
        assert isinstance(collector, Collector)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/traces":
            for traced in ExportTraceServiceRequest.FromString(body).resource_spans:
                for each in traced.scope_spans:
                    collector.spans.extend(each.spans)
        elif not collector.refuses:
            told = ExportLogsServiceRequest.FromString(body)
            for resource in told.resource_logs:
                for scope in resource.scope_logs:
                    collector.records.extend(scope.log_records)
        answer = ExportLogsServiceResponse().SerializeToString()
        self.send_response(400 if collector.refuses else 200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
