"""The Gemini API, as Gemini CLI speaks it."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from tests.mcp.agents.turns import Answered, Call, Seen

PATH: Final = "/v1beta/models/"
PREFIX: Final = "mcp_jupyter_"


def read(asked: Any) -> Seen:
    """Return what reaches the model."""
    offered = [
        each["name"]
        for tool in asked.get("tools", ())
        for each in tool.get("functionDeclarations", ())
    ]
    answers: list[Answered] = []
    for part in (part for content in asked["contents"] for part in content["parts"]):
        if "functionResponse" in part:
            answers.append(_answered(part["functionResponse"]))
        elif "inlineData" in part:
            answers[-1].images.append(base64.b64decode(part["inlineData"]["data"]))
    return Seen(
        {name.removeprefix(PREFIX): name for name in offered if name.startswith(PREFIX)}, answers
    )


def _answered(response: Any) -> Answered:
    return Answered(response["response"].get("output") or json.dumps(response["response"]))


def write(answer: Call | str) -> str:
    """Return the stream with a call of a tool, or with a text."""
    if isinstance(answer, str):
        part: dict[str, Any] = {"text": answer}
    else:
        part = {"functionCall": {"name": answer.tool, "args": answer.arguments}}
    told = {
        "candidates": [
            {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }
    return f"data: {json.dumps(told)}\n\n"
