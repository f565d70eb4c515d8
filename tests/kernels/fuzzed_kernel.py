"""A kernel over real sockets that says what a test tells it to, before it answers."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import zmq
from jupyter_client.session import Session

KEY = b"a key"
CHANNELS = ("shell", "iopub", "stdin", "control")


class Sent(NamedTuple):
    """A message to send: frames from the signature on, or what they are made of."""

    channel: str
    header: Any
    parent: Any
    content: bytes
    frames: list[bytes] | None = None


class FuzzedKernel:
    """Answers each request; before the answer to code it sends what `before` makes of it."""

    def __init__(self) -> None:
        self.before: Callable[[dict[str, Any]], list[Sent]] = lambda header: []
        self._session = Session(key=KEY, signature_scheme="hmac-sha256")
        self._context = zmq.Context()
        kinds = {"iopub": zmq.PUB}
        self._sockets = {
            name: self._context.socket(kinds.get(name, zmq.ROUTER)) for name in CHANNELS
        }
        ports = {}
        for name, socket in self._sockets.items():
            socket.linger = 0
            socket.sndhwm = 0
            ports[f"{name}_port"] = socket.bind_to_random_port("tcp://127.0.0.1")
        self.connection: dict[str, Any] = {
            "transport": "tcp",
            "ip": "127.0.0.1",
            "key": KEY,
            "signature_scheme": "hmac-sha256",
            **ports,
        }
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="fuzzed kernel")
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._context.destroy(linger=0)

    def _work(self) -> None:
        poller = zmq.Poller()
        for name in ("shell", "control"):
            poller.register(self._sockets[name], zmq.POLLIN)
        while not self._stopping.is_set():
            for socket, _ in poller.poll(20):
                idents, parts = self._session.feed_identities(socket.recv_multipart())
                request = self._session.deserialize(parts)
                self._answer(request, idents, socket)

    def _answer(self, request: dict[str, Any], idents: list[bytes], socket: Any) -> None:
        header = json.loads(self._session.pack(request["header"]))
        self._tell("status", {"execution_state": "busy"}, header)
        content: dict[str, Any] = {"status": "ok"}
        if request["msg_type"] == "kernel_info_request":
            content |= {"implementation": "fuzzed", "language_info": {"name": "none"}}
        elif request["msg_type"] == "execute_request":
            content |= {"execution_count": 1, "payload": [], "user_expressions": {}}
            for sent in self.before(header):
                self._send(sent, idents)
            self._tell("stream", {"name": "stdout", "text": request["content"]["code"]}, header)
        reply = request["msg_type"].replace("_request", "_reply")
        socket.send_multipart([*idents, *self._frames(self._header(reply), header, content)])
        self._tell("status", {"execution_state": "idle"}, header)

    def _tell(self, msg_type: str, content: Any, parent: Any) -> None:
        frames = self._frames(self._header(msg_type), parent, content)
        self._sockets["iopub"].send_multipart([b"topic", *frames])

    def _send(self, sent: Sent, idents: list[bytes]) -> None:
        frames = sent.frames
        if frames is None:
            frames = self._frames(sent.header, sent.parent, sent.content)
        to = [b"topic"] if sent.channel == "iopub" else idents
        self._sockets[sent.channel].send_multipart([*to, *frames])

    def _header(self, msg_type: str) -> dict[str, Any]:
        return {"msg_id": uuid.uuid4().hex, "msg_type": msg_type, "session": "kernel"}

    def _frames(self, header: Any, parent: Any, content: Any) -> list[bytes]:
        parts = [
            part if isinstance(part, bytes) else json.dumps(part).encode()
            for part in (header, parent, {}, content)
        ]
        return [b"<IDS|MSG>", self._session.sign(parts), *parts]


@contextmanager
def fuzzed_kernel() -> Iterator[FuzzedKernel]:
    kernel = FuzzedKernel()
    try:
        yield kernel
    finally:
        kernel.close()
