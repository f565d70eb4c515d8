"""Looking at the variables of real kernels: what is seen, and that nothing else happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from jupyter_agent_exec.kernels.execute_request import ExecuteOutcome
from jupyter_agent_exec.kernels.live_kernels import LiveKernel
from jupyter_agent_exec.kernels.variables import variable_expressions
from jupyter_agent_exec.models import Changes, VariableChange
from tests.kernels.kernel_server import AgentRun, kernel_server, text

pytestmark = pytest.mark.usefixtures("jp_environ")


class Looked:
    """Runs code in a kernel and looks at its variables before and after."""

    def __init__(self, kernel: LiveKernel) -> None:
        self.kernel = kernel
        self._number = 0

    async def ended(self, source: str, *, looks: bool = True) -> ExecuteOutcome:
        self._number += 1
        run = AgentRun(self._number, source)
        run.run.looks = looks
        return await run.in_turn(self.kernel)

    async def __call__(self, source: str) -> dict[str, VariableChange]:
        ended = await self.ended(source)
        assert ended.variables is not None, ended
        return {change.name: change for change in ended.variables.variables}


@asynccontextmanager
async def looking() -> AsyncIterator[Looked]:
    async with kernel_server() as server:
        looked = Looked(await server.live.adopt(await server.start_kernel()))
        await looked.ended("pass")  # the second listing is the first that tells changes
        yield looked


VALUES: list[tuple[str, str, Any, int | None, str | None]] = [
    ("7", "int", None, None, "7"),
    ("10 ** 5000", "int", None, None, None),
    ("-1.5", "float", None, None, "-1.5"),
    ("float('nan')", "float", None, None, "nan"),
    ("True", "bool", None, None, "True"),
    ("1 + 2j", "complex", None, None, "(1+2j)"),
    ("None", "NoneType", None, None, "None"),
    ("'quokka\\n'", "str", None, 7, "'quokka\\n'"),
    ("'\\ud800\\u202e'", "str", None, 2, "'\\ud800\\u202e'"),
    ("'a' * 10 ** 7", "str", None, 10**7, "'" + "a" * 78 + "…"),
    ("b'ab'", "bytes", None, 2, "b'ab'"),
    ("[1, 'a', None]", "list", None, 3, "[1, 'a', None]"),
    ("(1,)", "tuple", None, 1, "(1,)"),
    ("{'a': [1, {2: 3}]}", "dict", None, 1, "{'a': [1, {2: 3}]}"),
    ("{7}", "set", None, 1, "{7}"),
    ("set()", "set", None, 0, "set()"),
    ("frozenset([7])", "frozenset", None, 1, "frozenset({7})"),
    ("[object(), len]", "list", None, 2, "[<object>, <builtin_function_or_method>]"),
    ("list(range(100_000))", "list", None, 100_000, None),
    ("range(3)", "range", None, None, None),
    ("lambda: 1", "function", None, None, None),
    ("__import__('math')", "module", None, None, None),
    ("int", "type", None, None, None),
    ("ValueError('x')", "ValueError", None, None, None),
    ("__import__('collections').Counter('aab')", "collections.Counter", None, 2, None),
    ("__import__('collections').OrderedDict(a=1)", "collections.OrderedDict", None, 1, None),
    ("__import__('pathlib').PurePosixPath('/')", "PurePosixPath", None, None, None),
    ("__import__('numpy').zeros((3, 4))", "numpy.ndarray", [3, 4], None, None),
    ("__import__('numpy').array(5)", "numpy.ndarray", [], None, None),
    ("__import__('numpy').array([object()])", "numpy.ndarray", [1], None, None),
    ("__import__('numpy').zeros((3000, 400)).T", "numpy.ndarray", [400, 3000], None, None),
    ("__import__('numpy').float64(1.5)", "numpy.float64", None, None, "np.float64(1.5)"),
    ("__import__('pandas').DataFrame({'a': [1, 2]})", "pandas.DataFrame", [2, 1], None, None),
    ("__import__('pandas').Series(['a', 'b'])", "pandas.Series", [2], None, None),
    ("__import__('pandas').DataFrame().index", "pandas.RangeIndex", [0], None, None),
    ("__import__('pandas').DataFrame(index=['x'])", "pandas.DataFrame", [1, 0], None, None),
    ("__import__('pandas').Index(['a', 'b'])", "pandas.Index", [2], None, None),
    ("__import__('pandas').Index([1, None], dtype='Int64')", "pandas.Index", [2], None, None),
    ("__import__('pandas').date_range('2020', periods=2)", "pandas.DatetimeIndex", [2], None, None),
    ("__import__('pandas').CategoricalIndex(['a', 'b'])", "CategoricalIndex", [2], None, None),
    ("__import__('pandas').MultiIndex.from_tuples([(1, 2)])", "pandas.MultiIndex", [1], None, None),
]
"""Code that makes a value, and what is to be told of it."""


async def test_values_are_told_by_type_shape_length_and_preview() -> None:
    async with looking() as looked:
        await looked("''")
        for source, type_name, shape, length, preview in VALUES:
            (change,) = (await looked(f"value = {source}")).values()
            assert change.type is not None
            assert change.type.endswith(type_name), source
            assert (change.shape, change.length) == (shape, length), source
            if preview is not None or length is None:
                assert change.preview == preview, source
            assert len(change.preview or "") <= 80, source
            same = await looked("value = value")
            assert same == {}, source


MUTATIONS = [
    ("x = [1, 2, 3]", "x[1] = 9"),
    ("x = [[1], 2]", "x[0].append(3)"),
    ("x = {'a': 1}", "x['a'] = 2"),
    ("x = {1, 2}", "x.remove(1)"),
    ("x = list(range(1000))", "x.append(1)"),
    ("x = 'a' * 1000", "x = 'a' * 999 + 'b'"),
    ("x = 10 ** 1000", "x = 10 ** 1000 + 1"),
    ("import numpy as np; x = np.zeros(10)", "x[3] = 1"),
    ("x = np.zeros((1000, 1000))", "x += 1"),
    ("import pandas as pd; x = pd.DataFrame({'a': [1, 2]})", "x.loc[0, 'a'] = 5"),
    ("x = pd.DataFrame({'a': [1, 2]})", "x['b'] = 'text'"),
    ("x = pd.DataFrame({'a': [1, 2]})", "x.columns = ['z']"),
    ("x = pd.Series([1.0, 2.0])", "x[0] = 3"),
    ("x = object()", "x = object()"),
    ("x = {'a': [[[[[1]]]]]}", "x['a'][0][0][0][0].append(2)"),
    ("x = [[0] * 40 for _ in range(40)]", "x[39][39] = 1"),
    ("x = [-1]", "x[0] = -2"),
    ("x = 'a' * 100_000", "x = 'a' * 50_000 + 'b' * 50_000"),
    ("x = np.zeros(100_000)", "x[50_001] = 1"),
    ("x = np.array([None, {}])", "x[1]['a'] = 1"),
    ("x = pd.DataFrame(np.zeros((2, 45)))", "x.iloc[1, 44] = 5"),
    ("x = pd.DataFrame({'a': ['b', 'c']})", "x.loc[1, 'a'] = 'd'"),
    ("x = pd.DataFrame({'a': [1]})", "x.index.name = 'z'"),
    ("x = pd.Series([1, None], dtype='Int64')", "x[0] = 3"),
    ("x = pd.Series(['a', 'b'], dtype='category')", "x[0] = 'b'"),
    ("class A: pass\nx = A(); x.a = {'b': [1]}", "x.a['b'].append(2)"),
    ("import collections; x = collections.deque([1])", "x.append(2)"),
    ("x = collections.Counter('aab')", "x['b'] += 1"),
    ("x = collections.namedtuple('N', 'a')([1])", "x.a.append(2)"),
    ("import datetime; x = datetime.date(2020, 1, 1)", "del x; x = datetime.date(2021, 1, 1)"),
    ("def x(): return 1", "del x\ndef x(): return 2"),
    ("import math as x", "x = pd"),
    ("x = 1", "x = True"),
    ("x = 0.0", "x = -0.0"),
]


async def test_changes_in_place_are_seen() -> None:
    async with looking() as looked:
        for before, change in MUTATIONS:
            await looked(before)
            assert await looked("'nothing' + str()") == {}, before
            told = await looked(change)
            assert [(told.change, told.name) for told in told.values()] == [("changed", "x")], (
                change
            )


HOSTILE = """
ran = []
def touched(name):
    def touch(self, *_, **__):
        ran.append(name)
        raise SystemExit(name)
    return touch

