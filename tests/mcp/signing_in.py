"""A program with the official Python SDK that signs in.

`python -m tests.mcp.signing_in URL` prints the address for the browser, reads the one to which the
browser was sent, and tells what it gets as one line of JSON: the tools, or with NOTEBOOK and SOURCE
what a model reads of code that runs there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

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

from tests.mcp.mcp_clients import text_of
from tests.mcp.person_in_browser import signed_in


class SigningIn:
    """The program, and what it keeps.

    Parameters
    ----------
    url
        Address of the MCP endpoint.
    agree
        Opens an address as the person, who agrees; returns where the browser was sent then.
    """

    def __init__(self, url: str, agree: Callable[[str], httpx2.URL] = signed_in) -> None:
        self._url = url
        self._agree = agree
        self._client: OAuthClientInformationFull | None = None
        self.kept: OAuthToken | None = None
        self.sent: list[httpx2.URL] = []
        """Where the person's browser was sent after they agreed."""

    async def tools(self) -> list[str]:
        """Return the names of the tools that it gets."""
        async with self._connected() as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    async def run(self, path: str, source: str) -> str:
        """Run code in a notebook, and return what a model reads of it."""
        target = {"kind": "notebook", "path": path}
        async with self._connected() as client:
            asked: dict[str, Any] = {"target": target, "source": source, "wait": 60}
            return text_of(await client.call_tool("execute", asked))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        metadata = OAuthClientMetadata(
            client_name="Python", redirect_uris=[AnyUrl("http://127.0.0.1:9/callback")]
        )
        auth = OAuthClientProvider(self._url, metadata, self, self._redirect, self._callback)
        async with (
            httpx2.AsyncClient(auth=auth, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(self._url, http_client=http)) as client,
        ):
            yield client

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
        self.sent.append(await asyncio.to_thread(self._agree, address))

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


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _in_another_browser(address: str) -> httpx2.URL:
    _tell(address)
    return httpx2.URL(sys.stdin.readline().strip())


if __name__ == "__main__":
    program = SigningIn(sys.argv[1], _in_another_browser)
    if sys.argv[2:]:
        _tell(json.dumps({"text": asyncio.run(program.run(*sys.argv[2:]))}))
    else:
        _tell(json.dumps({"tools": asyncio.run(program.tools())}))
