from __future__ import annotations

import logging
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.errors import HistoryUnavailable, InvalidRequest
from jupyter_agent_exec.journal import tables
from jupyter_agent_exec.journal.index import Index
from jupyter_agent_exec.models import Claim, ExecutionsQuery, SearchQuery, SessionsQuery
from tests.journal.recorded import (
    PNG,
    accepted,
    closed,
    dispatched,
    display,
    finished,
    new_execution_id,
    new_history,
    opened,
    run,
    stream,
)


def search(history, q=None, *, after=None, limit=50, **criteria):
    return history.search(SearchQuery(q=q, after=after, limit=limit, **criteria))


def sources(history, q=None, **criteria):
    return [hit.source for hit in search(history, q, **criteria).hits]


@pytest.fixture
def recorded(history, session):
    run(session, 1, "df = load('sales.csv')", [])
    run(session, 2, "df_sales.describe()", [stream("count 344\nmean 12.5\n")])
    run(session, 3, "plot(df)", [display({"image/png": PNG, "text/plain": "<Figure>"})])
    error = {
        "output_type": "error",
        "ename": "KeyError",
        "evalue": "'région'",
        "traceback": ["\x1b[31mKeyError\x1b[0m: 'région'"],
    }
    run(session, 4, "df['region']", [error], "error")
    other = history.open_session(opened(agent="other", title="Else"))
    run(other, 1, "print('hello world')", [stream("hello world\n")], at="2026-12-24T18:00:00.000Z")
    session.close(closed())
    return session.session_id, other.session_id


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("sales", ["df_sales.describe()", "df = load('sales.csv')"]),
        ("SALES load", ["df = load('sales.csv')"]),
        ("df_sales", ["df_sales.describe()"]),
        ("sal", ["df_sales.describe()", "df = load('sales.csv')"]),
        ("sal load", []),
        ('"sal"', []),
        ('"hello world"', ["print('hello world')"]),
        ('"world hello"', []),
        ("world hel", ["print('hello world')"]),
        ("344", ["df_sales.describe()"]),
        ("12.5", ["df_sales.describe()"]),
        ("keyerror", ["df['region']"]),
        ("region", ["df['region']"]),
        ("df['region']", ["df['region']"]),
        ("nothing", []),
        ("sales AND load", []),
        ("sales OR load", []),
        ("NOT sales", []),
        ("source:load", []),
        ('"unfinished phra', []),
        ('hello "wor', []),
        ('hello "world', ["print('hello world')"]),
        ("load('sales.csv') == *", ["df = load('sales.csv')"]),
        ("hello\0world", ["print('hello world')"]),
        ("^load (sales) + {x}", []),
    ],
)
def test_words_are_words_and_all_must_be_found(history, recorded, q, found):
    assert sources(history, q) == found


@pytest.mark.parametrize("q", ["*", '""', "== ()", '" "', "'"])
def test_a_search_for_nothing_is_refused(history, recorded, q):
    with pytest.raises(InvalidRequest) as caught:
        search(history, q)
    assert caught.value.detail["field"] == "q"


def test_any_text_can_be_searched_for(history, recorded):
    for character in [chr(n) for n in range(1, 0x250)] + ["\ud800", "\u2028", "😀"]:
        for q in (f"a{character}", f"{character}a", f"a {character} b", f'"a{character}b'):
            search(history, q)


def test_filters_narrow_a_search(history, recorded):
    mine, other = recorded
    assert sources(history, agent="other") == ["print('hello world')"]
    assert sources(history, status="error") == ["df['region']"]
    assert sources(history, session_id=other) == ["print('hello world')"]
    assert sources(history, has_image=True) == ["plot(df)"]
    assert len(sources(history, has_image=False)) == 4
    assert sources(history, "df", session_id=mine, has_image=True, status="ok") == ["plot(df)"]
    assert sources(history, "df", agent="other") == []
    assert sources(history, "  ", status="error") == ["df['region']"]


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        ("2026-12-24", None, 1),
        ("2026-12-25", None, 0),
        (None, "2026-11-20", 0),
        (None, "2026-11-21", 4),
        (None, "2026-11-21T08:59:59Z", 0),
        ("2026-11-21T10:00:00+01:00", "2026-12-24T18:00:00.000Z", 5),
        ("2026-12-24T18:00:00", None, 1),
    ],
)
def test_times_bound_a_search(history, recorded, since, until, found):
    assert len(sources(history, since=since, until=until)) == found


