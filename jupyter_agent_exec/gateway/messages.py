"""Jupyter messages on a kernel's WebSocket, in both framings: the current and the legacy one. Pure.

Source: jupyter_server, *WebSocket kernel wire protocols*.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)

from ..kernels.channels import Channel
from ..kernels.messages import Header, Message, messages

CURRENT: Final = "v1.kernel.websocket.jupyter.org"
"""The subprotocol of the current framing. A server that does not select it speaks the legacy one,
which is JSON."""

_EMPTY: Final = msgspec.Raw(b"{}")


class _LegacyMessage(msgspec.Struct):
    channel: str = ""
    header: msgspec.Raw = _EMPTY
    parent_header: msgspec.Raw = _EMPTY
    content: msgspec.Raw = _EMPTY


_decode_legacy = msgspec.json.Decoder(_LegacyMessage).decode


def frame(channel: Channel, parts: list[bytes], *, is_current: bool) -> bytes:
    """Return the frame of a request, given its header, parent header, metadata and content.

    A frame of the current framing is binary, one of the legacy framing is text.
    """
    if is_current:
        framed: bytes = serialize_msg_to_ws_v1(parts, channel)  # type: ignore[no-untyped-call]
        return framed
    header, parent, metadata, content = (msgspec.Raw(part) for part in parts)
    return msgspec.json.encode(
        {
            "channel": channel,
            "header": header,
            "parent_header": parent,
            "metadata": metadata,
            "content": content,
            "buffers": [],
        }
    )


def read(data: str | bytes, *, is_current: bool, largest: int) -> tuple[str, Iterable[Message]]:
    """Return the channel of a frame, and its message as far as it is readable; see `messages`.

    A frame that is not valid at all gives the channel ``iopub`` and an unread message: something of
    the kernel's is missing.
    """
    try:
        if is_current:
            _check_offsets(data)
            channel, parts = deserialize_msg_from_ws_v1(data)  # type: ignore[no-untyped-call]
            header, parent, _, content, *buffers = parts
            return channel, messages(header, parent, content, buffers, largest=largest)
        return _legacy(data if isinstance(data, str) else _json_part(data), largest)
    except (msgspec.MsgspecError, LookupError, ValueError, TypeError, RecursionError):
        return "iopub", (Message(Header(), Header(), {}, size=len(data), unread=True),)


def _check_offsets(data: str | bytes) -> None:
    """Check the number of offsets, which Jupyter's own function believes."""
    if not isinstance(data, bytes) or 8 * int.from_bytes(data[:8], "little") > len(data):
        raise ValueError("not a frame of the current framing")


def _json_part(data: bytes) -> bytes:
    """Return the JSON of a frame that holds it and the message's buffers."""
    count = int.from_bytes(data[:4], "big")
    offsets = [int.from_bytes(data[4 * i + 4 : 4 * i + 8], "big") for i in range(min(count, 2))]
    return data[offsets[0] : offsets[1] if count > 1 else None]


def _legacy(data: str | bytes, largest: int) -> tuple[str, Iterable[Message]]:
    try:
        told = _decode_legacy(data)
    except msgspec.MsgspecError:  # Python's module writes and reads NaN, and lone surrogates
        parts: dict[str, Any] = json.loads(data)
        told = _LegacyMessage(
            str(parts["channel"]),
            *(
                msgspec.Raw(json.dumps(parts[name]).encode())
                for name in ("header", "parent_header", "content")
            ),
        )
    about = memoryview(told.header), memoryview(told.parent_header)
    return told.channel, messages(*about, memoryview(told.content), largest=largest)
