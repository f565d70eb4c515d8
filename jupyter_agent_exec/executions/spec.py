"""The specification of an execution: what to run, for whom, and within which limits."""

from __future__ import annotations

from typing import Protocol

from ..auth.scopes import Caller
from ..errors import LanguageNotSupported
from ..kernels.kernel import Kernel
from ..models import Execute, derive
from ..records import By, ExecutionRecord
from ..types import Digest, ExecutionId, Status
from .limits import SessionLimits


class Place(Protocol):
    """Where the cell of an execution goes, as `ExecutionCells.place` returns it."""

    @property
    def source(self) -> str:
        """The source to run: the one in the request, or the cell's."""

    @property
    def edits(self) -> bool:
        """Whether the run changes the source of a cell, or adds one that was proposed."""

    @property
    def replaces(self) -> str | None:
        """The cell's current source, which the execution replaces; None if there is none."""


class ExecutionSpec(Execute, frozen=True, kw_only=True):
    """One source to run once: a request, with what its caller and its session add."""

    source: str
    timeout: float
    max_output_bytes: int
    by: By
    init: bool = False
    """Whether it is one of the session's first sources in a new kernel."""
    place: Place | None = None
    """Where its cell goes in the notebook; None for no cell."""
    before: str | None = None
    """The source that it revises."""
    restores: ExecutionId | None = None
    """The execution of an earlier kernel that it runs again."""
    may_raise: bool = False
    """Whether that execution raised too, so that an error is no failure."""
    idempotency_key: str | None = None
    body_sha256: Digest | None = None
    """Digest of the request, if that has an idempotency key."""

    @property
    def reports_restart(self) -> bool:
        """Whether its answer says that variables were lost: it is code that the agent runs now."""
        return not self.init and self.restores is None

    def is_failure(self, status: Status) -> bool:
        """Return whether the steps after it do not run when it ends with this status."""
        return status != "ok" and not (self.may_raise and status == "error")

    @classmethod
    def init_source(cls, source: str, *, by: By, limits: SessionLimits) -> ExecutionSpec:
        """Return the specification of a source that runs first in a session's kernel."""
        return cls(
            source=source,
            by=by,
            timeout=limits.timeout,
            queue_timeout=limits.queue_timeout,
            max_output_bytes=limits.max_output_bytes,
            init=True,
        )

    @classmethod
    def of_request(
        cls,
        request: Execute,
        caller: Caller,
        limits: SessionLimits,
        *,
        place: Place | None,
        revision: tuple[ExecutionId | None, str | None],
        restores: ExecutionRecord | None,
        idempotency_key: str | None,
        body_sha256: Digest | None,
    ) -> ExecutionSpec:
        """Return the specification of a request; the session's limits are the defaults.

        Parameters
        ----------
        revision
            The execution and the source that it revises; see `revision_of`.
        """
        return derive(
            cls,
            request,
            source=request.source if place is None else place.source,
            by=caller.by(),
            timeout=request.timeout or limits.timeout,
            queue_timeout=request.queue_timeout or limits.queue_timeout,
            max_output_bytes=request.max_output_bytes or limits.max_output_bytes,
            place=place,
            revises=revision[0],
            before=revision[1],
            restores=None if restores is None else restores.id,
            may_raise=restores is not None and restores.status == "error",
            idempotency_key=idempotency_key,
            body_sha256=body_sha256,
        )


def revision_of(
    request: Execute,
    named_source: str | None,
    place: Place | None,
    last_rejected: ExecutionRecord | None,
) -> tuple[ExecutionId | None, str | None]:
    """Return the execution and source that a request revises; approval shows the user a diff.

    Parameters
    ----------
    named_source
        The source of the execution that the request names in `revises`.
    last_rejected
        The session's last execution, if it was rejected. The request revises it, unless it names
        another execution.

    Returns
    -------
    The id of the revised execution; None if the request revises a user's cell or nothing. And the
    revised source; None if the request revises nothing.
    """
    id, source = (None, None) if last_rejected is None else (last_rejected.id, last_rejected.source)
    if request.revises is not None:
        id, source = request.revises, named_source
    if place is not None and place.replaces is not None:
        source = place.replaces
    return id, source


def check_python(kernel: Kernel | None, what: str) -> None:
    """Raise LanguageNotSupported if a kernel is known not to be IPython's.

    A kernel is not known if it does not exist, or has been busy since it was found.

    Parameters
    ----------
    what
        The field of the request, or what the request is for.
    """
    info = {} if kernel is None else kernel.connection.kernel_info
    if kernel is None or not info or kernel.connection.inspector.is_python:
        return
    language = str((info.get("language_info") or {}).get("name") or "another language")
    raise LanguageNotSupported(
        f"{what}: only Python's kernel (ipykernel) can do that; this one, {kernel.name!r}, runs "
        f"{language}. Run code of that language instead.",
        field=what,
        language=language,
        kernel_name=kernel.name,
    )
