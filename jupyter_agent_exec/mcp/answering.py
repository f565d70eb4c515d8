"""From what a tool answers, or what went wrong, to MCP's result of a call. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent

from ..errors import (
    AgentExecError,
    AlreadyFinished,
    DocumentChanged,
    Forbidden,
    GatewayNotSupported,
    HistoryUnavailable,
    IdempotencyConflict,
    InvalidRequest,
    IsolationUnavailable,
    KernelBusy,
    KernelUnavailable,
    NotFinished,
    PayloadTooLarge,
    ServerStopping,
    SessionClosed,
    SessionElsewhere,
    SessionNotFound,
    TooManyRequests,
)
from .tool import Answered

MAX_ANSWER_BYTES: Final = 950_000
"""Of an answer's JSON: clients drop an event of 1 MiB, and their session with it."""

MAX_MESSAGE: Final = 5_000
"""Characters of what is said of an error."""

MAX_DETAIL_BYTES: Final = 10_000
"""Of the JSON of an error's detail, such as a notebook as it is now."""

ERROR_META: Final = "jupyter-agent-exec/error"
"""Under `_meta` of a result that is an error: its code, message and detail, for programs."""

_NEXT: Final[dict[type[AgentExecError], str]] = {
    IdempotencyConflict: "Use a new key for a new call; the old one belongs to other arguments.",
    InvalidRequest: "Correct the arguments and call again. Nothing was done.",
    Forbidden: "Do not try again: ask the person for a token that reaches this.",
    SessionNotFound: "List the sessions, or open one.",
    SessionElsewhere: "Open a session here, or tell the user which server has this one.",
    SessionClosed: "Open another session; its kernel begins without variables.",
    AlreadyFinished: "Read the execution: it has its result.",
    NotFinished: "Wait for the execution, then call again.",
    KernelBusy: "Wait until its code has finished, or cancel it, then call again.",
    DocumentChanged: "Read the notebook's cells again, then decide anew. Nothing was changed.",
    PayloadTooLarge: "Ask for less at once: a part of it, by range or search.",
    TooManyRequests: "Wait, or close a session that is not needed, then call again.",
    IsolationUnavailable: "Nothing was started. Tell the person what is missing; do not go on in a "
    "kernel that is not isolated unless they say so.",
    GatewayNotSupported: "Nothing was started, and calling again will not help. Tell the user.",
    KernelUnavailable: "Call again in a while; if it stays so, tell the person.",
    HistoryUnavailable: "Nothing was run. Call again in a while; if it stays so, tell the person.",
    ServerStopping: "Nothing was run. The server is going down; tell the person.",
}
"""What a model should do next; a class that is not listed has its base's, if that is."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, in the words of every door."""

    code: str
    message: str
    detail: dict[str, Any]
    next: str | None

    @classmethod
    def of(cls, error: AgentExecError) -> Failure:
        """Tell an error of ours."""
        steps = (_NEXT[kind] for kind in type(error).__mro__ if kind in _NEXT)
        return cls(
            code=error.code,
            message=error.message[:MAX_MESSAGE],
            detail=_bounded(error.detail),
            next=next(steps, None),
        )


INTERNAL: Final = Failure(
    code="internal_error",
    message="The server failed in a way that nobody expected; its log says how.",
    detail={},
    next="Look at what was done so far before you call again; if it fails again, tell the person.",
)

CANCELLED: Final = Failure(
    code="cancelled",
    message="The call was cancelled. Code that it had begun goes on.",
    detail={},
    next=None,
)


def result_of(answered: Answered) -> CallToolResult:
    """Return what a tool answered."""
    structured = msgspec.to_builtins(answered.structured)
    size = sum(_size(block) for block in answered.content) + len(msgspec.json.encode(structured))
    if size > MAX_ANSWER_BYTES:
        return refusal(
            Failure.of(
                PayloadTooLarge(
                    f"The answer has {size:,} bytes; {MAX_ANSWER_BYTES:,} are sent at most.",
                    limit_bytes=MAX_ANSWER_BYTES,
                )
            )
        )
    return CallToolResult(content=list(answered.content), structured_content=structured)


def refusal(failure: Failure) -> CallToolResult:
    """Return an error as a model should read it.

    Some clients compare also the structured content of errors with the tool's output schema, so
    what is for programs stands under `_meta`.
    """
    text = failure.message if failure.next is None else f"{failure.message}\n{failure.next}"
    told = msgspec.to_builtins(failure)
    if failure.detail:
        text += "\n" + msgspec.json.encode(failure.detail).decode()
    return CallToolResult(
        content=[TextContent(text=f"{failure.code}: {text}")],
        is_error=True,
        _meta={ERROR_META: told},
    )


def _bounded(detail: dict[str, Any]) -> dict[str, Any]:
    """Return what there is room for of an error's detail, and what is left out by name."""
    told: dict[str, Any] = {}
    left_out: list[str] = []
    left = MAX_DETAIL_BYTES
    for name, value in detail.items():
        size = len(msgspec.json.encode(value))
        if size <= left:
            told[name] = value
            left -= size
        else:
            left_out.append(name)
    return told | ({"left_out": left_out} if left_out else {})


def _size(block: ContentBlock) -> int:
    if isinstance(block, TextContent):
        return len(msgspec.json.encode(block.text))
    if isinstance(block, ImageContent):
        return len(block.data)
    return len(block.model_dump_json())
