"""The report of a run: the machine, the JSON, and the page in docs/."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import asdict
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
# {title}

`{command}` writes this page and [{name}.json]({name}.json). It measures everything in one run. The
contenders take turns, so that changes on the machine affect all of them alike. Servers run in their
own processes, on loopback. Records are synced to disk.

{date}, {machine}.

## Goals

| what | goal | measured | spread (p10 to p90) | |
| --- | ---: | ---: | ---: | --- |
{goals}

{verdict}

{sections}
"""

SECTION = """\
## {title}

{how}

| | n | median | p10 to p90 | p95 | max |
| --- | ---: | ---: | ---: | ---: | ---: |
{measurements}
"""


def machine(folder: Path) -> dict[str, Any]:
    """Return what the numbers depend on.

    Parameters
    ----------
    folder
        Where the histories are.
    """
    return {
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


def as_json(
    facts: dict[str, Any], results: Sequence[Result], *, quick: bool, seconds: float
) -> dict[str, Any]:
    """Return a whole run."""
    return {
        "machine": facts,
        "quick": quick,
        "seconds": round(seconds, 1),
        "benchmarks": [
            {
                **asdict(result),
                "goals": [goal.as_json() for goal in result.goals],
            }
            for result in results
        ],
    }


def page(
    facts: dict[str, Any],
    results: Sequence[Result],
    *,
    quick: bool,
    title: str = "How fast it is",
    command: str = "make bench",
    name: str = "benchmarks",
) -> str:
    """Return the page for people.

    Parameters
    ----------
    title
        Of the page.
    command
        What writes it.
    name
        Of its file and that of the numbers, without suffix.
    """
    goals = [(result, goal) for result in results for goal in result.goals]
    missed = sum(not goal.met for _, goal in goals)
    verdict = f"{len(goals) - missed} of {len(goals)} goals met."
    if quick:
        verdict += " This was a quick run: too few samples to rely on."
    return PAGE.format(
        title=title,
        command=command,
        name=name,
        date=facts["date"][:10],
        machine=machine_in_words(facts),
        goals="\n".join(_goal_row(result, goal) for result, goal in goals),
        verdict=verdict,
        sections="\n".join(
            SECTION.format(
                title=result.title,
                how=result.how,
                measurements="\n".join(map(_measurement_row, result.measurements)),
            )
            for result in results
        ).rstrip(),
    )


def brief(text: str) -> str:
    """Return the beginning of a text, in one line that fits in a table."""
    line = " ".join(text.split())[:160]
    return f"“{line.replace('|', '/').replace('<', '(').replace('`', chr(39))}”"


def _goal_row(result: Result, goal: Goal) -> str:
    spread = (
        f"{_number(goal.low)} to {_number(goal.high)}"
        if goal.low is not None and goal.high is not None
        else ""
    )
    met = "met" if goal.met else "**not met**"
    limit, value = _with_unit(goal.limit, goal.unit), _with_unit(goal.value, goal.unit)
    return f"| {result.title}: {goal.what} | ≤ {limit} | {value} | {spread} | {met} |"


def _measurement_row(measurement: Measurement) -> str:
    found, unit = measurement.summary, measurement.unit
    return (
        f"| {measurement.what} | {found.count:,} | {_with_unit(found.median, unit)} "
        f"| {_number(found.p10)} to {_number(found.p90)} | {_number(found.p95)} "
        f"| {_number(found.max)} |"
    )


def _with_unit(value: float, unit: str) -> str:
    return f"{_number(value)} {unit}".rstrip()


def _number(value: float) -> str:
    """Return a number with three digits that count, and no more than it needs."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def machine_in_words(facts: dict[str, Any]) -> str:
    """Return the machine and the versions in one sentence."""
    packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items())
    return (
        f"{facts['cpu_count']} CPUs ({facts['processor']}), "
        f"{facts['memory_bytes'] / 1e9:.0f} GB of memory, {facts['system']}, "
        f"{facts['file_system']}, load {facts['load_average_before']:.2f} before; "
        f"Python {facts['python']}, SQLite {facts['sqlite']}, {packages}"
    )


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
