"""A history that was written when the index had version 1, before there were reviews."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from jupyter_agent_exec.journal.query import Criteria
from jupyter_agent_exec.journal.verify import Outcome, verify_history
from jupyter_agent_exec.journal.verify_notebook import verify_notebook
from tests.journal.recorded import new_history, reviewed


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "agent_exec"
    with zipfile.ZipFile(Path(__file__).parent / "history_with_index_1.zip") as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def history(folder):
    history = new_history(folder)
    yield history
    history.stop()


def test_it_is_shown_with_what_there_is_to_show_now(history):
    (session,) = history.sessions(target="notebook", unreviewed=True).sessions
    assert (session.status, session.unreviewed, session.asking, session.review) == (
        "closed", 2, 0, None,
    )  # fmt: skip
    assert (session.approval, session.approved_until) == ("none", None)
    (plotted, failed), _ = history.executions(session.id, brief=True)
    assert (plotted.status, plotted.review, plotted.approval, plotted.changes) == (
        "ok", None, None, None,
    )  # fmt: skip
    assert plotted.document is not None
    assert plotted.document.outputs == "accepted"
    assert [image.width for image in plotted.brief.images] == [2]
    assert [one.index for one in failed.brief.left_out] == [0]
    events, _ = history.events(session.id)
    assert [event.type for event in events] == [
        "kernel_started", "interrupted", "closed", "outputs_accepted",
    ]  # fmt: skip
    assert [image.seq for image in history.images(Criteria()).images] == [1]
    assert [hit.seq for hit in history.search(Criteria(q="plot")).hits] == [1]


def test_people_can_decide_about_it_and_it_still_verifies(history, folder):
    (session,) = history.sessions().sessions
    history.decide(session.id, [reviewed(None, "approved", up_to=2)])
    assert history.session(session.id).unreviewed == 0
    assert "whole_session" in "".join(history.notebook(session.id))
    history.stop()
    assert verify_history(folder).outcome is Outcome.WHOLE


def test_its_exports_agree_with_it(history, folder, tmp_path):
    (session,) = history.sessions().sessions
    for clean in (False, True):
        path = tmp_path / "export.ipynb"
        path.write_text("".join(history.notebook(session.id, clean=clean)), "utf-8")
        assert verify_notebook(path, history.journal_path(session.id)).findings == []
