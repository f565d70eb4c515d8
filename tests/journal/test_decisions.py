from __future__ import annotations

import json

import nbformat
import pytest
from msgspec.structs import replace

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.notebook import cell
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.models import EventsQuery, ExecutionsQuery, SearchQuery
from jupyter_agent_exec.records import (
    SERVER,
    InputAsked,
    InputGiven,
    NotebookMoved,
    OutputsAccepted,
    Payload,
    Rejected,
    digest_of,
)
from tests.journal.recorded import (
    AT,
    PERSON,
    accepted,
    approved,
    ask,
    asked,
    closed,
    dispatched,
    finished,
    lose_lines,
    new_execution_id,
    new_history,
    reviewed,
    run,
    written,
)


def end(session, execution_id, status="ok"):
    entry, payloads = finished(execution_id, [], status)
    session.append_final([entry], payloads)


# -- approval --------------------------------------------------------------------------------------


def test_what_asks_waits_for_approval(history, session):
    execution_id = ask(session, 1, "rm()", before="ls()")
    record = history.execution(execution_id)
    assert (record.status, record.source) == ("awaiting_approval", "rm()")
    approval = record.approval
    assert approval is not None
    assert (approval.status, approval.before, approval.decided_by) == ("asked", "ls()", None)
    assert (approval.asked_at, approval.kernel_id, approval.incarnation) == (AT, "k-1", 1)
    assert approval.expires_at == "2026-11-21T10:00:00.000Z"


def test_what_is_approved_waits_for_its_turn_and_then_runs(history, session):
    execution_id = ask(session, 1, "1")
    entry, payload = approved(execution_id, "1")
    session.append([entry], [payload])
    assert history.execution(execution_id).status == "queued"
    session.append([dispatched(execution_id)])
    end(session, execution_id)
    record = history.execution(execution_id)
    assert record.status == "ok"
    assert record.approval is not None
    assert (record.approval.status, record.approval.decided_by) == ("approved", "Grace")
    assert record.approval.asked_source is None


def test_what_a_person_changed_is_what_ran_and_both_are_told(history, session):
    execution_id = ask(session, 1, "rm('*')")
    entry, payload = approved(execution_id, "rm('a')")
    session.append([entry], [payload])
    record = history.execution(execution_id)
    assert record.source == "rm('a')"
    assert record.approval is not None
    assert record.approval.asked_source == "rm('*')"
    assert [hit.source for hit in history.search(SearchQuery()).hits] == ["rm('a')"]


def test_what_asks_anew_is_undecided_again(history, session):
    execution_id = ask(session, 1, "1")
    entry, payload = approved(execution_id, "2")
    again, payloads = asked(execution_id, "2")
    session.append([entry, again], [payload, *payloads])
    record = history.execution(execution_id)
    assert (record.status, record.source) == ("awaiting_approval", "2")
    assert record.approval is not None
    assert (record.approval.status, record.approval.asked_source) == ("asked", None)
    entry, payload = approved(execution_id, "2")
    session.append([entry], [payload])
    assert history.execution(execution_id).approval.asked_source == "1"


def test_what_is_rejected_says_why(history, session):
    execution_id = ask(session, 1, "1")
    session.append([Rejected(at=AT, by=PERSON, execution_id=execution_id, reason="No.")])
    end(session, execution_id, "rejected")
    record = history.execution(execution_id)
    assert record.status == "rejected"
    assert record.approval is not None
    assert (record.approval.status, record.approval.reason) == ("rejected", "No.")
    assert history.session(session.session_id).unreviewed == 0


@pytest.mark.parametrize(
    ("status", "told"), [("rejected", "expired"), ("cancelled", "withdrawn"), ("lost", "withdrawn")]
)
def test_what_nobody_decided_says_how_it_ended(history, session, status, told):
    execution_id = ask(session, 1, "1")
    end(session, execution_id, status)
    assert history.execution(execution_id).approval.status == told


def test_what_did_not_ask_has_no_approval(history, session):
    assert history.execution(run(session, 1, "1", [])).approval is None


# -- input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ended_by", ["an answer", "its end"])
def test_input_is_waited_for_until_it_comes_or_the_execution_ends(history, session, ended_by):
    execution_id, prompt = new_execution_id(), Payload.of(b"Name? ")
    entry, source = accepted(execution_id, 1, "input()")
    wanted = InputAsked(at=AT, by=SERVER, execution_id=execution_id, prompt=prompt.digest)
    session.append([entry, dispatched(execution_id), wanted], [source, prompt])
    record = history.execution(execution_id)
    assert (record.status, record.input.prompt) == ("awaiting_input", "Name? ")
    if ended_by == "an answer":
        session.append([InputGiven(at=AT, by=PERSON, execution_id=execution_id)])
    else:
        end(session, execution_id, "lost")
    assert history.execution(execution_id).input is None


