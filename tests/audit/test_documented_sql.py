"""The SQL of docs/how-to/sinks.md, on a real PostgreSQL: queries, retention, partitions.

No query reads a whole table, and what has been removed is no finding from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jupyter_agent_exec.central.archive import (
    LEDGER_ENTRIES,
    LINES,
    PAYLOADS,
    RANGES,
    Span,
    open_archive,
)
from jupyter_agent_exec.central.search import search_archive
from jupyter_agent_exec.central.verify import verify_archive
from msgspec.structs import replace
from ulid import ULID

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.journal.verify import Outcome
from jupyter_agent_exec.types import SessionId
from tests.audit.documented import DAY, NEXT_DAY, SESSION, blocks, queries
from tests.audit.far_sides import PostgreSQL, postgresql
from tests.central.test_span import run_at
from tests.journal.recorded import closed, new_history, opened
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


@pytest.fixture
def filled(cluster: PostgreSQL, tmp_path: Path) -> PostgreSQL:
    """A database with the tables of the sink, a short real record, and many entries."""
    fresh(cluster)
    send(cluster, tmp_path / "one", "2026-11-20")
    for command in blocks("Keep it for a time")[0]:
        cluster.do(command)
    cluster.do(FILL)
    return cluster


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
            run_at(session, 1, "read_csv('a')", at)
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


def test_no_query_of_verify_and_search_of_a_day_reads_a_whole_table(filled):
    names = filled.rows("SELECT DISTINCT journal FROM agent_exec_entries WHERE at >= %s", DAY)
    journals, count = [name for (name,) in names], len(names)
    times = DAY, NEXT_DAY
    ranges = RANGES.replace("%(since)s", f"'{times[0]}'").replace("%(until)s", f"'{times[1]}'")
    some = journals[:50]
    for read in (
        explained(filled, ranges),
        explained(filled, LINES, some, [0] * len(some), [5] * len(some)),
        explained(filled, PAYLOADS, some, ["0" * 64] * len(some)),
        explained(filled, LEDGER_ENTRIES, ["token_minted"]),
    ):
        assert read
        assert not reads_all(read)
    assert count > 50


def test_a_query_that_reads_a_whole_table_is_found(filled):
    assert reads_all(explained(filled, "SELECT * FROM agent_exec_entries WHERE entry = 'x'"))


def test_an_id_of_a_moment_is_that_of_a_session_opened_then(filled):
    moment = datetime(2026, 12, 1, 3, 4, 5, 678000, tzinfo=UTC)
    ((told,),) = filled.rows("SELECT agent_exec_session(%s)", moment)
    assert told == f"s_{ULID.from_datetime(moment)}"[:12]


def checked(cluster: PostgreSQL, since: str | None) -> tuple[Outcome, int, list[str]]:
    span = None if since is None else Span(datetime.fromisoformat(f"{since}T00:00:00+00:00"))
    with open_archive(cluster.address) as archive:
        report = verify_archive(archive, span)
    return report.outcome, report.journals, report.unchecked


def removed(cluster: PostgreSQL) -> list[str]:
    """Remove as documented; return the sessions that went on."""
    [[function], [went_on, *deletes]] = blocks("Keep it for a time")
    cluster.do(function)
    found = [name for (name,) in cluster.rows(went_on)]
    for each in deletes:
        cluster.do(each)
    return found


def test_after_sessions_of_a_time_were_removed_verify_asks_for_none_of_them(cluster, tmp_path):
    fresh(cluster)
    old, new = send(cluster, tmp_path / "one", "2026-08-31", "2026-09-01")
    assert checked(cluster, None)[0] is Outcome.WHOLE
    assert removed(cluster) == []
    ((count,),) = cluster.rows("SELECT count(*) FROM agent_exec_payloads")
    assert (count, cluster.rows("SELECT 1 FROM agent_exec_entries WHERE journal = %s", old)) == (
        1,
        [],
    )
    assert checked(cluster, "2026-09-01")[:2] == (Outcome.WHOLE, 2)  # with the ledger
    assert checked(cluster, None)[0] is Outcome.MISSING
    cluster.do(f"DELETE FROM agent_exec_entries WHERE journal = '{new}'")
    assert checked(cluster, "2026-09-01")[0] is Outcome.MISSING


def test_partitions_take_over_a_table_that_is_written_to_and_go_as_a_whole(cluster, tmp_path):
    fresh(cluster)
    first = send(cluster, tmp_path / "one", "2026-11-20")
    [[function], _] = blocks("Keep it for a time")
    cluster.do(function)
    [commands, [drop]] = blocks("Partitions")
    cluster.do("".join(commands))
    later = send(cluster, tmp_path / "one", "2026-12-05", "2027-01-02")
    placed = cluster.rows(
        "SELECT journal, tableoid::regclass::text FROM agent_exec_entries WHERE n = 0 ORDER BY at"
    )
    sessions = [(name, table) for name, table in placed if name.startswith("s_")]
    parts = ("first", "2026_12", "later")
    tables = [f"agent_exec_entries_{part}" for part in parts]
    assert sessions == list(zip([*first, *later], tables, strict=True))
    assert checked(cluster, None)[0] is Outcome.WHOLE
    send(cluster, tmp_path / "one")  # comes again, and is there once
    assert checked(cluster, None)[:2] == (Outcome.WHOLE, 4)
    query = queries()["all of a session"].replace(SESSION, later[0])
    assert {each["Relation Name"] for each in explained(cluster, query)} == {tables[1]}
    cluster.do(drop)
    assert checked(cluster, "2027-01-01")[0] is Outcome.WHOLE
    assert checked(cluster, None)[0] is Outcome.MISSING
    with open_archive(cluster.address) as archive:
        assert {hit.session_id for hit in search_archive(archive, "read_csv")} == {
            first[0],
            later[1],
        }


def test_a_table_of_an_earlier_state_goes_on_working(cluster, tmp_path):
    fresh(cluster)
    send(cluster, tmp_path / "one", "2026-11-20")
    cluster.do("DROP INDEX agent_exec_entries_type_at_idx")
    send(cluster, tmp_path / "one", "2026-11-21")
    assert checked(cluster, "2026-11-21")[:2] == (Outcome.WHOLE, 2)
