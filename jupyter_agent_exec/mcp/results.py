"""A tool's answer about an execution: text for the model, and structured content for programs.

Some clients show a model only the content, others only the structured content. So each is complete
by itself, except that only the content has pictures. Both stay within the limits in `budget`.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec
from mcp_types import ContentBlock, ImageContent, ResourceLink, TextContent
from msgspec.structs import replace

from ..errors import NotFound
from ..models import Answer, Document, ExecutionKernel, Input, Omitted, Value, WaitingFor, derive
from ..records import ExecutionRecord
from ..sessions import answers
from ..text import FoundImage, images, output_size
from ..types import FINAL_STATUSES, ExecutionId, Output, SessionId, Status
from . import budget
from .pictures import NotShown, Picture, pictures
from .tool import Answered

T = TypeVar("T")

LARGE = 1 << 18
"""Characters of outputs above which a thread makes the answer."""


class ErrorAnswer(Answer, frozen=True, kw_only=True):
    """The exception that ended an execution. The text has its traceback."""

    ename: str
    evalue: str


class ImageAnswer(Answer, frozen=True, kw_only=True):
    """An original image that an execution produced. The image in the answer may be smaller."""

    number: int
    """Its number in the text."""
    mimetype: str
    width: int | None
    height: int | None
    bytes: int
    uri: str
    """URI of the resource with the original."""
    shown: bool
    """Whether the answer has the image, or a smaller copy, as image content."""
    note: str | None
    """How the shown image differs from the original, or why it is not shown."""


class ExecutionAnswer(Answer, frozen=True, kw_only=True):
    """An execution."""

    execution_id: ExecutionId
    session_id: SessionId
    seq: int
    """Number of the execution in its session, from 1."""
    status: Status
    finished: bool
    """Whether the status is final."""
    text: str
    """The text of its outputs. A long text is cut to its start and end."""
    notes: list[str]
    """Remarks about the outputs, and what to do next."""
    reason: str | None
    """A sentence that explains a status other than ok and error."""
    kernel: ExecutionKernel | None
    """`restarted`: the kernel is new since the previous execution, and variables are gone."""
    error: ErrorAnswer | None
    values: dict[str, Value] | None
    """Values of the expressions in the request, by name."""
    images: list[ImageAnswer]
    execution_count: int | None
    duration: float | None
    """Seconds."""
    outputs_complete: bool
    omitted: Omitted
    """Exactly how much of the outputs was not kept."""
    interrupt_ignored: bool
    """Whether the code continued after an interrupt."""
    waiting_for: WaitingFor | None
    document: Document | None
    """Where its cell is in the notebook, and whether it was written."""
    input: Input | None
    """The input that its code waits for."""


def read_on(id: ExecutionId, offset: int) -> str:
    """Return the tool call that reads an execution's text from a byte offset on."""
    return f'get_execution(execution_id="{id}", offset={offset})'


async def execution_answer(record: ExecutionRecord) -> Answered:
    """Return the answer about an execution."""
    found = images(record.outputs)
    shown = await asyncio.to_thread(pictures, found) if found else []
    told = [
        _image(record.id, number, image, picture)
        for number, (image, picture) in enumerate(zip(found, shown, strict=True), 1)
    ]
    make = partial(_execution, record, told)
    if output_size(record.outputs, most=LARGE) < LARGE:
        structured = make()
    else:
        structured = await asyncio.to_thread(make)
    content: list[ContentBlock] = [TextContent(text=_content_text(structured))]
    content += [
        ImageContent(data=picture.data, mime_type=picture.mimetype)
        for picture in shown
        if isinstance(picture, Picture)
    ]
    content += [_link(image) for image in told[: budget.IMAGE_LINKS]]
    return Answered(content=content, structured=structured)


