"""Two servers on one history: each says whose a session is, and ends what the other left."""

from __future__ import annotations

from pathlib import Path

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from tests.server_process import Gate, ServerProcess, server_process


def test_a_session_of_a_killed_server_is_ended(
    tmp_path: Path,
) -> None:
    gate = Gate(tmp_path, "gate")
    with server_process(tmp_path) as theirs, server_process(tmp_path) as ours:
        session = theirs.open()
        runs = theirs.run(session, f"{gate.here}{gate.wait}", wait=0).json()["id"]
        waits = theirs.run(session, "1", wait=0).json()["id"]
        other = theirs.open()
        gate.until_it_is_here()
        for path in (
            f"sessions/{session}/close",
            f"sessions/{session}/interrupt",
            f"sessions/{session}/restart",
            f"executions/{runs}/cancel",
            f"executions/{waits}/approve",
        ):
            refused = ours.ask("POST", path, {"source_sha256": "0" * 64} if "appr" in path else {})
            assert (refused.status_code, refused.json()["code"]) == (409, "session_elsewhere"), path
        refused = ours.run(session, "1")
        assert (refused.status_code, refused.json()["code"]) == (409, "session_elsewhere")
        server = refused.json()["detail"]["server"]
        assert (server["alive"], server["pid"]) == (True, theirs.process.pid)
        assert server["address"] in refused.json()["message"]
        assert theirs.api.startswith(server["address"])
        assert ours.get(f"sessions/{session}")["status"] == "open"
        assert ours.get(f"executions/{runs}")["status"] == "running"
        for path in (f"executions/{runs}?wait=60", f"executions/{runs}/stream"):
            refused = ours.ask("GET", path)
            assert (refused.status_code, refused.json()["code"]) == (409, "session_elsewhere"), path

        theirs.kill()
        assert ours.get(f"executions/{runs}")["status"] == "lost"
        assert ours.get(f"executions/{waits}")["status"] == "cancelled"
        assert ours.get(f"sessions/{session}")["close_reason"] == "server_died"
        assert {each["status"] for each in ours.get("sessions")["sessions"]} == {"closed"}
        refused = ours.run(other, "1")
        assert (refused.status_code, refused.json()["code"]) == (409, "session_closed")
        assert "The server died" in refused.json()["message"]
        own = ours.open()
        assert ours.run(own, "6 * 7").json()["text"] == "42"
    assert verify_history(tmp_path / "history").outcome is Outcome.WHOLE


def test_whatever_is_read_first_ends_what_a_killed_server_left(tmp_path: Path) -> None:
    with server_process(tmp_path) as ours:
        for path in ("sessions/{session}", "sessions", "executions/{execution}"):
            with server_process(tmp_path) as theirs:
                session = theirs.open()
                source = "import time; time.sleep(600)"
                execution = theirs.run(session, source, wait=0).json()["id"]
                theirs.kill()
                found = ours.get(path.format(session=session, execution=execution))
                found, *_ = found.get("sessions", [found])
                assert found["status"] in ("closed", "lost"), path


def test_a_pause_and_the_policy_hold_on_every_server_of_the_history(tmp_path: Path) -> None:
    gate = Gate(tmp_path, "gate")

    def pause(server: ServerProcess, paused: bool) -> None:
        assert server.ask("PUT", "approvals/pause", {"paused": paused}).status_code == 200

    with server_process(tmp_path) as ours:
        with server_process(tmp_path) as theirs:
            session = theirs.open()
            runs = theirs.run(session, f"{gate.here}{gate.wait}", wait=0).json()["id"]
            behind = theirs.run(session, "1 + 1", wait=0).json()["id"]
            gate.until_it_is_here()
            with theirs.ask_stream(f"executions/{runs}/stream") as lines:
                next(lines)
                pause(ours, True)
                gate.let_it_on()
                assert "finished" in "".join(lines)  # nothing else is asked of that server
            waits = theirs.get(f"executions/{behind}?wait=0.1")
            assert (waits["status"], waits["waiting_for"]["who"]) == ("queued", "pause")
            refused = theirs.ask("PUT", f"sessions/{session}/files/a.py")
            assert (refused.status_code, refused.json()["code"]) == (409, "agents_paused")
            assert theirs.get("approvals")["paused"] == ours.get("approvals")["paused"]
            pause(ours, False)
            assert theirs.get(f"executions/{behind}?wait=60")["text"] == "2"
            journal = theirs.ask("GET", f"sessions/{session}/journal").text
            assert journal.count('"agents_paused"') == journal.count('"agents_resumed"') == 1

            ours.ask("PUT", "approvals/policy", {"scratch": "always"})
            theirs.ask("PUT", "approvals/policy", {"kernel": "first"})
            policy = ours.get("approvals")["policy"]
            assert (policy["scratch"], policy["kernel"]) == ("always", "first")
            assert theirs.get("approvals")["policy"] == policy
            asks = theirs.run(session, "3", wait=0).json()
            assert asks["status"] == "awaiting_approval"
            pause(theirs, True)
        assert ours.get("approvals")["paused"] is not None  # also when that server is gone
    assert verify_history(tmp_path / "history").outcome is Outcome.WHOLE