SPECIAL = (
    "__repr__", "__str__", "__len__", "__iter__", "__getattr__", "__getattribute__", "__eq__",
    "__hash__", "__bool__", "__format__", "__sizeof__", "__dir__", "__index__", "__int__",
    "__array__", "__getitem__", "__contains__", "__reduce__", "_repr_html_", "_ipython_display_",
    "_repr_mimebundle_", "_ipython_canary_method_should_not_exist_",
)
def traps(*skip):
    made = {name: touched(name) for name in SPECIAL if name not in skip}
    made["shape"] = property(touched("shape"))
    made["__class__"] = property(touched("__class__"))
    made["__dict__"] = property(touched("__dict__"))
    return made

class Meta(type):
    __eq__ = touched("meta eq")
    __hash__ = touched("meta hash")
    __getattribute__ = touched("meta getattribute")
    __repr__ = touched("meta repr")
    __instancecheck__ = touched("meta instancecheck")
    __subclasscheck__ = touched("meta subclasscheck")
    __len__ = touched("meta len")

plain = type("Plain", (), traps())()
listed = type("Listed", (list,), traps())([1, 2])
mapped = type("Mapped", (dict,), traps())(a=1)
worded = type("Worded", (str,), traps())("abc")
counted = type("Counted", (int,), traps())(3)
coupled = type("Coupled", (tuple,), traps())((1,))
metaclassed = type.__call__(Meta, "Metaclassed", (), {})
instance = object.__new__(metaclassed)
lying = type("ndarray", (), {**traps(), "__module__": "numpy"})()
framed = type("DataFrame", (), {**traps(), "__module__": "pandas"})()
class Dtype(pandas.api.extensions.ExtensionDtype):
    name, type = "anybody's", int
