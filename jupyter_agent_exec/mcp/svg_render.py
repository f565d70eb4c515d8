"""A script that draws an SVG as PNG; see `pictures.py`.

It runs in its own process, so that a slow SVG does not block the server, and a crash of the
library does not end it. It reads a JSON object from standard input.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from xml.etree import ElementTree

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 5
REFUSED = 3
"""Exit code for an invalid SVG. Standard error then has the reason."""

EMBEDDED = re.compile(r"\s*data:image/(?:png|jpeg|gif|webp);base64,")
"""A raster image embedded in the SVG. An embedded SVG could refer to other files."""


def without_references(svg: str) -> str:
    """Return an SVG without references to anything outside it.

    Raises
    ------
    ValueError
        The text is not XML, or defines entities.
    """
    if "<!ENTITY" in svg:
        raise ValueError("it defines entities")
    try:
        root = ElementTree.fromstring(svg)  # noqa: S314 -- no entities; expat fetches nothing
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None
    for element in root.iter():
        for name in list(element.attrib):
            if name.rpartition("}")[2] == "href":
                value = element.attrib[name]
                if not value.strip().startswith("#") and not EMBEDDED.match(value):
                    del element.attrib[name]
    return ElementTree.tostring(root, encoding="unicode")


def main() -> None:
    """Write the PNG to standard output, or the reason for a refusal to standard error."""
    request = json.load(sys.stdin)
    sys.path[:] = request["path"]
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    import resvg_py

    try:
        svg = without_references(request["svg"])
        png = resvg_py.svg_to_bytes(
            svg_string=svg, width=request["width"], height=request["height"]
        )
    except (ValueError, RecursionError) as error:
        sys.stderr.write(f"It cannot be drawn: {error}.")
        sys.exit(REFUSED)
    sys.stdout.buffer.write(png)


if __name__ == "__main__":
    main()
