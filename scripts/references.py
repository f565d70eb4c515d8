"""The parts of the documentation that come from the code.

Settings come from the help of the traits, commands from the help of their arguments, MCP tools from
what a client is told of them, routes, errors and models from the OpenAPI document and the
docstrings of the models' fields, the Python client from its docstrings, metrics from what
Prometheus is told of them. A page says with a comment, `<!-- generated: settings -->`, where such a
part belongs; docs/conf.py puts it there when the documentation is built.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from argparse import SUPPRESS, ArgumentParser, _SubParsersAction
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from prometheus_client.metrics import MetricWrapperBase
from traitlets import Bool, Enum, Float, Int, TraitType

from jupyter_agent_exec import client, errors, models
from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.handler import status_of
from jupyter_agent_exec.auth.openapi import document
from jupyter_agent_exec.cli import make_parser
from jupyter_agent_exec.mcp.sdk_server import TOOLS
from jupyter_agent_exec.mcp.tool import Tool, input_schema
from jupyter_agent_exec.observability import metrics

# -- settings -------------------------------------------------------------------------------------


def own_traits() -> dict[str, TraitType[Any, Any]]:
    """Return the traits of the extension, without those of Jupyter's own base class."""
    return {
        name: trait
        for name, trait in AgentExecApp.class_traits(config=True).items()
        if trait.this_class.__module__.startswith("jupyter_agent_exec.")
    }


def settings() -> Iterator[str]:
    """Describe each trait by its own help."""
    for name, trait in sorted(own_traits().items()):
        yield f"### {name}"
        yield inspect.cleandoc(trait.help)
        yield f"({', '.join(_facts(trait))})"


def _facts(trait: TraitType[Any, Any]) -> Iterator[str]:
    """Say what values a trait takes, and which it has if nobody sets it."""
    if isinstance(trait, Enum):
        yield "one of " + ", ".join(f"`{value}`" for value in trait.values or ())
    else:
        yield {"Dict": "dictionary", "List": "list", "Type": "class", "Unicode": "text"}.get(
            type(trait).__name__, "yes or no" if isinstance(trait, Bool) else "number"
        )
    if isinstance(trait, (Int, Float)):
        if trait.min not in (None, float("-inf")):
            yield f"at least {trait.min:,}"
        if trait.max not in (None, float("inf")):
            yield f"at most {trait.max:,}"
    if isinstance(trait, (Bool, Enum)):
        yield f"default: `{trait.default_value}`"
    elif isinstance(trait, (Int, Float)):
        yield f"default: {trait.default_value:,}"


# -- the command line ------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """Describe each command by its own help."""
    yield from _commands(make_parser(), "jupyter agent-exec")


COMMON = ("json", "quiet", "url", "token")
"""Options of nearly all commands, which the page describes once."""


def _commands(parser: ArgumentParser, called: str) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            summaries = {each.dest: str(each.help) for each in action._choices_actions}
            for name, command in action.choices.items():
                yield f"### {called.partition('agent-exec')[2]} {name}".replace("  ", " ")
                summary = summaries[name]
                yield f"{summary[0].upper()}{summary[1:]}."
                yield from _command(command)
                yield from _commands(command, f"{called} {name}")


def _command(parser: ArgumentParser) -> Iterator[str]:
    for group in parser._action_groups:
        options = [
            f"- {_spelled(action)}: {_told(action)}"
            for action in group._group_actions
            if action.help != SUPPRESS
            and action.dest not in ("help", *COMMON)
            and not isinstance(action, _SubParsersAction)
        ]
        if options:
            title = f"{group.title}".capitalize()
            about = f", {group.description}" if group.description else ""
            if group.title not in ("options", "positional arguments"):
                yield f"{title}{about}:"
            yield "\n".join(options)


def _spelled(action: Any) -> str:
    if not action.option_strings:
        return f"`{action.metavar}`"
    value = action.metavar or (
        f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper()
    )
    value = "" if action.nargs == 0 else f" {value}"
    return ", ".join(f"`{word}{value}`" for word in action.option_strings)


