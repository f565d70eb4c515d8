"""What several servers have sent to one sink: verified and searched there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_agent_exec.central.archive import open_archive
from jupyter_agent_exec.central.search import search_archive
from jupyter_agent_exec.central.verify import verify_archive

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.journal.verify import Finding, Outcome
from jupyter_agent_exec.records import Reviewed
from tests.audit.far_sides import PostgreSQL, object_store, postgresql
from tests.journal.recorded import AT, BY, closed, new_history, opened, run, stream
from tests.real_server import until

Write = Callable[..., str]


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgreSQL]:
    with postgresql() as cluster:
        yield cluster


@pytest.fixture(params=["folder", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where servers send their record, as `--from` takes it."""
    if request.param == "folder":
        yield str(tmp_path / "far")
        return
    cluster: PostgreSQL = request.getfixturevalue("cluster")
    cluster.do("DROP SCHEMA IF EXISTS public CASCADE")
    cluster.do("CREATE SCHEMA public")
    yield cluster.address


@pytest.fixture
def write(place: str, tmp_path: Path) -> Write:
    """Write a session of a server and send it; return the session's id."""

    def write(server: str = "one", source: str = "1", output: str = "") -> str:
        history = new_history(tmp_path / server, make_sinks([sink_at(place, server)]))
        try:
            session = history.open_session(opened(agent=f"agent-{server}"))
            for seq in (1, 2):
                run(session, seq, f"{source}  # {seq}", [stream(output)] if output else [])
            session.close(closed())
            until(lambda: set(history.followers.lags().values()) == {0})
        finally:
            history.stop()
        return str(session.session_id)

    return write


def sink_at(place: str, server: str) -> dict[str, Any]:
    common = {"delay": 0, "content": "outputs", "server": server}
    if place.startswith("postgresql:"):
        return {"kind": "postgresql", "address": place, **common}
    return {"kind": "folder", "path": place, **common}


def findings(place: str) -> list[Finding]:
    with open_archive(place) as archive:
        return verify_archive(archive).findings


def test_what_arrived_whole_is_whole(place, write):
    for server in ("one", "two", "one"):
        write(server)
    with open_archive(place) as archive:
        report = verify_archive(archive)
    assert report.findings == []
    assert report.outcome is Outcome.WHOLE
    assert report.journals == 5  # three sessions, two ledgers


def test_a_restored_copy_that_is_written_on_is_a_fork(place, write, tmp_path):
    write("one")
    write("two")
    shutil.copytree(tmp_path / "one", tmp_path / "backup")  # with its cursors
    write("one")
    shutil.rmtree(tmp_path / "one")
    (tmp_path / "backup").rename(tmp_path / "one")
    write("one")
    told = [each for each in findings(place) if "in 2 versions" in each.message]
    assert told
    assert {each.path.parts[0] for each in told} == {"one"}
    assert {each.outcome for each in told} == {Outcome.ALTERED}
    assert all(each.path.name.startswith("ledger-") for each in told)


def test_a_journal_that_was_cut_off_is_a_head_that_went_backwards(place, write, tmp_path):
    session = write("one")
    journal = tmp_path / "one" / "sessions" / session / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    write("one")
    (told,) = findings(place)
    assert told.outcome is Outcome.TRUNCATED
    assert told.path == Path("one", session)
    assert told.message.startswith("The head of one went backwards: it had 3 entries")


