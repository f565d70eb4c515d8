"""Erasing from the record, and what remains."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jupyter_agent_exec.errors import (
    ExecutionNotFound,
    HistoryUnavailable,
    InvalidRequest,
    SessionNotFound,
)
from jupyter_agent_exec.journal import erasure, tables
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.journal.verify_notebook import verify_notebook
from jupyter_agent_exec.models import Erase, Progress, SearchQuery
from jupyter_agent_exec.records import (
    SERVER,
    InputAsked,
    InputGiven,
    Payload,
    PersonRan,
)
from tests.journal.recorded import (
    AT,
    PERSON,
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
    write_history,
)

SECRET = "hunter2swordfish"
LONG = f"{'x' * 9000} {SECRET}"


def full_session(history, *, end=True, secret=SECRET, **fields):
    """Record a session that has a secret in every kind of payload that an execution has."""
    entry = opened(**fields)
    session = history.open_session(entry)
    first = new_execution_id()
    body = Payload.unkept(hashlib.sha256(secret.encode()).hexdigest().encode())
    values = Payload.of(f'{{"v":"{secret}"}}'.encode())
    told = {"idempotency_key": "k", "body_sha256": body.digest, "values": values.digest}
    asked, source = accepted(first, 1, f"print('{secret}')", **told)
    session.append([asked, dispatched(first)], [source, values, body])
    prompt, value = Payload.of(f"{secret}?".encode()), Payload.of(secret.encode())
    asks = InputAsked(at=AT, by=SERVER, execution_id=first, prompt=prompt.digest)
    gives = InputGiven(at=AT, by=PERSON, execution_id=first, value=value.digest)
    session.append([asks, gives], [prompt, value])
    spill = session.new_text_spill(100_000)
    spill.write(LONG)
    text = spill.finish()
    changes = Payload.of(
        f'{{"variables":[{{"name":"{secret}","change":"added","type":"int"}}]}}'.encode()
    )
    outputs = [stream(LONG), display({"image/png": PNG, "text/html": f"<b>{secret}</b>"})]
    value_of = Payload.of(f'{{"v":{{"status":"ok","json":"{secret}"}}}}'.encode())
    more = {"variables": changes.digest, "text": text.payload.digest, "text_bytes": text.bytes}
    ended, payloads = finished(first, outputs, values=value_of.digest, **more)
    session.append_final([ended], [*payloads, changes, value_of, text.payload])
    second = run(session, 2, "1 + 1", [stream("two")])
    mine = Payload.of(b"mine = 1")
    ran = PersonRan(
        at=AT, by=PERSON, kernel_id="k", msg_id="m", source=mine.digest, execution_count=1
    )
    session.append([ran], [mine])
    if end:
        session.close(closed())
    return entry.session_id, first, second


def files_with(folder: Path, text: str) -> list[str]:
    """Return the files that have a text somewhere, in any case: the index has it folded."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and text.encode() in path.read_bytes().lower()
    ]


def test_how_far_an_erasure_is_can_be_asked(history):
    for _ in range(3):
        full_session(history)
    seen = []
    history.signatures.changed = lambda path, chain: seen.append(history.erasing)
    history.erase(Erase(text=SECRET), PERSON)
    assert seen == [Progress(done=done, total=3) for done in range(3)]
    assert history.erasing is None


def test_no_byte_of_an_execution_remains_on_disk(history, folder):
    session_id, first, second = full_session(history)
    history.search(SearchQuery(q=SECRET))
    assert {"index.sqlite", f"sessions/{session_id}/journal.jsonl"} < set(
        files_with(folder, SECRET)
    )
    told = history.erase(Erase(execution_id=first, reason="A password."), PERSON)
    assert files_with(folder, SECRET) == []
    assert history.search(SearchQuery(q=SECRET)).hits == []
    assert history.images(SearchQuery()).images == []
    gone = history.execution(first)
    assert (gone.source, gone.outputs, gone.values, gone.outputs_complete) == ("", [], None, False)
    assert history.execution(second).source == "1 + 1"
    assert [(each.executions, each.payloads) for each in told.sessions] == [(1, 10)]
    assert list((folder / "sessions" / session_id / "blobs").iterdir()) == []
    history.stop()
    report = verify_history(folder)
    assert (report.outcome, report.findings) == (Outcome.WHOLE, [])
    (said,) = report.erased
    assert "Grace erased 10 payloads" in said
    assert said.endswith("A password.")


def test_pages_of_the_index_that_become_free_hold_nothing(history, folder):
    """Also where SQLite does not overwrite what it removes, as it does on many systems."""
    session = history.open_session(opened())
    for seq in range(1, 80):
        run(session, seq, f"{'x' * 400} {SECRET}", [])
    assert len(history.search(SearchQuery(q=SECRET, limit=100)).hits) == 79
    history.stop()
    connection = tables.connect(folder / "index.sqlite")
    connection.execute("PRAGMA secure_delete = OFF")
    tables.forget(connection, session.session_id)
    assert SECRET.encode() in (folder / "index.sqlite").read_bytes()
    tables.merge_texts(connection)
    tables.vacuum(connection)
    connection.close()
    assert SECRET.encode() not in (folder / "index.sqlite").read_bytes()


