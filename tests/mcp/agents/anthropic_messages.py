"""The messages API, as Claude Code speaks it."""

from __future__ import annotations

import base64
import json
from typing import Any, Final
from uuid import uuid4

from tests.mcp.agents.turns import Answered, Call, Seen, events

PATH: Final = "/v1/messages"
PREFIX: Final = "mcp__jupyter__"
LOADER: Final = "ToolSearch"
"""The client's tool that gives the model those tools of a server that fit some words."""


def read(asked: Any) -> Seen:
    """Return what reaches the model. The answers of `LOADER` are left out."""
    tools = {
        name.removeprefix(PREFIX): name
        for name in (tool["name"] for tool in asked.get("tools", ()))
        if name.startswith(PREFIX) or name == LOADER
    }
    blocks = [
        block
        for message in asked["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    loads = {block["id"] for block in blocks if block.get("name") == LOADER}
    return Seen(
        tools,
        [
            _answered(block["content"])
            for block in blocks
            if block["type"] == "tool_result" and block["tool_use_id"] not in loads
        ],
    )


def _answered(content: Any) -> Answered:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return Answered(
        "\n".join(block["text"] for block in blocks if block["type"] == "text"),
        [base64.b64decode(block["source"]["data"]) for block in blocks if block["type"] == "image"],
    )


def write(answer: Call | str) -> str:
    """Return the stream with a call of a tool, or with a text."""
    if isinstance(answer, str):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": answer}
    else:
        block = {"type": "tool_use", "id": f"toolu_{uuid4().hex}", "name": answer.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
    message = {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    stopped = "end_turn" if isinstance(answer, str) else "tool_use"
    return events(
        [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": stopped, "stop_sequence": None},
                "usage": {"output_tokens": 1},
            },
            {"type": "message_stop"},
        ]
    )
