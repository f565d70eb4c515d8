"""IOPub on a socket of our own: what a ZMQ socket sends arrives, and little of it is held."""

from __future__ import annotations

import json
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
import zmq
from jupyter_client.session import Session

from jupyter_agent_exec.kernels.in_kernel.ipykernel_workarounds import NUMBER
from jupyter_agent_exec.kernels.iopub import BROKEN, DROPPED, IOPubSocket, OnlyZMQ
from jupyter_agent_exec.kernels.messages import LARGE_BYTES, Codec, Message

KEY = b"a key"
SCHEME = "hmac-sha256"
LARGEST = 2_000_000
SOON = 30.0


class Kernel:
    """A kernel's IOPub, and a socket that subscribes to it."""

    def __init__(self, address: str, **connection: Any) -> None:
        self.context = zmq.Context()
        self.iopub = self.context.socket(zmq.XPUB)
        self.iopub.linger = 0
        self.iopub.setsockopt(zmq.XPUB_NODROP, 1)
        self.iopub.bind(address)
        _, _, self.port = self.iopub.last_endpoint.decode().rpartition(":")
        self.got: list[Message | None] = []
        info = {"transport": "tcp", "ip": "127.0.0.1", "iopub_port": self.port, **connection}
        self.missing: list[str] = []
        self.socket = IOPubSocket(
            info, Codec(KEY, SCHEME), self.got.append, lambda: LARGEST, self.missing.append
        )
        self._session = Session(key=KEY, signature_scheme=SCHEME)

    def frames(self, msg_type: str, content: object, **options: Any) -> list[bytes]:
        message = self._session.msg(msg_type, content, parent={"msg_id": "x_1"}, **options)
        return list(self._session.serialize(message, ident=b"topic"))

    def send(self, *messages: list[bytes]) -> None:
        """Send in another thread, and then that it is idle; what is not read makes it wait."""
        idle = self.frames("status", {"execution_state": "idle"})

        def send() -> None:
            for frames in (*messages, idle):
                self.iopub.send_multipart(frames)

        threading.Thread(target=send, daemon=True).start()

    def read_until(self, msg_type: str) -> list[Message | None]:
        while not (self.got and self.got[-1] and self.got[-1].header.msg_type == msg_type):
            assert self.socket.waits(SOON)
            self.socket.serve()
        return self.got[:-1]

    def connect(self) -> None:
        while not self.iopub.poll(10):
            self.socket.to_poll()
            self.socket.serve()
        assert self.iopub.recv() == b"\x01"

    def close(self) -> None:
        self.socket.close()
        self.context.destroy(linger=0)


@pytest.fixture(params=["tcp", "ipc"])
def kernel(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Kernel]:
    if request.param == "tcp":
        kernel = Kernel("tcp://127.0.0.1:*")
    else:
        place = {"transport": "ipc", "ip": str(tmp_path / "k"), "iopub_port": 1}
        kernel = Kernel(f"ipc://{tmp_path / 'k'}-1", **place)
    kernel.connect()
    yield kernel
    kernel.close()


def test_messages_of_any_size_come_in_order(kernel: Kernel) -> None:
    sizes = [0, 1, 200, 255, 256, 70_000, LARGE_BYTES, LARGE_BYTES + 1, 1_500_000, 3]
    for size in sizes:
        content = {"data": {"text/plain": "x" * size}, "metadata": {}}
        kernel.iopub.send_multipart([*kernel.frames("display_data", content), b"b" * size])
    kernel.iopub.send_multipart(kernel.frames("status", {"execution_state": "idle"}))
    got = kernel.read_until("status")
    assert [message and len(message.content["data"]["text/plain"]) for message in got] == sizes
    assert not kernel.missing


