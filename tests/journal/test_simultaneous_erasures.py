"""What happens to a history while something is being erased from it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from jupyter_agent_exec.auth.handler import status_of
from jupyter_agent_exec.errors import HistoryBusy
from jupyter_agent_exec.journal.erasure import sole_erasure
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.retention import make_rules
from jupyter_agent_exec.journal.session_journal import amending
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.models import Erase, Retain
from jupyter_agent_exec.records import SERVER, Reviewed
from tests.journal.recorded import AT, BY, PERSON, new_history
from tests.journal.test_erasing import SECRET, files_with, full_session


@pytest.fixture
def thread():
    with ThreadPoolExecutor(1) as thread:
        yield thread


@pytest.fixture
def new(folder):
    """Return what makes another server's history in the same folder; all are stopped."""
    histories = []

    def new():
        histories.append(new_history(folder, retention=make_rules([{"days": 0}])))
        return histories[-1]

    yield new
    for history in histories:
        history.stop()


def in_the_midst(thread, second):
    """Return what begins the second erasure; it has ended then if it does not wait."""
    futures = []

    def begin(*_):
        if not futures:
            futures.append(thread.submit(second))
            with suppress(TimeoutError):
                futures[0].result(timeout=0.5)
        return True

    return begin, futures


@pytest.mark.parametrize("second", ["same", "other server", "retention", "start"])
def test_what_erases_while_something_is_erased_waits_for_it(new, folder, thread, second):
    ours, theirs = new(), new()
    both = {full_session(ours)[0], full_session(ours)[0]}
    wanted = Erase(agent="analyst")
    seconds = {
        "same": lambda: ours.erase(wanted, PERSON).sessions,
        "other server": lambda: theirs.erase(wanted, PERSON).sessions,
        "retention": lambda: theirs.retain(Retain(), SERVER, lambda: True).sessions,
        "start": lambda: new().erase(wanted, PERSON).sessions,
    }
    begin, futures = in_the_midst(thread, seconds[second])
    ours.signatures.changed = begin  # called when the first of the two is done
    erased = ours.erase(wanted, PERSON).sessions
    assert [each.payloads for each in erased] == [13, 13]
    found = {each.session_id for each in futures[0].result()}
    assert found == (both if second == "retention" else set())
    assert ours.available
    assert theirs.available
    assert files_with(folder, SECRET) == list((folder / "erasing").iterdir()) == []
    assert verify_history(folder).outcome is Outcome.WHOLE


def test_what_erases_while_sessions_go_waits_for_it(new, folder, thread):
    ours, theirs = new(), new()
    full_session(ours), full_session(ours)
    begin, futures = in_the_midst(thread, lambda: theirs.erase(Erase(text=SECRET), PERSON))
    went = iter([lambda: True, begin])
    assert len(ours.retain(Retain(), SERVER, lambda: next(went)()).sessions) == 2
    assert futures[0].result().sessions == []
    assert ours.available
    assert theirs.available
    assert verify_history(folder).outcome is Outcome.WHOLE


def test_who_waits_too_long_is_told_that_the_history_is_busy(history, folder):
    with (
        sole_erasure(folder),
        pytest.raises(HistoryBusy, match="Nothing was done"),
        sole_erasure(folder, timeout=0),
    ):
        pass
    assert status_of(HistoryBusy) == 409
    assert history.available


def test_nobody_else_waits_for_a_review_that_waits_for_an_erasure(history, folder, thread):
    session_id, first, _ = full_session(history)
    review = Reviewed(at=AT, by=BY, execution_id=first, verdict="approved")
    with amending(folder / "sessions" / session_id):
        reviewed = thread.submit(history.decide, session_id, [review])
        with suppress(TimeoutError):
            reviewed.result(timeout=0.2)
        history.check()
    reviewed.result()
    assert history.execution(first).review.verdict == "approved"
