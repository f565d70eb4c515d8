"""Ranges and versions."""

from __future__ import annotations

import pytest

from jupyter_agent_exec.errors import RangeNotSatisfiable
from jupyter_agent_exec.files.file import matches, span_of


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=0-", (0, 10)),
        ("bytes=3-5", (3, 6)),
        ("bytes=3-99", (3, 10)),
        ("bytes=9-9", (9, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        (" bytes=1-2 ", (1, 3)),
    ],
)
def test_a_range_is_that_part(header: str, expected: tuple[int, int]) -> None:
    assert span_of(header, 10) == expected


@pytest.mark.parametrize(
    "header",
    [
        None, "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-3", "bytes=0-1,3-4",
        "items=0-1", "bytes=1.5-2", "bytes=+1-2", "bytes=\u0663-\u0665", "bytes=0-1-2",
        f"bytes={'9' * 20}-",
    ],
)  # fmt: skip
def test_what_is_no_single_range_of_bytes_is_the_whole(header: str | None) -> None:
    assert span_of(header, 10) is None


@pytest.mark.parametrize(
    ("header", "size"),
    [("bytes=10-", 10), ("bytes=10-20", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-5", 0)],
)
def test_a_range_behind_the_end_is_refused_with_the_size(header: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable) as refused:
        span_of(header, size)
    assert refused.value.detail == {"bytes": size}


def test_only_the_same_strong_tag_matches() -> None:
    assert matches('"a"', '"a"')
    assert matches('"b", "a"', '"a"')
    assert matches("*", '"a"')
    assert not matches('W/"a"', '"a"')
    assert not matches("a", '"a"')
    assert not matches('"aa"', '"a"')
    assert not matches("Sat, 21 Nov 2026 09:00:00 GMT", '"a"')
