"""Whether an answer is what the OpenAPI document says of its route."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator


def check_answer(
    described: dict[str, Any],
    operation: dict[str, Any],
    status: int,
    content_type: str,
    body: bytes,
) -> Any:
    """Raise if an operation does not answer so; return the body if it is JSON."""
    content_type = content_type.partition(";")[0]
    contents = operation["responses"][str(status)].get("content") or {content_type: {}}
    content = contents.get(content_type) or contents.get("*/*", {})
    if not content_type.endswith("json"):
        return None
    parsed = json.loads(body)
    schema = {**content["schema"], "components": described["components"]}
    Draft202012Validator(schema).validate(parsed)
    return parsed
