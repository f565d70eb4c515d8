"""A program with the official Python SDK that signs in."""

from __future__ import annotations

import asyncio
from functools import partial

import httpx2
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from tests.mcp.person_in_browser import signed_in
from tests.real_server import TOKEN


class SigningIn:
    """The program, and what it keeps.

    Parameters
    ----------
    url
        Address of the MCP endpoint.
    token
        The person's own, for the login.
    by_link
        Whether the person adds it to the login's address, instead of typing it there.
    """

    def __init__(self, url: str, token: str = TOKEN, *, by_link: bool = False) -> None:
        self._url = url
        self._token = token
        self._by_link = by_link
        self._client: OAuthClientInformationFull | None = None
        self.kept: OAuthToken | None = None
        self.sent: list[httpx2.URL] = []
        """Where the person's browser was sent after they agreed."""

    async def tools(self) -> list[str]:
        """Return the names of the tools that it gets."""
        metadata = OAuthClientMetadata(
            client_name="Python", redirect_uris=[AnyUrl("http://127.0.0.1:9/callback")]
        )
        auth = OAuthClientProvider(self._url, metadata, self, self._redirect, self._callback)
        async with (
            httpx2.AsyncClient(auth=auth, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(self._url, http_client=http)) as client,
        ):
            return [tool.name for tool in (await client.list_tools()).tools]

    async def renew(self) -> None:
        """Use the refresh token."""
        assert self.kept is not None
        assert self._client is not None
        fields = {
            "grant_type": "refresh_token",
            "refresh_token": str(self.kept.refresh_token),
            "client_id": self._client.client_id,
        }
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
            answered = await http.post(f"{self._url.removesuffix('mcp')}sign-in/token", data=fields)
        self.kept = OAuthToken.model_validate(answered.json())

    async def _redirect(self, address: str) -> None:
        going = partial(signed_in, address, self._token, by_link=self._by_link)
        self.sent.append(await asyncio.to_thread(going))

    async def _callback(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(dict(self.sent[-1].params))

    # -- the SDK's storage -------------------------------------------------------------------------

    async def get_tokens(self) -> OAuthToken | None:
        return self.kept

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.kept = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info
