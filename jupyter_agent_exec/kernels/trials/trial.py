"""One trial, as the server sees it: has the kernel fork, and collects what the copy sends.

`TrialSettings` says whether trials can be had here, and what a copy may read and use.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from ...errors import KernelUnavailable, TrialUnavailable
from ...models import Refusal, Seal
from ...text.lookalikes import exact
from ...text.redaction import Redaction
from ..confinement import ARCHITECTURES, SYSTEM, landlock_abi
from ..connection import KernelConnection
from ..execute_request import ExecuteOutcome, ExecuteRequest
from ..folder import folder_for_sockets
from ..in_kernel.expression import expression, resident_call
from ..in_kernel.resident import TARGET
from ..inspection import Inspector, Unanswered
from ..kernel import Kernel
from ..messages import Header, Message, decoded
from ..variables import (
    MOST_TRIAL_PARTS,
    TRIAL_PARTS,
    changes_in,
    value_expressions,
    variable_expressions,
)

NO_TRIAL = "A trial is not possible here"
INSTEAD = "Nothing was run. Run the code itself, not as a trial: then it can change something."


def machine_fault() -> str | None:
    """Return why this machine cannot seal a copy of a kernel; None if it can."""
    if not sys.platform.startswith("linux"):
        return "Trials need Linux."
    if os.uname().machine not in ARCHITECTURES:
        return f"Trials are not made for this processor, {os.uname().machine}."
    if landlock_abi() < 1:
        return "Trials need Landlock: Linux 5.13 or later, where it is not switched off."
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(22, 2, None, 0, 0)  # a filter that is nowhere: EFAULT if there can be filters
    if ctypes.get_errno() != errno.EFAULT:
        return "Trials need seccomp, which this Linux does not have."
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialSettings:
    """What an operator decides about trials."""

    is_on: bool
    previews: bool
    """Whether code that waits for approval is tried, to show the user what it does."""
    memory_bytes: int
    """The most memory that a copy may add to the kernel's."""
    root: Path
    """The folder that the server serves, which copies may read."""
    allow_hidden: bool
    """Whether copies may read hidden files in folders within it, as Jupyter lets users."""
    hidden: Collection[Path]
    """Folders that copies may not read, even within others."""

    def fault(self, kernel: Kernel | None) -> str | None:
        """Return why a kernel cannot be copied, as far as it is known; None if it can."""
        why = (
            machine_fault()
            if self.is_on
            else "The operator of this server has switched off trials."
        )
        if why is not None or kernel is None:
            return why
        if kernel.is_elsewhere:
            return "The kernel may run on another machine, where it cannot be copied."
        if kernel.is_isolated:
            return "An isolated kernel cannot be copied."
        if kernel.connection.kernel_info and not kernel.connection.inspector.is_python:
            return f"Only Python's kernel (ipykernel) can be copied; this one is {kernel.name!r}."
        return None

    def check(self, kernel: Kernel | None) -> None:
        """Raise TrialUnavailable if it is known that a kernel cannot be copied."""
        why = self.fault(kernel)
        if why is not None:
            raise TrialUnavailable(f"{why} {INSTEAD}", field="trial")

    def plan(self) -> dict[str, object]:
        """Return the part of a copy's plan that is the same for all."""
        return {
            "memory_bytes": self.memory_bytes,
            "root": str(self.root),
            "allow_hidden": self.allow_hidden,
            "hidden": [str(path) for path in self.hidden],
            "system": list(SYSTEM),
        }


FILES: Final = (
    "../confinement.py",
    *(f"../trials/{name}.py" for name in ("seal", "opener", "parking", "copy")),
)

NOT_THERE: Final = ("AttributeError", "KeyError")
"""Errors of a kernel in which our code is not yet, or no longer."""

FORK_TIMEOUT: Final = 10.0
"""Seconds within which an idle kernel forks."""
CONNECT_TIMEOUT: Final = 10.0
"""Seconds within which the copy and its watcher connect after that."""
END_TIMEOUT: Final = 5.0
"""Seconds within which the watcher ends the copy, once it has to."""

MOST_FRAME_BYTES: Final = 64 << 20
"""A larger frame is counted, and not kept."""
MOST_HEADER_BYTES: Final = 1 << 10
READ_BYTES: Final = 1 << 20
MOST_TOLD: Final = 200
"""The most characters that are shown of why a copy says that it ended."""
LENGTHS: Final = struct.Struct("!II")

TOLD: Final = frozenset(
    {"trial_sealed", "trial_ended", "trial_failed", "trial_exited", "trial_refused"}
)
"""Frames that are ours, not Jupyter's messages."""

