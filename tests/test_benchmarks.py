"""The benchmarks run, and write what they found; how fast it was is not asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.real_server import PROJECT


def test_a_piece_of_work_by_mcp_costs_an_agent_as_little_as_it_should() -> None:
    script = str(PROJECT / "benchmarks" / "mcp_tokens.py")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "| calls | 18 |" in ended.stdout


def test_a_quick_run_writes_a_page_and_json_that_say_the_same(tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    ended = subprocess.run(
        [
            *(sys.executable, str(PROJECT / "benchmarks" / "run.py")),
            *("--quick", "--only", "open", "--out", str(tmp_path)),
        ],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    written = json.loads((tmp_path / "benchmarks.json").read_text())
    page = (tmp_path / "benchmarks.md").read_text()
    [benchmark] = written["benchmarks"]
    [goal] = benchmark["goals"]
    assert written["quick"]
    assert written["machine"]["packages"]["jupyter_server"]
    assert goal["met"] == (goal["value"] <= goal["limit"])
    assert f"{int(goal['met'])} of 1 goals met" in page
    for measurement in benchmark["measurements"]:
        assert measurement["summary"]["median"] > 0
        assert measurement["what"] in page
