"""What the tool set answers, as Pantheon's own does."""

from __future__ import annotations

import asyncio
import base64
import math
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from calls import Run
from pantheon.toolset import ToolSet
from pantheon.toolsets.python.python_interpreter import PythonInterpreterError

from jupyter_agent_exec.adapters.pantheon import PythonInterpreterToolSet

PNG = b"\x89PNG"
PLOT = "plt.figure(); _ = plt.plot([1, {}])"


def test_it_is_a_tool_set_with_the_same_tools(toolset: PythonInterpreterToolSet) -> None:
    assert isinstance(toolset, ToolSet)
    assert set(toolset.tool_functions) == {"run_python_code", "manage_interpreters"}
    assert set(toolset.functions) > {
        "delete_interpreter",
        "list_interpreters",
        "new_interpreter",
        "run_code_in_interpreter",
    }
    listed = asyncio.run(toolset.list_tools())
    (tool,) = [each for each in listed["tools"] if each["name"] == "run_python_code"]
    assert [each["name"] for each in tool["inputs"]] == [
        "code",
        "interpreter_id",
        "result_var_name",
    ]
    assert tool["doc"].startswith("Run Python code")


def test_the_answer_has_what_pantheon_s_has(run: Run) -> None:
    answer = run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx = 3")
    assert answer == {"success": True, "result": None, "stdout": "out\n", "stderr": "err\n"}
    assert run("y = x + 1", result_var_name="y")["result"] == 4


def test_each_expression_that_is_not_none_is_printed(run: Run) -> None:
    code = "'a b'\n1 + 1\nNone\nprint('c')\n[1, 'd']\nx = 5\nfor n in [7]: n\nx;"
    assert run(code)["stdout"] == "a b\n2\nc\n[1, 'd']\n5\n"


def test_what_ipython_runs_by_itself_is_not_echoed(run: Run) -> None:
    assert run("calls = []")["success"]
    told = run("%timeit -n3 -r2 calls.append(1) or 'again'\nlen(calls)")["stdout"]
    assert "again" not in told
    assert told.splitlines()[-1] == "6"


def test_awaited_values_and_those_of_magics_are_printed(run: Run) -> None:
    assert run("import asyncio\nawait asyncio.sleep(0, 'awaited')")["stdout"] == "awaited\n"
    assert run("%%time\n40 + 2")["stdout"].splitlines()[-1] == "42"


def test_a_value_is_printed_as_print_does(run: Run) -> None:
    code = "import numpy, pandas\nnumpy.arange(3)\npandas.DataFrame({'n': [1]})\nlist(range(60))"
    printed = "[0 1 2]\n   n\n0  1\n" + str(list(range(60))) + "\n"
    assert run(code)["stdout"] == printed


OBJECTS = """
import collections, datetime, decimal, fractions, uuid
import numpy as np, pandas as pd
point = collections.namedtuple("Point", "x y")
when = datetime.datetime(2026, 5, 4, 3, 2, 1, 5, tzinfo=datetime.timezone.utc)
frame = pd.DataFrame({"n": [1, 2], 3: pd.Series(["a", None], dtype="string")})
frame[("t", 1)] = pd.to_datetime([when, None])
frame.index = pd.Index(["first", "second"], name="which")
frame["c"] = pd.Categorical(["x", "y"])
v = {
    "plain": {"n": [1.5, None, True, "text"], "$": 1},
    1: (1, (2,), [3]), (2, 3): {4, "x"}, None: frozenset([5]), 1.5: {"a": {"b": (1,)}},
    "odd": [float("inf"), -float("inf"), 1 << 80, 1 + 2j, b"bytes", bytearray(b"x")],
    "numpy": [np.float64(1.5), np.int8(3), np.bool_(True), np.str_("s"), np.datetime64("2026-05")],
    "arrays": [np.arange(6.0).reshape(2, 3), np.array(["a"]), np.array([1, "x", None], object)],
    "times": [when, when.date(), when.timetz(), datetime.timedelta(1, 2, 3), pd.Timestamp(when)],
    "exact": [decimal.Decimal("1.10"), fractions.Fraction(1, 3), uuid.UUID(int=7)],
    "pandas": [frame, frame["n"], frame.T.index, pd.MultiIndex.from_tuples([(1, "a")]), pd.NaT],
    "counted": collections.Counter("aab"), "pair": point(1, 2), "range": pd.DataFrame({"n": [1]}),
}
"""


