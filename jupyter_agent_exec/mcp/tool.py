"""Definition of a tool: its description, its input and output models, and its function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..auth.scopes import Scope
from ..models import Request
from .call import Call

if TYPE_CHECKING:
    from mcp_types import ContentBlock
from typing import Final

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

A = TypeVar("A", bound=Request)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """A tool's answer. For an error, the tool raises `AgentExecError` instead."""

    content: Sequence[ContentBlock]
    """Content for the model, well below 1 MiB in total."""
    structured: Any
    """The same for programs: an instance of the tool's `output`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hints:
    """A tool's MCP annotations. Clients use them to decide whether to allow a call."""

    read_only: bool
    destructive: bool
    """Whether it may change or remove existing data, and not only add to it."""
    idempotent: bool
    """Whether a second call with the same arguments changes nothing more."""
    open_world: bool
    """Whether it may reach beyond this server, for example because it runs code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool(Generic[A]):
    """A tool. Language models read all its texts."""

    name: str
    title: str
    """Name for users."""
    description: str
    scopes: tuple[Scope, ...]
    """The tool is listed for callers that have one of these scopes. Each call checks access to the
    session, execution or notebook that it uses."""
    input: type[A]
    """Type of the arguments. Language models read its docstring and each field's
    `Meta(description=…)`."""
    output: Any
    """Type of `Answered.structured`. Its JSON is an object."""
    hints: Hints
    examples: tuple[dict[str, Any], ...] = ()
    """Example arguments."""
    run: Callable[[Call, A], Awaitable[Answered]]


_REF = "#/$defs/{name}"


def object_schema(model: Any, *, examples: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """Return a model's JSON schema with `type: object` at its root, as older clients require.

    Parameters
    ----------
    model
        A model whose JSON is an object.
    examples
        Example objects.
    """
    (root,), components = msgspec.json.schema_components([model], ref_template=_REF)
    schema: dict[str, Any] = dict(components.get(root.get("$ref", "").rpartition("/")[2], root))
    if schema.get("type") != "object":
        raise TypeError(f"{model} is no object in JSON.")
    others = _reachable(schema, components)
    if others:
        schema["$defs"] = others
    if examples:
        schema["examples"] = list(examples)
    return schema


def _reachable(schema: Any, components: dict[str, Any]) -> dict[str, Any]:
    """Return the components that a schema refers to, directly or through other components."""
    found: dict[str, Any] = {}
    waiting = list(_references(schema))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = components[name]
            waiting += _references(components[name])
    return dict(sorted(found.items()))


def _references(schema: Any) -> list[str]:
    if isinstance(schema, dict):
        own = [schema["$ref"].rpartition("/")[2]] if isinstance(schema.get("$ref"), str) else []
        return own + [name for value in schema.values() for name in _references(value)]
    if isinstance(schema, list):
        return [name for value in schema for name in _references(value)]
    return []


MAX_ANSWER_BYTES: Final = 950_000
"""Maximum bytes of an answer's JSON. Clients drop an event of 1 MiB, and their session with it."""

MAX_MESSAGE: Final = 5_000
"""Maximum characters of an error's message."""

MAX_DETAIL_BYTES: Final = 10_000
"""Maximum bytes of JSON of an error's detail, such as the current notebook."""

ERROR_META: Final = "jupyter-agent-exec/error"
"""Key in the `_meta` of an error result. Its value has the code, message and detail."""

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
"""The advice to the model for each error class. Other classes inherit their base's advice."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error, with the same code, message and detail as over HTTP."""

    code: str
    message: str
    detail: dict[str, Any]
    next: str | None

    @classmethod
    def of(cls, error: AgentExecError) -> Failure:
        """Return the failure for an `AgentExecError`."""
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
    """Return the MCP result for a tool's answer, or a refusal if the answer is too large."""
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
    """Return an error result, as text for the model.

    Some clients validate an error's structured content against the tool's output schema. So the
    fields for programs are in `_meta`.
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
    """Return the fields of an error's detail that fit, and the names of the others."""
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
