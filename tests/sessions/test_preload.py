"""Modules and functions that are there before anything runs."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jupyter_agent_exec.errors import InvalidRequest
from jupyter_agent_exec.models import Preload, PreloadFunction, PreloadModule
from jupyter_agent_exec.sessions.preload import preloaded
from tests.asking import Agent, Answered

MEAN = '''
def mean(values: list[float], *, digits: int = 2) -> float:
    """Return the mean.

    Of nothing it is NaN.
    """
    return np.round(st.mean(values), digits) if values else float("nan")
'''


def module(name: str, alias: str | None = None) -> dict[str, Any]:
    return {"kind": "module", "name": name, **({"as": alias} if alias else {})}


def function(source: str, **more: Any) -> dict[str, Any]:
    return {"kind": "function", "source": source, **more}


async def ask_to_open(agent: Agent, *preload: dict[str, Any], **asked: Any) -> Answered:
    body = {"agent": {"name": "tester"}, "preload": preload, **asked}
    return await agent.ask("POST", "sessions", body)


async def test_what_is_preloaded_is_there_in_each_kernel_before_the_init_source(
    agent: Agent,
) -> None:
    session = await agent.open(
        preload=[
            module("json"),
            module("statistics", "st"),
            function(
                "def shout(text: str) -> str:\n    return re.sub('$', '!', text.upper())",
                requirements=["packaging>=1", "ipykernel"],
                imports=["import re", "from os import path as p"],
            ),
        ],
        init_source="ready = shout('go')",
    )
    source = "ready, shout('x'), st.mean([1, 3]), json.dumps({}), p.sep, '_check_preload' in dir()"
    said = "('GO!', 'X!', 2, '{}', '/', False)"
    assert (await agent.run(session, source, wait=60))["text"].strip() == said
    await agent.ask("POST", f"sessions/{session['id']}/restart")
    again = await agent.run(session, source, wait=60)
    assert again["text"].splitlines()[0] == said
    first = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"][0]
    assert (first["init"], first["status"]) == (True, "ok")
    assert "import statistics as st" in first["source"]


async def test_the_guide_tells_a_model_what_is_there(agent: Agent) -> None:
    session = await agent.open(
        preload=[module("statistics", "st"), function(MEAN, imports=["import math as np"])]
    )
    guide = (await agent.get(f"sessions/{session['id']}/guide")).json["text"]
    told = [
        "    import statistics as st",
        "    def mean(values: list[float], *, digits: int=2) -> float:\n"
        '        """Return the mean.\n\n        Of nothing it is NaN."""',
    ]
    assert all(each in guide for each in told), guide
    assert "return np.round" not in guide
    assert (await agent.get(f"sessions/{session['id']}")).json["preloaded"] == session["preloaded"]


async def test_all_that_is_missing_is_told_at_once_and_nothing_is_installed(agent: Agent) -> None:
    answered = await ask_to_open(
        agent,
        module("no_such_module.part"),
        function(
            "def f(): pass",
            requirements=["no-such-package", "packaging>=1000", "packaging"],
            imports=["import nor_this"],
        ),
    )
    assert (answered.status, answered.json["code"]) == (422, "init_failed")
    message = answered.json["message"]
    assert all(
        missing in message
        for missing in (
            "module no_such_module",
            "module nor_this",
            "no-such-package",
            "packaging>=1000 (there is ",
        )
    )
    assert answered.json["detail"]["field"] == "preload"
    closed = (await agent.get(f"sessions/{answered.json['detail']['session_id']}")).json
    assert (closed["status"], closed["close_reason"]) == ("closed", "init_failed")


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (module("os; import sys"), "preload[1].name", "is not the name of a module"),
    (module("class"), "preload[1].name", "is not the name of a module"),
    (module(".a"), "preload[1].name", "is not the name of a module"),
    (module("os", "a b"), "preload[1].as", "is not a valid name in Python"),
    (function("x = 1"), "preload[1].source", "exactly one function"),
    (function("def f(): pass\nf()"), "preload[1].source", "exactly one function"),
    (function("class A: pass"), "preload[1].source", "exactly one function"),
    (function(""), "preload[1].source", "exactly one function"),
    (function("def f(:"), "preload[1].source", "not valid Python"),
    (function("def f():\n  return '\0'"), "preload[1].source", "Python"),
    (function("def f(): return " + "(" * 5000), "preload[1].source", "Python"),
    (function("def first(): pass"), "preload[1].source", "another 'first' before"),
    (function(f"def f(x=0x{'f' * 15_000}): pass"), "preload[1].source", "written down"),
    (function(f"def f(x={'~' * 900}1): pass"), "preload[1].source", "written down"),
    (function("def f(): pass", imports=["x"]), "preload[1].imports[0]", "import statement"),
    (
        function("def f(): pass", imports=["import os", "import a; b()"]),
        "preload[1].imports[1]",
        "import statement",
    ),
    (function("def f(): pass", imports=["from . import a"]), "preload[1].imports[0]", "import"),
    (function("def f(): pass", requirements=["a b"]), "preload[1].requirements[0]", "'a b'"),
    (
        function("def f(): pass", requirements=["a @ https://x"]),
        "preload[1].requirements[0]",
        "nothing else",
    ),
    ({"kind": "class"}, "preload[1].kind", "Invalid value"),
]


async def test_what_is_not_to_be_loaded_is_refused_before_anything_opens(agent: Agent) -> None:
    for item, field, said in REFUSED:
        answered = await ask_to_open(agent, function("def first(): pass"), item)
        assert (answered.status, answered.json["code"]) == (400, "invalid_request"), answered.json
        assert answered.json["detail"]["field"] == field
        assert said in answered.json["message"]
        assert (await agent.get("sessions")).json["sessions"] == []


def test_nothing_to_load_is_nothing_to_run() -> None:
    assert preloaded([]) is None


def test_decorators_and_bodies_are_not_told_and_long_documentation_is_cut() -> None:
    source = f"@decorated\nasync def f(a, /, *b: int, **c):\n    '''{'x' * 5000}'''\n    return 1"
    items: list[Preload] = [PreloadModule(name="a.b"), PreloadFunction(source=source)]
    found = preloaded(items)
    assert found is not None
    assert found.told[0] == "import a.b"
    assert found.told[1].startswith('async def f(a, /, *b: int, **c):\n    """xxx')
    assert len(found.told[1]) == 1000
    assert "@decorated" in found.source


def test_a_name_in_code_cannot_end_the_check_of_what_is_missing() -> None:
    with pytest.raises(InvalidRequest):
        preloaded([PreloadModule(name="os'], []); evil(")])


class Garbage:
    """Lets another thread run when it is collected, which may be in the middle of a parse."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0)


@pytest.fixture
def eager_collection() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(5)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("eager_collection")
def test_several_sessions_may_be_opened_at_the_same_time() -> None:
    def reads(_: int) -> bool:
        Garbage()
        return preloaded([PreloadFunction(source=MEAN)]) is not None

    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(reads, range(1000)))
