"""One light program in the place of all users' servers of a hub: it mints tokens and answers MCP.

usage: simulated_users.py PORT
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from datetime import UTC, datetime, timedelta

import msgspec
from tornado.web import Application, RequestHandler
from ulid import ULID

from jupyter_agent_exec.models import Caps, MintedToken, Token
from jupyter_agent_exec.records import timestamp
from jupyter_agent_exec.types import TokenId

OWNERS: dict[str, str] = {}
"""The users, by the credentials of their agents."""


class Server(RequestHandler):
    """Tells the hub that a user's server runs."""

    def get(self, user: str) -> None:
        """Answer."""
        self.finish({"user": user})

    def check_xsrf_cookie(self) -> None:
        """Accept all: nobody's browser comes here."""


class Tokens(Server):
    """Mints agent tokens."""

    def post(self, user: str) -> None:
        """Mint one."""
        id, now = TokenId(f"t_{ULID()}"), datetime.now(UTC)
        secret = f"jaex_{id}_{secrets.token_hex(32)}"
        OWNERS[secret] = user
        token = Token(
            id=id,
            label="simulated",
            scopes=["exec:scratch"],
            approval=None,
            edits=None,
            caps=Caps(),
            username=user,
            status="active",
            created_at=timestamp(now),
            expires_at=timestamp(now + timedelta(days=1)),
            revoked_at=None,
            last_used_at=None,
        )
        minted = MintedToken(token=token, secret=secret, configurations=[], mcp_installed=True)
        self.set_status(201)
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(minted))


class Mcp(Server):
    """Answers each call with the name of the user."""

    def post(self, user: str) -> None:
        """Answer, if the agent is this user's."""
        credential = self.request.headers.get("Authorization", "").removeprefix("Bearer ")
        if OWNERS.get(credential) != user:
            self.set_status(401)
            self.finish({"message": "Another's token.", "code": "token_refused", "detail": {}})
            return
        id = json.loads(self.request.body)["id"]
        self.finish(
            {"jsonrpc": "2.0", "id": id, "result": {"user": user, "credential": credential}}
        )


async def main(port: int) -> None:
    """Serve until the process is ended."""
    routes = (("api/agent-exec/tokens", Tokens), ("api/agent-exec/mcp", Mcp), (".*", Server))
    application = Application([(f"/user/([^/]+)/{path}", handler) for path, handler in routes])
    application.listen(port, "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
