"""Lists, searches and lookups while the index is rebuilt."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jupyter_agent_exec.models import Indexing
from jupyter_agent_exec.queries import ExecutionsQuery, SearchQuery, SessionsQuery
from tests.journal.recorded import PNG, closed, display, new_history, opened, run
from tests.mcp.raw_mcp import RawMcp

SESSIONS = 80
FIRST_BATCHES = 64
"""Sessions of the first two batches, in the second of which the rebuild is held."""


class HeldRebuild(logging.Handler):
    """Holds the index's thread when it reports that it cannot read a journal."""

    def __init__(self):
        super().__init__()
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def emit(self, record):
        if "cannot be indexed" in record.getMessage():
            self.reached.set()
            self.let_go.wait(60)

    def wait_for_questions(self, history, count):
        """Wait until this many questions wait for the index, which is held."""
        index = history._index
        with index._condition:
            assert index._condition.wait_for(lambda: len(index._questions) >= count, 30)


@pytest.fixture
def recorded(history_dir):
    """The ids of closed sessions, the most recently written first, and each one's execution."""
    history = new_history(history_dir)
    ran = {}
    for _ in range(SESSIONS):
        session = history.open_session(opened())
        outputs = [display({"image/png": PNG, "text/plain": "a plot"})]
        ran[session.session_id] = run(session, 1, "plot(quokkas)", outputs)
        session.close(closed())
    history.stop()
    newest_first = sorted(ran)[40:] + sorted(ran)[:40]  # not in the order of their ids
    for age, session_id in enumerate(newest_first):
        at = 1_700_000_000 - age
        os.utime(history_dir / "sessions" / session_id / "journal.jsonl", (at, at))
    return {session_id: ran[session_id] for session_id in newest_first}


def harm(folder, recorded):
    """Delete the index, and have a journal in the second batch that cannot be read."""
    session_id = list(recorded)[40]
    journal = folder / "sessions" / session_id / "journal.jsonl"
    at = journal.stat().st_mtime
    journal.unlink()
    (journal / "odd").mkdir(parents=True)
    os.utime(journal, (at, at))
    (folder / "index.sqlite").unlink()
    return session_id


@pytest.fixture
def held(history_dir, recorded):
    """A history whose rebuild stands still after the first sessions."""
    broken = harm(history_dir, recorded)
    held = HeldRebuild()
    log = logging.getLogger("test.history")
    log.addHandler(held)
    history = new_history(history_dir)
    assert held.reached.wait(30)
    yield history, held, broken
    held.let_go.set()
    history.stop()
    log.removeHandler(held)


def test_the_newest_are_listed_and_found_while_the_index_is_made_again(held, recorded):
    history, held, broken = held
    newest = set(list(recorded)[:FIRST_BATCHES]) - {broken}
    part = Indexing(done=FIRST_BATCHES, total=SESSIONS)
    with ThreadPoolExecutor() as pool:
        listed = pool.submit(history.sessions, SessionsQuery(limit=100))
        found = pool.submit(history.search, SearchQuery(q="quokkas", limit=100))
        shown = pool.submit(history.images, SearchQuery(limit=100))
        held.wait_for_questions(history, 3)
        assert history.indexing == Indexing(done=FIRST_BATCHES // 2, total=SESSIONS)
        held.let_go.set()
        assert {session.id for session in listed.result(30).sessions} == newest
        assert {hit.session_id for hit in found.result(30).hits} == newest
        assert {image.session_id for image in shown.result(30).images} == newest
        assert [page.result().indexing for page in (listed, found, shown)] == [part] * 3
    assert len(history.execution(recorded[list(recorded)[-1]]).outputs) == 1
    whole = history.sessions(SessionsQuery(limit=100))
    assert {session.id for session in whole.sessions} == set(recorded) - {broken}
    assert whole.indexing is None
    assert history.search(SearchQuery()).indexing is None
    assert history.images(SearchQuery()).indexing is None
    assert history.indexing is None


def test_a_lookup_waits_for_the_whole_index(held, recorded):
    history, held, _ = held
    oldest = list(recorded)[-1]
    with ThreadPoolExecutor() as pool:
        lookups = [
            pool.submit(history.execution, recorded[oldest]),
            pool.submit(history.session, oldest),
            pool.submit(history.executions, oldest, ExecutionsQuery()),
            pool.submit(history.session_of, recorded[oldest]),
        ]
        listed = pool.submit(history.sessions, SessionsQuery(limit=100))
        held.wait_for_questions(history, 1)
        held.let_go.set()
        assert listed.result(30).indexing is not None
        execution, session, executions, session_id = (each.result(30) for each in lookups)
    assert execution.id == recorded[oldest]
    assert session.id == session_id == oldest
    assert len(executions[0]) == 1


def test_a_request_sent_once_waits_for_the_index(held, recorded):
    history, held, _ = held
    ready = history.until_ready()
    assert not ready.done()
    held.let_go.set()
    ready.result(30)
    assert history.ready
    assert history.until_ready().done()


def test_what_grows_during_a_rebuild_is_listed(held, recorded):
    history, held, _ = held
    new = history.open_session(opened())
    run(new, 1, "wombats", [])
    with ThreadPoolExecutor() as pool:
        found = pool.submit(history.search, SearchQuery(q="wombats"))
        held.wait_for_questions(history, 1)
        held.let_go.set()
        assert [hit.session_id for hit in found.result(30).hits] == [new.session_id]
        assert found.result().indexing is not None
    run(new, 2, "wombats again", [])
    assert len(history.search(SearchQuery(q="wombats")).hits) == 2


async def test_the_routes_and_mcp_say_that_the_index_is_being_rebuilt(
    recorded, agent, ask, jp_serverapp
):
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    whole = (await agent.get("sessions", limit=100)).json
    assert (len(whole["sessions"]), whole["indexing"]) == (SESSIONS, None)
    held = HeldRebuild()
    app.log.addHandler(held)
    try:
        harm(app.services.history.folder, recorded)
        # The question by which the loss is noticed is answered from the whole index.
        first = asyncio.create_task(
            asyncio.to_thread(app.services.history.sessions, SessionsQuery())
        )
        assert await asyncio.to_thread(held.reached.wait, 30)
        partial = asyncio.gather(
            agent.get("sessions", limit=100),
            agent.get("search", q="quokkas", limit=100),
            agent.get("images", limit=100),
            RawMcp(ask, jp_serverapp.identity_provider.token, modern=True).call(
                "list_sessions", status="closed"
            ),
        )
        await asyncio.to_thread(held.wait_for_questions, app.services.history, 4)
        held.let_go.set()
        *answers, told = await partial
        listed, found, shown = (answered.json for answered in answers)
    finally:
        held.let_go.set()
        app.log.removeHandler(held)
    for page, name in ((listed, "sessions"), (found, "hits"), (shown, "images")):
        assert page["indexing"] == {"done": FIRST_BATCHES, "total": SESSIONS}
        assert len(page[name]) == FIRST_BATCHES - 1
    sentence = "The index is being rebuilt: 64 of 80 sessions so far; results may be missing."
    assert f"[{sentence}]" in told["content"][0]["text"]
    assert (await first).indexing is None
