"""Checks what a caller may do: where to run code, and which notebooks, sessions and files to see.

A person's own credential may do all that Jupyter's Authorizer allows, so nothing is checked here
for it. An agent token may do what its scopes grant. Each error raised here is a denial. If a token
may not see an object, the error is the same "not found" as if the object did not exist.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol, TypeAlias, TypeVar

from .. import errors
from ..models import KernelTarget, NotebookTarget, ScratchTarget, Session, Target
from ..types import SessionId, TokenId
from .scopes import (
    FOR_PEOPLE,
    NOTEBOOK_SCOPES,
    Caller,
    Grants,
    NotebookScope,
    Scope,
    plain_path,
)

E = TypeVar("E", bound=errors.AgentExecError)
NotebooksOf: TypeAlias = Callable[[str], Awaitable[Collection[str]]]
"""Returns the contents paths of the notebooks that have the kernel with an id."""

_ANY_TARGET: Final = {
    "exec": "exec:scratch or exec:notebook",
    "look": "exec:scratch or look:notebook",
}
_HOW_TO_GET: Final = "Ask the person for a token that has it, or sign in again."
_EXEC: Final[frozenset[Scope]] = frozenset({"exec", "look", "exec:scratch", "exec:notebook"})
_BESIDES: Final[frozenset[Scope]] = frozenset({"files", "undo"})
"""Scopes that a token needs besides the right to run code in the session's kernel."""


class SessionLookup(Protocol):
    """Finds agent sessions, open or closed."""

    async def outline(self, id: str) -> Session:
        """Return a session, possibly without its reviews; SessionNotFound if there is none."""

    async def session_of(self, execution_id: str) -> SessionId:
        """Return the session of an execution; ExecutionNotFound if there is none."""

    async def has_blob(self, digest: str, token_id: TokenId) -> bool:
        """Return whether a token's sessions have a payload; BlobNotFound if no session has."""


class TargetAccess:
    """Checks where a caller may run code and which notebooks it may see.

    Parameters
    ----------
    notebooks_of
        Finds the notebooks of a kernel.
    located
        Returns the contents path for a path that may also be absolute on the server's machine.
    """

    def __init__(self, notebooks_of: NotebooksOf, located: Callable[[str], str]) -> None:
        self._notebooks_of = notebooks_of
        self._located = located

    def check(self, caller: Caller, scope: Scope) -> None:
        """Raise Forbidden if a caller does not have a scope for any object."""
        grants = caller.grants
        if grants is None:
            return
        if scope in FOR_PEOPLE:
            raise denied(
                errors.Forbidden(
                    "This is for people only, in JupyterLab or with their own credential: ask the "
                    "person for it.",
                    scope=scope,
                )
            )
        if not grants.holds(scope):
            raise _lacks(_ANY_TARGET.get(scope, scope))

    def reads(self, caller: Caller, path: str) -> bool:
        """Return whether a caller may read the notebook at a path."""
        there = plain_path(path)
        return caller.grants is None or (
            there is not None and caller.grants.reaches("read:notebook", there)
        )

    def notebook(self, caller: Caller, scope: Scope, path: str) -> None:
        """Check that a caller may do something to the notebook at a path, if there is one.

        Raises
        ------
        NotebookNotFound
            The caller may do such things, but may not read it.
        Forbidden
            The caller may not do this to it.
        """
        grants = caller.grants
        if grants is None:
            return
        there = plain_path(self._located(path))
        needed = scope if there is None else _of_notebook(grants, scope, there)
        if scope not in NOTEBOOK_SCOPES or there is None:
            self.check(caller, scope)
        elif not grants.holds(scope):
            raise _lacks(needed, f" to {path!r}")
        if there is None or not grants.reaches("read:notebook", there):
            within = ", ".join(grants.patterns("read:notebook"))
            raise denied(
                errors.NotebookNotFound(
                    f"Within the reach of this token ({within}) there is no notebook at {path!r}. "
                    f"For one elsewhere, it needs the scope {needed}. {_HOW_TO_GET}",
                    path=path,
                    scope=needed,
                )
            )
        if scope in NOTEBOOK_SCOPES and not grants.reaches(scope, there):
            raise _lacks(needed, f" to {path!r}")

    async def target(
        self, caller: Caller, target: Target, path: str | None = None, *, looks: bool = False
    ) -> None:
        """Check that a caller may run code in the kernel of a target.

        Parameters
        ----------
        path
            Current contents path of the target's notebook, if any; None: the target's own path.
        looks
            Whether it only looks: it runs trials and lists variables.

        Raises
        ------
        KernelNotFound, NotebookNotFound, Forbidden
        """
        grants = caller.grants
        if grants is None:
            return
        if isinstance(target, ScratchTarget):
            self.check(caller, "exec:scratch")
            return
        scope: NotebookScope = "look:notebook" if looks else "exec:notebook"
        if isinstance(target, NotebookTarget):
            self.notebook(caller, scope, path or target.path)
            if path is None and target.create:
                self.notebook(caller, "edit:notebook", target.path)
        else:
            await self._kernel(caller, grants, target, scope)

    async def _kernel(
        self, caller: Caller, grants: Grants, target: KernelTarget, scope: NotebookScope
    ) -> None:
        self.check(caller, scope)
        if grants.is_everywhere(scope):
            return
        paths = [plain_path(path) for path in await self._notebooks_of(target.kernel_id)]
        if not paths or not all(path and grants.reaches(scope, path) for path in paths):
            raise denied(
                errors.KernelNotFound(
                    f"No kernel {target.kernel_id!r} runs on this server within the reach of this "
                    "token: it must be the kernel of a notebook that matches "
                    f"{', '.join(grants.patterns(scope))}.",
                    kernel_id=target.kernel_id,
                )
            )


