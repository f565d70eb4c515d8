"""The benchmarks run, and tell what they found; how fast it was is not asserted."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.real_server import PROJECT


def test_a_quick_run_tells_what_it_measured_on_which_commit() -> None:
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    ended = subprocess.run(
        [sys.executable, str(PROJECT / "benchmarks" / "run.py"), "--quick", "--only", "open"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    page = ended.stdout
    [goal] = re.findall(r"^\| .*opened from the warm pool \| .* \| (.*) \|$", page, re.MULTILINE)
    assert f"{int(goal == 'met')} of 1 goals met. This was a quick run" in page
    assert re.search(r"commit \S+, Python 3\.", page)
    times = re.findall(r"^\| [^|]+ \| ([\d.,]+) ms \|$", page, re.MULTILINE)
    assert len(times) == 4
    assert all(float(each.replace(",", "")) > 0 for each in times)
