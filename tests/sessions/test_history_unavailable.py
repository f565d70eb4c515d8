"""A record that cannot be written: nothing runs unrecorded, and what ran is recorded afterwards.

The disks are real: a small one that is filled, one that is read-only, files that may not grow, and
folders that are moved and deleted.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from tests.asking import Agent
from tests.auth.minting import PAST, bearer, change_kept
from tests.gateway.gateways import Person
from tests.real_server import TOKEN
from tests.server_process import Gate, ServerProcess, server_process
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target
from tests.small_disk import as_seen_by, fill, mounting


@pytest.fixture
def history(tmp_path: Path) -> Path:
    folder = tmp_path / "history"
    folder.mkdir()
    return folder


@pytest.fixture
def can_mount(tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    try:
        tried = subprocess.run([*mounting("size=64k", folder), "true"], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if tried.returncode:
        pytest.skip(f"no disk may be mounted here: {tried.stderr.decode().strip()}")


@pytest.fixture
def server(tmp_path: Path, history: Path) -> Iterator[ServerProcess]:
    with server_process(tmp_path) as server:
        yield server


@pytest.fixture
def small_disk(tmp_path: Path, history: Path, can_mount: None) -> Iterator[ServerProcess]:
    """A server whose history has 4 MB."""
    with server_process(tmp_path, wrapper=mounting("size=4m", history)) as server:
        yield server


def leaving(mark: Path) -> str:
    """Return code that leaves a file behind, too long for the room in the last page of a file."""
    return f"open({str(mark)!r}, 'w').close()  {'#' * 5000}"


def is_unavailable(answered: httpx2.Response) -> bool:
    told = answered.json()
    return (answered.status_code, told.get("code")) == (503, "history_unavailable")


def refuses_to_run(server: ServerProcess, session: str, mark: Path) -> None:
    """See that nothing runs, nothing is opened, and what is there can be looked at."""
    before, kernels = server.get(f"sessions/{session}"), server.get("status")["kernels"]
    assert is_unavailable(server.run(session, leaving(mark)))
    after, status = server.get(f"sessions/{session}"), server.get("status")
    assert (after["executions"], after["chain"]) == (before["executions"], before["chain"])
    assert (status["history_available"], status["kernels"]) == (False, kernels)
    assert not mark.exists()


def runs_again(server: ServerProcess, session: str, history: Path) -> None:
    """See that it goes on by itself, with numbers and a chain without a hole."""
    done = server.run(session, "x + 1")
    assert done.status_code == 201, done.text
    execution = done.json()
    assert execution["cell"]["outputs"][0]["data"]["text/plain"] == "2"
    assert server.get("status")["history_available"] is True
    listed = server.get(f"sessions/{session}/executions")["executions"]
    assert [one["seq"] for one in listed] == list(range(1, len(listed) + 1))
    report = verify_history(history)
    assert report.outcome is Outcome.WHOLE, report.findings


def test_nothing_runs_on_a_full_disk_and_what_ran_there_is_recorded_afterwards(
    small_disk: ServerProcess, tmp_path: Path, history: Path
) -> None:
    server, disk = small_disk, as_seen_by(small_disk, history)
    small, large = Gate(tmp_path, "small"), Gate(tmp_path, "large")
    in_small, in_large = server.open(), server.open()
    server.run(in_small, "x = 1")
    ends_small = server.run(in_small, f"{small.here}{small.wait}print('s' * 5000)", wait=0).json()[
        "id"
    ]
    ends_large = server.run(
        in_large, f"{large.here}{large.wait}print('large' * 100_000)", wait=0
    ).json()["id"]
    small.until_it_is_here()
    large.until_it_is_here()
    filler = fill(server, disk)
    assert server.get("status")["history_available"] is False

    queued = server.run(in_small, leaving(tmp_path / "queued"), wait=0)
    assert is_unavailable(queued)
    assert is_unavailable(server.ask("POST", "sessions", {"agent": {"name": "tester"}}))

    small.let_it_on()
    told = server.get(f"executions/{ends_small}?wait=30")
    assert (told["status"], told["text"]) == ("ok", "s" * 5000 + "\n"), "the reserve has room"
    large.let_it_on()
    refuses_to_run(server, in_small, tmp_path / "ran")
    listed = server.get(f"sessions/{in_small}/executions")["executions"]
    assert [one["status"] for one in listed] == ["ok", "ok"], "the history can still be read"
    still = server.get(f"executions/{ends_large}?wait=3")
    assert still["finished_at"] is None, "what is in memory only is not told as finished"

    filler.unlink()
    told = server.get(f"executions/{ends_large}?wait=60")
    assert (told["status"], told["outputs_complete"]) == ("ok", True)
    assert told["cell"]["outputs"][0]["text"] == "large" * 100_000 + "\n"
    runs_again(server, in_small, disk)
    assert not (tmp_path / "queued").exists()
    assert not (tmp_path / "ran").exists()


def test_what_has_filled_the_disk_can_be_stopped_and_closed(
    small_disk: ServerProcess, tmp_path: Path, history: Path
) -> None:
    server, disk = small_disk, as_seen_by(small_disk, history)
    cancelled, closed = Gate(tmp_path, "cancelled"), Gate(tmp_path, "closed")
    sessions = {gate: server.open() for gate in (cancelled, closed)}
    runs = {
        gate: server.run(session, f"{gate.here}{gate.wait}", wait=0).json()["id"]
        for gate, session in sessions.items()
    }
    for gate in sessions:
        gate.until_it_is_here()
    filler = fill(server, disk)
    told = server.ask("POST", f"executions/{runs[cancelled]}/cancel").json()
    assert told["status"] == "interrupted"
    assert server.ask("POST", f"sessions/{sessions[closed]}/close").status_code == 200
    assert server.get(f"executions/{runs[closed]}")["status"] == "interrupted"
    filler.unlink()
    server.run(sessions[cancelled], "x = 1")
    runs_again(server, sessions[cancelled], disk)


def test_a_history_read_only_at_start_is_used_once_writable(
    tmp_path: Path, history: Path, can_mount: None
) -> None:
    with server_process(tmp_path, wrapper=mounting("size=4m,ro", history)) as server:
        for _ in range(2):
            assert is_unavailable(server.ask("POST", "sessions", {"agent": {"name": "tester"}}))
        status = server.get("status")
        assert (status["history_available"], status["kernels"]) == (False, 0)
        assert server.get("sessions")["sessions"] == []
        remount(server, "remount,rw", history)
        session = server.open()
        server.run(session, "x = 1")
        runs_again(server, session, as_seen_by(server, history))


def test_a_read_only_history_stops_new_work_until_writable(
    small_disk: ServerProcess, tmp_path: Path, history: Path
) -> None:
    session = small_disk.open()
    small_disk.run(session, "x = 1")
    remount(small_disk, "ro", history, "-t", "tmpfs", "none")
    assert is_unavailable(small_disk.run(session, leaving(tmp_path / "ran")))
    assert is_unavailable(small_disk.ask("POST", "sessions", {"agent": {"name": "tester"}}))
    in_mounts_of(small_disk, "umount", str(history))
    runs_again(small_disk, session, as_seen_by(small_disk, history))
    assert not (tmp_path / "ran").exists()


def remount(server: ServerProcess, options: str, folder: Path, *what: str) -> None:
    in_mounts_of(server, "mount", "-o", options, *what, str(folder))


def in_mounts_of(server: ServerProcess, *command: str) -> None:
    entering = ("nsenter", "--preserve-credentials", "-U", "-m", "-t", str(server.process.pid))
    subprocess.run([*entering, *command], check=True)


def test_nothing_runs_when_its_record_may_not_grow(
    server: ServerProcess, tmp_path: Path, history: Path
) -> None:
    session = server.open()
    # The journal has to be smaller than what the server writes to try, so without packages.
    server.run(session, "import os; os.listdir = None; x = 1")
    server.ask("GET", f"sessions/{session}/requirements")  # its environment is recorded
    journal = history / "sessions" / session / "journal.jsonl"
    before = journal.read_bytes()
    with files_up_to(server, len(before) + 10):
        refuses_to_run(server, session, tmp_path / "ran")
        assert journal.read_bytes() == before, "half a line was left"
    runs_again(server, session, history)
    assert not (tmp_path / "ran").exists()


def test_what_people_run_on_a_full_disk_is_recorded_when_there_is_room(
    tmp_path: Path, history: Path
) -> None:
    with server_process(tmp_path, "--AgentExecApp.record_people=source") as server:
        url = server.api.partition("/api/")[0]
        kernel = server.ask("POST", "../kernels", {"name": "python3"}).json()["id"]
        session = server.open(target={"kind": "kernel", "kernel_id": kernel})
        journal = history / "sessions" / session / "journal.jsonl"
        with Person(url, kernel, {"Authorization": f"token {TOKEN}"}) as person:
            assert person.has_run("'before'") == "ok"
            while journal.read_text().count('"type":"person_ran"') < 1:
                pass
            with files_up_to(server, journal.stat().st_size + 10):
                assert person.has_run("'on a full disk'") == "ok"
                assert b"on a full disk" not in journal.read_bytes()
            assert person.has_run("'after'") == "ok"
        while (text := journal.read_text()).count('"type":"person_ran"') < 3:
            pass
    assert [text.count(f"'{each}'") for each in ("before", "on a full disk", "after")] == [1, 1, 1]
    assert verify_history(history).outcome is Outcome.WHOLE


class files_up_to:  # noqa: N801 - read as a sentence where it is used
    """Within it, a server's files may not grow beyond a size, as when there is no room."""

    def __init__(self, server: ServerProcess, size: int) -> None:
        self._pid, self._size = server.process.pid, size

    def __enter__(self) -> None:
        self._before = resource.prlimit(self._pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (self._size, self._before[1]))

    def __exit__(self, *exc: object) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, self._before)


