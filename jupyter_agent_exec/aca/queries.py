"""What stands in the query of each route."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ..models import Request


class DynamicSessionQuery(
    Request, frozen=True, kw_only=True, rename={"api_version": "api-version"}
):
    """Which dynamic session."""

    identifier: Annotated[str, Meta(min_length=1, max_length=128)]
    """The client's own word for it: the same session for as long as that is open."""
    api_version: str | None = None
    """Any is served alike."""
