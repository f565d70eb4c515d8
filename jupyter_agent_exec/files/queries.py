"""What may stand in the query of a route."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ..models import Request


class FilesQuery(Request, frozen=True, kw_only=True):
    """Which files of a session's folder to list."""

    path: Annotated[str, Meta(max_length=20_000)] = ""
    """Of a folder in it; empty is the session's folder itself."""
    recursive: bool = False
    """Whether to list what is in the folders there too."""
    after: Annotated[str, Meta(max_length=20_000)] | None = None
    """Those that follow this path; `next_after` of the page before."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 200
