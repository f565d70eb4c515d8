"""The SQL of docs/how-to/sinks.md."""

from __future__ import annotations

import re

from tests.real_server import PROJECT

PAGE = PROJECT / "docs" / "how-to" / "sinks.md"
DAY, WEEK_BEFORE, NEXT_DAY = "2026-11-20", "2026-11-14", "2026-11-21"
"""The days that its queries name."""
SESSION = "s_01K0000000000000000000000A"


def blocks(heading: str) -> list[list[str]]:
    """Return the statements of each block of SQL under a heading."""
    section = PAGE.read_text().partition(f"### {heading}\n")[2].partition("\n### ")[0]
    found = re.findall(r"^```postgresql\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [[each for each in re.split(r"(?<=;)\n", block) if each.strip()] for block in found]


def queries() -> dict[str, str]:
    """Return the queries for auditors, by what they say of themselves."""
    [found] = blocks("Ask with SQL")
    return {
        each.strip().partition("\n")[0].removeprefix("-- "): each.strip().partition("\n")[2]
        for each in found
    }
