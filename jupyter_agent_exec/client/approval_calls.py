"""What the client can ask of approvals, as steps without I/O; nothing here is asked twice."""

from __future__ import annotations

import msgspec

from ..models import (
    Approvals,
    Approve,
    GrantApproval,
    Reject,
    Session,
    SetPause,
    SetPolicy,
    Unlock,
    Unlocked,
)
from .answers import read
from .calls import read_result
from .result import Result
from .routes import get, segment, send_model
from .steps import Call, ShowUnlock, send

_approvals = msgspec.json.Decoder(Approvals)
_session = msgspec.json.Decoder(Session)
_unlocked = msgspec.json.Decoder(Unlocked)


def approvals() -> Call[Approvals]:
    """Ask what asks for approval."""
    return (yield from get("/approvals", _approvals))


def decide(execution_id: str, decision: Approve | Reject) -> Call[Result]:
    """Let an execution run, or do not."""
    verb = "approve" if isinstance(decision, Approve) else "reject"
    path = f"/executions/{segment(execution_id)}/{verb}"
    return read_result((yield from send(send_model("POST", path, decision))))


def grant(session_id: str, grant: GrantApproval) -> Call[Session]:
    """Let all that a session asks for run for some time."""
    path = f"/sessions/{segment(session_id)}/approval"
    return read((yield from send(send_model("PUT", path, grant))), _session)


def rule(rule: SetPolicy | SetPause) -> Call[Approvals]:
    """Set the policy, or the pause."""
    path = "/approvals/policy" if isinstance(rule, SetPolicy) else "/approvals/pause"
    return read((yield from send(send_model("PUT", path, rule))), _approvals)


def unlock(passphrase: str) -> Call[str]:
    """Exchange the passphrase for what decisions show, and show it from now on."""
    reply = yield from send(send_model("POST", "/unlock", Unlock(passphrase=passphrase)))
    unlocked = read(reply, _unlocked)
    yield ShowUnlock(unlocked.unlock)
    return unlocked.expires_at
