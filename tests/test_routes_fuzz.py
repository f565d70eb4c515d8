"""Whatever is asked of a route is answered, soon, and refused in the shape of all refusals.

Requests are made from the server's own OpenAPI document, each part right, wrong or missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import nbformat
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jupyter_agent_exec._version import __version__
from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.openapi import document
from tests.conformance import check_answer
from tests.fuzzing import examples, json_values, nested, scalars, texts
from tests.server_process import TOKEN, ServerProcess, server_process

DOCUMENT = json.loads(
    json.dumps(
        document(AgentExecApp.routes, version=__version__, base_path=""),
        default=str,
    )
)
OPERATIONS = [
    (path, verb, operation)
    for path, verbs in DOCUMENT["paths"].items()
    for verb, operation in verbs.items()
    if verb in ("get", "put", "post", "patch", "delete")
    and path not in ("/approvals/pause", "/approvals/policy")  # else all that follows waits
]
SOURCES = ["1", "print('x')", "1 / 0", "'\\ud83d'", "\f", "%%time\n\f", "x" * 6_000, "(" * 500]
WAITS = st.sampled_from([0, 0.01, -1, float("nan"), 1e30])
HEADERS = ["Idempotency-Key", "If-Match", "If-None-Match", "Range", "Last-Event-ID", "Content-Type"]


class Request:
    """One request; its path names what the pool has, or what nobody has."""

    def __init__(
        self, verb: str, path: str, given: dict[str, str], query: str, body: Any, headers: Any
    ) -> None:
        self.verb = verb
        self.path = path
        self.given = given
        self.query = query
        self.body = body
        self.headers = headers

    def __repr__(self) -> str:
        return f"{self.verb} {self.path} {self.given} ?{self.query} {self.headers} {self.body!r}"


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


@st.composite
def values(draw: st.DrawFn, schema: dict[str, Any], name: str = "") -> Any:
    """Return a value of a schema, or now and then any other."""
    if draw(st.integers(0, 15)) == 0:
        return draw(json_values)
    if name in ("wait", "timeout", "queue_timeout"):
        return draw(WAITS)
    if name in ("source", "code", "init_source"):
        return draw(st.sampled_from(SOURCES) | texts)
    schema = resolved(schema)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "const" in schema:
        return schema["const"]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return draw(values(draw(st.sampled_from(schema[choice])), name))
    kind = schema.get("type")
    if kind == "object":
        required = schema.get("required", ())
        members = {
            key: draw(values(member, key))
            for key, member in schema.get("properties", {}).items()
            if draw(st.integers(0, 9)) < (9 if key in required else 3)
        }
        if draw(st.integers(0, 9)) == 0:
            members[draw(texts)] = draw(json_values)
        return members
    if kind == "array":
        return [draw(values(schema.get("items", {}))) for _ in range(draw(st.integers(0, 2)))]
    simple = {
        "integer": st.integers(0, 100) | st.integers(),
        "number": st.floats(0, 100) | st.floats(),
        "boolean": st.booleans(),
        "null": st.none(),
        "string": texts | st.sampled_from(["x", "nb.ipynb", "2026-01-01", "(?a)(?u)x", "(", "[a"]),
    }
    return draw(simple.get(str(kind), json_values))


@st.composite
def bodies(draw: st.DrawFn, operation: dict[str, Any]) -> bytes | None:
    """Return a body as an operation takes it, or another."""
    content = operation.get("requestBody", {}).get("content", {})
    kind = draw(st.sampled_from(["right"] * 8 + ["json", "raw", "deep", "twice", "none"]))
    if not content or kind == "none":
        return draw(st.sampled_from([None, None, None, b"{}", b"x"]))
    if kind == "json":
        return json.dumps(draw(json_values)).encode()
    if kind == "raw" or "application/json" not in content:
        return draw(st.binary(max_size=50))
    schema = resolved(content["application/json"]["schema"])
    if kind == "deep":
        names = list(schema.get("properties", {})) or ["x"]
        name = draw(st.sampled_from(names)).encode()
        depth = draw(st.sampled_from([99, 600, 990, 50_000]))
        return b'{"%b": NaN, "%b": %b%b}' % (name, name, b"[" * depth, b"]" * depth)
    body = draw(values(schema))
    told = json.dumps(body).encode()
    if kind == "twice" and isinstance(body, dict) and body:
        return told[:-1] + b", " + told[1:]
    return told


@st.composite
def requests(draw: st.DrawFn) -> Request:
    path, verb, operation = draw(st.sampled_from(OPERATIONS))
    given, query = {}, {}
    for parameter in operation.get("parameters", []):
        name, where = parameter["name"], parameter["in"]
        if where == "path":
            given[name] = draw(st.sampled_from([""] * 5) | texts)
        elif where == "query" and draw(st.booleans()):
            value = draw(values(parameter.get("schema", {}), name))
            query[name] = draw(st.just(value) | scalars)
    if draw(st.integers(0, 9)) == 0:
        query[draw(texts)] = draw(scalars)
    query.pop("token", None)  # Jupyter's own credential
    headers = {
        draw(st.sampled_from(HEADERS)): draw(
            st.sampled_from(["x", "", "*", "bytes=0-0", "bytes=-1", "bytes=9-1", "0", "-1", '"a"'])
        )
        for _ in range(draw(st.integers(0, 1)))
    }
    return Request(
        verb,
        path,
        given,
        urlencode(query, errors="surrogatepass"),
        draw(bodies(operation)),
        headers,
    )


class Bench:
    """A server, and ids of what there is."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.session = server.open(client_id="fuzz")
        done = server.run(self.session, "print('x')", wait=30).json()
        victim = server.open()
        server.ask("POST", f"sessions/{victim}/close")
        self.ids = {
            "session_id": self.session,
            "execution_id": done["id"],
            "id": self.session,
            "path": "nb.ipynb",
            "digest": "0" * 64,
        }
        self.victim = victim
        self.http = httpx2.Client(
            base_url=server.api,
            headers={"Authorization": f"token {TOKEN}"},
            timeout=40,
            trust_env=False,
        )

    def ask(self, asked: Request) -> httpx2.Response:
        path = asked.path
        ends = path.endswith(("/close", "/restart"))
        for name, value in asked.given.items():
            known = self.ids.get(name, "x")
            if "executions/{id}" in path:
                known = self.ids["execution_id"]
            if ends:
                known = self.victim
            text = value if value.strip(".") else known
            path = path.replace(f"{{{name}}}", quote(text, safe="", errors="surrogatepass"))
        body = asked.body
        if path == "/sessions" and body is not None and asked.verb == "post":
            body = with_client_id(body)
        return self.http.request(
            asked.verb.upper(),
            path.lstrip("/") + (f"?{asked.query}" if asked.query else ""),
            content=body,
            headers=asked.headers,
        )