def cut(text: str, limit: int = budget.ITEM) -> str:
    """Return a text, cut to `limit` characters with a note of how many are left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}[… {len(text) - limit:,} characters left out]"


def fitting(items: Sequence[T], limit_bytes: int = budget.LIST_BYTES) -> list[T]:
    """Return the first items whose JSON fits the limit, but at least one."""
    size = 0
    for index, item in enumerate(items):
        size += len(msgspec.json.encode(item)) + 1
        if size > limit_bytes and index:
            return list(items[:index])
    return list(items)


# -- helpers -----------------------------------------------------------------------------------


def _execution(record: ExecutionRecord, told: list[ImageAnswer]) -> ExecutionAnswer:
    error = record.error
    return derive(
        ExecutionAnswer,
        record,
        execution_id=record.id,
        finished=record.status in FINAL_STATUSES,
        text=answers.text(record, partial(read_on, record.id)),
        notes=[*_charts(record.outputs), *_more_images(told), *_next_steps(record)],
        reason=None if record.reason is None else cut(record.reason),
        error=None
        if error is None
        else ErrorAnswer(ename=cut(error.ename, 200), evalue=cut(error.evalue)),
        values=_values(record.values),
        images=told[: budget.IMAGE_LINKS],
        duration=answers.duration(record),
    )


def _content_text(told: ExecutionAnswer) -> str:
    """Return the text for the model: the outputs, then notes, then the status."""
    parts = [told.text.rstrip("\n")] if told.text else []
    for name, value in (told.values or {}).items():
        parts.append(f"{name} = {_value_text(value)}")
    parts += [f"[{_image_note(image)}]" for image in told.images]
    parts += [f"[{note}]" for note in told.notes]
    took = "" if told.duration is None else f", {told.duration:.2f} s"
    nothing = "" if told.text or told.images or not told.finished else ", no output"
    parts.append(f"[execution {told.execution_id} (#{told.seq}): {told.status}{took}{nothing}]")
    return "\n".join(parts)


def _image(
    id: ExecutionId, number: int, image: FoundImage, shown: Picture | NotShown
) -> ImageAnswer:
    is_shown = isinstance(shown, Picture)
    return ImageAnswer(
        number=number,
        mimetype=image.mimetype,
        width=image.width,
        height=image.height,
        bytes=image.bytes,
        uri=image_uri(id, image.output),
        shown=is_shown,
        note=shown.note if isinstance(shown, Picture) else shown.why,
    )


def _image_note(image: ImageAnswer) -> str:
    if not image.shown:
        return f"image {image.number} is not shown: {image.note}"
    how = "" if image.note is None else f", {image.note}"
    return f"image {image.number} is below{how}"


def _more_images(told: list[ImageAnswer]) -> list[str]:
    more = len(told) - budget.IMAGE_LINKS
    return [] if more <= 0 else [f"{more:,} more images are in the exported notebook"]


def _link(image: ImageAnswer) -> ResourceLink:
    return ResourceLink(
        name=f"image {image.number}",
        uri=image.uri,
        description="The original.",
        mime_type=image.mimetype,
        size=image.bytes,
    )


def _charts(outputs: Sequence[Output]) -> list[str]:
    found = (chart_text(output) for output in outputs)
    charts = [text for text in found if text is not None]
    more = len(charts) - budget.CHARTS
    told = [cut(text) for text in charts[: budget.CHARTS]]
    return [*told, *([f"{more:,} more charts"] if more > 0 else [])]


def _next_steps(record: ExecutionRecord) -> list[str]:
    wait = f'get_execution(execution_id="{record.id}", wait=30) waits for it'
    if record.status == "awaiting_approval":
        return [f"A person has to let it run; tell them. {wait}"]
    if record.status == "queued":
        return [f"It waits{_behind(record.waiting_for)}; do not send it again. {wait}"]
    if record.status == "awaiting_input":
        answer = f'give_input(execution_id="{record.id}", value=…) answers'
        return [f"{answer}, cancel_execution ends it; a password is for a person to give"]
    if record.status == "running":
        return [f"It goes on; do not send it again. {wait}"]
    left_out = record.omitted.bytes
    if left_out and record.text is not None:
        return [f"{left_out:,} bytes of output are not in the cell; {read_on(record.id, 0)}"]
    return [f"{left_out:,} bytes of output were not kept"] if left_out else []


def _behind(waiting_for: WaitingFor | None) -> str:
    if waiting_for is None:
        return ""
    return {
        "agent": f" behind another agent, which calls itself {waiting_for.agent!r}",
        "person": " while a person runs code",
        "kernel": " for its kernel to be ready",
        "approval": " for a person's approval",
        "pause": ", since a person has paused all agents",
    }[waiting_for.who]


def _values(values: dict[str, Value] | None) -> dict[str, Value] | None:
    """Return values, and shorten those that are too large for the budget."""
    if values is None:
        return None
    share = budget.VALUES_BYTES // max(len(values), 1)
    return {
        name: value if len(msgspec.json.encode(value)) <= share else _shortened(value, share)
        for name, value in values.items()
    }


def _shortened(value: Value, limit_bytes: int) -> Value:
    """Return a value's type and the start of its text."""
    most = limit_bytes // 8  # a character may take six bytes as JSON
    return Value(
        status=value.status,
        type=None if value.type is None else cut(value.type, 100),
        shape=None if value.shape is None else value.shape[:20],
        repr=None if value.status == "error" else cut(_value_text(value), most),
        truncated=True,
        ename=None if value.ename is None else cut(value.ename, 100),
        evalue=None if value.evalue is None else cut(value.evalue, most),
    )