def test_results_come_newest_first_page_by_page(history, session):
    for seq in range(1, 8):
        run(session, seq, f"step {seq}", [])
    found, after = [], None
    for _ in range(4):
        page = search(history, "step", after=after, limit=2)
        found += [hit.seq for hit in page.hits]
        assert {hit.execution_count for hit in page.hits} == {1}
        after = page.next_after
    assert found == [7, 6, 5, 4, 3, 2, 1]
    assert after is None


def test_a_cell_is_found_by_its_purpose(history, session):
    run(session, 1, "x", [], claim=Claim(purpose="Count the quokkas"))
    (hit,) = search(history, "quokkas").hits
    assert hit.snippet == "Count the \u2068quokkas\u2069"


def test_a_hit_shows_where_it_matches(history, session):
    long = "x = 1\n" * 200
    run(session, 1, long, [stream("some \u2068needle\u2069 in text")])
    (hit,) = search(history, "needle").hits
    assert hit.snippet == "some \u2068needle\u2069 in text"
    assert (hit.title, hit.agent, hit.seq, hit.status) == ("Sales", "analyst", 1, "ok")
    assert hit.source == long[:500]
    assert search(history).hits[0].snippet == ""


def test_large_and_strange_outputs_are_found_by_their_text(history, session):
    outputs = [stream("start " + "x " * 9000), display({"text/plain": "\ud800 odd\0one"})]
    run(session, 1, "1", outputs)
    assert len(sources(history, "start")) == 1


def changed(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)


def rebuilt(folder):
    history = new_history(folder)
    try:
        for hit in search(history, has_image=True).hits:
            history.blob(history.execution(hit.execution_id).blobs[0].sha256)
        return (
            [record.id for record in history.sessions(SessionsQuery()).sessions],
            sources(history),
            sources(history, "df"),
            sources(history, has_image=True),
        )
    finally:
        history.stop()


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"garbage" * 5000),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: path.write_bytes(path.read_bytes()[:4096] + bytes(100_000)),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: changed(path, "DELETE FROM executions; PRAGMA user_version = 99"),
        lambda path: changed(path, "DROP TABLE executions"),
        lambda path: changed(path, "DROP TABLE blobs"),
    ],
    ids=[
        "missing",
        "empty",
        "garbage",
        "cut",
        "overwritten",
        "folder",
        "version",
        "table",
        "other table",
    ],
)
def test_a_harmed_index_is_made_again(history, folder, recorded, harm):
    history.sessions(SessionsQuery())
    history.stop()
    before = rebuilt(folder)
    assert len(before[1]) == 5
    harm(folder / "index.sqlite")
    assert rebuilt(folder) == before


def test_an_index_harmed_while_in_use_is_made_again(history, folder, recorded):
    before = sources(history)
    (folder / "index.sqlite").unlink()
    assert sources(history) == before
    assert (folder / "index.sqlite").exists()


