"""What may stand in the query of a route about notebooks."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ..models import Request


class CellsQuery(Request, frozen=True, kw_only=True):
    """How much to tell of a notebook's cells."""

    outputs: bool = True
    """Whether to tell what their outputs say."""
    text_limit: Annotated[int, Meta(ge=100, le=1_000_000)] = 10_000
    """Characters of each cell's output, at the most; what is left out is said."""
