"""What journal entries add up to: sessions, executions, events, environments.

It reads only payloads, and nothing else of the disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from ..models import (
    Chain,
    Changes,
    ExecutionKernel,
    JournalEvent,
    NotebookTarget,
    Omitted,
    Session,
    Value,
    derive,
    marked,
)
from ..records import (
    Accepted,
    By,
    EnvironmentFound,
    ExecutionRecord,
    Finished,
    Mark,
    Opened,
    PackagesChanged,
    current_mode,
)
from ..types import Digest, Status
from .blobs import BlobStore
from .lines import Line
from .outputs import Outputs, ReadBlob

MAX_CHARACTERS: Final = 500
"""Maximum number of characters of an event's text."""
_decode_values = msgspec.json.Decoder(dict[str, Value]).decode

S = TypeVar("S", bound=msgspec.Struct)


def session_after(session: Session | None, line: Line) -> Session | None:
    """Return a session after one more line; None as long as it has not been opened.

    It has no counts that the index knows: `asking` and `unreviewed`.
    """
    entry = line.entry
    head = Chain(head=line.hash, length=entry.n + 1)
    if isinstance(entry, Opened):
        return opened(entry, head)
    if session is None:
        return None
    return replace(session, last_activity_at=entry.at, chain=head, **entry.changes(session))


def opened(entry: Opened, head: Chain) -> Session:
    """Return a session after its first entry."""
    return derive(
        Session,
        entry,
        id=entry.session_id,
        status="open",
        close_reason=None,
        path=entry.target.path if isinstance(entry.target, NotebookTarget) else None,
        kernel=None,
        executions=0,
        opened_at=entry.at,
        approval=current_mode(entry.approval),
        last_activity_at=entry.at,
        closed_at=None,
        chain=head,
        preloaded=list(entry.preloaded),
    )


def execution_record(
    session: Session, lines: Sequence[Line], read_blob: ReadBlob, *, brief: bool = False
) -> ExecutionRecord | None:
    """Return the record of an execution, made from its lines; None without its `accepted`.

    A payload that was erased or lost is empty, and `outputs_complete` is false.

    Parameters
    ----------
    session
        Its session.
    lines
        All lines of the execution, in order.
    read_blob
        Reads payloads that are not on the lines.
    brief
        Leave out large values of its outputs, without reading them, and do not list its images.
    """
    accepted = next((each.entry for each in lines if isinstance(each.entry, Accepted)), None)
    if accepted is None:
        return None
    folded = Outputs(accepted.execution_id, lines, read_blob, brief=brief)
    record = unfinished(accepted, session, source=accepted.source, chain=session.chain)
    finished: Finished | None = None
    entry_hash: Digest | None = None
    for line in lines:
        changes = line.entry.changes_of_execution(record, accepted)
        record = replace(record, **changes) if changes else record
        if isinstance(line.entry, Finished):
            finished, entry_hash = line.entry, line.hash
    record = _with_texts(record, folded.text)
    variables = None if finished is None else finished.variables
    return replace(
        record,
        outputs=folded.outputs,
        blobs=tuple(folded.blobs),
        error=folded.error,
        outputs_complete=finished is not None and finished.outputs_complete and not folded.missing,
        omitted=folded.omitted,
        redacted=folded.redacted,
        widget_texts={} if brief or finished is None else _widget_texts(finished, folded),
        entry_hash=entry_hash,
        changes=_decoded(variables, Changes, folded),
        values=None if brief else _values(accepted, finished, folded),
        brief=folded.brief,
    )


def unfinished(
    accepted: Accepted,
    session: Session,
    *,
    source: str,
    chain: Chain,
    status: Status = "queued",
    kernel: ExecutionKernel | None = None,
    started_at: str | None = None,
) -> ExecutionRecord:
    """Return the record of an execution that was accepted, without outputs."""
    return derive(
        ExecutionRecord,
        accepted,
        id=accepted.execution_id,
        session_id=session.id,
        status=status,
        reason=None,
        source=source,
        agent=session.agent,
        username=session.username,
        token=session.token,
        kernel=kernel,
        execution_count=None,
        outputs=[],
        error=None,
        values=None,
        accepted_at=accepted.at,
        started_at=started_at,
        finished_at=None,
        duration=None,
        outputs_complete=True,
        omitted=Omitted(),
        interrupt_ignored=False,
        waiting_for=None,
        document=None,
        chain=chain,
    )


