"""Expressions that a real kernel evaluates after a run: what is told, and that nothing stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from jupyter_agent_exec.kernels.execute_request import ExecuteOutcome
from jupyter_agent_exec.kernels.live_kernels import LiveKernel
from jupyter_agent_exec.kernels.variables import VALUES_SOURCE, value_expressions, values_in
from tests.kernels.kernel_server import AgentRun, kernel_server, text
from tests.real_server import Gate

pytestmark = pytest.mark.usefixtures("jp_environ")


class Evaluating:
    """Runs code in a kernel and has expressions evaluated after it."""

    def __init__(self, kernel: LiveKernel) -> None:
        self.kernel = kernel
        self._number = 0

    def begins(self, source: str, **values: str) -> asyncio.Task[ExecuteOutcome]:
        self._number += 1
        run = AgentRun(self._number, source)
        run.run.values = values
        return run.in_turn(self.kernel)

    async def __call__(self, source: str, **values: str) -> dict[str, Any]:
        ended = await self.begins(source, **values)
        assert ended.values is not None
        found: dict[str, Any] = msgspec.to_builtins(ended.values)
        return found

    async def one(self, expression: str, source: str = "") -> dict[str, Any]:
        told: dict[str, Any] = (await self(source, x=expression))["x"]
        return told


@asynccontextmanager
async def evaluating() -> AsyncIterator[Evaluating]:
    async with kernel_server() as server:
        yield Evaluating(await server.live.adopt(await server.start_kernel()))


AS_JSON = [
    ("None", None),
    ("True", True),
    ("7", 7),
    ("-(2 ** 63)", -(2**63)),
    ("2 ** 64 - 1", 2**64 - 1),
    ("0.1", 0.1),
    ("1e300", 1e300),
    ("''", ""),
    ("'quokka \\n ü \\x00 \\u202e'", "quokka \n ü \x00 \u202e"),
    ("[1, [2, {'a': None}]]", [1, [2, {"a": None}]]),
    ("{'b': 1, 'a': [True]}", {"b": 1, "a": [True]}),
    ("  1 + 1 ", 2),
    ("'a' * 90_000", "a" * 90_000),
]


async def test_what_is_json_comes_as_it_is() -> None:
    async with evaluating() as evaluate:
        for expression, value in AS_JSON:
            assert await evaluate.one(expression) == {"status": "ok", "json": value}, expression


DESCRIBED: list[tuple[str, dict[str, Any]]] = [
    ("float('nan')", {"type": "float", "repr": "nan"}),
    ("[float('inf')]", {"type": "list", "repr": "[inf]"}),
    ("(1, 2)", {"type": "tuple", "repr": "(1, 2)"}),
    ("{1: 2}", {"type": "dict", "repr": "{1: 2}"}),
    ("{7}", {"type": "set", "repr": "{7}"}),
    ("b'ab'", {"type": "bytes", "repr": "b'ab'"}),
    ("2 ** 64", {"type": "int", "repr": "18446744073709551616"}),
    ("'\\ud800'", {"type": "str", "repr": "'\\ud800'"}),
    ("16 ** 5000", {"type": "int", "repr": "0x1" + "0" * 5000}),
    ("[16 ** 5000]", {"type": "list", "repr": "[<int>]"}),
    ("1j", {"type": "complex", "repr": "1j"}),
    (
        "__import__('collections').Counter('a')",
        {"type": "collections.Counter", "repr": "Counter({'a': 1})"},
    ),
    ("type('Own', (int,), {})(3)", {"type": "Own", "repr": "3"}),
    ("np.float64(1.5)", {"type": "float64", "json": 1.5}),
    ("np.int8(-3)", {"type": "int8", "json": -3}),
    ("np.bool_(True)", {"type": "bool", "json": True}),
    ("np.float64('nan')", {"type": "numpy.float64", "repr": "np.float64(nan)"}),
    (
        "np.arange(6).reshape(2, 3)",
        {
            "type": "numpy.ndarray",
            "shape": [2, 3],
            "dtype": "int64",
            "range": [0.0, 5.0],
            "repr": "array([[0, 1, 2],\n       [3, 4, 5]])",
        },
    ),
    (
        "np.zeros((1000, 50))",
        {"type": "numpy.ndarray", "shape": [1000, 50], "dtype": "float64", "range": [0.0, 0.0]},
    ),
    (
        "np.array([np.nan, 2, 1])",
        {
            "type": "numpy.ndarray",
            "shape": [3],
            "dtype": "float64",
            "range": [1.0, 2.0],
            "repr": "array([nan,  2.,  1.])",
        },
    ),
    (
        "np.array([])",
        {
            "type": "numpy.ndarray",
            "shape": [0],
            "dtype": "float64",
            "repr": "array([], dtype=float64)",
        },
    ),
    (
        "pd.DataFrame({'n': [1, 2], 'x': [0.5, None], 't': ['a', 'ü'],"
        " 'd': pd.to_datetime(['2026-01-02', None])})",
        {
            "type": "pandas.DataFrame",
            "shape": [2, 4],
            "dtypes": {"n": "int64", "x": "float64", "t": "str", "d": "datetime64[us]"},
            "head": [
                {"n": 1, "x": 0.5, "t": "a", "d": "2026-01-02 00:00:00"},
                {"n": 2, "x": None, "t": "ü", "d": "NaT"},
            ],
        },
    ),
    (
        "pd.DataFrame([[1, 2, 3]], columns=['a', 'a', 7])",
        {
            "type": "pandas.DataFrame",
            "shape": [1, 3],
            "dtypes": {"a": "int64", "a.1": "int64", "7": "int64"},
            "head": [{"a": 1, "a.1": 2, "7": 3}],
        },
    ),
    (
        "pd.Series([1, 2])",
        {
            "type": "pandas.Series",
            "shape": [2],
            "dtype": "int64",
            "repr": "0    1\n1    2\ndtype: int64",
        },
    ),
]


async def test_what_is_not_json_is_described() -> None:
    async with evaluating() as evaluate:
        await evaluate("import numpy as np, pandas as pd", x="1")
        for expression, told in DESCRIBED:
            assert await evaluate.one(expression) == {"status": "ok", **told}, expression


async def test_a_table_is_told_by_its_first_rows_and_columns() -> None:
    async with evaluating() as evaluate:
        table = await evaluate.one(
            "pd.DataFrame({f'c{n}': ['x' * 500] * 1000 for n in range(150)})",
            "import pandas as pd",
        )
        assert (table["shape"], table["truncated"]) == ([1000, 150], True)
        assert (len(table["head"]), len(table["head"][0]), len(table["dtypes"])) == (10, 100, 100)
        assert table["head"][0]["c0"] == "x" * 199 + "…"


TOO_LARGE = [
    "'a' * 2_000_000",
    "'é' * 400_000",
    "['a' * 600_000, 'b' * 600_000]",
    "list(range(10 ** 6))",
    "{str(n): n for n in range(10 ** 6)}",
    "[[[0] * 1000] * 1000] * 1000",
    "16 ** 10_000",
    "b'a' * 10 ** 7",
]


async def test_what_is_too_large_is_described_and_says_so() -> None:
    async with evaluating() as evaluate:
        for expression in TOO_LARGE:
            value = await evaluate.one(expression)
            assert (value["status"], value.get("truncated", False)) == ("ok", True), expression
            assert "json" not in value, expression
            assert len(value["repr"]) <= 10_000, expression
        within = await evaluate("", x="deep")
        assert within["x"]["ename"] == "NameError"
        source = "deep = []\nfor _ in range(1000): deep = [deep]\ncycle = []; cycle.append(cycle)"
        within = await evaluate(source, deep="deep", cycle="cycle")
        assert [value["type"] for value in within.values()] == ["list", "list"]


async def test_all_together_are_no_more_than_a_megabyte() -> None:
    async with evaluating() as evaluate:
        values = await evaluate("", **{f"x{n}": "'a' * 99_000" for n in range(15)})
        assert [("json" in value, value.get("truncated")) for value in values.values()] == [
            *[(True, None)] * 10,
            *[(False, True)] * 5,
        ]


async def test_each_expression_has_its_own_error() -> None:
    async with evaluating() as evaluate:
        values = await evaluate(
            "y = 1", name="no", syntax="1 +", statement="y = 2", zero="1 / 0", good="y"
        )
        assert values.pop("good") == {"status": "ok", "json": 1}
        assert {name: (value["status"], value["ename"]) for name, value in values.items()} == {
            "name": ("error", "NameError"),
            "syntax": ("error", "SyntaxError"),
            "statement": ("error", "SyntaxError"),
            "zero": ("error", "ZeroDivisionError"),
        }
        assert values["zero"]["evalue"] == "division by zero"


async def test_after_code_that_failed_nothing_is_evaluated() -> None:
    async with evaluating() as evaluate:
        ended = await evaluate.begins("1 / 0", x="1")
        assert ended.status == "error"
        assert ended.values is not None
        assert (ended.values["x"].ename, ended.values["x"].evalue) == (
            "NotEvaluated",
            "The code failed before.",
        )


HOSTILE = """
class Meta(type):
    def __getattribute__(cls, name): raise SystemExit("meta")
    def __repr__(cls): raise SystemExit
