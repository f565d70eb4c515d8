"""What is left of approvals after the server is stopped or killed, and a real start's refusals."""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from tests.server_process import ServerProcess, server_process

ALWAYS = {"scratch": "always"}


def ask(server: ServerProcess, session: str, source: str) -> dict[str, Any]:
    answered = server.run(session, source, wait=0)
    assert answered.json()["status"] == "awaiting_approval", answered.text
    return dict(answered.json())


def approve(server: ServerProcess, execution: dict[str, Any], **said: Any) -> None:
    sha256 = hashlib.sha256(execution["source"].encode()).hexdigest()
    path = f"executions/{execution['id']}/approve"
    answered = server.ask("POST", path, {"source_sha256": sha256, **said})
    assert answered.status_code == 200, answered.text
    done = server.get(f"executions/{execution['id']}?wait=60")
    assert done["finished_at"] is not None


def test_what_was_decided_reads_the_same_after_a_restart(tmp_path: Path) -> None:
    with server_process(tmp_path, approval=ALWAYS) as server:
        session = server.open()
        approved, edited, rejected = (ask(server, session, f"print({n})") for n in (1, 2, 3))
        approve(server, approved)
        approve(server, edited, source="print('two')")
        server.ask("POST", f"executions/{rejected['id']}/reject", {"reason": "Not three."})
        withdrawn = ask(server, session, "print(4)")
        server.ask("POST", f"executions/{withdrawn['id']}/cancel")
        ids = [each["id"] for each in (approved, edited, rejected, withdrawn)]
        before = [server.get(f"executions/{id}") for id in ids]
        server.ask("PUT", "approvals/policy", {"scratch": "first"})
        server.ask("PUT", "approvals/pause", {"paused": True})
    with server_process(tmp_path, approval=ALWAYS) as server:
        after = [server.get(f"executions/{id}") for id in ids]
        decided = server.get("approvals")
    told = ("status", "reason", "source", "approval", "revises", "text")
    for was, now in zip(before, after, strict=True):
        assert {name: now[name] for name in told} == {name: was[name] for name in told}
    assert [each["approval"]["status"] for each in after] == [
        "approved",
        "approved",
        "rejected",
        "withdrawn",
    ]
    assert after[1]["approval"]["asked_source"] == "print(2)"
    assert decided["policy"]["scratch"] == "first"
    assert decided["paused"] is not None
    assert verify_history(tmp_path / "history").outcome is Outcome.WHOLE


def test_what_asked_when_the_server_was_killed_never_runs(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    with server_process(tmp_path, approval=ALWAYS) as server:
        session = server.open()
        execution = ask(server, session, f"open({str(traces)!r}, 'w')")
        server.kill()
    with server_process(tmp_path, approval=ALWAYS) as server:
        found = server.get(f"executions/{execution['id']}")
        assert server.get("approvals")["executions"] == []
    assert found["status"] == "cancelled"
    assert found["approval"]["status"] == "withdrawn"
    assert not traces.exists()


def test_what_cannot_be_recorded_is_not_approved_and_goes_on_asking(tmp_path: Path) -> None:
    with server_process(tmp_path, approval=ALWAYS) as server:
        execution = ask(server, server.open(), "1 + 1")
        path, sha256 = f"executions/{execution['id']}", execution["source_sha256"]
        before = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1, -1))
        for refused in (
            server.ask("POST", f"{path}/approve", {"source_sha256": sha256}),
            server.ask("PUT", "approvals/policy", {"scratch": "none"}),
            server.ask("POST", f"{path}/approve", {"source_sha256": sha256, "grant": "hour"}),
        ):
            assert (refused.status_code, refused.json()["code"]) == (503, "history_unavailable")
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, before)
        assert server.get(path)["status"] == "awaiting_approval"
        assert server.get("approvals")["policy"]["scratch"] == "always"
        approve(server, execution)
        assert server.get(path)["text"] == "2"


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("approval={'diary': 'none'}", "diary"),
        ("approval={'notebook': 'sometimes'}", "sometimes"),
        ("approval={'notebook': 'rules'}", "Use 'first'"),
        ("forced_approval={'kernel': 1}", "kernel"),
    ],
)
def test_a_policy_that_is_none_stops_the_start_with_a_sentence(
    tmp_path: Path, option: str, word: str
) -> None:
    started = subprocess.run(
        [
            *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
            *("--ip=127.0.0.1", "--port=0", f"--ServerApp.root_dir={tmp_path}"),
            "--ServerApp.jpserver_extensions={'jupyter_agent_exec': True}",
            f"--AgentExecApp.{option}",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert started.returncode == 1
    (sentence,) = [line for line in started.stderr.splitlines() if "is wrong" in line]
    assert option.partition("=")[0] in sentence
    assert word in sentence
    assert "Traceback" not in started.stderr
