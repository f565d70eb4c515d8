from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from jupyter_agent_exec.errors import HistoryUnavailable
from jupyter_agent_exec.journal import chain
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.journal import Journal
from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.journal.verify import verify_journal
from jupyter_agent_exec.models import Claim
from jupyter_agent_exec.records import Payload
from jupyter_agent_exec.storage.durability import sync_data
from tests.journal.recorded import accepted, dispatched, new_execution_id, plain_entries
from tests.on_disk import system_calls


def outcome(path: Path) -> Outcome:
    return verify_journal(path).outcome


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


@pytest.fixture
def journal(path):
    journal = Journal.create(path)
    yield journal
    journal.close()


def test_entries_are_chained_and_numbered(journal, path):
    first = journal.append(plain_entries(2))
    second = journal.append(plain_entries(1))
    assert journal.head.head == second[0]
    assert journal.head.length == 3
    read = list(lines(path))
    assert [line.hash for line in read] == [*first, *second]
    assert [line.entry.n for line in read] == [0, 1, 2]
    assert outcome(path) is Outcome.WHOLE
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_bytes_of_an_entry_are_the_canonical_ones(journal, path):
    entry, payload = accepted(new_execution_id(), 1, "print('é\u2028')\n")
    odd = replace(entry, claim=Claim(purpose="é\u2028\x00\x7f"), idempotency_key="a\ud800b")
    journal.append([entry, replace(odd, idempotency_key="ab"), odd], [payload])
    read = list(lines(path))
    assert [line.canonical for line in read] == [
        chain.canonical(json.loads(line.canonical)) for line in read
    ]
    assert json.loads(read[2].canonical)["idempotency_key"] == "a?b"


def test_an_entry_is_on_the_disk_before_it_is_told(journal):
    made = system_calls(lambda: journal.append(plain_entries(1)))
    assert made.index("write") < made.index(sync_data.__name__)


def test_a_payload_stands_on_the_line_that_names_it(journal, path):
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, 1, "print('é\u2028')\n")
    journal.append([entry, dispatched(execution_id)], [payload])
    first, second = lines(path)
    assert first.payloads == {payload.digest: "print('é\u2028')\n"}
    assert second.payloads == {}


