"""Whether a history is what was written: an auditor's check, independent of the writer.

It imports nothing but the standard library and `chain`, the definition of a line. It reads, and
changes nothing; a live server may go on writing meanwhile.

What it cannot find out by itself: that the end of a journal whose session is open was cut off
together with the ledger's, or that somebody wrote all of it anew. A head that was kept elsewhere
(each answer carries one) proves both: pass it as `head`.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .chain import GENESIS, ParsedLine, link, parse_line


class Outcome(enum.IntEnum):
    """What a check found; the number is the command line's exit code (2 is for its usage)."""

    WHOLE = 0
    """Every line is as it was written, and every payload is there."""
    ALTERED = 1
    """A line or a payload is not as it was written."""
    TRUNCATED = 3
    """The chain is consistent but ends before a head that is known."""
    TORN = 4
    """The last line is incomplete: a server died while it wrote, before it told anyone."""
    MISSING = 5
    """A session's journal, its mention in a ledger, or a payload is not there."""


_GRAVITY = (Outcome.ALTERED, Outcome.TRUNCATED, Outcome.MISSING, Outcome.TORN, Outcome.WHOLE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    outcome: Outcome
    path: Path
    """The file it is about."""
    n: int | None
    """The entry it is about, counted from 0."""
    message: str
    """A sentence."""


@dataclass(kw_only=True, slots=True)
class Report:
    """The result of a check."""

    findings: list[Finding] = field(default_factory=list)
    journals: int = 0
    """Chains that were checked, ledgers included."""
    entries: int = 0
    """Lines that were checked."""

    @property
    def outcome(self) -> Outcome:
        """The gravest of the findings."""
        found = {finding.outcome for finding in self.findings}
        return next((outcome for outcome in _GRAVITY if outcome in found), Outcome.WHOLE)

    def add(self, outcome: Outcome, path: Path, n: int | None, message: str) -> None:
        """Note a finding."""
        self.findings.append(Finding(outcome=outcome, path=path, n=n, message=message))


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """Where a ledger says that a closed session's journal ends, or ended before it was amended."""

    head: str
    length: int


@dataclass(kw_only=True, slots=True)
class Checked:
    """A chain that was read."""

    lines: list[ParsedLine] = field(default_factory=list)
    """Without payloads' texts unless they were asked for."""
    hashes: list[str] = field(default_factory=list)


def verify_history(folder: Path, *, head: str | None = None) -> Report:
    """Check all that is in a history's folder.

    Parameters
    ----------
    folder
        The one with the ledgers and `sessions`.
    head
        A head, of any of its chains, that was kept elsewhere.
    """
    report = Report()
    on_disk = sorted(folder.glob("sessions/*/journal.jsonl"))
    seen: set[str] = {GENESIS}
    listed: dict[str, End | None] = {}
    for path in sorted(folder.glob("ledger-*.jsonl")):
        ledger = check_chain(path, report)
        seen.update(ledger.hashes)
        _list_sessions(ledger, listed)
    for path in on_disk:
        session_id = path.parent.name
        seen.update(_verify_session(path, session_id, listed, report).hashes)
    found = {path.parent.name for path in on_disk}
    for session_id in listed.keys() - found:
        path = folder / "sessions" / session_id / "journal.jsonl"
        report.add(Outcome.MISSING, path, None, "A ledger lists this session; its journal is gone.")
    if head is not None and head not in seen:
        report.add(Outcome.TRUNCATED, folder, None, "The known head is in none of the chains.")
    return report


def verify_session(folder: Path, session_id: str, *, head: str | None = None) -> Report:
    """Check one session of a history, with what the ledgers say of it.

    Parameters
    ----------
    folder
        The history's.
    session_id
        The session.
    head
        A head of its journal that was kept elsewhere.
    """
    report = Report()
    listed: dict[str, End | None] = {}
    for ledger in sorted(folder.glob("ledger-*.jsonl")):
        _list_sessions(check_chain(ledger, report), listed)
    path = folder / "sessions" / session_id / "journal.jsonl"
    if not path.is_file():
        told = "A ledger lists this session; its" if session_id in listed else "Its"
        report.add(Outcome.MISSING, path, None, f"{told} journal is not there.")
        return report
    _known_head(_verify_session(path, session_id, listed, report), path, head, report)
    return report


def verify_journal(path: Path, *, head: str | None = None) -> Report:
    """Check one journal or ledger by itself, with the blobs beside it.

    Parameters
    ----------
    path
        The file.
    head
        A head of it that was kept elsewhere.
    """
    report = Report()
    _known_head(check_chain(path, report), path, head, report)
    return report


def check_chain(path: Path, report: Report) -> Checked:
    """Check a file's lines and payloads, note findings in `report`, and return its entries."""
    checked = Checked()
    report.journals += 1
    previous, expected = {GENESIS}, 0  # what the next line may follow
    blobs: set[str] = set()
    for data, last in _lines(path):
        try:
            line = parse_line(data)
            if not data.endswith(b"\n"):
                raise ValueError("the line has no end")
        except ValueError as error:
            outcome = Outcome.TORN if last else Outcome.ALTERED
            report.add(outcome, path, expected, f"Entry {expected} cannot be read: {error}.")
            previous, expected = set(), expected + 1
            continue
        report.entries += 1
        n = line.entry.get("n")
        if n != expected:
            report.add(
                Outcome.ALTERED, path, expected, f"Entry {n} stands where entry {expected} belongs."
            )
        links = {link(before, line.canonical) for before in previous}
        if n == expected and previous and line.hash not in links:
            report.add(
                Outcome.ALTERED, path, expected, f"Entry {expected} or its hash was altered."
            )
        _check_payloads(path, expected, line, blobs, report)
        checked.lines.append(line._replace(payloads={}))
        checked.hashes.append(line.hash)
        previous, expected = {line.hash, *links}, expected + 1
    return checked


def named_payloads(entry: dict[str, Any]) -> list[str]:
    """Return the digests of the payloads that an entry names."""
    names = [entry.get(name) for name in _PAYLOAD_FIELDS.get(entry.get("type", ""), ())]
    names += [blob.get("sha256") for blob in entry.get("blobs", ()) if isinstance(blob, dict)]
    return [name for name in names if isinstance(name, str)]


_PAYLOAD_FIELDS = {
    "opened": ("init_source",),
    "accepted": ("source", "values"),
    "approval_asked": ("source", "before"),
    "approved": ("source",),
    "input_asked": ("prompt",),
    "input_given": ("value",),
    "finished": ("outputs", "text", "variables", "values"),
    "files_written": ("files",),
    "late_output": ("outputs",),
    "display_updated": ("outputs",),
    "person_ran": ("source", "outputs"),
    "cell_discarded": ("cell",),
    "notebook_edit_asked": ("edits",),
    "notebook_edited": ("before", "after"),
}


_AMENDMENTS = (
    "outputs_accepted",
    "outputs_discarded",
    "outputs_restored",
    "cell_discarded",
    "cell_restored",
    "cell_written",
    "reviewed",
)
"""What may follow a session's end: a person's decisions, and what became of the cells then."""


def _verify_session(
    path: Path, session_id: str, listed: dict[str, End | None], report: Report
) -> Checked:
    checked = check_chain(path, report)
    entries = [line.entry for line in checked.lines]
    if entries and entries[0].get("session_id") != session_id:
        report.add(Outcome.ALTERED, path, 0, "This is the journal of another session.")
    if entries and session_id not in listed:
        report.add(Outcome.MISSING, path, None, "No ledger lists this session.")
    end = listed.get(session_id)
    if end is None:
        return checked
    if len(checked.hashes) < end.length:
        report.add(
            Outcome.TRUNCATED,
            path,
            len(checked.hashes),
            f"The ledger says that it has {end.length} entries; it has {len(checked.hashes)}.",
        )
    elif checked.hashes[end.length - 1] != end.head:
        report.add(
            Outcome.ALTERED, path, end.length - 1, "It does not end as the ledger says it does."
        )
    elif any(entry.get("type") not in _AMENDMENTS for entry in entries[end.length :]):
        report.add(Outcome.ALTERED, path, end.length, "It goes on after its end in the ledger.")
    return checked


def _known_head(checked: Checked, path: Path, head: str | None, report: Report) -> None:
    if head is not None and head not in (GENESIS, *checked.hashes):
        report.add(
            Outcome.TRUNCATED, path, len(checked.hashes), "It ends before the head that is known."
        )


def _list_sessions(ledger: Checked, listed: dict[str, End | None]) -> None:
    for line in ledger.lines:
        entry = line.entry
        if entry.get("type") == "session_opened":
            listed.setdefault(entry["session_id"], None)
        elif entry.get("type") in ("session_closed", "session_amended"):
            end = entry["chain"]
            known = listed.get(entry["session_id"])
            if known is None or known.length < end["length"]:
                listed[entry["session_id"]] = End(head=end["head"], length=end["length"])


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Yield a file's lines, and whether each is the last."""
    with path.open("rb") as file:
        before = file.readline()
        while before:
            data = file.readline()
            yield before, not data
            before = data


def _check_payloads(
    path: Path, n: int, line: ParsedLine, checked: set[str], report: Report
) -> None:
    named = named_payloads(line.entry)
    for digest, text in line.payloads.items():
        if digest not in named:
            report.add(Outcome.ALTERED, path, n, f"Entry {n} has a payload that it does not name.")
        elif hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != digest:
            report.add(Outcome.ALTERED, path, n, f"A payload of entry {n} was altered: {digest}.")
    for digest in named:
        if digest in line.payloads or digest in checked:
            continue
        checked.add(digest)
        blob = path.parent / "blobs" / digest
        if not blob.is_file():
            report.add(Outcome.MISSING, path, n, f"A payload of entry {n} is missing: {digest}.")
        elif _file_digest(blob) != digest:
            report.add(Outcome.ALTERED, blob, n, f"A payload of entry {n} was altered: {digest}.")


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
