"""Checks ledgers, and compares them with the tokens and the policy beside them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..text.counts import counted
from .chain import GENESIS
from .checked_chains import Checked, check_chain
from .findings import At, Outcome, Report, differing, shown, who


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """Where a closed session's journal ends, or ended before it was amended, as in a ledger."""

    head: str
    length: int


@dataclass(kw_only=True, slots=True)
class Listed:
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


_SESSION = re.compile(r"s_\w{1,64}", re.ASCII)


def read_ledgers(folder: Path, report: Report) -> Listed:
    """Check all ledgers of a history, or of a copy, and return what they list."""
    listed = Listed()
    copies = (path for path in folder.glob("ledger-*") if path.is_dir())
    for path in sorted([*folder.glob("ledger-*.jsonl"), *copies]):
        ledger = check_ledger(path, report)
        listed.hashes.update(ledger.hashes)
        for n, entry in enumerate(ledger.entries):
            if not _list_entry(entry, At(path, n), listed):
                message = f"What entry {n} says cannot be understood."
                report.add(Outcome.ALTERED, path, n, message)
    for path in sorted(folder.glob("ledger-*.head")):
        if not path.with_suffix(".jsonl").is_file():
            report.add(Outcome.MISSING, path, None, "The ledger of this head is gone.")
    return listed


def check_ledger(path: Path, report: Report) -> Checked:
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


def _list_entry(entry: dict[str, Any], at: At, listed: Listed) -> bool:
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


def end_in(chain: object) -> End | None:
    """Return the end of a chain according to an entry; None if the values are not valid."""
    if not isinstance(chain, dict):
        return None
    head, length = chain.get("head"), chain.get("length")
    if not isinstance(head, str) or not isinstance(length, int) or length < 1:
        return None
    return End(head=head, length=length)


def read_json(path: Path, report: Report) -> Any:
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


def compare_tokens(path: Path, kept: Any, listed: Listed, report: Report) -> None:
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


def compare_policy(path: Path, kept: Any, listed: Listed, report: Report) -> None:
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
