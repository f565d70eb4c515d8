from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from autogen_core.code_executor import (
    Alias,
    FunctionWithRequirements,
    ImportFromModule,
    with_requirements,
)
from autogen_ext.code_executors.azure import ACADynamicSessionsCodeExecutor
from autogen_ext.code_executors.local import LocalCommandLineCodeExecutor
from running import executed

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.autogen import JupyterCodeExecutor
from tests.real_server import RealServer


def add_two_numbers(a: int, b: int = 2) -> int:
    """Add two numbers together."""
    return a + b


@with_requirements(
    python_packages=["pandas"],
    global_imports=["json", Alias("pandas", "pd"), ImportFromModule("pathlib", ("Path",))],
)
def load_data(names: list[str]) -> object:
    """Load some sample data.

    Returns:
        A table.
    """
    return pd.DataFrame(json.loads(json.dumps({"name": names})))  # type: ignore[name-defined] # noqa: F821


FROM_STRING = FunctionWithRequirements.from_str(
    'import math\n\ndef area(r: float) -> float:\n    "Return the area of a circle."\n'
    "    return math.pi * r**2\n"
)

FUNCTIONS = [add_two_numbers, load_data, FROM_STRING]


@with_requirements(python_packages=["no-such-package"], global_imports=[])
def needs_what_is_missing() -> None:
    """Do nothing."""


@with_requirements(global_imports=["no_such_module"])
def imports_what_is_missing() -> None:
    """Do nothing."""


FAILS = FunctionWithRequirements.from_str("def f() -> None:\n    ...\n")
FAILS.func = "def f(x: int = UNKNOWN) -> None:\n    ...\n"


def test_they_are_told_to_a_model_as_the_azure_executor_tells_them(tmp_path: Path) -> None:
    ours = JupyterCodeExecutor(functions=FUNCTIONS, output_dir=tmp_path)
    azures: Any = ACADynamicSessionsCodeExecutor("http://localhost", None, functions=FUNCTIONS)
    assert ours.format_functions_for_prompt() == azures.format_functions_for_prompt()
    assert ours.format_functions_for_prompt("$functions!") == azures.format_functions_for_prompt(
        "$functions!"
    )
    assert ours.FUNCTION_PROMPT_TEMPLATE == azures.FUNCTION_PROMPT_TEMPLATE
    assert ours.SUPPORTED_LANGUAGES == azures.SUPPORTED_LANGUAGES
    assert ours.functions_module == azures.functions_module
    assert ours.functions == ["add_two_numbers", "load_data", "area"]


def test_it_has_the_attributes_of_the_frameworks_other_executors(tmp_path: Path) -> None:
    ours = JupyterCodeExecutor(output_dir=tmp_path)
    for other in (ACADynamicSessionsCodeExecutor, LocalCommandLineCodeExecutor):
        made = {name for name, each in vars(other).items() if isinstance(each, property)}
        assert made - {"cleanup_temp_files"} <= set(dir(ours))
    assert (ours.work_dir, ours.functions) == (tmp_path, [])


def test_code_finds_them_by_name_and_in_a_module_also_after_a_crash(server: RealServer) -> None:
    async def all_of_it() -> None:
        async with JupyterCodeExecutor(
            functions=FUNCTIONS, target=Target(url=server.url, token=server.token)
        ) as executor:
            called = await executed(
                executor,
                "len(In) - 1",
                "add_two_numbers(1)",
                "from functions import load_data\nload_data(['John', 'Anna'])['name'][0]",
                "from functions import area\nround(area(1), 2)",
                "len([name for name in dir() if 'functions' in name])",
            )
            assert called.output == "1\n3\n'John'\n3.14\n0"
            await executed(executor, "import os\nos._exit(1)")
            again = await executed(executor, "from functions import area\nload_data(['a']).size")
            assert again.output.endswith("variables are gone.\n1")
            await executor.restart()
            assert (await executed(executor, "add_two_numbers(2, 3)")).output == "5"

    asyncio.run(all_of_it())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (needs_what_is_missing, "Packages unavailable in environment: .*no-such-package"),
        (imports_what_is_missing, "Packages unavailable in environment: .*no_such_module"),
        (FAILS, "Functions failed to load: .*NameError: name 'UNKNOWN' is not defined"),
    ],
)
def test_what_does_not_load_is_said_at_the_start(
    server: RealServer, function: Any, message: str, tmp_path: Path
) -> None:
    executor = JupyterCodeExecutor(
        functions=[function], target=Target(url=server.url, token=server.token), output_dir=tmp_path
    )
    with pytest.raises(ValueError, match=message):
        asyncio.run(executor.start())
    asyncio.run(executor.stop())


def test_what_no_other_process_could_run_is_refused(tmp_path: Path) -> None:
    def closure() -> Path:
        return tmp_path

    for function in (lambda: 1, closure, print):
        with pytest.raises(ValueError, match="Functions failed to load"):
            JupyterCodeExecutor(functions=[function])
