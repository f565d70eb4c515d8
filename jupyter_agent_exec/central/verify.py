"""Check every chain that has arrived at a far side, of all servers.

A gap is what did not arrive. A fork is two versions of what followed one entry: somebody rewrote
the history, or restored an older copy of it, and the server wrote on. A server may also say that
its head went backwards. What is still on its way looks like an end that is missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..counts import counted
from ..journal.chain import GENESIS, ParsedLine, link
from ..journal.verify import (
    Checked,
    Listed,
    Outcome,
    Report,
    check_formats,
    compare_session,
    is_named,
    list_entry,
    named_payloads,
)
from .archive import Archive, ArchivedJournal, Line


def verify_archive(archive: Archive) -> Report:
    """Check everything in an archive."""
    report = Report()
    names = archive.names()
    listed = Listed()
    for name in (name for name in names if name.startswith("ledger-")):
        checked, place = _check(archive.journal(name), report)
        listed.hashes.update(checked.hashes)
        for n, line in enumerate(checked.lines):
            if line.hash and not list_entry(line.entry, listed):
                message = f"What entry {n} says cannot be understood."
                report.add(Outcome.ALTERED, place, n, message)
    sessions = [name for name in names if not name.startswith("ledger-")]
    for name in sessions:
        checked, place = _check(archive.journal(name), report)
        for unsaid in compare_session(place, name, checked, listed, report):
            report.add(Outcome.MISSING, place, unsaid.length or None, unsaid.message)
    for session_id, said in sorted(listed.removed.items()):
        report.erased.append(f"{session_id}: {said}")
    for session_id in sorted(listed.sessions.keys() - set(sessions) - listed.removed.keys()):
        message = "A ledger lists this session; its journal has not arrived."
        report.add(Outcome.MISSING, Path(session_id), None, message)
    return report


def _check(arrived: ArchivedJournal, report: Report) -> tuple[Checked, Path]:
    """Check a journal by itself; return its longest chain, and what names it in findings."""
    place = Path(arrived.server or "unknown server") / arrived.name
    report.journals += 1
    report.entries += len(arrived.lines)
    for message in arrived.damaged:
        report.add(Outcome.ALTERED, place, None, message)
    checked = _check_chain(arrived.lines, place, report)
    if check_formats(place, checked, report):
        _check_payloads(arrived, checked, place, report)
    for rewind in arrived.rewinds:
        held = max((line.n + 1 for line in arrived.lines), default=0)
        report.add(
            Outcome.TRUNCATED,
            place,
            rewind.length,
            f"The head of {rewind.server} went backwards: it had "
            f"{counted(rewind.length, 'entry')}, which are not those that it had sent; "
            f"{held} have arrived.",
        )
    return checked, place


def _check_payloads(
    arrived: ArchivedJournal, checked: Checked, place: Path, report: Report
) -> None:
    """Check the payloads that have arrived, each by an entry that names it."""
    named: set[str] = set()
    for line in checked.lines:
        with suppress(ValueError):
            named.update(named_payloads(line.entry))
    for name, data in arrived.payloads.items():
        if name not in named or not is_named(name, [data], arrived.salts.get(name)):
            report.add(Outcome.ALTERED, place, None, f"A payload was altered: {name}.")


def _check_chain(lines: Sequence[Line], place: Path, report: Report) -> Checked:
    by_number: dict[int, list[Line]] = {}
    for line in lines:
        by_number.setdefault(line.n, []).append(line)
    checked = Checked()
    previous: set[str] | None = {GENESIS}  # the hashes that the next line may follow; None: any
    before: dict[str, str] = {}
    for n in range(max(by_number, default=-1) + 1):
        here = by_number.get(n, [])
        if not here and previous is not None:
            last = next(m for m in range(n, max(by_number) + 1) if m in by_number) - 1
            report.add(Outcome.MISSING, place, n, f"Entries {n} to {last} have not arrived.")
        good = {line.hash: _predecessor(line, n, previous) for line in here}
        if any(found is None for found in good.values()):
            report.add(Outcome.ALTERED, place, n, f"Entry {n} or its hash was altered.")
        if len(here) > 1:
            message = f"Entry {n} has arrived in {len(here)} versions: the history was rewritten."
            report.add(Outcome.ALTERED, place, n, message)
        before.update({line_hash: found for line_hash, found in good.items() if found is not None})
        previous = set(good) or None
    _keep_longest(by_number, before, checked)
    return checked


def _predecessor(line: Line, n: int, previous: set[str] | None) -> str | None:
    """Return the hash of the line before; "" if that has not arrived, None if there is none."""
    if _entry(line).get("n") != n:
        return None
    if previous is None:
        return ""
    return next((each for each in previous if link(each, line.canonical) == line.hash), None)


def _keep_longest(
    by_number: dict[int, list[Line]], before: dict[str, str], checked: Checked
) -> None:
    """Put the chain that ends with the last line into `checked`."""
    following = ""
    for n in range(max(by_number, default=-1), -1, -1):
        here = {line.hash: line for line in by_number.get(n, [])}
        line = here.get(following) or next(iter(here.values()), None)
        following = "" if line is None else before.get(line.hash, "")
        checked.hashes.append("" if line is None else line.hash)
        parsed = ParsedLine("", b"", {}, {}, {})
        if line is not None:
            parsed = ParsedLine(line.hash, line.canonical, _entry(line), {}, {})
        checked.lines.append(parsed)
    checked.hashes.reverse()
    checked.lines.reverse()


def _entry(line: Line) -> dict[str, Any]:
    try:
        entry = json.loads(line.canonical)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}
