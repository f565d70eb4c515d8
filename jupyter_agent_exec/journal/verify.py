"""Check whether a history is as it was written. The check is independent of the writer.

It shares with the writer only definitions: of a line (`chain`), of what each kind of entry names
(`records`), and the name of a file (`heads`). It only reads, and a live server may keep writing
meanwhile. Whatever the files contain, it ends with a report.

A ledger is compared with the file beside it that holds its head, with the journals, with the tokens
and with the policy that people set. So a ledger that was cut at a line is detected. Two things
cannot be detected from the files alone: that the end of an open session's journal was cut off, and
that somebody rewrote everything. A head that was kept elsewhere (each answer carries one) detects
both: pass it as `head`.

A folder that a sink wrote is read like a history's own. It has a folder for each chain, with files
of some lines each, and often lacks payloads, which were not sent.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import json
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..models import marked
from ..records import KINDS, JournalEntry, Mark, payload_fields
from ..text.counts import counted
from .chain import FORMAT, GENESIS, ParsedLine, link, parse_line
from .heads import chain_name, signatures_path


class Outcome(enum.IntEnum):
    """The result of a check. The number is the command line's exit code (2 means wrong usage)."""

    WHOLE = 0
    """Every line is as it was written, and every payload exists."""
    ALTERED = 1
    """A line or a payload is not as it was written."""
    TRUNCATED = 3
    """The chain is consistent but ends before a known head."""
    TORN = 4
    """The last line is incomplete: a server died while writing it, before reporting it."""
    MISSING = 5
    """A session's journal, its mention in a ledger, or a payload is missing."""


