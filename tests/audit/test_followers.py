"""The journals, copied to a folder: once, in order, and on from where it was."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.audit.followers import STOP_TIMEOUT, Followers, pause_after
from jupyter_agent_exec.audit.sink import Batch, Sink, SinkSettings
from jupyter_agent_exec.audit.sink_settings import make_sinks
from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.records import Payload, PersonRan, Reviewed
from tests.journal.recorded import AT, BY, PNG, closed, display, new_history, opened, run, stream
from tests.real_server import until

LOG = logging.getLogger("test.followers")


@pytest.fixture
def far(tmp_path: Path) -> Path:
    return tmp_path / "far"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "history"


def sinks(far: Path, **options: Any) -> list[Sink]:
    return make_sinks([{"kind": "folder", "path": str(far), "delay": 0, **options}])


@pytest.fixture
def history(folder: Path, far: Path) -> Iterator[History]:
    history = new_history(folder, sinks(far))
    yield history
    history.stop()


def up_to_date(history: History) -> bool:
    return set(history.copies.lags().values()) == {0}


def arrived(far: Path, journal: str) -> list[chain.ParsedLine]:
    """Return a journal's lines as they arrived, in the order of their files."""
    files = sorted(path for path in (far / journal).glob("[0-9]*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
    return [chain.parse_line(line) for line in dict.fromkeys(lines)]


def hashes(lines: list[chain.ParsedLine]) -> list[str]:
    return [line.hash for line in lines]


def kept(path: Path) -> list[str]:
    return [chain.parse_line(line).hash for line in path.read_bytes().splitlines(keepends=True)]


def journal_of(folder: Path, session: str) -> Path:
    return folder / "sessions" / session / "journal.jsonl"


def test_each_entry_arrives_once_in_order_and_the_ledger_too(history, folder, far):
    session = history.open_session(opened())
    for seq in range(1, 6):
        run(session, seq, f"step {seq}", [stream("done\n")])
    session.close(closed())
    until(lambda: up_to_date(history))
    path = journal_of(folder, session.session_id)
    assert hashes(arrived(far, session.session_id)) == kept(path)
    (ledger,) = folder.glob("ledger-*.jsonl")
    assert hashes(arrived(far, ledger.stem)) == kept(ledger)


def test_the_next_server_goes_on_from_the_cursors(history, folder, far):
    session = history.open_session(opened())
    run(session, 1, "first", [])
    history.stop()
    before = {path: path.stat().st_mtime_ns for path in far.rglob("*.jsonl")}
    assert before
    again = new_history(folder, sinks(far))  # it ends the session of the one before
    try:
        until(lambda: up_to_date(again))
        after = {path: path.stat().st_mtime_ns for path in far.rglob("*.jsonl")}
        assert before.items() <= after.items()
        path = journal_of(folder, session.session_id)
        assert hashes(arrived(far, session.session_id)) == kept(path)
    finally:
        again.stop()


def test_what_was_written_before_there_was_a_sink_arrives(folder, far):
    history = new_history(folder)
    session = history.open_session(opened())
    run(session, 1, "before", [])
    session.close(closed())
    history.stop()
    history = new_history(folder, sinks(far))
    try:
        until(lambda: up_to_date(history))
        path = journal_of(folder, session.session_id)
        assert hashes(arrived(far, session.session_id)) == kept(path)
    finally:
        history.stop()


def test_a_decision_after_the_end_of_a_session_arrives(history, folder, far):
    session = history.open_session(opened())
    execution = run(session, 1, "1", [])
    session.close(closed())
    until(lambda: up_to_date(history))
    verdict = Reviewed(at=AT, by=BY, execution_id=execution, verdict="approved")
    history.decide(session.session_id, [verdict])
    until(lambda: up_to_date(history))
    assert arrived(far, session.session_id)[-1].entry["type"] == "reviewed"


@pytest.mark.parametrize(
    ("content", "has_source", "has_output"),
    [("facts", False, False), ("sources", True, False), ("outputs", True, True)],
)
def test_only_what_was_chosen_goes_out(folder, far, content, has_source, has_output):
    history = new_history(folder, sinks(far, content=content))
    try:
        session = history.open_session(opened())
        run(session, 1, "secret_source()", [stream("secret output"), display({"image/png": PNG})])
        source = Payload.of(b"secret_of_the_user()")
        ran = PersonRan(
            at=AT,
            by=BY,
            kernel_id="k",
            msg_id="m",
            source=source.digest,
            execution_count=None,
        )
        session.append([ran], [source])
        until(lambda: up_to_date(history))
    finally:
        history.stop()
    everything = b"".join(path.read_bytes() for path in far.rglob("*") if path.is_file())
    assert (b"secret_source()" in everything) is has_source
    assert (b"secret_of_the_user()" in everything) is has_source
    assert (b"secret output" in everything) is has_output
    assert (b"\x89PNG" in everything) is has_output


def test_a_payload_over_the_limit_stays(folder, far):
    history = new_history(folder, sinks(far, content="outputs", max_payload_bytes=10))
    try:
        session = history.open_session(opened())
        run(session, 1, "1", [stream("a long output")])
        until(lambda: up_to_date(history))
    finally:
        history.stop()
    lines = arrived(far, session.session_id)
    assert [list(line.payloads.values()) for line in lines if line.payloads] == [["1"]]


def test_a_sink_that_was_away_gets_everything_later(history, folder, far):
    until(lambda: up_to_date(history))
    gone = far.rename(far.with_name("elsewhere"))
    far.write_text("in the way")
    session = history.open_session(opened())
    run(session, 1, "meanwhile", [])
    until(lambda: history.copies.status()[0].error)
    status = history.copies.status()[0]
    assert "NotADirectoryError" in (status.error or "")
    assert status.failing_since
    assert status.entries_behind >= 3
    assert history.copies.lags()["folder"] > 0
    far.unlink()
    gone.rename(far)
    until(lambda: up_to_date(history))
    assert history.copies.status()[0].error is None
    path = journal_of(folder, session.session_id)
    assert hashes(arrived(far, session.session_id)) == kept(path)


def test_an_absent_sink_is_no_missing_journal(folder, tmp_path):
    history = new_history(folder, sinks(tmp_path / "not" / "there"))
    try:
        history.open_session(opened())
        until(lambda: history.copies.status()[0].error)
        assert history.copies.status()[0].entries_behind >= 2
    finally:
        history.stop()


def test_a_dead_servers_entries_are_copied_by_another(history, folder, far, tmp_path):
    theirs = new_history(folder)  # it has no sink
    session = theirs.open_session(opened())
    run(session, 1, "theirs", [])
    history.copies.rescan()
    history.open_session(opened())
    until(lambda: up_to_date(history))
    history.settle()  # it sees that the other lives
    until(lambda: up_to_date(history))
    assert arrived(far, session.session_id) == []
    session.close(closed())
    theirs.stop()
    history.settle()
    until(lambda: arrived(far, session.session_id))
    until(lambda: up_to_date(history))
    path = journal_of(folder, session.session_id)
    assert hashes(arrived(far, session.session_id)) == kept(path)


def test_a_truncated_journal_keeps_its_copy_in_the_sink(folder, far):
    history = new_history(folder, sinks(far))
    session = history.open_session(opened())
    for seq in (1, 2):
        run(session, seq, f"step {seq}", [])
    session.close(closed())
    history.stop()
    path = journal_of(folder, session.session_id)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))
    history = new_history(folder, sinks(far))
    try:
        until(lambda: up_to_date(history))
    finally:
        history.stop()
    assert len(arrived(far, session.session_id)) == len(lines)
    head = chain.parse_line(lines[-4]).hash
    assert (far / session.session_id / f"rewind-{head}.json").is_file()


