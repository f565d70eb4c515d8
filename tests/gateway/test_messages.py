"""Frames of a kernel's WebSocket, as gateways write and read them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_binary_message,
    serialize_msg_to_ws_v1,
)

from jupyter_agent_exec.gateway.channels import frame, read
from jupyter_agent_exec.kernels.messages import Message, request_parts

HEADER = {"msg_id": "m", "msg_type": "display_data", "session": "k", "username": "u"}
PARENT = {"msg_id": "x_1", "msg_type": "execute_request", "session": "s", "username": "u"}


def legacy(content: Any, **more: Any) -> str:
    told = {"header": HEADER, "parent_header": PARENT, "metadata": {}, "content": content}
    return json.dumps({**told, "buffers": [], "msg_id": "m", "channel": "iopub", **more})


def check(message: Message, content: Any) -> None:
    assert (message.header.msg_type, message.parent.msg_id) == ("display_data", "x_1")
    assert not message.unread
    assert message.content == content


@pytest.mark.parametrize("text", ["plain", "\N{SNOWMAN}", "a\ud800b", 'quote " and \\'])
def test_both_framings_are_read(text: str) -> None:
    content = {"data": {"text/plain": text}}
    parts = [json.dumps(each).encode() for each in (HEADER, PARENT, {}, content)]
    for data, is_current in (
        (serialize_msg_to_ws_v1([*parts, b"a buffer"], "iopub"), True),
        (legacy(content), False),
    ):
        channel, (message,) = read(data, is_current=is_current, largest=0)
        assert channel == "iopub"
        check(message, content)


def test_a_legacy_message_with_buffers_is_read() -> None:
    content = {"data": {"text/plain": "x"}}
    told = {**json.loads(legacy(content)), "buffers": [b"one", b"two"]}
    channel, (message,) = read(serialize_binary_message(told), is_current=False, largest=0)
    assert channel == "iopub"
    check(message, content)


def test_a_legacy_message_with_nan_is_read() -> None:
    frame = legacy({"data": {"application/json": float("nan")}})
    _, (message,) = read(frame, is_current=False, largest=0)
    assert str(message.content["data"]["application/json"]) == "nan"


@pytest.mark.parametrize("is_current", [True, False])
@pytest.mark.parametrize("data", [b"", b"\xff" * 9, b"\x01" + b"\0" * 30, b"{}", b"[" * 5000])
def test_a_frame_that_is_no_message_is_counted_as_unreadable(data: bytes, is_current: bool) -> None:
    channel, (message,) = read(data, is_current=is_current, largest=0)
    assert channel in ("iopub", "")
    assert message.unread or message.content == {}


def test_requests_are_written_as_gateways_read_them() -> None:
    parts = request_parts("s", "execute_request", {"code": "1"}, "x_1", "sub")
    channel, there = deserialize_msg_from_ws_v1(frame("shell", parts, is_current=True))
    assert (channel, there) == ("shell", parts)
    told = json.loads(frame("control", parts, is_current=False))
    assert (told["channel"], told["content"]) == ("control", {"code": "1"})
    assert (told["header"]["msg_id"], told["header"]["subshell_id"]) == ("x_1", "sub")