_GRAVITY = (Outcome.ALTERED, Outcome.TRUNCATED, Outcome.MISSING, Outcome.TORN, Outcome.WHOLE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One problem."""

    outcome: Outcome
    path: Path
    """The file that has the problem."""
    n: int | None
    """The number of the entry that has the problem, from 0; None if it concerns the whole file."""
    message: str
    """One sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadChain:
    """A chain that was read, as far as signatures speak of it."""

    name: str
    """The id of the session, or the name of the ledger, as its first entry says."""
    hashes: bytes
    """32 bytes of each entry: a history has millions of them. Zeros for one that is no entry."""
    times: bytes
    """24 bytes of each entry, compressed: when it was written, as it says."""
    ledger: list[dict[str, Any]]
    """The entries of a ledger; empty for a session."""
    signatures: bytes | None
    """The file with its signatures, read before the chain, which a live server may sign again."""

    def __len__(self) -> int:
        return len(self.hashes) // _HASH_BYTES

    def hash(self, n: int) -> str:
        """Return the hash of an entry; empty if there is no such entry."""
        return self.hashes[n * _HASH_BYTES : (n + 1) * _HASH_BYTES].hex() if n >= 0 else ""

    def time(self, n: int) -> str:
        """Return when an entry was written; empty if there is no such entry."""
        told = zlib.decompress(self.times)[n * _TIME_BYTES : (n + 1) * _TIME_BYTES]
        return told.decode("utf-8", "replace").rstrip()


class At(NamedTuple):
    """An entry."""

    path: Path
    n: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LetGo:
    """Something that is not there any more, because ledgers let it go."""

    path: Path
    """The journal that was removed, or from which something was erased."""
    n: int | None
    """The number of the entry that erases; None if the journal was removed."""
    said: list[At]
    """The entries of ledgers that say so."""


@dataclass(kw_only=True, slots=True)
class Report:
    """The result of a check."""

    findings: list[Finding] = field(default_factory=list)
    journals: int = 0
    """The number of chains checked, ledgers included."""
    entries: int = 0
    """The number of lines checked."""
    erased: list[str] = field(default_factory=list)
    """What users have erased, in sentences."""
    let_go: list[LetGo] = field(default_factory=list)
    """The same, as far as signatures speak of it."""
    unchecked: list[str] = field(default_factory=list)
    """What could not be checked."""
    chains: dict[Path, ReadChain] = field(default_factory=dict)
    """The chains that were read, by their files."""

    @property
    def outcome(self) -> Outcome:
        """The most serious of the findings."""
        outcomes = {finding.outcome for finding in self.findings}
        return next((outcome for outcome in _GRAVITY if outcome in outcomes), Outcome.WHOLE)

    def add(self, outcome: Outcome, path: Path, n: int | None, message: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(outcome=outcome, path=path, n=n, message=message))


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """Where a closed session's journal ends, or ended before it was amended, as in a ledger."""

    head: str
    length: int


@dataclass(kw_only=True, slots=True)
class _Listed:
    """What all ledgers of a history list."""

    ends: dict[str, dict[End, list[At]]] = field(default_factory=dict)
    """The ends of all sessions, each with the entries that list it; none for an open session."""
    hashes: set[str] = field(default_factory=lambda: {GENESIS})
    minted: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The entries that minted agent tokens, by token id."""
    renewed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The last entry of each token about a new secret."""
    extended: dict[str, list[Any]] = field(default_factory=dict)
    """The scopes that each token got after it was minted."""
    revoked: set[str] = field(default_factory=set)
    policies: list[dict[str, Any]] = field(default_factory=list)
    removed: dict[str, tuple[str, list[At]]] = field(default_factory=dict)
    """Who removed which session's journal, when and why, in a sentence, and the entries that say
    so."""

    def end(self, session_id: str) -> End | None:
        """Return the last end of a session; None if there is none."""
        return max(self.ends.get(session_id, ()), key=lambda end: end.length, default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Unsaid:
    """A journal's content that was missing in the ledgers, which were read earlier."""

    session_id: str
    path: Path
    length: int
    """How many of the journal's entries a ledger should cover; 0 if it should list the session."""
    message: str


@dataclass(kw_only=True, slots=True)
class Checked:
    """The contents of a chain that was read."""

    lines: list[ParsedLine] = field(default_factory=list)
    """Only their hashes and entries."""
    hashes: list[str] = field(default_factory=list)
    missing: list[tuple[int, str]] = field(default_factory=list)
    """The numbers of entries, and the names of their payloads that are not there."""


def verify_history(
    folder: Path,
    *,
    head: str | None = None,
    patience: float = 0.0,
    progress: Callable[[int], object] = lambda more: None,
) -> Report:
    """Check everything in a history's folder.

    Parameters
    ----------
    folder
        The folder with the ledgers and `sessions`, or one that a sink wrote.
    head
        The head of one of its chains, kept elsewhere.
    patience
        Seconds to wait for a live server to write its ledger. It writes journals first.
    progress
        Called with the number of sessions each time that some were checked; `journals_of` has all.
    """
    report = Report()
    tokens = _read_json(folder / "tokens.json", report)
    policy = _read_json(folder / "approval-policy.json", report)
    on_disk = journals_of(folder)
    listed = _read_ledgers(folder, report)
    is_known = head is None or head in listed.hashes
    unsaid: list[_Unsaid] = []
    for path in on_disk:
        checked = check_chain(path, report)
        is_known = is_known or head in checked.hashes
        unsaid += _compare_session(path, chain_name(path), checked, listed, report)
        progress(1)
    present = {chain_name(path) for path in on_disk}
    is_copy = not any(folder.glob("ledger-*.jsonl"))
    for session_id in listed.ends.keys() - present:
        own = folder / "sessions" / session_id / "journal.jsonl"
        path = folder / session_id if is_copy else own
        if session_id in listed.removed:
            _add_removed(path, session_id, listed, report)
        elif not path.exists():  # otherwise the session was opened just now
            message = "A ledger lists this session; its journal is gone."
            report.add(Outcome.MISSING, path, None, message)
    _look_again(folder, unsaid, patience, report)
    _compare_tokens(folder / "tokens.json", tokens, listed, report)
    _compare_policy(folder / "approval-policy.json", policy, listed, report)
    if not is_known:
        report.add(Outcome.TRUNCATED, folder, None, "The known head is in none of the chains.")
    return report


def journals_of(folder: Path) -> list[Path]:
    """Return the journals of a history's sessions in order, or the folders that a sink has."""
    return sorted([*folder.glob("sessions/*/journal.jsonl"), *folder.glob("s_*/")])


def verify_session(
    folder: Path, session_id: str, *, head: str | None = None, patience: float = 0.0
) -> Report:
    """Check one session of a history against the ledgers.

    Parameters
    ----------
    folder
        The history's folder.
    session_id
        The session.
    head
        A head of its journal that was kept elsewhere.
    patience
        As in `verify_history`.
    """
    report = Report()
    listed = _read_ledgers(folder, report)
    path = folder / "sessions" / session_id / "journal.jsonl"
    if not path.is_file() and session_id in listed.removed:
        _add_removed(path, session_id, listed, report)
        return report
    if not path.is_file():
        whose = "A ledger lists this session; its" if session_id in listed.ends else "Its"
        report.add(Outcome.MISSING, path, None, f"{whose} journal is not there.")
        return report
    checked = check_chain(path, report)
    unsaid = _compare_session(path, session_id, checked, listed, report)
    _look_again(folder, unsaid, patience, report)
    _known_head(checked, path, head, report)
    return report


def _add_removed(path: Path, session_id: str, listed: _Listed, report: Report) -> None:
    told, said = listed.removed[session_id]
    report.erased.append(f"{path}: {told}")
    report.let_go.append(LetGo(path=path, n=None, said=said))


def verify_journal(path: Path, *, head: str | None = None) -> Report:
    """Check one journal or ledger by itself, with the blobs beside it.

    Parameters
    ----------
    path
        The file.
    head
        One of its heads that was kept elsewhere.
    """
    report = Report()
    if path.match("ledger-*.jsonl"):
        checked = _check_ledger(path, report)
    else:
        checked = check_chain(path, report)
    _known_head(checked, path, head, report)
    return report


def check_chain(path: Path, report: Report) -> Checked:
    """Check a file's lines and payloads, add findings to `report`, and return its entries."""
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
                checked.lines.append(_UNREADABLE)
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
            checked.lines += [_UNREADABLE] * (n - expected)
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
        checked.lines.append(line._replace(canonical=b"", payloads={}, salts={}))
        checked.hashes.append(line.hash)
        previous, expected = {line.hash, *links}, expected + 1
    _check_formats(path, checked, report)
    report.chains[path] = _read_chain(checked, signatures)
    erased = _erased(path, checked, report)
    if is_copy:
        _check_rewinds(path, report)
        if checked.missing:
            report.unchecked.append(
                f"{path}: {counted(len(checked.missing), 'payload')} that are not here"
            )
        return checked
    for n, name in checked.missing:
        if not any(first <= n <= last for first, last in erased):
            report.add(Outcome.MISSING, path, n, f"A payload of entry {n} is missing: {name}.")
    return checked


def _check_formats(path: Path, checked: Checked, report: Report) -> None:
    """Add a finding if a chain has another format than the one that this version reads."""
    others = [
        n
        for n, line in enumerate(checked.lines)
        if line.entry and line.entry.get("format") != FORMAT
    ]
    if others:
        format = checked.lines[others[0]].entry.get("format", 1)
        message = (
            f"{len(others)} of its entries, from entry {others[0]} on, have a format that this "
            f"version does not read: {shown(format)}. It reads format {FORMAT} only."
        )
        report.add(Outcome.ALTERED, path, others[0], message)


def _read_chain(checked: Checked, signatures: bytes | None) -> ReadChain:
    entries = [line.entry for line in checked.lines]
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
    return str(entry.get("at", "")).encode("utf-8", "replace")[:_TIME_BYTES].ljust(_TIME_BYTES)


def _erased(path: Path, checked: Checked, report: Report) -> list[tuple[int, int]]:
    """Return the runs of entries whose payloads were erased, and say so in the report."""
    erased: list[tuple[int, int]] = []
    for n, line in enumerate(checked.lines):
        entry = line.entry
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


_UNREADABLE = ParsedLine("", b"", {}, {}, {})
_HASH_BYTES = 32
_TIME_BYTES = 24

_DIGEST = re.compile("[0-9a-f]{64}")
_SALT = re.compile("[0-9a-f]{32}")
_SESSION = re.compile(r"s_\w{1,64}", re.ASCII)


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


def _may_follow_end(entry: dict[str, Any]) -> bool:
    return _kind(entry).follows_end or entry.get("type") in _AMENDMENTS_OF_0_1


def _compare_session(
    path: Path, session_id: str, checked: Checked, listed: _Listed, report: Report
) -> list[_Unsaid]:
    """Compare a journal with the ledgers; return what they do not list."""
    entries = [line.entry for line in checked.lines]
    if entries and entries[0]:
        _compare_opened(path, entries[0], session_id, listed, report)
    if entries and session_id not in listed.ends:
        message = "No ledger lists this session."
        return [_Unsaid(session_id=session_id, path=path, length=0, message=message)]
    end, ends = listed.end(session_id), listed.ends.get(session_id, {})
    if end is None:
        closed = [n for n, entry in enumerate(entries, 1) if entry.get("type") == "closed"]
        message = "Its session was closed; no ledger says so."
        return [
            _Unsaid(session_id=session_id, path=path, length=length, message=message)
            for length in closed[:1]
        ]
    if len(checked.hashes) < end.length:
        report.add(
            Outcome.TRUNCATED,
            path,
            len(checked.hashes),
            f"The ledger says that it has {counted(end.length, 'entry')}; it has "
            f"{len(checked.hashes)}.",
        )
        return []
    for each in ends:
        if checked.hashes[each.length - 1] != each.head:
            message = "It does not end as the ledger says it does."
            report.add(Outcome.ALTERED, path, each.length - 1, message)
            return []
    for n, entry in enumerate(entries[: end.length]):
        if entry.get("type") == "erased":
            said = ends.get(End(head=checked.hashes[n], length=n + 1), [])
            report.let_go.append(LetGo(path=path, n=n, said=said))
    if not all(map(_may_follow_end, entries[end.length :])):
        report.add(Outcome.ALTERED, path, end.length, "It continues after its end in the ledger.")
    elif len(entries) > end.length:
        message = f"It continues after entry {end.length - 1}, which is not in any ledger."
        return [_Unsaid(session_id=session_id, path=path, length=len(entries), message=message)]
    return []


def _compare_opened(
    path: Path, opened: dict[str, Any], session_id: str, listed: _Listed, report: Report
) -> None:
    """Compare a journal's first entry with earlier entries that the ledgers must have."""
    if opened.get("session_id") != session_id:
        report.add(Outcome.ALTERED, path, 0, "This is the journal of another session.")
    before, token = opened.get("ledger"), opened.get("token")
    if before is not None:
        end = end_in(before)
        if end is None:
            report.add(Outcome.ALTERED, path, 0, "What it says of its ledger cannot be.")
        elif end.head not in listed.hashes:
            message = f"No ledger has the entry {end.length - 1} after which it was opened."
            report.add(Outcome.TRUNCATED, path, 0, message)
    if token is not None:
        id = token.get("id") if isinstance(token, dict) else None
        if not isinstance(id, str) or id not in listed.minted:
            message = "It was opened with an agent token that no ledger minted."
            report.add(Outcome.MISSING, path, 0, message)


def _look_again(folder: Path, unsaid: list[_Unsaid], patience: float, report: Report) -> None:
    """Add what the ledgers still do not list: a live server writes them after the journals."""
    until = time.monotonic() + patience
    while unsaid:
        now = _read_ledgers(folder, Report())
        unsaid = [each for each in unsaid if not _is_said(each, now)]
        if time.monotonic() >= until:
            break
        time.sleep(min(patience, 0.02))
    for each in unsaid:
        report.add(Outcome.MISSING, each.path, each.length or None, each.message)


def _is_said(unsaid: _Unsaid, listed: _Listed) -> bool:
    """Return whether ledgers list now what they lacked."""
    end = listed.end(unsaid.session_id)
    return unsaid.session_id in listed.ends and (end.length if end else 0) >= unsaid.length


def _known_head(checked: Checked, path: Path, head: str | None, report: Report) -> None:
    if head is not None and head not in (GENESIS, *checked.hashes):
        report.add(
            Outcome.TRUNCATED, path, len(checked.hashes), "It ends before the head that is known."
        )


def _read_ledgers(folder: Path, report: Report) -> _Listed:
    listed = _Listed()
    copies = (path for path in folder.glob("ledger-*") if path.is_dir())
    for path in sorted([*folder.glob("ledger-*.jsonl"), *copies]):
        ledger = _check_ledger(path, report)
        listed.hashes.update(ledger.hashes)
        for n, line in enumerate(ledger.lines):
            if not _list_entry(line.entry, At(path, n), listed):
                message = f"What entry {n} says cannot be understood."
                report.add(Outcome.ALTERED, path, n, message)
    for path in sorted(folder.glob("ledger-*.head")):
        if not path.with_suffix(".jsonl").is_file():
            report.add(Outcome.MISSING, path, None, "The ledger of this head is gone.")
    return listed


def _check_ledger(path: Path, report: Report) -> Checked:
    """Check a ledger, and that it reaches the head in the file beside it."""
    beside = path.with_suffix(".head")
    try:
        kept = beside.read_text("ascii")  # read first: the ledger may grow meanwhile
    except FileNotFoundError:
        kept = None  # it could not be written
    except ValueError:
        kept = ""
    ledger = check_chain(path, report)
    if kept is None:
        return ledger
    if not re.fullmatch("[0-9a-f]{64}\n", kept):
        report.add(Outcome.ALTERED, beside, None, "It does not hold a head.")
    elif kept.strip() not in ledger.hashes:
        report.add(
            Outcome.TRUNCATED,
            path,
            len(ledger.hashes),
            f"It ends before the head that {beside.name} holds.",
        )
    return ledger


def _list_entry(entry: dict[str, Any], at: At, listed: _Listed) -> bool:
    """Add what a ledger's entry says to `listed`; return False if it cannot be understood."""
    kind, session_id, token_id = (entry.get(name) for name in ("type", "session_id", "token_id"))
    if kind in ("session_opened", "session_closed", "session_amended", "session_removed"):
        if not isinstance(session_id, str) or not _SESSION.fullmatch(session_id):
            return False
        ends = listed.ends.setdefault(session_id, {})
        if kind != "session_opened":
            end = end_in(entry.get("chain"))
            if end is None:
                return False
            ends.setdefault(end, []).append(at)
            if kind == "session_removed":
                _, said = listed.removed.get(session_id, ("", []))
                listed.removed[session_id] = (_removal(entry, end), [*said, at])
    elif kind in ("token_minted", "token_renewed", "token_extended", "token_revoked"):
        if not isinstance(token_id, str):
            return False
        if kind == "token_minted":
            listed.minted[token_id] = entry
        elif kind == "token_renewed":
            earlier = listed.renewed.get(token_id, {})
            if str(earlier.get("at", "")) <= str(entry.get("at", "")):
                listed.renewed[token_id] = entry
        elif kind == "token_extended":
            scopes = entry.get("scopes")
            if not isinstance(scopes, list):
                return False
            listed.extended.setdefault(token_id, []).extend(scopes)
        else:
            listed.revoked.add(token_id)
    elif kind == "policy_set":
        policy = entry.get("policy")
        if not isinstance(policy, dict):
            return False
        listed.policies.append({**policy, "allow": entry.get("allow")})
    return True


def _removal(entry: dict[str, Any], end: End) -> str:
    return (
        f"{who(entry)} removed its {counted(end.length, 'entry')} up to "
        f"{shown(end.head)} at {shown(entry.get('at'))}: {shown(entry.get('reason'))}"
    )


def who(entry: dict[str, Any]) -> str:
    """Return who wrote an entry, as it says."""
    by = entry.get("by")
    name = by.get("display_name") or by.get("username") if isinstance(by, dict) else None
    return shown(name or "the server")


def end_in(chain: object) -> End | None:
    """Return the end of a chain according to an entry; None if the values are not valid."""
    if not isinstance(chain, dict):
        return None
    head, length = chain.get("head"), chain.get("length")
    if not isinstance(head, str) or not isinstance(length, int) or length < 1:
        return None
    return End(head=head, length=length)


def _read_json(path: Path, report: Report) -> Any:
    """Return a file's JSON, or None. Add a finding if the file exists but has no JSON."""
    value = None
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        pass
    if value is None:
        report.add(Outcome.ALTERED, path, None, "It holds no JSON that says something.")
    return value


def _compare_tokens(path: Path, kept: Any, listed: _Listed, report: Report) -> None:
    """Compare the file of agent tokens with the tokens that ledgers minted and revoked."""
    if kept is None:
        return
    tokens = kept.get("tokens") if isinstance(kept, dict) else None
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        report.add(Outcome.ALTERED, path, None, "It is not a list of agent tokens.")
        return
    for token in tokens:
        id = token.get("id")
        minted = listed.minted.get(id) if isinstance(id, str) else None
        if minted is None:
            message = f"No ledger minted the agent token {shown(id)}."
            report.add(Outcome.MISSING, path, None, message)
            continue
        renewed = listed.renewed.get(str(id), {})
        secret = {name: renewed[name] for name in _OF_SECRET if name in renewed}
        expected = _minted(minted | secret)
        has, more = token.get("scopes"), listed.extended.get(str(id))
        if more is not None and _is_extended(has, expected["scopes"], more):
            expected["scopes"] = has
        differ = differing(token, expected, ignored=("last_used_at", "revoked_at"))
        if differ:
            message = f"Agent token {id} is not as it was minted: {', '.join(differ)}."
            report.add(Outcome.ALTERED, path, None, message)
        if token.get("revoked_at") is None and id in listed.revoked:
            message = f"Agent token {id} was revoked; the file does not say so."
            report.add(Outcome.ALTERED, path, None, message)
        elif token.get("revoked_at") is not None and id not in listed.revoked:
            message = f"Agent token {id} was revoked; no ledger says so."
            report.add(Outcome.MISSING, path, None, message)


def _is_extended(scopes: Any, minted: Any, more: list[Any]) -> bool:
    """Return whether a token has the scopes with which it was minted, and else only later ones.

    Several ledgers have no common order, and the file may lack the last ones.
    """
    return (
        isinstance(scopes, list)
        and isinstance(minted, list)
        and all(scope in scopes for scope in minted)
        and all(scope in minted or scope in more for scope in scopes)
    )


_OF_SECRET = ("secret_sha256", "secret_expires_at")
_AS_MINTED = ("label", "scopes", "approval", "edits", "caps", "expires_at", *_OF_SECRET)


def _minted(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a token as a ledger recorded it when it was minted."""
    by = entry.get("by")
    by = by if isinstance(by, dict) else {}
    return {
        **{name: entry.get(name) for name in _AS_MINTED},
        "id": entry.get("token_id"),
        "created_at": entry.get("at"),
        "username": by.get("username"),
        "display_name": by.get("display_name"),
    }


def differing(
    actual: dict[str, Any], expected: dict[str, Any], *, ignored: Iterable[str] = ()
) -> list[str]:
    """Return the names of the fields that differ, sorted; null is the same as missing."""
    fields: list[str] = []
    for name in (actual.keys() | expected.keys()) - set(ignored):
        one, other = actual.get(name), expected.get(name)
        if not _same(one, other):
            how = " (added)" if other is None else " (missing)" if one is None else ""
            fields.append(f"{shown(name)}{how}")
    return sorted(fields)


def _same(actual: Any, expected: Any) -> bool:
    """Return whether two values are equal, apart from empty parts."""
    try:
        return bool(_plain(actual) == _plain(expected))
    except RecursionError:  # no writer nests values this deeply
        return False


def _plain(value: Any) -> Any:
    """Return a value without its empty parts, which some versions may not have written."""
    if isinstance(value, dict):
        named = {name: _plain(item) for name, item in value.items()}
        return {name: item for name, item in named.items() if item or isinstance(item, str)} or None
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def shown(value: Any) -> str:
    """Return a value from a file, in a form that is safe in a message."""
    text = value if isinstance(value, str) and value.isprintable() else ascii(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _compare_policy(path: Path, kept: Any, listed: _Listed, report: Report) -> None:
    """Compare the stored policy with the policies that people set, as listed in the ledgers."""
    if kept is None:
        return
    if not isinstance(kept, dict):
        report.add(Outcome.ALTERED, path, None, "It is not a policy.")
        return
    for kind, mode in kept.items():
        if not any(policy.get(kind) == mode for policy in listed.policies):
            message = f"No ledger says that somebody set {shown(kind)} to {shown(mode)}."
            report.add(Outcome.MISSING, path, None, message)


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
