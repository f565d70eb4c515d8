"""Write the reference pages that the code itself describes: `make references`.

The configuration comes from the help of the traits, the commands from the help of their arguments,
the MCP tools from what a client is told of them. On each page, this script writes what stands below
a mark; above it, people write. `write_openapi` renders the OpenAPI document; docs/conf.py runs it.
"""

from __future__ import annotations

import inspect
import json
import re
from argparse import SUPPRESS, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traitlets import Bool, Enum, Float, Int, TraitType

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.cli.parser import make_parser
from jupyter_agent_exec.mcp.sdk_server import TOOLS
from jupyter_agent_exec.mcp.tool import Tool, input_schema
from jupyter_agent_exec.openapi import document

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
MARK = "<!-- `make references` writes all that follows. -->\n"


# -- configuration ---------------------------------------------------------------------------------


def own_traits() -> dict[str, TraitType[Any, Any]]:
    """Return the traits of the extension, without those of Jupyter's own base class."""
    return {
        name: trait
        for name, trait in AgentExecApp.class_traits(config=True).items()
        if trait.this_class.__module__.startswith("jupyter_agent_exec.")
    }


def configuration() -> Iterator[str]:
    """Describe each trait by its own help."""
    for name, trait in sorted(own_traits().items()):
        yield f"## {name}"
        yield inspect.cleandoc(trait.help)
        yield " · ".join(_facts(trait))


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


def _commands(parser: ArgumentParser, called: str) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for name, command in action.choices.items():
                yield f"## {called.partition('agent-exec')[2]} {name}".replace("  ", " ")
                yield from _command(command, f"{called} {name}")
                yield from _commands(command, f"{called} {name}")


def _command(parser: ArgumentParser, called: str) -> Iterator[str]:
    yield str(parser.description)
    for group in parser._action_groups:
        rows = [
            f"| {_spelled(action)} | {_told(action)} |"
            for action in group._group_actions
            if action.help != SUPPRESS
            and action.dest != "help"
            and not isinstance(action, _SubParsersAction)
        ]
        if rows:
            title = group.title if group.title != "options" else "option"
            title = "argument" if title == "positional arguments" else title
            yield "\n".join([f"| {title} | {group.description or ''} |", "| --- | --- |", *rows])
    if parser.epilog:
        yield f"```text\n{parser.epilog}\n```"


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
    return re.sub(r"\s+", " ", told).replace("|", "\\|")


# -- the MCP tools ---------------------------------------------------------------------------------


def mcp_tools() -> Iterator[str]:
    """Describe each tool as a client is told of it."""
    yield "## Tools"
    for tool in TOOLS:
        yield from _tool(tool)


def _tool(tool: Tool[Any]) -> Iterator[str]:
    schema = input_schema(tool.input)
    required = schema.get("required", [])
    yield f"### {tool.name}"
    yield tool.description
    hints = [
        "changes nothing" if tool.hints.read_only else "changes things",
        *(["may remove or replace"] if tool.hints.destructive else []),
        *(["may be repeated"] if tool.hints.idempotent else []),
    ]
    yield f"Scopes: any of {', '.join(f'`{s}`' for s in tool.scopes)}; {', '.join(hints)}."
    rows = ["| argument | |", "| --- | --- |"]
    for name, one in schema["properties"].items():
        default = f" (default `{json.dumps(one['default'])}`)" if "default" in one else ""
        default = " (required)" if name in required else default
        rows.append(f"| `{name}` | {one.get('description', '')}{default} |".replace("|  (", "| ("))
    if schema["properties"]:
        yield "\n".join(rows)
    examples = "\n".join(json.dumps(each, ensure_ascii=False) for each in tool.examples)
    yield f"```json\n{examples}\n```"


PAGES = {
    "configuration.md": configuration,
    "cli.md": commands,
    "mcp-tools.md": mcp_tools,
}


def page(name: str) -> str:
    """Return a page as it should be: what people wrote, and below the mark what the code says."""
    written, mark, _ = (REFERENCE / name).read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ValueError(f"{name} has no line {MARK!r}")
    return written + mark + "\n" + "\n\n".join(PAGES[name]()) + "\n"


# -- the OpenAPI document --------------------------------------------------------------------------


def openapi(described: dict[str, Any]) -> Iterator[str]:
    """Render the OpenAPI document: each route, and then each model."""
    yield "# Routes and models"
    yield (
        "Every route of the server, and every model of its requests and answers, as "
        "`GET /openapi.json` describes them. [The HTTP routes](api.md) says how they work together."
    )
    for path, verbs in described["paths"].items():
        for verb, operation in verbs.items():
            yield from _operation(f"{verb.upper()} {path}", operation)
    for name, schema in described["components"]["schemas"].items():
        yield f"({_anchor(name)})="
        yield f"## {name}"
        yield inspect.cleandoc(schema.get("description", ""))
        rows = [
            _row(field, one, required=field in schema.get("required", []))
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


def write_openapi() -> None:
    """Write the page of routes and models, which only the built documentation has."""
    described = document(AgentExecApp.routes, version="0", base_path="/")
    (REFERENCE / "openapi.md").write_text("\n\n".join(openapi(described)) + "\n", encoding="utf-8")


def main() -> None:
    """Write all pages that are kept."""
    for name in PAGES:
        (REFERENCE / name).write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