def test_what_ran_while_the_folder_was_away_is_recorded_when_it_is_back(
    server: ServerProcess, tmp_path: Path, history: Path
) -> None:
    gate = Gate(tmp_path, "away")
    session, other = server.open(), server.open()
    server.run(session, "x = 1")
    runs = server.run(other, f"{gate.here}{gate.wait}print('went on')", wait=0).json()["id"]
    waits = server.run(other, leaving(tmp_path / "waits"), wait=0).json()["id"]
    gate.until_it_is_here()
    away = history.rename(tmp_path / "away")

    assert is_unavailable(server.run(session, leaving(tmp_path / "ran")))
    gate.let_it_on()
    still = server.get(f"executions/{runs}?wait=1")
    assert still["finished_at"] is None

    away.rename(history)
    told = server.get(f"executions/{runs}?wait=60")
    assert (told["status"], told["text"]) == ("ok", "went on\n")
    waited = server.get(f"executions/{waits}?wait=60")
    assert waited["finished_at"] is not None
    assert (waited["status"] == "ok") == (tmp_path / "waits").exists()
    runs_again(server, session, history)
    assert not (tmp_path / "ran").exists()


def test_a_dead_kernels_input_request_is_withdrawn(
    server: ServerProcess, tmp_path: Path, history: Path
) -> None:
    session = server.open(allow_stdin=True)
    pid = int(server.run(session, "import os; print(os.getpid())").json()["text"])
    asks = server.run(session, "input('Name? ')", wait=60).json()
    assert (asks["status"], asks["input"]["prompt"]) == ("awaiting_input", "Name? ")
    away = history.rename(tmp_path / "away")
    os.kill(pid, signal.SIGKILL)
    while (still := server.get(f"executions/{asks['id']}"))["status"] == "awaiting_input":
        pass
    assert (still["finished_at"], still["input"]) == (None, None)
    away.rename(history)
    assert server.get(f"executions/{asks['id']}?wait=60")["status"] == "kernel_died"


