"""What Jupyter's Authorizer is asked, and that its answer counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from access_asking import VERBS, Verb
from asking import Agent, Send
from jupyter_server.auth import Authorizer
from on_disk import record_bytes, recorded_sessions
from traitlets import List, Set


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


def permission(verb: Verb) -> tuple[str, str]:
    """Say what a verb should ask for: notebooks are contents, all else is about kernels."""
    on_contents = verb.path.startswith("notebooks") or verb.path.endswith(("/accept", "/discard"))
    if on_contents:
        return ("read" if verb.method == "GET" else "write", "contents")
    return ("read" if verb.method == "GET" else "execute", "kernels")


async def test_each_verb_asks_once_to_read_or_to_do_something(
    ask: Send, authorizer: Selective, with_token: dict[str, str]
) -> None:
    authorizer.allowed = {"read", "execute", "write"}
    for verb in VERBS:
        authorizer.asked.clear()
        answered = await ask(verb.method, verb.path, headers=with_token, body=verb.body)
        assert answered.status == verb.status
        assert authorizer.asked == [permission(verb)], verb


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
    before = record_bytes(history_dir)
    authorizer.allowed = {"read"}
    for path in (f"sessions/{session['id']}", f"executions/{done['id']}", "search", "status"):
        assert (await agent.get(path)).status == 200
    for path, body in [
        ("sessions", {"agent": {"name": "another"}}),
        (f"sessions/{session['id']}/executions", {"source": "x = 2"}),
        (f"sessions/{session['id']}/interrupt", {}),
        (f"sessions/{session['id']}/restart", {}),
        (f"sessions/{session['id']}/close", {}),
        (f"executions/{done['id']}/cancel", {}),
    ]:
        refused = await agent.ask("POST", path, body)
        assert (refused.status, refused.json["code"]) == (403, "forbidden"), path
        assert refused.json["detail"] == {"action": "execute", "resource": "kernels"}
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
