"""Entries, sessions and histories as the tests make them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from ulid import ULID

from jupyter_agent_exec.journal.blobs import pack_outputs
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.session import SessionJournal
from jupyter_agent_exec.models import Agent, ExecutionKernel, Limits, ScratchTarget, SessionKernel
from jupyter_agent_exec.records import (
    Accepted,
    ApprovalAsked,
    Approved,
    By,
    Closed,
    Dispatched,
    Entry,
    Finished,
    KernelStarted,
    Opened,
    Payload,
    Reviewed,
)
from jupyter_agent_exec.types import ExecutionId, SessionId

AT = "2026-11-21T09:00:00.000Z"
BY = By(kind="agent", agent="analyst", username="ada")
PNG = "iVBORw0KGgoAAAANSUhEUg=="
LANGUAGE = {"name": "python", "version": "3.11", "file_extension": ".py"}


def new_session_id() -> SessionId:
    return SessionId(f"s_{ULID()}")


def new_execution_id() -> ExecutionId:
    return ExecutionId(f"x_{ULID()}")


def opened(*, agent: str = "analyst", title: str | None = "Sales", at: str = AT) -> Opened:
    return Opened(
        at=at,
        by=BY,
        session_id=new_session_id(),
        agent=Agent(name=agent),
        target=ScratchTarget(),
        title=title,
        client_id=None,
        limits=Limits(),
        username="ada",
    )


def kernel_started(incarnation: int = 1) -> KernelStarted:
    return KernelStarted(
        at=AT,
        by=BY,
        kernel=SessionKernel(
            id="k-1", name="python3", execution_state="idle", incarnation=incarnation
        ),
        reason=None,
        display_name="Python 3",
        language_info=LANGUAGE,
    )


def accepted(
    execution_id: ExecutionId, seq: int, source: str, *, at: str = AT, **fields: Any
) -> tuple[Accepted, Payload]:
    payload = Payload.of(source.encode())
    entry = Accepted(
        at=at,
        by=BY,
        execution_id=execution_id,
        seq=seq,
        source=payload.digest,
        timeout=60.0,
        queue_timeout=None,
        max_output_bytes=1_000_000,
        **fields,
    )
    return entry, payload


def dispatched(execution_id: ExecutionId) -> Dispatched:
    kernel = ExecutionKernel(id="k-1", name="python3", incarnation=1, restarted=False, reason=None)
    return Dispatched(at=AT, by=BY, execution_id=execution_id, kernel=kernel)


def finished(
    execution_id: ExecutionId, outputs: list[dict[str, Any]], status: Any = "ok", **fields: Any
) -> tuple[Finished, tuple[Payload, ...]]:
    packed = pack_outputs(outputs)
    entry = Finished(
        at=AT,
        by=BY,
        execution_id=execution_id,
        status=status,
        execution_count=1,
        outputs=packed.digest,
        blobs=packed.blobs,
        started_at=AT,
        **fields,
    )
    return entry, packed.payloads


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def display(data: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": metadata}


def lose_lines(ledger: Path, count: int) -> None:
    """Have a ledger as it is if its server died before it wrote its last lines."""
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-count]))
    ledger.with_suffix(".head").unlink()


def new_history(folder: Path) -> History:
    history = History(folder, version="1.2.3", log=logging.getLogger("test.history"))
    history.start()
    return history


def run(
    session: SessionJournal,
    seq: int,
    source: str,
    outputs: list[dict[str, Any]],
    status: str = "ok",
    **fields: Any,
) -> ExecutionId:
    """Record an execution from its acceptance to its end."""
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, seq, source, **fields)
    session.append([entry, dispatched(execution_id)], [payload])
    end, payloads = finished(execution_id, outputs, status)
    session.append_final([end], payloads)
    return execution_id


def closed() -> Closed:
    return Closed(at=AT, by=BY, reason="closed")


def plain_entries(count: int) -> list[Entry]:
    """Return entries that name no payloads."""
    return [dispatched(new_execution_id()) for _ in range(count)]


PERSON = By(kind="person", username="grace", display_name="Grace")


def asked(
    execution_id: ExecutionId, source: str, *, before: str | None = None, at: str = AT
) -> tuple[ApprovalAsked, list[Payload]]:
    payloads = [Payload.of(text.encode()) for text in (source, before) if text is not None]
    entry = ApprovalAsked(
        at=at,
        by=BY,
        execution_id=execution_id,
        source=payloads[0].digest,
        kernel_id="k-1",
        incarnation=1,
        expires_at="2026-11-21T10:00:00.000Z",
        before=None if before is None else payloads[1].digest,
    )
    return entry, payloads


def approved(execution_id: ExecutionId, source: str) -> tuple[Approved, Payload]:
    payload = Payload.of(source.encode())
    return Approved(at=AT, by=PERSON, execution_id=execution_id, source=payload.digest), payload


def reviewed(
    execution_id: ExecutionId | None,
    verdict: Any = "approved",
    comment: str | None = None,
    *,
    up_to: int = 0,
) -> Reviewed:
    return Reviewed(
        at=AT,
        by=PERSON,
        execution_id=execution_id,
        verdict=verdict,
        comment=comment,
        up_to=up_to,
    )


def ask(
    session: SessionJournal, seq: int, source: str, *, before: str | None = None
) -> ExecutionId:
    """Record an execution that asks for approval."""
    execution_id = new_execution_id()
    entry, payload = accepted(execution_id, seq, source)
    entry_asked, payloads = asked(execution_id, source, before=before)
    session.append([entry, entry_asked], [payload, *payloads])
    return execution_id
