"""Copies the record to an OpenTelemetry collector, as logs."""

from __future__ import annotations

from datetime import datetime

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.util.types import AnyValue

from .._version import __version__
from .sink import Batch, SentEntry, Sink, SinkSettings

_SCOPE = InstrumentationScope("jupyter_agent_exec", __version__)


class OtlpSink(Sink):
    """A collector that takes OTLP over HTTP.

    The SDK's exporter is called directly: its queue would drop what does not fit.

    Parameters
    ----------
    address
        The address of its logs, such as ``https://collector.example.org:4318/v1/logs``.
    headers
        Sent with each request, for example to authenticate.
    certificate_file
        The authorities to trust, in PEM; None for those that `requests` trusts.
    """

    def __init__(
        self,
        settings: SinkSettings,
        address: str,
        headers: dict[str, str],
        certificate_file: str | None,
    ) -> None:
        super().__init__(settings)
        self._address = address
        self._headers = headers
        self._certificate_file = certificate_file
        self._exporter: OTLPLogExporter | None = None
        self._resource = Resource.create(
            {"service.name": "jupyter-agent-exec", "service.instance.id": settings.server}
        )

    def deliver(self, batch: Batch) -> None:
        """Export a batch; the collector has it when this returns."""
        if self._exporter is None:
            self._exporter = OTLPLogExporter(
                self._address, headers=self._headers, certificate_file=self._certificate_file
            )
        records = [self._record(batch, entry) for entry in batch.entries]
        if batch.rewound:
            attributes: dict[str, AnyValue] = {
                "journal": batch.journal,
                "length": len(batch.entries),
            }
            records.insert(0, self._readable(LogRecord(body="rewound", attributes=attributes)))
        if self._exporter.export(records) is not LogRecordExportResult.SUCCESS:
            raise ConnectionError(f"{self._address} did not take the logs")

    def close(self) -> None:
        """Close the connection."""
        if self._exporter is not None:
            self._exporter.shutdown()  # type: ignore[no-untyped-call]
            self._exporter = None

    def _record(self, batch: Batch, entry: SentEntry) -> ReadableLogRecord:
        attributes: dict[str, AnyValue] = {
            "journal": batch.journal,
            "n": entry.n,
            "hash": entry.hash,
        }
        if entry.execution_id is not None:
            attributes["execution_id"] = entry.execution_id
        for digest, data in entry.payloads.items():
            attributes[f"payload.{digest}"] = data.decode("utf-8", "replace")
        for digest, salt in entry.salts.items():
            attributes[f"salt.{digest}"] = salt
        return self._readable(
            LogRecord(
                timestamp=int(datetime.fromisoformat(entry.at).timestamp() * 1000) * 1_000_000,
                severity_number=SeverityNumber.INFO,
                severity_text="INFO",
                event_name=f"jupyter_agent_exec.{entry.type}",
                body=entry.canonical.decode("utf-8"),
                attributes=attributes,
            )
        )

    def _readable(self, record: LogRecord) -> ReadableLogRecord:
        return ReadableLogRecord(record, self._resource, _SCOPE)
