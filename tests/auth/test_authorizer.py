"""What Jupyter's Authorizer is asked, and that its answer counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import nbformat
import pytest
from jupyter_server.auth import Authorizer
from traitlets import List, Set

from tests.asking import Agent, Send
from tests.auth.access_asking import NOWHERE, VERBS, Verb, hidden_fields
from tests.on_disk import record_bytes, recorded_sessions


class Selective(Authorizer):
    """Allows some actions, and remembers what it was asked."""

    allowed = Set({"read", "execute"})
    asked = List()

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        self.asked.append((action, resource))
        return action in self.allowed


class Broken(Authorizer):
    """Fails, with words that are nobody's business."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        raise RuntimeError("the password of the directory is 100%s secret")


@pytest.fixture
def authorizer_class() -> type[Authorizer]:
    return Selective


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], authorizer_class: type[Authorizer]
) -> dict[str, Any]:
    jp_server_config["ServerApp"]["authorizer_class"] = authorizer_class
    return jp_server_config


@pytest.fixture
def authorizer(jp_web_app: Any) -> Selective:
    return jp_web_app.settings["authorizer"]


@pytest.fixture
def with_token(jp_auth_header: dict[str, str]) -> dict[str, str]:
    return dict(jp_auth_header)


READ, EXECUTE = ("read", "kernels"), ("execute", "kernels")
READ_CONTENTS, WRITE_CONTENTS = ("read", "contents"), ("write", "contents")
DECIDE_THERE = [WRITE_CONTENTS, EXECUTE]
"""To decide what of agents stays in a notebook."""

ASKED_FOR = {
    "GET status": [READ],
    "GET sessions": [READ],
    "POST sessions": [EXECUTE],
    "GET sessions/{session_id}": [READ],
    "POST sessions/{session_id}/close": [EXECUTE],
    "POST sessions/{session_id}/interrupt": [EXECUTE],
    "POST sessions/{session_id}/restart": [EXECUTE],
    "GET sessions/{session_id}/executions": [READ],
    "GET sessions/{session_id}/events": [READ],
    "POST sessions/{session_id}/executions": [EXECUTE],
    "GET sessions/{session_id}/notebook": [READ],
    "POST sessions/{session_id}/notebook/share": [EXECUTE],
    "GET sessions/{session_id}/requirements": [READ],
    "GET sessions/{session_id}/journal": [READ],
    "POST sessions/{session_id}/accept": DECIDE_THERE,
    "GET sessions/{session_id}/variables": [EXECUTE],
    "GET sessions/{session_id}/packages": [EXECUTE],
    "GET sessions/{session_id}/files": [WRITE_CONTENTS],
    "GET sessions/{session_id}/files/{path}": [WRITE_CONTENTS],
    "PUT sessions/{session_id}/files/{path}": [WRITE_CONTENTS],
    "DELETE sessions/{session_id}/files/{path}": [WRITE_CONTENTS],
    "POST sessions/{session_id}/steps": [EXECUTE],
    "POST executions/{execution_id}/input": [EXECUTE],
    "GET executions/{execution_id}": [READ],
    "GET executions/{execution_id}/preview": [EXECUTE],
    "GET executions/{execution_id}/stream": [READ],
    "GET executions/{execution_id}/text": [READ],
    "POST executions/{execution_id}/cancel": [EXECUTE],
    "POST executions/{execution_id}/accept": DECIDE_THERE,
    "PUT executions/{execution_id}/review": [EXECUTE],
    "GET kernels/{kernel_id}/checkpoints": [EXECUTE],
    "GET kernels/{kernel_id}/runs": [EXECUTE],
    "PUT kernels/{kernel_id}/checkpoints": [EXECUTE],
    "POST executions/{execution_id}/undo": [EXECUTE],
    "GET approvals": [READ],
    "PUT approvals/policy": [EXECUTE],
    "POST unlock": [EXECUTE],
    "PUT approvals/pause": [EXECUTE],
    "POST executions/{execution_id}/approve": [EXECUTE],
    "POST executions/{execution_id}/reject": [EXECUTE],
    "DELETE sessions/{session_id}/grant": [EXECUTE],
    "GET blobs/{digest}": [READ],
    "GET proposals": [READ],
    "POST sessions/{session_id}/proposals/keep": DECIDE_THERE,
    "POST sessions/{session_id}/proposals/reject": DECIDE_THERE,
    "POST sessions/{session_id}/proposals/undo": DECIDE_THERE,
    "POST sessions/{session_id}/round/undo": DECIDE_THERE,
    "POST sessions/{session_id}/round/redo": DECIDE_THERE,
    "POST accepted-breaks": [EXECUTE],
    "POST erasures": [EXECUTE],
    "POST retention": [EXECUTE],
    "POST sessions/{session_id}/restore": [EXECUTE],
    "GET search": [READ],
    "GET sessions/{session_id}/guide": [READ],
    "GET images": [READ],
    "GET notebooks": [READ_CONTENTS],
    "GET notebooks/{path}/cells": [READ_CONTENTS],
    "PATCH notebooks/{path}/cells": [WRITE_CONTENTS],
    "GET tokens": [EXECUTE],
    "POST tokens": [EXECUTE],
    "DELETE tokens/{token_id}": [EXECUTE],
    "POST tokens/{token_id}/scopes": [EXECUTE],
    "POST aca/code/execute": [EXECUTE],
    "POST aca/files/upload": [WRITE_CONTENTS, EXECUTE],
    "GET aca/files": [WRITE_CONTENTS, EXECUTE],
    "GET aca/files/content/{filename}": [WRITE_CONTENTS, EXECUTE],
    "GET openapi.json": [READ],
}
"""Actions and resources for each verb of each route; the channel's are in `test_channel.py`."""


