"""By which id a cell is named, whatever its notebook holds."""

from __future__ import annotations

import nbformat
import pytest
from nbformat import v4

from jupyter_agent_exec.notebooks.cell_names import is_made_up, with_names
from tests.notebooks.notebooks_made import OTHER_MAKERS, code, persons_notebook, without_ids


@pytest.mark.parametrize("notebook", OTHER_MAKERS.values(), ids=OTHER_MAKERS.keys())
def test_each_cell_has_a_valid_name_of_its_own_always_the_same(notebook: dict[str, object]) -> None:
    minor = notebook["nbformat_minor"]
    cells = with_names(notebook["cells"], minor)
    names = [cell["id"] for cell in cells]
    nbformat.validate(nbformat.from_dict({**notebook, "cells": cells, "nbformat_minor": 5}))
    assert len(set(names)) == len(names)
    joined = [{**cell, "source": "".join(cell["source"])} for cell in notebook["cells"]]
    assert [cell["id"] for cell in with_names(joined, minor)] == names
    assert with_names(cells, 5) == cells


def test_a_cell_with_an_id_of_its_own_keeps_it_and_is_the_same_object() -> None:
    cells = persons_notebook().cells
    named = with_names(cells, 5)
    assert all(one is other for one, other in zip(named, cells, strict=True))
    named = with_names(OTHER_MAKERS["an id twice"]["cells"], 5)
    assert [cell["id"] for cell in named[:2]] == ["a", "b"]


def test_what_is_added_or_changed_elsewhere_does_not_rename_a_cell() -> None:
    cells = without_ids(minor=4)["cells"]
    names = [cell["id"] for cell in with_names(cells, 4)]
    more = [{**code("x", "more"), "id": None}, {**cells[0], "source": "changed"}, *cells[1:]]
    assert [cell["id"] for cell in with_names(more, 4)][2:] == names[1:]


def test_nbformat_makes_up_ids_that_are_known_as_such() -> None:
    assert is_made_up(v4.new_code_cell().id)
    assert not is_made_up("8c0a6a1e-5f7e-4d4c-9c1e-0d6a4b1c2d3e")
