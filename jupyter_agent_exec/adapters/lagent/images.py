"""Images as files in an interpreter's folder."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path
from typing import Final
from uuid import uuid4

from ..outputs import Picture

_PNG: Final = b"\x89PNG\r\n\x1a\n"


def saved(picture: Picture, work_dir: str) -> str:
    """Write a picture into the folder, which is made if it is gone; return its path there."""
    os.makedirs(work_dir, exist_ok=True)
    return os.path.join(work_dir, picture.save(Path(work_dir), str(uuid4())).name)


def publish_image_to_local(image_base64: str, work_dir: str = "./work_dir/tmp_dir") -> str:
    """Write an image as PNG into a folder, and return its path.

    Parameters
    ----------
    image_base64
        Of any type that Pillow reads.
    work_dir
        The folder; it is made if it is not there.

    Raises
    ------
    ValueError
        It is not base64.
    OSError
        It is no image, or cannot be written.
    """
    data = base64.b64decode(image_base64)
    if not data.startswith(_PNG):
        from PIL import Image

        converted = io.BytesIO()
        Image.open(io.BytesIO(data)).save(converted, "png")
        data = converted.getvalue()
    return saved(Picture(mimetype="image/png", data=data), work_dir)