def permissions(verb: Verb) -> list[tuple[str, str]]:
    """Say what a verb should ask for."""
    return ASKED_FOR[f"{verb.method} {verb.template}"]


def test_each_verb_of_each_route_is_in_the_table() -> None:
    assert sorted(ASKED_FOR) == sorted(f"{verb.method} {verb.template}" for verb in VERBS)


async def test_each_verb_asks_once_to_read_or_to_do_something(
    ask: Send, authorizer: Selective, with_token: dict[str, str]
) -> None:
    authorizer.allowed = {"read", "execute", "write"}
    for verb in VERBS:
        authorizer.asked.clear()
        answered = await ask(verb.method, verb.path, headers=with_token, body=verb.body)
        assert answered.status == verb.status
        assert authorizer.asked == permissions(verb), verb


async def test_an_agents_cell_enters_a_notebook_only_if_its_person_may_write_there(
    agent: Agent, authorizer: Selective, jp_root_dir: Path, history_dir: Path
) -> None:
    nbformat.write(nbformat.v4.new_notebook(), jp_root_dir / "n.ipynb")
    asked = {"agent": {"name": "a"}, "target": {"kind": "notebook", "path": "n.ipynb"}}
    refused = await agent.ask("POST", "sessions", asked)
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    assert refused.json["detail"] == {"action": "write", "resource": "contents"}
    assert recorded_sessions(history_dir) == []
    authorizer.allowed = {"read", "execute", "write"}
    session = (await agent.ask("POST", "sessions", asked)).json
    authorizer.allowed = {"read", "execute"}
    route = f"sessions/{session['id']}/executions"
    for placement in ("end", {"after": "c"}):
        body = {"source": "1", "placement": placement}
        refused = await agent.ask("POST", route, body)
        assert (refused.status, refused.json["code"]) == (403, "forbidden")
    assert (await agent.run(session, "1", placement="none"))["status"] == "ok"


