"""Whether a session may still run code: its agent token must be valid and cover the target."""

from __future__ import annotations

from msgspec.structs import replace

from ..auth.access import TargetAccess
from ..auth.scopes import Caller, NotebookScope
from ..auth.tokens import Tokens
from ..errors import AgentExecError
from ..models import KernelTarget, NotebookTarget, Target
from ..types import ApprovalMode, EditMode, TokenId


class Permit:
    """The permit of a session that a user opened with their own credential: it allows all."""

    approval: ApprovalMode | None = None
    """The approval that the agent token demands; None to follow the policy."""
    edits: EditMode | None = "apply"
    """What becomes of the session's edits of the notebook; None to follow the policy."""

    def refusal(self, path: str | None, *, looks: bool) -> str | None:
        """Return why the session may send nothing more to its kernel; None if it may.

        Parameters
        ----------
        path
            Current contents path of the session's notebook; None if its target is not a notebook.
        looks
            Whether it is about a trial.
        """
        return None

    async def look(self) -> None:
        """Load the current state from Jupyter and other servers; `refusal` answers from it."""


class TokenPermit(Permit):
    """The permit of a session that was opened with an agent token.

    The token may be revoked or expire, or may no longer cover the notebook.
    """

    def __init__(
        self,
        caller: Caller,
        token_id: TokenId,
        target: Target,
        targets: TargetAccess,
        tokens: Tokens,
    ) -> None:
        self.approval, self.edits = caller.approval, caller.edits
        self._caller = caller
        self._token_id = token_id
        self._target = target
        self._targets = targets
        self._tokens = tokens
        self._seen: dict[bool, str] = {}  # the refusals of the last check: of all code, of trials

    def refusal(self, path: str | None, *, looks: bool) -> str | None:
        """Return why the token does not allow it; None if it does."""
        refusal = self._tokens.ending(self._token_id) or self._seen.get(looks)
        if refusal is None and path is not None and isinstance(self._target, NotebookTarget):
            scope: NotebookScope = "look:notebook" if looks else "exec:notebook"
            try:
                self._targets.notebook(self._now(), scope, path)
            except AgentExecError as error:
                return error.message
        return refusal

    async def look(self) -> None:
        """Check again what other servers and Jupyter may have changed."""
        self._seen = {}
        for looks in (False, True):
            try:
                await self._tokens.refresh()
                if isinstance(self._target, KernelTarget):
                    await self._targets.target(self._now(), self._target, looks=looks)
            except AgentExecError as error:
                self._seen[looks] = error.message

    def _now(self) -> Caller:
        """Return the caller with what the token allows now: it may have got more scopes."""
        return replace(self._caller, grants=self._tokens.grants(self._token_id))