class Trap(metaclass=Meta):
    def __getattribute__(self, name): raise SystemExit("attribute")
    def __len__(self): raise SystemExit
    def __iter__(self): raise SystemExit
    def __repr__(self): raise GeneratorExit("repr")
class NoText:
    def __repr__(self): return 7
class Long:
    def __repr__(self): return "long " * 10 ** 6
class Name(str):
    def __str__(self): raise SystemExit
    __repr__ = __len__ = __str__
class Answers:
    def __repr__(self): return Name("named")
class Fails(Exception):
    def __str__(self): raise SystemExit
def fail(): raise Fails
class Fake:
    __class__ = dict
    def __repr__(self): return "fake"
Fake.__module__, Fake.__qualname__ = "pandas.core.frame", "DataFrame"
trap = Trap()
get_ipython().display_formatter.formatters["text/plain"].for_type(dict, lambda *_: 1 / 0)
get_ipython().display_formatter.formatters["text/plain"].for_type(str, lambda *_: 1 / 0)
"""


async def test_hostile_values_are_told_as_errors_and_break_nothing() -> None:
    async with evaluating() as evaluate:
        values = await evaluate(
            HOSTILE,
            trap="trap",
            within="[trap]",
            kind="Trap",
            no_text="NoText()",
            long="Long()",
            name="Name('named')",
            answers="Answers()",
            fails="fail()",
            exits="exit",
            fake="Fake()",
            good="{'a': 'b'}",
        )
        assert values["trap"]["ename"] == "GeneratorExit"
        assert values["within"]["status"] == "error"
        assert values["kind"]["ename"] == "SystemExit"
        assert values["no_text"]["ename"] == "TypeError"
        assert (len(values["long"]["repr"]), values["long"]["truncated"]) == (10_000, True)
        assert values["name"]["ename"] == "SystemExit"
        assert values["answers"]["repr"] == "named"
        assert (values["fails"]["ename"], values["fails"]["evalue"]) == ("Fails", "")
        assert values["exits"]["status"] == "ok"
        assert (values["fake"]["repr"], "head" in values["fake"]) == ("fake", False)
        assert values["good"] == {"status": "ok", "json": {"a": "b"}}


async def test_an_interrupt_ends_the_evaluation(gate: Gate) -> None:
    async with evaluating() as evaluate:
        source = "def waits():\n    " + gate.source.replace("\n", "\n    ")
        running = evaluate.begins(source, first="1", waits="waits()", last="2")
        await asyncio.to_thread(gate.wait_until_it_runs)
        await evaluate.kernel.interrupt()
        ended = await running
        assert ended.values is not None
        assert [(value.status, value.ename) for value in ended.values.values()] == [
            ("ok", None),
            ("error", "KeyboardInterrupt"),
            ("error", "NotEvaluated"),
        ]
        assert (await evaluate("", x="1"))["x"] == {"status": "ok", "json": 1}


async def test_evaluation_leaves_nothing_behind() -> None:
    async with evaluating() as evaluate:
        await evaluate("known = {*globals(), 'known'}\n7", x="known", y="[1, 2]")
        seen = """
