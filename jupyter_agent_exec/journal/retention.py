"""Which closed sessions the configured rules let go. It removes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from ..models import Session
from ..records import SessionRemoved, timestamp
from ..types import SessionId, Status, TargetKind
from .ledger import all_ledger_entries


class RetentionRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of the trait `retention`. A session goes if all that a rule says is true of it."""

    days: Annotated[float, Meta(ge=0, le=36_500)]
    """It was closed at least so many days ago."""
    target: tuple[TargetKind, ...] = ()
    """Its target is one of these; empty for any."""
    status: tuple[Status, ...] = ()
    """All of its executions have one of these statuses; empty for any."""

    @property
    def said(self) -> str:
        """The rule, for the record."""
        conditions = [f"days {self.days:g}"]
        conditions += [
            f"{name} {'/'.join(values)}"
            for name, values in (("target", self.target), ("status", self.status))
            if values
        ]
        return f"retention: {', '.join(conditions)}"


def make_rules(configured: Iterable[dict[str, Any]]) -> list[RetentionRule]:
    """Return the rules of a configuration.

    Raises
    ------
    ValueError
        If it cannot be understood; the message names the field.
    """
    rules = []
    for index, each in enumerate(configured):
        if "max_bytes" in each:
            raise ValueError(
                f"retention[{index}].max_bytes: sessions go by age alone; give days instead."
            )
        try:
            rules.append(msgspec.convert(each, RetentionRule))
        except msgspec.ValidationError as error:
            why, _, path = str(error).partition(" - at `$")
            raise ValueError(f"retention[{index}]{path.rstrip('`')}: {why}.") from None
    return rules


class Due(NamedTuple):
    """A session that goes."""

    session: Session
    reason: str


def due(
    rules: Sequence[RetentionRule],
    sessions: Iterable[Session],
    statuses: Mapping[SessionId, frozenset[str]],
    now: datetime,
) -> list[Due]:
    """Return the sessions that go, the one first that was closed first; open ones never go.

    Parameters
    ----------
    statuses
        Those of each session's executions.
    """
    going = []
    for session in sessions:
        its_statuses = statuses.get(session.id, frozenset())
        rule = next((each for each in rules if _is_about(each, session, its_statuses, now)), None)
        if rule is not None:
            going.append(Due(session, rule.said))
    return sorted(going, key=lambda each: each.session.closed_at or "")


def _is_about(
    rule: RetentionRule, session: Session, statuses: frozenset[str], now: datetime
) -> bool:
    return (
        session.closed_at is not None
        and session.closed_at <= timestamp(now - timedelta(days=rule.days))
        and (not rule.target or session.target.__struct_config__.tag in rule.target)
        and (not rule.status or statuses <= set(rule.status))
    )


def removed_in(folder: Path) -> set[SessionId]:
    """Return the sessions that ledgers list as removed; OSError if one cannot be read."""
    entries = all_ledger_entries(folder)
    return {entry.session_id for entry in entries if isinstance(entry, SessionRemoved)}