class Array(pandas.api.extensions.ExtensionArray):
    dtype = Dtype()
    def __len__(self):
        ran.append("array len")
        return 2
arrayed = pandas.Series(Array(), copy=False)
tabled = pandas.DataFrame({"a": arrayed}, copy=False)
indexed = pandas.Index._simple_new(Array(), None)
moduled = type("Moduled", (), {**traps(), "__module__": property(touched("__module__"))})()
unhashable = [plain, {1: plain}, (instance,), {"k": mapped}]
class Loud:
    def __del__(self):
        ran.append("__del__")
holder = [Loud()]
class Lazy(type(__import__("sys"))):
    __getattr__ = touched("lazy module")
__import__("sys").modules["polars"] = Lazy("polars")
lazy = type("DataFrame", (), {"__module__": "polars"})()
ran.clear()
"""


async def test_nobodys_code_runs_because_it_is_looked_at() -> None:
    async with looking() as looked:
        await looked.ended("import numpy, pandas")
        told = await looked(HOSTILE)
        assert {name: told[name].length for name in ("listed", "mapped", "worded", "coupled")} == {
            "listed": 2,
            "mapped": 1,
            "worded": 3,
            "coupled": 1,
        }
        assert told["lying"].shape is None
        assert told["lying"].type == "numpy.ndarray"
        assert [told[name].shape for name in ("arrayed", "tabled", "indexed")] == [
            [2],
            [2, 1],
            None,
        ]
        assert told["metaclassed"].type == "Meta"
        assert told["instance"].type == "Metaclassed"
        assert told["moduled"].type == "?.Moduled"
        assert text(await looked.ended("print(ran)")) == "[]\n"
        await looked.ended("del __import__('sys').modules['polars']")  # tracebacks ask it
        assert (await looked.ended("plain = plain\n1 / 0")).status == "error"
        assert text(await looked.ended("print(ran)")) == "[]\n"


async def test_nothing_of_ours_stays_in_the_kernel() -> None:
    source = (
        "print(sorted(globals()), list(In), dict(Out), sorted(__import__('sys').modules),"
        " list(get_ipython().history_manager.get_range()), get_ipython().payload_manager._payload,"
        " get_ipython().execution_count, _)"
    )
    told: dict[bool, list[str]] = {}
    for looks in (True, False):
        async with looking() as looked:
            for code in ("x = {1: [2]}", "x\n", "y = 1 / 0", "_"):
                await looked.ended(code, looks=looks)
            told[looks] = [
                text(await looked.ended(source, looks=looks)),
                text(await looked.ended("print(dir(), dir(get_ipython()))", looks=looks)),
            ]
    assert told[True] == told[False]
    assert "x" in told[True][0]


async def test_python_that_was_covered_up_is_found_nevertheless() -> None:
    async with looking() as looked:
        covered = "exec = eval = type = list = str = get_ipython = __import__ = len = id = None"
        assert set(await looked("import sys\n" + covered)) >= {"sys", "exec", "list"}
        assert set(await looked("z = 1")) == {"z"}


async def test_variables_go_with_del_and_with_reset() -> None:
    async with looking() as looked:
        await looked("a = 1; b = 2; _private = 3")
        assert {name: told.change for name, told in (await looked("del a")).items()} == {
            "a": "removed"
        }
        assert {name: told.change for name, told in (await looked("%reset -f")).items()} == {
            "b": "removed",
            "_private": "removed",
        }
        assert set(await looked("c = 1")) == {"c"}


@pytest.mark.parametrize("raised", ["1 / 0", "raise KeyboardInterrupt"])
async def test_after_an_error_or_an_interrupt_changes_are_unknown_once(raised: str) -> None:
    async with looking() as looked:
        failed = await looked.ended(f"a = 1\n{raised}")
        assert failed.error is not None
        assert failed.variables is None
        assert (await looked.ended("b = 1")).variables is None
        assert set(await looked("c = 1")) == {"c"}


async def test_an_interrupt_while_it_is_looked_at_fails_nothing() -> None:
    async with looking() as looked:
        slow = """
