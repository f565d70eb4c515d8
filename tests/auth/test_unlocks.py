"""A passphrase that only a person knows, asked for before anything is decided."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from traitlets import TraitError

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.operations import operations
from jupyter_agent_exec.auth.scopes import FOR_PEOPLE
from jupyter_agent_exec.auth.unlocks import MAX_TRIES
from jupyter_agent_exec.records import DecisionsUnlocked, PassphraseRefused
from jupyter_agent_exec.types import UNLOCK_HEADER
from tests.asking import Agent, Send
from tests.auth.access_asking import HASHED, NOWHERE, PASSWORD, LoggedIn
from tests.auth.minting import MINTED, kept_bytes, ledger

DECISIONS = sorted(
    (verb.upper(), path.lstrip("/"))
    for path, handler in AgentExecApp.routes
    for verb, operation in operations(handler).items()
    if FOR_PEOPLE.intersection(operation.scopes)
    if verb not in ("get", "head")
)
WITHOUT_PASSPHRASE = [
    ("DELETE", "sessions/{session_id}/grant"),
    ("DELETE", "tokens/{token_id}"),
    ("POST", "unlock"),
    ("PUT", "approvals/pause"),
]
"""What stops agents at once, and showing the passphrase itself."""

LOCKED = [each for each in DECISIONS if each not in WITHOUT_PASSPHRASE]


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"decision_passphrase_hash": HASHED}


async def unlocked(agent: Agent) -> dict[str, str]:
    answered = await agent.ask("POST", "unlock", {"passphrase": PASSWORD})
    assert answered.status == 200, answered.body
    assert answered.headers["Cache-Control"] == "no-store"
    MINTED.append(answered.json["unlock"])  # looked for in history and log
    return {UNLOCK_HEADER: answered.json["unlock"]}


def test_decisions_need_the_passphrase_except_those_that_stop_agents() -> None:
    free = [
        (verb.upper(), path.lstrip("/"))
        for path, handler in AgentExecApp.routes
        for verb, operation in operations(handler).items()
        if FOR_PEOPLE.intersection(operation.scopes)
        if operation.without_passphrase and verb not in ("get", "head")
    ]
    dry_runs = [("POST", "erasures"), ("POST", "retention")]  # which remove nothing
    assert sorted(free) == sorted([*WITHOUT_PASSPHRASE, *dry_runs])
    assert len(LOCKED) >= 13


async def test_nothing_is_decided_without_the_passphrase(
    agent: Agent, ask: Send, log_in: Callable[[str], Awaitable[LoggedIn]], jp_serverapp: Any
) -> None:
    person = await log_in(jp_serverapp.identity_provider.token)
    in_page = {"Cookie": person.cookie, "X-XSRFToken": person.xsrf}
    with_token = {"Authorization": f"token {jp_serverapp.identity_provider.token}"}
    for method, template in LOCKED:
        for shown in ({}, {UNLOCK_HEADER: ""}, {UNLOCK_HEADER: "0" * 64}):
            for credential in (in_page, with_token):
                headers = {**credential, **shown}
                path = template.format(**NOWHERE)
                refused = await ask(method, path, headers=headers, body="{}")
                assert (refused.status, refused.json["code"]) == (403, "passphrase_required"), (
                    method,
                    template,
                )
    headers = {**in_page, **await unlocked(agent)}
    for method, template in LOCKED:
        taken = await ask(method, template.format(**NOWHERE), headers=headers, body="{}")
        assert taken.json.get("code") != "passphrase_required", (method, template)


async def test_agents_are_stopped_at_once_and_go_on_with_the_passphrase(agent: Agent) -> None:
    paused = await agent.ask("PUT", "approvals/pause", {"paused": True})
    assert paused.json["paused"] is not None
    go_on = {"paused": False}
    refused = await agent.ask("PUT", "approvals/pause", go_on)
    assert refused.json["code"] == "passphrase_required"
    assert (await agent.get("approvals")).json["paused"] is not None
    resumed = await agent.ask("PUT", "approvals/pause", go_on, headers=await unlocked(agent))
    assert resumed.json["paused"] is None


async def test_a_token_is_minted_with_and_revoked_without_the_passphrase(agent: Agent) -> None:
    asked = {"label": "analyst", "scopes": ["exec:scratch"]}
    assert (await agent.ask("POST", "tokens", asked)).json["code"] == "passphrase_required"
    assert (await agent.get("tokens")).json["tokens"] == []
    minted = await agent.ask("POST", "tokens", asked, headers=await unlocked(agent))
    id = minted.json["token"]["id"]
    assert (await agent.ask("DELETE", f"tokens/{id}")).json["status"] == "revoked"


async def test_wrong_passphrases_are_recorded_without_their_text_and_slowed_down(
    agent: Agent, history_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "a-wrong-passphrase-of-the-tests"
    for _ in range(MAX_TRIES):
        refused = await agent.ask("POST", "unlock", {"passphrase": wrong})
        assert (refused.status, refused.json["code"]) == (403, "passphrase_wrong")
    for passphrase in (wrong, PASSWORD):
        slowed = await agent.ask("POST", "unlock", {"passphrase": passphrase})
        assert (slowed.status, slowed.json["code"]) == (429, "too_many_requests")
        assert 0 < int(slowed.headers["Retry-After"]) <= 60
    entries = ledger(history_dir, PassphraseRefused)
    assert [entry.by.kind for entry in entries] == ["person"] * MAX_TRIES
    assert ledger(history_dir, DecisionsUnlocked) == []
    for secret in (wrong, PASSWORD):
        assert secret not in caplog.text
        assert not [
            path for path, data in kept_bytes(history_dir).items() if secret.encode() in data
        ]


async def test_a_right_passphrase_is_recorded_and_is_no_wrong_try(
    agent: Agent, history_dir: Path
) -> None:
    for _ in range(MAX_TRIES + 1):
        await unlocked(agent)
    assert len(ledger(history_dir, DecisionsUnlocked)) == MAX_TRIES + 1


async def test_an_agent_token_cannot_unlock(agent: Agent, ask: Send) -> None:
    asked = {"label": "analyst", "scopes": ["exec:scratch"]}
    minted = await agent.ask("POST", "tokens", asked, headers=await unlocked(agent))
    MINTED.append(minted.json["secret"].rpartition("_")[2])
    bearer = {"Authorization": f"Bearer {minted.json['secret']}"}
    body = json.dumps({"passphrase": PASSWORD})
    refused = await ask("POST", "unlock", headers=bearer, body=body)
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    shown = {**bearer, **await unlocked(agent)}
    refused = await ask("PUT", "approvals/policy", headers=shown, body='{"scratch": "none"}')
    assert (refused.status, refused.json["code"]) == (403, "forbidden")


@pytest.mark.parametrize("agent_exec_config", [{}])
async def test_a_server_without_a_passphrase_asks_nobody(agent: Agent) -> None:
    assert (await agent.ask("PUT", "approvals/policy", {"scratch": "none"})).status == 200
    assert (await agent.ask("POST", "unlock", {"passphrase": "any"})).status == 404


@pytest.mark.parametrize("text", [PASSWORD, "sha1:0e112c3ddfce:a68df677475c2b47b6e8", "argon2:"])
def test_what_is_no_slow_hash_stops_the_start(text: str) -> None:
    with pytest.raises(TraitError, match="The setting's help says how to make one"):
        AgentExecApp(decision_passphrase_hash=text)
