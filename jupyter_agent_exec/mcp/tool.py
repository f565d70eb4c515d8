"""Definition of a tool: its description, its arguments, its function, and its results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Annotated, Any, Final, Generic, TypeVar, get_type_hints

import msgspec
from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent, ToolAnnotations
from msgspec import Meta, inspect

from .. import errors
from ..auth.scopes import Scope
from ..auth.validation import at_most_one, read_value
from ..errors import AgentExecError, InvalidRequest, PayloadTooLarge, ServerStopping
from ..models import Purpose, Request
from .call import Call
from .pictures import Picture

A = TypeVar("A", bound=Request)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """A tool's answer. For an error, the tool raises `AgentExecError` instead."""

    text: str
    """What a model reads."""
    images: Sequence[Picture] = ()
    """What it sees."""
    structured: Any = None
    """The same as the text for programs, complete by itself; None if the text says it all."""


Wait = Annotated[Annotated[float, Meta(ge=0, le=3600)] | None, Meta(description="Seconds to wait.")]
"""How long a call may take. Null is the server's default."""

Why = Annotated[Purpose | None, Meta(description="Why, for the user.")]
"""Why an agent runs code or edits cells."""

READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
"""The hints of a tool that changes nothing."""


@dataclass(frozen=True, kw_only=True)
class Tool(Generic[A]):
    """A tool. Language models read its name, its description and its arguments.

    Its function gives them: by its name, its docstring, and the type of its argument `asked`.
    """

    run: Callable[[Call, A], Awaitable[Answered]]
    title: str
    """Name for users."""
    scopes: tuple[Scope, ...]
    """The tool is listed for callers that have one of these scopes. Each call checks access to the
    session, execution or notebook that it uses."""
    is_extra: bool = False
    """Whether it is listed only for agent tokens, so that it costs others nothing."""
    is_long: bool = False
    """Whether an answer's text may be longer than `budget.SHORT_RESULT`."""
    alternatives: tuple[tuple[str, ...], ...] = ()
    """Groups of arguments of which a call may have one each."""
    hints: ToolAnnotations = field(default_factory=ToolAnnotations)
    """What clients use to decide whether to allow a call. Those that are MCP's defaults are left
    out: it may change, remove and reach anything."""
    examples: tuple[dict[str, Any], ...] = ()
    """Example arguments, for the documentation."""

    @property
    def name(self) -> str:
        """Name for language models."""
        return self.run.__name__

    @property
    def description(self) -> str:
        """What it does, on one line."""
        return " ".join((self.run.__doc__ or "").split())

    @cached_property
    def input(self) -> type[A]:
        """Type of the arguments. Their `Meta(description=…)` describes nested objects too."""
        model: type[A] = get_type_hints(self.run)["asked"]
        return model


def input_schema(model: type[Request]) -> dict[str, Any]:
    """Return the schema of a tool's arguments for a model: short, because each listing costs it.

    It has types, choices, defaults and descriptions. Limits, and the fields of nested objects, are
    left out; the server checks them, and says what it expects.
    """
    schema, components = msgspec.json.schema_components([model], ref_template="{name}")
    root = components[schema[0]["$ref"]]
    listed: dict[str, Any] = {
        "type": "object",
        "properties": {name: _brief(one, components) for name, one in root["properties"].items()},
    }
    if root.get("required"):
        listed["required"] = root["required"]
    return listed


_PREFERRED: Final = ("object", "array", "string", "number", "integer", "boolean")


