"""Whether a kernel has answered on both channels, and whether to ask it again. No I/O.

A subscription to IOPub takes effect some time after it was asked for, so what a kernel does is only
known from its answers once one of them was heard there too.
"""

from __future__ import annotations

from typing import Any, Final

from .messages import Message

HELLO: Final = "hello"
"""The id of our `kernel_info_request`."""

AGAIN_DELAY: Final = 0.05
"""Seconds after an answer that was not heard on IOPub before the request is sent again; doubled
each time."""


class Greeting:
    """One kernel's answers to `kernel_info_request`.

    Parameters
    ----------
    is_shared
        Whether others use the kernel. Then anything that is heard on IOPub is not enough: it may be
        the middle of something whose beginning was missed.
    """

    def __init__(self, *, is_shared: bool) -> None:
        self.kernel_info: dict[str, Any] = {}
        """Content of the last `kernel_info_reply`."""
        self.is_done = False
        self._is_shared = is_shared
        self._is_heard = False
        self._again_at: float | None = None
        self._delay = AGAIN_DELAY

    def hear(self, message: Message, *, ours: bool) -> bool:
        """Take a message from IOPub; return whether the kernel is greeted with it."""
        if self._is_heard:
            return False
        self._is_heard = not self._is_shared or (
            ours
            and message.parent.msg_id == HELLO
            and message.content.get("execution_state") == "idle"
        )
        return self._is_greeted()

    def answer(self, content: dict[str, Any], now: float) -> bool:
        """Take a `kernel_info_reply`; return whether the kernel is greeted with it."""
        self.kernel_info = content
        if self._is_shared and not self._is_heard:
            self._again_at = now + self._delay
            self._delay *= 2
        return self._is_greeted()

    def again_at(self) -> float | None:
        """Return when to send the request again, if nothing is heard before."""
        return None if self.is_done else self._again_at

    def asked(self) -> None:
        """Take note that the request was sent."""
        self._again_at = None

    def _is_greeted(self) -> bool:
        is_new = bool(self.kernel_info) and self._is_heard and not self.is_done
        self.is_done = self.is_done or is_new
        return is_new