def test_appends_of_many_threads_are_one_chain(journal, path):
    def append():
        for entry in plain_entries(20):
            journal.append([entry])

    threads = [threading.Thread(target=append) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert journal.head.length == 100
    assert outcome(path) is Outcome.WHOLE


def test_a_closed_journal_takes_nothing(journal):
    journal.close()
    journal.close()
    with pytest.raises(HistoryUnavailable, match="closed"):
        journal.append(plain_entries(1))


def test_a_line_torn_at_any_byte_is_cut_off(tmp_path):
    path = tmp_path / "whole.jsonl"
    journal = Journal.create(path)
    entry, payload = accepted(new_execution_id(), 1, "x = 1\nprint(x)")
    journal.append(plain_entries(1))
    before = journal.head, journal.size
    journal.append([entry], [payload])
    journal.close()
    whole = path.read_bytes()
    for end in range(before[1] + 1, len(whole)):
        torn = tmp_path / "torn.jsonl"
        torn.write_bytes(whole[:end])
        assert outcome(torn) is Outcome.TORN
        resumed, torn_bytes = Journal.resume(torn)
        assert torn_bytes == end - before[1]
        assert (resumed.head, resumed.size) == before
        assert torn.read_bytes() == whole[: before[1]]
        resumed.append(plain_entries(1))
        resumed.close()
        assert outcome(torn) is Outcome.WHOLE


def test_what_the_disk_made_up_at_the_end_is_cut_off(journal, path):
    journal.append(plain_entries(3))
    head, size = journal.head, journal.size
    journal.close()
    with path.open("ab") as file:
        file.write(bytes(5000) + b"\n" + bytes(200_000))
    resumed, torn_bytes = Journal.resume(path)
    assert (resumed.head, resumed.size) == (head, size)
    assert torn_bytes == 205_001
    resumed.close()


def test_a_long_journal_is_resumed_from_its_end(journal, path):
    long = Payload.of(b"x" * 100_000)
    entry, _ = accepted(new_execution_id(), 1, "x" * 100_000)
    for _ in range(4):
        journal.append([entry], [long])
    journal.close()
    resumed, torn_bytes = Journal.resume(path)
    assert torn_bytes == 0
    assert resumed.head.length == 4
    resumed.close()


def test_an_empty_journal_is_resumed_at_its_beginning(journal, path):
    journal.close()
    resumed, torn_bytes = Journal.resume(path)
    assert (torn_bytes, resumed.head.length, resumed.head.head) == (0, 0, chain.GENESIS)
    resumed.close()


def test_a_full_disk_leaves_the_journal_as_it_was_and_usable(journal, path, file_size_limit):
    journal.append(plain_entries(2))
    head, content = journal.head, path.read_bytes()
    file_size_limit(len(content) + 100)
    for _ in range(2):
        with pytest.raises(HistoryUnavailable, match="cannot be written") as caught:
            journal.append(plain_entries(1))
        assert caught.value.code == "history_unavailable"
        assert journal.head == head
        assert path.read_bytes() == content
    file_size_limit(None)
    journal.append(plain_entries(1))
    assert journal.head.length == 3
    assert outcome(path) is Outcome.WHOLE


def test_nothing_is_recorded_in_a_folder_that_was_moved_until_it_is_back(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    journal = Journal.create(folder / "journal.jsonl")
    journal.append(plain_entries(1))
    content = journal.path.read_bytes()
    away = folder.rename(tmp_path / "away")
    with pytest.raises(HistoryUnavailable):
        journal.append(plain_entries(1))
    assert (away / "journal.jsonl").read_bytes() == content
    away.rename(folder)
    journal.append(plain_entries(1))
    journal.close()
    assert journal.head.length == 2
    assert outcome(journal.path) is Outcome.WHOLE


def test_a_deleted_journal_is_noticed_and_not_made_again(journal, path):
    journal.append(plain_entries(1))
    path.unlink()
    for _ in range(2):
        with pytest.raises(HistoryUnavailable):
            journal.append(plain_entries(1))
    assert not path.exists()


def test_a_journal_restored_from_a_copy_is_gone_on_with(journal, path):
    journal.append(plain_entries(2))
    content = path.read_bytes()
    original = path.rename(path.with_suffix(".original"))
    shutil.copy(original, path)
    journal.append(plain_entries(1))
    assert original.read_bytes() == content
    assert [line.entry.n for line in lines(path)] == [0, 1, 2]
    assert outcome(path) is Outcome.WHOLE


def test_a_journal_restored_from_an_old_copy_is_not_gone_on_with(journal, path):
    journal.append(plain_entries(1))
    shutil.copy(path, path.with_suffix(".copy"))
    journal.append(plain_entries(1))
    path.with_suffix(".copy").replace(path)
    content = path.read_bytes()
    with pytest.raises(HistoryUnavailable, match="replaced"):
        journal.append(plain_entries(1))
    assert path.read_bytes() == content


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_takes_no_journal(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        Journal.create(tmp_path / "journal.jsonl")


_APPEND_FOREVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.journal.recorded import plain_entries
from jupyter_agent_exec.journal.journal import Journal

journal, torn = Journal.resume(Path(sys.argv[1]))
while True:
    (digest,) = journal.append(plain_entries(1))
    print(digest, flush=True)
"""


@pytest.mark.nightly
def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(journal, path):
    """Twenty writers in turn, each killed at once after some number of answers."""
    journal.append(plain_entries(1))
    journal.close()
    for round_number in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", _APPEND_FOREVER, str(path), str(Path(__file__).parents[2])],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(1 + round_number * 3)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().splitlines(keepends=True)
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        acknowledged = {line.strip() for line in told if line.endswith("\n")}
        resumed, _ = Journal.resume(path)
        resumed.close()
        assert acknowledged <= {line.hash for line in lines(path)}
        assert outcome(path) is Outcome.WHOLE


def test_what_somebody_else_appends_is_cut_off_by_the_next_write(journal, path):
    journal.append(plain_entries(1))
    with path.open("ab") as file:
        file.write(b"not a line of ours")
    journal.append(plain_entries(1))
    assert len(list(lines(path))) == 2
    assert outcome(path) is Outcome.WHOLE