def _brief(schema: Mapping[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    """Return the brief schema of an argument, which has one type: some clients need it."""
    kinds = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    kinds = [components.get(one.get("$ref", ""), one) for one in kinds]
    types = [one.get("type") or ("object" if "anyOf" in one else "string") for one in kinds]
    brief: dict[str, Any] = {"type": min(types, key=_PREFERRED.index)}
    enum = [each for one in kinds for each in one.get("enum", ()) if each is not None]
    if enum and len(set(types)) == 1:
        brief["enum"] = enum
    if brief["type"] == "array":
        brief["items"] = {"type": _brief(kinds[0]["items"], components)["type"]}
    default = schema.get("default")
    if isinstance(default, (str, int, float)) and default and brief["type"] != "object":
        brief["default"] = default
    if "description" in schema:
        brief["description"] = schema["description"]
    return brief


OF_CLIENTS: Final = ("action", "chatInput", "sessionId", "tool", "toolCallId")
"""Arguments that clients add for themselves, such as n8n. They are ignored."""

MEANT: Final = ("find", "source", "text")
"""Optional fields in which an empty text is not the same as none."""


def arguments(tool: Tool[A], given: Mapping[str, Any]) -> A:
    """Return a call's arguments.

    Text that holds the JSON of another type is accepted. An optional argument that is null or empty
    counts as left out.

    Raises
    ------
    InvalidRequest
        The detail has the expected shape.
    """
    said = {name: value for name, value in given.items() if name not in OF_CLIENTS}
    try:
        asked = read_value(_read(said, _type_info(tool.input)), tool.input)
        for names in tool.alternatives:
            at_most_one(asked, *names)
        return asked
    except InvalidRequest as error:
        properties = input_schema(tool.input)["properties"]
        name = (error.detail.get("field") or "").partition(".")[0].partition("[")[0]
        if name in properties:
            error.detail["expected"] = properties[name]
        else:
            error.detail["arguments"] = list(properties)
        raise


_type_info = cache(inspect.type_info)


def _read(value: Any, type: inspect.Type) -> Any:
    """Return a value without what counts as left out, and with values in place of their JSON."""
    type = type.type if isinstance(type, inspect.Metadata) else type
    types = type.types if isinstance(type, inspect.UnionType) else (type,)
    if isinstance(value, str) and not any(_takes_text(one, value) for one in types):
        with suppress(msgspec.DecodeError, UnicodeEncodeError):
            value = msgspec.json.decode(value)
    for one in types:
        if isinstance(one, inspect.ListType) and isinstance(value, list):
            return [_read(item, one.item_type) for item in value]
        if not isinstance(one, inspect.StructType) or not isinstance(value, dict):
            continue
        if one.tag_field is None or value.get(one.tag_field) == one.tag:
            fields = {field.encode_name: field for field in one.fields}
            return {
                name: _read(item, fields[name].type) if name in fields else item
                for name, item in value.items()
                if name not in fields or fields[name].required or not _is_none(name, item)
            }
    return value


def _takes_text(type: inspect.Type, text: str) -> bool:
    type = type.type if isinstance(type, inspect.Metadata) else type
    is_choice = isinstance(type, inspect.LiteralType) and text in type.values
    return is_choice or isinstance(type, inspect.StrType)


def _is_none(name: str, value: Any) -> bool:
    return value is None or value in ([], {}) or (value == "" and name not in MEANT)


MAX_ANSWER_BYTES: Final = 950_000
"""Maximum bytes of an answer's JSON. Clients drop an event of 1 MiB, and their session with it."""

MAX_MESSAGE: Final = 5_000
"""Maximum characters of an error's message."""

MAX_DETAIL_BYTES: Final = 10_000
"""Maximum bytes of JSON of an error's detail, such as the current notebook."""

ERROR_META: Final = "jupyter-agent-exec/error"
"""Key in the `_meta` of an error result. Its value has the code, message and detail."""

_NEXT: Final[dict[type[AgentExecError], str]] = {
    errors.IdempotencyConflict: "Use a new key for a new call; this one is of other arguments.",
    errors.InvalidRequest: "Correct the arguments and call again. Nothing was done.",
    errors.ApprovalRequired: "Nothing was done. Tell the user; call again when they have approved.",
    errors.Forbidden: "The same call will be refused again. Nothing was done.",
    errors.Paused: "Nothing was done. Tell the user; call again when they let agents go on.",
    errors.NotFound: "Check the name. Nothing was done.",
    errors.SessionNotFound: "list_sessions lists yours; open_session opens one.",
    errors.ExecutionNotFound: "search_executions lists yours.",
    errors.KernelNotFound: "Name a notebook by its path, or use a kernel of your own: "
    '{"kind": "scratch"}.',
    errors.NotebookNotFound: "read_notebook without a path finds notebooks.",
    errors.FileMissing: "read_file without a path lists the files.",
    errors.CellNotFound: "read_notebook tells the ids of its cells. Nothing was done.",
    errors.SessionElsewhere: "Open a session here, or tell the user which server has this one.",
    errors.SessionClosed: "Open another session; its kernel begins without variables.",
    errors.AlreadyFinished: "get_execution has its result.",
    errors.NotFinished: "Wait for the execution, then call again.",
    errors.InputNotAsked: "get_execution tells what the code does now. Nothing was answered.",
    errors.KernelBusy: "Call again when that code has finished. stop ends your own.",
    errors.KernelWaitsForItself: "Let the cell finish first, or use a kernel of your own: "
    '{"kind": "scratch"}.',
    errors.KernelNotOwned: "Nothing was done. The variables are still there.",
    errors.CellBusy: "get_execution waits for it; then call again. Nothing was changed.",
    errors.DocumentChanged: "Read the cells again, then decide. Nothing was changed.",
    errors.DocumentUnwritable: 'Tell the user. Your code can run without a cell: placement "none".',
    errors.FolderUnknown: "Use files with code, or open a session with a kernel of your own.",
    errors.FileNotOwned: "read_file tells its etag: pass that to replace it, or take another name. "
    "Nothing was done.",
    errors.FileUnwritable: "Take another name or folder, or tell the user. Nothing was done.",
    errors.PreconditionFailed: "Read the file again, then decide. Nothing was done.",
    errors.PayloadTooLarge: "Ask for less at once: a part of it, by range or search.",
    errors.TooManyRequests: "Wait, or close a session that is not needed, then call again.",
    errors.TrialUnavailable: "Nothing was run. Send it without trial=true if it may change things.",
    errors.UndoUnavailable: "Nothing was undone. Set your variables again by running code, or tell "
    "the user.",
    errors.IsolationUnavailable: "Nothing was started. Tell the user what is missing; do not go "
    "on in a kernel that is not isolated unless they say so.",
    errors.KernelUnavailable: "Call again in a while; if it stays so, tell the user.",
    errors.HistoryUnavailable: "Nothing was run. Call again in a while, else tell the user.",
    errors.ServerStopping: "Nothing was run. The server is going down; tell the user.",
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
    next="Look at what was done so far before you call again; if it fails again, tell the user.",
)

CANCELLED: Final = Failure(
    code="cancelled",
    message="The call was cancelled. Code that it had begun goes on.",
    detail={},
    next=None,
)

SERVER_STOPPED: Final = Failure(
    code=ServerStopping.code,
    message="The server stopped while it worked on this. Code that runs is interrupted.",
    detail={},
    next="The history says how it ended, when the server runs again: the same call with the same "
    "idempotency_key finds it. Variables are lost.",
)


PROGRAMS: Final = ("mcp",)
"""Names of clients that are programs: the Python SDK's name for those that give none."""


def result_of(answered: Answered, client: str | None) -> CallToolResult:
    """Return the MCP result for a tool's answer, or a refusal if the answer is too large.

    Many clients show a model only the structured content, if there is some. It cannot hold images,
    so an answer with images has none, except for a program.

    Parameters
    ----------
    client
        The name that the client gives itself; None if it gives none.
    """
    structured = None
    if answered.structured is not None and (not answered.images or client in PROGRAMS):
        structured = _without_nulls(msgspec.to_builtins(answered.structured))
    content: list[ContentBlock] = [TextContent(text=answered.text)]
    content += [ImageContent(data=each.data, mime_type=each.mimetype) for each in answered.images]
    size = len(msgspec.json.encode((answered.text, structured)))
    size += sum(len(image.data) for image in answered.images)
    if size > MAX_ANSWER_BYTES:
        return refusal(
            Failure.of(
                PayloadTooLarge(
                    f"The answer has {size:,} bytes; {MAX_ANSWER_BYTES:,} are sent at most.",
                    limit_bytes=MAX_ANSWER_BYTES,
                )
            )
        )
    return CallToolResult(content=content, structured_content=structured)


def _without_nulls(value: Any) -> Any:
    """Return JSON without members that are null, except in the user's own `json`."""
    if isinstance(value, dict):
        return {
            name: item if name == "json" else _without_nulls(item)
            for name, item in value.items()
            if item is not None or name == "json"
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


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
