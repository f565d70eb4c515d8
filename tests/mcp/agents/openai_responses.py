"""The responses API, as Codex speaks it."""

from __future__ import annotations

import base64
import json
from typing import Any, Final
from uuid import uuid4

from tests.mcp.agents.turns import Answered, Call, Seen, events

PATH: Final = "/v1/responses"
NAMESPACE: Final = "mcp__jupyter"


def read(asked: Any) -> Seen:
    """Return what reaches the model."""
    offered = [tool for tool in asked["tools"] if tool["type"] == "namespace"]
    return Seen(
        {
            tool["name"]: {"name": tool["name"], "namespace": each["name"]}
            for each in offered
            if each["name"].startswith(NAMESPACE)
            for tool in each["tools"]
        },
        [
            _answered(item["output"])
            for item in asked["input"]
            if item["type"] == "function_call_output"
        ],
    )


def _answered(output: Any) -> Answered:
    items = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
    return Answered(
        "\n".join(item["text"] for item in items if item["type"] == "input_text"),
        [
            base64.b64decode(item["image_url"].partition("base64,")[2])
            for item in items
            if item["type"] == "input_image"
        ],
    )


def write(answer: Call | str) -> str:
    """Return the stream with a call of a tool, or with a text."""
    if isinstance(answer, str):
        item: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "id": f"msg_{uuid4().hex}",
            "content": [{"type": "output_text", "text": answer}],
        }
    else:
        item = {
            "type": "function_call",
            "id": f"fc_{uuid4().hex}",
            "call_id": f"call_{uuid4().hex}",
            "arguments": json.dumps(answer.arguments),
            **answer.tool,
        }
    response = {"id": f"resp_{uuid4().hex}"}
    used = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return events(
        [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response | {"usage": used}},
        ]
    )
