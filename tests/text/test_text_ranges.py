"""Parts of a large text: ranges, and the lines that contain a text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from jupyter_agent_exec.models import Text
from jupyter_agent_exec.text import text_ranges
from jupyter_agent_exec.text.text_ranges import LINE_BYTES, read_range


def lines(part: Text) -> list[tuple[int, str]]:
    """Return offset and text of each line that was found."""
    told = [line.partition(": ") for line in part.text.splitlines()]
    return [(int(offset), text) for offset, _, text in told]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 1000])
def test_ranges_follow_each_other_and_make_the_whole(limit: int) -> None:
    text = "añ€😀\n" * 20
    file = io.BytesIO(text.encode())
    read, offset = "", 0
    while True:
        part = read_range(file, offset, limit)
        assert part.offset == offset
        assert part.total_bytes == len(text.encode())
        read += part.text
        if part.next_offset is None:
            break
        assert part.next_offset > offset
        offset = part.next_offset
    assert read == text


def test_a_range_starts_at_a_character() -> None:
    file = io.BytesIO("a😀b".encode())
    assert [read_range(file, n, 4).offset for n in range(8)] == [0, 1, 1, 1, 1, 5, 6, 6]
    assert read_range(file, 99, 4, omitted_bytes=7).omitted_bytes == 7
    assert read_range(io.BytesIO(), 0, 4).text == ""


@pytest.mark.parametrize("limit", [1, 60, 100_000])
def test_lines_that_match_are_found_page_by_page(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "text"
    path.write_text("".join(f"É line {i}\n" for i in range(1, 101)), encoding="utf-8")
    found, offset, pages = [], 0, 0
    with path.open("rb") as file:
        while True:
            part = read_range(file, offset, limit, "é LINE 1", omitted_bytes=3)
            found += lines(part)
            pages += 1
            assert part.omitted_bytes == 3
            if part.next_offset is None:
                break
            offset = part.next_offset
        assert [text for _, text in found] == [f"É line {n}" for n in (1, *range(10, 20), 100)]
        assert pages == {1: 12, 60: 4, 100_000: 1}[limit]
        for at, text in found:
            assert read_range(file, at, 100).text.startswith(f"{text}\n")


def test_a_long_line_is_searched_in_pieces() -> None:
    text = "a" + "é" * 20_000 + "needle" + "é" * 100_000 + "needle\nneedle"
    found = lines(read_range(io.BytesIO(text.encode()), 0, 100_000, "needle"))
    assert len(found) == 3
    for offset, piece in found:
        assert "needle" in piece
        assert len(piece.encode()) <= LINE_BYTES
        assert text.encode()[offset:].decode().startswith(piece)


def test_a_long_search_says_where_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_ranges, "SEARCH_BYTES", 6)
    file = io.BytesIO(b"x1\ny\nx2\nx3\n")
    part = read_range(file, 0, 1000, "x")
    assert (part.text, part.next_offset) == ("0: x1\n5: x2\n", 8)
    part = read_range(file, 8, 1000, "x")
    assert (part.text, part.next_offset) == ("8: x3\n", None)


def test_what_is_no_utf8_is_searched_too() -> None:
    part = read_range(io.BytesIO(b"\xff\xfeone\ntwo" + b"\xe2\x82"), 0, 1000, "TWO")
    assert (part.text, part.next_offset) == ("6: two\n", None)
