"""What a client asks a server's routes."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import msgspec

from jupyter_agent_exec import models
from jupyter_agent_exec.client import (
    AgentExecClient,
    Claim,
    ClearOutputs,
    Placement,
)
from jupyter_agent_exec.types import CellId
from tests.client.wire import CHAIN, DIGEST, execution, server_status, session

URL = "http://127.0.0.1:8888/base"
PATH = "work/sales.ipynb"
AFTER = Placement(after=CellId("c1"))


def answers(request: httpx2.Request) -> bytes:
    """Return the answer to each route that has to do with notebooks."""
    path = request.url.path
    if path.endswith("/notebooks"):
        return msgspec.json.encode(models.OpenNotebookList(notebooks=[]))
    if path.endswith("/executions"):
        return msgspec.json.encode(execution())
    if request.method == "PATCH":
        edited = models.NotebookEdited(path=PATH, hash=DIGEST, via="tab", cell_ids=[], chain=CHAIN)
        return msgspec.json.encode(edited)
    if path.endswith("/cells"):
        cells = models.NotebookCells(path=PATH, hash=DIGEST, via="tab", cells=[])
        return msgspec.json.encode(cells)
    if "/approvals" in path:
        policy = models.ApprovalPolicy(
            scratch="none", notebook="first", kernel="first", edits="propose", forced=[]
        )
        return msgspec.json.encode(models.Approvals(executions=[], policy=policy, paused=None))
    if path.endswith("/erasures"):
        return msgspec.json.encode(models.Erasure(dry_run=False, sessions=[], remains=[]))
    if path.endswith("/accepted-breaks"):
        return msgspec.json.encode(server_status())
    if path.endswith("/retention"):
        return msgspec.json.encode(models.Retention(dry_run=False, rules=[], sessions=[]))
    if path.endswith(("/review", "/approve", "/reject")) and "/executions/" in path:
        return msgspec.json.encode(execution())
    return msgspec.json.encode(msgspec.structs.replace(session(), path=PATH))


def keeping(seen: list[tuple[str, str, bytes, str]]) -> Callable[[httpx2.Request], httpx2.Response]:
    def answer(request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        length = request.headers.get("Content-Length", "")
        seen.append((request.method, request.url.path, body, length))
        return httpx2.Response(200, content=answers(request))

    return answer


def ask(transport: httpx2.MockTransport) -> None:
    with AgentExecClient(URL, "x", transport=transport) as client:
        session = client.open_session(
            "a", notebook=PATH, create=True, kernel_name="ir", client_id="c"
        )
        session.run(
            "1",
            placement=AFTER,
            revises="x_1",
            claim=Claim(purpose="why"),
            idempotency_key="k",
            values={"x": "1"},
        )
        session.run_cell("c1", source_sha256=DIGEST, timeout=5, idempotency_key="k")
        session.edit([ClearOutputs()], hash=session.cells().hash)
        client.cells(PATH)
        client.notebooks()
        client.review("x_1", "flagged", comment="why?")
        client.erase(agent="a", reason="why")
        client.retain(dry_run=True)
        client.accept_break("b_1")
        client.approvals()
        client.approve("x_1", DIGEST, source="2", grant="hour")
        client.reject("x_1", "no")
        client.set_policy(notebook="always")
        client.pause()
        client.resume()
        session.withdraw_grant()
        client.open_session("a", kernel_id="k1", client_id="c")


def test_each_call_asks_its_route() -> None:
    seen: list[tuple[str, str, bytes, str]] = []
    ask(httpx2.MockTransport(keeping(seen)))
    assert [(method, path.removeprefix("/base/api/agent-exec")) for method, path, *_ in seen] == [
        ("POST", "/sessions"),
        ("POST", "/sessions/s_1/executions"),
        ("POST", "/sessions/s_1/executions"),
        ("GET", "/sessions/s_1"),
        ("GET", f"/notebooks/{PATH}/cells"),
        ("GET", "/sessions/s_1"),
        ("PATCH", f"/notebooks/{PATH}/cells"),
        ("GET", f"/notebooks/{PATH}/cells"),
        ("GET", "/notebooks"),
        ("PUT", "/executions/x_1/review"),
        ("POST", "/erasures"),
        ("POST", "/retention"),
        ("POST", "/accepted-breaks"),
        ("GET", "/approvals"),
        ("POST", "/executions/x_1/approve"),
        ("POST", "/executions/x_1/reject"),
        ("PUT", "/approvals/policy"),
        ("PUT", "/approvals/pause"),
        ("PUT", "/approvals/pause"),
        ("DELETE", "/sessions/s_1/grant"),
        ("POST", "/sessions"),
    ]


def test_what_is_said_to_be_revised_is_sent() -> None:
    seen: list[tuple[str, str, bytes, str]] = []
    ask(httpx2.MockTransport(keeping(seen)))
    sent = [
        msgspec.json.decode(body, type=models.Execute)
        for _, path, body, _ in seen
        if path.endswith("/executions")
    ]
    assert [request.revises for request in sent] == ["x_1", None]
    assert [request.claim for request in sent] == [Claim(purpose="why"), None]


def test_whatever_has_a_body_says_how_long_it_is() -> None:
    seen: list[tuple[str, str, bytes, str]] = []
    ask(httpx2.MockTransport(keeping(seen)))
    for method, _, body, length in seen:
        assert length == ("" if method == "GET" else str(len(body)))
