"""What an execution is a new version of."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from jupyter_agent_exec.executions.spec import revision_of
from jupyter_agent_exec.models import Execute
from jupyter_agent_exec.types import ExecutionId


class Rejected(NamedTuple):
    id: ExecutionId = ExecutionId("x_last")
    source: str = "rejected"


class Place(NamedTuple):
    source: str = "new"
    replaces: str | None = None


NAMED = Execute(source="new", revises=ExecutionId("x_named"))
ANY = Execute(source="new")


@pytest.mark.parametrize(
    ("asked", "named", "place", "last", "is_of"),
    [
        (ANY, None, None, None, (None, None)),
        (ANY, None, None, Rejected(), ("x_last", "rejected")),
        (ANY, None, Place(), Rejected(), ("x_last", "rejected")),
        (ANY, None, Place(replaces="theirs"), None, (None, "theirs")),
        (ANY, None, Place(replaces="theirs"), Rejected(), ("x_last", "theirs")),
        (NAMED, "named", Place(replaces="theirs"), Rejected(), ("x_named", "theirs")),
        (NAMED, "named", Place(), Rejected(), ("x_named", "named")),
    ],
)
def test_cells_are_shown_by_what_matters_to_the_user(
    asked: Execute, named: str | None, place: Any, last: Any, is_of: tuple[str | None, str | None]
) -> None:
    assert revision_of(asked, named, place, last) == is_of
