"""Lists, searches and lookups while the index is rebuilt."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jupyter_agent_exec.models import ExecutionsQuery, SearchQuery, SessionsQuery
from tests.journal.recorded import PNG, closed, display, new_history, opened, run

SESSIONS = 80


class HeldRebuild(logging.Filter):
    """Holds the index's thread when it reports that it cannot read a journal."""

    def __init__(self):
        super().__init__()
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def filter(self, record):
        if "cannot be indexed" in record.getMessage():
            self.reached.set()
            self.let_go.wait(60)
        return True


@pytest.fixture
def recorded(history_dir):
    """The ids of closed sessions, and each one's execution."""
    history = new_history(history_dir)
    ran = {}
    for _ in range(SESSIONS):
        session = history.open_session(opened())
        outputs = [display({"image/png": PNG, "text/plain": "a plot"})]
        ran[session.session_id] = run(session, 1, "plot(quokkas)", outputs)
        session.close(closed())
    history.stop()
    return ran


def harm(folder, recorded):
    """Delete the index, and have a journal that cannot be read."""
    session_id = list(recorded)[40]
    journal = folder / "sessions" / session_id / "journal.jsonl"
    journal.unlink()
    (journal / "odd").mkdir(parents=True)
    (folder / "index.sqlite").unlink()
    return session_id


@pytest.fixture
def held(history_dir, recorded):
    """A history whose rebuild stands still."""
    broken = harm(history_dir, recorded)
    held = HeldRebuild()
    log = logging.getLogger("test.history")
    log.addFilter(held)
    history = new_history(history_dir)
    assert held.reached.wait(30)
    yield history, held, broken
    held.let_go.set()
    history.stop()
    log.removeFilter(held)


def test_lists_searches_and_lookups_wait_for_the_whole_index(held, recorded):
    history, held, broken = held
    oldest = list(recorded)[-1]
    new = history.open_session(opened())
    run(new, 1, "wombats", [])
    with ThreadPoolExecutor() as pool:
        listed = pool.submit(history.sessions, SessionsQuery(limit=100))
        found = pool.submit(history.search, SearchQuery(q="quokkas", limit=100))
        shown = pool.submit(history.images, SearchQuery(limit=100))
        execution = pool.submit(history.execution, recorded[oldest])
        executions = pool.submit(history.executions, oldest, ExecutionsQuery())
        grown = pool.submit(history.search, SearchQuery(q="wombats"))
        assert not history.ready
        held.let_go.set()
        whole = set(recorded) - {broken}
        assert {session.id for session in listed.result(30).sessions} == {*whole, new.session_id}
        assert {hit.session_id for hit in found.result(30).hits} == whole
        assert {image.session_id for image in shown.result(30).images} == whole
        assert execution.result(30).id == recorded[oldest]
        assert len(executions.result(30)[0]) == 1
        assert [hit.session_id for hit in grown.result(30).hits] == [new.session_id]


def test_a_request_sent_once_waits_for_the_index(held, recorded):
    history, held, _ = held
    ready = history.until_ready()
    assert not ready.done()
    held.let_go.set()
    ready.result(30)
    assert history.ready
    assert history.until_ready().done()


async def test_a_long_rebuild_refuses_what_needs_the_index_and_code_runs(
    recorded, agent, jp_serverapp
):
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    session = await agent.open()
    held = HeldRebuild()
    app.log.addFilter(held)
    try:
        harm(app.services.history.folder, recorded)
        # The question by which the loss is noticed is answered from the whole index.
        first = asyncio.create_task(
            asyncio.to_thread(app.services.history.sessions, SessionsQuery())
        )
        assert await asyncio.to_thread(held.reached.wait, 30)
        app.services.history._index._rebuilt_since -= 60  # as if it had begun a minute ago
        refused = await agent.get("search", q="quokkas")
        assert (refused.status, refused.json["code"]) == (503, "history_unavailable")
        assert "still being indexed" in refused.json["message"]
        assert (await agent.get("status")).json["search_ready"] is False
        assert (await agent.run(session, "6 * 7"))["text"] == "42"
    finally:
        held.let_go.set()
        app.log.removeFilter(held)
    assert len((await first).sessions) == 50
    assert (await agent.get("status")).json["search_ready"] is True
    found = (await agent.get("search", q="quokkas", limit=100)).json
    assert len(found["hits"]) == SESSIONS - 1
