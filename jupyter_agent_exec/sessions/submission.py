"""Submission of code: checks a request, accepts it once, and waits for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import msgspec
from msgspec.structs import replace

from ..auth.scopes import Caller
from ..errors import AgentExecError, ExecutionNotFound, InvalidRequest
from ..executions.execution import LiveExecution, until_finished
from ..executions.limits import Settings
from ..executions.spec import ExecutionSpec, Place, revision_of
from ..models import Execute, ExecutionsQuery, Placement, RunSteps, derive
from ..records import ExecutionRecord, digest_of
from ..types import Digest, ExecutionId, SessionId
from .idempotency import IdempotencyKeys
from .quotas import Quotas
from .session import LiveSession
from .session_history import SessionHistory

DOCUMENT_WAIT = 1.0
"""Seconds for which the answer of a finished execution waits for its cell in the notebook."""


class Submission:
    """Submits executions, one by itself or several steps at once.

    Parameters
    ----------
    check_edit
        Checks that a caller may change the existing cells of the notebook at a path.
    """

    def __init__(
        self,
        sessions: SessionHistory,
        keys: IdempotencyKeys,
        quotas: Quotas,
        settings: Settings,
        check_edit: Callable[[Caller, str | None], None],
    ) -> None:
        self._sessions = sessions
        self._keys = keys
        self._quotas = quotas
        self._settings = settings
        self._check_edit = check_edit

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

    async def restore(
        self,
        id: str,
        requests: Sequence[Execute],
        restores: Sequence[ExecutionRecord],
        caller: Caller,
    ) -> list[LiveExecution]:
        """Submit what ran in an earlier kernel, and stop at the first that fails as it did not.

        Errors are those of `execute`.
        """
        live = await self._sessions.live_session(id)
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

    # -- helpers -----------------------------------------------------------------------------------

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
                is_open = self._sessions.open_session(id) is not None
                earlier = await self._keys.known(session_id, key, body, is_open=is_open)
            if earlier is None:
                live = await self._sessions.live_session(id)
                taken = await self._take(
                    live, requests, caller, key, body, stop_on_error=stop_on_error
                )
        if earlier is None:
            return await _after(live, taken, wait)
        if stop_on_error is None:
            return [await self._sessions.execution(earlier, wait)]
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
        self._quotas.check_execute(caller, self._sessions.all_open(), len(requests))
        prepared: list[tuple[Place | None, str | None]] = []
        for index, request in enumerate(requests):
            with nullcontext() if stop_on_error is None else _naming(index):
                if isinstance(request.placement, Placement) and request.placement.cell is not None:
                    self._check_edit(caller, live.path)
                place = await live.find_place(request)
                prepared.append((place, await _named_source(live, request.revises)))
        await live.check_not_waiting(caller.host_kernels)
        # Others were accepted meanwhile.
        self._quotas.check_execute(caller, self._sessions.all_open(), len(requests))
        specs = [
            ExecutionSpec.of_request(
                request,
                caller,
                live.bounds,
                place=place,
                revision=revision_of(request, named_source, place, live.unfinished.last_rejected),
                restores=restores[index] if restores else None,
                idempotency_key=None if index else key,
                body_sha256=None if index else body,
            )
            for index, (request, (place, named_source)) in enumerate(
                zip(requests, prepared, strict=True)
            )
        ]
        executions = live.submit(specs, stop_on_error=stop_on_error)
        self._quotas.executed(caller, len(executions))
        if key is not None and body is not None:
            self._keys.use(live.id, key, body, executions[0])
        return executions

    async def _known_steps(self, first: ExecutionId, wait: float) -> list[ExecutionRecord]:
        """Return the steps that begin with this one, with their state after a wait."""
        record = await self._sessions.execution(first)
        assert record.step is not None
        live = self._sessions.open_session(record.session_id)
        if live is not None:
            numbers = range(record.seq, record.seq + record.step.of)
            await until_finished([e for e in live.unfinished if e.seq in numbers], wait)
        records, _ = await self._sessions.executions(
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
        raise InvalidRequest("revises: the session has no such execution.", field="revises")
    return revised.source


@contextmanager
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
