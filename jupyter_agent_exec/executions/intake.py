"""What is asked to be run in one session: looked at, filled in, and given to its lane."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..errors import TooManyRequests
from ..models import Execute
from ..records import By, ExecutionRecord
from ..types import Digest, ExecutionId, SessionId
from .execution import LiveExecution
from .execution_queue import Lane
from .language import check_python
from .limits import Bounds
from .observer import Place
from .revision import revised, source_of
from .shown_cells import Showing


class Taking:
    """Takes the executions of one open session.

    Parameters
    ----------
    in_notebook
        Whether its target is a notebook.
    check_open
        Raises SessionClosed if nothing new is taken.
    recorded
        Returns a finished execution as it is in the history.
    """

    def __init__(
        self,
        session_id: SessionId,
        lane: Lane,
        showing: Showing,
        bounds: Bounds,
        *,
        in_notebook: bool,
        check_open: Callable[[], None],
        recorded: Callable[[ExecutionId], Awaitable[ExecutionRecord]],
    ) -> None:
        self._session_id = session_id
        self._lane = lane
        self._showing = showing
        self._bounds = bounds
        self._in_notebook = in_notebook
        self._check_open = check_open
        self._recorded = recorded

    async def place(self, asked: Execute) -> Place | None:
        """Find the place of an execution's cell; None if it has none.

        Raises
        ------
        SessionClosed, InvalidRequest, CellNotFound, DocumentChanged
            Nothing is to be run.
        """
        self._check_open()
        return await self._showing.place(asked)

    async def revised_source(self, asked: Execute) -> str | None:
        """Find the source of what is said to be revised; None if nothing is.

        Raises
        ------
        InvalidRequest
            The session has no such execution.
        """

        async def find(id: ExecutionId) -> LiveExecution | ExecutionRecord:
            return self._lane.live.get(id) or await self._recorded(id)

        return await source_of(asked.revises, self._session_id, find)

    def execute(
        self,
        asked: Execute,
        *,
        nested: bool,
        by: By,
        place: Place | None,
        revised_source: str | None,
        idempotency_key: str | None,
        body_sha256: Digest | None,
    ) -> LiveExecution:
        """Take an execution on its way; `accepted` tells when it is on disk.

        Parameters
        ----------
        nested
            Whether the cell that the kernel is at waits for it.
        revised_source
            Of the execution that it names as what it revises.

        Raises
        ------
        SessionClosed, TooManyRequests, LanguageNotSupported
            Nothing was accepted.
        """
        self._check_room(1)
        if asked.values:
            check_python(self._lane.incarnations.current, "values")
        execution = self._lane.take(
            by=by,
            idempotency_key=idempotency_key,
            body_sha256=body_sha256,
            nested=nested,
            **self._terms(asked, place, revised_source),
        )
        if place is not None:
            self._showing.show(execution, place)
        return execution

    def execute_steps(
        self,
        steps: Sequence[tuple[Execute, Place | None]],
        *,
        nested: bool,
        by: By,
        stop_on_error: bool,
        idempotency_key: str | None,
        body_sha256: Digest | None,
    ) -> list[LiveExecution]:
        """Take executions on their way, with nothing else of the session's in between.

        The first has the key. All are accepted or none, and `accepted` of each tells that.

        Raises
        ------
        SessionClosed, TooManyRequests, LanguageNotSupported
            Nothing was accepted.
        """
        self._check_room(len(steps))
        for index, (asked, _) in enumerate(steps):
            if asked.values:
                check_python(self._lane.incarnations.current, f"steps[{index}].values")
        executions = self._lane.take_steps(
            [{**self._terms(*step), "nested": nested} for step in steps],
            by=by,
            stop_on_error=stop_on_error,
            idempotency_key=idempotency_key,
            body_sha256=body_sha256,
        )
        for execution, (_, place) in zip(executions, steps, strict=True):
            if place is not None:
                self._showing.show(execution, place)
        return executions

    def _terms(
        self, asked: Execute, place: Place | None, revised_source: str | None = None
    ) -> dict[str, Any]:
        """Return what an execution is to be, with what was not asked for filled in."""
        source = asked.source if place is None else place.source
        assert source is not None
        revises, before = revised(asked, revised_source, place, self._lane.last_rejected)
        return {
            "source": source,
            "timeout": asked.timeout or self._bounds.timeout,
            "queue_timeout": asked.queue_timeout or self._bounds.queue_timeout,
            "max_output_bytes": asked.max_output_bytes or self._bounds.max_output_bytes,
            "placement": asked.placement if self._in_notebook else None,
            "place": place,
            "revises": revises,
            "before": before,
            "expressions": asked.values,
        }

    def _check_room(self, count: int) -> None:
        """Refuse more executions than may wait, or any if the session is closed."""
        self._check_open()
        most = self._bounds.max_queued
        queued = self._lane.queued
        if queued + count > most:
            why = "wait already; wait for one to finish."
            if count > 1:
                why = f"wait, and {count} more are too many: {most} may wait."
            raise TooManyRequests(f"{queued} executions of this session {why}", limit=most)
