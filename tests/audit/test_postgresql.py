"""The record, copied to a real PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.journal.history import History
from tests.audit.far_sides import PostgreSQL, postgresql
from tests.journal.recorded import closed, new_history, opened, run, stream
from tests.real_server import until


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgreSQL]:
    with postgresql() as cluster:
        yield cluster


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "history"


def history_into(folder: Path, cluster: PostgreSQL, **options: Any) -> History:
    sink = {"kind": "postgresql", "address": cluster.address, "delay": 0, **options}
    return new_history(folder, make_sinks([sink]))


def up_to_date(history: History) -> bool:
    return set(history.copies.lags().values()) == {0}


def in_database(cluster: PostgreSQL, journal: str) -> list[tuple[str, str]]:
    query = "SELECT hash, entry FROM agent_exec_entries WHERE journal = %s ORDER BY n"
    return cluster.rows(query, journal)


def on_disk(folder: Path, session: str) -> list[tuple[str, str]]:
    path = folder / "sessions" / session / "journal.jsonl"
    lines = [chain.parse_line(line) for line in path.read_bytes().splitlines(keepends=True)]
    return [(line.hash, line.canonical.decode()) for line in lines]


def test_entries_arrive_to_the_byte_with_what_was_chosen(cluster, folder):
    history = history_into(folder, cluster, content="outputs", server="lab-7")
    try:
        session = history.open_session(opened(title="Émile \x00 \U0001f600"))
        execution = run(session, 1, "π = 3", [stream("Grüße\n"), stream("x" * 20_000, "stderr")])
        session.close(closed())
        until(lambda: up_to_date(history))
    finally:
        history.stop()
    assert in_database(cluster, session.session_id) == on_disk(folder, session.session_id)
    payloads = cluster.rows(
        "SELECT data FROM agent_exec_payloads WHERE journal = %s", session.session_id
    )
    assert "π = 3".encode() in {bytes(data) for (data,) in payloads}
    assert b"x" * 20_000 in {bytes(data) for (data,) in payloads}
    facts = cluster.rows(
        "SELECT DISTINCT server, execution_id FROM agent_exec_entries WHERE journal = %s AND type ="
        " 'finished'",
        session.session_id,
    )
    assert facts == [("lab-7", execution)]


def test_a_database_that_dies_gets_all_when_it_is_back(cluster, folder):
    history = history_into(folder, cluster)
    try:
        session = history.open_session(opened())
        until(lambda: up_to_date(history))
        cluster.kill()
        run(session, 1, "meanwhile", [])
        until(lambda: history.copies.status()[0].error)
        cluster.start()
        until(lambda: up_to_date(history))
        assert in_database(cluster, session.session_id) == on_disk(folder, session.session_id)
    finally:
        history.stop()


def test_what_comes_twice_is_there_once_and_what_is_there_is_never_replaced(cluster, folder):
    history = history_into(folder, cluster)
    session = history.open_session(opened())
    run(session, 1, "1", [])
    until(lambda: up_to_date(history))
    history.stop()
    cursor = folder / "sinks" / "postgresql" / session.session_id
    cursor.unlink()  # as if the server had been killed before it kept it
    history = history_into(folder, cluster)
    try:
        until(lambda: up_to_date(history))
    finally:
        history.stop()
    assert in_database(cluster, session.session_id) == on_disk(folder, session.session_id)


def test_a_role_that_may_only_insert_is_enough(cluster, folder):
    history = history_into(folder, cluster)  # makes the tables
    until(lambda: up_to_date(history))
    history.stop()
    cluster.do("CREATE ROLE agent_exec LOGIN")
    for table in ("entries", "payloads", "rewinds"):
        cluster.do(f"GRANT INSERT ON agent_exec_{table} TO agent_exec")
    address = cluster.address.rpartition("user=")[0] + "user=agent_exec"
    with psycopg.connect(address) as connection, pytest.raises(psycopg.Error):
        connection.execute("SELECT * FROM agent_exec_entries")
    sink = {"kind": "postgresql", "name": "insert-only", "address": address, "delay": 0}
    history = new_history(folder, make_sinks([sink]))
    try:
        session = history.open_session(opened())
        until(lambda: up_to_date(history))
    finally:
        history.stop()
    (row,) = in_database(cluster, session.session_id)
    assert json.loads(row[1])["type"] == "opened"


def test_two_servers_that_make_the_tables_at_once_both_succeed(cluster, tmp_path):
    cluster.do("CREATE SCHEMA fresh")
    histories = [history_into(tmp_path / name, cluster, schema="fresh") for name in ("a", "b")]
    try:
        until(lambda: all(up_to_date(history) for history in histories))
        assert all(history.copies.status()[0].error is None for history in histories)
    finally:
        for history in histories:
            history.stop()
    ((count,),) = cluster.rows("SELECT count(DISTINCT journal) FROM fresh.agent_exec_entries")
    assert count == 2
