"""An execution from its acceptance until it is recorded as finished."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..journal.spill import TextSpill
from ..kernels.connection import Ended, Run
from ..models import Agent, Chain, ExecutionKernel, Omitted
from ..records import Accepted, By, ExecutionRecord, Payload
from ..types import Digest, ExecutionId, Output, SessionId, Status

if TYPE_CHECKING:
    from ..kernels.kernel import Kernel


@dataclass(eq=False, slots=True, kw_only=True)
class LiveExecution:
    """An execution that has no final status on disk yet.

    Lives on the event loop; the drain's thread reads `ending` and `interrupt_ignored` when the run
    has ended.
    """

    id: ExecutionId
    session_id: SessionId
    seq: int
    source: str
    init: bool
    agent: Agent
    username: str
    by: By
    timeout: float | None
    queue_timeout: float | None
    max_output_bytes: int
    idempotency_key: str | None
    body_sha256: Digest | None
    accepted_at: str
    status: Status = "queued"
    kernel: ExecutionKernel | None = None
    started_at: str | None = None
    held_by: Kernel | None = None
    """The kernel in which it runs."""
    run: Run | None = None
    spill: TextSpill | None = None
    """Takes the whole text if the outputs are capped."""
    ending: tuple[Status, str] | None = None
    """Status and reason that somebody gave it: who asked for an interrupt, or took it back."""
    interrupt_ignored: bool = False
    accepted: asyncio.Future[None] = field(init=False)
    """Done when the acceptance is on disk; HistoryUnavailable if it could not be written."""
    given_up: asyncio.Future[None] = field(init=False)
    """Done when somebody takes it back while it waits for its turn."""
    finished: asyncio.Future[ExecutionRecord] = field(init=False)
    """Done when its final status is on disk."""
    watchers: set[asyncio.Event] = field(default_factory=set)

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.accepted, self.given_up = loop.create_future(), loop.create_future()
        self.finished = loop.create_future()

    @property
    def refused(self) -> bool:
        """Whether its acceptance could not be recorded, so that it never was."""
        return self.accepted.done() and self.accepted.exception() is not None

    def tell(self) -> None:
        """Wake whoever watches."""
        for event in self.watchers:
            event.set()

    def acceptance(self) -> tuple[Accepted, Payload]:
        """Return the journal entry of its acceptance, and the source that it names."""
        source = Payload.of(self.source.encode())
        entry = Accepted(
            at=self.accepted_at,
            by=self.by,
            execution_id=self.id,
            seq=self.seq,
            source=source.digest,
            timeout=self.timeout,
            queue_timeout=self.queue_timeout,
            max_output_bytes=self.max_output_bytes,
            init=self.init,
            idempotency_key=self.idempotency_key,
            body_sha256=self.body_sha256,
        )
        return entry, source

    def verdict(self, ended: Ended) -> tuple[Status, str | None]:
        """Return the final status of a run that ended, and the reason to tell.

        A timeout that was passed stays one, also when the code swallowed the interrupt and came to
        an end of its own. An interrupt that came too late to change anything is not told.
        """
        if self.ending is not None and not (
            self.ending[0] == "interrupted" and ended.status == "ok"
        ):
            return self.ending
        return "kernel_died" if ended.status == "abandoned" else ended.status, ended.reason

    def record(self, chain: Chain, outputs: list[Output]) -> ExecutionRecord:
        """Return what is known of it so far."""
        return ExecutionRecord(
            id=self.id,
            session_id=self.session_id,
            seq=self.seq,
            init=self.init,
            status=self.status,
            reason=None,
            source=self.source,
            agent=self.agent,
            username=self.username,
            timeout=self.timeout,
            kernel=self.kernel,
            execution_count=None,
            outputs=outputs,
            blobs=(),
            error=None,
            accepted_at=self.accepted_at,
            started_at=self.started_at,
            finished_at=None,
            outputs_complete=True,
            omitted=Omitted(),
            interrupt_ignored=self.interrupt_ignored,
            text=None,
            text_bytes=0,
            omitted_text_bytes=0,
            entry_hash=None,
            chain=chain,
        )
