"""Servers and their PostgreSQL, killed at random moments: nothing is lost, nothing is twice.

The environment sets how much: `AGENT_EXEC_SINK_KILLS=100`, with 50 servers in 10 processes.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyter_agent_exec.journal import chain
from tests.real_server import PROJECT
from tests.sinks.far_sides import PostgreSQL, postgresql

KILLS = int(os.environ.get("AGENT_EXEC_SINK_KILLS", "10"))
PROCESSES, SERVERS, JOURNALS = (10, 5, 4) if KILLS >= 100 else (2, 3, 4)


class Group:
    """A process with several servers."""

    def __init__(self, folders: list[Path], cluster: PostgreSQL) -> None:
        sink = {"kind": "postgresql", "address": cluster.address, "delay": 0.05}
        script = str(PROJECT / "tests" / "sinks" / "simulated_servers.py")
        self._command = [sys.executable, script, json.dumps([sink]), str(JOURNALS)]
        self._command += map(str, folders)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def writes(self) -> None:
        """Wait until it writes."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"writing\n"

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> None:
        """Let it end, if it was not killed, and wait until it has."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(150)
        self.process.stdout.close()


@pytest.mark.nightly
def test_nothing_is_lost_and_nothing_is_twice_over_many_kills(tmp_path: Path) -> None:
    dice = random.Random(17)
    folders = [tmp_path / f"server-{n}" for n in range(PROCESSES * SERVERS)]
    with postgresql() as cluster:
        groups = [Group(folders[n::PROCESSES], cluster) for n in range(PROCESSES)]
        try:
            for group in groups:
                group.writes()
            for kill in range(KILLS):
                time.sleep(dice.random() * 0.3)  # the moment is what is tested
                if kill % 5 == 4:
                    cluster.kill()
                    cluster.start()
                else:
                    group = groups[kill % PROCESSES]
                    group.kill()
                    group.start()
                    group.writes()
            for group in groups:
                group.end()
                assert group.process.returncode == 0
        finally:
            for group in groups:
                if group.process.poll() is None:
                    group.kill()
        query = "SELECT n, hash FROM agent_exec_entries WHERE journal = %s ORDER BY n"
        journals = [each for folder in folders for each in folder.glob("ledger-*.jsonl")]
        journals += [each for folder in folders for each in folder.glob("sessions/*/journal.jsonl")]
        entries = 0
        for path in journals:
            name = path.parent.name if path.name == "journal.jsonl" else path.stem
            lines = [chain.parse_line(line) for line in path.read_bytes().splitlines(True)]
            expected = [(line.entry["n"], line.hash) for line in lines]
            assert cluster.rows(query, name) == expected, name
            entries += len(expected)
        assert cluster.rows("SELECT count(*) FROM agent_exec_entries") == [(entries,)]
        assert cluster.rows("SELECT count(*) FROM agent_exec_rewinds") == [(0,)]
        told = f"{len(journals)} journals of {len(folders)} servers, {entries} entries"
        sys.stdout.write(f"{told}, {KILLS} kills\n")
        assert len(journals) >= PROCESSES * SERVERS * 2
