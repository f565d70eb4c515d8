"""Inspects a kernel without an execution: variables, packages, environment.

If the kernel has subshells, one of them answers, even while the kernel runs code. Otherwise, the
main shell answers when nobody else needs it. These requests have their own ids, belong to no
execution, and do not change the execution state that users see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec

from ..errors import KernelUnavailable
from ..tasks import first_of, settle
from .execution_state import KernelLink
from .in_kernel.expression import RESIDENT, expression, is_ipython
from .in_kernel.resident import ANSWER, TARGET
from .messages import Message

MAIN, ASIDE = "look-", "aside-"
"""Prefixes of request ids: of requests to the main shell, and of all others."""

HEARD: Final = f"{ASIDE}heard-"
"""Prefix of the ids of requests for which we await the idle on IOPub, not the reply."""

MOST_STUCK: Final = 3
"""The most subshells that never answered. After that, a busy kernel gets no requests."""

CONTROL_TIMEOUT: Final = 2.0
"""Seconds within which a kernel creates a subshell, even if it is busy."""

PATIENCE: Final = 5.0
"""Seconds for which a user's kernel waits for a listener that does not read."""

REQUESTS: Final = ("comm_open", "create_subshell_request", "delete_subshell_request")
"""Requests to a kernel that runs code. Their idle is not the end of that code."""

_KEPT_OF_OWN: Final = "keep_all(None)\nflush_what_is_there()\nsend_all_text()"


NOT_REGISTERED: Final = "NotRegistered"
"""Name of the error when our code is not in the kernel."""


class Question(NamedTuple):
    """A question to a kernel."""

    name: str
    """The name of a question that `in_kernel/resident.py` answers."""
    given: dict[str, Any]
    timeout: float
    """Seconds to wait for the answer."""


class Unanswered(Exception):
    """The kernel has not answered in time."""


