"""Makes an execution's outputs from its entries, with or without their large values. Pure.

Only the sizes of images are read from the disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from ..models import ExecutionError, LeftOut, Omitted
from ..records import (
    BlobRef,
    Brief,
    DisplayUpdated,
    ExecutionRecord,
    Finished,
    KeptImage,
    LateOutput,
)
from ..text.model_text import images, pixels
from ..text.widgets import with_widget_texts
from ..types import IMAGE_TYPES, JSON, Digest, ExecutionId, Output
from .blobs import BlobStore, unpack_outputs
from .lines import Line

ReadBlob = Callable[[Digest], bytes | None]
"""Returns a payload's bytes, or None if it is gone."""


class Outputs:
    """An execution's outputs, with late ones appended and display updates applied.

    Parameters
    ----------
    execution_id
        The execution.
    lines
        All of its lines, in order.
    read_blob
        Reads payloads that are not on the lines.
    brief
        Read no blobs of the outputs, and leave large values out.
    """

    def __init__(
        self,
        execution_id: ExecutionId,
        lines: Sequence[Line],
        read_blob: ReadBlob,
        *,
        brief: bool = False,
    ) -> None:
        self.outputs: list[Output] = []
        self.blobs: list[BlobRef] = []
        self.brief: Brief | None = None
        self.omitted = Omitted()
        self.redacted = 0
        self.missing = False
        self._brief = brief
        self._failed: int | None = None
        self._inline = {d: text for line in lines for d, text in line.payloads.items()}
        self._read_blob = read_blob
        for line in lines:
            entry = line.entry
            if isinstance(entry, (Finished, LateOutput)):
                self._append(entry)
            elif isinstance(entry, DisplayUpdated):
                self._update(execution_id, entry)
        if brief:
            self.outputs, left_out = leave_out(self.outputs, self.blobs)
            self.brief = Brief(left_out=left_out, images=())

    @property
    def error(self) -> ExecutionError | None:
        """The exception that ended the execution."""
        if self._failed is None:
            return None
        output = self.outputs[self._failed]
        return ExecutionError(
            ename=output["ename"], evalue=output["evalue"], traceback=output["traceback"]
        )

    def read(self, digest: Digest) -> bytes | None:
        """Return a payload's bytes; None if it is gone, which sets `missing`."""
        text = self._inline.get(digest)
        data = self._read_blob(digest) if text is None else text.encode("utf-8")
        self.missing = self.missing or data is None
        return data

    def text(self, digest: Digest) -> str:
        """Return a payload's text; empty if it is gone."""
        data = self.read(digest)
        return "" if data is None else data.decode("utf-8")

    def _unpack(self, outputs: Digest | None, blobs: Sequence[BlobRef]) -> list[Output]:
        data = None if outputs is None else self.read(outputs)
        if data is None:
            return []
        if self._brief:
            whole: list[Output] = json.loads(data)
            return whole
        return unpack_outputs(data, blobs, self.read)

    def _append(self, entry: Finished | LateOutput) -> None:
        start = len(self.outputs)
        more = self._unpack(entry.outputs, entry.blobs)
        self.outputs += more
        if more:
            self.blobs += [_moved(ref, int(ref.at[0]) + start) for ref in entry.blobs]
        self.omitted = Omitted(
            bytes=self.omitted.bytes + entry.omitted.bytes,
            lines=self.omitted.lines + entry.omitted.lines,
            outputs=self.omitted.outputs + entry.omitted.outputs,
            unknown=self.omitted.unknown or entry.omitted.unknown,
        )
        self.redacted += entry.redacted
        if isinstance(entry, Finished) and entry.error:
            errors = [n for n, output in enumerate(more) if output.get("output_type") == "error"]
            self._failed = errors[-1] if errors else None

    def _update(self, execution_id: ExecutionId, entry: DisplayUpdated) -> None:
        for target in entry.targets:
            if target.execution_id != execution_id or target.index >= len(self.outputs):
                continue
            update = self._unpack(entry.outputs, entry.blobs)
            if not update:
                continue
            changed = {key: update[0].get(key, {}) for key in ("data", "metadata")}
            self.outputs[target.index] = {**self.outputs[target.index], **changed}
            self.blobs = [
                ref for ref in self.blobs if ref.at[0] != target.index or ref.at[1] not in changed
            ]
            self.blobs += [_moved(ref, target.index) for ref in entry.blobs]


def _moved(ref: BlobRef, index: int) -> BlobRef:
    return replace(ref, at=(index, *ref.at[1:]))


LARGE_BYTES: Final = 8192
"""An output with more text or data than this is left empty."""
ALL_BYTES: Final = 65_536
"""After this many bytes of an execution's outputs, smaller values are left empty too."""

_Place = tuple[int | str, ...]

_CONTENT: Final[dict[str, Callable[[], Any]]] = {"text": str, "data": dict, "traceback": list}
"""The fields of an output that hold its content, and their empty values."""


