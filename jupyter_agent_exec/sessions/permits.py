"""Whether a session may still run code: its agent token must be valid and cover the target."""

from __future__ import annotations

from msgspec.structs import replace

from ..auth.access import TargetAccess
from ..auth.scopes import Caller, NotebookScope
from ..auth.tokens import Tokens
from ..errors import AgentExecError
from ..executions.approval_gate import Permit, Unlimited
from ..models import KernelTarget, NotebookTarget, Target
from ..types import ApprovalMode, EditMode, TokenId


class Permits:
    """Makes the permits of sessions."""

    def __init__(self, targets: TargetAccess, tokens: Tokens) -> None:
        self.targets = targets
        self._tokens = tokens

    def of(self, caller: Caller, target: Target) -> Permit:
        """Return the permit of a session that a caller opens."""
        if caller.token is None:
            return Unlimited()
        return TokenPermit(caller, caller.token.id, target, self.targets, self._tokens)


class TokenPermit:
    """The permit of a session that was opened with an agent token."""

    def __init__(
        self,
        caller: Caller,
        token_id: TokenId,
        target: Target,
        targets: TargetAccess,
        tokens: Tokens,
    ) -> None:
        self.approval: ApprovalMode | None = caller.approval
        self.edits: EditMode | None = caller.edits
        self._caller = caller
        self._token_id = token_id
        self._target = target
        self._targets = targets
        self._tokens = tokens
        self._seen: dict[bool, str] = {}  # the refusals of the last check: of all code, of trials

    def refusal(self, path: str | None, *, looks: bool) -> str | None:
        """Return why the session may run no more code; None if it may."""
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
