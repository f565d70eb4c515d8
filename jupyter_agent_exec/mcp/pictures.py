"""Turn images of outputs into pictures for a language model: small and valid.

The images come from untrusted code. So only a few formats are decoded, SVG is not drawn, and only
the header of a too large image is read. All functions here block.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ..text.counts import counted
from ..text.model_text import FoundImage
from . import budget

if TYPE_CHECKING:
    from PIL import Image

Mimetype: TypeAlias = Literal["image/png", "image/jpeg"]

_SHOWN: Final[dict[str | None, Mimetype]] = {"PNG": "image/png", "JPEG": "image/jpeg"}
"""Formats in which images are shown, as Pillow calls them."""
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
_QUALITIES: Final = (85, 60)
_SHRINK: Final = 0.7


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """An image as the answer shows it."""

    mimetype: Mimetype
    data: str
    """Base64."""
    note: str | None
    """How the picture differs from the original; None if it does not."""


@dataclass(frozen=True, slots=True)
class NotShown:
    """An image that the answer does not show."""

    why: str
    """The reason, as a sentence."""


class _Refused(Exception):
    """The image cannot be shown. The message is a sentence for the model."""


def pictures(
    images: Sequence[FoundImage], room: int = budget.ALL_PICTURES
) -> list[Picture | NotShown]:
    """Return pictures of the first images, and `NotShown` for the others.

    Parameters
    ----------
    room
        Maximum base64 characters of all pictures.
    """
    shown = len(images[: budget.PICTURES])
    share = min(budget.PICTURE, room // max(shown, 1))
    if share < budget.LEAST_PICTURE:
        return [NotShown("The answer has no room for it.")] * len(images)
    more = NotShown(f"{budget.PICTURES} images are shown at once.")
    made = [picture(image, share) for image in images[:shown]]
    return [*made, *([more] * (len(images) - shown))]


def picture(image: FoundImage, limit: int = budget.PICTURE) -> Picture | NotShown:
    """Return an image as a picture, or the reason why it cannot be shown.

    Parameters
    ----------
    limit
        Maximum base64 characters.
    """
    if image.mimetype == "image/svg+xml":
        return NotShown("SVG is not drawn; display it as PNG to see it.")
    if find_spec("PIL") is None:
        return NotShown("Pillow is not installed on the server.")
    try:
        return _shown(image, limit)
    except _Refused as refused:
        return NotShown(str(refused))


def _shown(image: FoundImage, limit: int) -> Picture:
    from PIL import Image, UnidentifiedImageError

    if image.bytes > budget.ENCODED_BYTES:
        raise _Refused(f"It has {image.bytes:,} bytes; it was not looked at.")
    _check_pixels(image.width, image.height)
    try:
        with Image.open(io.BytesIO(image.data), formats=_FORMATS) as opened:
            _check_pixels(*opened.size)
            return _small(opened, image, limit)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _Refused("It is too large to be decoded.") from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError, MemoryError):
        # Pillow's plugins raise any of these for invalid data.
        raise _Refused(f"Its data is damaged, or no {image.mimetype}.") from None


def _check_pixels(width: int | None, height: int | None) -> None:
    if width is not None and height is not None and width * height > budget.DECODED_PIXELS:
        raise _Refused(f"It has {width:,} by {height:,} pixels, which is too large to be decoded.")


def _small(opened: Image.Image, image: FoundImage, limit: int) -> Picture:
    """Return a picture within the limits: the original if it fits, else a smaller copy."""
    width, height = opened.size
    frames = getattr(opened, "n_frames", 1)
    notes = [f"the first of {counted(frames, 'frame')}"] if frames > 1 else []
    if image.mimetype == "image/jpeg":
        opened.draft("RGB", (budget.LONGEST_SIDE, budget.LONGEST_SIDE))
    opened.load()
    is_small = max(width, height) <= budget.LONGEST_SIDE and _base64_size(image.bytes) <= limit
    if is_small and frames == 1 and opened.format in _SHOWN:
        mimetype, data = _SHOWN[opened.format], image.data
    else:
        plain = _plain(opened)
        plain.thumbnail((budget.LONGEST_SIDE, budget.LONGEST_SIDE))
        mimetype, data, size = _encoded(plain, limit * 3 // 4)
        if size != (width, height):
            notes.append(f"scaled down from {width}\N{MULTIPLICATION SIGN}{height}")
    text = base64.b64encode(data).decode()
    return Picture(mimetype=mimetype, data=text, note=", ".join(notes) or None)


def _plain(image: Image.Image) -> Image.Image:
    """Return an image upright and in mode L, RGB or RGBA."""
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(image)
    if upright.mode in ("L", "RGB", "RGBA"):
        return upright.copy() if upright is image else upright
    if upright.mode.startswith(("I", "F", "1")):
        return upright.convert("L")
    return upright.convert("RGBA" if upright.has_transparency_data else "RGB")


def _encoded(image: Image.Image, limit_bytes: int) -> tuple[Mimetype, bytes, tuple[int, int]]:
    """Return the smaller of PNG and JPEG, and scale the image down until it fits the limit."""
    while True:
        png = _saved(image, "PNG")
        flat = _on_white(image)
        for quality in _QUALITIES:
            jpeg = _saved(flat, "JPEG", quality=quality)
            if min(len(png), len(jpeg)) <= limit_bytes:
                if len(png) <= len(jpeg):
                    return "image/png", png, image.size
                return "image/jpeg", jpeg, image.size
        width, height = image.size
        image = image.resize((max(1, int(width * _SHRINK)), max(1, int(height * _SHRINK))))


def _on_white(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode != "RGBA":
        return image
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, mask=image.getchannel("A"))
    return flat


def _saved(image: Image.Image, format: str, **options: int) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def _base64_size(size: int) -> int:
    return (size + 2) // 3 * 4