def is_image(ref: BlobRef) -> bool:
    """Whether a blob is an image that can be shown unchanged."""
    return ref.mimetype in IMAGE_TYPES and ref.mimetype == ref.at[-1]


def read_outputs(record: ExecutionRecord) -> Sequence[Output]:
    """Return the outputs as text shows them: a widget's text is what it showed at the end."""
    return with_widget_texts(record.outputs, record.widget_texts)


def brief(record: ExecutionRecord) -> ExecutionRecord:
    """Return a record without its values and the large values of its outputs."""
    if record.brief is not None:
        return record
    images = kept_images(record.outputs, record.blobs)
    outputs, left_out = leave_out(record.outputs, record.blobs)
    left = Brief(left_out=left_out, images=images)
    return replace(record, outputs=outputs, values=None, brief=left)


def kept_images(outputs: Sequence[Output], refs: Sequence[BlobRef]) -> tuple[KeptImage, ...]:
    """Return the images of complete outputs, with their blobs."""
    digests = {ref.at: ref.sha256 for ref in refs if is_image(ref)}
    return tuple(
        KeptImage(
            output=image.output,
            mimetype=image.mimetype,
            width=image.width,
            height=image.height,
            bytes=image.bytes,
            sha256=digests.get((image.output, "data", image.mimetype)),
        )
        for image in images(outputs)
    )


def leave_out(
    outputs: Sequence[Output], refs: Sequence[BlobRef]
) -> tuple[list[Output], tuple[LeftOut, ...]]:
    """Return valid outputs without images and large values, and a list of what was left out.

    Parameters
    ----------
    outputs
        Complete outputs, or outputs with null for each value in `refs`.
    refs
        The values that are in blobs.
    """
    blobs = {ref.at: ref for ref in refs}
    kept: list[Output] = []
    left: list[LeftOut] = []
    room = ALL_BYTES
    for index, output in enumerate(outputs):
        sizes = {
            place: blobs[place].bytes if place in blobs else _size(value)
            for place, value in _values(index, output)
        }
        apart = [place for place in sizes if place in blobs]
        shown = [place for place in apart if is_image(blobs[place])]
        size = sum(sizes.values()) - sum(sizes[place] for place in shown)
        if len(shown) < len(apart) or size > min(LARGE_BYTES, room):
            kept.append(_emptied(index, output, sizes))
            left.append(_told(index, sizes, [at for at in sizes if at[1] in _CONTENT]))
            continue
        room -= size
        kept.append(_without(output, shown))
        if shown:
            left.append(_told(index, sizes, shown))
    return kept, tuple(left)


def _values(index: int, output: Output) -> Iterator[tuple[_Place, JSON]]:
    for key, value in output.items():
        if key == "data" and isinstance(value, dict):
            for mimetype, item in value.items():
                yield (index, key, mimetype), item
        else:
            yield (index, key), value


def _size(value: JSON) -> int:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text.encode("utf-8", "surrogatepass"))


def _emptied(index: int, output: Output, sizes: Mapping[_Place, int]) -> Output:
    """Return an output without text, data and any other large value."""
    empty: Output = {}
    for key, value in output.items():
        if key in _CONTENT:
            empty[key] = _CONTENT[key]()
        elif sizes[index, key] > LARGE_BYTES:
            empty[key] = {} if key == "metadata" else ""  # an error's name or value
        else:
            empty[key] = value
    return empty


def _without(output: Output, places: Sequence[_Place]) -> Output:
    if not places:
        return output
    mimetypes = {place[-1] for place in places}
    data = {key: value for key, value in output["data"].items() if key not in mimetypes}
    return {**output, "data": data}


def _told(index: int, sizes: Mapping[_Place, int], places: Sequence[_Place]) -> LeftOut:
    mimetypes = [str(place[2]) for place in places if len(place) > 2]
    return LeftOut(
        index=index,
        bytes=sum(sizes[place] for place in places),
        mimetypes=mimetypes or ["text/plain"],
    )


def pictures_of(blobs: Sequence[BlobRef], store: BlobStore) -> list[KeptImage]:
    """Return the images in the order of their outputs, one for each: raster rather than SVG."""
    chosen: dict[int, BlobRef] = {}
    for ref in blobs:
        index = int(ref.at[0])
        if is_image(ref) and (index not in chosen or _rank(ref) < _rank(chosen[index])):
            chosen[index] = ref
    return [_picture(index, chosen[index], store) for index in sorted(chosen)]


def _rank(ref: BlobRef) -> int:
    return IMAGE_TYPES.index(ref.mimetype)


def _picture(index: int, ref: BlobRef, store: BlobStore) -> KeptImage:
    width, height = _pixels(store.path(ref.sha256))
    return KeptImage(
        output=index,
        mimetype=ref.mimetype,
        width=width,
        height=height,
        bytes=ref.bytes,
        sha256=ref.sha256,
    )


def _pixels(path: Path) -> tuple[int, int] | tuple[None, None]:
    """Return width and height, of which only the start of the file has to be read."""
    try:
        with path.open("rb") as file:
            return pixels(file)
    except OSError:
        return None, None
