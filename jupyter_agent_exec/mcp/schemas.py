"""JSON schemas of tools, from the models. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

_REF = "#/$defs/{name}"


def object_schema(model: Any, *, examples: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """Return the schema of an object, as older clients want it: `type: object` at its root.

    Parameters
    ----------
    model
        A model whose JSON is an object.
    examples
        Objects as they could be.
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
    """Return the components to which a schema refers, also through others."""
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
