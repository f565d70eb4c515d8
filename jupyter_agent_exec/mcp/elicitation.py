"""Ask the client's user to approve an execution.

Only users may approve. The MCP client asks its user only if it connected with the user's own
credential. With an agent token, the user decides in JupyterLab. The first decision counts.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final

from ..errors import AlreadyDecided, ApprovalChanged, Forbidden, InvalidRequest
from ..executions.execution import LiveExecution
from ..lookalikes import lookalikes
from ..models import Approve
from ..records import ExecutionRecord, digest_of
from ..tasks import first_of
from ..types import Digest, ExecutionId, GrantSpan
from .call import Call, Elicited

SHOWN_CHARACTERS: Final = 4_000
"""Maximum characters of a source. A longer one is not approved here: nobody would see all of it."""

_RUN: Final = "Run it"
_DO_NOT: Final = "Do not run it"

_GRANTS: Final[Mapping[str, GrantSpan | None]] = {
    _RUN: None,
    "Run it, and let the agent run code in this kernel until it restarts": "restart",
    "Run it, and let the agent run code in this kernel for an hour": "hour",
}
"""The answers that let it run, with what else they let the agent do."""


def _answers(execution: LiveExecution) -> Mapping[str, GrantSpan | None]:
    """Return the answers that let an execution run, as far as each means something."""
    run, until_restart, hour = _GRANTS
    if execution.mode == "first":  # an approval lets the agent run more in any case
        return {until_restart: None, hour: "hour"}
    gate = execution.gate
    return {run: None} if gate.mode == "none" or gate.grant is not None else _GRANTS


def _schema(answers: Collection[str]) -> dict[str, Any]:
    """Return the form."""
    return {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "enum": [*answers, _DO_NOT]},
            "reason": {
                "type": "string",
                "title": "Why not",
                "description": "A sentence for the agent.",
                "maxLength": 1000,
            },
        },
        "required": ["decision"],
    }


async def ask_person(call: Call, record: ExecutionRecord) -> None:
    """Ask the client's user about an execution that awaits approval, if the user may decide.

    Return when the user has decided, here or elsewhere, when the execution is withdrawn, or at
    once if the client cannot ask.
    """
    if record.status != "awaiting_approval" or not await _may_decide(call):
        return
    also = [] if record.approval is None else record.approval.also
    shown = "".join((record.source, _replaced(record) or "", *(each.source or "" for each in also)))
    if len(shown) > SHOWN_CHARACTERS or not _is_plain(shown):
        return
    found = call.managers.sessions.watching(record.id)
    if found is None:
        return
    _, execution = found
    sha256 = digest_of(record.source.encode()) if call.state is None else asked_in(call.state)[1]
    state = f"{record.id} {sha256}"
    answers = _answers(execution)
    asking = asyncio.ensure_future(call.elicit(_message(record), _schema(answers), state=state))
    try:
        await first_of(asking, execution.decided, execution.withdrawn, call.cancelled)
        if asking.done():
            await _decide(call, record.id, sha256, asking.result(), answers)
    finally:
        asking.cancel()


def asked_in(state: str) -> tuple[ExecutionId, Digest]:
    """Return the execution that the user was asked about, and the digest of the source they saw.

    Raises
    ------
    InvalidRequest
        The state is not in the form that this server sends.
    """
    id, _, sha256 = state.partition(" ")
    if not id.startswith("x_") or len(sha256) != len(digest_of(b"")):
        raise InvalidRequest("requestState: is not what this server gave.", field="requestState")
    return ExecutionId(id), Digest(sha256)


async def _may_decide(call: Call) -> bool:
    if call.caller.token is not None or call.caller.access != "full" or not call.can_elicit:
        return False
    try:
        await call.authorize("decide")
    except Forbidden:
        return False
    return True


async def _decide(
    call: Call,
    id: ExecutionId,
    sha256: Digest,
    answer: Elicited,
    answers: Mapping[str, GrantSpan | None],
) -> None:
    if answer.action == "cancel":
        return
    decision, reason = answer.content.get("decision"), answer.content.get("reason")
    approvals = call.managers.approvals
    with suppress(AlreadyDecided, ApprovalChanged):  # a decision made elsewhere stands
        if answer.action == "accept" and isinstance(decision, str) and decision in answers:
            approval = Approve(source_sha256=sha256, grant=answers[decision])
            await approvals.approve(id, approval, call.caller)
        elif answer.action == "decline" or decision == _DO_NOT:
            said = reason.strip()[:1000] if isinstance(reason, str) else ""
            await approvals.reject(id, said or None, call.caller)


def _purpose(record: ExecutionRecord) -> str:
    if record.claim is None or record.claim.purpose is None:
        return ""
    return f"\n\nIt says why: {record.claim.purpose!r}"


def _message(record: ExecutionRecord) -> str:
    kernel = "" if record.approval is None else f" in life {record.approval.incarnation} of"
    also = [] if record.approval is None else record.approval.also
    behind = "".join(f"\n\nand then:\n\n{each.source}" for each in also)
    before = _replaced(record)
    replaced = "" if before is None else f"\n\nIt replaces the source of a cell:\n\n{before}"
    return (
        f"An agent that calls itself {record.agent.name!r} wants to run this{kernel} its kernel "
        f"(session {record.session_id}):\n\n{record.source}"
        f"{replaced}{behind}{_purpose(record)}"
    )


def _replaced(record: ExecutionRecord) -> str | None:
    """Return the source of the cell that an execution replaces, as a proposed edit."""
    approval = record.approval
    return approval.before if approval is not None and approval.edits_cell else None


def _is_plain(source: str) -> bool:
    """Return whether a source has no invisible, direction-changing or lookalike characters."""
    return (
        not lookalikes(source)
        and all(
            character in "\n\t" or unicodedata.category(character)[0] != "C" for character in source
        )
        and not any(character in source for character in "\u2028\u2029")
    )
