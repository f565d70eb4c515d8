"""Expressions that are evaluated after a run, in the same request: asked for and read. Pure.

What evaluates them in the kernel is `evaluation`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ..models import Value
from .in_kernel.expression import expression, is_ipython

SOURCE: Final = "agent_exec_values"
"""Of the payload by which the kernel tells."""

MOST_BYTES: Final = 4_000_000
"""Of what the kernel tells; our code there tells less than half of that."""

_MODULES = ("variable_listing", "evaluation")
_decode = msgspec.json.Decoder(dict[str, Value]).decode


def asking(kernel_info: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
    """Return the `user_expressions` that evaluate values; none if the kernel is not IPython.

    Parameters
    ----------
    kernel_info
        Content of its `kernel_info_reply`; empty if that is not known.
    values
        Expressions by name.
    """
    info = dict(kernel_info)
    if not values or not is_ipython(info):
        return {}
    call = "evaluate(given)\nglobals().clear()"
    return {SOURCE: expression(info, _MODULES, call, json.dumps(values))}


def told(reply: Mapping[str, Any] | None, asked: Iterable[str]) -> dict[str, Value]:
    """Return the values that an `execute_reply` tells, in the order in which they were asked for.

    Each that it does not tell was not evaluated; that is told too.
    """
    found: dict[str, Value] = {}
    payload = (reply or {}).get("payload")
    for item in payload if isinstance(payload, list) else ():
        if isinstance(item, dict) and item.get("source") == SOURCE:
            found |= _read(item.get("values"))
    because = "The code did not come to its end, or the kernel told nothing."
    if reply is not None and reply.get("status") == "error":
        because = "The code failed before."
    return {name: found.get(name) or Value.not_evaluated(because) for name in asked}


def _read(text: Any) -> dict[str, Value]:
    """Read what the kernel told; nothing if that was not our code there."""
    if not isinstance(text, str) or len(text) > MOST_BYTES:
        return {}
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
