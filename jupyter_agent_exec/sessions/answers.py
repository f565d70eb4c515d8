"""Turns records into answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec.structs import asdict, replace

from ..journal.notebook import cell
from ..journal.outputs import kept_images, read_outputs
from ..journal.query import ExecutionImage
from ..models import (
    Comment,
    DecidedEdit,
    Execution,
    ExecutionReference,
    Image,
    Input,
    Lookalikes,
    ProposedEdit,
    RecordedImage,
    derive,
)
from ..records import ExecutionRecord, KeptImage, digest_of
from ..text.inert import inert as inert_copy
from ..text.lookalikes import lookalike_words
from ..text.model_text import ReadOn, model_text, transcript, without_library_frames
from ..types import OF_EARLIER, Digest, EditStatus, ExecutionId

NAMESPACE = "api/agent-exec"

MAX_CELLS: Final = 50
"""How many cells a sentence names."""

_NOTES = {
    "timed_out": "The execution timed out and was interrupted.",
    "interrupted": "The execution was interrupted.",
    "kernel_died": "The kernel died; its variables are gone.",
    "cancelled": "The execution was cancelled before it ran.",
    "awaiting_approval": "It has not run: it waits for a person to approve it in JupyterLab.",
    "rejected": "The execution was rejected; it was not run.",
    "lost": "The server died while the execution ran; what it did is not known.",
}


_EDITS_CELL: Final = (
    "Edits are proposed here: the cell keeps its source, or is not there, unless the person "
    "approves the edit and the run, as one."
)

NO_STDIN: Final = "StdinNotImplementedError"
"""Name of the exception that IPython raises if code requests input but may not."""

_NO_STDIN_NOTE: Final = (
    "Code in this session cannot ask for input. Write the value into the code, or open a session "
    "with allow_stdin, where an execution waits for what you or a person give it."
)


def execution(record: ExecutionRecord, base_url: str, *, inert: bool = False) -> Execution:
    """Answer with an execution.

    Parameters
    ----------
    base_url
        The path at which the client reaches the server, with a slash at both ends.
    inert
        Whether its cell has an inert copy of its outputs.
    """
    brief = record.brief
    return derive(
        Execution,
        record,
        source_sha256=digest_of(record.source.encode()),
        cell=_inert_cell(record) if inert else cell(record),
        text=""
        if brief
        else text(
            record,
            partial(over_http, record.id, base_url),
        ),
        images=images(record, base_url),
        duration=duration(record),
        left_out=list(brief.left_out) if brief else [],
        lookalikes=_lookalikes(record),
    )


def _lookalikes(record: ExecutionRecord) -> Lookalikes:
    asked = record.approval
    if asked is None:
        return lookalike_words(record.source)
    behind = [each.source for each in asked.also]
    return lookalike_words(record.source, asked.before, asked.asked_source, *behind)


def _inert_cell(record: ExecutionRecord) -> dict[str, Any]:
    """Return the cell of an execution with an inert copy of its outputs."""
    outputs, held = inert_copy(record.outputs)
    made = cell(replace(record, outputs=outputs))
    made["metadata"]["agent_exec"] |= {"outputs": "held" if held else "inert", "held": held}
    return made


def text(
    record: ExecutionRecord,
    read_on: ReadOn,
    *,
    limit: int = 10_000,
) -> str:
    """Return the text for a language model: the outputs, then how it ended if it failed.

    Parameters
    ----------
    limit
        Maximum characters of the outputs' text.
    """
    whole = transcript(without_library_frames(read_outputs(record)))
    read = model_text(whole, limit=limit, read_on=read_on)
    said = notes(record)
    if not said:
        return read
    return "\n".join([*([read.rstrip("\n")] if read else []), *(f"[{note}]" for note in said)])


def notes(record: ExecutionRecord) -> list[str]:
    """Return sentences about an execution for a language model, in addition to its outputs."""
    notes: list[str] = []
    if record.redacted:
        notes.append(
            f"Replaced by [redacted: …] in what is recorded and shown: {record.redacted}. The code "
            "itself ran with the secrets."
        )
    if record.kernel is not None and record.kernel.restarted:
        notes.append(
            f"The kernel has its variables of an earlier time ({record.kernel.reason})."
            if record.kernel.reason in OF_EARLIER
            else f"The kernel is a fresh one ({record.kernel.reason}); earlier variables are gone."
        )
    if record.reason is not None or record.status in _NOTES:
        notes.append(record.reason or _NOTES[record.status])
    if record.status == "awaiting_approval" and record.approval is not None:
        notes += [_EDITS_CELL] if record.approval.edits_cell else []
        behind = len(record.approval.also)
        if behind:
            notes.append(f"One approval lets it run, and the {behind} behind it in the restore.")
    if record.input is not None:
        notes.append(_asks_for(record.input))
    if record.error is not None and record.error.ename == NO_STDIN:
        notes.append(_NO_STDIN_NOTE)
    if record.interrupt_ignored:
        notes.append("The code ignored the interrupt; restart the session's kernel to end it.")
    if record.restored:
        notes.append("Code of the earlier kernel ran again.")
    return notes + edit_notes(record.decided_edits) + [_about(each) for each in record.comments]


def _about(told: Comment) -> str:
    """Return a sentence about a user's comment."""
    verdict = "" if told.verdict is None else f" ({told.verdict})"
    return f"The user wrote about cell {told.seq}{verdict}: {told.comment}"