REFUSED: Final = (
    "The seal of the trial refused something: a trial cannot write, delete, connect, signal, or "
    "start programs. To do that, run the code itself, not as a trial."
)


class Frames:
    """Cuts what comes from a connection into frames."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._skip = 0
        self.is_broken = False
        """Whether something came that is not a frame. What came before it is one all the same."""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that are complete now."""
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._data += memoryview(data)[skipped:]
        while len(self._data) >= LENGTHS.size:
            header_size, size = LENGTHS.unpack_from(self._data)
            if header_size > MOST_HEADER_BYTES:
                self.is_broken = True
                return
            start = LENGTHS.size + header_size
            is_large = size > MOST_FRAME_BYTES
            if len(self._data) < start + (0 if is_large else size):
                break
            header = bytes(self._data[LENGTHS.size : start])
            content = b"" if is_large else bytes(self._data[start : start + size])
            message = decoded(header, b"null", content or b"{}")
            if is_large:
                about = Header(msg_type=message.header.msg_type)
                message = Message(about, Header(), {}, size=size, unread=True)
                self._skip = max(0, start + size - len(self._data))
            del self._data[: start + size]
            yield message


async def call_in_kernel(
    inspector: Inspector, function: str, plan: dict[str, object], files: tuple[str, ...], stay: str
) -> str | None:
    """Call a function of code that stays in a kernel, whose turn the caller holds.

    Parameters
    ----------
    files
        The files with the code, which are sent if it is not there.
    stay
        The function in it that makes `function` available.

    Returns
    -------
    Why that failed; None if it did not.
    """
    code = resident_call(function, json.dumps(plan))
    try:
        fault = await inspector.evaluate(code, FORK_TIMEOUT)
        if fault is not None and fault.startswith(NOT_THERE):
            if fault.startswith("KeyError"):  # somebody has removed our code from the kernel
                inspector.register()
            await inspector.evaluate(expression(files, f"{stay}({TARGET!r})"), FORK_TIMEOUT)
            fault = await inspector.evaluate(code, FORK_TIMEOUT)
    except (Unanswered, KernelUnavailable):
        return "the kernel did not answer"
    return fault


