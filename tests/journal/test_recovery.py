from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.journal import Journal
from jupyter_agent_exec.journal.verify import verify_history
from tests.journal.recorded import AT, closed, lose_lines, new_history, new_session_id, opened, run


def whole(folder):
    return verify_history(folder).findings == []


_OTHER_SERVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.journal.recorded import accepted, closed, dispatched, new_execution_id, new_history
from tests.journal.recorded import opened, run, stream

history = new_history(Path(sys.argv[1]))
session = history.open_session(opened(title="theirs"))
done = run(session, 1, "x = 1", [stream("other words")])
lost, waiting = new_execution_id(), new_execution_id()
first, first_source = accepted(lost, 2, "long()")
second, second_source = accepted(waiting, 3, "never()")
session.append([first, dispatched(lost)], [first_source])
session.append([second], [second_source])
print(session.session_id, done, lost, waiting, flush=True)
sys.stdin.readline()
session.close(closed())
history.stop()
"""


@pytest.fixture
def other_server(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", _OTHER_SERVER, str(folder), str(Path(__file__).parents[2])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_two_servers_share_a_folder(history, folder, session, other_server):
    theirs = other_server.stdout.readline().split()[0]
    run(session, 1, "mine", [])
    assert len(list(folder.glob("ledger-*.jsonl"))) == 2
    other_server.communicate("end\n")
    assert other_server.returncode == 0
    session.close(closed())
    assert whole(folder)
    assert verify_history(folder).outcome is Outcome.WHOLE
    assert history.session(theirs).title == "theirs"


def test_the_sessions_of_a_killed_server_are_ended(folder, other_server):
    theirs, done, lost, waiting = other_server.stdout.readline().split()
    other_server.kill()
    other_server.wait()
    journal = folder / "sessions" / theirs / "journal.jsonl"
    with journal.open("ab") as file:
        file.write(b'{"hash":"torn')
    history = new_history(folder)
    assert len(list(folder.glob("ledger-*.jsonl"))) == 1
    record = history.session(theirs)
    assert (record.status, record.close_reason) == ("closed", "server_died")
    assert history.execution(done).status == "ok"
    record = history.execution(lost)
    assert (record.status, record.outputs_complete, record.omitted.unknown) == ("lost", False, True)
    assert record.reason is not None
    assert record.started_at == AT
    record = history.execution(waiting)
    assert (record.status, record.outputs_complete, record.started_at) == ("cancelled", True, None)
    assert record.finished_at is not None
    assert whole(folder)
    history.stop()
    content = journal.read_bytes()
    new_history(folder).stop()
    assert journal.read_bytes() == content


def test_a_session_that_no_ledger_heard_of_is_ended_and_listed(history, folder, session):
    history.stop()
    (ledger,) = folder.glob("ledger-*.jsonl")
    lose_lines(ledger, 1)
    assert verify_history(folder).outcome is Outcome.MISSING
    (folder / "sessions" / new_session_id()).mkdir()
    again = new_history(folder)
    assert again.session(session.session_id).close_reason == "server_died"
    assert whole(folder)
    again.stop()


def test_an_end_that_only_the_journal_tells_reaches_the_ledger(history, folder, session):
    session.close(closed())
    history.stop()
    (ledger,) = folder.glob("ledger-*.jsonl")
    lose_lines(ledger, 1)
    assert verify_history(folder).outcome is Outcome.MISSING
    again = new_history(folder)
    assert again.session(session.session_id).close_reason == "closed"
    assert b"session_closed" in ledger.read_bytes()
    assert whole(folder)
    again.stop()


def test_a_session_not_yet_in_the_ledger_is_left_alone(folder, other_server):
    other_server.stdout.readline()
    entry = opened()
    session = folder / "sessions" / entry.session_id
    session.mkdir()
    journal = Journal.create(session / "journal.jsonl")
    journal.append([entry])
    journal.close()
    history = new_history(folder)
    assert history.session(entry.session_id).status == "open"
    history.stop()
    other_server.kill()
    other_server.wait()
    history = new_history(folder)
    assert history.session(entry.session_id).status == "closed"
    history.stop()
