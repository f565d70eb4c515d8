"""Make an animated picture of frames: `animate.py picture.webp 1.5:first.png 2:second.png ...`.

Each frame is shown for the seconds before its path.
"""

import sys

from PIL import Image

target, *frames = sys.argv[1:]
durations, paths = zip(*(frame.split(":", 1) for frame in frames), strict=True)
first, *others = [Image.open(path).convert("RGB") for path in paths]
first.save(
    target,
    save_all=True,
    append_images=others,
    duration=[round(float(seconds) * 1000) for seconds in durations],
    loop=0,
    lossless=True,
    method=6,
)
