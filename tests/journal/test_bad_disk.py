from __future__ import annotations

import os
import shutil
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from jupyter_agent_exec.errors import (
    HistoryUnavailable,
)
from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.models import SessionsQuery
from jupyter_agent_exec.storage.durability import RESERVE_BYTES
from tests.journal.recorded import (
    accepted,
    closed,
    dispatched,
    finished,
    new_execution_id,
    new_history,
    opened,
    plain_entries,
    run,
    stream,
)


def whole(folder):
    return verify_history(folder).findings == []


def test_what_has_happened_is_written_into_the_reserve(history, folder, session, file_size_limit):
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, 1, "1")
    session.append([entry, dispatched(execution_id)], [payload])
    assert (folder / "reserve").stat().st_size == RESERVE_BYTES
    end, payloads = finished(execution_id, [stream("done")])
    file_size_limit(session.file.head.length)  # smaller than any journal
    with pytest.raises(HistoryUnavailable):
        session.append_final([end], payloads)
    assert not (folder / "reserve").exists()
    assert session.kept
    assert not session.retry()
    assert not history.available
    with pytest.raises(HistoryUnavailable):
        session.append(plain_entries(1))
    with pytest.raises(HistoryUnavailable):
        history.check()
    with pytest.raises(HistoryUnavailable):
        history.open_session(opened())
    file_size_limit(None)
    history.check()
    assert session.retry()
    assert history.available
    assert (folder / "reserve").exists()
    assert history.execution(execution_id).outputs == [stream("done")]
    assert whole(folder)


def test_what_was_kept_goes_ahead_of_what_follows(history, folder, session, file_size_limit):
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, 1, "1")
    session.append([entry, dispatched(execution_id)], [payload])
    end, payloads = finished(execution_id, [])
    file_size_limit(100)
    with pytest.raises(HistoryUnavailable):
        session.append_final([end], payloads)
    with pytest.raises(HistoryUnavailable):
        session.close(closed())
    file_size_limit(None)
    assert session.retry()
    assert history.execution(execution_id).status == "ok"
    assert history.session(session.session_id).status == "closed"
    assert whole(folder)


def test_a_session_that_ended_on_a_failing_disk_is_closed_without_a_restart(
    history, folder, session, file_size_limit
):
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, 1, "1")
    session.append([entry, dispatched(execution_id)], [payload])
    file_size_limit(100)
    with pytest.raises(HistoryUnavailable):
        session.append_final([finished(execution_id, [])[0]])
    with pytest.raises(HistoryUnavailable):
        session.close(closed())
    history.settle()
    assert session.kept
    file_size_limit(None)
    history.settle()
    assert history.session(session.session_id).status == "closed"
    assert history.execution(execution_id).status == "ok"
    assert whole(folder)


@pytest.mark.parametrize("writes", ["settle", "stop"])
def test_what_the_ledger_lacks_is_written_when_there_is_room_again(
    history, folder, session, full_ledger, file_size_limit, writes
):
    full_ledger()
    session.close(closed())
    assert history.owes
    file_size_limit(None)
    getattr(history, writes)()
    assert not history.owes
    (ledger,) = folder.glob("ledger-*.jsonl")
    assert session.session_id in ledger.read_text().splitlines()[-1]
    assert whole(folder)


def test_a_session_that_ends_while_it_is_tried_again_has_its_end(history, folder):
    def try_again(session, is_over):
        while not is_over.is_set():
            session.retry()

    for _ in range(20):
        session, is_over = history.open_session(opened()), threading.Event()
        thread = threading.Thread(target=try_again, args=(session, is_over))
        thread.start()
        try:
            session.close(closed())
        finally:
            is_over.set()
            thread.join()
    assert whole(folder)


def test_what_was_kept_is_written_by_the_next_append(history, session, file_size_limit):
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, 1, "1")
    session.append([entry, dispatched(execution_id)], [payload])
    end, payloads = finished(execution_id, [])
    file_size_limit(100)
    with pytest.raises(HistoryUnavailable):
        session.append_final([end], payloads)
    file_size_limit(None)
    next_id = run(session, 2, "2", [])
    assert not session.kept
    first, second = (history.execution(i) for i in (execution_id, next_id))
    assert (first.status, second.status) == ("ok", "ok")
    journal = [line.entry for line in lines(history.journal_path(session.session_id))]
    assert [type(entry).__name__ for entry in journal[3:5]] == ["Finished", "Accepted"]


def test_a_refused_session_leaves_nothing_behind(history, folder, file_size_limit):
    file_size_limit(10)
    with pytest.raises(HistoryUnavailable):
        history.open_session(opened())
    file_size_limit(None)
    assert list((folder / "sessions").iterdir()) == []
    history.open_session(opened())
    assert whole(folder)


def test_a_session_that_the_ledger_cannot_list_is_none(history, folder, file_size_limit):
    for _ in range(10):
        history.open_session(opened())
    (ledger,) = folder.glob("ledger-*.jsonl")
    file_size_limit(ledger.stat().st_size + 10)  # room for a journal's first line
    with pytest.raises(HistoryUnavailable):
        history.open_session(opened())
    file_size_limit(None)
    assert len(list((folder / "sessions").iterdir())) == 10
    assert whole(folder)


def test_a_folder_moved_away_and_back_is_gone_on_with(history, folder, session):
    away = folder.rename(folder.with_name("away"))
    with pytest.raises(HistoryUnavailable):
        session.append(plain_entries(1))
    assert not history.available
    assert not folder.exists()
    away.rename(folder)
    execution_id = run(session, 1, "1", [stream("back")])
    assert history.available
    assert history.execution(execution_id).outputs == [stream("back")]
    session.close(closed())
    assert whole(folder)