class Trial:
    """One trial.

    Parameters
    ----------
    run
        What to run, and what becomes of it.
    seconds
        How long it may run. The watcher ends it a little later by itself, should this server not.
    """

    def __init__(
        self,
        run: ExecuteRequest,
        connection: KernelConnection,
        settings: TrialSettings,
        seconds: float,
    ) -> None:
        self._run = run
        self._connection = connection
        self._settings = settings
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._ends, self._wake = socket.socketpair()
        self._ended = False
        self._told: dict[str, dict[str, Any]] = {}

    def end(self) -> None:
        """End the copy; `run` returns when it has ended. Idempotent."""
        if not self._ended:
            self._ended = True
            self._wake.close()

    async def run(self, forked: Callable[[], None]) -> tuple[ExecuteOutcome | None, str | None]:
        """Run it to its end.

        Parameters
        ----------
        forked
            Called when the kernel is free for others.

        Returns
        -------
        How it ended; None if its dispatch could not be recorded. And why it was not run, if so.
        """
        run, folder = self._run, None
        self._connection.requests.begin_trial(run)
        try:
            run.starts()
            if not await asyncio.to_thread(run.observer.before_sending):
                return None, None
            folder = folder_for_sockets("agent-exec-trial-")
            (folder / "private").mkdir(mode=0o700)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(folder / "socket"))
                listener.listen(2)
                run.is_sent = True
                run.observer.sent()
                fault = await self._fork(folder)
                run.starts()
                run.has_begun = True
                run.observer.begun()
                forked()
                if fault is None:
                    await self._in_thread(listener)
            if fault is None and "trial_sealed" not in self._told and not self._ended:
                fault = self._told.get("trial_refused", {}).get("reason", "the copy did not answer")
            run.ends()
            return await asyncio.to_thread(self._outcome), fault
        finally:
            self.end()
            self._ends.close()
            if folder is not None:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _fork(self, folder: Path) -> str | None:
        """Have the kernel fork; return why it did not, or None."""
        info = self._connection.kernel_info
        parts = min(MOST_TRIAL_PARTS, int(self._seconds * TRIAL_PARTS))
        look = variable_expressions(info, parts)
        if not look:
            return "only Python's kernel (ipykernel) can be copied"
        plan = {
            **self._settings.plan(),
            "source": self._run.source,
            "seconds": self._seconds + END_TIMEOUT,
            "socket": str(folder / "socket"),
            "private": str(folder / "private"),
            "look": "".join(look.values()),
            "values": "".join(value_expressions(info, self._run.values).values()),
        }
        return await call_in_kernel(self._connection.inspector, "trial", plan, FILES, "stay")

    async def _in_thread(self, listener: socket.socket) -> None:
        """Collect in a thread of its own: a trial may take long, and write much."""
        pool = ThreadPoolExecutor(1, f"agent-exec-trial-{self._run.id}")
        try:
            await self._loop.run_in_executor(pool, self._collect, listener)
        finally:
            pool.shutdown(wait=False)

    # -- in its thread -----------------------------------------------------------------------------

    def _collect(self, listener: socket.socket) -> None:
        """Read from both connections until they end."""
        connected, open_now, has_to_end = 0, 0, False
        until: float | None = time.monotonic() + CONNECT_TIMEOUT
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(self._ends, selectors.EVENT_READ)
            try:
                while connected < 2 or open_now:
                    left = None if until is None else until - time.monotonic()
                    if left is not None and left <= 0:
                        return
                    for key, _ in selector.select(left):
                        if key.fileobj is listener:
                            accepted = listener.accept()[0]
                            selector.register(accepted, selectors.EVENT_READ, Frames())
                            connected, open_now = connected + 1, open_now + 1
                            if has_to_end:
                                self._hang_up(selector)
                            elif connected == 2:
                                until = None
                        elif key.fileobj is self._ends:
                            selector.unregister(self._ends)
                            has_to_end = True
                            until = time.monotonic() + END_TIMEOUT
                            self._hang_up(selector)
                        elif not self._read(key):
                            selector.unregister(key.fileobj)
                            key.fileobj.close()  # type: ignore[union-attr]
                            open_now -= 1
            finally:
                for key in list(selector.get_map().values()):
                    if isinstance(key.data, Frames):
                        key.fileobj.close()  # type: ignore[union-attr]

    def _hang_up(self, selector: selectors.BaseSelector) -> None:
        """Let the watcher know that the copy has to end; it still says how it ended."""
        for key in selector.get_map().values():
            if isinstance(key.data, Frames):
                key.fileobj.shutdown(socket.SHUT_WR)  # type: ignore[union-attr]

    def _read(self, key: selectors.SelectorKey) -> bool:
        """Read what has come; return False at the end."""
        try:
            data = key.fileobj.recv(READ_BYTES)  # type: ignore[union-attr]
        except OSError:
            return False
        for message in key.data.feed(data):
            msg_type = message.header.msg_type
            if msg_type in TOLD:
                self._told.setdefault(msg_type, message.content)  # the first is ours for certain
            else:
                self._connection.requests.feed_trial(self._run, message)
        return bool(data) and not key.data.is_broken

    # -- the end -----------------------------------------------------------------------------------

    def _outcome(self) -> ExecuteOutcome:
        """Return how it ended."""
        run, told = self._run, Redaction(self._connection.redactor).content(self._told)
        ended = told.get("trial_ended", {})
        reply = ended.get("reply")
        reason: str | None = None
        if isinstance(reply, dict):
            run.replied(reply, self._told["trial_ended"]["reply"], is_last=True)
            run.variables, _ = changes_in({"payload": ended.get("changes")})
        else:
            reason = _reason(told)
        is_ok = isinstance(reply, dict) and reply.get("status") == "ok"
        outcome = run.end("ok" if is_ok else "error", None, None, None)
        seal = _seal(told.get("trial_sealed"), ended.get("refused"))
        if isinstance(reply, dict) and not is_ok and seal is not None and seal.refused:
            reason = REFUSED
        # Whatever a copy says, it ends only itself.
        return replace(outcome, exits=False, reason=reason or outcome.reason, seal=seal)


def _seal(told: Any, refused: Any) -> Seal | None:
    try:
        sealed = msgspec.convert(told, Seal)
    except msgspec.ValidationError:
        return None
    with suppress(msgspec.ValidationError):
        return msgspec.structs.replace(sealed, refused=msgspec.convert(refused, list[Refusal]))
    return sealed


def _reason(told: dict[str, Any]) -> str:
    """Return how a copy ended that did not come to the end of the code.

    Code in a copy can tell anything: its words stand in quotation marks.
    """
    exited, failed = told.get("trial_exited", {}), told.get("trial_failed", {}).get("reason")
    code, why = exited.get("code"), exited.get("reason")
    if failed:
        return f"The trial failed: {_quoted(failed)}."
    if why:
        return f"The trial was ended: {_quoted(why)}."
    if isinstance(code, int) and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"The copy of the kernel was ended by {name}. The kernel itself goes on."
    if code is not None:
        return "The code ended the copy of the kernel. The kernel itself goes on."
    return "The copy of the kernel ended, and did not say how."


def _quoted(told: Any) -> str:
    words = " ".join(exact(str(told)).split())
    return f"“{words[:MOST_TOLD]}”"
