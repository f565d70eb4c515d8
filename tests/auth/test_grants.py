"""What scopes mean, and which paths their patterns match."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from jupyter_agent_exec.auth.scopes import (
    FOR_PEOPLE,
    Grants,
    Scope,
    checked_pattern,
    matches,
    plain_path,
)
from jupyter_agent_exec.errors import InvalidRequest


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("a.ipynb", "a.ipynb"),
        ("*.ipynb", "a.ipynb"),
        ("*", ".ipynb"),
        ("reports/*", "reports/a.ipynb"),
        ("reports/*/b.ipynb", "reports/x/b.ipynb"),
        ("**", "a.ipynb"),
        ("**", "a/b/c.ipynb"),
        ("reports/**", "reports/a.ipynb"),
        ("reports/**", "reports/a/b/c.ipynb"),
        ("**/b.ipynb", "b.ipynb"),
        ("**/b.ipynb", "x/y/b.ipynb"),
        ("reports/**/b.ipynb", "reports/b.ipynb"),
        ("**/**/b.ipynb", "b.ipynb"),
        ("a*b*c", "aXbYbZc"),
        ("a*b*c", "abc"),
        ("*a*", "a"),
        ("a[1].ipynb", "a[1].ipynb"),
        ("a?.ipynb", "a?.ipynb"),
        ("größe/*", "größe/ü.ipynb"),
        ("a b/*", "a b/c.ipynb"),
    ],
)
def test_a_pattern_matches(pattern: str, path: str) -> None:
    assert matches(checked_pattern(pattern, "f"), path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("a.ipynb", "A.ipynb"),
        ("reports/*", "Work/a.ipynb"),
        ("a.ipynb", "b/a.ipynb"),
        ("*.ipynb", "b/a.ipynb"),
        ("reports/*", "reports"),
        ("reports/*", "reports/a/b.ipynb"),
        ("reports/**/b.ipynb", "reports/xb.ipynb"),
        ("reports/**", "workshop/a.ipynb"),
        ("reports/**", "private/reports/a.ipynb"),
        ("work*/a.ipynb", "reports/b/a.ipynb"),
        ("a?.ipynb", "ab.ipynb"),
        ("a[12].ipynb", "a1.ipynb"),
        ("a.ipynb", "axipynb"),
        ("aba*aba", "aba"),
        ("a*b*c", "acb"),
        ("größe/*", "gro\u0308ße/ü.ipynb"),
    ],
)
def test_a_pattern_does_not_match(pattern: str, path: str) -> None:
    assert not matches(checked_pattern(pattern, "f"), path)


SECRET = "secret/s.ipynb"
DETOURS = [
    "reports/../secret/s.ipynb",
    "reports/./../secret/s.ipynb",
    "./secret/s.ipynb",
    "secret/./s.ipynb",
    "secret//s.ipynb",
    "reports//../secret/s.ipynb",
    "..",
    "../root/secret/s.ipynb",
    "reports/..",
    "reports\\..\\secret\\s.ipynb",
    "RTC:secret/s.ipynb",
    "secret/s.ipynb\0.ipynb",
    "reports/\n/s.ipynb",
    "",
    "/",
    "//",
]


@pytest.mark.parametrize("path", DETOURS)
def test_a_path_by_a_detour_is_never_compared(path: str) -> None:
    assert plain_path(path) is None


@pytest.mark.parametrize(
    "path",
    ["reports/%2e%2e/secret/s.ipynb", "reports/%2E%2E%2Fsecret/s.ipynb", "reports/..%2f/s.ipynb"],
)
def test_what_is_encoded_twice_stays_what_it_is(path: str) -> None:
    assert plain_path(path) == path
    assert matches("reports/**", path)  # it is the name of a folder there


def test_slashes_at_the_ends_do_not_count() -> None:
    assert plain_path("/reports/a.ipynb/") == "reports/a.ipynb"


def test_patterns_match_exactly_what_their_definition_says() -> None:
    """All paths of up to four parts of a small alphabet, against a definition by recursion."""

    def defined(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
        if not pattern:
            return not path
        if pattern[0] == "**":
            return defined(pattern[1:], path) or (bool(path) and defined(pattern, path[1:]))
        same = bool(path) and pattern[0] in ("*", path[0])
        return same and defined(pattern[1:], path[1:])

    paths = [p for n in range(1, 5) for p in itertools.product("ab", repeat=n)]
    for pattern in (p for n in range(1, 4) for p in itertools.product(("a", "*", "**"), repeat=n)):
        for path in paths:
            told = matches("/".join(pattern), "/".join(path))
            assert told == defined(pattern, path), (pattern, path)


def test_a_pattern_made_to_take_long_does_not() -> None:
    assert not matches("a*" * 2000 + "b", "a" * 4000)
    assert not matches("/".join(["**", "*a*"] * 400), "/".join("b" * 800))


@pytest.mark.parametrize(
    "pattern",
    ["", "/", "..", "a/../b", "./a", "a//b", "a\\b", "a/**b", "***", "a\0", "RTC:a", "a/**/b**"],
)
def test_a_pattern_that_means_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Grants.parse(["files", f"exec:notebook:{pattern}"])
    assert refused.value.detail["field"] == "scopes[1]"


@pytest.mark.parametrize(
    "scope",
    [
        "", "exec", "stop", "decide", "tokens", "exec:scratch:a", "EXEC:SCRATCH", " files",
        "files:", "history:read:", "history:read:all:", "exec:notebooks", "exec:notebookx",
        "execute", "*", "**", "admin", "read:notebook ", "exec:notebook/a",
    ],
)  # fmt: skip
def test_a_scope_that_there_is_not_is_refused(scope: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Grants.parse([scope])
    assert refused.value.detail["field"] == "scopes[0]"
    assert "exec:scratch" in refused.value.detail["allowed"]


def test_scopes_say_what_may_be_done_where() -> None:
    grants = Grants.parse(
        ["exec:notebook:reports/*", "read:notebook:data/**", "edit:notebook:e.ipynb"]
    )
    assert grants.reaches("exec:notebook", "reports/a.ipynb")
    assert not grants.reaches("exec:notebook", "data/a.ipynb")
    assert not grants.reaches("edit:notebook", "reports/a.ipynb")
    for path in ("reports/a.ipynb", "data/x/y.ipynb", "e.ipynb"):
        assert grants.reaches("read:notebook", path)
    assert not grants.reaches("read:notebook", SECRET)
    assert grants == Grants(notebooks=grants.notebooks)
    assert not grants.is_everywhere("read:notebook")


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("exec:scratch", {"exec", "look", "exec:scratch"}),
        ("exec:notebook", {"exec", "look", "exec:notebook", "look:notebook", "read:notebook"}),
        ("look:notebook:a", {"look", "look:notebook", "read:notebook"}),
        ("edit:notebook:a", {"edit:notebook", "read:notebook"}),
        ("read:notebook", {"read:notebook"}),
        ("files", {"files"}),
        ("history:read", set()),
        ("history:read:all", set()),
    ],
)
def test_a_scope_allows_this_and_no_more(scope: str, allowed: set[str]) -> None:
    grants = Grants.parse([scope])
    held = {each for each in get_args(Scope) if each not in FOR_PEOPLE and grants.holds(each)}
    assert held == allowed | {"stop", "history:read"}
    assert grants.all_history == (scope == "history:read:all")


def test_a_scope_without_a_pattern_is_for_all_notebooks() -> None:
    grants = Grants.parse(["edit:notebook", "exec:notebook:**"])
    assert grants.is_everywhere("edit:notebook")
    assert grants.is_everywhere("exec:notebook")
    assert grants.is_everywhere("read:notebook")
    assert grants.reaches("edit:notebook", SECRET)