# -- review ----------------------------------------------------------------------------------------


def test_the_last_review_counts_and_may_be_taken_back(history, session):
    execution_id = run(session, 1, "1", [])
    assert history.execution(execution_id).review is None
    session.append([reviewed(execution_id, "approved"), reviewed(execution_id, "flagged", "why?")])
    review = history.execution(execution_id).review
    assert (review.verdict, review.comment) == ("flagged", "why?")
    assert (review.by, review.at) == ("Grace", AT)
    session.append([reviewed(execution_id, None)])
    assert history.execution(execution_id).review is None


def test_a_review_of_a_session_as_version_0_1_wrote_it_is_an_event(history, session):
    execution_id = run(session, 1, "1", [])
    session.append([reviewed(None, "approved", "all fine")])
    assert history.execution(execution_id).review is None
    assert history.session(session.session_id).unreviewed == 1
    (event,), _ = history.events(session.session_id, EventsQuery())
    assert (event.type, event.execution_id, event.text) == ("reviewed", None, "approved: all fine")


# -- changes ---------------------------------------------------------------------------------------


def test_changed_variables_are_read_from_the_payload(history, session):
    variables = {
        "variables": [{"name": "df", "change": "added", "type": "DataFrame", "shape": [3, 2]}],
        "more_variables": 4,
    }
    execution_id = ask(session, 1, "1")
    entry, payloads = finished(execution_id, [])
    told = Payload.of(json.dumps(variables).encode())
    session.append_final([replace(entry, variables=told.digest)], [*payloads, told])
    (record,), _ = history.executions(session.session_id, ExecutionsQuery(outputs="brief"))
    changes = record.changes
    assert changes is not None
    assert [(v.name, v.change, v.shape) for v in changes.variables] == [("df", "added", [3, 2])]
    assert changes.more_variables == 4


def test_what_is_not_recorded_is_null(history, session):
    assert history.execution(run(session, 1, "1", [])).changes is None


# -- in the notebook -------------------------------------------------------------------------------


def test_accepted_outputs_stay_accepted(history, session):
    execution_id = run(session, 1, "1", [])
    decision = OutputsAccepted(at=AT, by=PERSON, execution_id=execution_id)
    session.append([decision])
    assert history.execution(execution_id).document is None
    for outputs in ("held", "inert"):  # written late
        session.append([written(execution_id, outputs)])
        document = history.execution(execution_id).document
        assert (document.status, document.outputs) == ("written", "accepted")


# -- after the end ---------------------------------------------------------------------------------


def test_people_decide_about_open_and_closed_sessions(history, session, folder):
    execution_id = run(session, 1, "1", [])
    session.append([written(execution_id)])
    entries = [
        reviewed(execution_id, "flagged"),
        OutputsAccepted(at=AT, by=PERSON, execution_id=execution_id),
    ]
    for is_open in (True, False):
        for entry in entries:
            history.decide(session.session_id, [entry])
        record = history.execution(execution_id)
        assert record.review.verdict == "flagged"
        assert record.document.outputs == "accepted"
        if is_open:
            session.close(closed())
    history.stop()
    again = new_history(folder)
    try:
        assert again.execution(execution_id) == record
    finally:
        again.stop()


@pytest.mark.parametrize("what", ["reviewed", "outputs_accepted", "notebook_moved"])
def test_a_decision_after_the_end_that_no_ledger_tells_is_no_alteration(
    history, session, folder, what
):
    execution_id = run(session, 1, "1", [])
    session.close(closed())
    entry = {
        "reviewed": reviewed(execution_id),
        "outputs_accepted": OutputsAccepted(at=AT, by=PERSON, execution_id=execution_id),
        "notebook_moved": NotebookMoved(at=AT, by=PERSON, path="b.ipynb", before="a.ipynb"),
    }[what]
    history.decide(session.session_id, [entry])
    (ledger,) = folder.glob("ledger-*.jsonl")
    assert verify_history(folder).outcome is Outcome.WHOLE
    assert b"session_amended" in ledger.read_bytes().splitlines()[-1]
    lose_lines(ledger, 1)
    assert [(each.outcome, each.n) for each in verify_history(folder).findings] == [
        (Outcome.MISSING, 6)
    ]


def test_a_cell_tells_of_its_review_and_approval(history, session):
    execution_id = ask(session, 1, "asked")
    entry, payload = approved(execution_id, "changed")
    session.append([entry, reviewed(execution_id)], [payload])
    made = cell(history.execution(execution_id))
    told = made["metadata"]["agent_exec"]
    assert told["review"]["verdict"] == "approved"
    assert told["approval"]["asked_source_sha256"] == digest_of(b"asked")
    assert told["source_sha256"] == digest_of(b"changed")
    assert "asked_source" not in told["approval"]
    nbformat.validate(nbformat.v4.new_notebook(cells=[json.loads(json.dumps(made))]))