class Inspector:
    """Sends inspection requests to one kernel, in one life. Call on the loop, unless noted."""

    def __init__(self, link: KernelLink) -> None:
        self._link = link
        self._channels = link.channels
        self._ids = count()
        self._pending: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._making = asyncio.Lock()
        self._subshell: str | None = None
        self._stuck = 0
        self._is_registered = False
        self._at: str | None = None

    @property
    def has_subshells(self) -> bool:
        """Whether the kernel can answer while it runs code."""
        features = self._link.kernel_info.get("supported_features") or ()
        return "kernel subshells" in features and self._stuck < MOST_STUCK

    @property
    def subshell(self) -> str | None:
        """The id of our subshell; None if there is none."""
        return self._subshell

    @property
    def is_python(self) -> bool:
        """Whether the kernel can run our code to answer."""
        return is_ipython(self._link.kernel_info)

    @property
    def is_at_ours(self) -> bool:
        """Whether the kernel's main shell handles our request now, according to its messages."""
        return self._at is not None

    @property
    def asks_aside(self) -> bool:
        """Whether a subshell can answer, even if the kernel is busy.

        Only in IPython: other kernels that are built on ipykernel may claim to have subshells, but
        do not use them.
        """
        return self._is_registered and self.has_subshells

    async def ask(self, question: Question, *, aside: bool) -> Any:
        """Send a request, and return the answer.

        Parameters
        ----------
        aside
            Whether a subshell answers. Otherwise, the caller holds the kernel's turn.

        Raises
        ------
        Unanswered, KernelUnavailable
        """
        if not self.is_python:
            raise Unanswered
        answer = await self._asked(question, aside=aside)
        if answer.get("ename") == NOT_REGISTERED:  # somebody has removed our code
            await self._answer(ASIDE, self.register, question.timeout)
            answer = await self._asked(question, aside=aside)
        return self._told(answer)

    async def _asked(self, question: Question, *, aside: bool) -> dict[str, Any]:
        if not aside:
            return await self._answer(MAIN, partial(self._send, question, None), question.timeout)
        for _ in range(2):
            subshell = self._subshell or await self._new_subshell()
            try:
                send = partial(self._send, question, subshell)
                answer = await self._answer(ASIDE, send, question.timeout)
            except Unanswered:
                self._subshell = None  # the fault there may persist
                self._stuck += 1
                raise
            if answer.get("ename") != "UnknownSubshellError":
                return answer
            self._subshell = None  # another program has deleted it
        raise Unanswered

    async def evaluate(self, code: str, timeout: float) -> str | None:
        """Evaluate an expression of ours in the main shell, whose turn the caller holds.

        Returns
        -------
        The error, if it raised one.

        Raises
        ------
        Unanswered, KernelUnavailable
        """

        def send(msg_id: str) -> None:
            self.prepare()
            self._evaluate(code, msg_id)

        answer = await self._answer(MAIN, send, timeout)
        told = answer.get("user_expressions")
        result = told.get(TARGET) if isinstance(told, dict) else None
        if not isinstance(result, dict):
            raise Unanswered
        if result.get("status") == "error":
            return f"{result.get('ename')}: {result.get('evalue')}"
        return None

    async def catch_up(self) -> None:
        """Wait until all messages that the kernel has sent so far are read, such as a cell's start.

        Raises
        ------
        Unanswered, KernelUnavailable
        """

        def send(msg_id: str) -> None:
            self._channels.send("control", "kernel_info_request", {}, msg_id=msg_id)

        await self._answer(HEARD, send, CONTROL_TIMEOUT)

    async def end(self) -> None:
        """Delete our subshell, unless it is busy, because deletion would block the kernel."""
        subshell, self._subshell = self._subshell, None
        if subshell is not None and not self._pending:
            with suppress(Unanswered, KernelUnavailable):
                await self._on_control("delete_subshell_request", {"subshell_id": subshell})

    def _told(self, answer: dict[str, Any]) -> Any:
        """Return the content of an answer; raise Unanswered if it is not valid."""
        try:
            return msgspec.json.decode(answer["told"])
        except (KeyError, TypeError, UnicodeError, RecursionError, msgspec.MsgspecError) as error:
            raise Unanswered from error  # user code in the kernel can write messages too

    async def _new_subshell(self) -> str:
        async with self._making:
            if self._subshell is None:
                self._subshell = await self._made_subshell()
            return self._subshell

    async def _made_subshell(self) -> str:
        answer = await self._on_control("create_subshell_request", {})
        subshell = answer.get("subshell_id")
        if not isinstance(subshell, str):
            self._stuck = MOST_STUCK
            raise Unanswered
        return subshell

    async def _on_control(self, msg_type: str, content: dict[str, Any]) -> dict[str, Any]:
        def send(msg_id: str) -> None:
            self._channels.send("control", msg_type, content, msg_id=msg_id)

        return await self._answer(ASIDE, send, CONTROL_TIMEOUT)

    async def _answer(
        self, prefix: str, send: Callable[[str], None], timeout: float
    ) -> dict[str, Any]:
        msg_id = f"{prefix}{next(self._ids)}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def begin() -> None:
            self._pending[msg_id] = answer
            send(msg_id)

        self._channels.call(begin)
        try:
            await first_of(answer, self._link.disconnected, timeout=timeout)
        finally:
            self._channels.call(partial(self._settle, msg_id, {}))
        if answer.done():
            return answer.result()
        if self._link.disconnected.done():
            raise KernelUnavailable("The kernel ended when it was looked into.")
        raise Unanswered

    # -- in the channels' thread -------------------------------------------------------------------

    def prepare(self, *, is_own: bool = False) -> None:
        """Send our code to an IPython kernel, where it answers from the next idle on. Idempotent.

        Parameters
        ----------
        is_own
            Whether only we use the kernel. Then it waits for us without limit instead of dropping
            messages; else for `PATIENCE`.
        """
        if not self._is_registered and self.is_python:
            self._is_registered = True
            kept = _KEPT_OF_OWN if is_own else f"keep_all({PATIENCE})"
            self.register(call=f"register()\n{kept}")

    def register(self, msg_id: str = f"{ASIDE}register", call: str = "register()") -> None:
        """Send our code to an IPython kernel, also if it was there before."""
        self._evaluate(expression(RESIDENT, call), msg_id)

    def _evaluate(self, code: str, msg_id: str) -> None:
        """Make the kernel evaluate an expression of ours, which runs none of the user's code."""
        content = {
            "code": "",
            "silent": True,
            "store_history": False,
            "user_expressions": {TARGET: code},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        self._channels.send("shell", "execute_request", content, msg_id=msg_id)

    def take(self, message: Message) -> bool:
        """Handle a message that belongs to our requests; return whether no other code needs it."""
        msg_id, msg_type = message.parent.msg_id, message.header.msg_type
        if not msg_id.startswith((MAIN, ASIDE)):
            return False
        if msg_type == "status":
            state = message.content.get("execution_state")
            if msg_id.startswith(MAIN):
                self._at = msg_id if state == "busy" else None
            if msg_id.startswith(HEARD) and state == "idle":
                self._settle(msg_id, {})
            return msg_id.startswith(ASIDE)
        if msg_id.startswith(HEARD):
            return True
        if msg_type == "comm_close":  # the kernel does not know the target
            self._settle(msg_id, {"ename": NOT_REGISTERED})
        elif msg_type != ANSWER and not msg_type.endswith("_reply"):
            return False
        else:
            self._settle(msg_id, self._link.redacted(message))
        return True

    def _settle(self, msg_id: str, content: dict[str, Any]) -> None:
        asked = self._pending.pop(msg_id, None)
        if asked is not None:
            self._link.on_loop(settle, asked, None, content)

    def _send(self, question: Question, subshell: str | None, msg_id: str) -> None:
        self.prepare()
        data = {
            "question": question.name,
            "given": question.given,
            "behind": msgspec.structs.asdict(self._link.activity.latest_request),
        }
        content = {"comm_id": msg_id, "target_name": TARGET, "data": data}
        self._channels.send("shell", "comm_open", content, msg_id=msg_id, subshell_id=subshell)
