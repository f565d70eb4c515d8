"""Input requests of running code (`input()`), and the answers of users and agents.

Requests and answers are recorded in the kernel's drain thread, like the end of an execution. So the
record has them in order. A password is never recorded, not even its digest.
"""

from __future__ import annotations

from functools import partial

from ..errors import InputNotAsked
from ..kernels.execute_request import InputRequest
from ..models import GiveInput, Input
from ..records import SERVER, By, InputAsked, InputGiven, Payload, timestamp
from .execution import LiveExecution
from .live_executions import LiveExecutions
from .recorder import Recorder


class Inputs:
    """Handles the input requests of running code, and sends it the answers."""

    def __init__(self, executions: LiveExecutions, recorder: Recorder) -> None:
        self._executions = executions
        self._recorder = recorder

    def requested(self, execution: LiveExecution, request: InputRequest) -> None:
        """Record that code waits for input, and notify observers; call it in the drain thread."""
        if execution.left_behind:
            return  # it is interrupted as soon as the kernel starts it
        text = request.prompt.encode("utf-8", "replace")
        prompt = Payload.of(text)
        entry = InputAsked(
            at=timestamp(request.asked_at),
            by=SERVER,
            execution_id=execution.id,
            prompt=prompt.digest,
            password=request.password,
        )
        self._recorder.note([entry], [prompt])
        input = Input(prompt=text.decode(), password=request.password, asked_at=entry.at)
        self._executions.on_loop(self._waits, execution, request, input)

    async def give(self, execution: LiveExecution, given: GiveInput, by: By) -> None:
        """Answer the input request of running code; only the first answer counts.

        Raises
        ------
        InputNotAsked
            The code does not wait for input, or waits for another input.
        HistoryUnavailable
            The answer could not be recorded, so it was not sent.
        """
        request, input = execution.request, execution.input
        if request is None or input is None or given.asked_at not in (None, input.asked_at):
            raise not_asked(execution)
        assert execution.run is not None
        assert execution.held_by is not None
        connection = execution.held_by.connection
        before = partial(self._record, execution, request, given.value, by)
        if not await connection.give_input(execution.run, request, given.value, before):
            raise not_asked(execution)

    def withdraw(self, execution: LiveExecution) -> None:
        """Refuse further answers for an execution that is interrupted or whose kernel ends."""
        if execution.run is not None and execution.held_by is not None:
            execution.held_by.connection.withdraw_input(execution.run)
            self._has_input(execution, execution.request)

    def _record(self, execution: LiveExecution, request: InputRequest, value: str, by: By) -> None:
        """Record the answer on disk before it is sent; runs in the drain thread."""
        assert execution.run is not None
        shown = execution.run.outputs.redaction.text(value)
        payloads = [] if request.password else [Payload.of(shown.encode())]
        entry = InputGiven(
            at=timestamp(),
            by=by,
            execution_id=execution.id,
            value=payloads[0].digest if payloads else None,
        )
        self._executions.journal.append([entry], payloads)
        self._executions.on_loop(self._has_input, execution, request)

    def _waits(self, execution: LiveExecution, request: InputRequest, input: Input) -> None:
        if not execution.finished.done():
            execution.set_input(request, input)
            self._executions.changed(execution)

    def _has_input(self, execution: LiveExecution, request: InputRequest | None) -> None:
        if request is not None and execution.request is request:
            execution.set_input(None, None)
            self._executions.changed(execution)


def not_asked(execution: LiveExecution) -> InputNotAsked:
    """Return the error for an answer to an input request that is not open."""
    input = execution.input
    if input is not None:
        message = "asked_at: the code asks for another input by now; look at it again."
        return InputNotAsked(message, field="asked_at", asked_at=input.asked_at)
    return InputNotAsked(
        "The code of this execution does not ask for input now: it was answered already, or has "
        "not come to that, or has ended.",
        execution_id=execution.id,
        status=execution.status,
    )
