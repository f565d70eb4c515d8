"""The routes, the models and their description are one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import msgspec
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from jupyter_agent_exec._version import __version__
from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.handler import STATUSES, status_of
from jupyter_agent_exec.auth.openapi import document
from jupyter_agent_exec.auth.operations import operations
from jupyter_agent_exec.auth.scopes import FOR_PEOPLE, PERMISSIONS
from jupyter_agent_exec.errors import AgentExecError
from jupyter_agent_exec.models import Problem
from jupyter_agent_exec.types import UNLOCK_HEADER
from tests.aca.dynamic_asking import form
from tests.asking import NAMESPACE, Agent, Answered, Send
from tests.auth.access_asking import HASHED, NOWHERE, PASSWORD, VERBS
from tests.conformance import check_answer

PICTURE = """
import base64
from IPython.display import Image
Image(data=base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
))
"""


def events_of(answered: Answered) -> list[httpx2.ServerSentEvent]:
    """Return the events of a stream."""
    headers = {"Content-Type": answered.headers["Content-Type"]}
    request = httpx2.Request("GET", "http://127.0.0.1")
    response = httpx2.Response(200, headers=headers, content=answered.body, request=request)
    return list(httpx2.EventSource(response))


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    made = document(AgentExecApp.routes, version=__version__, base_path="/api/agent-exec")
    return msgspec.json.decode(msgspec.json.encode(made))


def every_operation(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, verb, operation)
        for path, verbs in described["paths"].items()
        for verb, operation in verbs.items()
    ]


def test_the_document_is_valid(described: dict[str, Any]) -> None:
    validate(described)


async def test_the_server_answers_with_the_document(
    agent: Agent, described: dict[str, Any], jp_base_url: str
) -> None:
    answered = await agent.get("openapi.json")
    assert answered.headers["Content-Type"] == "application/openapi+json"
    assert answered.json["servers"] == [{"url": f"{jp_base_url}{NAMESPACE}"}]
    assert answered.json == {**described, "servers": answered.json["servers"]}


def test_each_verb_of_each_route_is_described_and_nothing_else(described: dict[str, Any]) -> None:
    told = {(path, verb) for path, verb, _ in every_operation(described)}
    routed = {(path, verb) for path, handler in AgentExecApp.routes for verb in operations(handler)}
    assert told == routed
    assert len(VERBS) == len([verb for _, verb in routed if verb != "head"])


REMOVED = (
    "DELETE access-requests/{request_id}",
    "GET reruns/{session_id}",
    "POST executions/{execution_id}/cell/discard",
    "POST executions/{execution_id}/cell/restore",
    "POST executions/{execution_id}/discard",
    "POST executions/{execution_id}/restore",
    "POST reruns",
    "POST sessions/{session_id}/cells/discard",
    "POST sessions/{session_id}/complete",
    "POST sessions/{session_id}/discard",
    "POST sessions/{session_id}/inspect",
    "PUT holds",
    "PUT sessions/{session_id}/review",
)
"""Verbs that earlier versions had."""


async def test_a_removed_route_is_not_found(agent: Agent, described: dict[str, Any]) -> None:
    for removed in REMOVED:
        verb, path = removed.split()
        assert verb.lower() not in described["paths"].get(f"/{path}", {})
        body = {} if verb in ("POST", "PUT") else None
        there = path.format(**NOWHERE, request_id="r_01JD0000000000000000000000")
        assert (await agent.ask(verb, there, body)).status == 404, removed


def test_each_operation_says_what_it_needs_and_does(described: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in every_operation(described)]
    assert len(set(ids)) == len(ids)
    for path, verb, operation in every_operation(described):
        assert operation["summary"].endswith("."), path
        needed = set(operation["x-scopes"])
        assert needed <= set(PERMISSIONS)
        if needed <= {"history:read", "read:notebook"}:
            assert verb == "get", path
        if verb != "get":
            changes = {"exec", "look", "exec:scratch", "stop", "edit:notebook", "files", "undo"}
            assert needed & {*changes, *FOR_PEOPLE}
        for_people = bool(needed & FOR_PEOPLE)
        assert for_people == (operation["x-agent-tokens"] == "refused")
        assert for_people == (operation["security"] == [{"token": []}])
        named = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
        assert named == re.findall(r"{(\w+)}", path)
        assert all(p["required"] for p in operation["parameters"] if p["in"] == "path")
        assert ("requestBody" in operation) == (verb in ("post", "put", "patch"))


def test_each_refusal_is_listed_with_its_codes(described: dict[str, Any]) -> None:
    classes = [AgentExecError]
    for cls in classes:
        classes += [each for each in cls.__subclasses__() if "hub_service" not in each.__module__]
    listed = {str(status) for status in STATUSES.values()} | {"500"}
    problem = {"$ref": "#/components/schemas/Problem"}
    for path, _, operation in every_operation(described):
        refusals = {s: r for s, r in operation["responses"].items() if int(s) >= 400}
        assert set(refusals) == listed, path
        for refusal in refusals.values():
            assert refusal["content"]["application/json"]["schema"] == problem
        for cls in classes[1:]:
            assert STATUSES.keys() & set(cls.__mro__)
            assert cls.code in refusals[str(status_of(cls))]["description"]


def test_bodies_are_needed_where_a_field_is(described: dict[str, Any]) -> None:
    needed = {
        path: operation["requestBody"]["required"]
        for path, _, operation in every_operation(described)
        if "requestBody" in operation
    }
    assert {path for path, required in needed.items() if required} == {
        "/sessions",
        "/sessions/{session_id}/steps",
        "/executions/{execution_id}/input",
        "/sessions/{session_id}/files/{path}",
        "/accepted-breaks",
        "/notebooks/{path}/cells",
        "/executions/{execution_id}/review",
        "/kernels/{kernel_id}/checkpoints",
        "/approvals/pause",
        "/executions/{execution_id}/approve",
        "/tokens",
        "/tokens/{token_id}/scopes",
        "/unlock",
        "/aca/code/execute",
        "/aca/files/upload",
    }


def test_what_is_sent_is_closed_and_what_is_answered_may_grow(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    assert schemas["OpenSession"]["additionalProperties"] is False
    assert schemas["Limits"]["additionalProperties"] is False
    assert "additionalProperties" not in schemas["Execution"]


class Conformance:
    """Holds answers against what the document says of them."""

    def __init__(self, described: dict[str, Any]) -> None:
        self._described = described
        self.seen: set[tuple[str, str]] = set()

    def hold(self, method: str, path: str, answered: Answered) -> Answered:
        """Check an answer of the route that `path` leads to."""
        template, operation = next(
            (template, verbs[method.lower()])
            for template, verbs in self._described["paths"].items()
            if re.fullmatch(re.sub(r"{\w+}", "[^/]+", template.replace("{path}", ".+")), f"/{path}")
        )
        content_type = answered.headers.get("Content-Type", "")
        check_answer(self._described, operation, answered.status, content_type, answered.body)
        if answered.status < 400:
            self.seen.add((template, method.lower()))
        return answered


async def ask_about_a_notebook(ask: Callable[..., Awaitable[Answered]]) -> None:
    """Ask all that can be asked of a notebook that is there."""
    target = {"kind": "notebook", "path": "a.ipynb", "create": True}
    session = (await ask("POST", "sessions", {"agent": {"name": "a"}, "target": target})).json
    insert = {"op": "insert", "cell_type": "markdown", "source": "# Title"}
    body = {"session_id": session["id"], "edits": [insert]}
    assert (await ask("PATCH", "notebooks/a.ipynb/cells", body)).status == 200
    read = await ask("GET", "notebooks/a.ipynb/cells")
    assert [cell["source"] for cell in read.json["cells"]] == ["# Title"]
    assert (await ask("PATCH", "notebooks/a.ipynb/cells", {**body, "hash": "0" * 64})).status == 409
    at = f"sessions/{session['id']}"
    execution = (await ask("POST", f"{at}/executions", {"source": "1"})).json
    while execution["document"]["status"] != "written":
        execution = (await ask("GET", f"executions/{execution['id']}")).json
    assert (await ask("POST", f"executions/{execution['id']}/accept")).status == 200
    checkpoints = f"kernels/{execution['kernel']['id']}/checkpoints"
    assert (await ask("PUT", checkpoints, {"enabled": True})).status == 200
    undone = (await ask("POST", f"{at}/executions", {"source": "2"})).json
    assert len((await ask("GET", checkpoints)).json["checkpoints"]) == 1
    assert (await ask("POST", f"executions/{undone['id']}/undo")).status == 200
    assert (await ask("GET", f"kernels/{execution['kernel']['id']}/runs")).json["runs"]
    listed = await ask("GET", "proposals", session_id=session["id"])
    assert listed.json == {"proposals": []}
    assert (await ask("POST", f"{at}/accept")).status == 200
    for decision in ("keep", "reject", "undo"):
        assert (await ask("POST", f"{at}/proposals/{decision}")).status == 200
    for what in ("undo", "redo"):
        assert (await ask("POST", f"{at}/round/{what}")).status == 200


async def ask_about_files(ask: Callable[..., Awaitable[Answered]], at: str) -> None:
    """Ask all that can be asked of a session's files."""
    for status in (201, 200):
        assert (await ask("PUT", f"{at}/files/a.txt", "data")).status == status
    for method, status in (("GET", 200), ("HEAD", 200), ("DELETE", 204), ("GET", 404)):
        assert (await ask(method, f"{at}/files/a.txt")).status == status
    await ask("GET", f"{at}/files")


