"""Check every chain that has arrived at a far side, of all servers; all of it, or that of a time.

A gap is what did not arrive. A fork is two versions of what followed one entry: somebody rewrote
the history, or restored an older copy of it, and the server wrote on. A server may also say that
its head went backwards. What is still on its way looks like an end that is missing.

Of a time, a chain is checked from its first entry then to its last, and the link of the first to
the one before. What the report cannot vouch for stands in `unchecked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..counts import counted
from ..journal.chain import GENESIS, ParsedLine, link
from ..journal.verify import (
    Checked,
    Listed,
    Outcome,
    Report,
    Unsaid,
    check_formats,
    compare_session,
    is_named,
    is_said,
    list_entry,
    named_payloads,
)
from .archive import Archive, ArchivedJournal, Line, Span, parsed

_ABOUT_SESSIONS = ("session_opened", "session_closed", "session_amended", "session_removed")
_ABOUT_TOKENS = ("token_minted",)


@dataclass(slots=True)
class _Seen:
    """What has been read so far."""

    listed: Listed = field(default_factory=Listed)
    places: dict[str, Path] = field(default_factory=dict)
    """What names each session that was read in findings."""
    opened: set[str] = field(default_factory=set)
    """The sessions that ledgers say were opened in the time."""
    cut: int = 0
    """How many chains begin before the time, with what is not here."""
    payloads: int = 0
    """How many payloads entries name and have not arrived."""


def verify_archive(archive: Archive, span: Span | None = None) -> Report:
    """Check an archive.

    Parameters
    ----------
    archive
        What has arrived.
    span
        Check what is of this time only; None: everything.
    """
    report, seen = Report(), _Seen()
    unsaid: list[Unsaid] = []
    if span is not None:
        for entry in archive.ledger_entries(_ABOUT_TOKENS):
            list_entry(entry, seen.listed)
    for arrived in archive.journals(span):  # ledgers first
        checked, place = _check(arrived, seen, report)
        if arrived.name.startswith("ledger-"):
            _list(checked, place, span or Span(), seen, report)
        else:
            seen.places[arrived.name] = place
            unsaid += _compare(arrived, checked, place, seen.listed, report)
    if span is not None:
        unsaid = _said_at_another_time(archive, unsaid)
        _find_ends(archive, seen, report)
    for each in unsaid:
        report.add(Outcome.MISSING, each.path, each.length or None, each.message)
    for session_id, said in sorted(seen.listed.removed.items()):
        report.erased.append(f"{session_id}: {said}")
    if span is None:
        _find_journals(seen, report)
    if seen.cut:
        report.unchecked.append(
            f"what came before the first entry here of {counted(seen.cut, 'chain')} of an earlier "
            "time: it was removed, or has never arrived"
        )
    if seen.payloads:
        report.unchecked.append(
            f"{counted(seen.payloads, 'payload')} that entries name: not sent, too large or erased"
        )
    return report


def _list(checked: Checked, place: Path, span: Span, seen: _Seen, report: Report) -> None:
    """Note what a ledger lists in a time."""
    seen.listed.hashes.update(checked.hashes)
    for n, line in enumerate(checked.lines):
        if not line.hash or not span.has(line.entry):
            continue
        if not list_entry(line.entry, seen.listed):
            message = f"What entry {n} says cannot be understood."
            report.add(Outcome.ALTERED, place, n, message)
        elif line.entry.get("type") == "session_opened":
            seen.opened.add(line.entry["session_id"])


def _compare(
    arrived: ArchivedJournal, checked: Checked, place: Path, listed: Listed, report: Report
) -> list[Unsaid]:
    """Compare a journal with the ledgers; return what they do not list."""
    if arrived.first:  # a ledger of an earlier time lists it
        end = listed.sessions.setdefault(arrived.name, None)
        if end is not None and end.length <= _begin(arrived):
            return []
    return compare_session(place, arrived.name, checked, listed, report)


def _find_journals(seen: _Seen, report: Report) -> None:
    """Report the sessions that ledgers list and of which nothing has arrived."""
    listed = seen.listed
    for session_id in sorted(listed.sessions.keys() - seen.places.keys() - listed.removed.keys()):
        message = "A ledger lists this session; its journal has not arrived."
        report.add(Outcome.MISSING, Path(session_id), None, message)


def _said_at_another_time(archive: Archive, unsaid: list[Unsaid]) -> list[Unsaid]:
    """Return what no ledger lists at any time."""
    if not unsaid:
        return []
    listed = Listed()
    for entry in archive.ledger_entries(_ABOUT_SESSIONS):
        list_entry(entry, listed)
    return [each for each in unsaid if not is_said(each, listed.sessions)]


def _find_ends(archive: Archive, seen: _Seen, report: Report) -> None:
    """Report sessions that lack a beginning or an end that ledgers of the time name."""
    listed = seen.listed
    wanted = {
        session_id: 0 if end is None else end.length - 1
        for session_id, end in listed.sessions.items()
        if session_id not in seen.places and session_id not in listed.removed
    }
    places = {*wanted.items(), *((name, 0) for name in {*wanted, *seen.opened})}
    there = archive.lines_at(places)
    for session_id, n in sorted(wanted.items()):
        path, end = Path(session_id), listed.sessions[session_id]
        here = there.get((session_id, n), [])
        if not here and (session_id, 0) not in there:
            message = "A ledger lists this session; its journal has not arrived."
            report.add(Outcome.MISSING, path, None, message)
        elif not here:
            message = f"The ledger says that it has {counted(n + 1, 'entry')}; the last is not here"
            report.add(Outcome.TRUNCATED, path, n, f"{message}.")
        elif end is not None and all(line.hash != end.head for line in here):
            report.add(Outcome.ALTERED, path, n, "It does not end as the ledger says it does.")
    for session_id in sorted(seen.opened & seen.places.keys()):
        if (session_id, 0) not in there:
            message = "It was opened in this time; its first entries have not arrived."
            report.add(Outcome.MISSING, seen.places[session_id], 0, message)


def _begin(arrived: ArchivedJournal) -> int:
    """Return the number of the first line to check; those before it are of an earlier time."""
    if arrived.first is None or not arrived.lines:
        return 0
    return arrived.lines[0].n


def _check(arrived: ArchivedJournal, seen: _Seen, report: Report) -> tuple[Checked, Path]:
    """Check a journal by itself; return its longest chain, and what names it in findings."""
    place = Path(arrived.server or "unknown server") / arrived.name
    begin = _begin(arrived)
    report.journals += 1
    report.entries += sum(line.n >= (arrived.first or 0) for line in arrived.lines)
    seen.cut += begin > 0 and begin == arrived.first
    for message in arrived.damaged:
        report.add(Outcome.ALTERED, place, None, message)
    checked = _check_chain(arrived.lines, begin, place, report)
    for n in range(begin, arrived.first or 0):  # it only links
        checked.lines[n] = _NO_LINE
    if check_formats(place, checked, report):
        seen.payloads += _check_payloads(arrived, checked, place, report)
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


def _check_payloads(arrived: ArchivedJournal, checked: Checked, place: Path, report: Report) -> int:
    """Check the payloads that have arrived, each by an entry that names it; return how many lack.

    Lines of a time may also mention payloads of entries before it, which are not checked.
    """
    named: set[str] = set()
    for line in checked.lines:
        with suppress(ValueError):
            named.update(named_payloads(line.entry))
    for name, data in arrived.payloads.items():
        if name not in named and arrived.first is not None:
            continue
        if name not in named or not is_named(name, [data], arrived.salts.get(name)):
            report.add(Outcome.ALTERED, place, None, f"A payload was altered: {name}.")
    return len(named - arrived.payloads.keys())


class _Link(NamedTuple):
    """A line, with what it says and the hash of the line before it."""

    line: ParsedLine
    before: str | None
    """ "" if that line is not here; None if there is none, or the line is not where it belongs."""


def _linked(line: Line, n: int, previous: set[str] | None) -> _Link:
    entry = parsed(line)
    before = None
    if entry.get("n") == n:
        before = "" if previous is None else _before(line, previous)
    return _Link(ParsedLine(line.hash, b"", entry, {}, {}), before)


def _before(line: Line, previous: set[str]) -> str | None:
    for each in previous:
        if link(each, line.canonical) == line.hash:
            return each
    return None


def _check_chain(lines: Sequence[Line], begin: int, place: Path, report: Report) -> Checked:
    """Check the lines from number `begin` on."""
    straight = _straight(lines, begin)
    if straight is not None:
        return straight
    by_number: dict[int, list[Line]] = {}
    for line in lines:
        by_number.setdefault(line.n, []).append(line)
    links: list[list[_Link]] = []
    # the hashes that the next line may follow; None: any
    previous: set[str] | None = {GENESIS} if begin == 0 else None
    for n in range(begin, max(by_number, default=-1) + 1):
        here = [_linked(line, n, previous) for line in by_number.get(n, ())]
        if not here and previous is not None:
            last = next(m for m in range(n, max(by_number) + 1) if m in by_number) - 1
            report.add(Outcome.MISSING, place, n, f"Entries {n} to {last} have not arrived.")
        if any(each.before is None for each in here):
            report.add(Outcome.ALTERED, place, n, f"Entry {n} or its hash was altered.")
        if len(here) > 1:
            message = f"Entry {n} has arrived in {len(here)} versions: the history was rewritten."
            report.add(Outcome.ALTERED, place, n, message)
        previous = {each.line.hash for each in here} or None
        links.append(here)
    return _longest(links, begin)


def _straight(lines: Sequence[Line], begin: int) -> Checked | None:
    """Return a chain if nothing is wrong with it, which is quicker to find than what is."""
    checked = Checked(lines=[_NO_LINE] * begin, hashes=[""] * begin)
    previous = GENESIS if begin == 0 else None
    for n, line in enumerate(lines, begin):
        entry = parsed(line)
        if line.n != n or entry.get("n") != n:
            return None
        if previous is not None and link(previous, line.canonical) != line.hash:
            return None
        previous = line.hash
        checked.lines.append(ParsedLine(previous, b"", entry, {}, {}))
        checked.hashes.append(previous)
    return checked


def _longest(links: Sequence[Sequence[_Link]], begin: int) -> Checked:
    """Return the chain that ends with the last line; empty before number `begin`."""
    checked = Checked()
    following = ""
    for here in reversed(links):
        found = next((each for each in here if each.line.hash == following), _NO_LINK)
        if found is _NO_LINK and here:
            found = here[0]
        following = found.before or ""
        checked.hashes.append(found.line.hash)
        checked.lines.append(found.line)
    checked.hashes += [""] * begin
    checked.lines += [_NO_LINE] * begin
    checked.hashes.reverse()
    checked.lines.reverse()
    return checked


_NO_LINE = ParsedLine("", b"", {}, {}, {})
_NO_LINK = _Link(_NO_LINE, None)
