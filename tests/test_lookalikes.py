"""Letters that look like others, told the same here and in JupyterLab's page."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.lookalikes import LOOKALIKES, lookalikes

HERE = Path(__file__).parent
CASES = json.loads((HERE / "lookalikes.json").read_text())
"""`labextension/src/__tests__/model/lookalikes.spec.ts` has them too; positions in UTF-16 there are
the same, since what is beyond it stands at the start."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case["text"]))
def test_a_letter_that_is_taken_for_an_ascii_one_is_found(case: Any) -> None:
    assert lookalikes(case["text"]) == dict(case["found"])


def test_what_python_reads_as_an_ascii_name_is_found() -> None:
    for name in ("\uff45val", "\U0001d41eval", "x\u1d62", "\u212a", "\u2160"):
        tree = ast.parse(name, mode="eval").body
        assert isinstance(tree, ast.Name)
        assert tree.id.isascii()
        assert lookalikes(name)


def test_the_page_has_the_same_table() -> None:
    source = (HERE.parent / "labextension/src/model/lookalikes.ts").read_text()
    pairs = re.findall(r"\[\s*'((?:\\u[0-9a-f]{4})+)',\s*'(\w+)'\s*\]", source)
    table = {
        letter: like
        for letters, likes in pairs
        for letter, like in zip(json.loads(f'"{letters}"'), likes, strict=True)
    }
    assert table == LOOKALIKES
