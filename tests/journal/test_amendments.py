"""What people decide about a session after its end."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from jupyter_agent_exec.errors import HistoryUnavailable
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.session_journal import amend_session, unlisted
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.records import (
    EditsDecided,
    OutputsAccepted,
    Payload,
)
from jupyter_agent_exec.text.redaction import Redactor
from tests.journal.recorded import (
    AT,
    BY,
    accepted,
    closed,
    finished,
    lose_lines,
    new_execution_id,
    new_history,
    opened,
    run,
    stream,
    written,
)


@pytest.fixture
def execution_id(session):
    id = new_execution_id()
    entry, source = accepted(id, 1, "print()")
    done, payloads = finished(id, [stream("a\n")])
    session.append([entry], [source])
    session.append([done, written(id)], payloads)
    return id


def test_a_decision_outlives_the_server(history, session, execution_id, folder):
    session.close(closed())
    history.stop()
    after = new_history(folder)
    after.decide(session.session_id, [OutputsAccepted(at=AT, by=BY, execution_id=execution_id)])
    assert after.execution(execution_id).document.outputs == "accepted"
    after.stop()
    assert verify_history(folder).outcome is Outcome.WHOLE
    last = new_history(folder)
    assert last.session(session.session_id).close_reason == "closed"
    last.stop()
    assert verify_history(folder).outcome is Outcome.WHOLE


@pytest.mark.parametrize("torn", [b"", b'{"hash":"0'])
def test_a_decision_whose_server_died_before_the_ledger_had_it_is_listed(
    history, session, execution_id, folder, torn
):
    session.close(closed())
    decision = OutputsAccepted(at=AT, by=BY, execution_id=execution_id)
    journal = history.journal_path(session.session_id)
    with suppress(InterruptedError), unlisted(journal.parent):
        amend_session(journal.parent, [decision], [], Redactor(), lambda *_: None)
        with journal.open("ab") as file:
            file.write(torn)
        raise InterruptedError  # the server is killed
    history.stop()
    assert verify_history(folder).outcome in (Outcome.MISSING, Outcome.TORN)
    after = new_history(folder)
    assert after.execution(execution_id).document.outputs == "accepted"
    after.stop()
    assert verify_history(folder).outcome is Outcome.WHOLE
    ledger = next(folder.glob("ledger-*.jsonl"))
    before = ledger.read_bytes().count(b"session_amended")
    new_history(folder).stop()
    assert ledger.read_bytes().count(b"session_amended") == before


def test_a_decision_that_the_ledger_could_not_list_is_listed_after_a_kill(
    history, session, execution_id, folder, full_ledger, file_size_limit, tmp_path
):
    session.close(closed())
    full_ledger()
    decision = OutputsAccepted(at=AT, by=BY, execution_id=execution_id)
    history.decide(session.session_id, [decision])
    file_size_limit(None)
    killed = Path(shutil.copytree(folder, tmp_path / "killed"))
    assert verify_history(killed).outcome is Outcome.MISSING
    new_history(killed).stop()
    assert verify_history(killed).outcome is Outcome.WHOLE
    history.stop()
    assert verify_history(folder).outcome is Outcome.WHOLE


def test_a_decision_about_a_session_that_is_just_closing_is_recorded(history):
    decision = OutputsAccepted(at=AT, by=BY, execution_id=new_execution_id())

    def decide_until(is_over, session_id):
        decided = 1
        while not is_over.is_set():
            history.decide(session_id, [decision])
            decided += 1
        history.decide(session_id, [decision])
        return decided

    with ThreadPoolExecutor(1) as thread:
        for _ in range(10):
            session, is_over = history.open_session(opened()), threading.Event()
            deciding = thread.submit(decide_until, is_over, session.session_id)
            session.close(closed())
            is_over.set()
            journal = history.journal_path(session.session_id)
            decided = deciding.result()
            assert decided == journal.read_bytes().count(b"outputs_accepted")


def test_a_server_starts_though_what_another_amended_was_cut_to_nothing(history, session, folder):
    session.close(closed())
    journal = history.journal_path(session.session_id)
    with suppress(InterruptedError), unlisted(journal.parent):
        raise InterruptedError  # the server is killed
    history.stop()
    journal.write_bytes(b"")
    new_history(folder).stop()
    assert list((folder / "amending").iterdir())  # it is tried again


def test_an_end_that_the_ledger_missed_is_no_second_end(history, session, execution_id, folder):
    session.close(closed())
    decision = OutputsAccepted(at=AT, by=BY, execution_id=execution_id)
    history.decide(session.session_id, [decision])
    history.stop()
    ledger = next(folder.glob("ledger-*.jsonl"))
    assert b"session_closed" in ledger.read_bytes().splitlines()[-2]
    lose_lines(ledger, 2)
    journal = history.journal_path(session.session_id)
    before = journal.read_bytes()
    new_history(folder).stop()
    assert journal.read_bytes() == before
    assert verify_history(folder).outcome is Outcome.WHOLE


def test_a_decision_that_was_cut_off_is_found(history, session, execution_id, folder):
    session.close(closed())
    history.decide(session.session_id, [OutputsAccepted(at=AT, by=BY, execution_id=execution_id)])
    path = history.journal_path(session.session_id)
    path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:-1]))
    assert verify_history(folder).outcome is Outcome.TRUNCATED


def test_anything_else_after_the_end_is_found(history, session, execution_id, folder):
    session.close(closed())
    history.decide(session.session_id, [finished(execution_id, [])[0]])
    ledger = next(folder.glob("ledger-*.jsonl"))
    kept = [line for line in ledger.read_bytes().splitlines(True) if b"amended" not in line]
    ledger.write_bytes(b"".join(kept))
    assert verify_history(folder).outcome is Outcome.ALTERED


def test_a_session_of_another_live_server_is_left_to_that(history, session, execution_id, folder):
    run(session, 2, '"type":"closed"', [stream('{"type":"closed"}')])
    other = new_history(folder)
    decision = OutputsAccepted(at=AT, by=BY, execution_id=execution_id)
    with pytest.raises(HistoryUnavailable, match="another server"):
        other.decide(session.session_id, [decision])
    other.stop()
    journal = history.journal_path(session.session_id).read_text()
    assert "outputs_accepted" not in [
        json.loads(line)["entry"]["type"] for line in journal.splitlines()
    ]


def test_a_payload_comes_with_a_decision_also_after_the_end(history, session):
    small = Payload.of(b'[{"source": "a"}]')
    large = Payload.of(b'[{"source": "%s"}]' % (b"a" * 10_000))
    session.close(closed())
    for payload in (small, large):
        entry = EditsDecided(
            at=AT, by=BY, path="a.ipynb", decisions=(), open=0, before=payload.digest
        )
        history.decide(session.session_id, [entry], [payload])
    journal = history.journal_path(session.session_id)
    *_, first, last = journal.read_text().splitlines()
    assert small.digest in json.loads(first)["payloads"]
    assert "payloads" not in json.loads(last)
    assert (journal.parent / "blobs" / large.digest).read_bytes() == large.data
