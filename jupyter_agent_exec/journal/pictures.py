"""The images among an execution's blobs, and how large they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import imagesize  # type: ignore[import-untyped]

from ..records import BlobRef, KeptImage
from ..types import IMAGE_TYPES
from .blobs import BlobStore
from .brief import is_image


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
            width, height = imagesize.get(file)
    except OSError:
        return None, None
    return (round(width), round(height)) if width > 0 and height > 0 else (None, None)
