"""A tool's answer about an execution: text for the model, and structured content for programs.

Some clients show a model only the content, others only the structured content. So each is complete
by itself; `tool.result_of` sees to pictures. Both stay within the limits in `budget`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from .. import models
from ..models import derive
from ..records import ExecutionRecord, digest_of
from ..sessions import answers
from ..text.counts import counted
from ..text.guide import approval_words
from ..text.model_text import images, output_size
from ..text.redaction import marks_in
from ..types import (
    FINAL_STATUSES,
    CellId,
    Digest,
    ExecutionId,
    NextApproval,
    SessionId,
    Status,
)
from . import budget
from .pictures import NotShown, Picture, pictures
from .tool import Answered

T = TypeVar("T")

_SHELL_PIP: Final = re.compile(r"^[ \t]*!+[ \t]*pip3?[ \t]+install\b", re.MULTILINE)

MATCHING: Final = "Read only lines with this text, each after its offset."
"""Describes the argument `match` of a tool that reads a text."""

CHANGES: Final = 20
"""The most variables to name that a trial would change."""

LARGE = 1 << 18
"""Characters of outputs above which a thread makes the answer."""


class ErrorAnswer(models.Answer, frozen=True, kw_only=True):
    """The exception that ended an execution. The text has its traceback."""

    ename: str
    evalue: str


class ImageAnswer(models.Answer, frozen=True, kw_only=True):
    """An original image that an execution produced. The image in the answer may be smaller."""

    mimetype: str
    bytes: int
    url: str | None
    """URL path of the original on the server; null until the execution has finished."""
    shown: bool
    """Whether the answer has the image, or a smaller copy, as image content."""
    note: str | None
    """How the shown image differs from the original, or why it is not shown."""


class CellAnswer(models.Answer, frozen=True, kw_only=True):
    """An execution's cell in a notebook."""

    cell_id: CellId | None
    source_sha256: Digest | None
    """Hash of its source, for edits that must not change another source; null if it has a secret,
    which the record lacks."""
    reason: str | None
    """Why it is not in the notebook."""


class ExecutionAnswer(models.Answer, frozen=True, kw_only=True):
    """An execution. What is null is left out."""

    execution_id: ExecutionId
    session_id: SessionId | None
    """Of the session that the call opened; null if it named one."""
    seq: int
    """Number of the execution in its session, from 1."""
    status: Status
    text: str
    """The text of its outputs. A long text is cut to its start and end."""
    ran_source: str | None
    """The code that ran, if the user changed it before approving it."""
    notes: list[str] | None
    """Remarks about the outputs, and what to do next."""
    error: ErrorAnswer | None
    values: dict[str, models.Value] | None
    """Values of the expressions in the request, by name."""
    images: list[ImageAnswer] | None
    waiting_for: models.WaitingFor | None
    cell: CellAnswer | None
    """Null without a notebook."""
    input: models.Input | None
    """The input that its code waits for."""
    next_approval: NextApproval | None
    """What happens to the code that you send next, if the call sent code."""
    duration: float | None
    """Seconds that it ran."""


IsOwn: TypeAlias = Callable[[ExecutionId], bool]
"""Whether an execution belongs to the same session."""


def read_on(id: ExecutionId, offset: int) -> str:
    """Return the tool call that reads an execution's text from a byte offset on."""
    return f'get_execution(execution_id="{id}", offset={offset})'


async def execution_answer(
    record: ExecutionRecord,
    is_own: IsOwn | None = None,
    *,
    base_url: str = "/",
    lab_url: str | None = None,
    limit: int = budget.TEXT,
    room: int = budget.ALL_PICTURES,
) -> Answered:
    """Return the answer about an execution.

    Parameters
    ----------
    is_own
        Whether an execution that this one waits for belongs to the same session; None: unknown.
    base_url
        The path at which the client reaches the server, with a slash at both ends.
    lab_url
        The address at which the user approves it in JupyterLab; None if unknown.
    limit
        Maximum characters of the text of its outputs.
    room
        Maximum base64 characters of its pictures.
    """
    found = images(record.outputs)
    shown = await asyncio.to_thread(pictures, found, room) if found else []
    originals = answers.images(record, base_url)
    told = [_image(image, picture) for image, picture in zip(originals, shown, strict=True)]
    notes = [*_more_images(told), *_next_steps(record, is_own or (lambda _: False), lab_url)]
    make = partial(_execution, record, told, notes, limit)
    if output_size(record.outputs, most=LARGE) < LARGE:
        structured = make()
    else:
        structured = await asyncio.to_thread(make)
    shown_pictures = [each for each in shown if isinstance(each, Picture)]
    return Answered(text=_content_text(structured), images=shown_pictures, structured=structured)


