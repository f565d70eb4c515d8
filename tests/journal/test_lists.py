from __future__ import annotations

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.errors import SessionNotFound
from jupyter_agent_exec.models import KernelTarget, NotebookTarget, SessionsQuery
from tests.journal.recorded import ask, closed, opened, reviewed, run


@pytest.fixture
def begin(history):
    """Open a session; what is said of it is what differs."""

    def begin(**fields):
        return history.open_session(replace(opened(), **fields))

    return begin


def ids(history, **criteria):
    return [session.id for session in history.sessions(SessionsQuery(**criteria)).sessions]


def test_open_sessions_come_first_each_the_newest_first(history, begin):
    sessions = [begin() for _ in range(6)]
    for index in (1, 4, 5):
        sessions[index].close(closed())
    order = [3, 2, 0, 5, 4, 1]
    expected = [sessions[index].session_id for index in order]
    assert ids(history) == expected
    for limit in range(1, 6):
        listed, after = [], None
        while True:
            page = history.sessions(SessionsQuery(after=after, limit=limit))
            listed += [session.id for session in page.sessions]
            after = page.next_after
            if after is None:
                break
        assert listed == expected


def test_a_session_that_closes_between_pages_hides_no_other(history, begin):
    sessions = [begin() for _ in range(5)]
    sessions[0].close(closed())
    page = history.sessions(SessionsQuery(limit=2))
    shown = [session.id for session in page.sessions]
    assert shown == [s.session_id for s in (sessions[4], sessions[3])]
    for index in (3, 2):  # the one at which the page ended, and one that is still to come
        sessions[index].close(closed())
    rest = ids(history, after=page.next_after)
    assert rest[0] == sessions[1].session_id
    assert {session.session_id for session in sessions[:3]} <= set(rest)


def test_a_session_by_itself_is_a_place_to_go_on(history, begin):
    first, second, third = (begin() for _ in range(3))
    assert ids(history, after=third.session_id) == [second.session_id, first.session_id]
    second.close(closed())
    assert ids(history, after=third.session_id) == [first.session_id, second.session_id]
    assert ids(history, after=second.session_id) == []


def test_sessions_are_filtered(history, begin):
    old = begin(at="2026-11-20T09:00:00.000Z")
    notebook = begin(target=NotebookTarget(path="a.ipynb"), at="2026-11-21T09:00:00.000Z")
    kernel = begin(target=KernelTarget(kernel_id="k"), at="2026-11-22T09:00:00.000Z")
    kernel.close(closed())
    of = {"old": old, "notebook": notebook, "kernel": kernel}

    def names(**criteria):
        listed = ids(history, **criteria)
        return [name for id in listed for name, one in of.items() if one.session_id == id]

    assert names() == ["notebook", "old", "kernel"]
    assert names(target="scratch") == ["old"]
    assert names(target="notebook") == ["notebook"]
    assert names(target="kernel", status="closed") == ["kernel"]
    assert names(target="kernel", status="open") == []
    assert names(since="2026-11-21") == ["notebook", "kernel"]
    assert names(until="2026-11-21") == ["notebook", "old"]
    assert names(since="2026-11-21T09:00:00Z", until="2026-11-21T10:00:00+01:00") == ["notebook"]
    assert names(agent="nobody") == []


def test_what_nobody_has_reviewed_is_counted(history, begin):
    session, other = begin(), begin()

    def unreviewed():
        return history.session(session.session_id).unreviewed

    def with_unreviewed():
        return ids(history, unreviewed=True)

    assert unreviewed() == 0
    assert with_unreviewed() == []
    first, second = (run(session, seq, "1", []) for seq in (1, 2))
    run(session, 3, "1", [], "cancelled")
    run(session, 4, "1", [], "rejected")
    failed = run(session, 6, "1", [], "error")
    ask(session, 7, "1")
    run(other, 1, "1", [])
    assert unreviewed() == 3
    session.append([reviewed(first)])
    assert unreviewed() == 2
    session.append([reviewed(second, None, "a comment is something said")])
    assert unreviewed() == 1
    session.append([reviewed(first, None)])
    assert unreviewed() == 2
    assert len(with_unreviewed()) == 2
    session.append([reviewed(first), reviewed(failed)])
    assert unreviewed() == 0
    assert with_unreviewed() == [other.session_id]
    assert ids(history, unreviewed=False) == [session.session_id]
    run(session, 8, "1", [])
    assert unreviewed() == 1


def test_what_asks_is_counted(history, begin):
    session = begin()
    ask(session, 1, "1")
    ask(session, 2, "1")
    run(session, 3, "1", [])
    assert history.session(session.session_id).asking == 2
    assert [one.asking for one in history.sessions(SessionsQuery()).sessions] == [2]


@pytest.mark.parametrize("after", ["s_1", "open:s_1", ""])
def test_what_cannot_be_a_place_is_refused(history, after):
    with pytest.raises(SessionNotFound):
        history.sessions(SessionsQuery(after=after))
