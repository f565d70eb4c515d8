"""Messages as they cross the wire."""

from __future__ import annotations

import json
import random

import pytest
from jupyter_client.session import Session

from jupyter_agent_exec.kernels.messages import LONG_BYTES, PIECE_BYTES, Codec, Message

KEY = b"a key"
SCHEME = "hmac-sha256"


def sent(msg_type: str, content: object, *, dumps: object = json.dumps) -> list[bytes]:
    """Return the frames of a message as jupyter_client would send it from a kernel."""
    session = Session(key=KEY, signature_scheme=SCHEME)
    message = session.msg(msg_type, {})
    message["content"] = content
    return list(session.serialize(message, ident=b"topic"))


def read(frames: list[bytes]) -> Message:
    message = Codec(KEY, SCHEME).read(frames)
    assert message is not None
    return message


def test_a_request_is_one_that_jupyter_client_understands() -> None:
    frames = Codec(KEY, SCHEME).request("execute_request", {"code": "1 + ü"}, "x_1")
    session = Session(key=KEY, signature_scheme=SCHEME)
    _, parts = session.feed_identities(frames)
    message = session.deserialize(parts)
    assert message["header"]["msg_id"] == "x_1"
    assert message["msg_type"] == "execute_request"
    assert message["content"] == {"code": "1 + ü"}


def test_a_message_with_another_signature_is_none() -> None:
    frames = sent("status", {"execution_state": "idle"})
    assert Codec(b"another", SCHEME).read(frames) is None
    frames[-1] = b'{"execution_state": "busy"}'
    assert Codec(KEY, SCHEME).read(frames) is None
    assert Codec(KEY, SCHEME).read([b"nothing"]) is None


def test_json_that_is_not_strict_is_read_as_python_reads_it() -> None:
    assert read(sent("x", b'{"n": NaN}')).content["n"] != 0
    assert read(sent("x", rb'{"s": "\ud800"}')).content == {"s": "\ud800"}


def test_a_message_whose_parent_is_null_is_read() -> None:
    """Kernels built on xeus greet each subscriber so."""
    parts = [b'{"msg_type": "iopub_welcome"}', b"null", b"null", b'{"subscription": ""}']
    session = Session(key=KEY, signature_scheme=SCHEME)
    message = read([b"", b"<IDS|MSG>", session.sign(parts), *parts])
    assert not message.unread
    assert message.header.msg_type == "iopub_welcome"
    assert message.parent.msg_id == ""


@pytest.mark.parametrize("seed", range(20))
def test_a_very_long_stream_is_decoded_in_pieces_that_add_up(seed: int) -> None:
    chance = random.Random(seed)
    parts = ["plain line\n", "\\n", "\\", "\n", '"', "ü€😀", "\t", "\\\\n\n", "\x00", "x" * 1000]
    text = "".join(chance.choices(parts, k=60_000))[: LONG_BYTES * 2]
    message = read(sent("stream", {"name": "stdout", "text": text}))
    assert message.pieces is not None
    pieces = list(message.pieces)
    assert "".join(pieces) == text
    assert len(pieces) > 2
    assert max(len(piece.encode()) for piece in pieces[:-1]) <= PIECE_BYTES


def test_a_very_long_line_is_one_piece() -> None:
    text = "x" * (LONG_BYTES + 1)
    message = read(sent("stream", {"name": "stderr", "text": text}))
    assert message.content == {"name": "stderr"}
    assert "".join(message.pieces or ()) == text


def test_a_very_long_stream_with_more_in_it_is_still_read_right() -> None:
    text = "line\n" * LONG_BYTES
    message = read(sent("stream", {"name": "stdout", "text": text, "extra": "x"}))
    assert "".join(message.pieces or ()) == text