def _value_text(value: Value) -> str:
    if value.status == "error":
        return f"{value.ename}: {value.evalue}"
    if value.json is not msgspec.UNSET:
        return msgspec.json.encode(value.json).decode()
    told: dict[str, Any] = msgspec.to_builtins(replace(value, repr=None))
    del told["status"]
    told.pop("truncated", None)
    described = msgspec.json.encode(told).decode() if told else ""
    return " ".join(part for part in (value.repr, described) if part)


__all__ = ["ExecutionAnswer", "cut", "execution_answer", "execution_uri", "fitting", "read_on"]


_PLOTLY: Final = re.compile(r"application/vnd\.plotly\.v\d+\+json")
_VEGA: Final = re.compile(r"application/vnd\.vega(?:lite)?\.v\d+(?:\.\d+)*\+json")

_MOST: Final = 20
"""Maximum number of different marks or fields to list."""

_NAME: Final = 100
"""Maximum characters of a name, a title or a field."""

_DEPTH: Final = 20
"""Maximum depth of nested views in a Vega-Lite spec."""


def chart_text(output: Output) -> str | None:
    """Return a line that describes an output's chart; None if the output is not a chart."""
    data = output.get("data")
    if not isinstance(data, Mapping):
        return None
    for mimetype, spec in data.items():
        if not isinstance(spec, Mapping):
            continue
        if _PLOTLY.fullmatch(mimetype):
            return _line("plotly chart", _plotly(spec))
        if _VEGA.fullmatch(mimetype):
            return _line("Vega chart", _vega(spec, 0))
    return None


def _line(kind: str, parts: Iterator[tuple[str, str]]) -> str:
    found: dict[str, list[str]] = {}
    for name, value in parts:
        found.setdefault(name, []).append(value)
    said = "; ".join(f"{name}: {_counted(values)}" for name, values in found.items())
    return f"{kind}: {said}" if said else kind


def _counted(values: list[str]) -> str:
    counts = Counter(values)
    named = [
        value if count == 1 else f"{value} \N{MULTIPLICATION SIGN}{count}"
        for value, count in islice(counts.items(), _MOST)
    ]
    more = len(counts) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])])


