"""A server that is stopped by a signal, without a terminal, records it as a stop."""

from __future__ import annotations

import json
import logging
import signal
from pathlib import Path

import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.records import Closed, Finished
from tests.server_process import Gate, ServerProcess, server_process

WITH_DEFAULT_SIGNALS = ("env", "--default-signal=INT,HUP")
"""A shell has what it starts in the background ignore SIGINT."""

INT, HUP, TERM = signal.SIGINT, signal.SIGHUP, signal.SIGTERM


def begin(server: ServerProcess, folder: Path, source: str = "") -> tuple[str, str, str]:
    """Have one execution run and another wait behind it; return the session's id and theirs."""
    gate = Gate(folder, "gate")
    session = server.open()
    running = server.run(session, gate.here + (source or gate.wait), wait=0)
    queued = server.run(session, "1", wait=0)
    gate.until_it_is_here()
    return session, running.json()["id"], queued.json()["id"]


def recorded_ends(folder: Path, session: str) -> tuple[dict[str, tuple[str, str | None]], str]:
    """Return how executions ended, and the session; the whole record has to be right."""
    assert verify_history(folder / "history").outcome is Outcome.WHOLE
    entries = [
        line.entry for line in lines(folder / "history" / "sessions" / session / "journal.jsonl")
    ]
    ends = {
        each.execution_id: (each.status, each.reason)
        for each in entries
        if isinstance(each, Finished)
    }
    closed = entries[-1]
    assert isinstance(closed, Closed)
    return dict(ends), closed.reason


@pytest.mark.parametrize(
    "signals",
    [(INT,), (HUP, INT), (INT, TERM, INT)],
    ids=lambda signals: "-".join(each.name for each in signals),
)
def test_a_signal_is_recorded_as_a_stop(
    tmp_path: Path, signals: tuple[signal.Signals, ...]
) -> None:
    with server_process(tmp_path, wrapper=WITH_DEFAULT_SIGNALS) as server:
        session, running, queued = begin(server, tmp_path)
        for each in signals:
            server.process.send_signal(each)
        server.gone()
        assert server.process.returncode == 0
    ends, why = recorded_ends(tmp_path, session)
    assert ends[running] == ("interrupted", "The server stopped.")
    assert ends[queued] == ("cancelled", "The server stopped.")
    assert why == "server_stopped"


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    with server_process(tmp_path, wrapper=("env", "--ignore-signal=INT,HUP")) as server:
        server.process.send_signal(INT)
        server.process.send_signal(HUP)
        session = server.open()
        assert server.run(session, "6 * 7").json()["text"] == "42"


def test_a_server_stops_though_a_kernel_did_not_start(tmp_path: Path) -> None:
    spec = tmp_path / "data" / "kernels" / "broken" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(
        json.dumps({"argv": ["/nowhere/python"], "display_name": "Broken", "language": "python"})
    )
    with server_process(tmp_path) as server:
        target = {"kind": "scratch", "kernel_name": "broken"}
        opened = server.ask("POST", "sessions", {"agent": {"name": "tester"}, "target": target})
        assert opened.json()["code"] == "kernel_unavailable"
        started = server.ask("POST", "../kernels", {"name": "broken"})
        assert started.status_code == 500
        assert server.ask("POST", "../kernels", {"name": "python3"}).status_code == 201
        server.stop()
        assert server.process.returncode == 0


def test_a_server_that_is_killed_while_it_stops_leaves_what_it_had_recorded(
    tmp_path: Path,
) -> None:
    with server_process(tmp_path, wrapper=WITH_DEFAULT_SIGNALS) as server:
        ignores = "while True:\n    try:\n        import time; time.sleep(600)\n"
        ignores += "    except KeyboardInterrupt:\n        print('no', flush=True)\n"
        session, running, queued = begin(server, tmp_path, ignores)
        with server.ask_stream(f"executions/{running}/stream") as events:
            server.process.send_signal(INT)
            assert any("no" in line for line in events)  # it has been interrupted
        server.kill()
    next_server = History(tmp_path / "history", version="0", log=logging.getLogger())
    next_server.start()
    next_server.stop()
    ends, why = recorded_ends(tmp_path, session)
    assert (ends[queued][0], ends[running][0], why) == ("cancelled", "lost", "server_died")
