"""What the rules say of single sources, and where they end."""

from __future__ import annotations

import pytest

from jupyter_agent_exec.code_rules.classifier import (
    MOST_CHARACTERS,
    MOST_REASONS,
    SHOWN,
    names_in,
    names_made_by,
    reasons_to_ask,
)


def texts(source: str, *allowed: str, **known: object) -> list[tuple[int, str]]:
    given = {"outside": {}, **known}
    found = reasons_to_ask(source, allowed or ("read", "plot"), **given)  # type: ignore[arg-type]
    return [(reason.line, reason.text) for reason in found]


def test_each_reason_has_its_line_and_says_what_the_code_does_there() -> None:
    assert texts("import os\nx = 1\nos.remove('a')\ntrain(x)\n") == [
        (3, "deletes a file: os.remove"),
        (4, "calls `train`, which the rules do not know"),
    ]
    assert reasons_to_ask("!ls")[0].sentence == (
        "Asks because line 1 uses a command or magic of IPython: !ls."
    )


@pytest.mark.parametrize(
    "source",
    [
        " " * 30_000 + "$",
        "!" + "pip " * 7_000,
        "a " * 15_000,
        "pd.read_csv('" + "ab:" * 10_000 + "')",
    ],
)
def test_long_lines_take_no_time(source: str) -> None:
    assert reasons_to_ask(source, outside={})


@pytest.mark.parametrize(
    "source",
    ["(" * 500 + ")" * 500, "-" * 5_000 + "1", "+".join(["a"] * 5_000), "x" + ".a" * 5_000, "\0"],
)
def test_code_that_is_nested_too_deeply_asks(source: str) -> None:
    assert reasons_to_ask(source, outside={})
    names_in(source)
    names_made_by(source)


def test_long_code_asks_and_long_lists_and_names_are_cut() -> None:
    assert texts("#" * (MOST_CHARACTERS + 1)) == [(1, "begins code that is too long for the rules")]
    assert len(texts("\n".join(f"unknown_{number}()" for number in range(100)))) == MOST_REASONS
    ((_, text),) = texts(f"{'n' * 500}()")
    assert len(text) < SHOWN + 60


def test_calls_that_are_chained_or_nested_are_read_once() -> None:
    chain = "df" + ".dropna()" * 60
    assert texts(chain) == []
    nested = "getattr(" * 40 + "df" + ", 'mean')" * 40
    assert texts(nested) == []
    assert len(texts("pd.read_csv(" * 40 + "'a.csv'" + ")" * 40)) == 1


def test_a_kind_that_is_allowed_hides_no_other() -> None:
    source = "!ls\nimport os\nos.remove('a')"
    assert [line for line, _ in texts(source, "shell")] == [3]
    assert [line for line, _ in texts(source, "files")] == [1]
    assert texts(source, "shell", "files") == []
    assert texts("open('a')", "plot") == [(1, "reads a file: open")]
    assert texts("plt.plot([1])", "read") == [(1, "draws: matplotlib.pyplot.plot")]
    assert texts("eval('1')", "read", "plot", "files", "network", "shell", "install", "variables")


def test_what_an_agent_made_before_is_its_own() -> None:
    there = {"mine": "instance builtins.list", "yours": "instance builtins.list"}
    assert texts("mine = 1\nmine", outside=there, own={"mine"}) == []
    assert texts("mine.append(1)", outside=there, own={"mine"}) == []
    assert texts("yours = 1", outside=there, own={"mine"}) == [
        (1, "replaces your variable `yours`")
    ]
    assert texts("new = 1", outside=None) == [(1, "sets `new`, which may be a variable of yours")]


def test_names_are_found_wherever_a_source_makes_them() -> None:
    source = "import a.b as c\nx, (y, *z) = 1, (2, 3)\nfor i in x: pass\ndef f(p): q = 1\n[w := 1]"
    assert names_made_by(source) == {"x", "y", "z", "i", "f", "w"}
    assert {"c", "x", "y", "z", "i", "f", "q", "w"} <= set(names_in(source))
