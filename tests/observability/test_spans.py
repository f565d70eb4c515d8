"""Executions as spans of OpenTelemetry, at a collector."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.audit.far_sides import Collector, collector
from tests.mcp.mcp_clients import endpoint
from tests.mcp.raw_mcp import headers_of, request
from tests.real_server import RealServer, real_server, until

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
SECRET = "a_word_of_the_code"


@pytest.fixture(scope="module")
def far_side() -> Iterator[Collector]:
    with collector() as server:
        yield server


@pytest.fixture(scope="module")
def server(far_side: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": far_side.address.removesuffix("/v1/logs"),
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    with real_server(tmp_path_factory.mktemp("traced"), environ=environ) as server:
        yield server


@pytest.fixture(scope="module")
def session(server: RealServer) -> dict[str, Any]:
    return ask(server, "sessions", {"agent": {"name": "analyst"}})


def ask(server: RealServer, path: str, body: Any, **headers: str) -> dict[str, Any]:
    url = f"{server.url.partition('?')[0]}api/agent-exec/{path}"
    shown = {"Authorization": f"token {server.token}"} | headers
    answered = httpx2.post(url, json=body, headers=shown, timeout=60)
    assert answered.status_code == 201, answered.text
    told: dict[str, Any] = answered.json()
    return told


def run(server: RealServer, session: dict[str, Any], body: Any, **headers: str) -> dict[str, Any]:
    return ask(server, f"sessions/{session['id']}/executions", body, **headers)


def span_of(far_side: Collector, execution_id: str) -> Span:
    """Wait for the span of an execution."""
    until(lambda: any(execution_id in attributes(each).values() for each in far_side.spans))
    (span,) = [each for each in far_side.spans if execution_id in attributes(each).values()]
    return span


def attributes(span: Span) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


def test_an_execution_continues_the_trace_of_its_request(
    server: RealServer, far_side: Collector, session: dict[str, Any]
) -> None:
    body = {"source": f"print('{SECRET}')", "claim": {"tool_call_id": "call_7"}}
    execution = run(server, session, body, traceparent=TRACEPARENT)
    assert execution["claim"] == {"purpose": None, "trace_id": TRACE, "tool_call_id": "call_7"}
    span = span_of(far_side, execution["id"])
    assert (span.name, span.kind) == ("execute_tool execute", Span.SPAN_KIND_INTERNAL)
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "execute",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_7",
        "gen_ai.agent.name": "analyst",
        "jupyter_agent_exec.session_id": session["id"],
        "jupyter_agent_exec.target": "scratch",
        "jupyter_agent_exec.execution_id": execution["id"],
        "jupyter_agent_exec.status": "ok",
    }
    assert span.start_time_unix_nano <= span.events[0].time_unix_nano <= span.end_time_unix_nano
    assert SECRET.encode() not in span.SerializeToString()


def test_an_error_is_told_by_its_status_alone(
    server: RealServer, far_side: Collector, session: dict[str, Any]
) -> None:
    execution = run(server, session, {"source": SECRET})
    span = span_of(far_side, execution["id"])
    assert (attributes(span)["error.type"], span.status.code) == ("error", Status.STATUS_CODE_ERROR)
    assert span.parent_span_id == b""
    assert execution["claim"] is None
    assert SECRET.encode() not in span.SerializeToString()


@pytest.mark.parametrize(
    "wrong", ["", "x", TRACEPARENT.upper(), f"00-{'0' * 32}-{PARENT}-01", f"ff-{TRACE}-{PARENT}-01"]
)
def test_a_wrong_traceparent_begins_a_trace(
    server: RealServer, far_side: Collector, session: dict[str, Any], wrong: str
) -> None:
    execution = run(server, session, {"source": "1"}, traceparent=wrong)
    assert span_of(far_side, execution["id"]).parent_span_id == b""
    assert execution["claim"] is None


def test_a_tool_call_continues_the_trace_in_its_meta(
    server: RealServer, far_side: Collector, session: dict[str, Any]
) -> None:
    arguments = {"session_id": session["id"], "source": "2"}
    params = {"name": "execute", "arguments": arguments, "_meta": {"traceparent": TRACEPARENT}}
    message = request("tools/call", params, modern=True)
    headers = headers_of(message, server.token, None)
    answered = httpx2.post(endpoint(server), json=message, headers=headers, timeout=60)
    told = answered.json()["result"]["structuredContent"]
    span = span_of(far_side, told["execution_id"])
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)


def test_without_an_exporter_nothing_is_imported() -> None:
    program = """
import logging, sys
from jupyter_agent_exec import app
from jupyter_agent_exec.observability.tracing import make_tracing
assert make_tracing(logging.getLogger()) is None
print([each for each in sys.modules if each.startswith("opentelemetry")])
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={}, check=True
    )
    assert found.stdout == "[]\n"
