"""MCP resources: texts and images of executions, and sessions as notebooks."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

import mcp_types as types
import msgspec

from ..errors import NotFound, PayloadTooLarge
from ..models import SessionsQuery
from ..text.model_text import images
from ..types import ExecutionId, SessionId
from . import budget
from .call import Call
from .resource_uris import (
    EXECUTION_TEMPLATE,
    IMAGE_TEMPLATE,
    NOTEBOOK_TEMPLATE,
    execution_uri,
    image_uri,
    named,
    notebook_uri,
)
from .results import cut, read_on

NOTEBOOK_TYPE: Final = "application/x-ipynb+json"

TEMPLATES: Final = (
    types.ResourceTemplate(
        name="execution",
        title="Text of an execution",
        uri_template=EXECUTION_TEMPLATE,
        description="All that an execution printed and showed, as text.",
        mime_type="text/plain",
    ),
    types.ResourceTemplate(
        name="image",
        title="Image of an execution",
        uri_template=IMAGE_TEMPLATE,
        description="The image that an output of an execution holds, as the code made it.",
    ),
    types.ResourceTemplate(
        name="notebook",
        title="Session as a notebook",
        uri_template=NOTEBOOK_TEMPLATE,
        description="All that a session ran, as a Jupyter notebook that runs again.",
        mime_type=NOTEBOOK_TYPE,
    ),
)


async def listed(call: Call) -> list[types.Resource]:
    """Return the notebooks of the open sessions that the caller may read."""
    await call.authorize("history:read")
    found = await call.managers.sessions.history.sessions(
        SessionsQuery(status="open"), only=call.managers.access.only(call.caller)
    )
    return [
        types.Resource(
            name=f"{session.id}.ipynb",
            uri=notebook_uri(session.id),
            title=None if session.title is None else cut(session.title, 200),
            description="What the session ran so far.",
            mime_type=NOTEBOOK_TYPE,
        )
        for session in found.sessions
    ]


async def read(call: Call, uri: str) -> types.TextResourceContents | types.BlobResourceContents:
    """Return the contents of a resource.

    Raises
    ------
    NotFound, ExecutionNotFound, SessionNotFound
        There is no resource with this URI that the caller may read.
    PayloadTooLarge
        The resource is available over HTTP only.
    """
    asked = named(uri)
    if asked.session_id is not None:
        return await _notebook(call, asked.session_id)
    assert asked.execution_id is not None
    await call.reach_execution("history:read", asked.execution_id)
    if asked.output is None:
        return await _text(call, asked.execution_id)
    return await _image(call, asked.execution_id, asked.output)


async def _text(call: Call, id: ExecutionId) -> types.TextResourceContents:
    found = await call.managers.sessions.history.text(call.caller, id, 0, budget.RESOURCE_TEXT)
    text = found.text
    if found.next_offset is not None:
        text += f"\n[{found.total_bytes:,} bytes in all; {read_on(id, found.next_offset)}]"
    return types.TextResourceContents(uri=execution_uri(id), mime_type="text/plain", text=text)


async def _image(call: Call, id: ExecutionId, output: int) -> types.BlobResourceContents:
    record = await call.managers.sessions.execution(id)
    image = next((each for each in images(record.outputs) if each.output == output), None)
    if image is None:
        raise NotFound("This output of the execution holds no image.", execution_id=id)
    if image.bytes * 4 // 3 > budget.RESOURCE_BYTES:
        raise _too_large(
            "image",
            f"{call.asker.api_path}/executions/{id}",
            "its `images` have their addresses",
        )
    return types.BlobResourceContents(
        uri=image_uri(id, output),
        mime_type=image.mimetype,
        blob=base64.b64encode(image.data).decode(),
    )


async def _notebook(call: Call, id: SessionId) -> types.TextResourceContents:
    await call.reach_session("history:read", id)
    manager = call.managers.sessions
    pieces = await manager.history.notebook(id)
    text = await manager.in_thread(lambda: _joined(pieces))
    if text is None:
        raise _too_large("notebook", f"{call.asker.api_path}/sessions/{id}/notebook")
    return types.TextResourceContents(uri=notebook_uri(id), mime_type=NOTEBOOK_TYPE, text=text)


def _joined(pieces: Iterator[str]) -> str | None:
    """Join pieces to a text; stop reading and return None if it is too large to send."""
    taken: list[str] = []
    left = budget.RESOURCE_BYTES
    for piece in pieces:
        left -= len(msgspec.json.encode(piece))
        if left < 0:
            return None
        taken.append(piece)
    return "".join(taken)


def _too_large(what: str, url: str, how: str | None = None) -> PayloadTooLarge:
    also = "" if how is None else f"; {how}"
    return PayloadTooLarge(
        f"The {what} is too large for MCP. Over HTTP, GET {url} has it{also}.",
        limit_bytes=budget.RESOURCE_BYTES,
        url=url,
    )
