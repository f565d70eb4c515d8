"""The page about the tools says what the tools say, and all of it makes sense to a model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from jupyter_agent_exec.mcp import budget
from jupyter_agent_exec.mcp.sdk_server import INSTRUCTIONS, TOOLS, _described
from jupyter_agent_exec.mcp.tool import Tool, arguments, input_schema
from jupyter_agent_exec.types import Status

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "mcp-tools.md"

EVERY_TOOL = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def test_the_page_has_all_limits() -> None:
    page = PAGE.read_text()
    for number in (budget.TEXT, budget.LONGEST_SIDE, budget.PICTURES):
        assert f"{number:,}" in page or str(number) in page


@EVERY_TOOL
def test_examples_are_arguments_that_the_tool_takes(tool: Tool[Any]) -> None:
    validator = Draft202012Validator(input_schema(tool.input))
    assert tool.examples
    for example in tool.examples:
        validator.validate(example)
        arguments(tool, example)


@EVERY_TOOL
def test_a_tool_is_described_shortly_and_its_schemas_are_valid(tool: Tool[Any]) -> None:
    assert 20 < len(tool.description) < 500
    assert tool.description.endswith(".")
    Draft202012Validator.check_schema(input_schema(tool.input))


def test_all_tools_together_cost_a_model_little() -> None:
    usual = [tool for tool in TOOLS if not tool.is_extra]
    listed, of_all = (
        [_described(tool).model_dump(by_alias=True, exclude_none=True) for tool in tools]
        for tools in (usual, TOOLS)
    )
    assert len(usual) <= 14
    assert len(json.dumps(listed, ensure_ascii=False, separators=(",", ":"))) <= 4 * 2_400
    assert len(json.dumps(of_all, ensure_ascii=False, separators=(",", ":"))) <= 4 * 2_500
    assert not any("outputSchema" in tool for tool in listed)


def test_the_instructions_cost_little_and_name_what_exists() -> None:
    assert len(INSTRUCTIONS.format(timeout=3600)) <= 4 * 450
    known = {"kind", "scratch", "notebook", "path", "cell", "id"}
    for tool in TOOLS:
        known |= {tool.name, *input_schema(tool.input)["properties"]}
    named = set(re.findall(r"`(\w+)`|\"(\w+)\"|\b(\w+_\w+)\b", INSTRUCTIONS))
    assert {name for names in named for name in names if name} - known <= set(get_args(Status))
    said = {"target", "trial", "placement", "edit_notebook", "propose", "awaiting_approval"}
    assert all(word in INSTRUCTIONS for word in said)