new = {name for name in set(globals()) - known if not name.startswith("_")}
print(new, _, __ == "", len(In), Out, get_ipython().payload_manager.read_payload())
"""
        assert text(await evaluate.begins(seen, x="1")) == "set() 7 True 3 {1: 7} []\n"


async def test_values_are_never_evaluated_twice_though_our_code_was_removed() -> None:
    async with evaluating() as evaluate:
        removes = "get_ipython().kernel.comm_manager.targets.clear(); calls = []"
        lost = await evaluate(removes, x="calls.append(1)")
        assert lost["x"]["ename"] == "NotEvaluated"
        assert "was removed from the kernel" in lost["x"]["evalue"]
        assert await evaluate.one("calls") == {"status": "ok", "json": []}


async def test_what_an_expression_prints_is_the_executions_output() -> None:
    async with evaluating() as evaluate:
        assert text(await evaluate.begins("print('code')", x="print('value')")) == "code\nvalue\n"


def test_nothing_more_is_sent_when_no_value_is_asked_for() -> None:
    info = {"implementation": "ipython", "language_info": {"version": "3.11.1"}}
    assert value_expressions(info, {}) == {}
    assert value_expressions({"implementation": "bash_kernel"}, {"x": "1"}) == {}
    assert list(value_expressions(info, {"x": "1"})) == ["agent_exec_values"]


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [7],
        [{"source": "agent_exec_values"}],
        [{"source": "agent_exec_values", "values": "no JSON"}],
        [{"source": "agent_exec_values", "values": '{"x": {"status": "perhaps"}}'}],
        [{"source": "agent_exec_values", "values": '{"x": {"status": "ok", "repr": 7}}'}],
        [{"source": "agent_exec_values", "values": json.dumps({"other": {"status": "ok"}})}],
        [{"source": "agent_exec_values", "values": json.dumps({"x": "a" * 5_000_000})}],
    ],
)
def test_what_code_in_the_kernel_makes_up_is_not_believed(payload: Any) -> None:
    values = values_in({"status": "ok", "payload": payload}, ["x"])
    assert [(name, value.ename) for name, value in values.items()] == [("x", "NotEvaluated")]


def test_values_that_are_nested_too_deeply_were_not_evaluated() -> None:
    deep = '{"a": {"status": "ok", "json": ' + "[" * 100_000 + "]" * 100_000 + "}}"
    reply = {"status": "ok", "payload": [{"source": VALUES_SOURCE, "values": deep}]}
    assert values_in(reply, ["a"])["a"].status == "error"
