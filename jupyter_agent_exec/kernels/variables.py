"""A kernel's variables: changes by an execution, and values of expressions. Pure.

The look at variables, and the expressions to evaluate, are sent as `user_expressions` of an
`execute_request`. The kernel evaluates them when the code has ended without an error. They call
code that stays in the kernel (`in_kernel/resident.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ..models import Changes, Value
from ..types import ExecutionId
from .in_kernel.expression import is_ipython, resident_call
from .in_kernel.json_values import VALUES_SOURCE
from .in_kernel.namespace import MOST_CHANGES, VARIABLES_SOURCE
from .in_kernel.resident import TARGET
from .messages import Header
from .nbformat_outputs import payloads_in

LOOK_PARTS: Final = 4_000
"""How many parts of values a look at the variables may read: some milliseconds."""
TRIAL_PARTS: Final = 1_000_000
"""The same in a trial, for each second that it may run."""
MOST_TRIAL_PARTS: Final = 400_000

_decode_changes = msgspec.json.Decoder(Changes | None).decode


def changes_in(reply: dict[str, Any] | None) -> tuple[Changes | None, bool]:
    """Return what an `execute_reply` says of changes, and whether the variables were looked at.

    At the first look in a kernel's life, there is nothing to compare with.
    """
    for item in payloads_in(reply, VARIABLES_SOURCE):
        try:
            changes = _decode_changes(item["variables"])
        except (KeyError, TypeError, msgspec.MsgspecError, UnicodeError, RecursionError):
            continue  # user code in the kernel can write payloads too
        if changes is None or len(changes.variables) <= MOST_CHANGES:
            return changes, True
    return None, False


def lacks_our_code(reply: Mapping[str, Any] | None) -> bool:
    """Return whether the code that stays in a kernel was not there to be called."""
    told = (reply or {}).get("user_expressions")
    results = told.values() if isinstance(told, dict) else ()
    lacking = {"ename": "KeyError", "evalue": repr(TARGET)}
    return any(isinstance(each, dict) and lacking.items() <= each.items() for each in results)


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
    """Tells whose changes are those that one kernel finds between two looks at its variables."""

    def __init__(self) -> None:
        self._is_known = False

    def overhear(self, parent: Header) -> None:
        """Record a request of others, which may have changed variables."""
        if parent.msg_type not in _HARMLESS:
            self._is_known = False

    def after(self, reply: dict[str, Any] | None) -> Changes | None:
        """Return what a run changed; None if unknown.

        If the kernel did not answer, as after an error, the next run's changes are unknown, too.
        """
        was_known = self._is_known
        changes, self._is_known = changes_in(reply)
        return changes if was_known else None


def execution_of(msg_id: str) -> ExecutionId:
    """Return the execution that a request belongs to."""
    return ExecutionId(msg_id.partition(".")[0])


def variable_expressions(kernel_info: dict[str, Any], parts: int = LOOK_PARTS) -> dict[str, str]:
    """Return the `user_expressions` that look at a kernel's variables; none if it is not IPython.

    Parameters
    ----------
    kernel_info
        Content of its `kernel_info_reply`; empty if that is not known.
    parts
        How many parts of values to read.
    """
    return {VARIABLES_SOURCE: resident_call("look", parts)} if is_ipython(kernel_info) else {}


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
    for item in payloads_in(reply, VALUES_SOURCE):
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
