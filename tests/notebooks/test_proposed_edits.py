"""How a proposed edit of a cell is merged with what the user wrote there meanwhile."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jupyter_agent_exec.journal.proposals import RecordedEdit
from jupyter_agent_exec.notebooks.changes import Notebook, new_cell
from jupyter_agent_exec.notebooks.proposed_edits import merged, with_edits
from jupyter_agent_exec.types import CellId, ProposedEditId
from tests.fuzzing import examples

NO = None


@pytest.mark.parametrize(
    ("base", "agents", "users", "both"),
    [
        ("a", "b", "a", "b"),
        ("a", "a", "b", "b"),
        ("a", "b", "b", "b"),
        ("a", "b", "c", NO),
        ("a", "b", "", NO),
        ("", "b", "c", NO),
        # a line beside the one that changes
        ("a", "b", "a\nmine", "b\nmine"),
        ("a", "b", "mine\na", "mine\nb"),
        ("a", "a\nb", "mine", "mine\nb"),
        ("a\n", "b\n", "a\nmine\n", "b\nmine\n"),
        ("a", "b", "a\n", "b\n"),
        ("a\nb", "a\nB", "a\nmine\nb", "a\nmine\nB"),
        ("a\nb", "A\nb", "a\nmine\nb", "A\nmine\nb"),
        ("a\nb", "A\nb", "a\nB", "A\nB"),
        ("a\nb\nc", "A\nb\nc", "a\nc", "A\nc"),
        ("a\nb", "b", "a\nB", "B"),
        ("a\nb", "x\na\nb", "a\nb\ny", "x\na\nb\ny"),
        # the same lines
        ("a\nb", "a\nx\nb", "a\ny\nb", NO),
        ("a", "a\nx", "a\ny", NO),
        ("a\nb", "A\nB", "a\nmine\nb", NO),
        ("a\nb\nc", "a\nc", "a\nB\nc", NO),
        ("a\nb\nc", "A\nB\nc", "a\nX\nY", NO),
        # one empties the cell, and the other adds to it
        ("a", "", "a\nb", "b"),
        # the same change, made by both
        ("a\nb", "A\nb", "A\nb\nmine", "A\nb\nmine"),
        ("a\nb\nc", "a\nc", "a\nc\nmine", "a\nc\nmine"),
        # other characters that end lines elsewhere
        ("a\r\nb", "a\r\nB", "A\r\nb", "A\r\nB"),
        ("a\x0cb\nc", "a\x0cb\nC", "A\x0cb\nc", "A\x0cb\nC"),
    ],
)
def test_only_edits_of_the_same_lines_conflict(
    base: str, agents: str, users: str, both: str | None
) -> None:
    assert merged(base, agents, users) == both
    assert merged(base, users, agents) == both


def test_keeping_an_edit_reads_no_other_cell() -> None:
    cells = [new_cell(CellId("a"), "code", "x = 1"), {"id": "another"}]
    edit = RecordedEdit(
        id=ProposedEditId("p.0"),
        cell_id=CellId("a"),
        moved=True,
        cleared=True,
        before={"cell_type": "code", "source": "x = 1"},
        after={"cell_type": "code", "source": "x = 2"},
        order=[CellId("another"), CellId("a")],
        status="open",
    )
    notebook = Notebook(cells=cells, nbformat_minor=5)
    other, cell = with_edits(notebook, [edit]).cells
    assert other == {"id": "another"}
    assert cell["source"] == "x = 2"


TEXTS = st.lists(st.sampled_from("abc"), max_size=8).map("\n".join)


def _lines(text: str) -> Counter[str]:
    return Counter(text.split("\n") if text else [])


@examples(100)
@example("a\nb", "a", "b")  # both together remove all lines
@given(TEXTS, TEXTS, TEXTS)
def test_a_merge_invents_no_line_and_loses_none_that_both_have(
    base: str, one: str, other: str
) -> None:
    both = merged(base, one, other)
    assert merged(base, other, one) == both
    if both is not None:
        assert not _lines(both) - (_lines(one) + _lines(other))
        # What one side has more of than the base is there, and what neither took away.
        kept = _lines(base) - (_lines(base) - _lines(one)) - (_lines(base) - _lines(other))
        for side in (one, other):
            kept |= _lines(side) - _lines(base)
        assert not kept - _lines(both)


@st.composite
def disjoint(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Return a base, two texts that each changed other lines of it, and both changes."""
    count = draw(st.integers(1, 8))
    owners = draw(st.lists(st.sampled_from([None, 0, 1]), min_size=count, max_size=count))
    sides: list[list[str]] = [[], [], []]
    base = [f"line {number}" for number in range(count)]
    last: int | None = None
    for line, owner in zip(base, owners, strict=True):
        # Nobody adds lines where the other replaces those above and below.
        adds = draw(st.sampled_from([None, 0, 1]))
        if adds is not None and not (owner == last == 1 - adds):
            for side in (adds, 2):
                sides[side].append(f"added before {line}")
        new = draw(st.sampled_from([[f"new {line}"], [f"new {line}", f"more {line}"], []]))
        for side, lines in enumerate(sides):
            lines += new if owner is not None and side in (owner, 2) else [line]
        last = owner
    one, other, both = ("\n".join(lines) if lines else "" for lines in sides)
    return "\n".join(base), one, other, both


@examples(100)
@given(disjoint())
def test_edits_of_different_lines_always_merge_and_both_survive(
    texts: tuple[str, str, str, str],
) -> None:
    base, one, other, both = texts
    found = merged(base, one, other)
    assert found is not None
    assert _lines(found) - Counter([""]) == _lines(both) - Counter([""])
