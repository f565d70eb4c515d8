"""Exports the record of a session as a notebook, and reads the record about the user's cells.

Pure, except for reading the journal. An export has one cell for each execution, so that it can be
run again, and other cells only if it is to be shared. Trials changed nothing, so they have no
cells: the metadata list them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from nbformat import NotebookNode, from_dict
from nbformat.v4.rwbase import split_lines

from ..models import Approval, Omitted, Session, Shown, marked
from ..records import (
    ExecutionRecord,
    Finished,
    KernelStarted,
    PersonRan,
    digest_of,
)
from ..text.lookalikes import exact
from ..text.widgets import STATE
from ..types import JSON, ExecutionId
from .blobs import BlobStore
from .fold import Environments, execution_record, session_after
from .heads import cell_digest, metadata_digest
from .lines import Line, Range, lines, lines_at

SCHEMA_VERSION: Final = 1
"""Version of the metadata, which `metadata.schema.json` beside this file describes."""

Sign = Callable[[Mapping[str, JSON]], dict[str, JSON] | None]
"""Returns a statement with its signature; None if nothing can be signed now."""

_CHUNK_CHARACTERS: Final = 1 << 16
_encode: Final = msgspec.json.Encoder(order="sorted").encode

_MARKUP: Final = re.compile(r"[\\`*_{}\[\]<>#|$~!&]")
"""Characters that mean something in Markdown."""

_SESSION_FIELDS: Final = (
    "id", "agent", "title", "target", "path", "record_people", "approval", "username",
    "status", "close_reason", "opened_at", "closed_at"
)  # fmt: skip


def cell(record: ExecutionRecord) -> NotebookNode:
    """Return an execution as an nbformat 4.5 code cell.

    It equals the result of nbformat's `new_code_cell`, but is not validated. A validation takes
    2 ms, as long as running a short source. The tests validate cells of all kinds.
    """
    return _node(
        cell_type="code",
        execution_count=record.execution_count,
        id=record.id,
        metadata=_node(agent_exec=execution_metadata(record)),
        outputs=[_node(**output) for output in record.outputs],
        source=record.source,
    )


def _node(**fields: JSON) -> NotebookNode:
    return NotebookNode(fields)  # type: ignore[no-untyped-call]


def execution_metadata(record: ExecutionRecord) -> dict[str, Any]:
    """Return the `metadata.agent_exec` of an execution's cell."""
    kernel = record.kernel
    metadata = {
        "execution_id": record.id,
        "kernel_id": kernel.id if kernel else None,
        "incarnation": kernel.incarnation if kernel else None,
        "source_sha256": digest_of(record.source.encode("utf-8")),
        **_shown(record, Shown.IN_CELL),
        **_if_set(_shown(record, Shown.IN_CELL_IF_SET)),
    }
    if record.omitted != Omitted():
        metadata["omitted"] = msgspec.to_builtins(record.omitted)
        if not record.omitted.unknown:
            del metadata["omitted"]["unknown"]
    if record.approval is not None:
        metadata["approval"] = _approval(record.approval)
    return metadata


def _shown(record: ExecutionRecord, where: Shown) -> dict[str, Any]:
    fields = {name: getattr(record, name) for name in marked(ExecutionRecord, where)}
    shown: dict[str, Any] = msgspec.to_builtins(fields)
    return shown


