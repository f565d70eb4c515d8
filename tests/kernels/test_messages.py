"""Messages as they cross the wire."""

from __future__ import annotations

import json
import random

import pytest
from jupyter_client.session import Session

from jupyter_agent_exec.kernels.messages import TOLD_BYTES, Codec, Message

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


def taken(frames: list[bytes], *, chunks: random.Random) -> list[Message]:
    """Return the messages of large content that comes in chunks of any size."""
    large = Codec(KEY, SCHEME).large(frames[:-1], len(frames[-1]), frames[-1][:TOLD_BYTES])
    told, start = [], 0
    while start < len(frames[-1]):
        end = start + chunks.choice((TOLD_BYTES, 1_000, 100_000))
        told.append(large.take(memoryview(frames[-1])[start:end]))
        start = end
    return [message for message in told if message is not None]


def text_in(messages: list[Message]) -> str:
    assert not any(message.unread for message in messages)
    return "".join(message.content["text"] for message in messages)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("is_ascii", [False, True])
def test_a_large_stream_is_decoded_in_pieces_that_add_up(seed: int, is_ascii: bool) -> None:
    chance = random.Random(seed)
    parts = ["plain line\n", "\\n", "\\", "\n", '"', "ü€😀", "\t", "\\\\n\n", "\x00", "x" * 1000]
    text = "".join(chance.choices(parts[seed % 9 :], k=20_000))
    content = json.dumps({"name": "stdout", "text": text}, ensure_ascii=is_ascii).encode()
    frames = sent("stream", content)
    pieces = taken(frames, chunks=chance)
    assert text_in(pieces) == text
    assert len(pieces) > 2
    assert {piece.content["name"] for piece in pieces} == {"stdout"}


@pytest.mark.parametrize("text", ["x" * 1_000_000, "\ud800" * 10_000, ""])
def test_a_large_stream_needs_no_line_ends(text: str) -> None:
    content = json.dumps({"name": "stdout", "text": text}).encode()
    assert text_in(taken(sent("stream", content), chunks=random.Random(1))) == text


@pytest.mark.parametrize("extra", [{"extra": "x"}, {"more": {}}])
def test_what_follows_the_text_of_a_large_stream_makes_its_end_unread(
    extra: dict[str, object],
) -> None:
    text = "line\n" * 100_000
    frames = sent("stream", {"name": "stdout", "text": text, **extra})
    *pieces, last = taken(frames, chunks=random.Random(1))
    told = text_in(pieces)
    assert text.startswith(told)
    assert last.unread
    assert last.size >= len(text) - len(told)


def test_large_content_that_is_no_stream_is_counted_and_not_read() -> None:
    frames = sent("display_data", {"data": {"text/plain": "x" * 1_000_000}, "metadata": {}})
    (message,) = taken(frames, chunks=random.Random(1))
    assert message.unread
    assert (message.header.msg_type, message.size) == ("display_data", len(frames[-1]))


def test_large_content_with_another_signature_is_not_taken_for_complete() -> None:
    frames = sent("stream", {"name": "stdout", "text": "x" * 1_000_000})
    frames[2] = b"0" * 64
    last = taken(frames, chunks=random.Random(1))[-1]
    assert (last.unread, last.size) == (True, len(frames[-1]))
    frames = sent("display_data", {"data": {"text/plain": "x" * 1_000_000}, "metadata": {}})
    frames[2] = b"0" * 64
    assert taken(frames, chunks=random.Random(1)) == []
