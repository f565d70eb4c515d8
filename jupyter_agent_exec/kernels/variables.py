"""A kernel's variables as they were looked at, and how they differ from one look to the next. Pure.

What looks at them in the kernel is `variable_listing`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from ..models import Changes, VariableChange

SOURCE = "agent_exec"
"""Of the payload by which the kernel tells."""

MOST_CHANGES = 200


class Variable(NamedTuple):
    """A variable, as far as it can be told cheaply and without running anybody's code."""

    name: str
    type: str
    shape: list[int] | None
    length: int | None
    preview: str | None
    print: int
    """Says whether it is as before, as far as that can be told; in the same kernel only."""


class Variables(NamedTuple):
    """What a look at the kernel's variables saw."""

    total: int
    """How many there are."""
    newest: dict[str, Variable]
    """Those that were looked at, the newest first."""

    @property
    def whole(self) -> bool:
        """Whether all of them were looked at."""
        return len(self.newest) == self.total


class VariableChanges(NamedTuple):
    """How variables differ from how they were."""

    changes: list[VariableChange]
    more: int

    @property
    def told(self) -> Changes:
        """Return it as an execution tells it."""
        return Changes(variables=self.changes, more_variables=self.more)

    def encode(self) -> bytes:
        """Return it as the record keeps it."""
        return msgspec.json.encode({"variables": self.changes, "more_variables": self.more})


UNCHANGED = VariableChanges([], 0)

NONE = Variables(0, {})
"""What a kernel has that was just started."""

_decode = msgspec.json.Decoder(tuple[int, list[Variable]]).decode


def told(reply: dict[str, Any] | None) -> Variables | None:
    """Return the variables that an `execute_reply` tells of; None if it does not."""
    payload = (reply or {}).get("payload")
    for item in payload if isinstance(payload, list) else ():
        if isinstance(item, dict) and item.get("source") == SOURCE:
            try:
                total, newest = _decode(item["variables"])
            except (KeyError, TypeError, msgspec.MsgspecError, UnicodeError, RecursionError):
                continue  # what runs in the kernel can write payloads too
            return Variables(total, {variable.name: variable for variable in newest})
    return None


def differences(before: Variables, now: Variables) -> VariableChanges:
    """Return what came, changed and went, in the kernel's order, what went last.

    Where not all were looked at, the newest were: what is not known from before is then new only if
    it is newer than anything that is, and what was not seen again need not be gone.
    """
    added = set(_added(before, now))
    changes = [
        _change(variable, "added" if variable.name in added else "changed")
        for variable in reversed(now.newest.values())
        if variable.name in added or _differs(before.newest.get(variable.name), variable)
    ]
    gone = [name for name in reversed(before.newest) if name not in now.newest]
    if now.whole:
        changes += [VariableChange(name=name, change="removed", type=None) for name in gone]
    unseen = now.total - before.total - len(added) + (len(gone) if now.whole else 0)
    unseen = 0 if now.whole else max(0, unseen)
    return VariableChanges(changes[-MOST_CHANGES:], max(0, len(changes) - MOST_CHANGES) + unseen)


def _added(before: Variables, now: Variables) -> Iterable[str]:
    for name in now.newest:
        if name not in before.newest:
            yield name
        elif not before.whole:
            return


def _differs(before: Variable | None, now: Variable) -> bool:
    return before is not None and before.print != now.print


def _change(variable: Variable, change: Any) -> VariableChange:
    return VariableChange(
        name=variable.name,
        change=change,
        type=variable.type,
        shape=variable.shape,
        length=variable.length,
        preview=variable.preview,
    )
