"""Letters that look like others."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.text.lookalikes import lookalike_words, lookalikes

HERE = Path(__file__).parent
CASES = json.loads((HERE / "lookalikes.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case["text"]))
def test_a_letter_that_is_taken_for_an_ascii_one_is_found(case: Any) -> None:
    assert lookalikes(case["text"]) == dict(case["found"])


def test_what_python_reads_as_an_ascii_name_is_found() -> None:
    for name in ("\uff45val", "\U0001d41eval", "x\u1d62", "\u212a", "\u2160"):
        tree = ast.parse(name, mode="eval").body
        assert isinstance(tree, ast.Name)
        assert tree.id.isascii()
        assert lookalikes(name)


def test_each_lookalike_letter_is_named_with_the_letter_that_it_looks_like() -> None:
    deceiving = "\u0440assword = input()  # \u0440\u0443\u0441"
    assert lookalike_words(deceiving, None, "plain", "os.\uff45val(\u0440assword)") == {
        "\u0440assword": {"\u0440": "p"},
        "\uff45val": {"\uff45": "e"},
    }
