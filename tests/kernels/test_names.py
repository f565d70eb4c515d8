"""Which names a source reads and changes."""

from __future__ import annotations

import pytest

from jupyter_agent_exec.kernels.runs import MOST_CHARACTERS, Names, names_of


def names(text: str) -> set[str]:
    return set(text.split())


@pytest.mark.parametrize(
    ("source", "reads", "may_read", "binds", "may_change"),
    [
        ("df.plot()", "df", "", "", ""),
        ("df = load(path)\ndf.plot()", "load path", "", "df", ""),
        ("x += 1", "x", "", "x", ""),
        ("a, (b, *c) = q", "q", "", "a b c", ""),
        ("del w", "", "", "w", ""),
        ("(n := m)\nn", "m", "", "n", ""),
        ("with open(p) as f: df = q", "open p", "q", "f", "df"),
        ("%%time\ndf = q", "q", "", "df", ""),
        ("if a:\n    df = b\ndf", "a", "b df", "", "df"),
        ("while a: b", "a", "b", "", ""),
        ("for i in r:\n    t = i", "r", "i", "", "i t"),
        ("try:\n    q\nexcept E:\n    s = 1", "", "q E", "", "s"),
        ("assert a, b", "a", "b", "", ""),
        ("a < b < c", "a b", "c", "", ""),
        ("match p:\n    case [a]: b", "p", "b", "", ""),
        ("[x * y for x in xs if x]", "xs", "xs y", "", ""),
        ("g(lambda r: r * k)", "g", "k", "", ""),
        ("def f(a=d):\n    return df\nf()", "d", "", "f", ""),
        ("class A(B):\n    c = d", "B", "", "A", ""),
        ("import pandas as pd, a.b", "", "", "pd a", ""),
        ("from a import b as c", "", "", "c", ""),
        ("df['a'] = v", "df v", "", "", "df"),
        ("a.b[0].c += 1", "a", "", "", "a"),
        ("l.append(v)", "l v", "", "", "l"),
        ("df.drop(k, inplace=True)", "df k", "", "", "df"),
        ("await x", "x", "", "", ""),
        ("%matplotlib inline\n!ls {y}\nz = q", "q", "", "z", ""),
    ],
)
def test_a_source_tells_names(
    source: str, reads: str, may_read: str, binds: str, may_change: str
) -> None:
    found = names_of(source)
    assert found.unknown is None
    assert (found.reads, found.may_read) == (names(reads), names(may_read))
    assert (set(found.binds), found.may_change) == (names(binds), names(may_change))


@pytest.mark.parametrize(
    ("source", "unknown"),
    [
        ("exec(code)", "exec"),
        ("from a import *", "import *"),
        ("%run a.py", "%run"),
        ("%%cython\nx = 1", "%%cython"),
        ("x = = 1", "code that could not be read"),
        ("(" * 1_000, "code that could not be read"),
        ("x = 1\0", "code that could not be read"),
        ("x" * MOST_CHARACTERS + "x", "long code"),
    ],
)
def test_what_cannot_be_told_is_unknown(source: str, unknown: str) -> None:
    assert names_of(source).unknown == unknown


def test_a_cell_in_another_language_changes_nothing() -> None:
    assert names_of("%%html\n<p>{x}</p>") == Names()
