"""Put together what both clients send, and refuse what JSON would silently change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec.structs import replace

from ..errors import InvalidRequest
from ..models import (
    Agent,
    Execute,
    KernelTarget,
    Limits,
    NotebookTarget,
    OpenSession,
    Placement,
    RunSteps,
    ScratchTarget,
    Step,
    Target,
)
from ..types import CellId, Digest, ExecutionId
from .preload import Preloadable, to_preload

Place: TypeAlias = Placement | Literal["end", "none"]
"""Where in its notebook an execution's cell goes."""


def session_target(
    *,
    notebook: str | None,
    kernel_id: str | None,
    kernel_name: str | None,
    create: bool,
    cwd: str | None,
    env: Mapping[str, str] | None,
    isolated: bool = False,
) -> Target:
    """Return where a session's code runs: in a notebook, in a kernel that runs, else in scratch."""
    if notebook is not None:
        _require_none(
            "notebook", kernel_id=kernel_id, cwd=cwd, env=env or None, isolated=isolated or None
        )
        return NotebookTarget(path=notebook, kernel_name=kernel_name, create=create)
    if create:
        raise InvalidRequest("create=True needs the path of a notebook=.", field="create")
    if kernel_id is not None:
        _require_none(
            "kernel_id",
            kernel_name=kernel_name,
            cwd=cwd,
            env=env or None,
            isolated=isolated or None,
        )
        return KernelTarget(kernel_id=kernel_id)
    return ScratchTarget(kernel_name=kernel_name, cwd=cwd, env=dict(env or {}), isolated=isolated)


def session_request(
    agent: str | Agent,
    target: Target,
    limits: Limits,
    *,
    title: str | None,
    client_id: str | None,
    init_source: str | None,
    preload: Iterable[Preloadable],
    allow_stdin: bool,
) -> OpenSession:
    """Return the request that opens a session."""
    _require_finite("limits.timeout", limits.timeout)
    return OpenSession(
        agent=Agent(name=agent) if isinstance(agent, str) else agent,
        target=target,
        title=title,
        client_id=client_id,
        limits=limits,
        init_source=init_source,
        preload=to_preload(preload),
        allow_stdin=allow_stdin,
    )


def execute_request(
    source: str | None,
    timeout: float | None,
    queue_timeout: float | None,
    max_output_bytes: int | None,
    placement: Place = "end",
    revises: str | None = None,
    values: Mapping[str, str] | None = None,
) -> Execute:
    """Return the request that runs `source`, or that of the cell that `placement` names."""
    _require_finite("timeout", timeout)
    _require_finite("queue_timeout", queue_timeout)
    return Execute(
        source=source,
        timeout=timeout,
        queue_timeout=queue_timeout,
        max_output_bytes=max_output_bytes,
        placement=placement,
        revises=None if revises is None else ExecutionId(revises),
        values=dict(values or {}),
    )


def steps_request(
    steps: Iterable[str | Step], *, stop_on_error: bool, timeout: float | None
) -> RunSteps:
    """Return the request that runs several sources."""
    _require_finite("timeout", timeout)
    asked = [Step(source=each) if isinstance(each, str) else each for each in steps]
    return RunSteps(
        steps=[replace(each, timeout=each.timeout or timeout) for each in asked],
        stop_on_error=stop_on_error,
    )


def cell_of(cell_id: str, source_sha256: str | None) -> Placement:
    """Return the place of the cell that is there, if it still has that source."""
    return Placement(
        cell=CellId(cell_id),
        source_sha256=None if source_sha256 is None else Digest(source_sha256),
    )


def _require_none(given: str, **others: object) -> None:
    """Refuse what does not go with `given`, whose kernel is there already or is the notebook's."""
    for field, value in others.items():
        if value is not None:
            raise InvalidRequest(f"{given}= and {field}= exclude each other.", field=field)


def _require_finite(field: str, seconds: float | None) -> None:
    """Refuse what JSON does not know: infinity would arrive as null, which is the default."""
    if seconds is not None and not math.isfinite(seconds):
        raise InvalidRequest(
            f"{field} must be a finite number of seconds, not {seconds}.", field=field
        )
