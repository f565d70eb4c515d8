"""Workarounds inside the kernel, where ipykernel has no public API. Each says why it is needed.

They are sent with `resident`, and tested with ipykernel 6.29 to 7.4. They use private names:
`tests/test_workarounds.py` fails when ipykernel removes one of them. The module `workarounds` has
those on the server's side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

NUMBER = b"jupyter-agent-exec "


def keep_all(patience: float | None) -> None:
    """Make the kernel wait when 1,000 messages are queued for a listener, instead of dropping some.

    Parameters
    ----------
    patience
        Seconds after which it drops messages again, because a listener has stopped reading, such as
        a suspended console. Then it drops them for each listener that is slow, so its messages are
        numbered from the beginning: `NUMBER` and the number are the last frame before the
        delimiter, where other clients expect the names of a topic. None: wait without limit, if
        only we listen.

    ipykernel creates the socket, and has no option for its behaviour when it is full. No upstream
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
        numbers = count()

        def send_patiently(frames: Any, *args: Any, **kwargs: object) -> Any:
            frames = list(frames)
            if b"<IDS|MSG>" in frames:  # else it is no message
                frames.insert(frames.index(b"<IDS|MSG>"), NUMBER + b"%d" % next(numbers))
            try:
                return send(frames, *args, **kwargs)
            except Again:
                socket.setsockopt(XPUB_NODROP, 0)
                return send(frames, *args, **kwargs)

        socket.send_multipart = send_patiently

    # Only the IOPub thread may use the socket.
    thread.schedule(begin)


def flush_what_is_there() -> None:
    """Make the kernel wait for its IOPub thread only if there is text to send.

    ipykernel flushes six times in each execution, and waits for that thread each time, even if
    nothing was printed. That is a quarter of the time of a short execution. It must also wait for
    text that the thread has taken but not yet queued, or the next message would overtake it.
    ipykernel has no option for that; `_flush` and `_buffers` are private. No upstream issue is
    known.
    """
    known = sys.modules["ipykernel.iostream"].OutStream
    streams: Any = (sys.stdout, sys.stderr)
    for stream in streams:
        # Older versions have another buffer; a stream that echoes has more to flush.
        if type(stream) is known and stream.echo is None and hasattr(stream, "_buffers"):
            taking: list[bool] = []
            vars(stream)["_flush"] = partial(take_text, stream._flush, taking)
            vars(stream)["flush"] = partial(flush_if_there, stream, stream.flush, taking)


def send_all_text() -> None:
    """Make a stream send a lone surrogate as its escape sequence.

    A lone surrogate cannot be encoded. The whole text around it would be lost, and the error in the
    IOPub thread would make each flush of the stream wait for ten seconds
    (https://github.com/jupyter/notebook/issues/2680). The hook is public, but only hooks of the
    IOPub thread are called (https://github.com/ipython/ipykernel/pull/1367).
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
    """Move a stream's text to the queue. Meanwhile `taking` is not empty."""
    taking.append(True)
    try:
        flush()
    finally:
        taking.pop()


def flush_if_there(stream: Any, flush: Callable[[], None], taking: list[bool]) -> None:
    """Flush a stream that holds text, or whose text is just being queued."""
    # In this order, because `taking` is set before the stream loses its text.
    if stream._buffers or taking:
        flush()