async def test_whoever_may_only_read_sees_everything_and_runs_nothing(
    agent: Agent, authorizer: Selective, history_dir: Path
) -> None:
    session = await agent.open()
    done = await agent.run(session, "x = 1")
    await agent.settle(session)
    before = record_bytes(history_dir)
    authorizer.allowed = {"read"}
    for path in (f"sessions/{session['id']}", f"executions/{done['id']}", "search", "status"):
        assert (await agent.get(path)).status == 200
    ids = {
        **NOWHERE,
        "session_id": session["id"],
        "execution_id": done["id"],
        "path": "n.ipynb",
    }
    bodies: dict[str, Any] = {
        "sessions": {"agent": {"name": "another"}},
        "sessions/{session_id}/executions": {"source": "x = 2"},
        "executions/{execution_id}/review": {"verdict": "approved"},
        "kernels/{kernel_id}/checkpoints": {"enabled": False},
        "notebooks/{path}/cells": {"edits": [{"op": "clear_outputs"}]},
    }
    for verb in VERBS:
        if verb.method != "GET":
            path, body = verb.template.format(**ids), bodies.get(verb.template, verb.body)
            refused = await agent.ask(verb.method, path, body)
            assert (refused.status, refused.json["code"]) == (403, "forbidden"), path
            action, resource = permissions(verb)[0]
            assert refused.json["detail"] == {"action": action, "resource": resource}
    assert record_bytes(history_dir) == before
    assert [s["id"] for s in (await agent.get("sessions")).json["sessions"]] == [session["id"]]
    authorizer.allowed = {"read", "execute"}
    assert (await agent.run(session, "x"))["text"].strip() == "1"


async def test_whoever_may_do_nothing_is_not_told_what_there_is(
    ask: Send, authorizer: Selective, with_token: dict[str, str], history_dir: Path
) -> None:
    authorizer.allowed = set()
    for verb in VERBS:
        refused = await ask(verb.method, verb.path, headers=with_token, body=verb.body)
        assert (refused.status, refused.json["code"]) == (403, "forbidden"), verb
    assert recorded_sessions(history_dir) == []


@pytest.mark.parametrize("authorizer_class", [Broken])
async def test_an_authorizer_that_fails_lets_nobody_in_and_tells_only_the_log(
    ask: Send, with_token: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    for verb in VERBS:
        failed = await ask(verb.method, verb.path, headers=with_token, body=verb.body)
        assert failed.status == 500
        assert failed.json == {
            "message": "Unhandled error",
            "reason": None,
            "code": "internal_error",
            "detail": {},
        }
    assert "the password of the directory is 100%s secret" in caplog.text


async def test_the_page_of_tokens_asks_as_the_routes_do(
    agent: Agent, ask: Send, authorizer: Selective, with_token: dict[str, str]
) -> None:
    headers = {**with_token, "Content-Type": "application/x-www-form-urlencoded"}
    fields = "label=a&expires_in=3600&rights=edit&patterns=a.ipynb"
    authorizer.allowed = {"read"}
    for method, body in (("GET", None), ("POST", fields), ("POST", "revoke=t_1")):
        authorizer.asked.clear()
        assert (await ask(method, "access", headers=headers, body=body)).status == 403
        assert authorizer.asked == [EXECUTE]
    authorizer.allowed = {"read", "execute"}
    page = await ask("GET", "access", headers=headers)
    headers["Cookie"] = "; ".join(
        each.partition(";")[0] for each in page.headers.get_list("Set-Cookie")
    )
    fields += f"&{urlencode(hidden_fields(page.body.decode()))}"
    refused = await ask("POST", "access", headers=headers, body=fields)
    assert refused.status == 403
    assert b"may not write contents on this server" in refused.body
    assert (await agent.get("tokens")).json["tokens"] == []


async def test_a_person_gives_a_token_no_more_than_they_have(
    agent: Agent, authorizer: Selective
) -> None:
    authorizer.allowed = {"read", "execute"}
    id = (await agent.ask("POST", "tokens", {"label": "a", "scopes": ["exec:scratch"]})).json[
        "token"
    ]["id"]
    wanted = {"scopes": ["exec:notebook:a.ipynb"]}
    refused = await agent.ask("POST", f"tokens/{id}/scopes", wanted)
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    assert refused.json["detail"] == {"action": "write", "resource": "contents"}
    [token] = (await agent.get("tokens")).json["tokens"]
    assert token["scopes"] == ["exec:scratch"]
    authorizer.allowed = {"read", "execute", "write"}
    given = await agent.ask("POST", f"tokens/{id}/scopes", wanted)
    assert given.json["scopes"] == ["exec:scratch", "exec:notebook:a.ipynb"]
