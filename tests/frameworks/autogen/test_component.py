from __future__ import annotations

import asyncio
import json
from pathlib import Path

import autogen_ext.code_executors.jupyter as originals
import pytest
from autogen_core import ComponentModel
from autogen_core.code_executor import CodeExecutor, with_requirements
from autogen_ext.tools.code_execution import PythonCodeExecutionTool
from running import executed

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.autogen import JupyterCodeExecutor
from tests.real_server import RealServer

SECRET = "jaex_not-for-everybody"


@with_requirements(python_packages=["pandas>=2"], global_imports=["pandas"])
def size(rows: int) -> int:
    """Return how many rows a table of so many has."""
    return len(pandas.DataFrame({"a": range(rows)}))  # type: ignore[name-defined] # noqa: F821


def test_what_is_dumped_can_be_loaded(tmp_path: Path) -> None:
    executor = JupyterCodeExecutor(
        "python3",
        7,
        tmp_path,
        target=Target(url="http://localhost:8888/base", notebook="work.ipynb"),
        agent="analyst",
        functions=[size],
        functions_module="tools",
    )
    dumped = executor.dump_component()
    assert dumped.provider == "jupyter_agent_exec.adapters.autogen.JupyterCodeExecutor"
    assert dumped.component_type == "code_executor"
    loaded = CodeExecutor.load_component(json.loads(dumped.model_dump_json()))
    assert type(loaded) is JupyterCodeExecutor
    assert loaded.dump_component() == dumped
    assert (loaded.timeout, loaded.output_dir, loaded.functions_module) == (7, tmp_path, "tools")
    assert loaded.format_functions_for_prompt() == executor.format_functions_for_prompt()


def test_what_the_original_dumped_is_loaded_with_another_provider(tmp_path: Path) -> None:
    stored = originals.JupyterCodeExecutor("python3", 9, tmp_path).dump_component().model_dump()
    stored["provider"] = "jupyter_agent_exec.adapters.autogen.JupyterCodeExecutor"
    loaded = JupyterCodeExecutor.load_component(stored)
    assert (loaded.timeout, loaded.output_dir) == (9, tmp_path)


def test_a_folder_that_nobody_named_is_not_part_of_it() -> None:
    executor = JupyterCodeExecutor()
    loaded = JupyterCodeExecutor.load_component(executor.dump_component())
    assert executor.output_dir != loaded.output_dir
    executor.output_dir.rmdir()
    loaded.output_dir.rmdir()


@pytest.mark.parametrize("url", ["http://localhost:8888", f"http://localhost:8888?token={SECRET}"])
def test_a_token_is_kept_in_the_process_and_leaves_it_never(url: str, tmp_path: Path) -> None:
    token = None if SECRET in url else SECRET
    executor = JupyterCodeExecutor(target=Target(url=url, token=token), output_dir=tmp_path)
    dumped = executor.dump_component()
    for told in (repr(dumped), str(dumped), dumped.model_dump_json(), repr(vars(executor))):
        assert SECRET not in told
    assert dumped.config["url"] == "http://localhost:8888"
    here = JupyterCodeExecutor.load_component(dumped).dump_component()
    assert here.config["token"].get_secret_value() == SECRET
    stored = ComponentModel.model_validate_json(dumped.model_dump_json())
    assert "token" not in JupyterCodeExecutor.load_component(stored).dump_component().config


def test_a_component_loaded_without_its_token_reads_it_from_the_environment(
    server: RealServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = JupyterCodeExecutor(
        target=Target(url=server.url, token=server.token), output_dir=tmp_path
    )
    stored = PythonCodeExecutionTool(executor).dump_component().model_dump_json()
    tool = PythonCodeExecutionTool.load_component(json.loads(stored))
    monkeypatch.setenv("JUPYTER_AGENT_EXEC_TOKEN", server.token)

    async def all_of_it() -> None:
        async with tool._executor as loaded:
            assert (await executed(loaded, "6 * 7")).output == "42"

    asyncio.run(all_of_it())