def test_a_text_of_any_length_comes_whole_and_in_pieces(kernel: Kernel) -> None:
    text = "a line\n" * 1_000_000 + "é" * 2_000_000
    kernel.send(kernel.frames("stream", {"name": "stderr", "text": text}))
    pieces = kernel.read_until("status")
    assert all(piece is not None and len(piece.content["text"]) <= LARGE_BYTES for piece in pieces)
    assert "".join(piece.content["text"] for piece in pieces if piece) == text


@pytest.mark.parametrize("more", [[], [b"x" * 5_000_000, b"y"]])
def test_content_over_the_limit_is_counted_and_never_held(
    kernel: Kernel, more: list[bytes]
) -> None:
    frames = kernel.frames("display_data", {"data": {"text/plain": "x" * 50_000_000}})
    tracemalloc.start()
    try:
        kernel.send([*frames, *more])
        (message,) = kernel.read_until("status")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message is not None
    assert (message.unread, message.size, message.content) == (True, len(frames[-1]), {})
    assert message.parent.msg_id == "x_1"
    assert peak < LARGEST


def test_headers_over_the_limit_are_counted_too(kernel: Kernel) -> None:
    kernel.send(
        kernel.frames("stream", {"name": "stdout", "text": ""}, metadata={"x": "y" * 3_000_000})
    )
    (message,) = kernel.read_until("status")
    assert message is not None
    assert message.unread
    assert message.size > 3_000_000


def test_what_is_not_signed_is_not_taken(kernel: Kernel) -> None:
    frames = kernel.frames("stream", {"name": "stdout", "text": "x"})
    frames[2] = b"0" * 64
    kernel.iopub.send_multipart(frames)
    kernel.iopub.send_multipart(kernel.frames("status", {}))
    assert kernel.read_until("status") == [None]


def test_after_a_break_it_connects_again_and_says_so_once() -> None:
    kernel = Kernel("tcp://127.0.0.1:*")
    kernel.connect()
    kernel.iopub.close(linger=0)
    while kernel.socket.waits(SOON):
        kernel.socket.serve()
    assert not kernel.missing
    kernel.iopub = kernel.context.socket(zmq.XPUB)
    kernel.iopub.bind(f"tcp://127.0.0.1:{kernel.port}")
    kernel.connect()
    assert kernel.missing == [BROKEN]
    kernel.iopub.send_multipart(kernel.frames("stream", {"name": "stdout", "text": json.dumps(1)}))
    kernel.iopub.send_multipart(kernel.frames("status", {}))
    assert len(kernel.read_until("status")) == 1
    assert kernel.missing == [BROKEN]
    kernel.close()


@pytest.mark.parametrize(
    ("numbers", "gaps"),
    [
        ([b"7", b"8", b"9"], 0),
        ([b"7", b"9", b"10", b"20"], 2),
        ([b"7", b"", b"-1", b"x", b"9" * 5_000, b"8"], 0),
    ],
)
def test_a_gap_in_the_messages_numbers_is_told(
    kernel: Kernel, numbers: list[bytes], gaps: int
) -> None:
    for number in numbers:
        topic, *rest = kernel.frames("stream", {"name": "stdout", "text": "a"})
        kernel.iopub.send_multipart([topic, NUMBER + number, *rest])
    kernel.iopub.send_multipart(kernel.frames("status", {}))
    assert len(kernel.read_until("status")) == len(numbers)
    assert kernel.missing == [DROPPED] * gaps


def test_a_kernel_with_an_older_protocol_is_left_to_zmq() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        info = {"transport": "tcp", "ip": "127.0.0.1", "iopub_port": listener.getsockname()[1]}
        subscriber = IOPubSocket(info, Codec(b"", SCHEME), lambda _: None, lambda: 0, print)
        subscriber.to_poll()
        with listener.accept()[0] as old:
            old.sendall(b"\xff" + bytes(7) + b"\x01\x7f\x01\x02\x00\x00")  # ZMTP 2.0
            with pytest.raises(OnlyZMQ):
                subscriber.serve()
        subscriber.close()
