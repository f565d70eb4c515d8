"""Agent sessions: open and close them, run code in them, and control what runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from contextvars import Context
from functools import partial

import msgspec
from msgspec.structs import replace

from ..auth.scopes import Caller
from ..auth.tokens import Tokens
from ..errors import (
    AgentExecError,
    AlreadyFinished,
    ExecutionNotFound,
    InputNotAsked,
    InvalidRequest,
)
from ..executions.execution import LiveExecution, until_finished
from ..executions.limits import Settings
from ..executions.spec import ExecutionSpec, revision_of
from ..journal.history import History
from ..kernels.live_kernels import LiveKernels
from ..kernels.scratch_kernels import ScratchKernels
from ..models import (
    Execute,
    ExecutionsQuery,
    GiveInput,
    OpenSession,
    Placement,
    RunSteps,
    ServerStatus,
    Session,
    derive,
)
from ..records import SERVER, ExecutionRecord, digest_of
from ..types import Digest, ExecutionId, SessionId, TokenId
from .factory import NewSession, SessionFactory
from .idempotency import Clients, IdempotencyKeys
from .lifetimes import SessionLifetimes
from .quotas import Quotas
from .session import LiveSession
from .session_history import SessionHistory

DOCUMENT_WAIT = 1.0
"""Seconds for which the answer of a finished execution waits for its cell in the notebook."""


class AgentSessions:
    """All agent sessions of this server, and the history of those before."""

    def __init__(
        self,
        history: SessionHistory,
        journals: History,
        kernels: ScratchKernels,
        live_kernels: LiveKernels,
        factory: SessionFactory,
        settings: Settings,
        tokens: Tokens,
        *,
        version: str,
        log: logging.Logger,
    ) -> None:
        self.history = history
        """The sessions and executions of this server and of others on the same history."""
        self._journals = journals
        self._kernels = kernels
        self._live_kernels = live_kernels
        self._factory = factory
        self._settings = settings
        self._version = version
        self._open = history.open
        self.lifetimes = SessionLifetimes(history, tokens, settings.session_idle_timeout, log)
        self.clients = Clients()
        """Which client has opened which session."""
        self._quotas = Quotas(
            settings.max_sessions, settings.session_idle_timeout, settings.max_held
        )
        self._keys = IdempotencyKeys(self.history.find_by_key)
        self._stopping = False

    async def stop(self) -> None:
        """Refuse new work, end running executions, and wait until this is recorded. Idempotent."""
        if self._stopping:
            return
        self._stopping = True
        self.history.refuse()
        sessions = list(self._open.values())
        await asyncio.gather(*(session.close("server_stopped", SERVER) for session in sessions))
        await self.lifetimes.stop()
        await self._kernels.stop()
        await self._live_kernels.stop()
        await self._factory.stop()
        await self.history.stop()

    # -- sessions ----------------------------------------------------------------------------------

    async def open(self, request: OpenSession, caller: Caller) -> tuple[Session, bool]:
        """Open a session; return it, and whether it is new.

        Raises
        ------
        Forbidden, InvalidRequest, KernelSpecNotFound, NotebookNotFound, KernelNotFound,
        TooManyRequests, KernelUnavailable, InitFailed, HistoryUnavailable,
        IsolationUnavailable, ServerStopping
            Nothing was opened.
        """
        await self.history.started()
        new = await self._factory.check(request, caller)
        make = partial(self._new_session, new)
        if request.client_id is None:
            return (await make()).record(), True
        session, is_new = await self.clients.open(request.client_id, new, make)
        return session.record(), is_new

    async def close(self, id: str, caller: Caller) -> Session:
        """Close a session; a closed session stays unchanged.

        Raises
        ------
        SessionNotFound, SessionElsewhere
        """
        live = self._open.get(SessionId(id))
        if live is not None:
            await live.close("closed", caller.by())
        record = await self.history.recorded_session(id)
        if self.history.is_elsewhere(record):
            raise await self.history.elsewhere(record.id)
        return record

    async def withdraw(self, id: SessionId, caller: Caller) -> None:
        """Close a session whose first execution was refused, with the notebook made for it."""
        live = self._open.get(id)
        if live is not None and not live.record().executions:
            live.is_unwanted = True
            await live.close("closed", caller.by())

    async def interrupt(self, id: str, caller: Caller, *, queued: bool = False) -> Session:
        """Interrupt the code that runs in a session's kernel, and cancel what waits if `queued`."""
        live = await self.history.live_session(id)
        await live.interrupt(caller.by(), queued=queued)
        return live.record()

    async def restart(self, id: str, caller: Caller) -> Session:
        """Give a session a fresh kernel.

        It needs no approval: the sources that run first in the new kernel need their own.
        """
        live = await self.history.live_session(id)
        count = max(1, live.first_sources)
        if caller.token is not None:  # the user restarts it in JupyterLab, also in a pause
            self.admit(live, caller, "A restart", is_code=False, executions=count)
        await live.restart(caller.by())
        return live.record()

    # -- run ---------------------------------------------------------------------------------------

    async def execute(
        self, id: str, request: Execute, caller: Caller, key: str | None
    ) -> ExecutionRecord:
        """Run a source once, and return it when it has finished or the wait is over.

        Parameters
        ----------
        key
            An idempotency key: a repeated request with the same key gets the same execution.

        Raises
        ------
        SessionNotFound, SessionClosed, InvalidRequest, IdempotencyConflict, CellNotFound,
        DocumentChanged, TooManyRequests, HistoryUnavailable
            Nothing was run.
        """
        (record,) = await self._run(id, request, [request], caller, key)
        return record

    async def run_again(
        self,
        id: str,
        requests: Sequence[Execute],
        restores: Sequence[ExecutionRecord],
        caller: Caller,
    ) -> list[LiveExecution]:
        """Submit what ran in an earlier kernel, and stop at the first that fails as it did not.

        Errors are those of `execute`.
        """
        live = await self.history.live_session(id)
        executions = await self._take(live, requests, caller, stop_on_error=True, restores=restores)
        await asyncio.shield(executions[0].accepted)
        return executions

    async def run_steps(
        self, id: str, request: RunSteps, caller: Caller, key: str | None
    ) -> list[ExecutionRecord]:
        """Run several sources, one after the other, and return them when all have finished.

        All are accepted, or none. Parameters and errors are those of `execute`; an error names its
        step.
        """
        steps = [derive(Execute, step) for step in request.steps]
        return await self._run(id, request, steps, caller, key, stop_on_error=request.stop_on_error)

    # -- executions --------------------------------------------------------------------------------

    async def execution(
        self, id: str, wait: float | None = 0, asked_at: str | None = None
    ) -> ExecutionRecord:
        """Return an execution when it has finished, or after `wait` seconds, within the limits.

        Parameters and errors are those of `SessionHistory.execution`.
        """
        return await self.history.execution(id, self._settings.wait(wait), asked_at)

    def holding(
        self, caller: Caller, wait: float | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """Count an answer while it is held; an answer without a wait is not counted.

        Raises
        ------
        TooManyRequests
            The caller, or all agents, have as many as the operator allows.
        """
        held = self._settings.wait(wait) > 0
        return self._quotas.holding(caller) if held else nullcontext()

    def streaming(self, caller: Caller) -> contextlib.AbstractContextManager[None]:
        """Count a stream for as long as it is open; TooManyRequests as for `holding`."""
        return self._quotas.holding(caller)

    async def cancel(self, id: str, caller: Caller) -> ExecutionRecord:
        """Cancel an execution that waits, or interrupt it if it runs.

        Raises
        ------
        ExecutionNotFound, AlreadyFinished, SessionElsewhere
        """
        session, execution = await self.history.unfinished(id, AlreadyFinished)
        await session.cancel(execution, caller.by())
        await until_finished([execution], self._settings.bounds.interrupt_grace)
        return session.execution_record(execution)

    async def give_input(self, id: str, given: GiveInput, caller: Caller) -> ExecutionRecord:
        """Answer the input request of an execution; return the execution after that.

        Raises
        ------
        ExecutionNotFound
            There is no such execution.
        InputNotAsked, Paused, ApprovalRequired, TooManyRequests, HistoryUnavailable
            Nothing was answered.
        """
        session, execution = await self.history.unfinished(id, InputNotAsked)
        if caller.token is not None:  # the user answers in JupyterLab, also in a pause
            self.admit(session, caller, "An agent's answer", is_code=True, executions=1)
        await session.control.give_input(execution, given, caller.by())
        return await self.execution(id, given.wait)

    def with_news(self, record: ExecutionRecord) -> ExecutionRecord:
        """Return an execution with what users did and let its agent do in its session."""
        live = self._open.get(record.session_id)
        if live is None:
            return record
        restored, live.restored = live.restored, False
        return replace(
            record,
            decided_edits=live.take_decided_edits(),
            comments=live.take_comments(),
            restored=restored,
            next_approval=live.gate.next_approval,
        )

    # -- the server --------------------------------------------------------------------------------

    async def status(
        self, *, only: TokenId | None = None, with_sinks: bool = False
    ) -> ServerStatus:
        """Return the state of the extension, only for one token's sessions if one is given."""
        await self.history.started()
        sessions = [each for each in self._open.values() if only in (None, each.token_id)]
        return ServerStatus(
            version=self._version,
            history_available=await self.history.in_thread(self._journals.look),
            open_sessions=len(sessions),
            kernels=sum(session.kernel is not None for session in sessions),
            running=sum(session.unfinished.running is not None for session in sessions),
            queued=sum(session.unfinished.queued for session in sessions),
            ledger=self._journals.ledger_head,
            search_ready=self._journals.ready,
            indexing=self._journals.indexing,
            erasing=self._journals.erasing if with_sinks else None,
            sinks=self._journals.copies.status() if with_sinks else [],
            broken=self._journals.signatures.broken if with_sinks else None,
            record_people=self._settings.record_people,
        )

    # -- helpers -----------------------------------------------------------------------------------

    async def _new_session(self, new: NewSession) -> LiveSession:
        request, caller = new.request, new.caller
        with self._quotas.opening(caller, self._open.values()):
            self._quotas.count(caller, bool(request.preload) + (request.init_source is not None))
            session, kernel = await self._factory.open(new)
            self._open[session.id] = session
            session.ended.add_done_callback(lambda _: self._forget(session), context=Context())
        self.lifetimes.watch_token(session)
        try:
            await session.open(kernel, caller.by(), caller.host_kernels)
        except BaseException:
            await session.close("init_failed", SERVER)
            raise
        self.lifetimes.watch_use(session)
        return session

    def _forget(self, session: LiveSession) -> None:
        self._open.pop(session.id, None)
        self._keys.forget(session.id)
        self.clients.forget(session)

    def admit(
        self, live: LiveSession, caller: Caller, what: str, *, is_code: bool, executions: int = 0
    ) -> None:
        """Admit an agent's action that is not an execution, or refuse it at once.

        Every action that runs or changes something is admitted here, or waits as an execution.

        Parameters
        ----------
        what
            The action. It begins the error message.
        is_code
            Whether it runs code, or writes code that a user may run: then it needs approval where
            executions do.
        executions
            How many executions it counts as, against the caps of an agent token.

        Raises
        ------
        Paused, ApprovalRequired, TooManyRequests
        """
        live.gate.check(what, is_code=is_code)
        self._quotas.count(caller, executions)

    async def _run(
        self,
        id: str,
        whole: Execute | RunSteps,
        requests: Sequence[Execute],
        caller: Caller,
        key: str | None,
        *,
        stop_on_error: bool | None = None,
    ) -> list[ExecutionRecord]:
        """Accept what a request holds, once for each key, and return it after the wait.

        Parameters
        ----------
        stop_on_error
            As for `Worker.submit`. An error names its step.
        """
        for index, request in enumerate(requests):
            with nullcontext() if stop_on_error is None else _naming(index):
                self._check(request, caller)
        wait = self._settings.wait(whole.wait)
        session_id, body, earlier = SessionId(id), None, None
        async with nullcontext() if key is None else self._keys.lock(session_id, key):
            if key is not None:  # it does not cover the wait: a repeated request may have less time
                body = digest_of(msgspec.json.encode(replace(whole, wait=None), order="sorted"))
                is_open = self.history.open_session(id) is not None
                earlier = await self._keys.known(session_id, key, body, is_open=is_open)
            if earlier is None:
                live = await self.history.live_session(id)
                taken = await self._take(
                    live, requests, caller, key, body, stop_on_error=stop_on_error
                )
        if earlier is None:
            return await _after(live, taken, wait)
        if stop_on_error is None:
            return [await self.history.execution(earlier, wait)]
        return await self._known_steps(earlier, wait)

    def _check(self, request: Execute, caller: Caller) -> None:
        settings = self._settings.within(caller.caps)
        settings.check_timeout(request.timeout, "timeout")
        settings.check_output(request.max_output_bytes, "max_output_bytes")
        if request.trial and request.placement not in ("end", "none"):
            raise InvalidRequest("placement: a trial has no cell.", field="placement")
        if request.trial and request.source is None:
            raise InvalidRequest("source: a trial needs code.", field="source")

    async def _take(
        self,
        live: LiveSession,
        requests: Sequence[Execute],
        caller: Caller,
        key: str | None = None,
        body: Digest | None = None,
        *,
        stop_on_error: bool | None = None,
        restores: Sequence[ExecutionRecord] = (),
    ) -> list[LiveExecution]:
        """Submit requests, all or none; the first has the key.

        Parameters
        ----------
        body
            The digest of what has the key.
        stop_on_error
            As for `Worker.submit`. An error names its step.
        restores
            The execution of an earlier kernel that each runs again.
        """
        specs: list[ExecutionSpec] = []
        for index, request in enumerate(requests):
            with nullcontext() if stop_on_error is None else _naming(index):
                if isinstance(request.placement, Placement) and request.placement.cell is not None:
                    self._factory.check_edit(caller, live.path)
                place = await live.find_place(request)
                named_source = await _named_source(live, request.revises)
            last_rejected = live.unfinished.last_rejected
            spec = ExecutionSpec.of_request(
                request,
                caller,
                live.bounds,
                place=place,
                revision=revision_of(request, named_source, place, last_rejected),
                restores=restores[index] if restores else None,
                idempotency_key=None if index else key,
                body_sha256=None if index else body,
            )
            specs.append(spec)
        await live.check_not_waiting(caller.host_kernels)
        self._quotas.check_execute(caller, self.history.all_open(), len(specs))
        executions = live.submit(specs, stop_on_error=stop_on_error)
        self._quotas.executed(caller, len(executions))
        if key is not None and body is not None:
            self._keys.use(live.id, key, body, executions[0])
        return executions

    async def _known_steps(self, first: ExecutionId, wait: float) -> list[ExecutionRecord]:
        """Return the steps that begin with this one, with their state after a wait."""
        record = await self.history.execution(first)
        assert record.step is not None
        live = self.history.open_session(record.session_id)
        if live is not None:
            numbers = range(record.seq, record.seq + record.step.of)
            await until_finished([e for e in live.unfinished if e.seq in numbers], wait)
        records, _ = await self.history.executions(
            record.session_id, ExecutionsQuery(after=record.seq - 1, limit=record.step.of)
        )
        return records


async def _after(
    live: LiveSession, executions: Sequence[LiveExecution], wait: float
) -> list[ExecutionRecord]:
    """Return executions when all have finished, or when the wait is over."""
    await asyncio.shield(executions[0].accepted)
    await until_finished(executions, wait)
    if executions[-1].finished.done():
        await live.cells.until_shown(executions[-1], min(wait, DOCUMENT_WAIT))
    return [live.execution_record(execution) for execution in executions]


async def _named_source(live: LiveSession, revises: ExecutionId | None) -> str | None:
    """Return the source of the execution that a request revises; None if it names none.

    Raises
    ------
    InvalidRequest
        The session has no such execution.
    """
    if revises is None:
        return None
    try:
        revised = live.unfinished.get(revises) or await live.recorded(revises)
    except ExecutionNotFound:
        revised = None
    if revised is None or revised.session_id != live.id:
        raise InvalidRequest(
            "revises: the session has no such execution; name the session that has it.",
            field="revises",
        )
    return revised.source


@contextlib.contextmanager
def _naming(index: int) -> Iterator[None]:
    """Make an error name the step that it is about."""
    try:
        yield
    except AgentExecError as error:
        field = error.detail.get("field")
        if field is None:
            error.message = f"steps[{index}]: {error.message}"
        else:  # the message of such an error begins with the field's name
            error.message = f"steps[{index}].{error.message}"
            error.detail["field"] = f"steps[{index}].{field}"
        error.detail["step"] = index + 1
        raise