def _plotly(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    layout = spec.get("layout")
    layout = layout if isinstance(layout, Mapping) else {}
    yield from _said("title", layout.get("title"))
    traces = spec.get("data")
    for trace in traces if isinstance(traces, list) else []:
        if isinstance(trace, Mapping):
            yield from _said("traces", trace.get("type") or "scatter")
    for trace in traces if isinstance(traces, list) else []:
        if isinstance(trace, Mapping):
            yield from _said("names", trace.get("name"))
    for key, axis in layout.items():
        if re.fullmatch(r"[xyz]axis\d*", key) and isinstance(axis, Mapping):
            yield from _said("axes", axis.get("title"))


def _vega(spec: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    yield from _said("title", spec.get("title"))
    mark = spec.get("mark")
    yield from _said("marks", mark.get("type") if isinstance(mark, Mapping) else mark)
    encoding = spec.get("encoding")
    for channel, value in encoding.items() if isinstance(encoding, Mapping) else ():
        if isinstance(value, Mapping):
            field = value.get("field") or value.get("aggregate")
            yield from ((f"{_cut(str(channel))}", said) for _, said in _said("", field))
    if depth == _DEPTH:
        return
    for key in ("layer", "hconcat", "vconcat", "concat", "marks"):
        views = spec.get(key)
        for view in views if isinstance(views, list) else []:
            if isinstance(view, Mapping):
                if key == "marks":
                    yield from _said("marks", view.get("type"))
                yield from _vega(view, depth + 1)
    if isinstance(spec.get("spec"), Mapping):
        yield from _vega(spec["spec"], depth + 1)


def _said(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and the value's text, if the value has one."""
    if isinstance(value, Mapping):
        value = value.get("text")
    if isinstance(value, list):
        value = " ".join(part for part in value if isinstance(part, str))
    if isinstance(value, str) and value.strip():
        yield name, _cut(" ".join(value.split()))


def _cut(text: str) -> str:
    return text if len(text) <= _NAME else f"{text[:_NAME]}…"


SCHEME: Final = "jupyter-agent-exec"

EXECUTION_TEMPLATE: Final = f"{SCHEME}://executions/{{execution_id}}"
IMAGE_TEMPLATE: Final = f"{SCHEME}://executions/{{execution_id}}/images/{{output}}"
NOTEBOOK_TEMPLATE: Final = f"{SCHEME}://sessions/{{session_id}}/notebook"

_URI: Final = re.compile(
    rf"{SCHEME}://(?:executions/(?P<execution_id>\w{{1,100}})(?:/images/(?P<output>[0-9]{{1,9}}))?"
    r"|sessions/(?P<session_id>\w{1,100})/notebook)",
    re.ASCII,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """A resource's parsed URI. Exactly one of the two ids is None."""

    execution_id: ExecutionId | None
    output: int | None
    """Index of the output with the image; None for the execution's text."""
    session_id: SessionId | None


def execution_uri(id: ExecutionId) -> str:
    """Return the URI of an execution's text."""
    return f"{SCHEME}://executions/{id}"


def image_uri(id: ExecutionId, output: int) -> str:
    """Return the URI of an output's image."""
    return f"{SCHEME}://executions/{id}/images/{output}"


def notebook_uri(id: SessionId) -> str:
    """Return the URI of a session's notebook."""
    return f"{SCHEME}://sessions/{id}/notebook"


def named(uri: str) -> Named:
    """Parse a resource's URI; raise NotFound if it is not one of this server."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise NotFound(
            "There is no such resource; resources are named "
            f"{EXECUTION_TEMPLATE}, {IMAGE_TEMPLATE} and {NOTEBOOK_TEMPLATE}.",
            uri=uri[:200],
        )
    execution_id, output, session_id = match["execution_id"], match["output"], match["session_id"]
    return Named(
        execution_id=None if execution_id is None else ExecutionId(execution_id),
        output=None if output is None else int(output),
        session_id=None if session_id is None else SessionId(session_id),
    )
