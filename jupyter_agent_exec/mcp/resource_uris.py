"""The URIs of MCP resources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..errors import NotFound
from ..types import ExecutionId, SessionId

SCHEME: Final = "jupyter-agent-exec"

EXECUTION_TEMPLATE: Final = f"{SCHEME}://executions/{{execution_id}}"
IMAGE_TEMPLATE: Final = f"{SCHEME}://executions/{{execution_id}}/images/{{output}}"
NOTEBOOK_TEMPLATE: Final = f"{SCHEME}://sessions/{{session_id}}/notebook"

_URI: Final = re.compile(
    rf"{SCHEME}://(?:executions/(?P<execution_id>\w{{1,100}})(?:/images/(?P<output>[0-9]{{1,9}}))?"
    r"|sessions/(?P<session_id>\w{1,100})/notebook)",
    re.ASCII,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceName:
    """A resource's parsed URI. Exactly one of the two ids is None."""

    execution_id: ExecutionId | None
    output: int | None
    """Index of the output with the image; None for the execution's text."""
    session_id: SessionId | None


def execution_uri(id: ExecutionId) -> str:
    """Return the URI of an execution's text."""
    return f"{SCHEME}://executions/{id}"


def image_uri(id: ExecutionId, output: int) -> str:
    """Return the URI of an output's image."""
    return f"{SCHEME}://executions/{id}/images/{output}"


def notebook_uri(id: SessionId) -> str:
    """Return the URI of a session's notebook."""
    return f"{SCHEME}://sessions/{id}/notebook"


def named(uri: str) -> ResourceName:
    """Parse a resource's URI; raise NotFound if it is not one of this server."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise NotFound(
            "There is no such resource; resources are named "
            f"{EXECUTION_TEMPLATE}, {IMAGE_TEMPLATE} and {NOTEBOOK_TEMPLATE}.",
            uri=uri[:200],
        )
    execution_id, output, session_id = match["execution_id"], match["output"], match["session_id"]
    return ResourceName(
        execution_id=None if execution_id is None else ExecutionId(execution_id),
        output=None if output is None else int(output),
        session_id=None if session_id is None else SessionId(session_id),
    )
