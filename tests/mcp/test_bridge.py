"""Event streams that are answers already, and what HTTP is told of a message in headers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.shared.inbound import decode_header_value

from jupyter_agent_exec.cli.mcp import headers_of_message, with_id
from jupyter_agent_exec.mcp.exchange import only_answer
from tests.mcp.raw_mcp import LATEST, request


def event(message: dict[str, Any]) -> bytes:
    return b"event: message\r\ndata: " + json.dumps(message).encode() + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("message", "is_answer"),
    [
        ({"id": 1, "result": {}}, True),
        ({"id": 1, "result": None}, True),
        ({"id": 1, "error": {"code": 1, "message": ""}}, True),
        ({"method": "notifications/progress", "params": {"result": 1}}, False),
        ({"id": 1, "method": "elicitation/create", "params": {}}, False),
    ],
    ids=["result", "null", "error", "notification", "question"],
)
def test_an_event_that_is_an_answer_is_known(message: dict[str, Any], is_answer: bool) -> None:
    found = only_answer(event({"jsonrpc": "2.0", **message}))
    assert (found is not None) is is_answer
    if found is not None:
        assert json.loads(found) == {"jsonrpc": "2.0", **message}


@pytest.mark.parametrize("chunk", [b": ping\r\n\r\n", b"", b"data: {\r\n\r\n", b"data: []\r\n\r\n"])
def test_what_is_no_message_is_no_answer(chunk: bytes) -> None:
    assert only_answer(chunk) is None


@pytest.mark.parametrize("name", ["execute", "a b", "ütf", " edge ", "=?base64?eA==?=", "", "a\nb"])
def test_a_name_comes_through_a_header_as_it_is(name: str) -> None:
    said = request("tools/call", {"name": name}, modern=True)
    headers = headers_of_message(said)
    assert headers["MCP-Protocol-Version"] == LATEST
    assert headers["Mcp-Method"] == "tools/call"
    assert headers["Mcp-Name"].isascii()
    assert "\n" not in headers["Mcp-Name"]
    assert decode_header_value(headers["Mcp-Name"]) == name


@pytest.mark.parametrize(
    "message",
    [
        request("tools/call", {"name": "x"}, modern=False),
        request("initialize", modern=True),
        {"method": "x", "params": []},
        {"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": LATEST}}},
        [],
        7,
    ],
)
def test_messages_of_older_revisions_have_no_headers_of_their_own(message: Any) -> None:
    assert headers_of_message(message) == {}


def test_a_refusal_without_an_id_is_given_the_one_of_its_request() -> None:
    refused = b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}'
    said = request("tools/list", modern=True)
    assert json.loads(with_id(refused, said))["id"] == said["id"]
    assert with_id(refused, {"jsonrpc": "2.0", "method": "notifications/x"}) == refused
    answer = b'{"jsonrpc":"2.0","id":3,"result":{"id":null}}'
    assert with_id(answer, said) == answer
