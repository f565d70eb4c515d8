"""Answers as a server would send them, and a way to take a call's steps without I/O."""

from __future__ import annotations

from typing import Any

import msgspec

from jupyter_agent_exec import models
from jupyter_agent_exec.client.errors import ServerUnreachable
from jupyter_agent_exec.client.steps import Connect, Emit, Pause, Receive, Reply, Send
from jupyter_agent_exec.models import Problem
from jupyter_agent_exec.types import Digest, ExecutionId, SessionId

DIGEST = Digest("0" * 64)
CHAIN = models.Chain(head=DIGEST, length=3)


def execution(status: str = "ok", **changes: Any) -> models.Execution:
    outputs = changes.pop("outputs", [])
    plain = models.Execution(
        id=ExecutionId("x_1"),
        session_id=SessionId("s_1"),
        seq=1,
        init=False,
        status=status,  # type: ignore[arg-type]
        reason=None,
        source="1+1",
        source_sha256=DIGEST,
        execution_count=1,
        cell={
            "cell_type": "code",
            "id": "x_1",
            "metadata": {},
            "source": "1+1",
            "execution_count": 1,
            "outputs": outputs,
        },
        text="2",
        images=[],
        error=None,
        values=None,
        kernel=None,
        agent=models.Agent(name="tester"),
        username="ada",
        token=None,
        timeout=60.0,
        accepted_at="2026-01-01T00:00:00.000Z",
        started_at=None,
        finished_at=None,
        duration=0.25,
        outputs_complete=True,
        omitted=models.Omitted(),
        interrupt_ignored=False,
        waiting_for=None,
        document=None,
        chain=CHAIN,
    )
    return msgspec.structs.replace(plain, **changes)


def session(session_id: str = "s_1") -> models.Session:
    return models.Session(
        id=SessionId(session_id),
        agent=models.Agent(name="tester"),
        target=models.ScratchTarget(),
        title=None,
        client_id=None,
        limits=models.Limits(),
        status="open",
        close_reason=None,
        username="ada",
        access="full",
        path=None,
        record_people="off",
        kernel=None,
        executions=0,
        opened_at="2026-01-01T00:00:00.000Z",
        last_activity_at="2026-01-01T00:00:00.000Z",
        closed_at=None,
        chain=CHAIN,
    )


def server_status() -> models.ServerStatus:
    return models.ServerStatus(
        version="0.1.0",
        history_available=True,
        open_sessions=0,
        kernels=0,
        running=0,
        queued=0,
        ledger=CHAIN,
        search_ready=True,
    )


def reply(body: Any, status: int = 200) -> Reply:
    return Reply(status, body if isinstance(body, bytes) else msgspec.json.encode(body))


def problem(code: str, message: str, status: int, /, **detail: Any) -> Reply:
    return reply(Problem(message=message, reason=None, code=code, detail=detail), status)


class Script:
    """Take a call's steps with answers that are given beforehand, and keep what was asked.

    Parameters
    ----------
    answers
        For each `Send` and each `Receive` in turn: a reply, bytes, or an error to throw in.
    """

    def __init__(self, *answers: Reply | bytes | ServerUnreachable) -> None:
        self._answers = list(answers)
        self.sent: list[Send] = []
        self.pauses: list[float] = []
        self.emitted: list[Any] = []
        self.connected: list[str] = []

    def run(self, steps: Any) -> Any:
        try:
            step = next(steps)
            while True:
                answer = self._answer(step)
                if isinstance(answer, ServerUnreachable):
                    step = steps.throw(answer)
                else:
                    step = steps.send(answer)
        except StopIteration as stop:
            assert not self._answers, "the call ended before all answers were taken"
            return stop.value

    def _answer(self, step: Any) -> Reply | bytes | ServerUnreachable | None:
        match step:
            case Send():
                self.sent.append(step)
                return self._answers.pop(0)
            case Receive():
                return self._answers.pop(0)
            case Pause():
                self.pauses.append(step.seconds)
            case Emit():
                self.emitted.append(step.value)
            case Connect():
                self.connected.append(step.server.address)
        return None
