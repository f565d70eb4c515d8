"""Decides whether executions become spans. Without somebody who takes them, nothing is imported."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .spans import Tracing

ADDRESSES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""OpenTelemetry's variables for the address of a collector."""


def make_tracing(log: logging.Logger) -> Tracing | None:
    """Return what makes spans; None if no exporter is set up."""
    environ = os.environ
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    has_address = any(environ.get(name) for name in ADDRESSES)
    exports = has_address and environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"
    if not exports and "opentelemetry.sdk.trace" not in sys.modules:
        return None
    try:
        from .spans import own_tracing, shared_tracing
    except ImportError:
        log.warning(
            "Executions are not traced, although an address for traces is set: OpenTelemetry is "
            "missing. Install it with: pip install 'jupyter-agent-exec[otlp]'."
        )
        return None
    return shared_tracing() or (own_tracing() if exports else None)
