"""Which closed sessions the configured rules let go, and which are on hold. It removes nothing."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ..models import Hold, Session
from ..records import HoldSet, SessionRemoved, timestamp
from ..types import SessionId, Status, TargetKind, TokenId
from .ledger import all_ledger_entries


class RetentionRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of the trait `retention`. A session goes if all that a rule says is true of it."""

    days: Annotated[float, Meta(ge=0)] | None = None
    """It was closed at least so many days ago."""
    max_bytes: Annotated[int, Meta(ge=0)] | None = None
    """All sessions together are larger. Of those that the rule is about, the oldest of whoever has
    the most go first: of an agent token, or of a user without one."""
    target: tuple[TargetKind, ...] = ()
    """Its target is one of these; empty for any."""
    status: tuple[Status, ...] = ()
    """All of its executions have one of these statuses; empty for any."""

    @property
    def said(self) -> str:
        """The rule, for the record."""
        fields = msgspec.structs.asdict(self)
        conditions = {name: value for name, value in fields.items() if value not in (None, ())}
        return "retention: " + ", ".join(
            f"{name} {value if isinstance(value, int | float) else '/'.join(value)}"
            for name, value in conditions.items()
        )


def make_rules(configured: Iterable[dict[str, Any]]) -> list[RetentionRule]:
    """Return the rules of a configuration.

    Raises
    ------
    ValueError
        If it cannot be understood; the message names the field.
    """
    rules = []
    for index, each in enumerate(configured):
        try:
            rule = msgspec.convert(each, RetentionRule)
        except msgspec.ValidationError as error:
            why, _, path = str(error).partition(" - at `$")
            raise ValueError(f"retention[{index}]{path.rstrip('`')}: {why}.") from None
        if rule.days is None and rule.max_bytes is None:
            raise ValueError(f"retention[{index}]: give days or max_bytes.")
        rules.append(rule)
    return rules


class Kept(NamedTuple):
    """A session of the history."""

    session: Session
    bytes: int
    statuses: frozenset[str]
    """Those of its executions."""


class Due(NamedTuple):
    """A session that goes."""

    session: Session
    bytes: int
    reason: str


_Owner: TypeAlias = tuple[str, TokenId | None]


def due(
    rules: Sequence[RetentionRule], kept: Sequence[Kept], holds: Sequence[Hold], now: datetime
) -> list[Due]:
    """Return the sessions that go, the one first that was closed first; open ones never go."""
    may_go = [each for each in kept if each.session.closed_at and not held(each.session, holds)]
    may_go.sort(key=lambda each: each.session.closed_at or "")
    going: dict[SessionId, Due] = {}
    for rule in sorted(rules, key=lambda rule: rule.max_bytes is not None):
        about = [
            each for each in may_go if each.session.id not in going and _is_about(rule, each, now)
        ]
        if rule.max_bytes is not None:
            left = [each for each in kept if each.session.id not in going]
            about = _too_many(left, about, rule.max_bytes)
        going |= {each.session.id: Due(each.session, each.bytes, rule.said) for each in about}
    return sorted(going.values(), key=lambda each: each.session.closed_at or "")


def _is_about(rule: RetentionRule, kept: Kept, now: datetime) -> bool:
    session, days = kept.session, rule.days
    return (
        (days is None or (session.closed_at or "") <= timestamp(now - timedelta(days=days)))
        and (not rule.target or session.target.__struct_config__.tag in rule.target)
        and (not rule.status or kept.statuses <= set(rule.status))
    )


def _too_many(kept: Iterable[Kept], may_go: Iterable[Kept], max_bytes: int) -> list[Kept]:
    """Return what goes until the rest is no larger than `max_bytes`.

    Each goes from the owner who has the most then. Who has no more than an equal share loses
    nothing, however much another has, even if that is an open session, which cannot go.
    """
    sizes: Counter[_Owner] = Counter()
    for each in kept:
        sizes[_owner(each.session)] += each.bytes
    share = _equal_share(sizes.values(), max_bytes)
    oldest: defaultdict[_Owner, deque[Kept]] = defaultdict(deque)
    for each in may_go:
        oldest[_owner(each.session)].append(each)
    gone: list[Kept] = []
    while sizes.total() > max_bytes:
        over = [owner for owner, size in sizes.items() if size > share and oldest[owner]]
        if not over:
            break
        owner = max(over, key=sizes.__getitem__)
        gone.append(oldest[owner].popleft())
        sizes[owner] -= gone[-1].bytes
    return gone


def _owner(session: Session) -> _Owner:
    """Return whose record a session is: an agent token's, or a user's own."""
    return session.username, None if session.token is None else session.token.id


def _equal_share(sizes: Iterable[int], max_bytes: int) -> float:
    """Return how much each may have, if who needs less leaves the rest to the others."""
    ascending = sorted(sizes)
    for index, size in enumerate(ascending):
        share = max_bytes / (len(ascending) - index)
        if size > share:
            return share
        max_bytes -= size
    return math.inf


def held(session: Session, holds: Iterable[Hold]) -> bool:
    """Return whether a session is on hold."""
    return any(
        hold.session_id == session.id
        or hold.agent == session.agent.name
        or hold.username == session.username
        for hold in holds
    )


def holds_in(folder: Path) -> list[Hold]:
    """Return what is on hold, by the last entry of any ledger about each.

    Raises
    ------
    OSError
        If a ledger cannot be read.
    """
    entries = [entry for entry in all_ledger_entries(folder) if isinstance(entry, HoldSet)]
    last = {
        (entry.session_id, entry.agent, entry.username): entry
        for entry in sorted(entries, key=lambda entry: entry.at)
    }
    return [
        Hold(
            session_id=entry.session_id,
            agent=entry.agent,
            username=entry.username,
            at=entry.at,
            by=entry.by.named,
            reason=entry.reason,
        )
        for entry in last.values()
        if entry.held
    ]


def removed_in(folder: Path) -> set[SessionId]:
    """Return the sessions that ledgers list as removed; OSError if one cannot be read."""
    entries = all_ledger_entries(folder)
    return {entry.session_id for entry in entries if isinstance(entry, SessionRemoved)}


def size_of(folder: Path) -> int:
    """Return the bytes of the files below a folder that are still there when they are looked at."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
