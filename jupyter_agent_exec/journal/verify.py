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

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..text.counts import counted
from .checked_chains import Checked, check_chain, known_head, may_follow_end
from .checked_ledgers import (
    End,
    Listed,
    check_ledger,
    compare_policy,
    compare_tokens,
    end_in,
    read_json,
    read_ledgers,
)
from .findings import LetGo, Outcome, Report
from .heads import chain_name, journal_in


@dataclass(frozen=True, kw_only=True, slots=True)
class _Unsaid:
    """A journal's content that was missing in the ledgers, which were read earlier."""

    session_id: str
    path: Path
    length: int
    """How many of the journal's entries a ledger should cover; 0 if it should list the session."""
    message: str


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
    tokens = read_json(folder / "tokens.json", report)
    policy = read_json(folder / "approval-policy.json", report)
    on_disk = journals_of(folder)
    listed = read_ledgers(folder, report)
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
        own = journal_in(folder, session_id)
        path = folder / session_id if is_copy else own
        if session_id in listed.removed:
            _add_removed(path, session_id, listed, report)
        elif not path.exists():  # otherwise the session was opened just now
            message = "A ledger lists this session; its journal is gone."
            report.add(Outcome.MISSING, path, None, message)
    _look_again(folder, unsaid, patience, report)
    compare_tokens(folder / "tokens.json", tokens, listed, report)
    compare_policy(folder / "approval-policy.json", policy, listed, report)
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
    listed = read_ledgers(folder, report)
    path = journal_in(folder, session_id)
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
    known_head(checked, path, head, report)
    return report


def _add_removed(path: Path, session_id: str, listed: Listed, report: Report) -> None:
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
        checked = check_ledger(path, report)
    else:
        checked = check_chain(path, report)
    known_head(checked, path, head, report)
    return report


def _compare_session(
    path: Path, session_id: str, checked: Checked, listed: Listed, report: Report
) -> list[_Unsaid]:
    """Compare a journal with the ledgers; return what they do not list."""
    entries = checked.entries
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
    if not all(map(may_follow_end, entries[end.length :])):
        report.add(Outcome.ALTERED, path, end.length, "It continues after its end in the ledger.")
    elif len(entries) > end.length:
        message = f"It continues after entry {end.length - 1}, which is not in any ledger."
        return [_Unsaid(session_id=session_id, path=path, length=len(entries), message=message)]
    return []


def _compare_opened(
    path: Path, opened: dict[str, Any], session_id: str, listed: Listed, report: Report
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
        now = read_ledgers(folder, Report())
        unsaid = [each for each in unsaid if not _is_said(each, now)]
        if time.monotonic() >= until:
            break
        time.sleep(min(patience, 0.02))
    for each in unsaid:
        report.add(Outcome.MISSING, each.path, each.length or None, each.message)


def _is_said(unsaid: _Unsaid, listed: Listed) -> bool:
    """Return whether ledgers list now what they lacked."""
    end = listed.end(unsaid.session_id)
    return unsaid.session_id in listed.ends and (end.length if end else 0) >= unsaid.length