_EDIT_NOTES: Final[dict[EditStatus, str]] = {
    "kept": "The user kept your proposed edits of cells",
    "rejected": "The user rejected your proposed edits of cells",
    "undone": "The user has undone what you changed or ran, in the notebook only, in cells",
    "open": "Your edits are not in the notebook and open again, for the user to decide, in cells",
    "obsolete": "Your proposed edits do not fit any more, and were not made, in cells",
}


def edit_notes(decided: Sequence[DecidedEdit | ProposedEdit]) -> list[str]:
    """Return sentences about what became of an agent's proposed edits."""
    notes: list[str] = []
    for status, sentence in _EDIT_NOTES.items():
        cells = list(dict.fromkeys(edit.cell_id for edit in decided if edit.status == status))
        if cells:
            more = f" and {len(cells) - MAX_CELLS} more" if len(cells) > MAX_CELLS else ""
            notes.append(f"{sentence} {', '.join(cells[:MAX_CELLS])}{more}.")
    for edit in decided:
        if edit.edited:
            notes.append(f"The user kept cell {edit.cell_id} with another source: read it.")
        elif edit.status == "rejected" and edit.reason is not None:
            notes.append(f"The user says of cell {edit.cell_id}: {edit.reason}")
    return notes


def _asks_for(input: Input) -> str:
    """Return a sentence about an input request."""
    what = "a password" if input.password else "input"
    return f"The code waits for {what}: {input.prompt!r}. Answer it, or interrupt it."


def duration(record: ExecutionRecord) -> float | None:
    """Return the seconds that an execution ran; None if unknown.

    Older records have only wall times, which are wrong if the clock was set back meanwhile.
    """
    started_at, finished_at = record.started_at, record.finished_at
    if record.duration is not None or started_at is None or finished_at is None:
        return record.duration
    between = datetime.fromisoformat(finished_at[:-1]) - datetime.fromisoformat(started_at[:-1])
    return between.total_seconds() if between.total_seconds() >= 0 else None


def images(record: ExecutionRecord, base_url: str) -> list[Image]:
    """Return the images of an execution in the order of their numbers in its text."""
    brief = record.brief
    kept = kept_images(record.outputs, record.blobs) if brief is None else brief.images
    return [_image(image, base_url) for image in kept]


def _image(image: KeptImage, base_url: str) -> Image:
    url = None if image.sha256 is None else blob_url(image.sha256, base_url)
    return derive(Image, image, url=url)


def recorded_image(pictured: ExecutionImage, base_url: str) -> RecordedImage:
    """Answer with an image of the history."""
    image, execution = pictured.image, asdict(derive(ExecutionReference, pictured))
    assert image.sha256 is not None  # it is in the history
    return derive(RecordedImage, image, **execution, url=blob_url(image.sha256, base_url))


def over_http(id: ExecutionId, base_url: str, offset: int) -> str:
    """Return how to read on in an execution's text."""
    return f"GET {base_url}{NAMESPACE}/executions/{id}/text?offset={offset}"


def blob_url(digest: Digest, base_url: str) -> str:
    """Return the path at which a payload is read."""
    return f"{base_url}{NAMESPACE}/blobs/{digest}"
