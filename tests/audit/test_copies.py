"""What servers have sent to a folder: `verify` reads it as it reads a history. As in sinks.md."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.cli import main
from jupyter_agent_exec.journal.findings import Finding, Outcome
from jupyter_agent_exec.journal.verify import verify_history
from tests.audit.rewriting import journals, ledger_of, write_anew
from tests.journal.recorded import closed, new_history, opened, reviewed, run, stream
from tests.real_server import until

Write = Callable[..., str]


@pytest.fixture
def far(tmp_path: Path) -> Path:
    return tmp_path / "far"


@pytest.fixture
def write(far: Path, tmp_path: Path) -> Write:
    """Write a session of a server and send it; return the session's id."""

    def write(server: str = "one", content: str = "outputs") -> str:
        sink = {"kind": "folder", "path": str(far), "delay": 0, "content": content}
        history = new_history(tmp_path / server, make_sinks([{**sink, "server": server}]))
        try:
            session = history.open_session(opened())
            for seq in (1, 2):
                execution = run(session, seq, f"{seq}", [stream("x" * 9000)])
            session.close(closed())
            history.decide(session.session_id, [reviewed(execution)])
            until(lambda: set(history.copies.lags().values()) == {0})
        finally:
            history.stop()
        return str(session.session_id)

    return write


def finding(far: Path) -> Finding:
    (found,) = verify_history(far).findings
    return found


def test_what_arrived_whole_is_whole(far, write):
    for server in ("one", "two", "one"):
        write(server)
    report = verify_history(far)
    assert (report.outcome, report.findings, report.unchecked) == (Outcome.WHOLE, [], [])
    assert report.journals == 5  # three sessions, two ledgers


def test_a_journal_that_was_sent_again_is_as_whole_as_before(far, write, tmp_path):
    write("one")
    shutil.rmtree(tmp_path / "one" / "sinks")  # the cursors
    write("one")
    assert verify_history(far).findings == []


def test_payloads_that_were_not_sent_are_counted(far, write):
    session = write("one", content="facts")
    report = verify_history(far)
    assert report.findings == []
    assert report.unchecked == [f"{far / session}: 6 payloads that are not here"]


def test_a_restored_copy_that_is_written_on_is_here_in_two_versions(far, write, tmp_path):
    write("one")
    shutil.copytree(tmp_path / "one", tmp_path / "backup")  # with its cursors
    write("one")
    shutil.rmtree(tmp_path / "one")
    (tmp_path / "backup").rename(tmp_path / "one")
    write("one")
    told = [each for each in verify_history(far).findings if "in two versions" in each.message]
    assert told
    assert {(each.outcome, each.path.name[:7]) for each in told} == {(Outcome.ALTERED, "ledger-")}


def test_a_journal_that_was_cut_off_on_its_server_is_told(far, write, tmp_path):
    session = write("one")
    journal = tmp_path / "one" / "sessions" / session / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    write("one")
    found = finding(far)
    assert (found.outcome, found.path.parent.name) == (Outcome.TRUNCATED, session)
    assert found.message.startswith("On its server, the journal lost what had been sent of it")


def lines_of(far: Path, session: str) -> tuple[Path, list[bytes]]:
    """Return the lines of a session, in one file."""
    files = sorted((far / session).glob("*.jsonl"))
    data = b"".join(file.read_bytes() for file in files)
    for file in files[1:]:
        file.unlink()
    return files[0], data.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("change", "outcome", "message"),
    [
        (lambda lines: lines[:2] + lines[4:], Outcome.MISSING, "Entries 2 to 3 have not arrived."),
        (
            lambda lines: [*lines[:4], lines[4].replace(b'"seq":2', b'"seq":3'), *lines[5:]],
            Outcome.ALTERED,
            "Entry 4 or its hash was altered.",
        ),
        (
            lambda lines: [*lines[:1], lines[1].replace(b'":"1"}', b'":"9"}'), *lines[2:]],
            Outcome.ALTERED,
            "A payload of entry 1 was altered: ",
        ),
        (
            lambda lines: lines[:-2],
            Outcome.TRUNCATED,
            "The ledger says that it has 9 entries; it has 7.",
        ),
    ],
)
def test_gaps_altered_lines_and_altered_payloads_are_told(far, write, change, outcome, message):
    write()
    file, lines = lines_of(far, write())
    assert change(lines) != lines
    file.write_bytes(b"".join(change(lines)))
    found = finding(far)
    assert (found.outcome, found.message[: len(message)]) == (outcome, message)


def test_a_session_that_is_gone_is_told(far, write):
    session = write()
    shutil.rmtree(far / session)
    found = finding(far)
    assert (found.outcome, found.path) == (Outcome.MISSING, far / session)


def test_a_history_written_anew_does_not_have_the_head_that_was_sent(far, write, tmp_path, capsys):
    write()
    assert main(["verify", str(far)]) == 0
    assert "Whole: every line is as it was written" in capsys.readouterr().out
    history = tmp_path / "one"
    last = max((far / ledger_of(history).stem).glob("*.jsonl"))
    head = last.stem.rpartition("-")[2]
    assert main(["verify", str(history), "--head", head]) == 0
    write_anew(history)
    assert journals(history)
    assert main(["verify", str(history)]) == 0  # its own hashes fit each other
    assert main(["verify", str(history), "--head", head]) == int(Outcome.TRUNCATED)
