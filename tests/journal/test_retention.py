"""Closed sessions leave the record by rule, and the record says so."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.errors import SessionNotFound
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.retention import due, make_rules
from jupyter_agent_exec.journal.verify import verify_history, verify_session
from jupyter_agent_exec.models import Retain, SearchQuery, SessionsQuery
from jupyter_agent_exec.records import SERVER
from tests.journal.recorded import new_history, opened, run
from tests.journal.test_erasing import KILLED, SECRET, files_with, full_session
from tests.real_server import until

ALL = [{"days": 0}]
NOW = datetime(2026, 11, 24, tzinfo=UTC)


@pytest.fixture
def history(folder):
    history = new_history(folder, retention=make_rules(ALL))
    yield history
    history.stop()


def retained(history, *, dry_run=False, may_go_on=lambda: True):
    return history.retain(Retain(dry_run=dry_run), SERVER, may_go_on)


def test_a_session_that_goes_is_gone_to_the_byte_and_verify_says_so(history, folder):
    gone = full_session(history, title=f"{SECRET} in the title")[0]
    live = history.open_session(opened())
    run(live, 1, "1 + 1", [])
    history.search(SearchQuery(q=SECRET))
    assert "index.sqlite" in files_with(folder, SECRET)

    dry = retained(history, dry_run=True)
    assert [(each.session_id, each.waits) for each in dry.sessions] == [(gone, None)]
    length = history.session(gone).chain.length

    assert [each.session_id for each in retained(history).sessions] == [gone]
    assert files_with(folder, SECRET) == []
    assert not (folder / "sessions" / gone).exists()
    assert history.search(SearchQuery(q=SECRET)).hits == []
    with pytest.raises(SessionNotFound):
        history.session(gone)
    assert history.session(live.session_id).status == "open"
    assert retained(history).sessions == []
    for report in (verify_history(folder), verify_session(folder, gone)):
        assert (report.outcome, report.findings) == (Outcome.WHOLE, [])
        (said,) = report.erased
        assert f"{gone}/journal.jsonl: the server removed its {length} entries" in said
        assert said.endswith("retention: days 0")
    history.stop()
    history = new_history(folder)  # the open one is ended, and nothing looks for the other
    history.stop()
    assert verify_history(folder).outcome is Outcome.WHOLE


def test_a_journal_that_nobody_removed_is_still_missed(history, folder):
    session_id, _, _ = full_session(history)
    (folder / "sessions" / session_id / "journal.jsonl").unlink()
    assert verify_history(folder).outcome is Outcome.MISSING


def test_a_session_that_somebody_removed_keeps_no_other(history, folder):
    removed, old = full_session(history)[0], full_session(history)[0]
    history.session(old)
    shutil.rmtree(folder / "sessions" / removed)
    assert [each.session_id for each in retained(history).sessions] == [old]
    assert not list((folder / "erasing").iterdir())


def test_it_ends_early_when_code_runs_again_and_goes_on_later(history, folder):
    first, second = full_session(history)[0], full_session(history)[0]
    asked = iter([True, False])
    told = retained(history, may_go_on=lambda: next(asked))
    assert [each.session_id for each in told.sessions] == [first]
    assert verify_history(folder).outcome is Outcome.WHOLE
    assert [each.session_id for each in retained(history).sessions] == [second]


def test_executions_are_recorded_while_sessions_go(history, folder):
    full_session(history)
    live = history.open_session(opened())
    told = retained(history, may_go_on=lambda: run(live, 1, "meanwhile", []) is not None)
    assert len(told.sessions) == 1
    assert len(history.search(SearchQuery(q="meanwhile")).hits) == 1


def test_a_server_that_dies_in_between_leaves_what_the_next_one_completes(tmp_path):
    """Killed before each file that it writes, renames or removes, until it is not killed."""
    made, copies, root = tmp_path / "made", tmp_path / "copies", Path(__file__).parents[2]
    history = new_history(made)
    session_id = full_session(history)[0]
    history.stop()
    script = textwrap.dedent(KILLED)
    for old, new in (
        ("new_history(folder)", "new_history(folder, retention=make_rules([{'days': 0}]))"),
        (
            "history.erase(Erase(session_id=session_id), PERSON)",
            "history.retain(Retain(), PERSON, lambda: True)",
        ),
        (
            "import Erase\n",
            "import Retain\nfrom jupyter_agent_exec.journal.retention import make_rules\n",
        ),
        ('("os.rename", "os.remove", "open")', '("os.rename", "os.remove", "os.rmdir", "open")'),
        ("if str(args[0]).startswith(str(folder)):", AT_REMOVAL_TOO),
    ):
        assert old in script
        script = script.replace(old, new)
    subprocess.run([sys.executable, "-c", script, made, copies, session_id], cwd=root, check=True)
    removed = []
    for folder in copies.iterdir():
        history = new_history(folder)
        history.sessions(SessionsQuery())
        history.stop()
        report = verify_history(folder)
        assert (report.outcome, report.findings) == (Outcome.WHOLE, []), folder
        assert not list((folder / "erasing").glob("*"))
        if report.erased:
            removed.append(folder.name)
            assert files_with(folder, SECRET) == [], folder
            assert not (folder / "sessions" / session_id).exists()
    assert len(removed) > 3
    assert len(list(copies.iterdir())) - len(removed) > 1  # killed before the ledger's entry


AT_REMOVAL_TOO = (
    "if str(args[0]).startswith(str(folder)) or event in ('os.remove', 'os.rmdir') "
    "and args[1] != -1:"
)


def test_sinks_are_told_before_it_goes_and_the_copy_says_so(folder, tmp_path):
    far = tmp_path / "far"
    sinks = make_sinks(
        [{"kind": "folder", "path": str(far), "delay": 0, "content": "outputs", "server": "one"}]
    )
    history = new_history(folder, sinks, retention=make_rules(ALL))
    session_id, _, _ = full_session(history)
    until(lambda: set(history.copies.lags().values()) == {0})
    assert files_with(far, SECRET) != []
    until(lambda: [each.waits for each in retained(history).sessions] in ([None], []))
    assert not (folder / "sessions" / session_id).exists()
    assert files_with(folder, SECRET) == files_with(far, SECRET) == []
    assert not (folder / "sinks" / "folder" / session_id).exists()
    until(lambda: set(history.copies.lags().values()) == {0})
    history.stop()
    report = verify_history(far)
    assert (report.outcome, report.findings) == (Outcome.WHOLE, [])
    assert any("the server erased" in said for said in report.erased)
    assert verify_history(folder).outcome is Outcome.WHOLE


def kept(history):
    """Return sessions that were closed in another order than they were opened."""
    sessions = [history.session(full_session(history)[0]) for _ in range(3)]
    days = ("2026-11-20", "2026-11-10", "2026-11-01")
    made = [
        replace(each, closed_at=f"{day}T00:00:00.000Z")
        for each, day in zip(sessions, days, strict=True)
    ]
    return made, [each.id for each in made]


def test_a_session_goes_if_all_that_a_rule_says_is_true_of_it(history):
    sessions, (new, failed, old) = kept(history)
    sessions.append(replace(sessions[0], id="s_open", closed_at=None))
    statuses = {new: {"ok"}, failed: {"ok", "error"}, old: {"ok"}}

    def going(*rules):
        return [each.session.id for each in due(make_rules(rules), sessions, statuses, NOW)]

    assert going() == []
    assert going({"days": 5}) == [old, failed]
    assert going({"days": 23}) == [old]
    assert going({"days": 5, "status": ["ok", "cancelled"]}) == [old]
    assert going({"days": 0, "target": ["notebook", "kernel"]}) == []
    assert going({"days": 30}, {"days": 0, "target": ["scratch"]}) == [old, failed, new]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({}, r"retention\[0\]: Object missing required field `days`"),
        ({"max_bytes": 9}, r"retention\[0\].max_bytes: sessions go by age alone"),
        ({"days": -1}, r"retention\[0\].days: Expected `float` >= 0.0"),
        ({"days": 1_000_000}, r"retention\[0\].days: Expected `float` <= 36500.0"),
        ({"days": 1, "target": ["moon"]}, r"retention\[0\].target\[0\]: Invalid enum value"),
        ({"days": 1, "agent": "a"}, r"retention\[0\]: Object contains unknown field `agent`"),
    ],
)
def test_a_rule_that_cannot_be_understood_is_refused_by_field(rule, why):
    with pytest.raises(ValueError, match=why):
        make_rules([rule])