def test_a_deleted_folder_ends_what_was_in_it_and_is_begun_anew(
    server: ServerProcess, tmp_path: Path, history: Path
) -> None:
    session = server.open()
    server.run(session, "x = 1")
    # Out of the way first: the index may be making a file in it just then.
    shutil.rmtree(history.rename(history.with_name("deleted")), ignore_errors=True)
    assert is_unavailable(server.run(session, leaving(tmp_path / "ran")))
    closed = server.ask("POST", f"sessions/{session}/close", {})
    assert (closed.status_code, closed.json()["code"]) == (404, "session_not_found")
    fresh = server.open()
    server.run(fresh, "x = 1")
    runs_again(server, fresh, history)
    assert not (tmp_path / "ran").exists()


def test_running_code_says_that_its_record_was_deleted(
    server: ServerProcess, tmp_path: Path, history: Path
) -> None:
    gate = Gate(tmp_path, "deleted")
    session = server.open()
    runs = server.run(session, f"{gate.here}{gate.wait}print('went on')", wait=0).json()["id"]
    waits = server.run(session, "1", wait=0).json()["id"]
    gate.until_it_is_here()
    shutil.rmtree(history.rename(history.with_name("deleted")), ignore_errors=True)
    with ThreadPoolExecutor(2) as threads:
        asked = {id: threads.submit(server.get, f"executions/{id}?wait=60") for id in (runs, waits)}
        gate.let_it_on()
        told = {id: each.result() for id, each in asked.items()}
    assert told[runs]["status"] == "ok"
    assert told[runs]["text"].startswith("went on\n")
    assert "deleted" in told[runs]["reason"]
    assert (told[waits]["status"], "deleted" in told[waits]["reason"]) == ("cancelled", True)
    assert "Open another session" in server.run(session, "1").json()["message"]