def alike(one: Any, other: Any) -> bool:
    """Tell whether two objects hold the same, with the same types where JSON would lose them."""
    if isinstance(other, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in other)
    if isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(other, np.ndarray):
        return one.dtype == other.dtype and bool(np.array_equal(one, other))
    if isinstance(other, (pd.DataFrame, pd.Series, pd.Index)):
        return bool(one.equals(other)) and repr(one) == repr(other)
    return bool(one is other or one == other)


def test_a_variable_comes_back_as_the_object_that_it_is(run: Run) -> None:
    answer = run(OBJECTS, result_var_name="v")
    names: dict[str, Any] = {}
    exec(OBJECTS, names)
    v, result = names["v"], answer["result"]
    assert {key: alike(result[key], v[key]) for key in v} == dict.fromkeys(v, True)
    assert [type(each) for each in result[1]] == [int, tuple, list]
    assert "truncated" not in answer


def test_nan_is_nan_and_a_long_list_is_whole(run: Run) -> None:
    answer = run("v = [float('nan'), *range(100_000)]", result_var_name="v")
    assert math.isnan(answer["result"][0])
    assert answer["result"][1:] == list(range(100_000))
    assert "truncated" not in answer


def test_what_is_too_large_is_described_and_says_so(run: Run) -> None:
    answer = run("v = list(range(1_000_000))", result_var_name="v")
    assert answer["truncated"] is True
    assert answer["result"].startswith("[0, 1, 2, 3")


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("v = object", "<class 'object'>"),
        ("import threading\nv = threading.Lock()", "<unlocked _thread.lock object"),
        ("v = '\\ud800'", r"'\ud800'"),
        ("class Hostile(dict):\n    def items(self): 1 / 0\nv = Hostile(a=1)", {"a": 1}),
        ("v = None", None),
    ],
)
def test_another_variable_is_described(run: Run, code: str, value: Any) -> None:
    result = run(code, result_var_name="v")["result"]
    assert result.startswith(value) if isinstance(value, str) else result == value


@pytest.mark.parametrize("name", ["missing", "not a name", "1 / 0"])
def test_a_variable_that_is_missing_is_none(run: Run, name: str) -> None:
    answer = run("x = 1", result_var_name=name)
    assert (answer["success"], answer["result"]) == (True, None)


def test_an_error_raises_with_what_was_printed_and_the_traceback(run: Run) -> None:
    with pytest.raises(PythonInterpreterError) as caught:
        run("print('before')\n\n1 / 0")
    text = str(caught.value)
    assert text.startswith("before\n")
    assert text.index("Traceback (most recent call last)") < text.index("line 3")
    assert text.endswith("ZeroDivisionError: division by zero")
    assert "\x1b" not in text


def test_all_figures_are_returned_and_saved_in_the_work_folder(run: Run, folder: Path) -> None:
    answer = run("\n".join([PLOT.format(2), "plt.show()", PLOT.format(3), PLOT.format(4)]))
    assert answer["hidden_to_model"] == ["base64_uri"]
    assert len(answer["fig_storage_paths"]) == len(answer["base64_uri"]) == 3
    assert answer["fig_storage_path"] == answer["fig_storage_paths"][-1]
    contents = []
    for path, uri in zip(answer["fig_storage_paths"], answer["base64_uri"], strict=True):
        assert path.startswith(".matplotlib_figs/")
        head, _, data = uri.partition(",")
        assert head == "data:image/png;base64"
        contents.append((folder / path).read_bytes())
        assert contents[-1] == base64.b64decode(data)
        assert contents[-1].startswith(PNG)
    assert len(set(contents)) == 3
    assert "fig_storage_path" not in run("1")


