"""A script that draws an SVG as PNG; see `pictures.py`.

It runs apart from the server, which is not held up by an SVG that takes for ever, and does not
fall with a library that does. It takes a JSON object on its standard input.
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
"""Exit code when the SVG is to blame; standard error then says why."""

EMBEDDED = re.compile(r"\s*data:image/(?:png|jpeg|gif|webp);base64,")
"""An image within the SVG itself, but no SVG, which could refer to others."""


def without_references(svg: str) -> str:
    """Return an SVG that refers to nothing outside of itself.

    Raises
    ------
    ValueError
        It is no XML, or defines entities.
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
    """Write the PNG, or a sentence to standard error."""
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
