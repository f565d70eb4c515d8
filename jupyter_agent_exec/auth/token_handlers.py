"""The routes of agent tokens and of the passphrase."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from tornado import web

from ..models import (
    Configuration,
    ExtendToken,
    MintedToken,
    MintToken,
    Token,
    TokenList,
    Unlock,
    Unlocked,
)
from .handler import AgentExecHandler
from .operations import requires
from .scopes import Grants, given_away

MCP_SERVER_NAME: Final = "jupyter"
"""Name of this server in the configuration of MCP clients."""


class TokensBase(AgentExecHandler):
    """Base of the handlers below."""

    namespace: str
    mcp_installed: Callable[[], bool]


class TokensHandler(TokensBase):
    """The agent tokens."""

    @web.authenticated
    @requires("tokens", answers={200: TokenList})
    async def get(self) -> None:
        """List agent tokens without their secrets, the newest first."""
        self.answer(TokenList(tokens=await self.tokens.all()))

    @web.authenticated
    @requires("tokens", body=MintToken, answers={201: MintedToken})
    async def post(self, body: MintToken) -> None:
        """Mint an agent token. Only this answer contains its secret."""
        for scope in given_away(Grants.parse(body.scopes)):
            await self.ask_authorizer(scope)
        token, secret = await self.tokens.mint(body, self.caller)
        self.set_header("Cache-Control", "no-store")
        self.answer(
            MintedToken(
                token=token,
                secret=secret,
                configurations=configurations(self.public_url, self.namespace, secret),
                mcp_installed=self.mcp_installed(),
            ),
            HTTPStatus.CREATED,
            location=f"{self.public_path}{self.namespace}/tokens/{token.id}",
        )


class TokenHandler(TokensBase):
    """One agent token."""

    @web.authenticated
    @requires("tokens", answers={200: Token}, without_passphrase=True)
    async def delete(self, token_id: str) -> None:
        """Revoke an agent token: its sessions are closed, and what runs there is interrupted."""
        self.answer(await self.tokens.revoke(token_id, self.caller))


class ScopesHandler(TokensBase):
    """The scopes of an agent token."""

    @web.authenticated
    @requires("tokens", body=ExtendToken, answers={200: Token})
    async def post(self, token_id: str, body: ExtendToken) -> None:
        """Give an agent token more scopes, at most those that the person has."""
        for scope in given_away(Grants.parse(body.scopes)):
            await self.ask_authorizer(scope)
        self.answer(await self.tokens.extend(token_id, body.scopes, self.caller))


class UnlockHandler(AgentExecHandler):
    """The passphrase."""

    @web.authenticated
    @requires("decide", body=Unlock, answers={200: Unlocked}, without_passphrase=True)
    async def post(self, body: Unlock) -> None:
        """Exchange the server's passphrase for an unlock, which decisions need."""
        unlocked = await self.unlocks.unlock(body.passphrase, self.caller)
        self.set_header("Cache-Control", "no-store")
        self.answer(unlocked)


def configurations(url: str, namespace: str, secret: str) -> list[Configuration]:
    """Return the client configurations to paste; they contain the secret.

    Parameters
    ----------
    url
        Base URL of the Jupyter server, with a slash at its end.
    namespace
        Path of the routes under it.
    secret
        The complete token.
    """
    base = url.rstrip("/")
    mcp = f"{base}/{namespace}/mcp"
    authorization = f"Authorization: Bearer {secret}"
    over_http = {"type": "http", "url": mcp, "headers": {"Authorization": f"Bearer {secret}"}}
    over_stdio = {
        # Clients that have a window do not search the folders that a shell does.
        "command": sys.executable,
        "args": ["-m", "jupyter_agent_exec.cli", "mcp"],
        "env": {"JUPYTER_AGENT_EXEC_URL": base, "JUPYTER_AGENT_EXEC_TOKEN": secret},
    }
    claude_code = ["claude", "mcp", "add", "--transport", "http", MCP_SERVER_NAME, mcp]
    python = f"""\
from jupyter_agent_exec.client import AgentExecClient

with AgentExecClient({base!r}, {secret!r}) as client:
    with client.open_session(agent="my-agent") as session:
        print(session.run("1 + 1").text)
"""
    curl = ["curl", "-H", authorization, f"{base}/{namespace}/status"]
    return [
        Configuration(
            name="claude-code",
            title="Claude Code: run in a terminal",
            language="shell",
            text=f"{shlex.join([*claude_code, '--header', authorization])}\n",
        ),
        Configuration(
            name="mcp",
            title="Cursor: mcp.json, and other MCP clients that use HTTP",
            language="json",
            text=_servers("mcpServers", over_http),
        ),
        Configuration(
            name="vscode",
            title="VS Code: .vscode/mcp.json",
            language="json",
            text=_servers("servers", over_http),
        ),
        Configuration(
            name="mcp-stdio",
            title="Claude Desktop: claude_desktop_config.json, and others that start a process",
            language="json",
            text=_servers("mcpServers", over_stdio),
        ),
        Configuration(name="python", title="Python: a program", language="python", text=python),
        Configuration(
            name="curl",
            title="curl: test the connection in a terminal",
            language="shell",
            text=f"{shlex.join(curl)}\n",
        ),
    ]


def _servers(key: str, server: Mapping[str, object]) -> str:
    return json.dumps({key: {MCP_SERVER_NAME: server}}, indent=2) + "\n"


ROUTES: Final[list[tuple[str, type[AgentExecHandler]]]] = [
    ("/tokens", TokensHandler),
    ("/tokens/{token_id}", TokenHandler),
    ("/tokens/{token_id}/scopes", ScopesHandler),
    ("/unlock", UnlockHandler),
]
