"""Applies the code rules to the executions of one session.

Whether code changes a user's variables depends on the names in the kernel. So a user's kernel is
asked what the source's names are there, through a subshell if it has any. Nothing is asked in a
scratch kernel, and nothing where the mode is not `rules`.

Sources are read on the event loop, which takes milliseconds: in CPython 3.11, two threads cannot
safely parse at the same time (python/cpython#106905).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from ..code_rules.classifier import names_in, names_made_by, reasons_to_ask
from ..errors import KernelUnavailable
from ..kernels.inspection import KernelOccupied, Question, Unanswered, ask
from ..kernels.kernel_queue import Requester
from ..models import ApprovalReason, ScratchTarget, Session
from ..types import ExecutionId, RuleKind
from .execution import LiveExecution
from .incarnations import Incarnations

ANSWER_TIMEOUT: Final = 1.0
"""Seconds to wait for the kernel. Without an answer, every assignment asks."""


class SessionCodeRules:
    """Reads the sources of one session, and knows which names its code has made."""

    def __init__(self, session: Session, incarnations: Incarnations) -> None:
        self._session = session
        self._incarnations = incarnations
        self._incarnation = 0
        self._own: set[str] = set()
        self._makes: dict[ExecutionId, set[str]] = {}

    async def read(
        self, execution: LiveExecution, allowed: frozenset[RuleKind]
    ) -> tuple[ApprovalReason, ...]:
        """Return why an execution needs approval; empty if it needs none."""
        kernel = self._incarnations.current
        is_known = kernel is not None and bool(kernel.connection.kernel_info)
        if kernel is not None and is_known and not kernel.connection.inspector.is_python:
            text = "is not Python, and the rules know no other language"
            return (ApprovalReason(line=1, kind="unknown", text=text),)
        if self._incarnation != self._incarnations.number:
            self._incarnation = self._incarnations.number
            self._own.clear()
            self._makes.clear()
        sources = [execution.source, *execution.spec.expressions.values()]
        outside = await self._outside(sources)
        found = [
            reasons_to_ask(source, allowed, outside=outside, own=self._own) for source in sources
        ]
        reasons = found[0] + [
            ApprovalReason(line=1, kind=reason.kind, text=f"has a value that {reason.text}")
            for each in found[1:]
            for reason in each
        ]
        makes = set() if outside is None else names_made_by(execution.source) - set(outside)
        if reasons:
            self._makes[execution.id] = makes
        else:
            self._own |= makes
        return tuple(reasons)

    def approved(self, execution: LiveExecution) -> None:
        """Note that a user let an execution run, and with it the names that it makes."""
        self._own |= self._makes.pop(execution.id, set())

    async def _outside(self, sources: list[str]) -> Mapping[str, str] | None:
        """Return what the names of sources are in the kernel; None if it does not tell."""
        kernel = self._incarnations.current
        if kernel is None or isinstance(self._session.target, ScratchTarget):
            return {}
        if kernel.is_ending:
            return None
        names = sorted({name for source in sources for name in names_in(source)})
        question = Question("described_names", {"names": names}, ANSWER_TIMEOUT)

        async def about_to() -> None:
            """Nothing is recorded: no code runs for the answer."""

        with suppress(KernelOccupied, Unanswered, KernelUnavailable, msgspec.ValidationError):
            told = await ask(kernel, question, Requester(self._session.agent.name, None), about_to)
            return msgspec.convert(told, dict[str, str])
        return None