def test_gaps_altered_lines_and_altered_payloads_are_told(cluster, tmp_path):
    cluster.do("DROP SCHEMA IF EXISTS public CASCADE")
    cluster.do("CREATE SCHEMA public")
    history = new_history(tmp_path / "one", make_sinks([sink_at(cluster.address, "one")]))
    sessions = []
    for _ in range(4):
        session = history.open_session(opened())
        for seq in (1, 2):
            run(session, seq, "1", [])
        session.close(closed())
        sessions.append(session.session_id)
    history.stop()
    gap, altered, payload, gone = sessions
    table = "agent_exec_entries"
    cluster.do(f"DELETE FROM {table} WHERE journal = '{gap}' AND n IN (2, 3)")
    cluster.do(
        f"UPDATE {table} SET entry = replace(entry, '\"seq\":2', '\"seq\":3')"
        f" WHERE journal = '{altered}' AND n = 4"
    )
    cluster.do(f"UPDATE agent_exec_payloads SET data = '2' WHERE journal = '{payload}'")
    cluster.do(f"DELETE FROM {table} WHERE journal = '{gone}'")
    told = {each.path.name: (each.outcome, each.message) for each in findings(cluster.address)}
    assert told[gap] == (Outcome.MISSING, "Entries 2 to 3 have not arrived.")
    assert told[altered] == (Outcome.ALTERED, "Entry 4 or its hash was altered.")
    assert told[payload][1].startswith("A payload was altered: ")
    assert told[gone][1] == "A ledger lists this session; its journal has not arrived."
    assert set(told) == set(sessions)


def test_a_decision_after_the_end_belongs_to_the_chain(place, write, tmp_path):
    session = write("one")
    history = new_history(tmp_path / "one", make_sinks([sink_at(place, "one")]))
    verdict = Reviewed(at=AT, by=BY, execution_id=None, verdict="approved", up_to=2)
    history.decide(session, [verdict])  # type: ignore[arg-type]
    until(lambda: set(history.followers.lags().values()) == {0})
    history.stop()
    assert findings(place) == []


def test_executions_of_all_servers_are_found(place, write):
    first = write("one", source="import pandas\ndf.groupby('Région')", output="mean 42")
    second = write("two", source="print(6 * 7)", output="42")
    with open_archive(place) as archive:
        assert {hit.session_id for hit in search_archive(archive, "42")} == {first, second}
        hits = search_archive(archive, "région")
        assert {(hit.server, hit.session_id, hit.agent, hit.status) for hit in hits} == {
            ("one", first, "agent-one", "ok")
        }
        assert hits[0].match == "df.groupby('Région')  # 1" or hits[0].match.endswith("# 2")
        assert {hit.session_id for hit in search_archive(archive, "agent-two")} == {second}
        assert search_archive(archive, "nowhere") == []


def command(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jupyter_agent_exec.cli", *arguments],
        capture_output=True, text=True, timeout=60, env={**os.environ, **env},
    )  # fmt: skip


def test_the_command_line_verifies_and_searches_with_the_exit_codes_of_verify(
    place, write, tmp_path
):
    session = write("one", source="find_me()")
    whole = command("verify", "--from", place)
    assert whole.returncode == 0, whole.stderr
    assert "Whole" in whole.stdout
    found = command("search", "--from", place, "find_me", "--json")
    assert [each["session_id"] for each in json.loads(found.stdout)] == [session, session]
    journal = tmp_path / "one" / "sessions" / session / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    write("one")
    cut = command("verify", "--from", place)
    assert cut.returncode == int(Outcome.TRUNCATED)
    assert f"one/{session}: The head of one went backwards" in cut.stdout


@pytest.mark.parametrize("origin", ["/not/there", "postgresql://127.0.0.1:1/x", "fax://x"])
def test_a_place_that_cannot_be_read_is_wrong_usage(origin):
    done = command("verify", "--from", origin)
    assert done.returncode == 2
    assert done.stderr.count("\n") <= 6
    assert "--from" in done.stderr


def test_an_object_store_is_verified_with_the_environments_keys(tmp_path):
    with object_store() as sink:
        history = new_history(tmp_path / "one", make_sinks([{**sink, "server": "one"}]))
        session = history.open_session(opened())
        run(session, 1, "1", [])
        session.close(closed())
        until(lambda: set(history.followers.lags().values()) == {0})
        history.stop()
        options = sink["options"]
        env = {
            "AWS_ENDPOINT": options["endpoint"],
            "AWS_REGION": options["region"],
            "AWS_ACCESS_KEY_ID": "reader",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
        done = command("verify", "--from", sink["url"], "--json", **env)
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["chains"] == 2