async def ask_for_approval(ask: Callable[..., Awaitable[Answered]]) -> None:
    """Ask all that can be asked of executions that a person has to approve."""
    await ask("PUT", "approvals/policy", {"scratch": "always"})
    at = f"sessions/{(await ask('POST', 'sessions', {'agent': {'name': 'a'}})).json['id']}"
    asking = [
        (await ask("POST", f"{at}/executions", {"source": "1", "wait": 0})).json for _ in range(3)
    ]
    assert len((await ask("GET", "approvals")).json["executions"]) == 3
    await ask("PUT", "approvals/pause", {"paused": True})
    assert (await ask("GET", f"executions/{asking[0]['id']}/preview")).status == 200
    looked_at = {"source_sha256": asking[0]["source_sha256"]}
    for status in (200, 409):
        approved = await ask("POST", f"executions/{asking[0]['id']}/approve", looked_at)
        assert approved.status == status
    rejected = await ask("POST", f"executions/{asking[1]['id']}/reject", {"reason": "No."})
    assert (rejected.status, rejected.json["status"]) == (200, "rejected")
    granted = {"source_sha256": asking[2]["source_sha256"], "grant": "hour"}
    await ask("POST", f"executions/{asking[2]['id']}/approve", granted)
    assert (await ask("GET", at)).json["grant"]["until"] is not None
    assert (await ask("DELETE", f"{at}/grant")).json["grant"] is None
    await ask("PUT", "approvals/pause", {"paused": False})
    await ask("GET", f"executions/{asking[2]['id']}", wait="30")


