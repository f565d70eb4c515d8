"""What clients send, though no specification says so, as raw requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from jupyter_agent_exec.mcp.endpoint import Chat
from jupyter_agent_exec.mcp.sdk_server import TOOLS
from jupyter_agent_exec.mcp.tool import input_schema
from jupyter_agent_exec.models import NotebookTarget, ScratchTarget
from tests.mcp.mcp_clients import endpoint
from tests.mcp.raw_mcp import EARLIER, LATEST, headers_of, request
from tests.real_server import TOKEN, RealServer

INITIALIZE = {
    "protocolVersion": EARLIER,
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}
SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(0.7)"
"""Code that runs longer than the endpoint waits before it sends progress."""

ERAS = pytest.mark.parametrize("modern", [False, True], ids=[EARLIER, LATEST])


class Raw:
    """A client that sends what it is told to."""

    def __init__(self, server: RealServer) -> None:
        self.url = endpoint(server)
        self.http = httpx2.Client(trust_env=False, timeout=60)
        del self.http.headers["accept"]
        self.session: str | None = None

    def post(self, message: Any, *, path: str = "", body: str | None = None, **headers: Any) -> Any:
        """Send a message; a header that is None is left out."""
        given = headers_of(message, TOKEN, self.session) | headers
        given = {name: value for name, value in given.items() if value}
        content = json.dumps(message) if body is None else body
        return self.http.post(self.url + path, content=content, headers=given)

    def begin(self, **headers: Any) -> Raw:
        answered = self.post(request("initialize", INITIALIZE, modern=False), **headers)
        assert answered.status_code == 200, answered.text
        self.session = answered.headers["Mcp-Session-Id"]
        return self

    def call(self, name: str, /, *, modern: bool = False, **arguments: Any) -> Any:
        message = request("tools/call", {"name": name, "arguments": arguments}, modern=modern)
        answered = self.post(message)
        assert answered.status_code == 200, answered.text
        return answered.json()["result"]

    def done(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool; return its text, and what is structured."""
        result = self.call(name, **arguments)
        assert not result.get("isError"), result
        return result["content"][0]["text"], result.get("structuredContent")

    def refused(self, name: str, /, **arguments: Any) -> Any:
        result = self.call(name, **arguments)
        assert result["isError"], result
        return result["_meta"]["jupyter-agent-exec/error"]


@pytest.fixture
def raw(server: RealServer) -> Iterator[Raw]:
    raw = Raw(server)
    with raw.http:
        yield raw


@pytest.fixture(scope="module")
def session(server: RealServer) -> str:
    raw = Raw(server)
    with raw.http:
        return str(raw.begin().done("open_session", agent="raw")[1]["session_id"])


# -- headers -----------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize(
    ("accept", "source", "form"),
    [
        ("application/json", "1", "application/json"),
        ("application/json", SLOW, "application/json"),
        ("text/event-stream", "1", "text/event-stream"),
        ("*/*", "1", "application/json"),
        (None, "1", "application/json"),
    ],
)
def test_an_answer_has_a_form_that_the_client_takes(
    raw: Raw, session: str, modern: bool, accept: str | None, source: str, form: str
) -> None:
    if not modern:
        raw.begin(Accept=accept)
    params = {"name": "execute", "arguments": {"session_id": session, "source": source}}
    params["_meta"] = {"progressToken": 1}
    message = request("tools/call", params, modern=modern)
    answered = raw.post(message, Accept=accept)
    assert answered.status_code == 200, answered.text
    assert answered.headers["Content-Type"].partition(";")[0] == form
    lines = answered.text.splitlines()
    data = [line[5:] for line in lines if line.startswith("data:")] or lines
    told = json.loads(data[-1])
    assert told["id"] == message["id"]
    assert told["result"]["structuredContent"]["status"] == "ok"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Accept": "text/html"}, None, 406),
        ({"Content-Type": "text/plain"}, None, 400),
        ({}, "{", 400),
        ({}, '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', 400),
    ],
)
def test_a_refusal_makes_no_session(
    raw: Raw, headers: dict[str, str], body: str | None, status: int
) -> None:
    message = request("initialize", INITIALIZE, modern=False)
    refused = raw.post(message, body=body, **headers)
    assert refused.status_code == status
    raw.session = refused.headers.get("Mcp-Session-Id", "none")
    assert raw.post(request("tools/list", modern=False)).status_code == 404


