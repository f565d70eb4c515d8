"""Inspection of a session's kernel: variables and packages.

Neither is an execution. Variables are read without running user code, and packages with Python's
own `importlib.metadata`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from ..errors import KernelBusy, KernelUnavailable
from ..executions.spec import check_python
from ..kernels.inspection import Question, Unanswered
from ..kernels.kernel import KernelOccupied
from ..kernels.kernel_queue import Requester
from ..models import (
    Package,
    PackageList,
    PackagesQuery,
    Variable,
    VariableList,
    VariablesQuery,
    WaitingFor,
)
from .manager import AgentSessions

T = TypeVar("T", bound=msgspec.Struct)

ANSWER_TIMEOUT: Final = 15.0
"""Seconds; the machine may be busy."""
PACKAGES_TIMEOUT: Final = 30.0
"""Seconds; there may be many packages, on a slow disk."""


class KernelInspection:
    """Inspects the kernels of sessions.

    Raises
    ------
    SessionNotFound, SessionClosed, InvalidRequest, LanguageNotSupported
        The request cannot be answered.
    Paused
        The user has paused all agents.
    KernelBusy
        The kernel runs code and cannot answer meanwhile.
    KernelUnavailable
        The session has no kernel now, or it ended, or gave no answer.
    """

    def __init__(self, manager: AgentSessions) -> None:
        self._manager = manager

    async def variables(self, session_id: str, query: VariablesQuery) -> VariableList:
        """Return the variables, without running user code."""
        found, more = await self._ask("variables", session_id, query, ANSWER_TIMEOUT, Variable)
        return VariableList(variables=found, more=more)

    async def packages(self, session_id: str, query: PackagesQuery) -> PackageList:
        """Return the distributions that code in the kernel can import."""
        found, more = await self._ask("packages", session_id, query, PACKAGES_TIMEOUT, Package)
        return PackageList(packages=found, more=more)

    async def _ask(
        self,
        name: str,
        session_id: str,
        query: VariablesQuery | PackagesQuery,
        timeout: float,
        model: type[T],
    ) -> tuple[list[T], int]:
        """Send a question to a session's kernel, if the kernel can answer now.

        The kernel answers with the fields of each model, in their order, and how many it left out.
        """
        live = await self._manager.history.live_session(session_id)
        question = Question(name, {"match": query.match.casefold(), "limit": query.limit}, timeout)
        check = partial(live.gate.check, question.name.capitalize(), is_code=False)
        check()
        kernel = live.kernel
        if kernel is None or kernel.is_ending:
            raise KernelUnavailable(
                "The session has no kernel now; its next execution gets a fresh one.",
                session_id=live.id,
            )
        check_python(kernel, question.name)
        try:
            answer = await kernel.ask(question, Requester(live.agent_name, None), check)
            rows, more = msgspec.convert(answer, tuple[list[list[Any]], int])
            fields = model.__struct_fields__
            found = [msgspec.convert(dict(zip(fields, row, strict=True)), model) for row in rows]
            return found, more
        except KernelOccupied:
            raise self._busy(kernel.turns.at_work) from None
        except (Unanswered, ValueError):
            if kernel.connection.execution_state == "busy":
                raise self._busy(kernel.turns.at_work) from None
            raise KernelUnavailable(
                "The kernel gave no answer that could be read.", session_id=live.id
            ) from None

    def _busy(self, behind: WaitingFor | None) -> KernelBusy:
        """Return the error that names what keeps the kernel busy."""
        behind = behind or WaitingFor(who="kernel", agent=None, execution_id=None, since=None)
        detail: dict[str, Any] = {"waiting_for": msgspec.to_builtins(behind)}
        who = "It is busy"
        if behind.who == "person":
            who = "A person's code runs"
        elif behind.who == "agent":
            called = "" if behind.agent is None else f" that calls itself {behind.agent!r}"
            who = f"Code of an agent{called} runs"
            ahead = None
            if behind.execution_id is not None:
                ahead = self._manager.history.watching(behind.execution_id)
            if ahead is not None:
                detail["seq"] = ahead[1].seq
                who = f"Execution {ahead[1].seq} ({ahead[1].id}) of an agent{called} runs"
        return KernelBusy(
            f"The kernel cannot be looked into now. {who}; ask again when it has ended.", **detail
        )
