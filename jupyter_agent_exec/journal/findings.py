"""What a check of a history finds: its report, and the words for what differs."""

from __future__ import annotations

import enum
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


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
        told = zlib.decompress(self.times)[n * TIME_BYTES : (n + 1) * TIME_BYTES]
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


_HASH_BYTES = 32

TIME_BYTES = 24


def who(entry: dict[str, Any]) -> str:
    """Return who wrote an entry, as it says."""
    by = entry.get("by")
    name = by.get("display_name") or by.get("username") if isinstance(by, dict) else None
    return shown(name or "the server")


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