class AccessControl(TargetAccess):
    """Checks which sessions, executions and payloads a caller may see or change.

    Parameters
    ----------
    sessions
        The agent sessions, open or closed.
    notebooks_of, located
        See `TargetAccess`.
    """

    def __init__(
        self, sessions: SessionLookup, notebooks_of: NotebooksOf, located: Callable[[str], str]
    ) -> None:
        super().__init__(notebooks_of, located)
        self._sessions = sessions

    def only(self, caller: Caller) -> TokenId | None:
        """Return the token whose sessions lists show; None: all sessions."""
        if caller.token is None or caller.grants is None or caller.grants.all_history:
            return None
        return caller.token.id

    def sees(self, caller: Caller, session: Session) -> bool:
        """Return whether a caller may see a session."""
        return caller.grants is None or caller.grants.all_history or _is_own(caller, session)

    async def session(self, caller: Caller, scope: Scope, session_id: str) -> None:
        """Check that a caller may do something to a session.

        Raises
        ------
        SessionNotFound
            It does not exist, or the caller may not see it.
        Forbidden
            The caller may read it, or it is the caller's own, but the caller may not do this.
        """
        if caller.grants is not None:
            session = await self._sessions.outline(session_id)
            if not self.sees(caller, session):
                raise denied(
                    errors.SessionNotFound("There is no such session.", session_id=session_id)
                )
            await self._to(caller, scope, session)

    async def execution(self, caller: Caller, scope: Scope, execution_id: str) -> None:
        """Check that a caller may do something to an execution.

        Raises
        ------
        ExecutionNotFound
            It does not exist, or the caller may not see it.
        Forbidden
            The same as for its session.
        """
        if caller.grants is not None:
            id = await self._sessions.session_of(execution_id)
            session = await self._sessions.outline(id)
            if not self.sees(caller, session):
                raise denied(
                    errors.ExecutionNotFound(
                        "There is no such execution.", execution_id=execution_id
                    )
                )
            await self._to(caller, scope, session)

    async def blob(self, caller: Caller, scope: Scope, digest: str) -> None:
        """Check that a caller may read a payload.

        Raises
        ------
        BlobNotFound
            No session that the caller may see has it.
        """
        self.check(caller, scope)
        only = self.only(caller)
        if only is not None and not await self._sessions.has_blob(digest, only):
            raise denied(errors.BlobNotFound("There is no such payload.", digest=digest))

    # -- helpers -----------------------------------------------------------------------------------

    async def _to(self, caller: Caller, scope: Scope, session: Session) -> None:
        """Check that a caller may do something to a session that it may read."""
        if scope in FOR_PEOPLE:
            self.check(caller, scope)
        if scope == "history:read":
            return
        if not _is_own(caller, session):
            raise denied(
                errors.Forbidden(
                    "This session was not opened with this token, so the token may only read it. "
                    "Open a session of your own.",
                    session_id=session.id,
                )
            )
        if scope in _BESIDES:
            self.check(caller, scope)
        if scope in _EXEC | _BESIDES:  # its folder is the notebook's current folder
            await self.target(caller, session.target, session.path, looks=scope == "look")
        elif scope in NOTEBOOK_SCOPES and session.path is not None:
            self.notebook(caller, scope, session.path)
        else:
            self.check(caller, scope)


def denied(error: E) -> E:
    """Mark an error as a denial: the object exists, but the token does not reach it."""
    error.is_denial = True
    return error


def _of_notebook(grants: Grants, scope: Scope, path: str) -> str:
    """Return the scope to ask for, to do something to the notebook at a path.

    A session that is opened to look is used to run code if the token runs code elsewhere.
    """
    if scope == "look:notebook" and grants.holds("exec"):
        scope = "exec:notebook"
    return f"{scope if scope in NOTEBOOK_SCOPES else 'read:notebook'}:{path}"


def _lacks(needed: str, where: str = "") -> errors.Forbidden:
    """Return the error for a scope that the token does not have, or not for this object."""
    return denied(
        errors.Forbidden(
            f"This token may not do this{where}: it needs the scope {needed}. {_HOW_TO_GET}",
            scope=needed,
        )
    )


def _is_own(caller: Caller, session: Session) -> bool:
    """Return whether a session was opened with the caller's token."""
    return (
        caller.token is not None
        and session.token is not None
        and session.token.id == caller.token.id
    )
