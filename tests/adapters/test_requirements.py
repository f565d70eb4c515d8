from __future__ import annotations

import importlib
from importlib.util import find_spec

import pytest

from jupyter_agent_exec.adapters.requirements import needed

FRAMEWORKS = {
    "autogen": "autogen_core",
    "autogen02": "autogen",
    "lagent": "lagent",
    "pantheon": "pantheon",
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


def test_another_version_says_which_works_before_anything_is_imported() -> None:
    message = r"works with pytest<2, and pytest .* is installed: pip"
    with pytest.raises(ImportError, match=message), needed("pytest<2"):
        raise AssertionError("not reached")


def test_a_distribution_that_only_looks_like_it_says_which_works() -> None:
    with (
        pytest.raises(ImportError, match=r"works with 'autogen-agentchat~=0.2.0', and something"),
        needed("autogen-agentchat~=0.2.0"),
    ):
        from pathlib import ThisIsNotThere  # noqa: F401


def test_a_release_candidate_of_a_version_that_works_does_too() -> None:
    with needed("pytest>=1.0rc1"):
        pass
