"""What lagent calls these actions."""

from __future__ import annotations

from typing import TypeVar

from lagent.actions.base_action import BaseAction

Action = TypeVar("Action", bound=type[BaseAction])


def named_as_its_class(action: Action) -> Action:
    """Have models and executors know an action by its class's name.

    lagent's registry does not: it has one action for a name, and that is lagent's own.
    """
    action.__tool_description__["name"] = action.__name__
    return action
