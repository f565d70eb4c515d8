"""What the client can ask of notebooks, as steps without I/O, like `calls`.

A session's notebook may be renamed meanwhile, and another may then have its path: so where it is
now is asked before anything is asked of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..errors import InvalidRequest
from ..models import (
    Edit,
    EditNotebook,
    NotebookCells,
    NotebookEdited,
    OpenNotebook,
    OpenNotebookList,
)
from ..types import Digest, SessionId
from .answers import read
from .calls import session
from .routes import contents_path, get, send_model, with_query
from .steps import Call, send

_notebooks = msgspec.json.Decoder(OpenNotebookList)
_cells = msgspec.json.Decoder(NotebookCells)
_edited = msgspec.json.Decoder(NotebookEdited)


def notebooks() -> Call[list[OpenNotebook]]:
    """List the notebooks that are in use, by path."""
    return (yield from get("/notebooks", _notebooks)).notebooks


def cells(path: str, outputs: bool, text_limit: int | None) -> Call[NotebookCells]:
    """Read the notebook at a contents path."""
    told = None if outputs else False  # they are told unless one says so
    query = with_query(_route(path), outputs=told, text_limit=text_limit)
    return (yield from get(query, _cells))


def session_cells(session_id: str, outputs: bool, text_limit: int | None) -> Call[NotebookCells]:
    """Read a session's notebook, wherever it is now."""
    path = yield from _path_of(session_id)
    return (yield from cells(path, outputs, text_limit))


def edit(session_id: str, edits: Sequence[Edit], hash: str | None) -> Call[NotebookEdited]:
    """Change the cells of a session's notebook; it is not asked again if the connection breaks."""
    request = EditNotebook(
        session_id=SessionId(session_id),
        edits=list(edits),
        hash=None if hash is None else Digest(hash),
    )
    path = yield from _path_of(session_id)
    return read((yield from send(send_model("PATCH", _route(path), request))), _edited)


def _path_of(session_id: str) -> Call[str]:
    info = yield from session(session_id)
    if info.path is None:
        raise InvalidRequest(
            "This session has no notebook: open one with notebook=.", field="session_id"
        )
    return info.path


def _route(path: str) -> str:
    return f"/notebooks/{contents_path(path)}/cells"
