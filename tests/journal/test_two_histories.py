"""One history that two servers write: each sees at once what the other has recorded."""

from __future__ import annotations

import pytest

from jupyter_agent_exec.models import SessionsQuery
from jupyter_agent_exec.records import Reviewed
from tests.journal.recorded import AT, BY, closed, new_history, opened, run


@pytest.fixture
def theirs(folder):
    theirs = new_history(folder)
    yield theirs
    theirs.stop()


@pytest.fixture
def ours(theirs, folder):
    """A history whose index has been read and has found nothing."""
    ours = new_history(folder)
    assert ours.sessions(SessionsQuery()).sessions == []
    yield ours
    ours.stop()


def test_what_another_server_records_is_seen_at_once(theirs, ours):
    session = theirs.open_session(opened())
    assert ours.session(session.session_id).status == "open"
    for count in (1, 2):
        execution = run(session, count, f"step {count}", [])
        assert ours.execution(execution).source == f"step {count}"
        assert ours.session(session.session_id).executions == count


def test_the_end_of_another_servers_session_is_seen_and_what_follows_it(theirs, ours):
    session = theirs.open_session(opened())
    execution = run(session, 1, "1", [])
    assert ours.session(session.session_id).status == "open"
    session.close(closed())
    assert ours.session(session.session_id).status == "closed"
    assert ours.session(session.session_id).unreviewed == 1
    theirs.decide(
        session.session_id, [Reviewed(at=AT, by=BY, execution_id=execution, verdict="approved")]
    )
    assert ours.session(session.session_id).unreviewed == 0


def test_a_ledger_that_is_begun_anew_hides_nothing(theirs, ours, folder):
    first = theirs.open_session(opened())
    assert len(ours.sessions(SessionsQuery()).sessions) == 1
    (ledger,) = [
        each for each in folder.glob("ledger-*.jsonl") if first.session_id in each.read_text()
    ]
    ledger.unlink()
    second = theirs.open_session(opened())
    found = {session.id for session in ours.sessions(SessionsQuery()).sessions}
    assert found == {first.session_id, second.session_id}
