"""What a call asks for, as a model or a program writes it."""

from __future__ import annotations

from typing import Any

from lagent.actions.base_action import BaseAction
from lagent.actions.parser import ParseError
from lagent.schema import ActionReturn, ActionStatusCode

from ...client import Step
from ...errors import InvalidRequest
from .extracting import code_in


def arguments(action: BaseAction, inputs: Any, name: str) -> dict[str, Any] | ActionReturn:
    """Return the arguments that a model wrote for an action, or what is wrong with them."""
    given = {"inputs": inputs, "name": name}
    if name != "run":
        return ActionReturn(
            given,
            type=action.name,
            errmsg=f"invalid API: {name}",
            state=ActionStatusCode.API_ERROR,
        )
    try:
        parsed: dict[str, Any] = action._parser.parse_inputs(inputs, name)
    except ParseError as error:
        message = error.err_msg
    except TypeError:  # JSON, but a number or null
        message = f"invalid arguments: {inputs}"
    else:
        return parsed
    return ActionReturn(given, type=action.name, errmsg=message, state=ActionStatusCode.ARGS_ERROR)


def step(command: Any, timeout: Any, default: float) -> Step:
    """Return the code to run, and for how many seconds it may.

    Raises
    ------
    InvalidRequest
        `command` is no text, or `timeout` no number.
    """
    seconds = default if timeout is None else timeout
    for name, value, kinds, what in (
        ("command", command, str, "text"),
        ("timeout", seconds, (int, float), "a number of seconds"),
    ):
        if not isinstance(value, kinds):
            raise InvalidRequest(
                f"{name}: Expected {what}, got {type(value).__name__}.", field=name
            )
    return Step(source=code_in(command), timeout=seconds)
