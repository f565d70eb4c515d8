"""Inspection of a session's kernel: variables, completion, documentation, packages.

None of these is an execution. Variables are read without running user code, and packages with
Python's own `importlib.metadata`. Completion and documentation may run code, so they need approval
as code does, and are recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from ..auth.access import denied
from ..auth.scopes import Caller
from ..counts import counted
from ..errors import Forbidden, InvalidRequest, KernelBusy, KernelUnavailable
from ..executions.spec import check_python
from ..kernels.inspection import KernelOccupied, Question, Unanswered, ask
from ..kernels.kernel_queue import Requester
from ..models import (
    Complete,
    Completion,
    Completions,
    Inspect,
    Inspection,
    Package,
    PackageList,
    Variable,
    VariableList,
    WaitingFor,
)
from ..queries import PackagesQuery, VariablesQuery
from ..records import KernelInspected, Payload, timestamp
from ..text import transcript
from .manager import AgentSessions
from .session import LiveSession

T = TypeVar("T")

ANSWER_TIMEOUT: Final = 15.0
"""Seconds; the first completion in a kernel's life imports much, and the machine may be busy."""
PACKAGES_TIMEOUT: Final = 30.0
"""Seconds; there may be many packages, on a slow disk."""

MOST_LINE: Final = 5_000
"""Characters of the line at the cursor: IPython's time grows with the square of it."""

MOST_COMPLETIONS: Final = 500
MOST_CHARACTERS: Final = 100_000
"""Maximum number of characters of documentation to return."""

_Variable = tuple[
    str,
    str,
    list[int] | None,
    int | None,
    str | None,
    str | None,
    dict[str, str] | None,
    str | None,
]
_Package = tuple[str, str, list[str]]


