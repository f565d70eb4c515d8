"""Records what the code of a session runs in: interpreter, platform, installed packages.

A kernel is asked when it is idle: after the session's first execution in it, and after code that
names an installer. Only such code waits for an answer, if it would run before the first one.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from ..errors import KernelUnavailable
from ..kernels.inspection import Question, Unanswered
from ..kernels.kernel import Kernel, KernelOccupied
from ..kernels.kernel_queue import Requester
from ..records import (
    SERVER,
    Entry,
    Environment,
    EnvironmentFound,
    PackagesChanged,
    Payload,
    timestamp,
)
from ..types import ExecutionId
from .execution import LiveExecution
from .live_executions import LiveExecutions
from .recorder import Recorder
from .session_kernels import SessionKernels

ANSWER_TIMEOUT: Final = 5.0
"""Seconds to wait for the kernel; a slow disk may hold many packages."""

IDLE_DELAY: Final = 0.2
"""Seconds without an execution before the kernel is asked; the agent may send the next at once."""

_INSTALLERS: Final = re.compile(
    r"\b(pip3?|conda|mamba|micromamba|uv|poetry|pixi|easy_install|ensurepip)\b"
)


class SessionEnvironment:
    """The environment of one session's kernels."""

    def __init__(
        self, executions: LiveExecutions, kernels: SessionKernels, recorder: Recorder
    ) -> None:
        self._executions = executions
        self._kernels = kernels
        self._recorder = recorder
        self._lock = asyncio.Lock()
        self._known: Environment | None = None
        self._known_in = 0  # the incarnation that told it
        self._installed_by: ExecutionId | None = None
        self._looking: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    def is_due(self, execution: LiveExecution) -> bool:
        """Return whether to `look` before code runs that may change an unknown environment."""
        is_known = self._known_in == self._kernels.number
        return not is_known and _may_install(execution.source)

    def ended(self, execution: LiveExecution) -> None:
        """Ask the kernel soon if the environment is new or may have changed."""
        if execution.run is not None and _may_install(execution.source):
            self._installed_by = execution.id
        is_new = self._known_in != self._kernels.number and not execution.spec.init
        is_looking = self._looking is not None and not self._looking.done()
        if (is_new or self._installed_by is not None) and not is_looking:
            name = f"environment of {execution.session_id}"
            self._hurry.clear()
            self._looking = self._executions.tasks.start(self._look_when_idle(), name)

    async def settled(self) -> None:
        """Ask the kernel now if that is due, and wait until it has answered."""
        self._hurry.set()
        if self._looking is not None:
            await asyncio.wait({self._looking}, timeout=ANSWER_TIMEOUT)

    async def _look_when_idle(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_DELAY):
                await self._hurry.wait()
        if not self._executions:  # else the end of the next one leads here again
            await self.look()

    async def look(self) -> None:
        """Ask the kernel, and record what is new. If it is busy, it is asked another time."""
        async with self._lock:
            kernel, incarnation = self._kernels.current, self._kernels.number
            by = self._installed_by
            if kernel is None or (by is None and self._known_in == incarnation):
                return
            environment = await self._ask(kernel)
            if environment is None:
                return
            before, is_same_kernel = self._known, self._known_in == incarnation
            self._known, self._known_in, self._installed_by = environment, incarnation, None
            if environment == before:
                return
            payload, entry = None, None
            if is_same_kernel and by is not None and before is not None:
                payload, entry = _changes(before, environment, by)
            if payload is None or entry is None:
                payload = Payload.of(msgspec.json.encode(environment))
                entry = EnvironmentFound(
                    at=timestamp(),
                    by=SERVER,
                    kernel_id=kernel.id,
                    incarnation=incarnation,
                    environment=payload.digest,
                )
            await self._recorder.record(entry, [payload])

    async def _ask(self, kernel: Kernel) -> Environment | None:
        """Return what a kernel tells; None if it cannot be asked now."""
        info = kernel.connection.kernel_info
        if not info:  # it has been busy since we connected
            return None
        language = info.get("language_info") or {}
        environment = Environment(
            language=_text(language.get("name")),
            version=_text(language.get("version")),
            implementation=_text(info.get("implementation")),
        )
        if not kernel.connection.inspector.is_python:
            return replace(
                environment, reason="Only Python's kernel (ipykernel) tells which packages it has."
            )
        asker = Requester(self._executions.session.agent.name, None)
        try:
            question = Question("environment", {}, ANSWER_TIMEOUT)
            return msgspec.convert(await kernel.ask(question, asker), Environment)
        except KernelOccupied:
            return None
        except (Unanswered, KernelUnavailable, msgspec.ValidationError):
            return replace(environment, reason="The kernel did not tell which packages it has.")


def _changes(
    before: Environment, now: Environment, by: ExecutionId
) -> tuple[Payload, Entry] | tuple[None, None]:
    """Return what was installed and removed; None if more than that has changed."""
    if before.packages is None or replace(before, packages=now.packages) != now:
        return None, None
    old, new = set(before.packages), set(now.packages or ())
    lines = [f"-{line}" for line in sorted(old - new)] + [f"+{line}" for line in sorted(new - old)]
    payload = Payload.of("\n".join(lines).encode("utf-8", "replace"))
    entry = PackagesChanged(at=timestamp(), by=SERVER, execution_id=by, packages=payload.digest)
    return payload, entry


def _may_install(source: str) -> bool:
    return _INSTALLERS.search(source) is not None


def _text(value: object) -> str | None:
    return value[:200] if isinstance(value, str) else None