def test_a_server_stops_although_it_cannot_record_what_it_restores_and_lets_end(
    tmp_path: Path, history: Path
) -> None:
    again, last = Gate(tmp_path, "again"), Gate(tmp_path, "last")
    ran = tmp_path / "ran"
    with server_process(tmp_path, "--AgentExecApp.interrupt_grace=0.2") as server:
        restored = server.open()
        server.run(
            restored, f"import os\nif os.path.exists({str(ran)!r}):\n {again.here} {again.wait}"
        )
        ran.touch()
        server.ask("POST", f"sessions/{restored}/restart")
        begun = server.ask("POST", f"sessions/{restored}/restore", {"wait": 0}).json()
        assert begun["status"] == "running"

        said = {"label": "ends", "scopes": ["exec:scratch"]}
        minted = server.ask("POST", "tokens", said).json()
        own = bearer(minted["secret"])
        said = {"agent": {"name": "tester"}}
        expiring = server.ask("POST", "sessions", said, own).json()["id"]
        runs = server.run(expiring, f"{last.here}{last.wait}", wait=0).json()
        waits = server.run(expiring, "1", wait=0).json()
        last.until_it_is_here()
        change_kept(history, minted["token"]["id"], expires_at=PAST)
        assert server.get(f"executions/{waits['id']}?wait=60")["status"] == "cancelled"

        queued = server.run(restored, "1", wait=0).json()
        again.until_it_is_here()
        history.rename(tmp_path / "away")
        for gate, id in ((again, begun["cells"][0]["execution_id"]), (last, runs["id"])):
            gate.let_it_on()
            assert server.get(f"executions/{id}?wait=0.2")["finished_at"] is None
        with ThreadPoolExecutor(1) as threads:
            held = threads.submit(server.get, f"executions/{queued['id']}?wait=8")
            server.ask("POST", f"sessions/{restored}/close")
            assert held.result()["finished_at"] is None
        server.stop()


async def test_output_that_comes_late_while_the_folder_is_away_comes_into_the_notebook(
    agent: Agent,
    desk: Desk,
    history_dir: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate(tmp_path, "goes-on")
    await desk.opens()
    session = await agent.open(target=notebook_target())
    waits = f"import threading\ndef wait():\n {gate.wait} print('went', 'on')"
    await agent.run(session, f"{waits}\nthreading.Thread(target=wait).start()")
    await agent.settle(session)
    journal = history_dir / "sessions" / session["id"] / "journal.jsonl"
    while "cell_written" not in journal.read_text():
        await agent.get("status")
    away = await asyncio.to_thread(history_dir.rename, tmp_path / "away")
    await asyncio.to_thread(gate.let_it_on)
    while "The history cannot be written" not in caplog.text:
        await agent.get("status")
    await asyncio.to_thread(away.rename, history_dir)
    while "went on" not in (desk.root / NOTEBOOK).read_text():
        await agent.get("status")