class KernelInspection:
    """Inspects the kernels of sessions.

    Parameters
    ----------
    may_run_code
        Whether agents get completion and documentation from kernels, which may run code for them.

    Raises
    ------
    SessionNotFound, SessionClosed, InvalidRequest, LanguageNotSupported
        The request cannot be answered.
    Paused
        The user has paused all agents.
    Forbidden, ApprovalRequired, TooManyRequests, HistoryUnavailable
        Completion and documentation only: they are switched off, or refused now.
    KernelBusy
        The kernel runs code and cannot answer meanwhile.
    KernelUnavailable
        The session has no kernel now, or it ended, or gave no answer.
    """

    def __init__(self, manager: AgentSessions, *, may_run_code: bool) -> None:
        self._manager = manager
        self._may_run_code = may_run_code

    async def variables(self, session_id: str, query: VariablesQuery) -> VariableList:
        """Return the variables, without running user code."""
        given = {"match": query.match.casefold(), "limit": query.limit}
        question = Question("variables", given, ANSWER_TIMEOUT)
        live = await self._manager.live_session(session_id)
        variables, more = await self._ask(live, question, tuple[list[_Variable], int])
        return VariableList(
            variables=[
                Variable(
                    name=name,
                    type=type,
                    shape=shape,
                    length=length,
                    preview=preview,
                    dtype=dtype,
                    dtypes=dtypes,
                    index=index,
                )
                for name, type, shape, length, preview, dtype, dtypes, index in variables
            ],
            more=more,
        )

    async def packages(self, session_id: str, query: PackagesQuery) -> PackageList:
        """Return the distributions that code in the kernel can import."""
        given = {"match": query.match.casefold(), "limit": query.limit}
        question = Question("packages", given, PACKAGES_TIMEOUT)
        live = await self._manager.live_session(session_id)
        installed, more = await self._ask(live, question, tuple[list[_Package], int])
        packages = [
            Package(name=name, version=version, import_names=import_names)
            for name, version, import_names in installed
        ]
        return PackageList(packages=packages, more=more)

    async def complete(self, session_id: str, body: Complete, caller: Caller) -> Completions:
        """Return completions at a position in code.

        If code may not run, the kernel finds them without running any.
        """
        cursor_pos = _cursor(body.code, body.cursor_pos)
        live = await self._manager.live_session(session_id)
        kernel = live.kernel
        try:
            self._check_as_code(live, "Completion", caller)
        except Forbidden:
            if kernel is None or not kernel.connection.inspector.is_python:
                raise
            return await self._names(live, body.code, cursor_pos)
        given = {"code": body.code, "cursor_pos": cursor_pos}
        question = Question("complete", given, ANSWER_TIMEOUT, "complete_request")
        code = Payload.of(body.code.encode("utf-8", "replace"))
        entry = KernelInspected(
            at=timestamp(), by=caller.by(), kind="complete", code=code.digest, cursor_pos=cursor_pos
        )
        reply = await self._ask_as_code(session_id, question, caller, entry, code, _CompleteReply)
        types = {each.text: each.type for each in reply.metadata.types}
        completions = [
            Completion(text=text, type=types.get(text)) for text in reply.matches[:MOST_COMPLETIONS]
        ]
        return Completions(
            completions=completions,
            cursor_start=reply.cursor_start,
            cursor_end=reply.cursor_end,
            more=len(reply.matches) - len(completions),
        )

    async def _names(self, live: LiveSession, code: str, cursor_pos: int) -> Completions:
        """Return the completions at a position in code, without running code."""
        given = {"code": code, "cursor_pos": cursor_pos, "limit": MOST_COMPLETIONS}
        question = Question("names", given, ANSWER_TIMEOUT)
        matches, start, more = await self._ask(
            live, question, tuple[list[tuple[str, str]], int, int]
        )
        return Completions(
            completions=[Completion(text=text, type=type) for text, type in matches],
            cursor_start=start,
            cursor_end=cursor_pos,
            more=more,
            static=True,
        )

    async def inspect(self, session_id: str, body: Inspect, caller: Caller) -> Inspection:
        """Return the documentation of the object at a position in code."""
        cursor_pos = _cursor(body.code, body.cursor_pos)
        given = {"code": body.code, "cursor_pos": cursor_pos, "detail_level": body.detail_level}
        question = Question("inspect", given, ANSWER_TIMEOUT, "inspect_request")
        code = Payload.of(body.code.encode("utf-8", "replace"))
        entry = KernelInspected(
            at=timestamp(),
            by=caller.by(),
            kind="inspect",
            code=code.digest,
            cursor_pos=cursor_pos,
            detail_level=body.detail_level,
        )
        reply = await self._ask_as_code(session_id, question, caller, entry, code, _InspectReply)
        text = transcript([{"output_type": "display_data", "data": reply.data}])
        if len(text) > MOST_CHARACTERS:
            more = counted(len(text) - MOST_CHARACTERS, "more character")
            text = f"{text[:MOST_CHARACTERS]}\n[… {more}]"
        return Inspection(found=reply.found, text=text if reply.found else "")

    async def _ask_as_code(
        self,
        session_id: str,
        question: Question,
        caller: Caller,
        entry: KernelInspected,
        code: Payload,
        kind: type[T],
    ) -> T:
        """Admit, record and send a question for which the kernel may run code."""
        live = await self._manager.live_session(session_id)
        what = "Completion" if entry.kind == "complete" else "Documentation"
        self._check_as_code(live, what, caller)

        async def about_to() -> None:
            self._manager.admit(live, caller, what, is_code=True, executions=1)
            await live.write(entry, [code])

        return await self._ask(live, question, kind, about_to)

    def _check_as_code(self, live: LiveSession, what: str, caller: Caller) -> None:
        """Check that the kernel may run code for a question."""
        if not self._may_run_code or caller.caps.completion is False:
            raise denied(
                Forbidden(
                    "Completion and documentation from kernels are switched off here, since they "
                    "can run code. Run code that prints what you need, such as help(name).",
                    session_id=live.id,
                )
            )
        live.gate.check(what, is_code=True)

    async def _ask(
        self,
        live: LiveSession,
        question: Question,
        kind: type[T],
        about_to: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """Send a question to a session's kernel, if the kernel can answer now."""

        async def check() -> None:
            live.gate.check(question.name.capitalize(), is_code=False)

        await check()
        kernel = live.kernel
        if kernel is None or kernel.is_ending:
            raise KernelUnavailable(
                "The session has no kernel now; its next execution gets a fresh one.",
                session_id=live.id,
            )
        if question.msg_type is None:
            check_python(kernel, question.name)
        try:
            answer = await ask(
                kernel, question, Requester(live.agent_name, None), about_to or check
            )
            return msgspec.convert(answer, kind)
        except KernelOccupied:
            raise self._busy(kernel.turns.at_work) from None
        except (Unanswered, msgspec.ValidationError):
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
                ahead = self._manager.watching(behind.execution_id)
            if ahead is not None:
                detail["seq"] = ahead[1].seq
                who = f"Execution {ahead[1].seq} ({ahead[1].id}) of an agent{called} runs"
        return KernelBusy(
            f"The kernel cannot be looked into now. {who}; ask again when it has ended.", **detail
        )


class _Typed(msgspec.Struct, frozen=True):
    text: str = ""
    type: str | None = None


class _CompleteMetadata(msgspec.Struct, frozen=True):
    types: list[_Typed] = msgspec.field(name="_jupyter_types_experimental", default_factory=list)


class _CompleteReply(msgspec.Struct, frozen=True):
    matches: list[str]
    cursor_start: int
    cursor_end: int
    metadata: _CompleteMetadata = _CompleteMetadata()


class _InspectReply(msgspec.Struct, frozen=True):
    found: bool
    data: dict[str, Any] = {}


def _cursor(code: str, cursor_pos: int | None) -> int:
    if cursor_pos is not None and cursor_pos > len(code):
        raise InvalidRequest(
            f"cursor_pos: the code has {counted(len(code), 'character')}.", field="cursor_pos"
        )
    cursor = len(code) if cursor_pos is None else cursor_pos
    line = code[code.rfind("\n", 0, cursor) + 1 :].partition("\n")[0]
    if len(line) > MOST_LINE:
        raise InvalidRequest(
            f"code: the line at the cursor has {counted(len(line), 'character')}; at most "
            f"{MOST_LINE:,} are allowed, since a kernel takes too long over more.",
            field="code",
        )
    return cursor