def test_a_write_that_failed_and_was_taken_back_is_not_sent(history, folder, far):
    session = history.open_session(opened())
    until(lambda: up_to_date(history))
    path = journal_of(folder, session.session_id)
    whole = path.stat().st_size
    line = chain.next_line(
        chain.GENESIS, chain.canonical({"n": 9, "at": AT, "type": "reviewed"}), {}, {}
    )[1]
    with path.open("ab") as file:  # as it is between a write and its sync
        file.write(line)
    history.copies.rescan()
    history.open_session(opened())  # it is behind until the next round, which looks at all first
    until(lambda: up_to_date(history))
    os.truncate(path, whole)
    run(session, 1, "goes on", [])
    until(lambda: up_to_date(history))
    assert hashes(arrived(far, session.session_id)) == kept(path)


class Halting(Sink):
    """A sink that takes nothing."""

    def deliver(self, batch: Batch) -> None:
        raise OSError("not now")

    def close(self) -> None:
        return


class Following(Sink):
    """A sink that takes its first batch when another has been closed."""

    other: Closing
    took_it = False

    def deliver(self, batch: Batch) -> None:
        self.took_it = self.took_it or self.other.is_closed.wait(STOP_TIMEOUT - 1)

    def close(self) -> None:
        return


class Closing(Sink):
    """A sink that says when it is closed."""

    def __init__(self, settings: SinkSettings) -> None:
        super().__init__(settings)
        self.is_closed = threading.Event()

    def deliver(self, batch: Batch) -> None:
        return

    def close(self) -> None:
        self.is_closed.set()


def test_all_sinks_stop_at_once(folder: Path) -> None:
    slow = Following(SinkSettings(name="slow", delay=0))
    slow.other = quick = Closing(SinkSettings(name="quick", delay=0))
    history = new_history(folder, [slow, quick])
    history.stop()
    assert slow.took_it


def test_a_returned_sink_is_noticed_while_code_waits():
    pauses = {strict: [pause_after(n, is_strict=strict) for n in range(1, 20)] for strict in (0, 1)}
    assert pauses[0][:3] == [0.5, 1, 2]
    assert max(pauses[0]) == 60
    assert max(pauses[1]) == 2


def test_stopping_ends_the_thread_while_the_far_side_is_gone(folder):
    (sink,) = sinks(folder)
    folder.mkdir()
    ledger = folder / "ledger-0000000000000000.jsonl"
    ledger.write_bytes(
        chain.next_line(chain.GENESIS, chain.canonical({"n": 0, "at": AT, "type": "x"}), {}, {})[1]
    )
    followers = Followers(folder, [Halting(sink.settings)], dict, lambda: None, LOG)
    followers.start()
    until(lambda: followers.status()[0].error)
    followers.stop()
    assert followers.status()[0].entries_behind == 1
