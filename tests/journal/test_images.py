from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import astuple

from jupyter_agent_exec.errors import InvalidRequest, SessionNotFound
from jupyter_agent_exec.journal.outputs import kept_images
from jupyter_agent_exec.models import EventsQuery, ExecutionReference, SearchQuery, derive
from jupyter_agent_exec.records import OutputRef
from tests.journal.recorded import (
    AT,
    PNG,
    REAL_PNG,
    SVG,
    add_late,
    add_update,
    closed,
    display,
    new_history,
    opened,
    reviewed,
    run,
    stream,
)


def plot(text="<Figure>", **more):
    return display({"image/png": REAL_PNG, "text/plain": text, **more})


def found(history, *, after=None, limit=50, **criteria):
    images = history.images(SearchQuery(after=after, limit=limit, **criteria)).images
    return [(image.seq, image.image.output) for image in images]


@pytest.fixture
def other(history):
    return history.open_session(opened(agent="other", title="Else"))


def test_an_image_is_told_with_its_size_and_whence_it_came(history, session):
    execution_id = run(session, 3, "plot()", [stream("x"), plot()])
    ((pictured,), after) = history.images(SearchQuery())
    assert after is None
    execution = derive(ExecutionReference, pictured)
    assert astuple(execution) == (execution_id, session.session_id, 3, "analyst", "Sales", AT)
    image = pictured.image
    assert (image.output, image.mimetype, image.width, image.height) == (1, "image/png", 2, 3)
    path, mimetype, size = history.blob(image.sha256)
    assert (mimetype, size, path.stat().st_size) == ("image/png", image.bytes, image.bytes)


def test_one_output_is_one_image_and_raster_before_svg(history, session):
    both = {"image/svg+xml": SVG, "image/png": REAL_PNG}
    run(session, 1, "1", [display(both), display({"image/svg+xml": SVG})])
    images = history.images(SearchQuery()).images
    assert [i.image.mimetype for i in images] == ["image/png", "image/svg+xml"]
    assert (images[1].image.width, images[1].image.height) == (4, 5)


def test_an_image_whose_size_it_does_not_tell_is_listed(history, session):
    run(session, 1, "1", [display({"image/png": PNG})])
    (pictured,) = history.images(SearchQuery()).images
    assert (pictured.image.width, pictured.image.height) == (None, None)


@pytest.mark.parametrize("width", ["9" * 400, str(2**63)])
def test_an_image_that_tells_no_possible_size_is_listed(history, session, width):
    execution_id = run(session, 1, "1", [display({"image/svg+xml": SVG.replace("4", width)})])
    (pictured,) = history.images(SearchQuery()).images
    assert (pictured.image.width, pictured.image.height) == (None, None)
    record = history.execution(execution_id)
    (image,) = kept_images(record.outputs, record.blobs)
    assert (image.width, image.height) == (None, None)


def test_what_no_url_can_show_is_not_listed(history, session):
    run(session, 1, "1", [display({"image/png": REAL_PNG[:60] + "\n" + REAL_PNG[60:]})])
    assert found(history) == []


def test_a_session_has_them_in_order_and_a_search_the_newest_first(history, session, other):
    run(session, 1, "a", [plot(), plot()])
    run(other, 1, "b", [plot()])
    run(session, 2, "c", [plot()])
    assert found(history, session_id=session.session_id) == [(1, 0), (1, 1), (2, 0)]
    assert found(history) == [(2, 0), (1, 0), (1, 0), (1, 1)]


@pytest.mark.parametrize("criteria", [{}, {"q": "plot"}, {"session_id": True}], ids=str)
def test_pages_hold_each_image_once(history, session, other, criteria):
    for seq in range(1, 5):
        run(session, seq, f"plot({seq})", [plot(), plot(), plot()])
    run(other, 1, "else", [])
    if "session_id" in criteria:
        criteria = {"session_id": session.session_id}
    whole = found(history, **criteria)
    assert len(whole) == 12
    pages, after = [], None
    while True:
        page, after = history.images(SearchQuery(after=after, limit=5, **criteria))
        pages += [(one.seq, one.image.output) for one in page]
        if after is None:
            break
    assert pages == whole