def test_a_dry_run_tells_the_same_and_changes_nothing(history, folder):
    session_id, first, _ = full_session(history)
    history.session(session_id)
    before = {path: path.read_bytes() for path in (folder / "sessions").rglob("*.jsonl")}
    dry = history.erase(Erase(execution_id=first, dry_run=True), PERSON)
    assert dry.dry_run
    assert {path: path.read_bytes() for path in before} == before
    assert history.execution(first).source != ""
    wet = history.erase(Erase(execution_id=first), PERSON)
    assert wet.sessions == dry.sessions
    assert any("notebooks" in each.lower() for each in wet.remains)


def test_what_is_left_does_not_tell_a_guess_from_another(history, folder):
    """The whole dictionary is tried against everything that an entry names."""
    _, first, _ = full_session(history, secret="pin 4711")
    history.erase(Erase(execution_id=first), PERSON)
    history.stop()
    left = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for number in range(10_000):
        for form in ("pin {}", "print('pin {}')", '{{"v":"pin {}"}}', "pin {}?"):
            guess = form.format(f"{number:04}").encode()
            digest = hashlib.sha256(guess).hexdigest()
            assert digest.encode() not in left
            assert hashlib.sha256(digest.encode()).hexdigest().encode() not in left
    assert b'"salts"' in left  # those of the other execution
    journal = next(folder.glob("sessions/*/journal.jsonl"))
    erased = [line for line in lines(journal) if getattr(line.entry, "execution_id", 0) == first]
    assert len(erased) == 5
    assert all(line.payloads == line.salts == {} for line in erased)


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ({"agent": "analyst"}, {"other"}),
        ({"username": "ada"}, set()),
        ({"text": "no such text"}, {"analyst", "other"}),
    ],
)
def test_what_an_agent_or_a_user_did_goes_and_nothing_else(history, wanted, left):
    made = {agent: full_session(history, agent=agent) for agent in ("analyst", "other")}
    history.erase(Erase(**wanted), PERSON)
    sources = {agent: history.execution(ids[2]).source for agent, ids in made.items()}
    assert {agent for agent, source in sources.items() if source} == left


def test_what_a_user_ran_goes_also_from_sessions_of_others(history):
    session_id, _, second = full_session(history)
    history.erase(Erase(username="grace"), PERSON)
    assert "mine = 1" not in "".join(history.notebook(session_id))
    assert history.execution(second).source == "1 + 1"


def test_a_text_goes_wherever_it_is_and_the_rest_stays(history, folder):
    session_id, first, _ = full_session(history, title=f"About {SECRET}")
    quoted = history.open_session(opened())
    third = run(quoted, 1, "say()", [stream('say "hunter2swordfish"\n')])
    quoted.close(closed())
    told = history.erase(Erase(text='"hunter2swordfish"'), PERSON)
    assert [each.session_id for each in told.sessions if each.payloads] == [
        session_id,
        quoted.session_id,
    ]
    assert (history.execution(third).source, history.execution(third).outputs) == ("say()", [])
    told = history.erase(Erase(text=SECRET), PERSON)
    assert [(each.session_id, each.facts) for each in told.sessions] == [(session_id, 1)]
    assert set(files_with(folder, SECRET)) <= {
        "index.sqlite",
        f"sessions/{session_id}/journal.jsonl",
    }  # the title, which the answer says
    assert history.execution(first).source == ""


def test_an_open_session_is_left_alone_and_named(history):
    session_id, first, _ = full_session(history, end=False)
    told = history.erase(Erase(session_id=session_id), PERSON)
    assert [each.is_open for each in told.sessions] == [True]
    assert history.execution(first).source != ""


def test_what_could_not_be_recorded_as_erased_stays(history, folder):
    _, first, _ = full_session(history)
    (ledger,) = folder.glob("ledger-*.jsonl")
    ledger.write_bytes(ledger.read_bytes().replace(b'"format":2', b'"format":3', 1))
    ledger.rename(folder / "ledger-of-a-later-version.jsonl")
    before = {path: path.read_bytes() for path in (folder / "sessions").rglob("*.jsonl")}
    with pytest.raises(HistoryUnavailable):
        history.erase(Erase(execution_id=first), PERSON)
    assert {path: path.read_bytes() for path in before} == before


