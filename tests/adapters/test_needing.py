from __future__ import annotations

import importlib
from importlib.util import find_spec

import pytest

FRAMEWORKS = {
    "autogen": "autogen_core",
    "autogen02": "autogen",
    "lagent": "lagent",
    "langchain": "langchain_core",
    "openai_agents": "agents",
    "pantheon": "pantheon",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
}


@pytest.mark.parametrize(("adapter", "framework"), FRAMEWORKS.items())
def test_an_adapter_without_its_framework_says_what_to_install(
    adapter: str, framework: str
) -> None:
    if find_spec(framework) is not None:
        pytest.skip(f"{framework} is installed")
    with pytest.raises(ImportError, match=r"This adapter needs .* is not installed: pip install '"):
        importlib.import_module(f"jupyter_agent_exec.adapters.{adapter}")
