"""How people give agents tokens through the clients, and take them back."""

from __future__ import annotations

from collections.abc import Sequence

from .. import models
from ..types import ApprovalMode
from . import token_calls
from .drivers import AsyncDriver, SyncDriver


class TokenMethods:
    """Of the client that blocks."""

    _driver: SyncDriver

    def mint_token(
        self,
        label: str,
        scopes: Sequence[str] = token_calls.SCOPES,
        *,
        expires_in: float | None = None,
        approval: ApprovalMode | None = None,
        caps: models.Caps | None = None,
    ) -> models.MintedToken:
        """Give an agent a token of its own; this needs a person's credential.

        Parameters
        ----------
        label
            What people call it.
        scopes
            What the agent may do with it.
        expires_in
            Seconds; the server's default, 8 hours, when None.
        approval
            What a person has to approve; what the policy says when None.
        caps
            The most that the agent may use with it.

        Returns
        -------
        MintedToken
            With the secret, which is told this once.
        """
        return self._driver.run(
            token_calls.mint(label, scopes, expires_in=expires_in, approval=approval, caps=caps)
        )

    def tokens(self) -> list[models.Token]:
        """List agent tokens without their secrets, the newest first."""
        return self._driver.run(token_calls.tokens())

    def revoke_token(self, token_id: str) -> models.Token:
        """Take a token back: its sessions are closed, and what runs there is interrupted.

        Raises
        ------
        NotFound
            There is no such token.
        """
        return self._driver.run(token_calls.revoke(token_id))


class AsyncTokenMethods:
    """Of the client that awaits."""

    _driver: AsyncDriver

    async def mint_token(
        self,
        label: str,
        scopes: Sequence[str] = token_calls.SCOPES,
        *,
        expires_in: float | None = None,
        approval: ApprovalMode | None = None,
        caps: models.Caps | None = None,
    ) -> models.MintedToken:
        """Give an agent a token of its own, as `AgentExecClient.mint_token` does."""
        return await self._driver.run(
            token_calls.mint(label, scopes, expires_in=expires_in, approval=approval, caps=caps)
        )

    async def tokens(self) -> list[models.Token]:
        """List agent tokens without their secrets, the newest first."""
        return await self._driver.run(token_calls.tokens())

    async def revoke_token(self, token_id: str) -> models.Token:
        """Take a token back, as `AgentExecClient.revoke_token` does."""
        return await self._driver.run(token_calls.revoke(token_id))
