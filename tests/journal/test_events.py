from __future__ import annotations

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.errors import SessionNotFound
from jupyter_agent_exec.models import Document, EventsQuery
from jupyter_agent_exec.records import (
    SERVER,
    By,
    CellWritten,
    Entry,
    GrantGiven,
    GrantWithdrawn,
    Interrupted,
    KernelEnded,
    NotebookMoved,
    OutputsAccepted,
    Payload,
    PersonRan,
    Recovered,
    Rejected,
)
from jupyter_agent_exec.types import ExecutionId
from tests.journal.recorded import (
    AT,
    BY,
    PERSON,
    ask,
    closed,
    kernel_started,
    reviewed,
    run,
    stream,
)


def texts(history, session):
    events, _ = history.events(session.session_id, EventsQuery())
    return [(event.type, event.text) for event in events]


def test_what_is_between_executions_is_listed_in_order(history, session):
    session.append([kernel_started()])
    first = run(session, 1, "1", [stream("one")])
    session.append([Interrupted(at=AT, by=PERSON, execution_id=first, reason="asked")])
    run(session, 7, "2", [])
    session.append([reviewed(first, "flagged", "wrong\nunits")])
    session.close(closed())
    events, after = history.events(session.session_id, EventsQuery())
    assert after is None
    told = [(e.n, e.type, e.after_seq, e.execution_id, e.by, e.text) for e in events]
    assert told == [
        (1, "kernel_started", 0, None, "an agent on behalf of ada", None),
        (5, "interrupted", 1, first, "Grace", "asked"),
        (9, "reviewed", 7, first, "Grace", "flagged: wrong units"),
        (10, "closed", 7, None, "an agent on behalf of ada", "closed"),
    ]
    assert {event.at for event in events} == {AT}


def test_what_cells_show_is_no_event(history, session):
    document = Document(
        path="a.ipynb", cell_id=None, via=None, status="writing", outputs="inert", reason=None
    )
    execution_id = ask(session, 1, "1")
    session.append([CellWritten(at=AT, by=SERVER, execution_id=execution_id, document=document)])
    assert texts(history, session) == []


X = ExecutionId("x_01JD0000000000000000000000")


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            KernelEnded(
                at=AT, by=SERVER, kernel_id="k", incarnation=1, reason="died", message="It died."
            ),
            "It died.",
        ),
        (NotebookMoved(at=AT, by=BY, path="b.ipynb", before="a.ipynb"), "a.ipynb → b.ipynb"),
        (Rejected(at=AT, by=PERSON, execution_id=X, reason="  too\n\trisky  "), "too risky"),
        (Rejected(at=AT, by=PERSON, execution_id=X, reason=None), None),
        (GrantGiven(at=AT, by=PERSON, kernel_id="k", incarnation=1, until=AT), AT),
        (GrantGiven(at=AT, by=PERSON, kernel_id=None, incarnation=1, until=None), None),
        (GrantWithdrawn(at=AT, by=PERSON), None),
        (OutputsAccepted(at=AT, by=PERSON, execution_id=X), None),
        (Recovered(at=AT, by=SERVER, torn_bytes=3), None),
        (reviewed(X, None, "only a comment"), "only a comment"),
        (reviewed(X, None), None),
        (reviewed(X, None, "x" * 600), "x" * 499 + "…"),
        (reviewed(X, None, "a\ud800b\0c\u2068d"), "a?bcd"),
    ],
)
def test_an_event_says_in_one_line_what_it_says(history, session, entry: Entry, text):
    session.append([entry])
    assert texts(history, session)[0][1] == text


@pytest.mark.parametrize("source", ["x = 1\ny = 2", "y" * 20_000], ids=["short", "in a blob"])
def test_what_a_person_ran_can_be_read(history, session, source):
    payload = Payload.of(source.encode())
    entry = PersonRan(
        at=AT, by=PERSON, kernel_id="k", msg_id="m", source=payload.digest, execution_count=1
    )
    session.append([entry], [payload])
    ((kind, text),) = texts(history, session)
    assert kind == "person_ran"
    assert text == " ".join(source.split())[:499] + ("…" if len(source) > 500 else "")


@pytest.mark.parametrize(
    ("by", "name"),
    [
        (SERVER, None),
        (By(kind="person"), None),
        (By(kind="person", username="ada"), "ada"),
        (By(kind="agent", username="ada", agent="analyst"), "an agent on behalf of ada"),
        (By(kind="agent", username="ada", display_name="Ada"), "an agent on behalf of Ada"),
    ],
)
def test_who_did_it_is_named(history, session, by, name):
    session.append([replace(kernel_started(), by=by)])
    event = history.events(session.session_id, EventsQuery())[0][0]
    assert (event.by, event.by_kind) == (name, by.kind)


def test_events_come_page_by_page(history, session):
    session.append([kernel_started(n) for n in range(1, 6)])
    first, after = history.events(session.session_id, EventsQuery(limit=2))
    second, then = history.events(session.session_id, EventsQuery(after=after, limit=2))
    third, end = history.events(session.session_id, EventsQuery(after=then, limit=2))
    assert [event.n for event in (*first, *second, *third)] == [1, 2, 3, 4, 5]
    assert end is None


def test_events_of_no_session_are_refused(history):
    with pytest.raises(SessionNotFound):
        history.events("s_01JD0000000000000000000000", EventsQuery())