def _told(action: Any) -> str:
    told = (action.help or "") % {**vars(action), "default": action.default}
    return re.sub(r"\s+", " ", told).replace("*", "\\*")


# -- the MCP tools ---------------------------------------------------------------------------------


def mcp_tools() -> Iterator[str]:
    """Describe each tool as a client is told of it."""
    for tool in TOOLS:
        yield from _tool(tool)


def _tool(tool: Tool[Any]) -> Iterator[str]:
    schema = input_schema(tool.input)
    required = schema.get("required", [])
    reads = tool.hints.read_only_hint
    yield f"### {tool.name}"
    yield tool.description
    hints = [
        "changes nothing" if reads else "changes things",
        *(["may remove or replace"] if not reads and tool.hints.destructive_hint is None else []),
        *(["may be repeated"] if reads or tool.hints.idempotent_hint else []),
    ]
    yield f"Scopes: any of {', '.join(f'`{s}`' for s in tool.scopes)}; {', '.join(hints)}."
    arguments = []
    for name, one in schema["properties"].items():
        default = f" (default `{json.dumps(one['default'])}`)" if "default" in one else ""
        default = " (required)" if name in required else default
        told = one.get("description", "")
        arguments.append(f"- `{name}`{default}: {told}" if told else f"- `{name}`{default}")
    if arguments:
        yield "\n".join(arguments)
    yield f"Such as `{json.dumps(tool.examples[0], ensure_ascii=False)}`."


# -- the HTTP routes -------------------------------------------------------------------------------


def routes() -> Iterator[str]:
    """List each route with what its query may hold."""
    yield "\n".join(
        f"- `{verb.upper()} {path}`{_queried(operation)}: {operation['summary']}"
        for path, verbs in _described()["paths"].items()
        for verb, operation in verbs.items()
    )


def refusals() -> Iterator[str]:
    """List each refusal with its status."""
    yield "\n".join(
        f"- {status_of(kind)} `{kind.code}`: {_first_line(kind)}"
        for kind in sorted(_refusals(), key=lambda kind: (status_of(kind), kind.code))
    )


def _described() -> dict[str, Any]:
    return document(AgentExecApp.routes, version="0", base_path="/")


def _queried(operation: dict[str, Any]) -> str:
    query = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
    return f" `?{'&'.join(f'{name}=' for name in query)}`" if query else ""


def _refusals() -> list[type[errors.AgentExecError]]:
    return [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, errors.AgentExecError)
        and kind is not errors.AgentExecError
    ]


def _first_line(what: Any) -> str:
    """Return what the first paragraph of a docstring says, in Markdown."""
    paragraph = inspect.cleandoc(what.__doc__ or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).replace("``", "`")


# -- the OpenAPI document --------------------------------------------------------------------------


def openapi() -> Iterator[str]:
    """Render the OpenAPI document: each route, and then each model."""
    described = _described()
    for path, verbs in described["paths"].items():
        for verb, operation in verbs.items():
            yield from _operation(f"{verb.upper()} {path}", operation)
    for name, schema in described["components"]["schemas"].items():
        yield f"({_anchor(name)})="
        yield f"## {name}"
        yield inspect.cleandoc(schema.get("description", ""))
        told = field_docstrings().get(name, {})
        rows = [
            _row(
                field,
                {"description": told.get(field, ""), **one},
                required=field in schema.get("required", []),
            )
            for field, one in schema.get("properties", {}).items()
        ]
        yield _table("field", rows) if rows else f"It is {_type(schema)}."