import signal, sys
a = 1
def interrupt(frame, event, argument):
    if frame.f_code.co_name == "described":
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)
sys.setprofile(interrupt)
"""
        ended = await looked.ended(slow)
        assert ended.status == "ok"
        assert ended.variables is None
        await looked.ended("b = 1")
        assert set(await looked("c = 1")) == {"c"}


async def test_what_a_person_did_meanwhile_is_not_the_agents() -> None:
    async with kernel_server() as server:
        kernel_id = await server.start_kernel()
        looked = Looked(await server.live.adopt(kernel_id))
        await looked.ended("mine = 1")
        person = await server.person(kernel_id)
        await person.has_run("theirs = 1")
        await looked.ended("", looks=False)  # what theirs has published came before
        assert (await looked.ended("mine = 2")).variables is None
        assert set(await looked("mine = 3")) == {"mine"}


async def test_of_very_many_variables_the_newest_are_told() -> None:
    async with looking() as looked:
        await looked.ended("base = 1")
        many = "for n in range(5000): globals()[f'v{n}'] = n"
        ended = await looked.ended(many)
        assert ended.variables is not None
        assert [change.name for change in ended.variables.variables] == [
            f"v{n}" for n in range(4800, 5000)
        ]
        assert ended.variables.more_variables == 4801
        assert set(await looked("last = 1")) == {"last"}
        assert await looked("'nothing' + str()") == {}
        told = await looked(
            "base = 2; del v7; for_many = [globals().update({f'w{n}': n}) for n in range(300)]"
        )
        assert {"base", "v7", "w299"} < set(told), "what is new hides no change"


BEFORE_200 = """
import math, pandas
x0, kept = 0, pandas.DataFrame({"a": range(400), "b": "text"})
def trusted(): return True
for i in range(200): globals()[f"v{i}"] = i
"""
HARM = [
    ("sales.drop(sales.index, inplace=True)", {"sales": ("changed", [400, 2], [0, 2])}),
    ("sales['z'] = 1", {"sales": ("changed", [400, 2], [400, 3])}),
    ("sales = None", {"sales": ("changed", [400, 2], None)}),
    ("del sales", {"sales": ("removed", [400, 2], None)}),
    ("tmp = 1; x0 = 'changed'", {"tmp": ("added", None, None), "x0": ("changed", None, None)}),
    ("del math", {"math": ("removed", None, None)}),
    ("import pandas as math", {"math": ("changed", None, None)}),
    ("def trusted(): return False", {"trusted": ("changed", None, None)}),
    ("print = None", {"print": ("added", None, None)}),
    ("get_ipython = None", {"get_ipython": ("changed", None, None)}),
    ("_hidden = kept", {"_hidden": ("added", None, [400, 2])}),
]
"""Code, and what is told of it: the change, and a table's shape before and after."""


