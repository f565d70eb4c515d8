"""From records to what goes over the wire. Pure."""

from __future__ import annotations

from datetime import datetime

from ..journal.notebook import cell
from ..models import Execution, Image
from ..records import ExecutionRecord, digest_of
from ..text import images, model_text, transcript
from ..types import FINAL_STATUSES

NAMESPACE = "api/agent-exec"

_NOTES = {
    "timed_out": "The execution timed out and was interrupted.",
    "interrupted": "The execution was interrupted.",
    "kernel_died": "The kernel died; its variables are gone.",
    "cancelled": "The execution was cancelled before it ran.",
    "lost": "The server died while the execution ran; what it did is not known.",
}


def execution(record: ExecutionRecord, base_url: str) -> Execution:
    """Answer with an execution.

    Parameters
    ----------
    base_url
        The server's, with a slash at both ends.
    """
    return Execution(
        id=record.id,
        session_id=record.session_id,
        seq=record.seq,
        init=record.init,
        status=record.status,
        reason=record.reason,
        source=record.source,
        source_sha256=digest_of(record.source.encode()),
        execution_count=record.execution_count,
        cell=cell(record),
        text=text(record, base_url),
        images=_images(record, base_url),
        error=record.error,
        values=None,
        kernel=record.kernel,
        agent=record.agent,
        username=record.username,
        timeout=record.timeout,
        accepted_at=record.accepted_at,
        started_at=record.started_at,
        finished_at=record.finished_at,
        duration=duration(record.started_at, record.finished_at),
        outputs_complete=record.outputs_complete,
        omitted=record.omitted,
        interrupt_ignored=record.interrupt_ignored,
        waiting_for=record.waiting_for,
        document=record.document,
        chain=record.chain,
    )


def text(record: ExecutionRecord, base_url: str) -> str:
    """Return what a language model should read: the outputs, then how it ended if not well."""
    url = f"{base_url}{NAMESPACE}/executions/{record.id}/text"
    read = model_text(transcript(record.outputs), url=url)
    notes = []
    if record.kernel is not None and record.kernel.restarted:
        notes.append(
            f"The kernel is a fresh one ({record.kernel.reason}); earlier variables are gone."
        )
    if record.status in _NOTES:
        notes.append(record.reason or _NOTES[record.status])
    if record.interrupt_ignored:
        notes.append("The code ignored the interrupt; restart the session's kernel to end it.")
    if not notes:
        return read
    return "\n".join([*([read.rstrip("\n")] if read else []), *(f"[{note}]" for note in notes)])


def duration(started_at: str | None, finished_at: str | None) -> float | None:
    """Return the seconds between two times."""
    if started_at is None or finished_at is None:
        return None
    between = datetime.fromisoformat(finished_at[:-1]) - datetime.fromisoformat(started_at[:-1])
    return between.total_seconds()


def _images(record: ExecutionRecord, base_url: str) -> list[Image]:
    digests = {ref.at: ref.sha256 for ref in record.blobs}
    final = record.status in FINAL_STATUSES
    found = []
    for image in images(record.outputs):
        digest = digests.get((image.output, "data", image.mimetype)) if final else None
        found.append(
            Image(
                mimetype=image.mimetype,
                width=image.width,
                height=image.height,
                bytes=image.bytes,
                url=None if digest is None else f"{base_url}{NAMESPACE}/blobs/{digest}",
                output=image.output,
            )
        )
    return found