async def ask_about_tokens(ask: Callable[..., Awaitable[Answered]]) -> None:
    """Ask all that can be asked of agent tokens."""
    minted = await ask("POST", "tokens", {"label": "a", "scopes": ["exec:scratch"]})
    assert minted.status == 201
    assert len((await ask("GET", "tokens")).json["tokens"]) == 1
    at = f"tokens/{minted.json['token']['id']}"
    assert (await ask("POST", f"{at}/scopes", {"scopes": ["exec:notebook"]})).status == 200
    agent = {"Authorization": f"Bearer {minted.json['secret']}"}
    edits = {"session_id": "s_01JD0000000000000000000000", "edits": [{"op": "clear_outputs"}]}
    assert (await ask("PATCH", "notebooks/a.ipynb/cells", edits, headers=agent)).status == 403
    assert (await ask("DELETE", at)).status == 200


async def ask_for_a_dynamic_session(ask: Callable[..., Awaitable[Answered]]) -> None:
    """Ask all that can be asked of a session of Azure's protocol."""
    code = {"properties": {"code": "1"}}
    assert (await ask("POST", "aca/code/execute", code, identifier="d")).status == 200
    content_type, body = form(b"data", "a.txt")
    headers = {"Content-Type": content_type}
    uploaded = await ask("POST", "aca/files/upload", body, headers, identifier="d")
    assert uploaded.status == 200
    assert (await ask("GET", "aca/files", identifier="d")).json == uploaded.json
    for name, status in (("a.txt", 200), ("b.txt", 404)):
        assert (await ask("GET", f"aca/files/content/{name}", identifier="d")).status == status


MODULE = {"kind": "module", "name": "json"}


async def ask_for_input(ask: Callable[..., Awaitable[Answered]]) -> None:
    """Run steps of which one asks for input."""
    asked = {"agent": {"name": "a"}, "allow_stdin": True, "preload": [MODULE]}
    at = f"sessions/{(await ask('POST', 'sessions', asked)).json['id']}"
    steps = {"steps": [{"source": "input()"}, {"source": "1"}], "wait": 30}
    started = await ask("POST", f"{at}/steps", steps)
    assert started.status == 202
    execution = f"executions/{started.json['executions'][0]['id']}"
    assert (await ask("GET", execution)).json["status"] == "awaiting_input"
    for status in (200, 409):
        given = await ask("POST", f"{execution}/input", {"value": "x", "wait": 30})
        assert given.status == status
    assert (await ask("POST", f"{at}/steps", {"steps": [{"source": "1"}]})).status == 201


