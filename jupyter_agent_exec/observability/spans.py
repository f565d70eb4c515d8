"""Executions as OpenTelemetry spans. Source: its conventions for generative AI, *execute tool*.

A span is made when its execution has ended, from the times in the record. It continues the trace of
the request that ran the code. It has ids and statuses, never a source or an output.
"""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from .._version import __version__
from ..executions.execution import LiveExecution
from ..executions.observer import ExecutionObserver
from ..models import Session
from ..records import ExecutionRecord
from ..types import ExecutionId
from .logs import target_kind

STOP_TIMEOUT: Final = 5.0
"""Seconds that a stopping server waits for its spans to be sent."""

TOOL: Final = "execute"


def shared_tracing() -> Tracing | None:
    """Return what makes spans for the process's own SDK; None if the process has none."""
    provider = trace.get_tracer_provider()
    return Tracing(provider) if isinstance(provider, TracerProvider) else None


def own_tracing() -> Tracing:
    """Return what makes spans for the collector that OpenTelemetry's variables name."""
    name = os.environ.get("OTEL_SERVICE_NAME", "jupyter-agent-exec")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider, owned=True)


class Tracing:
    """Makes spans.

    Parameters
    ----------
    owned
        Whether the provider is shut down with the server.
    """

    def __init__(self, provider: TracerProvider, *, owned: bool = False) -> None:
        self._provider = provider
        self._owned = owned
        self.tracer: Final = provider.get_tracer("jupyter_agent_exec", __version__)

    def observer(self, session: Session) -> ExecutionObserver:
        """Return the observer of a new session."""
        return _SessionSpans(self.tracer, session)

    async def stop(self) -> None:
        """Send what waits, within a time limit."""
        if self._owned:
            loop = asyncio.get_running_loop()
            await asyncio.wait(
                {loop.run_in_executor(None, self._provider.shutdown)}, timeout=STOP_TIMEOUT
            )


class _SessionSpans(ExecutionObserver):
    def __init__(self, tracer: trace.Tracer, session: Session) -> None:
        self._tracer = tracer
        self._parents: dict[ExecutionId, str] = {}
        self._attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": TOOL,
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": session.agent.name,
            "jupyter_agent_exec.session_id": session.id,
            "jupyter_agent_exec.target": target_kind(session),
        }

    def accepted(self, execution: LiveExecution) -> None:
        if execution.spec.traceparent is not None:
            self._parents[execution.id] = execution.spec.traceparent

    def finished(self, record: ExecutionRecord) -> None:
        parent = self._parents.pop(record.id, None)
        carrier = {} if parent is None else {"traceparent": parent}
        span = self._tracer.start_span(
            f"execute_tool {TOOL}",
            context=TraceContextTextMapPropagator().extract(carrier, Context()),
            kind=SpanKind.INTERNAL,
            attributes={
                **self._attributes,
                "jupyter_agent_exec.execution_id": record.id,
                "jupyter_agent_exec.status": record.status,
            },
            start_time=_nanoseconds(record.accepted_at),
        )
        if record.claim is not None and record.claim.tool_call_id is not None:
            span.set_attribute("gen_ai.tool.call.id", record.claim.tool_call_id)
        if record.started_at is not None:
            span.add_event("started", timestamp=_nanoseconds(record.started_at))
        if record.status != "ok":
            span.set_attribute("error.type", record.status)
            span.set_status(StatusCode.ERROR)
        span.end(_nanoseconds(record.finished_at))


def _nanoseconds(at: str | None) -> int | None:
    return None if at is None else round(datetime.fromisoformat(at).timestamp() * 1000) * 1_000_000
