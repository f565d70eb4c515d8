"""Entries, sessions and histories as the tests make them."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from ulid import ULID

from jupyter_agent_exec.audit.followers import Followers
from jupyter_agent_exec.audit.sink import Sink
from jupyter_agent_exec.journal.blobs import pack_outputs
from jupyter_agent_exec.journal.history import History
from jupyter_agent_exec.journal.retention import RetentionRule
from jupyter_agent_exec.journal.session_journal import SessionJournal
from jupyter_agent_exec.models import (
    Agent,
    Document,
    ExecutionKernel,
    Limits,
    ScratchTarget,
    SessionKernel,
    TokenRef,
)
from jupyter_agent_exec.records import (
    SERVER,
    Accepted,
    AccessDenied,
    ApprovalAsked,
    Approved,
    By,
    CellWritten,
    Closed,
    Dispatched,
    DisplayUpdated,
    Entry,
    Finished,
    KernelStarted,
    LateOutput,
    Opened,
    OutputRef,
    Payload,
    PersonRan,
    PolicySet,
    RecordedCaps,
    Rejected,
    Reviewed,
    TokenMinted,
    TokenRevoked,
)
from jupyter_agent_exec.types import CellId, Digest, ExecutionId, SessionId, TokenId

AT = "2026-11-21T09:00:00.000Z"
BY = By(kind="agent", agent="analyst", username="ada")
PNG = "iVBORw0KGgoAAAANSUhEUg=="
REAL_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAADklEQVR4nGNgYGBgQGYAAAAWAAGv2lPLAAAAAElFTkSu"
    "QmCC"
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="5"></svg>'
LANGUAGE = {"name": "python", "version": "3.11", "file_extension": ".py"}

TOKENS = [TokenId(f"t_{number:026}") for number in range(3)]


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


def new_history(
    folder: Path,
    sinks: Sequence[Sink] = (),
    retention: Sequence[RetentionRule] = (),
    **options: Any,
) -> History:
    log = logging.getLogger("test.history")
    history = History(folder, version="1.2.3", log=log, **options)
    history.retention = retention
    if sinks:
        history.copies = Followers(folder, sinks, history.own_journals, lambda: None, log)
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


def add_late(
    session: SessionJournal, id: ExecutionId, outputs: list[dict[str, Any]], **more: Any
) -> None:
    """Record outputs that come after their execution has finished."""
    late, payloads = finished(id, outputs)
    about: Any = {"at": AT, "by": BY, "outputs": late.outputs, "blobs": late.blobs}
    session.append_final([LateOutput(execution_id=id, **about, **more)], payloads)


def add_update(
    session: SessionJournal, id: ExecutionId, output: dict[str, Any], *targets: OutputRef
) -> None:
    """Record that an execution updates what others show."""
    update, payloads = finished(id, [output])
    about: Any = {"at": AT, "by": BY, "outputs": update.outputs, "blobs": update.blobs}
    session.append_final([DisplayUpdated(execution_id=id, targets=targets, **about)], payloads)


def written(execution_id: ExecutionId, outputs: Any = "held") -> CellWritten:
    document = Document(
        path="a.ipynb",
        cell_id=CellId("c"),
        via="contents",
        status="written",
        outputs=outputs,
        reason=None,
    )
    return CellWritten(at=AT, by=SERVER, execution_id=execution_id, document=document)


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


def minted(id: TokenId) -> TokenMinted:
    return TokenMinted(
        at=AT,
        by=PERSON,
        token_id=id,
        label="Analyst",
        scopes=("exec:scratch", "files"),
        approval="first",
        caps=RecordedCaps(kernels=2),
        expires_at="2999-01-01T00:00:00.000Z",
        secret_sha256=Digest("0" * 64),
    )


def kept(entry: TokenMinted, **more: str) -> dict[str, object]:
    """Return a token as `tokens.json` has it."""
    return {
        "id": entry.token_id,
        "secret_sha256": entry.secret_sha256,
        "label": entry.label,
        "scopes": entry.scopes,
        "approval": entry.approval,
        "caps": {"kernels": 2},
        "username": PERSON.username,
        "display_name": PERSON.display_name,
        "created_at": entry.at,
        "expires_at": entry.expires_at,
        **more,
    }


def _run_all(session: SessionJournal) -> ExecutionId:
    """Record executions with all that their entries can have; return the first."""
    session.append([kernel_started()])
    first = run(session, 1, "plot()", [display({"image/png": PNG}), stream("x" * 9000)])
    values = Payload.of(b'{"double":"a * 2"}')
    second = new_execution_id()
    wanted, source = accepted(second, 2, "1/0", values=values.digest)
    session.append([wanted, dispatched(second)], [source, values])
    end, payloads = finished(second, [stream("no", "stderr")], "error")
    session.append_final([end], payloads)
    add_late(session, first, [display({"text/plain": "late"})])
    add_update(session, first, display({}), OutputRef(first, 0))
    asks = ask(session, 3, "asked", before="before")
    entry, payload = approved(asks, "changed")
    changes = Payload.of(b'{"variables":[{"name":"a","change":"added","type":"int"}]}')
    end, payloads = finished(asks, [], variables=changes.digest)
    session.append([entry, end], [payload, changes, *payloads])
    rejected = ask(session, 4, "rm()")
    no = Rejected(at=AT, by=PERSON, execution_id=rejected, reason="No.")
    session.append([no, finished(rejected, [], "rejected")[0]])
    mine = Payload.of(b"mine = 1")
    person = PersonRan(
        at=AT, by=PERSON, kernel_id="k", msg_id="m", source=mine.digest, execution_count=1
    )
    session.append([person], [mine])
    return first


def write_history(folder: Path) -> None:
    """Write one of three servers, one after the other, with each kind of entry in its ledger."""
    history = new_history(folder)
    history.note(PolicySet(at=AT, by=PERSON, policy={"scratch": "first", "notebook": "none"}))
    for id in TOKENS:
        history.note(minted(id))
    entry = opened()
    token = TokenRef(id=TOKENS[0], label="Analyst")
    session = history.open_session(replace(entry, token=token))
    execution_id = _run_all(session)
    session.close(closed())
    history.decide(entry.session_id, [reviewed(execution_id)])
    still_open = history.open_session(opened())
    run(still_open, 1, "1", [])
    history.note(TokenRevoked(at=AT, by=PERSON, token_id=TOKENS[1]))
    history.stop()
    history = new_history(folder)  # which closes what is open
    history.note(AccessDenied(at=AT, by=BY, token_id=TOKENS[0], code="c", method="GET", route="/r"))
    history.stop()
    new_history(folder).stop()
    first, second, third = map(minted, TOKENS)
    tokens = [kept(first, last_used_at=AT), kept(second, revoked_at=AT), kept(third)]
    (folder / "tokens.json").write_text(json.dumps({"version": 1, "tokens": tokens}))
    (folder / "approval-policy.json").write_text('{"scratch":"first"}')