def test_an_initialize_that_is_wrong_makes_no_session(raw: Raw) -> None:
    refused = raw.post(request("initialize", {"capabilities": {}}, modern=False))
    assert refused.json()["error"]["code"] == -32602
    raw.session = refused.headers.get("Mcp-Session-Id", "none")
    assert raw.post(request("tools/list", modern=False)).status_code == 404


def test_a_stale_session_starts_anew_at_initialize(raw: Raw) -> None:
    raw.session = "0" * 32
    assert raw.post(request("tools/list", modern=False)).status_code == 404
    raw.begin()
    assert raw.session != "0" * 32
    assert raw.post(request("tools/list", modern=False)).status_code == 200


@pytest.mark.parametrize("path", ["", "/"])
def test_a_slash_at_the_end_changes_nothing(raw: Raw, path: str) -> None:
    message = request("initialize", INITIALIZE, modern=False)
    assert raw.post(message, path=path).json()["result"]["serverInfo"]
    raw.http.cookies.clear()
    for method in ("GET", "POST", "DELETE", "PUT"):
        answered = raw.http.request(method, raw.url + path)
        assert answered.status_code == 401
        assert "/.well-known/oauth-protected-resource" in answered.headers["WWW-Authenticate"]
    root = httpx2.URL(raw.url)
    metadata = f"/.well-known/oauth-protected-resource{root.path}{path}"
    assert raw.http.get(root.join(metadata)).json()["resource"] == raw.url


def test_a_credential_that_is_missing_is_asked_for_on_every_path(raw: Raw) -> None:
    for path in ("/sse", "/v1/mcp", "/../sessions", "/../nothing"):
        answered = raw.http.post(raw.url + path)
        assert (answered.status_code, "WWW-Authenticate" in answered.headers) == (401, True)


# -- arguments ---------------------------------------------------------------------------------


def test_keys_that_a_client_adds_for_itself_are_ignored(raw: Raw, session: str) -> None:
    raw.begin()
    own = {"toolCallId": "call_1", "sessionId": "chat", "action": "sendMessage", "chatInput": "hi"}
    text, _ = raw.done("execute", session_id=session, source="6 * 7", **own)
    assert text.startswith("42\n")
    raw.done("list_sessions", **own, tool="list_sessions")
    refused = raw.refused("execute", session_id=session, source="1", trail=True)
    assert refused["detail"]["field"] == "trail"


def typeless(schema: Any, at: str) -> Iterator[str]:
    """Yield where a schema says nothing of the type."""
    if not isinstance(schema.get("type"), str):
        yield at
    if "items" in schema:
        yield from typeless(schema["items"], f"{at}[]")
    for name, member in schema.get("properties", {}).items():
        yield from typeless(member, f"{at}.{name}")


def test_every_parameter_and_item_has_one_type() -> None:
    schemas = {tool.name: input_schema(tool.input) for tool in TOOLS}
    assert [at for name, schema in schemas.items() for at in typeless(schema, name)] == []
    assert all(
        "items" in parameter
        for schema in schemas.values()
        for parameter in schema["properties"].values()
        if parameter["type"] == "array"
    )


EMPTY: list[Any] = [None, "", [], {}]


@pytest.mark.parametrize("empty", EMPTY, ids=map(repr, EMPTY))
def test_null_and_empty_are_as_absent(raw: Raw, session: str, empty: Any) -> None:
    raw.begin()
    others = (
        *("target", "steps", "purpose", "values", "placement", "trial", "wait", "timeout"),
        *("idempotency_key", "revises"),
    )
    text, _ = raw.done("execute", session_id=session, source="2", **dict.fromkeys(others, empty))
    assert text.startswith("2\n")
    steps = [{"source": "3", **dict.fromkeys(("values", "placement", "timeout"), empty)}]
    text, _ = raw.done("execute", session_id=session, source=None, steps=steps)
    assert text.startswith("3\n")
    listed = dict.fromkeys(("status", "after"), empty)
    assert raw.done("list_sessions", **listed) == raw.done("list_sessions")
    target = {"kind": "scratch", **dict.fromkeys(("kernel_name", "cwd", "env"), empty)}
    fields = ("agent", "model", "title", "client_id", "allow_stdin", "timeout", "restore")
    _, opened = raw.done("open_session", target=target, **dict.fromkeys(fields, empty))
    raw.done("stop", session_id=opened["session_id"], execution_id=empty, restart=empty)


