"""Images as they are shown to a model."""

from __future__ import annotations

import base64
import io
import os
import sys
import zlib
from typing import Any

import pytest
from PIL import Image, ImageDraw

from jupyter_agent_exec.mcp import budget, pictures
from jupyter_agent_exec.mcp.pictures import NotShown, Picture, picture
from jupyter_agent_exec.text.model_text import FoundImage, images


def found(data: bytes | str, mimetype: str = "image/png") -> FoundImage:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    output = {"output_type": "display_data", "data": {mimetype: text}, "metadata": {}}
    return images([output])[0]


def saved(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    return Image.frombytes(mode, (width, height), os.urandom(width * height * len(mode)))


def shown(data: bytes | str, mimetype: str = "image/png") -> Picture:
    made = picture(found(data, mimetype))
    assert isinstance(made, Picture), made
    return made


def why_not(data: bytes | str, mimetype: str = "image/png") -> str:
    made = picture(found(data, mimetype))
    assert isinstance(made, NotShown), made
    return made.why


def decoded(made: Picture) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(made.data)))


@pytest.mark.parametrize("format", ["PNG", "JPEG"])
def test_a_small_image_is_shown_as_it_is(format: str) -> None:
    data = saved(noise(64, 48), format)
    made = shown(data, f"image/{format.lower()}")
    assert base64.b64decode(made.data) == data
    assert (made.mimetype, made.note) == (f"image/{format.lower()}", None)


def test_a_large_plot_is_scaled_down_and_stays_png() -> None:
    plot = Image.new("RGB", (4000, 2400), "white")
    ImageDraw.Draw(plot).line((0, 0, 4000, 2400), "black", 9)
    made = shown(saved(plot))
    assert made.mimetype == "image/png"
    assert decoded(made).size == (1568, 941)
    assert made.note == "scaled down from 4000×2400"


def test_noise_becomes_a_jpeg_within_the_budget() -> None:
    made = shown(saved(noise(2000, 1000), compress_level=1))
    assert made.mimetype == "image/jpeg"
    assert len(made.data) <= budget.PICTURE
    assert decoded(made).format == "JPEG"
    assert decoded(made).width < budget.LONGEST_SIDE


def test_what_is_transparent_is_white_as_jpeg() -> None:
    image = noise(800, 800, "RGBA")
    image.paste((10, 20, 30, 0), (0, 0, 400, 800))
    made = shown(saved(image, compress_level=1))
    assert made.mimetype == "image/jpeg"
    flat = decoded(made).convert("RGB")
    assert min(flat.getpixel((flat.width // 8, 10))) > 240


@pytest.mark.parametrize(
    ("format", "mode"),
    [
        *(("PNG", mode) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")),
        *(("JPEG", mode) for mode in ("1", "L", "RGB", "CMYK")),
        *(("GIF", mode) for mode in ("1", "L", "P", "RGB", "RGBA")),
        *(("WEBP", mode) for mode in ("L", "RGB", "RGBA")),
        *(("BMP", mode) for mode in ("1", "L", "P", "RGB", "RGBA")),
    ],
)
def test_every_mode_that_a_format_holds_is_shown(format: str, mode: str) -> None:
    data = saved(Image.new(mode, (1600, 20)), format)
    made = shown(data, f"image/{format.lower()}")
    assert decoded(made).size == (1568, 20)


def test_of_an_animation_the_first_frame_is_shown() -> None:
    frames = [Image.new("RGB", (40, 30), color) for color in ("red", "green", "blue")]
    data = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    made = shown(data, "image/gif")
    assert made.note == "the first of 3 frames"
    assert decoded(made).convert("RGB").getpixel((5, 5)) == (255, 0, 0)


def test_a_photo_is_shown_upright() -> None:
    image = Image.new("RGB", (2000, 500), "red")
    exif = image.getexif()
    exif[0x0112] = 6  # turned by 90 degrees
    made = shown(saved(image, "JPEG", exif=exif), "image/jpeg")
    width, height = decoded(made).size
    assert height > width


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.95])
@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_an_image_that_is_cut_off_is_told_not_shown(format: str, keep: float) -> None:
    data = saved(noise(300, 200), format)
    made = picture(found(data[: int(len(data) * keep)], f"image/{format.lower()}"))
    assert isinstance(made, NotShown)
    assert "damaged" in made.why


@pytest.mark.parametrize("data", [b"\0", b"GIF89a", b"no image at all", b"%PDF-1.7\n"])
def test_what_is_no_image_is_told(data: bytes) -> None:
    assert "damaged" in why_not(data)


def chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data).to_bytes(4, "big")
    return len(data).to_bytes(4, "big") + kind + data + check


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few kB that takes gigabytes when it is decoded."""
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    rows = zlib.compress(bytes(1_000_000), 9)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("size", [(50_000, 50_000), (8_000, 6_000)])
def test_a_decompression_bomb_is_not_decoded(size: tuple[int, int]) -> None:
    assert "too large to be decoded" in why_not(bomb(*size))


def test_a_bomb_whose_size_is_not_known_before_is_not_decoded_either() -> None:
    image = FoundImage(
        mimetype="image/png", width=None, height=None, data=bomb(50_000, 50_000), output=0
    )
    made = picture(image)
    assert isinstance(made, NotShown)
    assert "too large to be decoded" in made.why


def test_data_beyond_the_limit_is_not_looked_at() -> None:
    data = saved(noise(10, 10)) + bytes(budget.ENCODED_BYTES)
    assert "not looked at" in why_not(data)


def test_all_pictures_together_are_within_the_budget() -> None:
    image = found(saved(noise(1000, 700), compress_level=1))
    made = pictures.pictures([image] * 6)
    sizes = [len(each.data) for each in made if isinstance(each, Picture)]
    assert len(sizes) == budget.PICTURES
    assert sum(sizes) <= budget.ALL_PICTURES
    assert max(sizes) <= budget.PICTURE
    assert [type(each) for each in made[4:]] == [NotShown, NotShown]


def test_without_pillow_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved(noise(10, 10))
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "Pillow" in why_not(data)


def test_an_svg_is_not_drawn() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50"/>'
    assert why_not(svg, "image/svg+xml") == "SVG is not drawn; display it as PNG to see it."
