"""Checks one chain of entries, and its payloads, line by line."""

from __future__ import annotations

import hashlib
import hmac
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..models import marked
from ..records import KINDS, JournalEntry, Mark, payload_fields
from ..text.counts import counted
from .chain import FORMAT, GENESIS, ParsedLine, link, parse_line
from .findings import TIME_BYTES, Outcome, ReadChain, Report, shown, who
from .heads import signatures_path


@dataclass(kw_only=True, slots=True)
class Checked:
    """The contents of a chain that was read."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    """Empty for a line that cannot be read."""
    hashes: list[str] = field(default_factory=list)
    missing: list[tuple[int, str]] = field(default_factory=list)
    """The numbers of entries, and the names of their payloads that are not there."""


def check_chain(path: Path, report: Report, *, whole: bool = False) -> Checked:
    """Check a file's lines and payloads, add findings to `report`, and return its entries.

    Unless `whole`, most of a session's entries are returned without what only its cells need.
    """
    checked = Checked()
    try:
        signatures = signatures_path(path).read_bytes()
    except FileNotFoundError:
        signatures = None
    report.journals += 1
    previous, expected = {GENESIS}, 0  # the hashes that the next line may follow
    blobs: set[str] = set()
    is_copy = path.is_dir()
    for data, last in _sent_lines(path) if is_copy else _lines(path):
        try:
            line = parse_line(data)
            if not data.endswith(b"\n"):
                raise ValueError("the line has no end")
        except ValueError as error:
            outcome = Outcome.TORN if last else Outcome.ALTERED
            report.add(outcome, path, expected, f"Entry {expected} cannot be read: {error}.")
            if outcome is Outcome.ALTERED:  # the next lines keep their numbers
                checked.entries.append({})
                checked.hashes.append("")
            previous, expected = set(), expected + 1
            continue
        report.entries += 1
        n = line.entry.get("n")
        if is_copy and isinstance(n, int) and n < expected:
            report.add(Outcome.ALTERED, path, n, f"Entry {n} is here in two versions.")
            continue
        if is_copy and isinstance(n, int) and n > expected:
            message = f"Entries {expected} to {n - 1} have not arrived."
            report.add(Outcome.MISSING, path, expected, message)
            checked.entries += [{}] * (n - expected)
            checked.hashes += [""] * (n - expected)
            previous, expected = set(), n
        if n != expected:
            report.add(
                Outcome.ALTERED,
                path,
                expected,
                f"Entry {shown(n)} stands where entry {expected} belongs.",
            )
        links = {link(before, line.canonical) for before in previous}
        if n == expected and previous and line.hash not in links:
            report.add(
                Outcome.ALTERED, path, expected, f"Entry {expected} or its hash was altered."
            )
        if line.entry.get("format") == FORMAT:
            _check_payloads(path, expected, line, blobs, checked.missing, report)
        checked.entries.append(line.entry if whole else _kept(line.entry))
        checked.hashes.append(line.hash)
        previous, expected = {line.hash, *links}, expected + 1
    _check_formats(path, checked, report)
    report.chains[path] = _read_chain(checked, signatures)
    erased = _erased(path, checked, report)
    if not is_copy:
        _report_missing(path, checked, erased, report)
        return checked
    _check_rewinds(path, report)
    if checked.missing:
        amount = counted(len(checked.missing), "payload")
        report.unchecked.append(f"{path}: {amount} that are not here")
    return checked


def _report_missing(
    path: Path, checked: Checked, erased: Iterable[tuple[int, int]], report: Report
) -> None:
    """Add a finding for each payload that is not there and was not erased."""
    for n, name in checked.missing:
        if not any(first <= n <= last for first, last in erased):
            report.add(Outcome.MISSING, path, n, f"A payload of entry {n} is missing: {name}.")


def _check_formats(path: Path, checked: Checked, report: Report) -> None:
    """Add a finding if a chain has another format than the one that this version reads."""
    others = [
        n for n, entry in enumerate(checked.entries) if entry and entry.get("format") != FORMAT
    ]
    if others:
        format = checked.entries[others[0]].get("format", 1)
        message = (
            f"{len(others)} of its entries, from entry {others[0]} on, have a format that this "
            f"version does not read: {shown(format)}. It reads format {FORMAT} only."
        )
        report.add(Outcome.ALTERED, path, others[0], message)


def _kept(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry; of one about an execution, only what is read of it after its check."""
    if "execution_id" not in entry:
        return entry
    return {name: entry[name] for name in ("type", "format", "at") if name in entry}


def _read_chain(checked: Checked, signatures: bytes | None) -> ReadChain:
    entries = checked.entries
    first = entries[0] if entries else {}
    is_ledger = first.get("type") == "ledger_opened"
    return ReadChain(
        name=f"ledger-{first.get('instance')}" if is_ledger else str(first.get("session_id")),
        hashes=bytes.fromhex("".join(each or GENESIS for each in checked.hashes)),
        times=zlib.compress(b"".join(map(_time, entries)), 1),
        ledger=entries if is_ledger else [],
        signatures=signatures,
    )


def _time(entry: dict[str, Any]) -> bytes:
    return str(entry.get("at", "")).encode("utf-8", "replace")[:TIME_BYTES].ljust(TIME_BYTES)


