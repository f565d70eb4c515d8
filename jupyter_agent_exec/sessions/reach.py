"""What an agent token reaches: which sessions, executions, payloads, notebooks and kernels.

A person's own credential reaches all that Jupyter's Authorizer allows, so nothing is looked at
here then. Whatever is raised here is a denial: what a token may not even know of is not found, in
the words in which it would not be if it were not there.
"""

from __future__ import annotations

from typing import Final, Protocol

from ..auth.access import NOTEBOOK, Kernels, Targets, denied
from ..auth.scopes import FOR_PEOPLE, Caller, Scope
from ..errors import BlobNotFound, ExecutionNotFound, Forbidden, SessionNotFound
from ..models import Session
from ..types import SessionId, TokenId

_EXEC: Final[frozenset[Scope]] = frozenset({"exec", "exec:scratch", "exec:notebook"})


class Sessions(Protocol):
    """What is asked of the sessions."""

    async def outline(self, id: str) -> Session:
        """Return a session, if need be without what people said; SessionNotFound if none."""

    async def session_of(self, execution_id: str) -> SessionId:
        """Return the session of an execution; ExecutionNotFound if there is none."""

    async def has_blob(self, digest: str, token_id: TokenId) -> bool:
        """Tell whether a token's sessions have a payload; BlobNotFound if no session has."""


class Reach(Targets):
    """Looks at what a caller may reach. All of it raises, or returns nothing.

    Parameters
    ----------
    sessions
        The agent sessions, open or closed.
    kernels
        Which notebook has which kernel.
    """

    def __init__(self, sessions: Sessions, kernels: Kernels) -> None:
        super().__init__(kernels)
        self._sessions = sessions

    def only(self, caller: Caller) -> TokenId | None:
        """Return the token of which lists show the sessions; None for all sessions."""
        if caller.token is None or caller.grants is None or caller.grants.all_history:
            return None
        return caller.token.id

    def sees(self, caller: Caller, session: Session) -> bool:
        """Tell whether a caller may know of a session."""
        return caller.grants is None or caller.grants.all_history or _is_own(caller, session)

    async def session(self, caller: Caller, scope: Scope, session_id: str) -> None:
        """Look whether a caller may do something to a session.

        Raises
        ------
        SessionNotFound
            There is none that the caller may know of.
        Forbidden
            It may be read, or it is the caller's own, but this may not be done to it.
        """
        if caller.grants is not None:
            session = await self._sessions.outline(session_id)
            if not self.sees(caller, session):
                raise denied(SessionNotFound("There is no such session.", session_id=session_id))
            await self._to(caller, scope, session)

    async def execution(self, caller: Caller, scope: Scope, execution_id: str) -> None:
        """Look whether a caller may do something to an execution.

        Raises
        ------
        ExecutionNotFound
            There is none that the caller may know of.
        Forbidden
            As for its session.
        """
        if caller.grants is not None:
            id = await self._sessions.session_of(execution_id)
            session = await self._sessions.outline(id)
            if not self.sees(caller, session):
                raise denied(
                    ExecutionNotFound("There is no such execution.", execution_id=execution_id)
                )
            await self._to(caller, scope, session)

    async def blob(self, caller: Caller, scope: Scope, digest: str) -> None:
        """Look whether a caller may read a payload.

        Raises
        ------
        BlobNotFound
            No session that the caller may know of has such a one.
        """
        self.check(caller, scope)
        only = self.only(caller)
        if only is not None and not await self._sessions.has_blob(digest, only):
            raise denied(BlobNotFound("There is no such payload.", digest=digest))

    # -- helpers -----------------------------------------------------------------------------------

    async def _to(self, caller: Caller, scope: Scope, session: Session) -> None:
        """Look whether this may be done to a session that may be read."""
        if scope in FOR_PEOPLE:
            self.check(caller, scope)
        if scope == "history:read":
            return
        if not _is_own(caller, session):
            raise denied(
                Forbidden(
                    "This session was not opened with this token, which may read it and no more: "
                    "open a session of your own.",
                    session_id=session.id,
                )
            )
        if scope == "files":
            self.check(caller, scope)
        if scope in _EXEC or scope == "files":  # its folder is where its notebook is now
            await self.target(caller, session.target, session.path)
        elif scope in NOTEBOOK and session.path is not None:
            self.notebook(caller, scope, session.path)
        else:
            self.check(caller, scope)


def _is_own(caller: Caller, session: Session) -> bool:
    """Tell whether a session was opened with the token that was shown."""
    return (
        caller.token is not None
        and session.token is not None
        and session.token.id == caller.token.id
    )
