"""The SQL of docs/how-to/sinks.md, on a real PostgreSQL: checks, queries, removal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from ulid import ULID

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.types import SessionId
from tests.audit.documented import SESSION, blocks, queries
from tests.audit.far_sides import PostgreSQL, postgresql
from tests.journal.recorded import accepted, closed, finished, new_execution_id, new_history, opened
from tests.real_server import until

FILL = """
INSERT INTO agent_exec_entries
    (journal, n, hash, entry, server, type, at, execution_id)
SELECT agent_exec_session(opened) || lpad(s::text, 16, '0'), n, md5(s::text || n), '{}', 'far',
    (ARRAY['opened', 'accepted', 'finished'])[1 + n % 3], opened + n * interval '1 second',
    CASE WHEN n % 3 > 0 THEN 'x_' || s || '-' || n END
FROM generate_series(1, 3000) AS s, generate_series(0, 20) AS n,
    LATERAL (SELECT '2026-11-01'::timestamptz + s * interval '15 minutes' AS opened) AS o;
INSERT INTO agent_exec_payloads (journal, digest, data)
SELECT journal, hash, 'read_csv' FROM agent_exec_entries WHERE type = 'accepted';
ANALYZE;
"""
"""Entries of a month, of which a day is a thirtieth."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgreSQL]:
    with postgresql() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgreSQL]:
    """The tables of the sink in a cluster of its own, with a short real record and many entries."""
    with postgresql() as cluster:
        send(cluster, tmp_path_factory.mktemp("filled") / "one", "2026-11-20")
        for command in blocks("Keep it for a time")[0]:
            cluster.do(command)
        cluster.do(FILL)
        yield cluster


def fresh(cluster: PostgreSQL) -> None:
    cluster.do("DROP SCHEMA IF EXISTS public CASCADE")
    cluster.do("CREATE SCHEMA public")


def send(cluster: PostgreSQL, folder: Path, *days: str) -> list[str]:
    """Have a server record and send a session of each day; return their ids."""
    sink = {"kind": "postgresql", "address": cluster.address, "delay": 0, "content": "sources"}
    history = new_history(folder, make_sinks([sink]))
    sessions = []
    try:
        for day in days:
            at = f"{day}T09:00:00.000Z"
            id = SessionId(f"s_{ULID.from_datetime(datetime.fromisoformat(at))}")
            session = history.open_session(replace(opened(at=at), session_id=id))
            execution_id = new_execution_id()
            entry, payload = accepted(execution_id, 1, "read_csv('a')", at=at)
            end, payloads = finished(execution_id, [])
            session.append([entry, replace(end, at=at)], [payload, *payloads])
            session.close(replace(closed(), at=at))
            sessions.append(str(id))
        until(lambda: set(history.copies.lags().values()) == {0})
    finally:
        history.stop()
    return sessions


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from nodes(each)


def explained(cluster: PostgreSQL, query: str, *values: object) -> list[dict[str, Any]]:
    """Return the nodes of a plan that read tables of ours, with how many rows they went over."""
    ((told,),) = cluster.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", *values)
    [plan] = told if isinstance(told, list) else json.loads(told)
    found = nodes(plan["Plan"])
    return [each for each in found if "agent_exec_" in each.get("Relation Name", "")]


def reads_all(read: list[dict[str, Any]]) -> bool:
    """Return whether a plan reads a whole table that has rows."""
    return any(
        each["Node Type"] == "Seq Scan"
        and each["Actual Rows"] + each.get("Rows Removed by Filter", 0) > 10
        for each in read
    )


@pytest.mark.parametrize("what", queries())
def test_no_documented_query_reads_a_whole_table(filled, what):
    ((session,),) = filled.rows("SELECT max(journal) FROM agent_exec_entries WHERE n = 5")
    query = queries()[what].replace(SESSION, session)
    read = explained(filled, query.replace("%", "%%"))
    assert read
    assert not reads_all(read)
    assert filled.rows(query.replace("%", "%%"))


def test_a_query_that_reads_a_whole_table_is_found(filled):
    assert reads_all(explained(filled, "SELECT * FROM agent_exec_entries WHERE entry = 'x'"))


def test_an_id_of_a_moment_is_that_of_a_session_opened_then(filled):
    moment = datetime(2026, 12, 1, 3, 4, 5, 678000, tzinfo=UTC)
    ((told,),) = filled.rows("SELECT agent_exec_session(%s)", moment)
    assert told == f"s_{ULID.from_datetime(moment)}"[:12]


def told(cluster: PostgreSQL) -> list[list[str]]:
    """Return the journals that each of the checks names."""
    cluster.do("CREATE EXTENSION IF NOT EXISTS pgcrypto")
    [checks] = blocks("Check it with SQL")
    return [[journal for journal, *_ in cluster.rows(check)] for check in checks]


def test_a_record_that_is_as_it_was_sent_is_whole(cluster, tmp_path):
    fresh(cluster)
    send(cluster, tmp_path / "one", "2026-11-20", "2026-11-21")
    send(cluster, tmp_path / "two", "2026-11-20")
    assert told(cluster) == [[], [], [], []]


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("UPDATE agent_exec_entries SET entry = replace(entry, '60.0', '9') WHERE {1}", 0),
        ("DELETE FROM agent_exec_entries WHERE {1}", 0),
        (
            "INSERT INTO agent_exec_entries (journal, n, hash, entry, server, type, at)"
            " SELECT journal, n, repeat('a', 64), entry, server, type, at"
            " FROM agent_exec_entries WHERE {1}",
            0,
        ),
        ("DELETE FROM agent_exec_entries WHERE {0} AND type = 'closed'", 1),
        ("UPDATE agent_exec_payloads SET data = '2' WHERE {0}", 2),
    ],
)
def test_what_was_changed_is_named_by_its_check(cluster, tmp_path, change, check):
    fresh(cluster)
    one, _ = send(cluster, tmp_path / "one", "2026-11-20", "2026-11-21")
    ours = f"journal = '{one}'"
    cluster.do(change.format(ours, f"{ours} AND n = 1"))
    found = told(cluster)
    ledger = [name for name in found[check] if name.startswith("ledger-")]
    assert set(found[check]) == ({one} if check != 1 else set(ledger))
    assert found[check]
    assert [each for n, each in enumerate(found) if n != check] == [[], [], []]


def test_a_journal_that_was_sent_again_is_named(cluster, tmp_path):
    fresh(cluster)
    (one,) = send(cluster, tmp_path / "one", "2026-11-20")
    journal = tmp_path / "one" / "sessions" / one / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
    send(cluster, tmp_path / "one")
    assert told(cluster)[3] == [one]


def test_sessions_of_a_time_are_removed(cluster, tmp_path):
    fresh(cluster)
    old, new = send(cluster, tmp_path / "one", "2026-08-31", "2026-09-01")
    [[function], [went_on, *deletes]] = blocks("Keep it for a time")
    cluster.do(function)
    assert cluster.rows(went_on) == []
    for each in deletes:
        cluster.do(each)
    for table in ("entries", "payloads"):
        names = cluster.rows(f"SELECT DISTINCT journal FROM agent_exec_{table}")
        assert {name for (name,) in names if name.startswith("s_")} == {new}
    [check] = [each for each in blocks("Check it with SQL")[0] if "AS ends" in each]
    assert [session for _, session, _ in cluster.rows(check)] == [old]