def test_an_empty_source_does_not_blank_a_cell(raw: Raw, server: RealServer) -> None:
    raw.begin()
    nbformat.write(
        new_notebook(cells=[new_code_cell("20 + 1", id="kept")]), server.root_dir / "habits.ipynb"
    )
    target = {"kind": "notebook", "path": "habits.ipynb"}
    _, opened = raw.done("open_session", target=target)
    asked = {"session_id": opened["session_id"], "placement": {"cell": "kept"}}
    for given in ({"source": ""}, {"steps": [{"source": "", "placement": {"cell": "kept"}}]}):
        told = {"session_id": asked["session_id"]} if "steps" in given else asked
        refused = raw.refused("execute", **told, **given)
        assert "leave it out" in refused["message"]
        assert refused["detail"]["field"].endswith("source")
    assert nbformat.read(server.root_dir / "habits.ipynb", 4).cells[0].source == "20 + 1"
    text, _ = raw.done("execute", **asked, source=None)
    assert text.startswith("21\n")
    written = json.dumps({"cell": "kept"})
    text, _ = raw.done("execute", session_id=asked["session_id"], placement=written)
    assert text.startswith("21\n")
    raw.done("stop", session_id=asked["session_id"])


@ERAS
def test_a_lone_surrogate_is_named(raw: Raw, session: str, modern: bool) -> None:
    if not modern:
        raw.begin()
    arguments = {"session_id": session, "source": "'\ud800'", "steps": None}
    message = request("tools/call", {"name": "execute", "arguments": arguments}, modern=modern)
    answered = raw.post(message)
    assert answered.status_code == 200
    assert answered.json()["id"] == message["id"]
    [block] = answered.json()["result"]["content"]
    assert block["text"].startswith("invalid_request: source: contains a lone surrogate")
    pair = raw.call("execute", session_id=session, source="'\U0001f40d'", modern=modern)
    assert pair["content"][0]["text"].startswith("'\U0001f40d'")


# -- pages -------------------------------------------------------------------------------------


def test_the_tutorials_client_waits_for_slow_code() -> None:
    page = Path(__file__).parents[2] / "docs" / "tutorials" / "interfaces.md"
    assert "timeout=" in page.read_text().partition("\n## MCP\n")[2]


# -- the chats of Jupyter AI -------------------------------------------------------------------


def test_a_chat_is_named_in_the_record_and_has_one_session(raw: Raw) -> None:
    headers = {
        "X-Jupyter-Chat-Id": "c1",
        "X-JupyterAI-Persona-Id": "jupyter-ai-personas::jupyter_ai_acp_client::ClaudeAcpPersona",
    }
    for key in ("a", "b"):
        arguments = {"target": {"kind": "scratch"}, "source": "1", "idempotency_key": key}
        call = {"name": "execute", "arguments": arguments}
        result = raw.post(request("tools/call", call, modern=True), **headers).json()["result"]
        assert not result.get("isError"), result
    session_id = result["structuredContent"]["session_id"]
    url = raw.url.removesuffix("mcp") + f"sessions/{session_id}"
    told = raw.http.get(url, headers={"Authorization": f"token {TOKEN}"}).json()
    assert (told["agent"]["name"], told["executions"]) == ("ClaudeAcpPersona", 2)
    assert told["client_id"].startswith("chat c1 ")
    raw.call("stop", modern=True, session_id=session_id)


def test_another_chat_persona_or_target_is_another_client() -> None:
    a, b = NotebookTarget(path="a.ipynb"), NotebookTarget(path="b.ipynb")
    first = Chat(id="c1", persona="Claude")
    assert first.client_id(a) == first.client_id(NotebookTarget(path="/a.ipynb", create=True))
    others = [first.client_id(b), first.client_id(ScratchTarget())]
    others += [Chat(id="c2", persona="Claude").client_id(a)]
    others += [Chat(id="c1", persona="Codex").client_id(a)]
    assert len({first.client_id(a), *others}) == 5
    assert len(Chat(id="c" * 1000, persona="Claude").client_id(a)) <= 200
