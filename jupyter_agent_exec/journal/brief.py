"""Outputs without what is large in them, for those who read many. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from ..models import LeftOut
from ..records import BlobRef, Brief, ExecutionRecord, KeptImage
from ..text import images
from ..types import IMAGE_TYPES, JSON, Output

LARGE_BYTES: Final = 8192
"""An output with more text or data than this is left empty."""
ALL_BYTES: Final = 65_536
"""When an execution's outputs have this much, the others are left empty too."""

_Place = tuple[int | str, ...]

_CONTENT: Final[dict[str, Callable[[], Any]]] = {"text": str, "data": dict, "traceback": list}
"""What an output holds, and what makes that empty."""


def is_image(ref: BlobRef) -> bool:
    """Whether a blob is an image that can be shown as it is."""
    return ref.mimetype in IMAGE_TYPES and ref.mimetype == ref.at[-1]


def brief(record: ExecutionRecord) -> ExecutionRecord:
    """Return a record without values and what is large in its outputs, if it still has that."""
    if record.brief is not None:
        return record
    found = kept_images(record.outputs, record.blobs)
    outputs, left_out = leave_out(record.outputs, record.blobs)
    left = Brief(left_out=left_out, images=found)
    return replace(record, outputs=outputs, values=None, brief=left)


def kept_images(outputs: Sequence[Output], refs: Sequence[BlobRef]) -> tuple[KeptImage, ...]:
    """Return the images of whole outputs, with the blobs that hold them."""
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
    """Return valid outputs without their images and without what is large, and what that was.

    Parameters
    ----------
    outputs
        Whole, or with null where `refs` has the value, which need not be read then.
    refs
        What is kept beside the journal's lines.
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
    """Return an output without text and data; of the rest, what is not large itself."""
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
