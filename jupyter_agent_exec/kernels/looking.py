"""Looks at the variables of one kernel, before and after what is run there. No I/O.

A look is an expression that goes with an `execute_request` and is evaluated when its code has
ended well. Where there is no such request, or its code failed, a silent one of its own carries it.
It leaves nothing in the kernel: its code is compiled here and sent each time.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from ..types import ExecutionId
from .in_kernel.expression import expression, is_ipython
from .messages import Header
from .variables import NONE, SOURCE, VariableChanges, Variables, differences, told

BEFORE_TIMEOUT: Final = 0.2
"""Seconds that a look before a run may take; then the run goes ahead, and nothing is told."""

AFTER_TIMEOUT: Final = 0.1
"""Seconds that a look after code that failed may take before its end is told without it."""

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


_HARMLESS_SYNTAX: Final = (
    ast.Module,
    ast.Expr,
    ast.Constant,
    ast.BinOp,
    ast.operator,
    ast.UnaryOp,
    ast.unaryop,
    ast.Compare,
    ast.cmpop,
)
_SHORT: Final = 80


class Looking:
    """What is known of one kernel's variables.

    Parameters
    ----------
    is_fresh
        Whether the kernel has not run anything: then it has no variables.
    """

    def __init__(self, *, is_fresh: bool) -> None:
        self._known: Variables | None = NONE if is_fresh else None
        self._is_shared = not is_fresh

    def overhear(self, parent: Header) -> None:
        """Take note of somebody else's request: it may have changed variables."""
        if parent.msg_type not in _HARMLESS:
            self._known = None

    def begins(self, *, is_idle: bool) -> bool:
        """Tell whether to look before the run that begins.

        In a kernel that others use, if it has time; in one of an agent's own, which is interrupted
        as soon as somebody asks for that, a run must not be kept from being the next.
        """
        return self._known is None and self._is_shared and is_idle

    def before(self, reply: dict[str, Any] | None) -> None:
        """Take what a look before a run saw; None if the kernel did not answer."""
        self._known = told(reply)

    def after(self, reply: dict[str, Any] | None) -> VariableChanges | None:
        """Take what was seen after a run; return what it changed, as far as that is known.

        If nothing was seen, what changed is told with the next run.
        """
        now = told(reply)
        if now is None:
            return None
        before, self._known = self._known, now
        return None if before is None else differences(before, now)


def may_change(source: str) -> bool:
    """Tell whether code may change variables: all does that is more than a sum of numbers.

    Names and calls may run anything. What is longer is not read: it is hardly ever so plain.
    """
    if len(source) > _SHORT:
        return True
    try:
        parsed = ast.parse(source)
    except (SyntaxError, ValueError):
        return True  # IPython's own syntax, perhaps
    return any(not isinstance(node, _HARMLESS_SYNTAX) for node in ast.walk(parsed))


def look_id(execution_id: ExecutionId, *, after: bool) -> str:
    """Return the id of a look's own request: what a thread prints meanwhile is the execution's."""
    return f"{execution_id}.{'after' if after else 'before'}"


def execution_of(msg_id: str) -> ExecutionId:
    """Return the execution that a request belongs to."""
    return ExecutionId(msg_id.partition(".")[0])


def expressions(kernel_info: dict[str, Any]) -> dict[str, str]:
    """Return the `user_expressions` that look at a kernel's variables; none if it is not IPython.

    Parameters
    ----------
    kernel_info
        Content of its `kernel_info_reply`; empty if that is not known.
    """
    if not is_ipython(kernel_info):
        return {}
    # Cleared, what it defines is gone at once, and no work for the kernel's garbage collector.
    call = "look()\nglobals().clear()"
    return {SOURCE: expression(kernel_info, ("variable_listing",), call)}