def _if_set(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _exported_cell(record: ExecutionRecord) -> NotebookNode:
    """Return the cell of an execution in an export, with its values and what it changed.

    The cell has another execution count in itself than in its metadata after it is run again.
    """
    made = cell(record)
    metadata = made["metadata"]["agent_exec"]
    metadata |= _if_set(_shown(record, Shown.IN_EXPORT_IF_SET))
    if not record.trial:
        metadata["execution_count"] = record.execution_count
    return made


def _clean_cell(record: ExecutionRecord) -> NotebookNode:
    """Return the cell of an execution in a clean export, where only its id leads to the record.

    The tag makes nbconvert and papermill continue after code that raised an error.
    """
    made = cell(record)
    raised = any(output.get("output_type") == "error" for output in record.outputs)
    made["metadata"] = _node(tags=["raises-exception"]) if raised else _node()
    return made


def _shared_cell(record: ExecutionRecord) -> NotebookNode:
    """Return the cell of an execution in a shared notebook; JupyterLab folds it if it failed."""
    made = _clean_cell(record)
    if record.status == "error":
        hidden = _node(source_hidden=True, outputs_hidden=True)
        made["metadata"] = _node(collapsed=True, jupyter=hidden, tags=["raises-exception"])
    return made


def in_markdown(text: str) -> str:
    """Return a text as one line of Markdown that shows it as it is."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(exact(text).split()))


def _markdown(id: str, source: str) -> NotebookNode:
    return _node(cell_type="markdown", id=id, metadata=_node(), source=source)


def _approval(approval: Approval) -> dict[str, Any]:
    """Return the approval of an execution, with the digest of the source shown for approval."""
    metadata: dict[str, Any] = msgspec.to_builtins(approval)
    asked = approval.asked_source
    del metadata["asked_source"], metadata["before"]
    metadata["asked_source_sha256"] = None if asked is None else digest_of(asked.encode("utf-8"))
    return metadata


@dataclass(frozen=True, kw_only=True)
class Foreword:
    """What a shared notebook has before the cells of the session."""

    about: Sequence[str]
    """Paragraphs of Markdown."""
    sources: Sequence[str]
    """Sources of the user's cells without which those of the session do not run."""
    shown: Collection[ExecutionId]
    """The executions that have a cell."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """What an exported notebook shows of a session."""

    session: Session
    executions: Iterable[ExecutionRecord]
    """In the order of their cells; read one at a time."""
    events: Sequence[Mapping[str, JSON]] = ()
    """The journal's entries outside of executions, with their `hash`."""
    environments: Sequence[Mapping[str, JSON]] = ()
    """What its kernels' code ran in."""
    widgets: Widgets = field(default_factory=lambda: Widgets())
    """The models of the widgets that its outputs show."""
    started: KernelStarted | None = None
    """The recorded start of the kernel; None if there was none."""
    sign: Sign | None = None
    """Signs the notebook, so that it can be verified without the journal."""

    def chunks(self, *, clean: bool = False, foreword: Foreword | None = None) -> Iterator[str]:
        """Yield the text of an nbformat 4.5 notebook, some cells at a time.

        With `clean`, it is in nbformat's format, and has only the metadata that identify the
        record. With a foreword, it is in that format too, and is for readers without the record.
        """
        chunk: list[str] = []
        size = 0
        is_clean = clean or foreword is not None
        for piece in self._clean_pieces(foreword) if is_clean else self._pieces():
            chunk.append(piece)
            size += len(piece)
            if size >= _CHUNK_CHARACTERS:
                yield "".join(chunk)
                chunk, size = [], 0
        yield "".join(chunk)

    def _pieces(self) -> Iterator[str]:
        yield '{"cells":['
        separator = "\n"
        digests: list[JSON] = []
        trials: list[JSON] = []
        for record in self.executions:
            made = _exported_cell(record)
            if record.trial:
                trials.append(made["metadata"]["agent_exec"])
                continue
            yield separator
            yield dump(made)
            separator = ",\n"
            if self.sign is not None:
                digests.append([made["id"], cell_digest(made)])
        fields: dict[str, Any] = msgspec.to_builtins(self.session)
        about: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "session": {name: fields[name] for name in _SESSION_FIELDS},
            "chain": fields["chain"],
            "events": list(self.events),
            "environments": list(self.environments),
        }
        if self.widgets.left_out:
            about["widgets_left_out"] = sorted(self.widgets.left_out)
        if trials:
            about["trials"] = trials
        yield f'\n],\n"metadata":{dump(self._metadata(about, digests))},\n'
        yield '"nbformat":4,"nbformat_minor":5}\n'

    def _clean_pieces(self, foreword: Foreword | None) -> Iterator[str]:
        """Yield what `nbformat.write` writes, to the byte."""
        yield '{\n "cells": ['
        separator, end = "\n  ", ""
        digests: list[JSON] = []
        for made in self._clean_cells() if foreword is None else self._shared_cells(foreword):
            if self.sign is not None:
                digests.append([made["id"], cell_digest(made)])
            split = split_lines(from_dict({"cells": [strict(made)]}))  # type: ignore[no-untyped-call]
            yield separator
            yield _indented(split["cells"][0], 2)
            separator, end = ",\n  ", "\n "
        about = {
            "schema_version": SCHEMA_VERSION,
            "session_id": self.session.id,
            "chain": msgspec.to_builtins(self.session.chain),
        }
        metadata = self._metadata(about, digests) if foreword is None else self._shared_metadata
        yield f'{end}],\n "metadata": {_indented(metadata, 1)},\n'
        yield ' "nbformat": 4,\n "nbformat_minor": 5\n}\n'

    def _clean_cells(self) -> Iterator[NotebookNode]:
        return (_clean_cell(record) for record in self.executions if not record.trial)

    def _shared_cells(self, foreword: Foreword) -> Iterator[NotebookNode]:
        title = self.session.title or f"Session of {self.session.agent.name}"
        yield _markdown("title", f"# {in_markdown(title)}")
        yield _markdown("about", "\n\n".join(foreword.about))
        for number, source in enumerate(foreword.sources, 1):
            yield _node(
                cell_type="code",
                execution_count=None,
                id=f"before-{number}",
                metadata=_node(),
                outputs=[],
                source=source,
            )
        for record in self.executions:
            if record.id not in foreword.shown:
                continue
            if record.claim is not None and record.claim.purpose:
                yield _markdown(f"{record.id}-purpose", f"## {in_markdown(record.claim.purpose)}")
            yield _shared_cell(record)

    @property
    def _shared_metadata(self) -> dict[str, Any]:
        return {**_kernel(self.started), **self.widgets.metadata}

    def _metadata(self, about: dict[str, Any], cells: list[JSON]) -> dict[str, Any]:
        """Return the notebook's metadata, with a signature of them and of its cells."""
        metadata = {"agent_exec": about, **self._shared_metadata}
        if self.sign is not None:
            statement: dict[str, JSON] = {
                "chain": self.session.id,
                "length": self.session.chain.length,
                "head": self.session.chain.head,
                "cells": cells,
                "metadata": metadata_digest(metadata),
            }
            signature = self.sign(statement)
            if signature is not None:
                about["signature"] = signature
        return metadata