def cut(text: str, limit: int = budget.ITEM) -> str:
    """Return a text, cut to `limit` characters with a note of how many are left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}[… {counted(len(text) - limit, 'character')} left out]"


def nothing(noun: str, text: str) -> str:
    """Return the sentence in place of an empty list; with the text that was searched for."""
    return f"There is no {noun}{f' with {cut(text, 100)!r}' if text else ''}."


def next_code(next_approval: NextApproval | None) -> str:
    """Return what happens to the code that is sent next, if it does not simply run."""
    if next_approval in (None, "not_asked"):
        return ""
    return f"; your next code: {approval_words(next_approval)}"


def fitting(items: Sequence[T], limit_bytes: int = budget.LIST_BYTES) -> list[T]:
    """Return the first items whose JSON fits the limit, but at least one."""
    size = 0
    for index, item in enumerate(items):
        size += len(msgspec.json.encode(item)) + 1
        if size > limit_bytes and index:
            return list(items[:index])
    return list(items)


# -- helpers -----------------------------------------------------------------------------------


def _execution(
    record: ExecutionRecord, told: list[ImageAnswer], notes: list[str], limit: int
) -> ExecutionAnswer:
    error, document = record.error, record.document
    is_edited = record.approval is not None and record.approval.asked_source is not None
    return derive(
        ExecutionAnswer,
        record,
        execution_id=record.id,
        text=answers.text(record, partial(read_on, record.id), limit=limit),
        session_id=None,
        ran_source=cut(record.source, budget.CELL_SOURCE) if is_edited else None,
        notes=notes or None,
        duration=answers.duration(record),
        error=None
        if error is None
        else ErrorAnswer(ename=cut(error.ename, 200), evalue=cut(error.evalue)),
        values=_values(record.values),
        images=told[: budget.IMAGES] or None,
        cell=None
        if document is None
        else CellAnswer(
            cell_id=document.cell_id,
            source_sha256=None if marks_in(record.source) else digest_of(record.source.encode()),
            reason=None if document.reason is None else cut(document.reason),
        ),
    )


def _content_text(told: ExecutionAnswer) -> str:
    """Return the text for the model: the outputs, then notes, then the status."""
    parts: list[str] = []
    if told.ran_source is not None:
        parts.append(
            "[The user changed your code before approving it. This ran instead of yours:]\n"
            f"{told.ran_source}\n[Its output:]"
        )
    if told.text:
        parts.append(told.text.rstrip("\n"))
    for name, value in (told.values or {}).items():
        parts.append(f"{name} = {_value_text(value)}")
    for number, image in enumerate(told.images or (), 1):
        parts.append(f"[{_image_note(number, image)}]")
    parts += [f"[{note}]" for note in told.notes or ()]
    took = "" if told.duration is None else f", {told.duration:.2f} s"
    is_silent = not told.text and not told.images and told.status in FINAL_STATUSES
    silence = ", no output" if is_silent else ""
    about = f"execution {told.execution_id} (#{told.seq}): {told.status}{took}{silence}"
    about += "" if told.cell is None else _cell_text(told, told.cell)
    about += next_code(told.next_approval)
    return "\n".join([*parts, f"[{about}]"])


def _cell_text(told: ExecutionAnswer, cell: CellAnswer) -> str:
    if cell.reason is not None:
        return f"; its cell is not in the notebook: {cell.reason}"
    if cell.cell_id is None:
        return ""
    id = "the same id" if str(cell.cell_id) == told.execution_id else f"id {cell.cell_id}"
    hash = "" if cell.source_sha256 is None else f", source_sha256 {cell.source_sha256}"
    return f"; its cell has {id}{hash}"


def _image(image: models.Image, shown: Picture | NotShown) -> ImageAnswer:
    is_shown = isinstance(shown, Picture)
    note = shown.note if isinstance(shown, Picture) else shown.why
    return derive(ImageAnswer, image, shown=is_shown, note=note)


def _image_note(number: int, image: ImageAnswer) -> str:
    if image.note is None:
        return f"image {number} is below"
    told = f"is below, {image.note}." if image.shown else f"is not shown: {image.note}"
    original = "" if image.url is None else f" Original: GET {image.url}"
    return f"image {number} {told}{original}"


def _more_images(told: list[ImageAnswer]) -> list[str]:
    more = len(told) - budget.IMAGES
    verb = "is" if more == 1 else "are"
    return [] if more <= 0 else [f"{counted(more, 'more image')} {verb} in the exported notebook"]


def _next_steps(record: ExecutionRecord, is_own: IsOwn, lab_url: str | None) -> list[str]:
    wait = f'get_execution(execution_id="{record.id}", wait=30) waits for it'
    if record.status == "awaiting_approval":
        where = "JupyterLab" if lab_url is None else f"JupyterLab, at {lab_url}"
        return [f"The user has to approve it in {where}; tell them. Do not send it again. {wait}"]
    if record.status == "queued":
        behind = waits(record.waiting_for, is_own)
        return [f"It waits{behind}; do not send it again. {wait}"]
    if record.status == "awaiting_input":
        answer = f'give_input(execution_id="{record.id}", value=…) answers'
        return [f"{answer}, stop ends it; leave a password to the user"]
    if record.status == "running":
        return [f"It goes on; do not send it again. {wait}"]
    about = "It was a trial: it saw all of the kernel's memory, and the kernel is as it was"
    trial = [about] if record.trial else []
    changes = _changes(record.changes) if record.trial and record.started_at else []
    return [*trial, *changes, *_left_out(record), *_installs(record.source)]


def _changes(changes: models.Changes | None) -> list[str]:
    """Return what a trial would change, and whether that is all."""
    if changes is None:
        return ["It is not known which variables it would change"]
    shown = changes.variables[-CHANGES:]
    told = [_change_text(each) for each in shown]
    more = len(changes.variables) - len(shown) + changes.more_variables
    told += [f"{more} more"] if more else []
    words = [f"It would change {', '.join(told)}"] if told else []
    if changes.not_compared:
        words.append(f"Not compared: {counted(changes.not_compared, 'variable')}")
    return words


def _change_text(change: models.VariableChange) -> str:
    """Return what becomes of a variable, as in "sales: 400 → 0 rows"."""
    before, name = change.before, change.name
    if change.change != "changed" or before is None:
        word = {"added": "new", "changed": "changed", "removed": "deleted"}[change.change]
        return f"{name}: {word}"
    if before.type != change.type:
        return f"{name}: {before.type} → {change.type}"
    if before.shape and change.shape and before.shape != change.shape:
        if len(before.shape) > 1 and before.shape[1:] == change.shape[1:]:
            return f"{name}: {before.shape[0]} → {change.shape[0]} rows"
        was, now = (" × ".join(map(str, shape)) for shape in (before.shape, change.shape))
        return f"{name}: {was} → {now}"
    if before.length != change.length:
        return f"{name}: {before.length} → {change.length}"
    if before.preview and change.preview and before.preview != change.preview:
        return f"{name}: {before.preview} → {change.preview}"
    return f"{name}: changed"


def _left_out(record: ExecutionRecord) -> list[str]:
    """Return what of the output the cell lacks, and how to have it."""
    unknown = ["Some output may be missing; nobody knows how much"]
    return [*_not_kept(record), *(unknown if record.omitted.unknown else ())]


def _not_kept(record: ExecutionRecord) -> list[str]:
    omitted = record.omitted
    if not omitted.bytes:
        return []
    size = counted(omitted.bytes, "byte")
    if omitted.outputs and not omitted.lines:
        return [
            f"{size} of images and other whole outputs were over the limit and not kept. Show them "
            "smaller (figsize, dpi), or save them to a file: read_file shows an image scaled down"
        ]
    if record.text is not None:
        return [f"{size} of output are not in the cell; {read_on(record.id, 0)}"]
    return [f"{size} of output were not kept"]


def _installs(source: str) -> list[str]:
    """Return where `!pip` installs, if code used it."""
    if _SHELL_PIP.search(source) is None:
        return []
    return [
        "`!pip` runs the first pip on the PATH, perhaps another environment's; `%pip install` "
        "installs where this kernel imports from, if pip is there"
    ]


def waits(waiting_for: models.WaitingFor | None, is_own: IsOwn = lambda _: False) -> str:
    """Return what something waits for, with a space before it; empty if that is not known."""
    if waiting_for is None:
        return ""
    id = waiting_for.execution_id
    if id is not None and is_own(id):
        return f' behind your own execution {id}, which stop(execution_id="{id}") ends'
    called = "" if waiting_for.agent is None else f", which calls itself {waiting_for.agent!r}"
    of = "" if id is None else f" (execution {id})"
    return {
        "agent": f" behind another agent{called}{of}",
        "person": " while the user runs code",
        "kernel": " for its kernel to be ready",
        "approval": " for the user's approval",
        "pause": ", since the user has paused all agents",
    }[waiting_for.who]


def _values(values: dict[str, models.Value] | None) -> dict[str, models.Value] | None:
    """Return values, and shorten those that are too large for the budget."""
    if values is None:
        return None
    share = budget.VALUES_BYTES // max(len(values), 1)
    return {
        name: value if len(msgspec.json.encode(value)) <= share else _shortened(value, share)
        for name, value in values.items()
    }


def _shortened(value: models.Value, limit_bytes: int) -> models.Value:
    """Return a value's type and the start of its text."""
    most = limit_bytes // 8  # a character may take six bytes as JSON
    return models.Value(
        status=value.status,
        type=None if value.type is None else cut(value.type, 100),
        shape=None if value.shape is None else value.shape[:20],
        repr=None if value.status == "error" else cut(_value_text(value), most),
        truncated=True,
        ename=None if value.ename is None else cut(value.ename, 100),
        evalue=None if value.evalue is None else cut(value.evalue, most),
    )


def _value_text(value: models.Value) -> str:
    if value.status == "error":
        return f"{value.ename}: {value.evalue}"
    if value.json is not msgspec.UNSET:
        return msgspec.json.encode(value.json).decode()
    told: dict[str, Any] = msgspec.to_builtins(replace(value, repr=None))
    del told["status"]
    told.pop("truncated", None)
    described = msgspec.json.encode(told).decode() if told else ""
    return " ".join(part for part in (value.repr, described) if part)