def with_client_id(body: bytes) -> bytes:
    """Have it be one session that is opened again and again."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return body
    return json.dumps({**said, "client_id": "fuzz"}).encode() if isinstance(said, dict) else body


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("fuzzed")
    (folder / "root").mkdir()
    cells = [nbformat.v4.new_code_cell("1"), nbformat.v4.new_markdown_cell("x")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "root" / "nb.ipynb")
    with server_process(folder) as server:
        bench = Bench(server)
        yield bench
        bench.http.close()


def opening(body: bytes) -> Request:
    return Request("post", "/sessions", {}, "", body, {})


DEEP = nested(600)


@examples(short=250)
@example(opening(b'{"title": NaN, "title": %b}' % json.dumps(DEEP).encode()))
@example(opening(b'{"target": {"kind": %b%b}}' % (b"[" * 990, b"]" * 990)))
@given(asked=requests())
def test_every_request_is_answered_or_refused_as_all_are(bench: Bench, asked: Request) -> None:
    answered = bench.ask(asked)
    assert answered.status_code != 500, answered.text
    content_type = answered.headers.get("content-type", "")
    operation = DOCUMENT["paths"][asked.path][asked.verb]
    body = check_answer(DOCUMENT, operation, answered.status_code, content_type, answered.content)
    if answered.status_code >= 400:
        assert content_type.startswith("application/json")
        assert set(body) == {"message", "reason", "code", "detail"}
        assert (body["reason"], type(body["code"]), type(body["detail"])) == (None, str, dict)
    assert bench.server.process.poll() is None
