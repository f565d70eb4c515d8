"""The JSON of a model, made piece by piece."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jupyter_agent_exec.models import PIECE_BYTES, OutputChange, json_pieces

LONG = 'é"\\\n\u2028💥' * 60_000


def nested(depth: int) -> Any:
    return [] if not depth else {"a": [nested(depth - 1)]}


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        None,
        "",
        {"a": {}, "b": []},
        'é"\\\n\u2028💥' * 60_000,
        [1.5, True, "x"],
        nested(100),
    ],
    ids=["object", "array", "null", "empty", "two", "long", "mixed", "deep"],
)
def test_the_pieces_together_are_the_json(data: Any) -> None:
    output: dict[str, Any] = {"output_type": "display_data", "data": {"text/plain": data}}
    change = OutputChange(index=1, output=output, append=None)
    pieces = list(json_pieces(change))
    assert b"".join(pieces) == msgspec.json.encode(change)
    assert all(len(piece) < 7 * PIECE_BYTES for piece in pieces)
