"""Size limits for the parts of an answer. Every answer stays far below 1 MiB.

Characters are counted before they are encoded as JSON, where some take six bytes. Therefore text
gets a third of `tool.MAX_ANSWER_BYTES`, and pictures get two thirds. An answer holds its text
twice: as content and as structured content.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = 10_000
"""Characters of the text of one cell's source or outputs."""

RANGE_BYTES: Final = 20_000
"""Bytes of a range of an execution's text or of a file."""

LIST_BYTES: Final = 9_500
"""Bytes of JSON of a list's items. Further items are counted, or are on the next page."""

CELLS_BYTES: Final = 40_000
"""Bytes of JSON of the cells that are read in full."""

ITEM: Final = 1_000
"""Characters of a short text, such as an error message or a reason."""

VALUES_BYTES: Final = 20_000
"""Bytes of JSON of the values of expressions."""

PICTURES: Final = 4
"""Maximum number of images that an answer shows for an execution."""

LONGEST_SIDE: Final = 1568
"""Pixels of a picture's longer side. Clients scale larger pictures down anyway."""

PICTURE: Final = 200_000
"""Base64 characters of one picture."""

ALL_PICTURES: Final = 600_000
"""Base64 characters of all pictures of an answer."""

LEAST_PICTURE: Final = 10_000
"""Base64 characters that a picture needs at least to be shown."""

DECODED_PIXELS: Final = 40_000_000
"""Pixels of the largest image that is decoded: 160 MB in memory."""

ENCODED_BYTES: Final = 30_000_000
"""Bytes of the largest image file that is decoded."""

IMAGES: Final = 20
"""Maximum number of images that an answer lists for an execution, shown or not."""

CELL_SOURCE: Final = 4_000
"""Characters of each cell's source when several cells are read; `TEXT` for a single cell."""

CELL_TEXT: Final = 2_000
"""Characters of each cell's output text when several cells are read; `TEXT` for a single cell."""

CELLS: Final = 100
"""Maximum number of cells that are read in full, or named in an error."""

SHORT_RESULT: Final = 10_000
"""Characters above which Claude Code may put an answer in a file, unless its tool is listed with a
higher limit."""

LONG_RESULT: Final = 120_000
"""That limit of the tools whose answers may be longer."""

STEPS: Final = 20
"""Maximum number of steps of one call."""

STEPS_TEXT: Final = 100_000
"""Characters of the texts of all steps; of longer ones, only the last lines are shown, and the last
one whole."""

STEPS_PICTURES: Final = 300_000
"""Base64 characters of all pictures of several steps."""

SEARCH_BYTES: Final = 15_000
"""Bytes of JSON of the executions that a search lists."""

WHOLE_NOTEBOOK: Final = 8_000
"""Characters of a notebook's text up to which all of it is shown, and not its outline."""

OUTLINE: Final = 16_000
"""Characters of a notebook's outline. Further cells are on the next page."""

PACKAGES_BYTES: Final = 2_000
"""Bytes of JSON of the packages that an answer lists: about 600 tokens."""

FILE_BYTES: Final = 2_000
"""Bytes of a file that are read if the call does not set a limit."""
