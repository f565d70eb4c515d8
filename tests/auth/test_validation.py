"""Bodies and queries become models, or errors that name the field as it was written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jupyter_agent_exec.auth.validation import NoQuery, read_body, read_query, read_value
from jupyter_agent_exec.errors import InvalidRequest, PayloadTooLarge
from jupyter_agent_exec.models import (
    CloseSession,
    Execute,
    MintToken,
    OpenSession,
    Reject,
    Request,
    RunSteps,
    SessionsQuery,
    SetReview,
)


def test_an_empty_body_stands_for_an_empty_object() -> None:
    assert read_body(b"", CloseSession, limit_bytes=0) == CloseSession()


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        (b'{"source": 1}', "source", "source: Expected `str | null`, got `int`"),
        (b'{"source": "1", "x y": 1}', "x y", "unknown field `x y`"),
        (b'{"source": "1", "wait": 1e999}', "wait", "not a finite number"),
        (b'{"source": "1", "wait": -Infinity}', "wait", "not a finite number"),
        (b'{"source": "1", "wait": 9223372036854775808}', "wait", "more than 63 bits"),
        (b'{"source": "\\udfff"}', "source", "lone surrogate"),
        (b'{"a": {"b": [1, {"\\ud800": 1}]}}', "a.b[1]", "lone surrogate"),
        (b'{"source": "1", "wait": [NaN]}', "wait[0]", "not a finite number"),
        (b'{"source": "\\ud83d\\ude00", "wait": NaN}', "wait", "not a finite number"),
        (b"nonsense", None, "not JSON"),
        (b"[]", None, "Expected `object`, got `array`"),
        ("\ufeff{}".encode(), None, "not JSON"),
    ],
)
def test_what_a_body_may_not_hold_is_told(body: bytes, field: str | None, said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_body(body, Execute, limit_bytes=1000)
    assert refused.value.detail == {"field": field}
    assert said in refused.value.message


SHORT_TEXTS = [
    (OpenSession, {"title": "a\0"}, "title"),
    (OpenSession, {"client_id": "\0"}, "client_id"),
    (OpenSession, {"agent": {"name": "a", "model": "\0"}}, "agent.model"),
    (OpenSession, {"target": {"kind": "notebook", "path": "a\0.ipynb"}}, "target.path"),
    (Execute, {"source": "1", "claim": {"purpose": "\0"}}, "claim.purpose"),
    (RunSteps, {"steps": [{"claim": {"tool_call_id": "\0"}}]}, "steps[0].claim.tool_call_id"),
    (MintToken, {"label": "\0", "scopes": ["files"], "expires_in": 60}, "label"),
    (SetReview, {"verdict": None, "comment": "\0"}, "comment"),
    (Reject, {"reason": "\0"}, "reason"),
]


@pytest.mark.parametrize(("model", "asked", "field"), SHORT_TEXTS)
def test_no_text_but_code_may_hold_a_nul(
    model: type[Request], asked: dict[str, Any], field: str
) -> None:
    asked = {"agent": {"name": "a"}, **asked} if model is OpenSession else asked
    for read in (
        lambda: read_body(json.dumps(asked).encode(), model, limit_bytes=1000),
        lambda: read_value(asked, model),
    ):
        with pytest.raises(InvalidRequest, match="NUL") as refused:
            read()
        assert refused.value.detail == {"field": field}
        assert refused.value.message.startswith(f"{field}: ")


def test_code_may_hold_a_nul_and_a_backslash_is_none() -> None:
    asked = {"source": "'\0'", "values": {"x": "'\0'"}, "claim": {"purpose": "\\u0000"}}
    assert read_body(json.dumps(asked).encode(), Execute, limit_bytes=1000).source == "'\0'"


def test_a_body_is_measured_before_it_is_read() -> None:
    with pytest.raises(PayloadTooLarge) as refused:
        read_body(b"{" * 11, Execute, limit_bytes=10)
    assert refused.value.detail == {"limit_bytes": 10}


def test_of_an_argument_given_twice_the_last_counts() -> None:
    said = read_query({"limit": [b"1", b"2"], "token": [b"not ours"]}, SessionsQuery)
    assert said == SessionsQuery(limit=2)


def test_a_route_that_reads_no_query_takes_none() -> None:
    assert read_query({"token": [b"not ours"]}, NoQuery) == NoQuery()
    with pytest.raises(InvalidRequest) as refused:
        read_query({"q": [b""]}, NoQuery)
    assert refused.value.detail == {"field": "q"}