def _indented(value: JSON, level: int) -> str:
    """Return JSON, indented for its place in a larger document."""
    text = json.dumps(strict(value), ensure_ascii=False, indent=1, sort_keys=True)
    return text.replace("\n", "\n" + " " * level)


def journal_notebook(
    path: Path,
    blobs: BlobStore,
    *,
    clean: bool = False,
    foreword: Foreword | None = None,
    sign: Sign | None = None,
    length: int | None = None,
) -> Iterator[str]:
    """Yield the text of the notebook of a session's journal, as it is now.

    Only the positions of the lines are in memory, not the lines. `clean`, `foreword` and
    `sign` are as in `Export`; `length` is the number of entries to export, None for all.

    Raises
    ------
    OSError
        If the journal cannot be read.
    """
    session: Session | None = None
    started: KernelStarted | None = None
    places: dict[ExecutionId, list[Range]] = {}
    events: list[dict[str, JSON]] = []
    environments, widgets = Environments(blobs), Widgets()
    for line in lines(path):
        if length is not None and line.entry.n >= length:
            break
        session = session_after(session, line)
        environments.add(line)
        widgets.add(line, blobs)
        if isinstance(line.entry, KernelStarted):
            started = line.entry
        for execution_id in line.entry.about:
            places.setdefault(execution_id, []).append(line.at)
        if not line.entry.about:
            events.append(_event(line, blobs))
    if session is None:
        return
    export = Export(
        session=session,
        executions=_executions(path, session, places, blobs),
        events=events,
        environments=environments.told,
        widgets=widgets,
        started=started,
        sign=sign,
    )
    yield from export.chunks(clean=clean, foreword=foreword)


class Widgets:
    """The models of a session's widgets, line by line: the last state of each."""

    def __init__(self) -> None:
        self.left_out: set[str] = set()
        """The ids of the models whose last state is not in the record."""
        self._models: dict[str, JSON] = {}

    @property
    def metadata(self) -> dict[str, JSON]:
        """What a notebook's metadata say of them."""
        if not self._models:
            return {}
        models: JSON = {"version_major": 2, "version_minor": 0, "state": self._models}
        return {"widgets": {STATE: models}}

    def add(self, line: Line, blobs: BlobStore) -> None:
        """Add the next line."""
        name = line.entry.widgets if isinstance(line.entry, Finished) else None
        data = None if name is None else blobs.read(line, name)
        if data is None:
            return
        changed = json.loads(data)
        for id in (*changed["models"], *changed["left_out"]):
            self._models.pop(id, None)
        self.left_out = self.left_out.difference(changed["models"]).union(changed["left_out"])
        self._models |= {id: model for id, model in changed["models"].items() if model is not None}


def _event(line: Line, blobs: BlobStore) -> dict[str, JSON]:
    """Return an entry outside of executions, with the text of the code that a user ran."""
    event: dict[str, JSON] = {**json.loads(line.canonical), "hash": line.hash}
    if isinstance(line.entry, PersonRan):
        event["source_text"] = blobs.text(line, line.entry.source) or ""
    return event


def dump(value: JSON) -> str:
    """Return compact, strict JSON: no NaN, no lone surrogates."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return _encode(strict(value)).decode()


def strict(value: JSON) -> JSON:
    """Return `value` with null for numbers that JSON lacks and U+FFFD for lone surrogates."""
    if isinstance(value, dict):
        return {strict(key): strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [strict(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _executions(
    path: Path,
    session: Session,
    places: Mapping[ExecutionId, Sequence[Range]],
    blobs: BlobStore,
) -> Iterator[ExecutionRecord]:
    with path.open("rb") as file:
        for ranges in places.values():
            record = execution_record(session, lines_at(file.fileno(), ranges), blobs.find)
            if record is not None:
                yield record


def _kernel(started: KernelStarted | None) -> dict[str, Any]:
    if started is None:
        return {}
    name, language = started.kernel.name, started.language_info
    spec = {"name": name, "display_name": started.display_name or name}
    if language is None or "name" not in language:
        return {"kernelspec": spec}
    return {"kernelspec": {**spec, "language": language["name"]}, "language_info": language}
