"""Looking into a session's kernel, as steps without I/O. Any of it may be asked again."""

from __future__ import annotations

import msgspec

from ..models import (
    Complete,
    Completions,
    Inspect,
    Inspection,
    PackageList,
    VariableList,
)
from .answers import read
from .retry import persistently
from .routes import get, segment, send_model, with_query
from .steps import Call

_variables = msgspec.json.Decoder(VariableList)
_completions = msgspec.json.Decoder(Completions)
_inspection = msgspec.json.Decoder(Inspection)
_packages = msgspec.json.Decoder(PackageList)


def variables(session_id: str, match: str | None, limit: int | None) -> Call[VariableList]:
    """List the variables of the kernel's user."""
    path = f"/sessions/{segment(session_id)}/variables"
    return (yield from get(with_query(path, match=match, limit=limit), _variables))


def packages(session_id: str, match: str | None, limit: int | None) -> Call[PackageList]:
    """List what code in the kernel can import."""
    path = f"/sessions/{segment(session_id)}/packages"
    return (yield from get(with_query(path, match=match, limit=limit), _packages))


def complete(session_id: str, asked: Complete) -> Call[Completions]:
    """Ask what may follow at a place in code."""
    path = f"/sessions/{segment(session_id)}/complete"
    reply = yield from persistently(send_model("POST", path, asked))
    return read(reply, _completions)


def inspect(session_id: str, asked: Inspect) -> Call[Inspection]:
    """Ask for the documentation of what stands at a place in code."""
    path = f"/sessions/{segment(session_id)}/inspect"
    reply = yield from persistently(send_model("POST", path, asked))
    return read(reply, _inspection)
