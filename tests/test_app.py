"""The extension's start."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from traitlets.config import Config

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.sessions.manager import AgentSessions
from jupyter_agent_exec.traits import REMOVED
from tests.real_server import PROJECT, real_server

START = [
    sys.executable,
    "-m",
    "jupyter_server",
    "--no-browser",
    "--allow-root",
    "--ip=127.0.0.1",
    "--port=0",
    "--ServerApp.jpserver_extensions={'jupyter_agent_exec': True}",
]


@pytest.mark.parametrize(
    "setting",
    ["max_queued = -5", "max_queued = 'many'", "max_queued = None", "record_changes = 'off'"],
)
def test_a_bad_setting_stops_the_start_with_a_sentence(setting: str, tmp_path: Path) -> None:
    config = tmp_path / "config.py"
    config.write_text(f"c.AgentExecApp.{setting}\n")
    started = subprocess.run(
        [*START, f"--ServerApp.root_dir={tmp_path}", f"--config={config}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert started.returncode == 1
    (sentence,) = [line for line in started.stderr.splitlines() if setting.split()[0] in line]
    assert "The configuration of jupyter_agent_exec is wrong" in sentence
    assert "Traceback" not in started.stderr


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_setting_is_refused_and_what_replaced_it_is_told(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert not AgentExecApp.class_traits(config=True).get(name)
    with pytest.raises(SystemExit):
        AgentExecApp(log=logging.getLogger("test")).update_config(
            Config({"AgentExecApp": {name: "x"}})
        )
    assert f"is wrong: {name}: it was removed. {REMOVED[name]}" in caplog.text


BROKEN = """
from jupyter_agent_exec.sessions.manager import AgentSessions

class Broken(AgentSessions):
    def __init__(self, *given, **named):
        raise RuntimeError("a manager that is broken")
"""


def test_a_server_that_cannot_load_it_says_why_and_runs(
    tmp_path: Path,
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    log = tmp_path / "log"
    path = os.pathsep.join([str(tmp_path), str(PROJECT)])
    with (
        log.open("w") as written,
        real_server(
            tmp_path,
            "--AgentExecApp.session_manager_class=broken.Broken",
            environ={"PYTHONPATH": path},
            stderr=written,
        ) as server,
    ):
        url = server.url.partition("?")[0]
        token = {"Authorization": f"token {server.token}"}
        with httpx2.Client(headers=token, trust_env=False, timeout=60) as client:
            assert client.get(f"{url}api/status").status_code == 200
            assert client.get(f"{url}api/agent-exec/status").status_code == 404
    text = log.read_text()
    assert "jupyter_agent_exec could not be loaded" in text
    assert "`jupyter agent-exec doctor`" in text
    assert "a manager that is broken" in text
    assert "failed starting" not in text


class OwnSessions(AgentSessions):
    """Manages sessions as somebody else would."""


OWN_SESSIONS = {"session_manager_class": f"{__name__}.OwnSessions"}


@pytest.mark.parametrize("agent_exec_config", [OWN_SESSIONS])
async def test_a_manager_may_be_of_a_class_that_the_operator_names(jp_serverapp: Any) -> None:
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    assert type(app.services.manager).__name__ == "OwnSessions"
