"""The report of a run: the machine, and the page in docs/."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
from measures import Goal, Measurement, Result

from jupyter_agent_exec import __version__

PACKAGES = (
    "jupyter_server",
    "jupyter_client",
    "ipykernel",
    "nbclient",
    "pyzmq",
    "tornado",
    "msgspec",
    "httpx2",
)

PAGE = """\
# How fast it is

`make bench` writes this page. The contenders take turns on one machine; servers run in their own
processes, on loopback; records are synced to disk. Numbers are medians; behind those of goals stand
p10 and p90.

{date}, {machine}.

## Goals

{goals}
{verdict}

{sections}
"""

SECTION = """\
## {title}

{how}

{goals}| | median |
| --- | ---: |
{measurements}
"""

GOALS = """\
| what | goal | measured | |
| --- | ---: | ---: | --- |
{rows}

"""


def machine(folder: Path) -> dict[str, Any]:
    """Return what the numbers depend on.

    Parameters
    ----------
    folder
        Where the histories are.
    """
    return {
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cpu_count": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "file_system": _file_system(folder),
        "load_average_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "packages": {
            "jupyter-agent-exec": __version__,
            **{name: version(name) for name in PACKAGES},
        },
    }


def page(facts: dict[str, Any], results: Sequence[Result], *, quick: bool) -> str:
    """Return the page for people."""
    goals = [(result, goal) for result in results for goal in result.goals]
    missed = sum(not goal.met for _, goal in goals)
    verdict = f"{len(goals) - missed} of {len(goals)} goals met."
    if quick:
        verdict += " This was a quick run: too few samples to rely on."
    return PAGE.format(
        date=facts["date"][:10],
        machine=_machine_in_words(facts),
        goals=_goals((f"{result.title}: {goal.what}", goal) for result, goal in goals),
        verdict=verdict,
        sections="\n".join(_section(each, each.how, "") for each in results).rstrip(),
    )


def section(facts: dict[str, Any], result: Result) -> str:
    """Return what one result comes to, with the machine."""
    how = f"{result.how}\n\n{facts['date'][:10]}, {_machine_in_words(facts)}."
    return _section(result, how, _goals((goal.what, goal) for goal in result.goals))


def _section(result: Result, how: str, goals: str) -> str:
    rows = "\n".join(map(_measurement_row, result.measurements))
    return SECTION.format(title=result.title, how=how, goals=goals, measurements=rows)


def _goals(named: Iterable[tuple[str, Goal]]) -> str:
    """Return the table of goals; nothing if there are none."""
    rows = "\n".join(_goal_row(*each) for each in named)
    return GOALS.format(rows=rows) if rows else ""


def put(path: Path, facts: dict[str, Any], result: Result) -> None:
    """Write a result into a page, at the place that is named for it."""
    begin, end = f"<!-- measured: {result.name} -->\n", "<!-- end -->"
    before, _, rest = path.read_text().partition(begin)
    path.write_text(f"{before}{begin}\n{section(facts, result)}\n{end}{rest.partition(end)[2]}")


def _goal_row(what: str, goal: Goal) -> str:
    value = _with_unit(goal.value, goal.unit)
    if goal.low is not None and goal.high is not None:
        value += f" ({_number(goal.low)} to {_number(goal.high)})"
    met = "met" if goal.met else "**not met**"
    limit = _with_unit(goal.limit, goal.unit)
    return f"| {what} | ≤ {limit} | {value} | {met} |"


def _measurement_row(measurement: Measurement) -> str:
    return f"| {measurement.what} | {_with_unit(measurement.summary.median, measurement.unit)} |"


def _with_unit(value: float, unit: str) -> str:
    return f"{_number(value)} {unit}".rstrip()


def _number(value: float) -> str:
    """Return a number with three digits that count, and no more than it needs."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def _machine_in_words(facts: dict[str, Any]) -> str:
    """Return the machine and the versions in one sentence."""
    packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items())
    return (
        f"{facts['cpu_count']} CPUs ({facts['processor']}), "
        f"{facts['memory_bytes'] / 1e9:.0f} GB of memory, {facts['system']}, "
        f"{facts['file_system']}, load {facts['load_average_before']:.2f} before; "
        f"commit {facts['commit']}, Python {facts['python']}, SQLite {facts['sqlite']}, {packages}"
    )


def _commit() -> str:
    """Return the commit that was measured, with a plus sign if files differ from it."""
    describe = ["git", "describe", "--always", "--dirty=+"]
    told = subprocess.run(describe, cwd=Path(__file__).parent, capture_output=True, text=True)
    return told.stdout.strip() or "unknown"


def _processor() -> str:
    """Return the processor's name, as far as the system tells."""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file_system(folder: Path) -> str:
    """Return the type of the file system that holds `folder`."""
    mounts = {Path(part.mountpoint): part.fstype for part in psutil.disk_partitions(all=True)}
    holders = [path for path in (folder, *folder.resolve().parents) if path in mounts]
    return str(mounts[holders[0]]) if holders else "unknown file system"