def test_images_are_found_by_what_is_true_of_their_executions(history, session, other):
    first = run(session, 1, "df.plot()", [plot()])
    run(session, 2, "df.hist()", [plot()], "error", at="2026-12-24T18:00:00.000Z")
    run(other, 1, "df.plot()", [plot()])
    session.append([reviewed(first, "flagged")])
    mine = {"session_id": session.session_id}
    assert found(history, q="plot", **mine) == [(1, 0)]
    assert found(history, status="error") == [(2, 0)]
    assert found(history, agent="other") == [(1, 0)]
    assert found(history, since="2026-12-24") == [(2, 0)]
    assert found(history, until="2026-12-23", **mine) == [(1, 0)]
    assert found(history, review="flagged") == [(1, 0)]
    assert found(history, review="none", **mine) == [(2, 0)]
    assert found(history, target="notebook") == []
    assert len(found(history, target="scratch")) == 3
    assert found(history, has_image=False) == []


def test_images_follow_what_comes_late_and_what_is_updated(history, session):
    execution_id = run(session, 1, "1", [plot(), display({"text/plain": "soon"})])
    assert found(history) == [(1, 0)]
    for index, data in ((1, {"image/png": REAL_PNG}), (0, {"text/plain": "gone"})):
        add_update(session, execution_id, display(data), OutputRef(execution_id, index))
    assert found(history) == [(1, 1)]
    add_late(session, execution_id, [plot()])
    assert found(history) == [(1, 1), (1, 2)]


def test_an_index_made_again_has_them_all(history, session, folder):
    execution_id = run(session, 1, "1", [plot(), plot()])
    session.append([reviewed(execution_id)])
    session.close(closed())
    before = (history.images(SearchQuery()), history.events(session.session_id, EventsQuery()))
    assert len(before[0][0]) == 2
    history.stop()
    (folder / "index.sqlite").unlink()
    again = new_history(folder)
    try:
        assert (
            again.images(SearchQuery()),
            again.events(session.session_id, EventsQuery()),
        ) == before
    finally:
        again.stop()


def test_nothing_is_left_of_a_session_that_is_gone(history, session, folder):
    run(session, 1, "1", [plot()])
    session.close(closed())
    history.stop()
    shutil.rmtree(folder / "sessions" / session.session_id)
    again = new_history(folder)
    assert again.images(SearchQuery()).images == []
    again.stop()
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        for table in ("images", "events", "executions", "blobs", "texts"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


EXECUTION = "x_01M7ZHJVCRWQGQXVVHGBWTQPV3"


@pytest.mark.parametrize(
    ("after", "criteria", "field"),
    [
        ("x", {}, "after"),
        (EXECUTION, {}, "after"),
        (f"{EXECUTION}:-1", {}, "after"),
        (f"{EXECUTION}:9999999999999", {}, "after"),
        (None, {"since": "yesterday"}, "since"),
        (None, {"q": "=="}, "q"),
    ],
)
def test_bad_values_are_named(history, after, criteria, field):
    with pytest.raises(InvalidRequest) as caught:
        history.images(SearchQuery(after=after, **criteria))
    assert caught.value.detail["field"] == field


def test_what_cannot_be_a_session_is_refused(history):
    with pytest.raises(SessionNotFound):
        history.images(SearchQuery(session_id="s"))


def test_images_are_found_by_the_last_review_of_their_execution(history, session, other):
    first, second = (run(session, seq, "1", [plot()]) for seq in (1, 2))
    run(session, 3, "1", [], "cancelled")
    run(other, 1, "1", [plot()])
    mine = {"session_id": session.session_id}
    session.append([reviewed(first)])
    assert found(history, review="approved") == [(1, 0)]
    assert found(history, review="none", **mine) == [(2, 0)]
    session.append([reviewed(first, "flagged")])
    assert found(history, review="approved") == []
    assert found(history, review="flagged", **mine) == [(1, 0)]
    session.append([reviewed(first, None)])
    assert found(history, review="none", **mine) == [(1, 0), (2, 0)]
    session.append([reviewed(second, None, "hm")])
    assert found(history, review="none", **mine) == [(1, 0)]
