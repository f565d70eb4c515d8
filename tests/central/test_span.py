"""A time of what several servers have sent: verified and searched, in a folder and a database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from jupyter_agent_exec.central.archive import Span, open_archive
from jupyter_agent_exec.central.search import search_archive
from jupyter_agent_exec.central.verify import verify_archive
from msgspec.structs import replace

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.journal import SessionJournal
from jupyter_agent_exec.journal.verify import Outcome, Report
from jupyter_agent_exec.records import timestamp
from tests.audit.far_sides import PostgreSQL, postgresql
from tests.central.test_central import command, sink_at
from tests.journal.recorded import accepted, closed, finished, new_execution_id, new_history, opened
from tests.real_server import until

DAYS = [datetime(2026, 11, day, 9, tzinfo=UTC) for day in (19, 20, 21)]
DAY = Span(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgreSQL]:
    with postgresql() as cluster:
        cluster.do("CREATE SCHEMA IF NOT EXISTS public")
        yield cluster


@pytest.fixture(params=["folder", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "far")
    cluster: PostgreSQL = request.getfixturevalue("cluster")
    cluster.do("DROP SCHEMA public CASCADE")
    cluster.do("CREATE SCHEMA public")
    return cluster.address


@pytest.fixture
def sessions(place: str, tmp_path: Path) -> list[str]:
    """A session that goes on over three days, and one of each day."""
    history = new_history(tmp_path / "one", make_sinks([sink_at(place, "one")]))
    try:
        return write(history)
    finally:
        history.stop()


def write(history: History) -> list[str]:
    long = history.open_session(replace(opened(agent="long"), at=timestamp(DAYS[0])))
    found = [str(long.session_id)]
    for seq, moment in enumerate(DAYS, 1):
        at = timestamp(moment)
        run_at(long, seq, f"long_{seq}", at)
        session = history.open_session(replace(opened(), at=at))
        run_at(session, 1, f"day_{seq}", at)
        session.close(replace(closed(), at=at))
        found.append(str(session.session_id))
    until(lambda: set(history.followers.lags().values()) == {0})
    return found


def run_at(session: SessionJournal, seq: int, source: str, at: str) -> None:
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, seq, source, at=at)
    end, payloads = finished(execution_id, [])
    session.append([entry, replace(end, at=at)], [payload, *payloads])


def checked(place: str, span: Span | None = DAY) -> Report:
    with open_archive(place) as archive:
        return verify_archive(archive, span)


def told(place: str) -> dict[str, str]:
    return {each.path.name: each.message for each in checked(place).findings}


def test_a_day_is_checked_with_the_links_to_the_day_before(place, sessions):
    report = checked(place)
    assert report.findings == []
    assert report.journals == 3  # the ledger, the long session, that of the day
    assert report.entries == 2 + 2 + 4  # of the ledger, the long session, that of the day
    assert report.unchecked == []
    assert checked(place, None).entries > report.entries


def test_a_time_without_entries_is_whole(place, sessions):
    report = checked(place, Span(datetime(2027, 1, 1, tzinfo=UTC)))
    assert (report.outcome, report.entries) == (Outcome.WHOLE, 0)


def test_what_was_altered_on_another_day_is_no_finding_of_this_one(cluster, tmp_path):
    names = fresh(cluster, tmp_path)
    change = "UPDATE agent_exec_entries SET entry = replace(entry, '60.0', '61.0')"
    cluster.do(f"{change} WHERE journal = '{names[3]}'")
    assert told(cluster.address) == {}
    cluster.do(f"{change} WHERE journal = '{names[2]}'")
    assert told(cluster.address) == {names[2]: "Entry 1 or its hash was altered."}


def fresh(cluster: PostgreSQL, tmp_path: Path) -> list[str]:
    cluster.do("DROP SCHEMA public CASCADE")
    cluster.do("CREATE SCHEMA public")
    history = new_history(tmp_path / "one", make_sinks([sink_at(cluster.address, "one")]))
    try:
        return write(history)
    finally:
        history.stop()


def test_an_entry_before_the_day_that_is_not_here_is_a_gap_if_an_earlier_one_is(cluster, tmp_path):
    long = fresh(cluster, tmp_path)[0]
    cluster.do(f"DELETE FROM agent_exec_entries WHERE journal = '{long}' AND n = 2")
    assert told(cluster.address) == {long: "Entries 2 to 2 have not arrived."}
    cluster.do(f"DELETE FROM agent_exec_entries WHERE journal = '{long}' AND n < 2")
    report = checked(cluster.address)
    assert report.findings == []
    [unchecked] = report.unchecked
    assert unchecked.startswith("what came before the first entry here of 1 chain of an earlier")


def test_a_session_of_the_day_lacks_its_beginning_its_end_or_everything(cluster, tmp_path):
    session = fresh(cluster, tmp_path)[2]
    where = f"WHERE journal = '{session}'"
    cluster.do(f"CREATE TABLE kept AS SELECT * FROM agent_exec_entries {where}")
    for part, message in {
        "AND n = 0": "It was opened in this time; its first entries have not arrived.",
        "AND n = 3": "The ledger says that it has 4 entries; it has 3.",
        "AND n > 0": "The ledger says that it has 4 entries; it has 1.",
        "": "A ledger lists this session; its journal has not arrived.",
    }.items():
        cluster.do(f"DELETE FROM agent_exec_entries {where} {part}")
        assert told(cluster.address) == {session: message}
        cluster.do("INSERT INTO agent_exec_entries SELECT * FROM kept ON CONFLICT DO NOTHING")
    assert told(cluster.address) == {}


def test_a_session_that_no_ledger_lists_is_missing_there(cluster, tmp_path):
    session = fresh(cluster, tmp_path)[2]
    cluster.do(
        "DELETE FROM agent_exec_entries WHERE type LIKE 'session_%' AND n > "
        "(SELECT min(n) - 1 FROM agent_exec_entries"
        f" WHERE journal LIKE 'ledger-%' AND position('{session}' IN entry) > 0)"
    )
    assert told(cluster.address)[session] == "No ledger lists this session."


def test_a_payload_of_the_day_that_was_altered_is_found_and_one_that_lacks_is_counted(
    cluster, tmp_path
):
    session = fresh(cluster, tmp_path)[2]
    cluster.do(f"UPDATE agent_exec_payloads SET data = '2' WHERE journal = '{session}'")
    assert told(cluster.address)[session].startswith("A payload was altered: ")
    cluster.do("DELETE FROM agent_exec_payloads")
    report = checked(cluster.address)
    assert report.findings == []
    assert report.unchecked == ["2 payloads that entries name: not sent, too large or erased"]


def test_a_head_that_went_backwards_that_day_is_told(cluster, tmp_path):
    long = fresh(cluster, tmp_path)[0]
    cluster.do(
        f"INSERT INTO agent_exec_rewinds VALUES ('{long}', 'one', 1, 'x', '2026-11-20T12:00:00Z')"
    )
    assert told(cluster.address)[long].startswith("The head of one went backwards: it had 1 entry")
    later = Span(datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 11, 22, tzinfo=UTC))
    assert checked(cluster.address, later).findings == []


def test_what_ran_on_the_day_is_found(place, sessions):
    with open_archive(place) as archive:
        found = search_archive(archive, "", DAY)
        assert {(hit.session_id, hit.agent, hit.match) for hit in found} == {
            (sessions[0], "long", "long_2"),
            (sessions[2], "analyst", "day_2"),
        }
        assert search_archive(archive, "day_3", DAY) == []


def test_the_command_line_takes_a_day_and_says_what_it_did_not_check(place, sessions):
    day = ("--since", "2026-11-20", "--until", "2026-11-20")
    verified = command("verify", "--from", place, *day)
    assert verified.returncode == 0, verified.stderr
    assert verified.stdout == "Whole: every line is as it was written, and none is missing.\n"
    found = command("search", "--from", place, "--agent", "long", *day, "--json")
    assert [each["match"] for each in json.loads(found.stdout)] == ["long_2"]
    for words in (
        ("verify", "--from", place, "--since", "yesterday"),
        ("verify", *day),
        ("search", "--from", place, "--has-image"),
    ):
        assert command(*words).returncode == 2
