"""The benchmarks run, and tell what they found; how fast it was is not asserted."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.real_server import PROJECT


def run(*words: str) -> str:
    """Run benchmarks; return what they print."""
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    ended = subprocess.run(
        [sys.executable, str(PROJECT / "benchmarks" / "run.py"), *words],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_quick_run_tells_what_it_measured_on_which_commit() -> None:
    page = run("--quick", "--only", "open")
    [goal] = re.findall(r"^\| .*opened from the warm pool \| .* \| (.*) \|$", page, re.MULTILINE)
    assert f"{int(goal == 'met')} of 1 goals met. This was a quick run" in page
    assert re.search(r"commit \S+, Python 3\.", page)
    times = re.findall(r"^\| [^|]+ \| ([\d.,]+) ms \|$", page, re.MULTILINE)
    assert len(times) == 4
    assert all(float(each.replace(",", "")) > 0 for each in times)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("name", "size"),
    [("central", "0.01"), ("history", "0.01"), ("hub", "0.02"), ("kills", "0.1"), ("week", "0.01")],
)
def test_what_is_promised_at_scale_holds_at_a_small_size(name: str, size: str) -> None:
    """It ends with an error that names the promise, and the round in which it broke."""
    assert run("--scale", "--only", name, "--size", size).startswith("## ")
