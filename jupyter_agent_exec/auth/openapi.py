"""Generate the OpenAPI document from the routes and their models."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from tornado import web

from .. import errors
from ..models import Execution, OutputChange, Problem, StatusChange
from .handler import AgentExecHandler, status_of
from .operations import Operation, operations, requires
from .routes import Route
from .scopes import FOR_PEOPLE

STREAMED: Final = (Execution, StatusChange, OutputChange)
"""Models of the events in an execution's stream. The last two occur in no other answer."""

TAGS: Final = {
    "sessions": ("sessions.handlers", "Open, look into and close sessions."),
    "executions": ("sessions.execution_handlers", "Run code, and follow it."),
    "notebooks": ("notebooks.handlers", "Read and edit users' notebooks, and decide on cells."),
    "files": ("files.handlers", "Files in a session's folder."),
    "approvals": ("approvals.handlers", "What users decide before and after code runs."),
    "history": ("sessions.history_handlers", "Search and export the record."),
    "tokens": ("auth.token_handlers", "Agent tokens."),
    "server": ("auth.openapi", "This document."),
}
"""Each group of routes: the module of its handlers, and a description. Those of a leaf are a group
with the name of its folder."""

BYTES: Final = "application/octet-stream"

_REF: Final = "#/components/schemas/{name}"


def document(routes: Sequence[Route], *, version: str, base_path: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of `routes`.

    Parameters
    ----------
    routes
        Path templates under `base_path`, and their handlers.
    """
    found = [
        (path, verb, handler, operation)
        for path, handler in routes
        for verb, operation in operations(handler).items()
    ]
    models = _models(operation for *_, operation in found)
    models += [model for model in (*STREAMED, Problem) if model not in models]
    schemas, components = msgspec.json.schema_components(models, ref_template=_REF)
    schema_of = dict(zip(models, schemas, strict=True))
    for component in components.values():
        _simplify(component)
    paths: dict[str, Any] = {}
    for path, verb, handler, operation in found:
        described = _operation(path, verb, operation, schema_of, components)
        paths.setdefault(path, {})[verb] = {"tags": [_tag(handler)], **described}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jupyter-agent-exec",
            "version": version,
            "description": "Agents run code in a person's Jupyter; every execution is recorded.",
        },
        "servers": [{"url": base_path}],
        "security": [{"token": []}, {"agentToken": []}],
        "tags": [{"name": tag, "description": text} for tag, (_, text) in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "'token' and the token of the Jupyter server.",
                },
                "agentToken": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An agent token: it reaches what its scopes say.",
                },
            },
        },
    }


def _tag(handler: type[AgentExecHandler]) -> str:
    module = handler.__module__.removeprefix(f"{__package__.partition('.')[0]}.")
    tags = {where: tag for tag, (where, _) in TAGS.items()}
    return tags.get(module, module.partition(".")[0])


def _simplify(schema: Any) -> None:
    """Write a schema in the forms that generators of clients take. It allows the same values."""
    if isinstance(schema, list):
        for each in schema:
            _simplify(each)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("default"), dict) and "anyOf" in schema:
        del schema["default"]  # which of several objects is meant, they cannot tell
    for each in schema.values():
        _simplify(each)


def _models(found: Iterable[Operation]) -> list[Any]:
    named: list[Any] = []
    for operation in found:
        named += [operation.body, operation.query]
        for answer in operation.answers.values():
            named += answer if isinstance(answer, tuple) else (answer,)
    models = [model for model in named if model is not None and not isinstance(model, str)]
    return list(dict.fromkeys(models))


def _operation(
    path: str,
    verb: str,
    operation: Operation,
    schema_of: dict[Any, Any],
    components: dict[str, Any],
) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]
    parameters += [
        {"name": name, "in": "header", "schema": {"type": "string"}} for name in operation.headers
    ]
    if operation.query is not None:
        query = components[schema_of[operation.query]["$ref"].rpartition("/")[2]]
        parameters += [
            {"name": name, "in": "query", "schema": schema}
            for name, schema in query["properties"].items()
        ]
    agents = _agents(path, operation)
    described: dict[str, Any] = {
        "operationId": _id(path, verb),
        "summary": operation.summary,
        "x-scopes": list(operation.scopes),
        "x-agent-tokens": agents or "refused",
        "security": [{"token": []}, *([{"agentToken": []}] if agents else [])],
        "parameters": parameters,
        "responses": {
            **{
                str(status): {"description": operation.summary, **_content(answer, schema_of)}
                for status, answer in operation.answers.items()
            },
            **{
                str(status): {"description": told, **_content(Problem, schema_of)}
                for status, told in _REFUSALS.items()
            },
        },
    }
    if isinstance(operation.body, str):
        described["requestBody"] = {"required": True, **_content(operation.body, schema_of)}
    elif operation.body is not None:
        needed = any(field.required for field in msgspec.structs.fields(operation.body))
        described["requestBody"] = {"required": needed, **_content(operation.body, schema_of)}
    return described


def _agents(path: str, operation: Operation) -> str | None:
    """Describe what an agent token gets from an operation; None if the token is refused."""
    if FOR_PEOPLE.intersection(operation.scopes):
        return None
    return operation.agents or ("what is within its scopes" if "{" in path else None)


def _refusals() -> dict[int, str]:
    """Return a description for each HTTP status of an error: the error codes with that status."""
    codes: dict[int, list[str]] = {}
    for error in vars(errors).values():
        if isinstance(error, type) and issubclass(error, errors.AgentExecError):
            codes.setdefault(status_of(error), []).append(error.code)
    codes[500] = ["internal_error"]
    return {status: f"Refused: {', '.join(codes[status])}." for status in sorted(codes)}


_REFUSALS = _refusals()


def _content(answer: Any, schema_of: dict[Any, Any]) -> dict[str, Any]:
    if answer is None:
        return {}
    if answer == BYTES:
        binary = {"type": "string", "format": "binary"}
        return {"content": {BYTES: {"schema": binary}}}
    if answer == "*/*":  # generators take bytes of any type only by that name
        return {"content": {**_content(BYTES, schema_of)["content"], "*/*": {}}}
    if isinstance(answer, str):
        kind = "object" if answer.endswith("+json") else "string"
        return {"content": {answer: {"schema": {"type": kind}}}}
    if isinstance(answer, tuple):
        schema: dict[str, Any] = {"oneOf": [schema_of[model] for model in answer]}
    else:
        schema = schema_of[answer]
    return {"content": {"application/json": {"schema": schema}}}


def _id(path: str, verb: str) -> str:
    return "_".join([verb, *re.findall(r"\w+", path)])


class OpenAPIHandler(AgentExecHandler):
    """Serve the OpenAPI document."""

    openapi_document: Callable[[str], bytes]
    """Returns the document for the path of the server's base URL. It is called in a thread and
    generates the document at the first request, because that would slow down the server's start."""

    @web.authenticated
    @requires(
        "history:read",
        answers={200: "application/openapi+json"},
        agents="all of it",
    )
    async def get(self) -> None:
        """Describe all routes."""
        self.set_header("Content-Type", "application/openapi+json")
        self.finish(await asyncio.to_thread(self.openapi_document, self.public_path))
