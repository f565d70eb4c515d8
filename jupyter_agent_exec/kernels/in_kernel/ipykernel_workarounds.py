"""What ipykernel has no public way for, in the kernel itself; each says why it is needed.

It is sent with `comm_target`, and seen to work with ipykernel 6.29 to 7.4. It uses names that are
not public: `tests/test_workarounds.py` fails when one of them goes. `workarounds` is the server's
side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any


def keep_all(patience: float | None) -> None:
    """Have the kernel wait when 1,000 messages wait for somebody who listens, and drop none.

    Parameters
    ----------
    patience
        Seconds, after which it drops again what they do not take: they have stopped, such as a
        suspended console. None if only we listen.

    ipykernel makes the socket, and has no option for how it behaves when it is full. No upstream
    issue is known.
    """
    from zmq import XPUB_NODROP, Again

    thread: Any = sys.modules["IPython"].get_ipython().kernel.iopub_thread
    socket = thread.socket

    def begin() -> None:
        socket.setsockopt(XPUB_NODROP, 1)
        if patience is None or "send_multipart" in vars(socket):
            return
        send = socket.send_multipart
        socket.sndtimeo = int(patience * 1000)

        def send_patiently(*args: Any, **kwargs: Any) -> Any:
            try:
                return send(*args, **kwargs)
            except Again:
                socket.setsockopt(XPUB_NODROP, 0)
                return send(*args, **kwargs)

        socket.send_multipart = send_patiently

    # Nobody else may touch the socket.
    thread.schedule(begin)


def flush_what_is_there() -> None:
    """Have the kernel wait for its thread that sends only where there is text to send.

    It flushes six times in each execution, and waits for that thread each time, also if nothing was
    printed: a quarter of the time of a short one. Text that the thread has taken, but not queued
    for sending yet, has to be waited for too: else what the kernel tells next would overtake it.
    ipykernel has no option for that; `_flush` and `_buffers` are its own. No upstream issue is
    known.
    """
    known = sys.modules["ipykernel.iostream"].OutStream
    streams: Any = (sys.stdout, sys.stderr)
    for stream in streams:
        # Older ones have another buffer; one that echoes has more to flush.
        if type(stream) is known and stream.echo is None and hasattr(stream, "_buffers"):
            taking: list[bool] = []
            vars(stream)["_flush"] = partial(take_text, stream._flush, taking)
            vars(stream)["flush"] = partial(flush_if_there, stream, stream.flush, taking)


def send_all_text() -> None:
    """Have a stream send half a character (a lone surrogate) as its escape.

    It cannot be encoded: the whole text that it is in would be lost, and the error, in the thread
    that sends, keeps whoever flushes the stream waiting for ten seconds
    (https://github.com/jupyter/notebook/issues/2680). The hook is public, but only hooks of the
    thread that sends are called (https://github.com/ipython/ipykernel/pull/1367).
    """
    kernel = sys.modules["IPython"].get_ipython().kernel
    streams: Any = (sys.stdout, sys.stderr)
    for stream in streams:
        if type(stream) is sys.modules["ipykernel.iostream"].OutStream:
            # Each thread has its own hooks, and this one sends.
            kernel.iopub_thread.schedule(partial(stream.register_hook, escaped))


def escaped(message: Any) -> Any:
    """Return a stream's message with text that can be encoded."""
    content = message["content"]
    content["text"] = content["text"].encode(errors="backslashreplace").decode()
    return message


def take_text(flush: Callable[[], None], taking: list[bool]) -> None:
    """Take a stream's text and queue it; for as long as that takes, `taking` is not empty."""
    taking.append(True)
    try:
        flush()
    finally:
        taking.pop()


def flush_if_there(stream: Any, flush: Callable[[], None], taking: list[bool]) -> None:
    """Flush a stream that holds text, or held some that is just being taken."""
    # In this order: it is being taken before the stream is without it.
    if stream._buffers or taking:
        flush()