def _with_texts(record: ExecutionRecord, read: Callable[[Digest], str]) -> ExecutionRecord:
    """Return a record with the texts whose digests stand in it."""
    source, input, approval = read(Digest(record.source)), record.input, record.approval
    if input is not None:
        input = replace(input, prompt=read(Digest(input.prompt)))
    if approval is not None:
        before, requested = approval.before, approval.asked_source
        requested = None if requested is None else read(Digest(requested))
        approval = replace(
            approval,
            before=None if before is None else read(Digest(before)),
            asked_source=None if requested == source else requested,
        )
    return replace(record, source=source, input=input, approval=approval)


def _values(
    accepted: Accepted, finished: Finished | None, folded: Outputs
) -> dict[str, Value] | None:
    """Return the values of its expressions; None without expressions, or before it finishes."""
    if accepted.values is None or finished is None:
        return None
    if finished.values is not None:
        data = folded.read(finished.values)
        return None if data is None else _decode_values(data)
    asked = folded.read(accepted.values)
    why = f"The execution has ended as {finished.status} before it came to that."
    return {name: Value.not_evaluated(why) for name in msgspec.json.decode(asked or b"{}")}


def _decoded(digest: Digest | None, kind: type[S], folded: Outputs) -> S | None:
    """Return what a payload holds; None if there is none, or if it is gone."""
    data = None if digest is None else folded.read(digest)
    return None if data is None else msgspec.json.decode(data, type=kind)


def _widget_texts(finished: Finished, folded: Outputs) -> dict[str, str]:
    data = None if finished.widgets is None else folded.read(finished.widgets)
    texts: dict[str, str] = {} if data is None else json.loads(data)["texts"]
    return texts


def event_of(line: Line, last_seq: int, store: BlobStore) -> JournalEvent | None:
    """Return a line as an event; None if it is not an event.

    Parameters
    ----------
    line
        The line.
    last_seq
        The `seq` of the last execution that was accepted before the line; 0 if there is none.
    store
        The payloads of its session.
    """
    entry = line.entry
    if not entry.is_event:
        return None
    said = entry.event_text
    for name in marked(type(entry), Mark.EVENT_PAYLOAD):
        said = store.text(line, getattr(entry, name))
    return JournalEvent(
        n=entry.n,
        type=entry.kind,
        at=entry.at,
        by=_name_of(entry.by),
        by_kind=entry.by.kind,
        after_seq=last_seq,
        execution_id=getattr(entry, "execution_id", None),
        text=None if said is None else _one_line(said) or None,
    )


def _name_of(by: By) -> str | None:
    name = by.display_name or by.username
    if by.kind == "agent" and name is not None:
        return f"an agent on behalf of {name}"  # the user did not act
    return name


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * MAX_CHARACTERS].split())
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"


class Environments:
    """The environments of a session's kernels, line by line."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.told: list[dict[str, Any]] = []
        """Each as in an export. An erased one has nothing but its `incarnation` and `changes`."""

    def add(self, line: Line) -> None:
        """Add the next line."""
        entry = line.entry
        if isinstance(entry, EnvironmentFound):
            environment = json.loads(self._blobs.text(line, entry.environment) or "{}")
            self.told.append({"incarnation": entry.incarnation, "changes": [], **environment})
        elif isinstance(entry, PackagesChanged) and self.told:
            text = self._blobs.text(line, entry.packages)
            packages = None if text is None else text.split("\n")
            change = {"execution_id": entry.execution_id, "packages": packages}
            self.told[-1]["changes"].append(change)


def requirements(journal: Iterable[Line], blobs: BlobStore) -> str:
    """Return what was installed at last as a `requirements.txt`; comments say if it is not known.

    Parameters
    ----------
    journal
        All lines of the session.
    """
    environments = Environments(blobs)
    for line in journal:
        environments.add(line)
    last = environments.told[-1] if environments.told else {}
    reason = last.get("reason") or "The record does not say which packages there were."
    if last.get("packages") is None:
        return f"# {reason}\n"
    installed = set(last["packages"])
    for change in last["changes"]:
        if change["packages"] is None:
            return "# What was installed later was erased from the record.\n"
        installed -= {line[1:] for line in change["packages"] if line[0] == "-"}
        installed |= {line[1:] for line in change["packages"] if line[0] == "+"}
    head = f"# {last['implementation']} {last['version']} on {last['platform']}"
    return "\n".join([head, *sorted(installed), ""])
