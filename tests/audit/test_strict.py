"""A real server with a strict sink: nothing runs while the copy of the record lacks too much."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real_server import until
from tests.server_process import ServerProcess, server_process


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("far") / "record"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, far: Path) -> Iterator[ServerProcess]:
    sink = {"kind": "folder", "path": str(far), "delay": 0, "max_lag": 2}
    folder = tmp_path_factory.mktemp("server")
    config = folder / "config.py"
    config.write_text(f"c.AgentExecApp.sinks = [{sink}]")
    with server_process(folder, f"--config={config}") as server:
        until(lambda: up_to_date(server))
        yield server


def up_to_date(server: ServerProcess) -> bool:
    (sink,) = server.get("status")["sinks"]
    return bool(sink["lag"] == 0)


def test_nothing_runs_while_a_strict_sink_is_behind_and_it_resumes_by_itself(server, far, tmp_path):
    session = server.open()
    assert server.run(session, "1").json()["status"] == "ok"
    until(lambda: up_to_date(server))
    away = far.rename(far.with_name("away"))
    far.write_text("in the way")
    assert server.run(session, "2").json()["status"] == "ok"  # not behind by enough yet
    until(lambda: server.get("status")["sinks"][0]["is_stopping_code"])
    mark = tmp_path / "mark"
    refused = server.run(session, f"open({str(mark)!r}, 'w').close()")
    assert (refused.status_code, refused.json()["code"]) == (503, "sink_behind")
    assert "folder" in refused.json()["message"]
    restarted = server.ask("POST", f"sessions/{session}/restart")
    assert restarted.status_code == 200  # by a person, and it runs nothing of an agent's
    minted = server.ask("POST", "tokens", {"label": "t", "scopes": ["history:read:all"]})
    bearer = {"Authorization": f"Bearer {minted.json()['secret']}"}
    for route in ("status", "approvals"):  # errors may name hosts: for people only
        assert server.ask("GET", route, headers=bearer).json()["sinks"] == []
    (status,) = server.get("approvals")["sinks"]  # what the panel shows
    assert status["entries_behind"] >= 2
    assert status["error"]
    far.unlink()
    away.rename(far)
    until(lambda: up_to_date(server))
    assert server.run(session, "3").json()["status"] == "ok"
    assert server.get("approvals")["sinks"] == []
    assert not mark.exists()


def test_accepted_code_that_may_no_longer_run_is_cancelled(server, far, tmp_path):
    session = server.open()
    mark = tmp_path / "mark"
    code = f"import os, time\nwhile not os.path.exists({str(mark)!r}): time.sleep(0.05)"
    first = server.run(session, code, wait=0).json()["id"]
    until(lambda: server.get(f"executions/{first}")["status"] == "running")
    second = server.run(session, "1", wait=0).json()["id"]
    until(lambda: up_to_date(server))
    away = far.rename(far.with_name("away"))
    far.write_text("in the way")
    server.run(session, "2", wait=0)  # an entry that cannot be copied
    until(lambda: server.get("status")["sinks"][0]["is_stopping_code"])
    mark.touch()
    ended = server.get(f"executions/{second}?wait=30")
    far.unlink()
    away.rename(far)
    assert ended["status"] == "cancelled"
    assert "'folder', which is" in ended["reason"]
    assert server.get(f"executions/{first}?wait=30")["status"] == "ok"
    until(lambda: up_to_date(server))