def _operation(title: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"## {title}"
    yield operation["summary"]
    if operation.get("description"):
        yield operation["description"]
    yield f"With an agent token: {operation['x-agent-tokens']}."
    rows = [
        _row(one["name"], {**one["schema"], **one}, required=one.get("required", False))
        for one in operation.get("parameters", [])
    ]
    if rows:
        yield _table("parameter", rows)
    body = operation.get("requestBody")
    if body:
        yield "Body: " + "; ".join(
            f"{_type(content.get('schema', {}))} (`{kind}`)"
            for kind, content in body["content"].items()
        )
    answers, refusals = [], []
    for status, response in operation["responses"].items():
        if status >= "400":
            refusals.append(status)
            continue
        kinds = "; ".join(
            f"{_type(content.get('schema', {}))} (`{kind}`)"
            for kind, content in response.get("content", {}).items()
        )
        answers.append(f"- {status}: {kinds or response['description']}")
    yield "\n".join(["Answers:", "", *answers])
    yield f"Refusals: {', '.join(refusals)}, with [their codes](api.md#errors)."


def _table(head: str, rows: list[str]) -> str:
    return "\n".join([f"| {head} | type | |", "| --- | --- | --- |", *rows])


def _row(name: str, schema: dict[str, Any], *, required: bool) -> str:
    told = " ".join(schema.get("description", "").split()).replace("|", "\\|")
    if required:
        told += " (required)"
    elif schema.get("default") is not None:
        told += f" (default `{json.dumps(schema['default'])}`)"
    return f"| `{name}` | {_type(schema)} | {told.strip()} |"


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a value in words, with links to models."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    kind = schema.get("type", "any value")
    if kind == "array" and schema.get("items"):
        return f"array of {_type(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _anchor(name: str) -> str:
    return f"model-{name.lower()}"


@cache
def field_docstrings() -> dict[str, dict[str, str]]:
    """Return the docstrings of each model's fields, also of those that it inherits."""
    found: dict[str, dict[str, str]] = {}
    for model in ast.parse(inspect.getsource(models)).body:
        if not isinstance(model, ast.ClassDef):
            continue
        told = found[model.name] = {}
        for base in model.bases:
            told |= found.get(ast.unparse(base), {})
        for field, after in zip(model.body, model.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                told[ast.unparse(field.target)] = inspect.cleandoc(ast.literal_eval(after.value))
    return found


# -- the Python client -----------------------------------------------------------------------------


def python_client() -> Iterator[str]:
    """List what a client and a session can do."""
    for kind, title, called in (
        (client.AsyncAgentExecClient, "A client", "client"),
        (client.AsyncSession, "A session", "session"),
    ):
        yield f"### {title}"
        yield "\n".join(
            f"- `{called}.{name}{_parameters(what)}`: {_first_line(what)}"
            for name, what in vars(kind).items()
            if not name.startswith("_") and not isinstance(what, classmethod) and what.__doc__
        )


def _parameters(what: Any) -> str:
    """Return the names of a function's parameters, of the optional ones as `name=`."""
    if not inspect.isfunction(what):
        return ""
    names = []
    for each in list(inspect.signature(what).parameters.values())[1:]:
        options = re.fullmatch(r"Unpack\[(\w+)\]", str(each.annotation))
        if options:
            keys = inspect.get_annotations(what.__globals__[options[1]])
            names += [f"{key}=" for key in keys]
        else:
            names.append(each.name if each.default is each.empty else f"{each.name}=")
    return f"({', '.join(names)})"


# -- metrics ---------------------------------------------------------------------------------------


def prometheus_metrics() -> Iterator[str]:
    """List each metric with its type and labels."""
    yield "\n".join(
        f"- `{metric._name}{'_total' if metric._type == 'counter' else ''}`"
        f" ({', '.join([str(metric._type), *(f'`{label}`' for label in metric._labelnames)])}):"
        f" {metric._documentation}"
        for metric in vars(metrics).values()
        if isinstance(metric, MetricWrapperBase)
    )


# -- the places in the pages -----------------------------------------------------------------------


GENERATED: dict[str, Callable[[], Iterator[str]]] = {
    "settings": settings,
    "commands": commands,
    "tools": mcp_tools,
    "routes": routes,
    "errors": refusals,
    "openapi": openapi,
    "client": python_client,
    "metrics": prometheus_metrics,
}


def completed(page: str) -> str:
    """Return a page's text with the generated parts that it asks for."""
    return re.sub(
        r"^<!-- generated: (\w+) -->$",
        lambda match: "\n\n".join(GENERATED[match[1]]()),
        page,
        flags=re.MULTILINE,
    )
