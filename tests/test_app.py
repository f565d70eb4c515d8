"""The extension's start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("value", ["-5", "'many'", "None"])
def test_a_bad_value_stops_the_start_with_a_sentence(value: str, tmp_path: Path) -> None:
    config = tmp_path / "config.py"
    config.write_text(f"c.AgentExecApp.max_queued = {value}\n")
    started = subprocess.run(
        [*START, f"--ServerApp.root_dir={tmp_path}", f"--config={config}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert started.returncode == 1
    (sentence,) = [line for line in started.stderr.splitlines() if "max_queued" in line]
    assert "The configuration of jupyter_agent_exec is wrong" in sentence
    assert "Traceback" not in started.stderr
