"""A server that is killed: what it accepted is found again, ended, and was run at most once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

import httpx2
import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.records import Accepted
from jupyter_agent_exec.types import FINAL_STATUSES
from tests.on_disk import recorded_sessions
from tests.server_process import Gate, ServerProcess, server_process

KILLS = 2
"""Of the server in each test, the second after it has taken up what the first kill left."""


class Traces:
    """Where each source leaves a line of its own, so that it is seen how often it ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "traces"
        self._file.touch()
        self._number = count(1)
        self.marks: dict[str, str] = {}
        """Execution id to the mark of its source."""

    def source(self, then: str = "") -> tuple[str, str]:
        """Return a mark, and a source that leaves it and goes on."""
        mark = f"mark-{next(self._number)}"
        leave = f"with open({str(self._file)!r}, 'a') as traces: traces.write('{mark}\\n')\n"
        return mark, leave + then

    def accepted(self, mark: str, answered: httpx2.Response) -> str:
        """Remember what was answered."""
        assert answered.status_code in (201, 202), answered.text
        execution_id = str(answered.json()["id"])
        self.marks[execution_id] = mark
        return execution_id

    def ask(self, server: ServerProcess, session: str, then: str = "", wait: float = 0) -> str:
        """Have a source run, and return its execution's id."""
        mark, source = self.source(then)
        return self.accepted(mark, server.run(session, source, wait=wait))

    def left(self) -> list[str]:
        return self._file.read_text().splitlines()


Moment = Callable[[ServerProcess, Traces], None]