def test_a_deleted_folder_stops_its_sessions_but_not_new_ones(history, folder, session):
    # Out of the way first: the index may be making a file in it just then.
    shutil.rmtree(folder.rename(folder.with_name("deleted")), ignore_errors=True)
    with pytest.raises(HistoryUnavailable):
        session.append(plain_entries(1))
    new = history.open_session(opened())
    execution_id = run(new, 1, "1", [])
    assert history.execution(execution_id).status == "ok"
    with pytest.raises(HistoryUnavailable):
        session.append(plain_entries(1))
    assert whole(folder)


def test_a_folder_that_may_not_be_read_for_a_while_is_gone_on_with(
    history, folder, session, no_access
):
    history.sessions(SessionsQuery())
    with no_access():
        history.settle()
        with suppress(HistoryUnavailable):
            history.sessions(SessionsQuery())
        with pytest.raises(HistoryUnavailable):
            history.open_session(opened())
    history.settle()
    history.sessions(SessionsQuery())
    run(session, 1, "1", [])
    session.close(closed())
    assert len(list(folder.glob("ledger-*.jsonl"))) == 1
    assert whole(folder)


def test_a_folder_that_cannot_be_made_is_tried_again(tmp_path):
    obstacle = tmp_path / "agent_exec"
    obstacle.write_text("in the way")
    history = new_history(obstacle)
    assert not history.available
    assert history.ledger_head.length == 0
    assert history.sessions(SessionsQuery()).sessions == []
    with pytest.raises(HistoryUnavailable):
        history.check()
    with pytest.raises(HistoryUnavailable):
        history.open_session(opened())
    obstacle.unlink()
    history.check()
    assert history.available
    session = history.open_session(opened())
    assert history.session(session.session_id).status == "open"
    history.stop()


def test_a_disk_that_is_full_at_the_start_is_tried_again(folder, file_size_limit):
    file_size_limit(0)
    history = new_history(folder)
    for _ in range(2):
        with pytest.raises(HistoryUnavailable):
            history.open_session(opened())
    assert not history.available
    file_size_limit(None)
    session = history.open_session(opened())
    assert history.available
    assert len(list(folder.glob("ledger-*.jsonl"))) == 1
    assert history.session(session.session_id).status == "open"
    history.stop()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_history_can_be_read(history, folder, session):
    execution_id = run(session, 1, "1", [stream("kept")])
    session.close(closed())
    history.stop()
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    again = new_history(folder)
    assert not again.available
    assert again.execution(execution_id).outputs == [stream("kept")]
    again.stop()
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700)


def test_a_stopped_history_takes_and_tells_nothing(history, session):
    history.stop()
    history.stop()
    with pytest.raises(HistoryUnavailable):
        history.open_session(opened())
    with pytest.raises(HistoryUnavailable):
        history.check()
    with pytest.raises(HistoryUnavailable):
        session.append(plain_entries(1))
    with pytest.raises(HistoryUnavailable):
        history.session(session.session_id)


MOUNT = 'mount -t tmpfs -o size=1m none "$0" && echo mounted && exec cat'


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of 1 MB, which a process of its own has mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, str(folder)]
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        if not holder.stdout.readline():
            pytest.skip("no disk may be mounted here")
        yield Path(f"/proc/{holder.pid}/root{folder}")


def fill(folder):
    """Write until no byte fits any more."""
    with (folder / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(1 << 12)):
                pass
        except OSError:
            pass
    return folder / "filler"


def left_open(folder):
    """Have a server die while its sessions are open; return an execution that ran in each."""
    history = new_history(folder)
    ran = []
    for size in range(0, 4096, 256):  # some journals fill their last page
        session = history.open_session(opened())
        ran.append(new_execution_id())
        entry, payload = accepted(ran[-1], 1, "x" * size)
        session.append([entry, dispatched(ran[-1])], [payload])
    history.stop()
    return ran


def test_the_reserve_ends_a_dead_servers_work_on_a_full_disk(small_disk):
    folder = small_disk / "history"
    ran = left_open(folder)
    fill(small_disk)
    history = new_history(folder)
    assert [history.execution(each).status for each in ran] == ["lost"] * len(ran)
    assert not history.look()
    assert whole(folder)
    history.stop()


def test_what_a_dead_server_left_is_ended_when_there_is_room_again(small_disk):
    folder = small_disk / "history"
    ran = left_open(folder)
    (folder / "reserve").unlink()
    filler = fill(small_disk)
    history = new_history(folder)
    assert "running" in [history.execution(each).status for each in ran]
    history.settle()
    assert "running" in [history.execution(each).status for each in ran]
    filler.unlink()
    history.settle()
    assert [history.execution(each).status for each in ran] == ["lost"] * len(ran)
    assert history.look()
    assert whole(folder)
    history.stop()


def test_a_full_disk_is_seen_before_anything_is_refused(small_disk):
    history = new_history(small_disk / "history")
    session = history.open_session(opened())
    assert history.look()
    filler = fill(small_disk)
    assert not history.look()
    assert not history.available
    filler.unlink()
    assert history.look()
    run(session, 1, "1", [])
    history.stop()


def test_a_reserve_that_another_server_has_freed_is_held_again(history, folder, session):
    other = new_history(folder)
    (folder / "reserve").unlink()  # as the other does when it has to
    run(session, 1, "1", [])
    assert (folder / "reserve").stat().st_size == RESERVE_BYTES
    other.stop()
