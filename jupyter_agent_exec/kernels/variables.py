"""A kernel's variables: changes by an execution, and values of expressions. Pure.

The listing of variables, and the expressions to evaluate, are sent as `user_expressions` of an
`execute_request`. The kernel evaluates them when the code has ended without an error. They call
code that stays in the kernel (`in_kernel/resident.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ..models import Changes, Value, VariableChange
from ..types import ExecutionId
from .in_kernel.expression import is_ipython, resident_call
from .in_kernel.resident import TARGET, VALUES_SOURCE, VARIABLES_SOURCE
from .messages import Header
from .nbformat_outputs import payloads_in

_SOURCES: Final = (VARIABLES_SOURCE, VALUES_SOURCE)

MOST_CHANGES = 200


class Variable(NamedTuple):
    """A variable, as far as it can be described quickly and without running its code."""

    name: str
    type: str
    shape: list[int] | None
    length: int | None
    preview: str | None
    print: int
    """A fingerprint that shows whether it has changed, within the same kernel."""


class Variables(NamedTuple):
    """A listing of the kernel's variables."""

    total: int
    """The number of all variables."""
    newest: dict[str, Variable]
    """The listed variables, newest first."""

    @property
    def whole(self) -> bool:
        """Whether all variables are listed."""
        return len(self.newest) == self.total


class VariableChanges(NamedTuple):
    """The changes between two listings of variables."""

    changes: list[VariableChange]
    more: int

    @property
    def told(self) -> Changes:
        """The changes as the model for an execution."""
        return Changes(variables=self.changes, more_variables=self.more)

    def encode(self) -> bytes:
        """Return the changes as JSON for the record."""
        return msgspec.json.encode({"variables": self.changes, "more_variables": self.more})


_decode_variables = msgspec.json.Decoder(tuple[int, list[Variable]]).decode


def variables_in(reply: dict[str, Any] | None) -> Variables | None:
    """Return the variables in an `execute_reply`; None if it has none."""
    for item in payloads_in(reply):
        if item.get("source") != VARIABLES_SOURCE:
            continue
        try:
            total, newest = _decode_variables(item["variables"])
        except (KeyError, TypeError, msgspec.MsgspecError, UnicodeError, RecursionError):
            continue  # user code in the kernel can write payloads too
        return Variables(total, {variable.name: variable for variable in newest})
    return None


def lacks_our_code(reply: Mapping[str, Any] | None) -> bool:
    """Return whether the code that stays in a kernel was not there to be called."""
    told = (reply or {}).get("user_expressions")
    results = [told.get(source) for source in _SOURCES] if isinstance(told, dict) else []
    return any(
        isinstance(result, dict)
        and result.get("ename") == "KeyError"
        and result.get("evalue") == repr(TARGET)
        for result in results
    )


def differences(before: Variables, now: Variables) -> VariableChanges:
    """Return the new, changed and removed variables, in the kernel's order, removed ones last.

    A listing that is not whole has only the newest variables. If `before` is not whole, a variable
    that it lacks is new only if it is newer than all variables that both list. If `now` is not
    whole, variables that it lacks are not reported as removed.
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


_HARMLESS: Final = frozenset(
    {
        "kernel_info_request",
        "complete_request",
        "inspect_request",
        "is_complete_request",
        "history_request",
        "comm_info_request",
        "",
    }
)
"""Requests that change no variable."""


class VariableTracker:
    """The last known state of one kernel's variables."""

    def __init__(self) -> None:
        self._known: Variables | None = None

    def overhear(self, parent: Header) -> None:
        """Record a request of others, which may have changed variables."""
        if parent.msg_type not in _HARMLESS:
            self._known = None

    def after(self, reply: dict[str, Any] | None) -> VariableChanges | None:
        """Set the listing from after a run; return what the run changed, None if unknown.

        If the kernel did not answer, as after an error, the next run's changes are unknown, too.
        """
        before, self._known = self._known, variables_in(reply)
        return differences(before, self._known) if before and self._known else None


def execution_of(msg_id: str) -> ExecutionId:
    """Return the execution that a request belongs to."""
    return ExecutionId(msg_id.partition(".")[0])


def variable_expressions(kernel_info: dict[str, Any]) -> dict[str, str]:
    """Return the `user_expressions` that list a kernel's variables; none if it is not IPython.

    Parameters
    ----------
    kernel_info
        Content of its `kernel_info_reply`; empty if that is not known.
    """
    return {VARIABLES_SOURCE: resident_call("look")} if is_ipython(kernel_info) else {}


MOST_VALUES_BYTES: Final = 4_000_000
"""The most bytes of an answer to read. Our code in the kernel sends less than half of that."""

_decode_values = msgspec.json.Decoder(dict[str, Value]).decode


def value_expressions(kernel_info: dict[str, Any], values: Mapping[str, str]) -> dict[str, str]:
    """Return the `user_expressions` that evaluate values, by name; none if it is not IPython."""
    if not values or not is_ipython(kernel_info):
        return {}
    return {VALUES_SOURCE: resident_call("evaluate", json.dumps(dict(values)))}


def values_in(reply: Mapping[str, Any] | None, asked: Iterable[str]) -> dict[str, Value]:
    """Return the values in an `execute_reply`, in the order of the request.

    An expression without a value in the reply gets a `not_evaluated` value with the reason.
    """
    found: dict[str, Value] = {}
    for item in payloads_in(reply):
        if item.get("source") == VALUES_SOURCE:
            found |= _read(item.get("values"))
    because = "The code did not come to its end, or the kernel told nothing."
    if reply is not None and reply.get("status") == "error":
        because = "The code failed before."
    elif lacks_our_code(reply):
        because = "The code that evaluates it was removed from the kernel. It is there again."
    return {name: found.get(name) or Value.not_evaluated(because) for name in asked}


def _read(text: Any) -> dict[str, Value]:
    """Parse the kernel's answer; empty if it is not from our code."""
    if not isinstance(text, str) or len(text) > MOST_VALUES_BYTES:
        return {}
    try:
        return _decode_values(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
