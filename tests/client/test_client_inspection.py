"""The client looks into real kernels, and asks for values."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from jupyter_agent_exec.client import Session
from jupyter_agent_exec.errors import InvalidRequest
from jupyter_agent_exec.models import Value


def test_values_come_with_the_result(session: Session) -> None:
    result = session.run("x = [1, 2]", values={"n": "len(x)", "x": "x", "bad": "y"})
    assert (result.values["n"].json, result.values["x"].json) == (2, [1, 2])
    assert (result.values["bad"].ename, result.ok) == ("NameError", True)
    assert session.run("x").values == {}
    # A program that is checked by mypy needs no test for None.
    assert get_type_hints(Value)["json"] == Any


def test_a_kernel_is_looked_into(session: Session) -> None:
    session.run("quokka = 7\nimport os")
    listed = session.variables("QUOK")
    assert [(each.name, each.preview) for each in listed.variables] == [("quokka", "7")]
    assert [each.import_names for each in session.packages("pyzmq").packages] == [["zmq"]]
    with pytest.raises(InvalidRequest, match="limit"):
        session.variables(limit=0)