def _erased(path: Path, checked: Checked, report: Report) -> list[tuple[int, int]]:
    """Return the runs of entries whose payloads were erased, and say so in the report."""
    erased: list[tuple[int, int]] = []
    for n, entry in enumerate(checked.entries):
        if entry.get("type") != "erased":
            continue
        try:
            erased += [(int(first), int(last)) for first, last in entry["entries"] if last < n]
            amount = counted(int(entry["payloads"]), "payload")
            amount += f" ({counted(int(entry['bytes']), 'byte')})"
            reason = entry.get("reason")
            why = f": {shown(reason)}" if reason else ""
            report.erased.append(f"{path}: {who(entry)} erased {amount} at {entry['at']}{why}")
        except (KeyError, TypeError, ValueError, AttributeError):
            report.add(Outcome.ALTERED, path, n, f"What entry {n} says cannot be understood.")
    return erased


_DIGEST = re.compile("[0-9a-f]{64}")

_SALT = re.compile("[0-9a-f]{32}")


def _named_payloads(entry: dict[str, Any]) -> list[str]:
    """Return the names of the payloads of an entry.

    Raises
    ------
    ValueError
        If one of them cannot be a name.
    """
    fields = (*payload_fields(_kind(entry)), *_FIELDS_OF_0_1.get(str(entry.get("type")), ()))
    names = [entry[name] for name in fields if entry.get(name) is not None]
    blobs = entry.get("blobs", [])
    if not isinstance(blobs, list):
        raise ValueError("its blobs are not a list")
    names += [blob.get("sha256") if isinstance(blob, dict) else None for blob in blobs]
    for name in names:
        if not isinstance(name, str) or not _DIGEST.fullmatch(name):
            raise ValueError("it names a payload by something that is not a name")
    return names


_FIELDS_OF_0_1 = {
    "cell_discarded": ("cell",),
    "cell_rerun": ("differences",),
    "files_changed": ("files",),
    "kernel_inspected": ("code",),
    "person_ran": ("expressions",),
    "restore_ended": ("variables",),
}
"""Fields that name payloads, of those that only 0.1 wrote."""

_KINDS = {name: kind for name, kind in KINDS.items() if issubclass(kind, JournalEntry)}

_AMENDMENTS_OF_0_1 = ("outputs_discarded", "outputs_restored", "cell_discarded", "cell_restored")


def _kind(entry: dict[str, Any]) -> type[JournalEntry]:
    """Return the kind of a journal's entry; their base for one that is not known."""
    return _KINDS.get(str(entry.get("type")), JournalEntry)


def may_follow_end(entry: dict[str, Any]) -> bool:
    """Return whether an entry may come after the one that closes its session."""
    return _kind(entry).follows_end or entry.get("type") in _AMENDMENTS_OF_0_1


def known_head(checked: Checked, path: Path, head: str | None, report: Report) -> None:
    """Report if a chain has not come to a head that is known from elsewhere."""
    if head is not None and head not in (GENESIS, *checked.hashes):
        report.add(
            Outcome.TRUNCATED, path, len(checked.hashes), "It ends before the head that is known."
        )


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Yield a file's lines, each with whether it is the last."""
    with path.open("rb") as file:
        before = file.readline()
        while before:
            data = file.readline()
            yield before, not data
            before = data


def _sent_lines(folder: Path) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of a chain that a sink got, as `_lines` does.

    The files are named by their first entries. A line that was sent again is in two of them.
    """
    seen: set[bytes] = set()
    for path in sorted(folder.glob("*.jsonl")):
        for data, _ in _lines(path):
            try:
                line = parse_line(data)
            except ValueError:
                yield data, False  # which is reported
                continue
            entry = hashlib.sha256(line.hash.encode("ascii") + line.canonical).digest()
            if entry not in seen:
                seen.add(entry)
                yield data, False


def _check_rewinds(folder: Path, report: Report) -> None:
    """Report each time that a journal lacked what had been sent of it, and was sent again."""
    for path in sorted(folder.glob("rewind-*.json")):
        message = "On its server, the journal lost what had been sent of it, or was replaced."
        report.add(Outcome.TRUNCATED, path, None, message)


def _check_payloads(
    path: Path,
    n: int,
    line: ParsedLine,
    checked: set[str],
    missing: list[tuple[int, str]],
    report: Report,
) -> None:
    """Check the payloads of an entry; add those that are not there to `missing`."""
    try:
        named = _named_payloads(line.entry)
    except ValueError as error:
        report.add(Outcome.ALTERED, path, n, f"Entry {n} cannot be understood: {error}.")
        return
    if line.payloads.keys() - set(named):
        report.add(Outcome.ALTERED, path, n, f"Entry {n} has a payload that it does not name.")
    unkept = [line.entry.get(field) for field in marked(_kind(line.entry), Mark.UNKEPT)]
    if not all(name in named or name in unkept for name in line.salts):
        report.add(Outcome.ALTERED, path, n, f"Entry {n} has a salt that it does not name.")
    for name in named:
        text = line.payloads.get(name)
        chunks: Iterable[bytes]
        if text is not None:
            place, chunks = path, [text.encode("utf-8", "surrogatepass")]
        elif name in checked:
            continue
        else:
            place = (path if path.is_dir() else path.parent) / "blobs" / name
            if not place.is_file():
                missing.append((n, name))
                continue
            checked.add(name)
            chunks = _chunks(place)
        if not _is_named(name, chunks, line.salts.get(name)):
            report.add(Outcome.ALTERED, place, n, f"A payload of entry {n} was altered: {name}.")


def _is_named(name: str, chunks: Iterable[bytes], salt: str | None) -> bool:
    """Return whether this is the name of these bytes, with their salt."""
    if salt is None or not _SALT.fullmatch(salt):
        return False
    digest = hmac.new(salt.encode("ascii"), digestmod="sha256")
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest() == name


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk
