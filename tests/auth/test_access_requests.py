"""What an agent is refused is listed for people, who give it with one request, or dismiss it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_agent_exec.auth.access_requests import (
    MAX_REQUESTS,
    REQUEST_SECONDS,
    AccessRequests,
)

from jupyter_agent_exec.auth.token_store import TokenStore
from jupyter_agent_exec.auth.tokens import Tokens
from jupyter_agent_exec.journal.ledger import TokenEntries
from jupyter_agent_exec.journal.verify import Outcome, verify_history
from jupyter_agent_exec.models import TokenRef
from jupyter_agent_exec.records import TokenExtended
from jupyter_agent_exec.types import TokenId
from tests.asking import Agent, Answered, Send
from tests.auth.minting import TokenAgent, ledger, mint
from tests.sessions.living_notebook import Desk, notebook_target
from tests.sessions.test_scratch import until

NOTEBOOK = "reports/a.ipynb"
SCHEMA = "https://schema.jupyter.org/jupyter_agent_exec/activity/v1"


@pytest.fixture(autouse=True)
def notebook(jp_root_dir: Path) -> None:
    (jp_root_dir / "reports").mkdir()
    nbformat.write(nbformat.v4.new_notebook(), jp_root_dir / NOTEBOOK)


def target(path: str = NOTEBOOK, **more: Any) -> dict[str, Any]:
    return {"agent": {"name": "a"}, "target": {"kind": "notebook", "path": path, **more}}


async def waiting(person: Agent) -> list[dict[str, Any]]:
    return (await person.get("approvals")).json["access_requests"]


async def give(person: Agent, request: dict[str, Any]) -> Answered:
    scopes = {"scopes": [request["scope"]]}
    return await person.ask("POST", f"tokens/{request['token']['id']}/scopes", scopes)


async def test_what_a_token_lacks_is_listed_and_given_at_once(
    agent: Agent, ask: Send, history_dir: Path
) -> None:
    id, secret = await mint(agent, "exec:scratch", label="Analyst")
    mine = TokenAgent(ask, secret)
    refused = await mine.ask("POST", "sessions", target())
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    assert refused.json["detail"] == {"scope": f"exec:notebook:{NOTEBOOK}"}
    assert "Ask the person to allow it in JupyterLab" in refused.json["message"]
    [request] = await waiting(agent)
    assert request == {
        **request,
        "token": {"id": id, "label": "Analyst"},
        "scope": f"exec:notebook:{NOTEBOOK}",
        "text": f"Run code: {NOTEBOOK}",
    }
    given = await give(agent, request)
    assert (given.status, given.json["id"]) == (200, id)
    assert given.json["scopes"] == ["exec:scratch", f"exec:notebook:{NOTEBOOK}"]
    assert await waiting(agent) == []
    session = await mine.open(target=target()["target"])
    assert session["target"]["path"] == NOTEBOOK
    other = await mine.ask("POST", "sessions", target("reports/b.ipynb"))
    assert (other.status, other.json["code"]) == (404, "notebook_not_found")
    [entry] = ledger(history_dir, TokenExtended)
    assert (entry.token_id, entry.scopes) == (id, (f"exec:notebook:{NOTEBOOK}",))
    assert (entry.by.kind, entry.by.token_id) == ("person", None)
    log = logging.getLogger("test")
    read_again = TokenStore(history_dir, TokenEntries(history_dir).read, log).read()
    assert list(read_again[TokenId(id)].scopes) == given.json["scopes"]
    assert verify_history(history_dir).outcome is Outcome.WHOLE


ASKS: dict[str, tuple[str, tuple[str, str, Any], str | None]] = {
    "a scratch kernel": ("read:notebook", ("POST", "sessions", {"agent": {"name": "a"}}),
                         "exec:scratch"),
    "to look": ("history:read", ("POST", "sessions", target()), f"look:notebook:{NOTEBOOK}"),
    "another notebook": ("exec:notebook:b/*", ("POST", "sessions", target()),
                         f"exec:notebook:{NOTEBOOK}"),
    "cells": ("exec:notebook:b/*", ("GET", "notebooks/reports%2Fa.ipynb/cells", None),
              f"read:notebook:{NOTEBOOK}"),
    "edits": ("exec:notebook", ("PATCH", "notebooks/reports%2Fa.ipynb/cells", {}),
              f"edit:notebook:{NOTEBOOK}"),
    "a new notebook": ("exec:notebook", ("POST", "sessions", target("new.ipynb", create=True)),
                       "edit:notebook:new.ipynb"),
    "a pattern": ("exec:scratch", ("POST", "sessions", target("reports/*.ipynb")), None),
    "every notebook": ("exec:scratch", ("POST", "sessions", target("**")), None),
    "a detour": ("exec:scratch", ("POST", "sessions", target("b/../c.ipynb")), None),
    "a page of text": ("exec:scratch", ("POST", "sessions", target("a" * 1001)), None),
    "a kernel": ("exec:scratch",
                 ("POST", "sessions", {"agent": {"name": "a"},
                                       "target": {"kind": "kernel", "kernel_id": "k"}}), None),
    "what is for people": ("exec:scratch", ("GET", "tokens", None), None),
    "others' history": ("exec:scratch",
                        ("GET", "sessions/s_01JD0000000000000000000000", None), None),
}  # fmt: skip


@pytest.mark.parametrize("what", ASKS)
async def test_a_request_is_for_one_notebook_or_for_none(
    agent: Agent, ask: Send, what: str
) -> None:
    has, (method, path, said), scope = ASKS[what]
    mine = TokenAgent(ask, (await mint(agent, has))[1])
    assert (await mine.ask(method, path, said)).status in (403, 404)
    assert [each["scope"] for each in await waiting(agent)] == ([] if scope is None else [scope])


async def test_files_are_asked_for_and_given(agent: Agent, ask: Send) -> None:
    mine = TokenAgent(ask, (await mint(agent, "exec:scratch"))[1])
    session = await mine.open()
    assert (await mine.get(f"sessions/{session['id']}/files")).status == 403
    [request] = await waiting(agent)
    assert request["text"] == "Read and write files in the folders where it works"
    assert (await give(agent, request)).status == 200
    assert (await mine.get(f"sessions/{session['id']}/files")).status == 200


async def test_only_people_see_give_and_dismiss(agent: Agent, ask: Send) -> None:
    mine = TokenAgent(ask, (await mint(agent, "exec:scratch", "history:read:all"))[1])
    await mine.ask("POST", "sessions", target())
    [request] = await waiting(agent)
    assert (await mine.get("approvals")).json["access_requests"] == []
    for headers, status in (({}, 401), (mine._headers, 403)):
        path = f"tokens/{request['token']['id']}/scopes"
        body = f'{{"scopes": ["{request["scope"]}"]}}'
        assert (await ask("POST", path, headers=headers, body=body)).status == status
        dismissed = await ask("DELETE", f"access-requests/{request['id']}", headers=headers)
        assert dismissed.status == status
    assert await waiting(agent) == [request]


async def test_who_has_no_valid_token_asks_for_nothing(agent: Agent, ask: Send) -> None:
    id, secret = await mint(agent, "exec:scratch")
    body = '{"agent": {"name": "a"}, "target": {"kind": "notebook", "path": "reports/a.ipynb"}}'
    for token in (None, secret[:-3] + "000", "jaex_nothing"):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        assert (await ask("POST", "sessions", headers=headers, body=body)).status == 401
    assert await waiting(agent) == []
    await TokenAgent(ask, secret).ask("POST", "sessions", target())
    assert len(await waiting(agent)) == 1
    await agent.ask("DELETE", f"tokens/{id}")
    assert await waiting(agent) == []
    ended = await agent.ask("POST", f"tokens/{id}/scopes", {"scopes": ["files"]})
    assert (ended.status, ended.json["code"]) == (404, "not_found")


async def test_what_cannot_be_given_is_told_by_field(agent: Agent, history_dir: Path) -> None:
    id, _ = await mint(agent, "exec:scratch")
    for wrong, field in (({}, "scopes"), ({"scopes": []}, "scopes"), ({"scopes": ["x"]},) * 2):
        refused = await agent.ask("POST", f"tokens/{id}/scopes", wrong)
        assert (refused.status, refused.json["code"]) == (400, "invalid_request")
        assert refused.json["detail"]["field"] in (field, "scopes[0]")
    same = await agent.ask("POST", f"tokens/{id}/scopes", {"scopes": ["exec:scratch"]})
    assert same.json["scopes"] == ["exec:scratch"]
    assert ledger(history_dir, TokenExtended) == []


async def test_a_session_gets_what_its_token_gets(agent: Agent, ask: Send, desk: Desk) -> None:
    await desk.opens()
    mine = TokenAgent(ask, (await mint(agent, "exec:notebook:sales.ipynb", approval="none"))[1])
    session = await mine.open(target=notebook_target())
    await desk.ask("PATCH", "contents/sales.ipynb", {"path": "moved.ipynb"})
    assert (await mine.execute(session, "1")).status == 404
    [request] = await waiting(agent)
    assert request["scope"] == "exec:notebook:moved.ipynb"
    await give(agent, request)
    assert (await mine.run(session, "1", placement="none"))["status"] == "ok"


# -- no way to insist ------------------------------------------------------------------------------


class Listed:
    """The requests of a token, with a clock that a test turns."""

    def __init__(self, tokens: Tokens, id: str) -> None:
        self.now = 0.0
        self.changes = 0
        self.all = AccessRequests(tokens, changed=self._changed, clock=lambda: self.now)
        self._token = TokenRef(id=TokenId(id), label="of the tests")

    def _changed(self) -> None:
        self.changes += 1

    def refuse(self, *paths: str) -> None:
        for path in paths:
            self.all.note(self._token, f"exec:notebook:{path}")

    @property
    def paths(self) -> list[str]:
        return [request.scope.removeprefix("exec:notebook:") for request in self.all.waiting()]


@pytest.fixture
def tokens(jp_serverapp: Any) -> Tokens:
    apps = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    return next(iter(apps)).services.tokens


async def begin(agent: Agent, tokens: Tokens) -> Listed:
    return Listed(tokens, (await mint(agent, "exec:scratch"))[0])


async def test_the_same_refusal_is_one_request(agent: Agent, tokens: Tokens) -> None:
    listed = await begin(agent, tokens)
    listed.refuse(*["a.ipynb"] * 30)
    assert (listed.paths, listed.changes) == (["a.ipynb"], 1)


async def test_what_was_dismissed_does_not_come_back(agent: Agent, tokens: Tokens) -> None:
    listed = await begin(agent, tokens)
    listed.refuse("a.ipynb", "b.ipynb")
    listed.all.dismiss(listed.all.waiting()[0].id)
    assert (listed.paths, listed.changes) == (["b.ipynb"], 3)
    listed.now = 2 * REQUEST_SECONDS
    listed.refuse("a.ipynb")
    assert (listed.paths, listed.changes) == ([], 3)


async def test_a_token_asks_for_so_much_and_no_more(agent: Agent, tokens: Tokens) -> None:
    listed = await begin(agent, tokens)
    listed.refuse(*(f"{number}.ipynb" for number in range(3 * MAX_REQUESTS)))
    assert len(listed.paths) == listed.changes == MAX_REQUESTS
    for request in listed.all.waiting():
        listed.all.dismiss(request.id)
    listed.refuse("more.ipynb")
    assert (listed.paths, listed.changes) == ([], 2 * MAX_REQUESTS)


async def test_a_request_ends_when_its_agent_has_not_asked_for_long(
    agent: Agent, tokens: Tokens
) -> None:
    listed = await begin(agent, tokens)
    listed.refuse("a.ipynb", "b.ipynb")
    listed.now = REQUEST_SECONDS - 1
    listed.refuse("b.ipynb")
    listed.now += 2
    assert listed.paths == ["b.ipynb"]


async def test_what_a_wider_scope_covers_does_not_wait(agent: Agent, tokens: Tokens) -> None:
    listed = await begin(agent, tokens)
    listed.refuse("a.ipynb", "b/c.ipynb")
    [request, _] = listed.all.waiting()
    wider = {"scopes": ["exec:notebook:*"]}
    assert (await agent.ask("POST", f"tokens/{request.token.id}/scopes", wider)).status == 200
    assert listed.paths == ["b/c.ipynb"]


async def test_people_are_told_once_and_by_no_more_than_an_event(
    agent: Agent, ask: Send, jp_serverapp: Any
) -> None:
    told: list[dict[str, Any]] = []

    async def listen(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data["action"] != "tokens":
            told.append(data)

    mine = TokenAgent(ask, (await mint(agent, "exec:scratch"))[1])
    jp_serverapp.event_logger.add_listener(schema_id=SCHEMA, listener=listen)

    async def heard(*actions: str) -> None:
        async def is_heard() -> bool:
            return [each["action"] for each in told] == [*actions]

        await until(is_heard)

    await mine.ask("POST", "sessions", target())
    await heard("approvals")
    [request] = await waiting(agent)
    dismissed = await agent.ask("DELETE", f"access-requests/{request['id']}")
    assert dismissed.status == 204
    await heard("approvals", "approvals")
    await mine.ask("POST", "sessions", target())
    assert await waiting(agent) == []
    again = await agent.ask("DELETE", f"access-requests/{request['id']}")
    assert (again.status, again.json["code"]) == (404, "not_found")
    await mine.ask("POST", "sessions", target("reports/b.ipynb"))
    await heard("approvals", "approvals", "approvals")
    assert all(set(each) == {"serial", "action"} for each in told)
