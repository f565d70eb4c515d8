"""Finds leaves: parts of the package that nothing else imports, so that each may be missing.

They are entry points, in three groups: of the server (`jupyter_agent_exec.leaves`, each a
`services.Leaf`), of the command line (`jupyter_agent_exec.commands`, each a `cli.command.Command`),
and what starts a server for a command (`jupyter_agent_exec.servers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any


def installed(group: str) -> Iterator[Any]:
    """Yield the leaves of a group, by their names, without those whose folder is missing."""
    for entry in sorted(entry_points(group=f"{__package__}.{group}"), key=lambda each: each.name):
        try:
            yield entry.load()
        except ModuleNotFoundError as error:
            if error.name is None or not entry.module.startswith(error.name):
                raise  # it lacks something else