def test_only_journals_that_have_grown_are_read_again(history, folder, recorded):
    mine, _ = recorded
    assert len(sources(history)) == 5  # until it is ready, a stop leaves all to the next start
    history.stop()
    journal = folder / "sessions" / mine / "journal.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b"load('", b"LOAD('"))
    with journal.with_name("other").open("wb"):
        pass
    assert "df = load('sales.csv')" in rebuilt(folder)[1]
    journal.write_bytes(content[: content.rindex(b"\n", 0, -1) + 1])
    assert len(rebuilt(folder)[1]) == 5
    journal.unlink()
    assert rebuilt(folder)[1] == ["print('hello world')"]


def test_a_journal_is_taken_in_by_chunks(folder, history, session):
    for seq in range(1, 60):
        run(session, seq, f"step {seq}", [stream("y" * 8000)])
    assert history.journal_path(session.session_id).stat().st_size > tables.CHUNK_BYTES
    assert len(history.executions(session.session_id, ExecutionsQuery(limit=100))[0]) == 59
    history.stop()
    (folder / "index.sqlite").unlink()
    assert len(rebuilt(folder)[1]) == 50


def test_a_line_that_nobody_understands_hides_no_other(history, folder, session):
    run(session, 1, "one", [])
    history.stop()
    with (folder / "sessions" / session.session_id / "journal.jsonl").open("ab") as file:
        file.write(b'{"hash":"' + b"0" * 64 + b'","entry":{"type":"from_the_future","n":9}}\n')
    again = new_history(folder)
    assert again.ready or again.sessions(SessionsQuery())
    assert sources(again) == ["one"]
    again.stop()


def test_an_execution_that_cannot_be_indexed_hides_no_other(history, session, caplog):
    run(session, 1, "one", [])
    started = new_execution_id()
    entry, source = accepted(started, 2, "two")
    session.append([entry, dispatched(started)], [source])
    assert sources(history) == ["two", "one"]
    end, payloads = finished(started, [{"output_type": "stream"}])  # without a name
    session.append_final([end], payloads)
    run(session, 3, "three", [])
    assert sources(history) == ["three", "two", "one"]
    assert f"The execution {started} cannot be indexed" in caplog.text
    assert history.session(session.session_id).executions == 3


def test_a_count_that_version_0_1_recorded_and_the_index_cannot_hold_is_none(history, session):
    started = new_execution_id()
    entry, source = accepted(started, 1, "one")
    end, _ = finished(started, [])
    session.append([entry, dispatched(started), replace(end, execution_count=2**70)], [source])
    assert [hit.execution_count for hit in search(history).hits] == [None]


def test_a_question_that_nobody_waits_for_any_more_is_not_run(history, session):
    begun, let_go, ran = threading.Event(), threading.Event(), []

    def slow(connection):
        begun.set()
        return let_go.wait(30)

    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(history._index.ask, slow)
        assert begun.wait(30)
        with pytest.raises(HistoryUnavailable, match="busy"):
            history._index.ask(ran.append, timeout=0.05)
        let_go.set()
        assert answer.result()
    assert sources(history) == []
    assert ran == []


def test_a_page_whose_executions_cannot_be_read_leads_on(history, session):
    for seq in (1, 2, 3):
        run(session, seq, f"step {seq}", [])
    path = history.journal_path(session.session_id)
    assert len(sources(history)) == 3
    content = path.read_bytes().splitlines(keepends=True)
    content[1] = content[1].replace(b'"type":"accepted"', b'"type":"accepteD"')
    path.write_bytes(b"".join(content))
    assert history.executions(session.session_id, ExecutionsQuery(limit=1)) == ([], 1)
    (record,), after = history.executions(session.session_id, ExecutionsQuery(limit=1, after=1))
    assert (record.seq, after) == (2, 2)


def test_a_line_that_is_being_written_is_read_when_it_is_whole(history, folder, session):
    for seq in (1, 2):
        run(session, seq, f"step {seq}", [])
    history.stop()
    journal = folder / "sessions" / session.session_id / "journal.jsonl"
    content = journal.read_bytes()
    (folder / "index.sqlite").unlink()
    index = Index(folder, logging.getLogger())
    journal.write_bytes(b"")
    index.start()
    for end in range(0, len(content), 97):  # many of these are within a line
        journal.write_bytes(content[:end])
        index.grown(session.session_id)
        index.ask(tables.indexed_sizes)
    journal.write_bytes(content)
    index.grown(session.session_id)
    assert index.ask(tables.indexed_sizes) == {session.session_id: len(content)}
    index.stop()
    assert rebuilt(folder)[1] == ["step 2", "step 1"]
