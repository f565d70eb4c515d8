from __future__ import annotations

import pytest

from jupyter_agent_exec.client.events import EventParser, Message

STREAM = (
    '\ufeffevent: accepted\nid: 1\ndata: {"text": "héllo"}\n\n'
    ": a comment\n\n"
    "event: output\r\nid: 2\r\ndata: first\r\ndata:second\r\ndata:  third\r\n\r\n"
    "event: nothing\nid: 3\n\n"
    "data\n\n"
    "event: status\rid: 4\rdata: x: y\r\r"
    "id: bad\0id\nunknown: field\nretry: 10\ndata: last\n\n"
    "event: cut\ndata: never dispatched\n"
).encode()

EXPECTED = [
    Message(event="accepted", data='{"text": "héllo"}', id="1"),
    Message(event="output", data="first\nsecond\n third", id="2"),
    Message(event="message", data="", id="3"),
    Message(event="status", data="x: y", id="4"),
    Message(event="message", data="last", id="4"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, len(STREAM)])
def test_messages_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    parser = EventParser()
    messages = [
        message
        for start in range(0, len(STREAM), size)
        for message in parser.feed(STREAM[start : start + size])
    ]
    assert messages == EXPECTED


def test_a_message_is_told_as_soon_as_it_is_whole() -> None:
    parser = EventParser()
    assert parser.feed(b"data: 1\r\n\r") == [Message(event="message", data="1", id="")]
    assert parser.feed(b"\ndata: 2\n\n") == [Message(event="message", data="2", id="")]


def test_a_large_message_in_small_pieces_is_searched_once() -> None:
    parser = EventParser()
    parser.feed(b"data: ")
    for _ in range(2000):
        assert parser.feed(b"x" * 1000) == []
    (message,) = parser.feed(b"\n\n")
    assert len(message.data) == 2_000_000
