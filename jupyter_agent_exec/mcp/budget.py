"""How much of everything an answer holds. Together it stays far below 1 MiB, whatever was asked.

Characters are counted before they are written as JSON, where some take six bytes; so a third of
`answering.MAX_ANSWER_BYTES` is for text, once as content and once structured, and two thirds for
pictures.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = 10_000
"""Characters of an execution's text: its start and its end."""

RANGE_BYTES: Final = 20_000
"""Of a range of a text, of matches in it, or of a file."""

LIST_BYTES: Final = 40_000
"""JSON of the items of a list; those that follow are counted, or on the next page."""

ITEM: Final = 1_000
"""Characters of a text within an item, such as a traceback's line or a reason."""

VALUES_BYTES: Final = 20_000
"""JSON of the values of expressions."""

PICTURES: Final = 4
"""How many images of an execution come with its answer."""

LONGEST_SIDE: Final = 1568
"""Pixels of a picture's longer side; more is scaled down by those who read it anyway."""

PICTURE: Final = 200_000
"""Characters of base64 of one picture."""

ALL_PICTURES: Final = 600_000
"""Characters of base64 of all pictures of an answer."""

DECODED_PIXELS: Final = 40_000_000
"""Of an image that is decoded at all: 160 MB in memory."""

ENCODED_BYTES: Final = 30_000_000
"""Of an image that is decoded at all."""

SVG_BYTES: Final = 2_000_000
"""Of an SVG that is drawn."""

RESOURCE_BYTES: Final = 900_000
"""Of a resource, as it is sent."""

IMAGE_LINKS: Final = 20
"""How many images of an execution are named, whether shown or not."""

CHARTS: Final = 10
"""How many charts of an execution are described."""

CELL_SOURCE: Final = 4_000
"""Characters of a cell's source, among others; of one alone, `TEXT`."""

CELL_TEXT: Final = 2_000
"""Characters of what a cell's outputs say, among others; of one alone, `TEXT`."""

EDITS: Final = 100
"""How many edits are told of one by one in words."""

RESOURCE_TEXT: Final = 150_000
"""Bytes of an execution's text as a resource; what follows is read by range."""