def test_what_the_ledger_cannot_list_is_erased_by_the_next_start(
    history, folder, full_ledger, file_size_limit, tmp_path
):
    session_id, _, _ = full_session(history)
    full_ledger()
    with pytest.raises(HistoryUnavailable):
        history.erase(Erase(session_id=session_id), PERSON)
    file_size_limit(None)
    killed = Path(shutil.copytree(folder, tmp_path / "killed"))
    assert files_with(killed / "sessions", SECRET) != []
    again = new_history(killed)
    again.session(session_id)
    again.stop()
    assert files_with(killed, SECRET) == []
    assert verify_history(killed).outcome is Outcome.WHOLE


def test_it_must_be_said_what_to_erase(history):
    for wanted in (Erase(), Erase(agent="a", text="abc")):
        with pytest.raises(InvalidRequest) as refused:
            history.erase(wanted, PERSON)
    assert refused.value.detail["field"] == "text"
    with pytest.raises(SessionNotFound):
        history.erase(Erase(session_id="s_01J00000000000000000000000"), PERSON)
    with pytest.raises(ExecutionNotFound):
        history.erase(Erase(execution_id="x_01J00000000000000000000000"), PERSON)


def test_an_export_after_it_agrees_with_the_journal(history, tmp_path):
    session_id, first, _ = full_session(history)
    history.erase(Erase(execution_id=first), PERSON)
    export = tmp_path / "export.ipynb"
    export.write_text("".join(history.notebook(session_id)), "utf-8")
    assert verify_notebook(export, history.journal_path(session_id)).findings == []


def test_a_payload_that_is_missing_and_was_not_erased_is_still_missed(history, folder):
    session_id, _, second = full_session(history)
    history.erase(Erase(execution_id=second), PERSON)
    history.stop()
    next((folder / "sessions" / session_id / "blobs").iterdir()).unlink()
    assert verify_history(folder).outcome is Outcome.MISSING


def test_the_blobs_of_a_damaged_line_stay(history, folder):
    session_id, _, second = full_session(history)
    blobs = folder / "sessions" / session_id / "blobs"
    before = {path.name for path in blobs.iterdir()}
    path = history.journal_path(session_id)
    damaged = [
        line.replace(b'"entry":', b'"entrY":') if any(n.encode() in line for n in before) else line
        for line in path.read_bytes().splitlines(keepends=True)
    ]
    path.write_bytes(b"".join(damaged))
    history.erase(Erase(execution_id=second), PERSON)
    assert {path.name for path in blobs.iterdir()} == before


KILLED = """
    import os, shutil, sys
    from pathlib import Path
    from jupyter_agent_exec.models import Erase
    from tests.journal.recorded import PERSON, new_history

    made, copies, session_id = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

    def erase(folder, at):
        calls = 0
        history = new_history(folder)
        history.session(session_id)

        def died(event, args):
            nonlocal calls
            if event not in ("os.rename", "os.remove", "open"):
                return
            if event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR):
                return
            if str(args[0]).startswith(str(folder)):
                calls += 1
                if calls == at:
                    os._exit(9)

        sys.addaudithook(died)
        history.erase(Erase(session_id=session_id), PERSON)
        os._exit(0)

    for at in range(1, 100):
        folder = copies / str(at)
        shutil.copytree(made, folder)
        pid = os.fork()
        if not pid:
            erase(folder, at)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
            break
"""


def test_a_server_that_dies_in_between_leaves_what_the_next_one_completes(tmp_path):
    """Killed before each file that it writes, renames or removes, until it is not killed."""
    made, copies, root = tmp_path / "made", tmp_path / "copies", Path(__file__).parents[2]
    history = new_history(made)
    session_id, _, _ = full_session(history)
    history.stop()
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), made, copies, session_id],
        cwd=root,
        check=True,
    )
    completed = []
    for folder in copies.iterdir():
        history = new_history(folder)
        history.session(session_id)
        history.stop()
        report = verify_history(folder)
        assert (report.outcome, report.findings) == (Outcome.WHOLE, []), folder
        assert not list((folder / "erasing").glob("*"))
        if report.erased:
            completed.append(folder.name)
            assert files_with(folder, SECRET) == [], folder
    assert len(completed) > 3
    assert len(list(copies.iterdir())) - len(completed) > 1  # killed before the entry


def test_a_whole_history_can_be_erased_and_still_verifies(folder):
    write_history(folder)
    history = new_history(folder)
    history.erase(Erase(username="ada"), PERSON)
    journal = next(folder.glob("sessions/*/journal.jsonl"))
    assert all(not line.payloads for line in lines(journal))
    history.stop()
    report = verify_history(folder)
    assert (report.outcome, report.findings) == (Outcome.WHOLE, [])
    assert len(report.erased) == 2


def test_runs_of_entries_are_named_by_their_ends():
    assert erasure._ranges([0, 1, 2, 5, 7, 8]) == ((0, 2), (5, 5), (7, 8))
    assert erasure._ranges([]) == ()
