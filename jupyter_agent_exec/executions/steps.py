"""Several executions that are asked for at once: what each is, and how one ends those behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from ..errors import AgentExecError
from ..models import Execute, Step, StepOf
from ..records import ExecutionRecord
from .approval_gate import GiveUp
from .execution import LiveExecution


def step_as_execution(step: Step) -> Execute:
    """Return what is asked for by one step."""
    return Execute(
        source=step.source, timeout=step.timeout, placement=step.placement, values=step.values
    )


@contextmanager
def naming(index: int) -> Iterator[None]:
    """Have what is refused name the step that it is about, which stands at an index."""
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


def number(executions: Sequence[LiveExecution], *, stop_on_error: bool, give_up: GiveUp) -> None:
    """Tell each which step it is; with `stop_on_error` have what is behind a failed one end."""
    for at, execution in enumerate(executions, start=1):
        execution.step = StepOf(first=executions[0].id, number=at, of=len(executions))
        if stop_on_error:
            behind = executions[at:]
            execution.finished.add_done_callback(partial(_stop, at, behind, give_up))


def _stop(
    at: int,
    behind: Sequence[LiveExecution],
    give_up: GiveUp,
    finished: asyncio.Future[ExecutionRecord],
) -> None:
    """End what comes after a step, before the session's next gets its turn."""
    status = finished.result().status
    if status != "ok":
        for execution in behind:
            give_up(execution, "cancelled", f"It was not run: step {at} ended with {status}.")
