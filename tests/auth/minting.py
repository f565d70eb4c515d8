"""Minting agent tokens as a person does, and asking with them as an agent does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jupyter_agent_exec.journal.ledger import ledger_paths
from jupyter_agent_exec.journal.lines import ledger_entries
from jupyter_agent_exec.records import LedgerEntry
from tests.asking import Agent, Answered, Send


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def works(ask: Send, token: str) -> bool:
    """Whether a token lets an agent in."""
    return (await ask("GET", "status", headers=bearer(token))).status == 200


MINTED: list[str] = []
"""Secrets that the test which runs has minted."""


async def mint(person: Agent, *scopes: str, **asked: Any) -> tuple[str, str]:
    """Return the id of a new token, and the token."""
    said = {"label": "of the tests", "scopes": scopes or ["exec:scratch"], **asked}
    minted = await person.ask("POST", "tokens", said)
    assert minted.status == 201, minted.body
    MINTED.append(minted.json["secret"].rpartition("_")[2])
    return minted.json["token"]["id"], minted.json["secret"]


class TokenAgent:
    """Asks the server's routes with an agent token and nothing else."""

    def __init__(self, ask: Send, token: str) -> None:
        self._ask = ask
        self._headers = bearer(token)

    async def ask(self, method: str, path: str, said: Any = None, **named: Any) -> Answered:
        body = None if said is None and method in ("GET", "DELETE") else json.dumps(said or {})
        headers = {**self._headers, **named.pop("headers", {})}
        return await self._ask(method, path, headers=headers, body=body, **named)

    async def get(self, path: str, **query: Any) -> Answered:
        return await self.ask("GET", path, query={k: str(v) for k, v in query.items()})

    async def open(self, **asked: Any) -> dict[str, Any]:
        answered = await self.ask("POST", "sessions", {"agent": {"name": "agent"}, **asked})
        assert answered.status == 201, answered.body
        return answered.json

    async def run(self, session: dict[str, Any], source: str, **asked: Any) -> dict[str, Any]:
        answered = await self.execute(session, source, **asked)
        assert answered.status in (201, 202), answered.body
        return answered.json

    async def execute(self, session: dict[str, Any], source: str, **asked: Any) -> Answered:
        route = f"sessions/{session['id']}/executions"
        return await self.ask("POST", route, {"source": source, **asked})


def ledger(history_dir: Path, kind: type[LedgerEntry]) -> list[Any]:
    """Return a ledger's entries of one kind."""
    found = [entry for path in ledger_paths(history_dir) for entry in ledger_entries(path)]
    return [entry for entry in found if isinstance(entry, kind)]


def kept_bytes(history_dir: Path) -> dict[str, bytes]:
    """Return all that is in a history's folder, by file."""
    return {str(path): path.read_bytes() for path in history_dir.rglob("*") if path.is_file()}


def change_kept(history_dir: Path, token_id: str, **changed: Any) -> None:
    """Change what is kept of a token, as another server on the same history would."""
    path = history_dir / "tokens.json"
    kept = json.loads(path.read_bytes())
    for token in kept["tokens"]:
        if token["id"] == token_id:
            token.update(changed)
    new = path.with_name("tokens.json.other")
    new.write_text(json.dumps(kept))
    new.replace(path)


PAST = "2026-01-01T00:00:00.000Z"
