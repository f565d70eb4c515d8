"""How variables differ from one look to the next."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jupyter_agent_exec.kernels.variables import (
    MOST_CHANGES,
    Variable,
    Variables,
    differences,
    variables_in,
)

NONE = Variables(0, {})


def seen(*newest: str, total: int | None = None, **prints: int) -> Variables:
    """Return variables, the newest first; each is known by a number."""
    found = {
        name: Variable(name, "int", None, None, str(prints.get(name, 0)), prints.get(name, 0))
        for name in newest
    }
    return Variables(len(found) if total is None else total, found)


def told_changes(before: Variables, now: Variables) -> list[tuple[str, str]]:
    return [(change.change, change.name) for change in differences(before, now).changes]


def test_what_came_changed_and_went_is_told_in_the_kernels_order() -> None:
    before = seen("c", "b", "a")
    now = seen("e", "d", "c", "a", a=1)
    assert told_changes(before, now) == [
        ("changed", "a"),
        ("added", "d"),
        ("added", "e"),
        ("removed", "b"),
    ]


def test_what_went_has_no_type_any_more() -> None:
    (gone,) = differences(seen("a"), NONE).changes
    assert (gone.type, gone.preview, gone.shape, gone.length) == (None, None, None, None)


def test_nothing_is_told_when_nothing_changed() -> None:
    assert differences(seen("b", "a"), seen("b", "a")) == ([], 0)
    assert differences(NONE, NONE) == ([], 0)


def test_a_variable_that_is_made_anew_has_changed_if_its_value_has() -> None:
    assert told_changes(seen("b", "a"), seen("a", "b")) == []
    assert told_changes(seen("b", "a"), seen("a", "b", a=1)) == [("changed", "a")]


def test_of_very_many_changes_the_newest_are_told_and_the_others_counted() -> None:
    names = [f"v{number}" for number in range(MOST_CHANGES + 50)]
    found = differences(NONE, seen(*reversed(names)))
    assert [change.name for change in found.changes] == names[50:]
    assert found.more == 50


def test_what_was_not_looked_at_is_neither_new_nor_gone() -> None:
    before = seen("d", "c", total=4)
    assert told_changes(before, seen("d", "c", "b", total=4)) == []  # b came in sight
    assert told_changes(before, seen("e", "d", "c", total=5)) == [("added", "e")]
    assert told_changes(before, seen("d", total=4, d=1)) == [("changed", "d")]  # c is out of sight
    assert differences(before, seen("d", "c", total=4)).more == 0


def test_what_came_and_was_not_looked_at_is_counted() -> None:
    names = [f"v{number}" for number in range(10)]
    found = differences(NONE, seen(*reversed(names), total=5000))
    assert [change.name for change in found.changes] == names
    assert found.more == 4990


@pytest.mark.parametrize(
    "reply",
    [
        None,
        {},
        {"payload": None},
        {"payload": ["a", 1, {}]},
        {"payload": [{"source": "set_next_input", "text": "x"}]},
        {"payload": [{"source": "agent_exec"}]},
        {"payload": [{"source": "agent_exec", "variables": 3}]},
        {"payload": [{"source": "agent_exec", "variables": "[1"}]},
        {"payload": [{"source": "agent_exec", "variables": '[1, [["x"]]]'}]},
        {"payload": [{"source": "agent_exec", "variables": '[1, [["x", 1, 2, 3, 4, 5]]]'}]},
        {"payload": [{"source": "agent_exec", "variables": '[0, [], "\ud800"]'}]},
    ],
)
def test_a_reply_that_does_not_tell_of_variables_is_no_error(reply: Any) -> None:
    assert variables_in(reply) is None


def test_a_reply_tells_of_variables() -> None:
    variable = ["x", "numpy.ndarray", [2, 3], None, None, -5]
    payload = [
        {"source": "page", "data": {}},
        {"source": "agent_exec", "variables": json.dumps([7, [variable]])},
    ]
    found = variables_in({"status": "ok", "payload": payload})
    assert found == Variables(7, {"x": Variable(*variable)})
    assert found is not None
    assert not found.whole
