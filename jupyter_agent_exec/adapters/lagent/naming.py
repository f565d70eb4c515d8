"""What lagent calls these actions."""

from __future__ import annotations

import inspect
from typing import Any, Final, TypeVar

from lagent.actions.base_action import BaseAction
from lagent.actions.parser import BaseParser

Action = TypeVar("Action", bound=type[BaseAction])


def named_as_its_class(action: Action) -> Action:
    """Have models and executors know an action by its class's name.

    lagent's registry does not: it has one action for a name, and that is lagent's own.
    """
    action.__tool_description__["name"] = action.__name__
    return action


_CAN_BE_DISABLED: Final = "enable" in inspect.signature(BaseAction.__init__).parameters
"""Whether lagent is one before 0.5."""


def base_arguments(
    description: dict[str, Any] | None, parser: type[BaseParser], enable: bool
) -> dict[str, Any]:
    """Return what lagent's `BaseAction` is made with; since 0.5 an action cannot be disabled."""
    known: dict[str, Any] = {"description": description, "parser": parser}
    return {**known, "enable": enable} if _CAN_BE_DISABLED else known