@pytest.mark.parametrize("agent_exec_config", [{"decision_passphrase_hash": HASHED}])
async def test_answers_are_what_the_document_says(agent: Agent, described: dict[str, Any]) -> None:
    conformance = Conformance(described)
    unlock: dict[str, str] = {}

    async def ask(
        method: str, path: str, body: Any = None, headers: Any = None, **query: str
    ) -> Answered:
        shown = {**unlock, **(headers or {})}
        answered = await agent.ask(method, path, body, query=query, headers=shown)
        return conformance.hold(method, path, answered)

    unlocked = await ask("POST", "unlock", {"passphrase": PASSWORD})
    unlock[UNLOCK_HEADER] = unlocked.json["unlock"]
    session = await ask("POST", "sessions", {"agent": {"name": "a"}, "client_id": "c"})
    again = await ask("POST", "sessions", {"agent": {"name": "a"}, "client_id": "c"})
    assert (session.status, again.status) == (201, 200)
    at = f"sessions/{session.json['id']}"
    for source in ("print('x' * 20_000)", "1/0", PICTURE, "import os; os._exit(1)", "1"):
        assert (await ask("POST", f"{at}/executions", {"source": source})).status == 201
    for path in ("variables", "packages"):
        await ask("GET", f"{at}/{path}")
    loops = await ask("POST", f"{at}/executions", {"source": "while True: pass", "wait": 0})
    assert loops.status == 202
    execution = f"executions/{loops.json['id']}"
    await ask("GET", execution)
    await ask("POST", f"{execution}/cancel")
    listed = (await ask("GET", f"{at}/executions")).json["executions"]
    for one in listed:
        await ask("GET", f"executions/{one['id']}")
    printed, pictured = listed[0], listed[2]
    await ask("GET", f"executions/{printed['id']}/text")
    await ask("GET", f"executions/{printed['id']}/text", match="x")
    await ask("GET", f"executions/{printed['id']}/stream")
    await ask("GET", f"blobs/{pictured['images'][0]['url'].rpartition('/')[2]}")
    review = {"verdict": "flagged", "comment": "why?"}
    await ask("PUT", f"executions/{printed['id']}/review", review)
    await ask("POST", "erasures", {"text": "for n in", "dry_run": True})
    await ask("POST", "retention", {"dry_run": True})
    await ask("POST", "accepted-breaks", {"name": "b_1"})
    await ask("POST", f"{at}/interrupt")
    await ask("POST", f"{at}/restart")
    await ask("POST", f"{at}/restore", {"dry_run": True})
    await ask("POST", f"{at}/notebook/share")
    await ask("GET", f"{at}/executions", outputs="brief")
    for path in (
        "sessions",
        at,
        f"{at}/notebook",
        f"{at}/requirements",
        f"{at}/journal",
        f"{at}/events",
        f"{at}/guide",
    ):
        await ask("GET", path)
    for path in ("search", "images", "status"):
        await ask("GET", path)
    await ask("GET", "openapi.json")
    await ask("GET", "notebooks")
    await ask_about_a_notebook(ask)
    await ask_about_files(ask, at)
    await ask_for_input(ask)
    await ask_for_a_dynamic_session(ask)
    await ask_for_approval(ask)
    await ask_about_tokens(ask)
    await ask("POST", f"{at}/close")
    await ask("GET", at)
    documented = {(path, verb) for path, verb, _ in every_operation(described)}
    assert documented - conformance.seen == {("/accepted-breaks", "post")}  # nothing is broken here


EVENTS = {
    "accepted": "Execution",
    "status": "StatusChange",
    "output": "OutputChange",
    "finished": "Execution",
}


async def test_events_of_a_stream_are_what_the_document_says(
    agent: Agent, described: dict[str, Any]
) -> None:
    session = await agent.open()
    source = "for n in range(3): print(n, flush=True)\nn"
    asked = await agent.run(session, source, wait=0)
    streamed = [await agent.get(f"executions/{asked['id']}/stream") for _ in range(2)]
    for answered in streamed:  # as it ran, and as it had finished
        messages = events_of(answered)
        assert {"accepted", "output", "finished"} <= {message.event for message in messages}
        for message in messages:
            schema = {
                "$ref": f"#/components/schemas/{EVENTS[message.event]}",
                "components": described["components"],
            }
            Draft202012Validator(schema).validate(msgspec.json.decode(message.data))


async def test_refusals_are_what_the_document_says(
    ask: Send, jp_auth_header: dict[str, str], described: dict[str, Any]
) -> None:
    conformance = Conformance(described)
    for verb in VERBS:
        for headers in ({}, jp_auth_header):
            answered = await ask(verb.method, verb.path, headers=headers, body=verb.body)
            conformance.hold(verb.method, verb.path, answered)
            if answered.status >= 400:
                msgspec.convert(answered.json, Problem)