async def test_a_change_is_told_however_many_variables_there_are() -> None:
    async with looking() as looked:
        await looked(BEFORE_200)
        for source, expected in HARM:
            await looked.ended("import math; sales = kept.copy(); x0 = 0; tmp = None; del tmp")
            told = await looked(source)
            assert {
                name: (each.change, each.before and each.before.shape, each.shape)
                for name, each in told.items()
            } == expected, source
            if source.startswith("tmp"):
                was = told["x0"].before
                assert (was and was.preview, told["x0"].preview) == ("0", "'changed'")


LARGE = [
    ("x = [[0] * 100 for _ in range(100)]", "x[99][99] = 1"),
    ("x = np.zeros((3000, 3000))", "x[1501, 1501] = 1"),
    ("x = {n: np.zeros((300, 300)) for n in range(9)}", "x[8][150, 150] = 1"),
    ("import io; x = io.StringIO()", "x.write('more'); None"),
]


async def test_what_is_not_read_whole_is_counted() -> None:
    async with looking() as looked:
        await looked("import numpy as np")
        for before, change in LARGE:
            await looked(before)
            ended = await looked.ended(change)
            assert ended.variables == Changes(not_compared=1), before
            assert set(await looked("x = None")) == {"x"}


async def test_what_a_thread_prints_while_it_is_looked_at_is_the_executions() -> None:
    async with looking() as looked:
        source = """
import threading, sys
def later():
    gate.wait()
    print("late", flush=True)
gate = threading.Event()
thread = threading.Thread(target=later)
thread.start()
def now(frame, event, argument):
    if frame.f_code.co_name == "look":
        sys.setprofile(None)
        gate.set()
        thread.join()
sys.setprofile(now)
"""
        assert text(await looked.ended(source)) == "late\n"


def test_only_ipython_is_asked() -> None:
    assert variable_expressions({}) == {}
    other = {"implementation": "bash", "language_info": {"name": "bash"}}
    assert variable_expressions(other) == {}


TARGETS = "get_ipython().kernel.comm_manager.targets"


async def test_our_code_is_sent_once_in_a_kernels_life() -> None:
    async with looking() as looked:
        sent = [
            text(await looked.ended(f"print(id({TARGETS}['jupyter_agent_exec']))"))
            for _ in range(3)
        ]
        assert len(set(sent)) == 1


async def test_our_code_is_sent_again_after_somebody_has_removed_it() -> None:
    async with kernel_server() as server:
        kernel_id = await server.start_kernel()
        looked = Looked(await server.live.adopt(kernel_id))
        await looked.ended("pass")
        assert (await looked.ended(f"{TARGETS}.clear(); a = 1")).variables is None
        await looked.ended("b = 1")
        person = await server.person(kernel_id)
        await person.has_run(f"{TARGETS}.clear(); theirs = 1")
        await looked.ended("", looks=False)  # what theirs has published came before
        await looked.ended("c = 1")
        await looked.ended("d = 1")
        assert set(await looked("e = 1")) == {"e"}


async def test_code_that_cannot_stay_is_sent_once_a_run() -> None:
    async with looking() as looked:
        await looked("'begins' + str()")
        unwilling = f"""
manager = get_ipython().kernel.comm_manager
{TARGETS}.clear()
manager.register_target = lambda *_: None
"""
        ended = await looked.ended(unwilling)
        assert (ended.status, ended.variables) == ("ok", None)
        assert (await looked.ended("del manager.register_target")).status == "ok"
        await looked.ended("y = 1")
        assert set(await looked("x = 1")) == {"x"}
