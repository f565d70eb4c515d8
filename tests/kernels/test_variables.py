"""What a kernel tells of changed variables, and whose changes they are."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from jupyter_agent_exec.kernels.messages import Header
from jupyter_agent_exec.kernels.variables import VariableTracker, changes_in
from jupyter_agent_exec.models import Changes, VariableChange


def reply(told: Any) -> dict[str, Any]:
    payload = [{"source": "page", "data": {}}, {"source": "agent_exec", "variables": told}]
    return {"status": "ok", "payload": payload}


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"payload": None},
        {"payload": ["a", 1, {}]},
        {"payload": [{"source": "set_next_input", "text": "x"}]},
        {"payload": [{"source": "agent_exec"}]},
        {"payload": [{"source": "agent_exec", "variables": 3}]},
        {"payload": [{"source": "agent_exec", "variables": "[1"}]},
        {"payload": [{"source": "agent_exec", "variables": '{"variables": [["x"]]}'}]},
        {"payload": [{"source": "agent_exec", "variables": '{"not_compared": "x"}'}]},
        {"payload": [{"source": "agent_exec", "variables": '{"a": "\ud800"}'}]},
        reply(json.dumps({"variables": [{"name": "x", "change": "added", "type": None}] * 201})),
    ],
)
def test_a_reply_that_does_not_tell_of_variables_is_no_error(given: Any) -> None:
    assert changes_in(given) == (None, False)


CHANGED = Changes(
    variables=[VariableChange(name="x", change="changed", type="int")], not_compared=3
)


def test_changes_are_told_if_nobody_else_ran_code_since_the_look_before() -> None:
    changed = reply(msgspec.json.encode(CHANGED).decode())
    tracker = VariableTracker()
    assert tracker.after(reply("null")) is None
    assert tracker.after(changed) == CHANGED
    tracker.overhear(Header(msg_type="complete_request"))
    assert tracker.after(changed) == CHANGED
    tracker.overhear(Header(msg_type="execute_request"))
    assert tracker.after(changed) is None
    assert tracker.after(changed) == CHANGED
    assert tracker.after({"status": "error"}) is None
    assert tracker.after(changed) is None