def while_it_accepts(server: ServerProcess, traces: Traces) -> None:
    """Several are on their way to the journal, and nobody was answered yet for the last ones."""
    session = server.open()
    answered = threading.Semaphore(0)

    def ask_and_ask() -> None:
        for _ in range(200):
            mark, source = traces.source()
            try:
                traces.accepted(mark, server.run(session, source, wait=0))
            except httpx2.TransportError:
                return
            answered.release()

    asking = [threading.Thread(target=ask_and_ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    for _ in range(20):
        assert answered.acquire(timeout=60)
    server.kill()
    for thread in asking:
        thread.join(60)


def while_they_wait(server: ServerProcess, traces: Traces) -> None:
    session = server.open()
    traces.ask(server, session, "while True: pass")
    for _ in range(5):
        traces.ask(server, session)
    server.kill()


def while_it_runs(server: ServerProcess, traces: Traces) -> None:
    gate = Gate(traces.folder, f"runs-{len(traces.marks)}")
    session = server.open()
    traces.ask(server, session, wait=30)
    traces.ask(server, session, gate.here + gate.wait)
    gate.until_it_is_here()
    server.kill()


def while_output_floods(server: ServerProcess, traces: Traces) -> None:
    gate = Gate(traces.folder, f"floods-{len(traces.marks)}")
    flood = f"for n in range(10**9):\n    print('x' * 100)\n    if n == 5000:\n        {gate.here}"
    session = server.open()
    traces.ask(server, session, flood)
    gate.until_it_is_here()
    server.kill()


def in_a_persons_notebook(server: ServerProcess, traces: Traces) -> None:
    """One runs, another session's waits behind it, in a kernel that dies with its server."""
    gate = Gate(traces.folder, f"notebook-{len(traces.marks)}")
    target = {"kind": "notebook", "path": "person.ipynb", "create": True}
    first, second = server.open(target=target), server.open(target=target)
    traces.ask(server, first, gate.here + gate.wait)
    gate.until_it_is_here()
    traces.ask(server, first)
    traces.ask(server, second)
    server.kill()


def right_at_the_end(server: ServerProcess, traces: Traces) -> None:
    gate = Gate(traces.folder, f"ends-{len(traces.marks)}")
    session = server.open()
    done = traces.ask(server, session, "print('done')", wait=30)
    assert server.get(f"executions/{done}")["status"] == "ok"
    traces.ask(server, session, "print('x' * 100_000)\n" + gate.here)
    gate.until_it_is_here()
    server.kill()


@pytest.mark.parametrize(
    "moment",
    [
        while_it_accepts,
        pytest.param(while_they_wait, marks=pytest.mark.nightly),
        while_it_runs,
        pytest.param(while_output_floods, marks=pytest.mark.nightly),
        pytest.param(in_a_persons_notebook, marks=pytest.mark.nightly),
        pytest.param(right_at_the_end, marks=pytest.mark.nightly),
    ],
)
def test_a_killed_servers_executions_ran_at_most_once(tmp_path: Path, moment: Moment) -> None:
    traces = Traces(tmp_path)
    for _ in range(KILLS):
        with server_process(tmp_path) as server:
            moment(server, traces)
    with server_process(tmp_path) as server:
        check(server, traces, tmp_path / "history")
    assert verify_history(tmp_path / "history").outcome is Outcome.WHOLE


def test_a_repeated_step_runs_only_if_it_has_not_ended(
    tmp_path: Path,
) -> None:
    traces, gate = Traces(tmp_path), Gate(tmp_path, "keyed")
    _, source = traces.source(gate.here + gate.wait)
    key, body = {"Idempotency-Key": "step-1"}, {"source": source, "wait": 0}
    with server_process(tmp_path) as server:
        session = server.open()
        assert server.run(session, "kept = 1", wait=30).json()["status"] == "ok"
        path = f"sessions/{session}/executions"
        first = server.ask("POST", path, body, headers=key)
        gate.until_it_is_here()
        server.kill()
    with server_process(tmp_path) as server:
        again = server.ask("POST", path, body, headers=key)
        assert (first.status_code, again.status_code) == (202, 201)
        assert again.json()["id"] == first.json()["id"]
        assert again.json()["status"] == "lost"
        other = server.ask("POST", path, {**body, "source": "1"}, headers=key)
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_conflict")
        new = server.ask("POST", path, body, headers={"Idempotency-Key": "step-2"})
        assert (new.status_code, new.json()["code"]) == (409, "session_closed")
        restored = server.ask("POST", f"sessions/{session}/restore", {"wait": 60}).json()
        assert [(each["seq"], each["status"]) for each in restored["cells"]] == [
            (1, "ok"),
            (2, None),  # it was stopped
        ]
        told = server.run(restored["session_id"], "print(kept)", wait=30).json()["text"]
        assert told.startswith("1\n[Code of the earlier kernel ran again.")
    assert len(traces.left()) == 1


def check(server: ServerProcess, traces: Traces, history: Path) -> None:
    """Look at all that was accepted, by its answer or by its entry, through a new server."""
    left = traces.left()
    assert len(left) == len(set(left)), "something ran twice"
    accepted = accepted_in(history)
    assert set(traces.marks) <= accepted, "an answer was given for what is not in the record"
    for execution_id in accepted:
        execution = server.get(f"executions/{execution_id}")
        assert execution["status"] in FINAL_STATUSES
        mark = execution["source"].partition("traces.write('")[2].partition("\\n")[0]
        assert traces.marks.get(execution_id, mark) == mark
        if execution["status"] == "cancelled":
            assert mark not in left, "it is said not to have run"
        if execution["status"] == "ok":
            assert mark in left
    for session in server.get("sessions")["sessions"]:
        assert (session["status"], session["close_reason"]) == ("closed", "server_died")
    report = verify_history(history)
    assert report.outcome is Outcome.WHOLE, report.findings
    assert traces.accepted("mark-0", server.run(server.open(), "1", wait=30))


def accepted_in(history: Path) -> set[str]:
    journals = [history / "sessions" / id / "journal.jsonl" for id in recorded_sessions(history)]
    return {
        line.entry.execution_id
        for journal in journals
        for line in lines(journal)
        if isinstance(line.entry, Accepted)
    }