def test_a_figure_that_is_shown_twice_is_one(run: Run) -> None:
    answer = run("fig, ax = plt.subplots()\n_ = ax.plot([1, 2])\nfig")
    assert len(answer["base64_uri"]) == 1


def test_figures_that_look_the_same_are_all_returned(run: Run) -> None:
    assert len(run(f"for _ in range(3):\n    {PLOT.format(9)}\n    plt.show()")["base64_uri"]) == 3


def test_figures_are_shown_though_code_selects_agg(run: Run) -> None:
    code = (
        "import matplotlib\nmatplotlib.use('Agg')\n" + PLOT.format(5) + "\nplt.show()\nplt.close()"
    )
    assert len(run(code)["base64_uri"]) == 1


def test_figures_are_found_wherever_the_code_went(run: Run, folder: Path, tmp_path: Path) -> None:
    answer = run(f"import os\nos.chdir({str(tmp_path)!r})\n{PLOT.format(6)}")
    assert (folder / answer["fig_storage_path"]).read_bytes().startswith(PNG)
    run(f"os.chdir({str(folder)!r})")


def test_asyncio_run_works_in_code(run: Run) -> None:
    code = "import asyncio\nasync def main(): return 7\nasyncio.run(main())"
    assert run(code)["stdout"] == "7\n"


def test_interpreters_are_made_listed_and_deleted(toolset: PythonInterpreterToolSet) -> None:
    async def manage() -> None:
        made = await toolset.manage_interpreters("create")
        own = made["interpreter_id"]
        assert made == {"success": True, "interpreter_id": own}
        listed = await toolset.manage_interpreters("list")
        assert listed["success"]
        assert {"id": own, "status": "running"} in listed["interpreters"]
        await toolset.run_python_code("only = 1", interpreter_id=own)
        answer = await toolset.run_code_in_interpreter("only", own)
        assert answer == {"success": True, "result": None, "stdout": "1\n", "stderr": ""}
        deleted = await toolset.manage_interpreters("delete", own)
        assert deleted == {"success": True, "interpreter_id": own}
        assert (await toolset.delete_interpreter(own))["error"] == f"Interpreter {own} not found"
        assert not (await toolset.manage_interpreters("delete"))["success"]
        unknown = await toolset.manage_interpreters("restart")
        assert unknown == {"success": False, "error": "Unknown operation: restart"}
        with pytest.raises(ValueError, match="not found"):
            await toolset.run_python_code("1", interpreter_id=own)

    asyncio.run(manage())


def test_init_code_runs_in_each_interpreter(folder: Path) -> None:
    async def start() -> None:
        async with PythonInterpreterToolSet("p", str(folder), init_code="base = 40") as toolset:
            answer = await toolset.run_python_code("base + 2")
            assert answer["stdout"] == "42\n"
            made = await toolset.new_interpreter()
            assert (await toolset.run_code_in_interpreter("base", made["interpreter_id"]))[
                "stdout"
            ] == "40\n"
        async with PythonInterpreterToolSet("p", str(folder), init_code="1 / 0") as toolset:
            with pytest.raises(PythonInterpreterError, match="ZeroDivisionError"):
                await toolset.new_interpreter()
            assert (await toolset.list_interpreters())["interpreters"] == []

    asyncio.run(start())


def test_it_goes_to_another_process_as_pantheon_s_own_does(folder: Path) -> None:
    sent = cloudpickle.dumps(PythonInterpreterToolSet("sent", str(folder), timeout=60))

    async def use() -> str:
        async with cloudpickle.loads(sent) as toolset:
            return str((await toolset.run_python_code("'there'"))["stdout"])

    assert asyncio.run(use()) == "there\n"


def test_another_executor_is_refused() -> None:
    with pytest.raises(ValueError, match="shared_executor"):
        PythonInterpreterToolSet("python", shared_executor=object())
