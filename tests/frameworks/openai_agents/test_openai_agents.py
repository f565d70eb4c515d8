from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResult, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from examples.frameworks import openai_agents_stock_plot
from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.openai_agents import JupyterPython
from tests.frameworks.sources import CRASH, PNG, PROCESSES, SHOW_IMAGE, documented, endless, runs

set_tracing_disabled(True)  # it would be sent to the SDK's makers


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterPython]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("work"))
        python = JupyterPython(timeout=30)
        yield python
        asyncio.run(python.close())


def model_that_runs(*sources: str) -> ScriptedModel:
    calls = [
        [function_call("run_python", {"code": source}, call_id=f"call-{number}")]
        for number, source in enumerate(sources)
    ]
    return ScriptedModel([*calls, [assistant_message("Done.")]])


async def run(python: JupyterPython, *sources: str) -> list[Any]:
    """Have an agent call the tool with each source in turn; return what its model was told."""
    agent = Agent(name="Analyst", model=model_that_runs(*sources), tools=[python.tool])
    result: RunResult = await Runner.run(agent, "Go.")
    assert result.final_output == "Done."
    return [
        item["output"]
        for item in result.to_input_list()
        if item.get("type") == "function_call_output"
    ]


def test_the_model_is_told_of_the_tool_and_its_argument(python: JupyterPython) -> None:
    assert python.tool.name == "run_python"
    assert "keeps its state" in python.tool.description
    assert "cell" in python.tool.params_json_schema["properties"]["code"]["description"]


def test_variables_stay_from_call_to_call_and_run_to_run(python: JupyterPython) -> None:
    assert asyncio.run(run(python, "x = 20\nprint('printed')", "x + 1")) == ["printed", "21"]
    assert asyncio.run(run(python, "x + 2")) == ["22"]


def test_images_are_images_and_never_text(python: JupyterPython) -> None:
    ((text, image),) = asyncio.run(run(python, SHOW_IMAGE))
    assert text["type"] == "input_text"
    assert PNG[:20] not in text["text"]
    assert image["image_url"] == f"data:image/png;base64,{PNG}"


def test_code_that_raises_or_dies_is_told_and_the_agent_goes_on(python: JupyterPython) -> None:
    failed, died, after = asyncio.run(run(python, "print('before')\n1 / 0", CRASH, "1"))
    assert "before" in failed
    assert "ZeroDivisionError" in failed
    assert "died" in died
    assert "variables are gone" in after


def test_arguments_that_are_none_end_no_run(python: JupyterPython) -> None:
    call = function_call("run_python", "no JSON", call_id="call")
    model = ScriptedModel([[call], [assistant_message("Done.")]])
    agent = Agent(name="Analyst", model=model, tools=[python.tool])
    result = asyncio.run(Runner.run(agent, "Go."))
    assert result.final_output == "Done."


def test_cancelling_the_run_stops_the_code(python: JupyterPython, tmp_path: Path) -> None:
    async def cancelled() -> None:
        started = tmp_path / "started"
        task = asyncio.create_task(run(python, f"kept = 1\n{endless(started)}"))
        while not started.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert asyncio.run(run(python, "kept")) == ["1"]


def test_a_server_that_is_not_there_is_told() -> None:
    async def refused() -> list[Any]:
        async with JupyterPython(target=Target(url="http://127.0.0.1:9", token="secret")) as python:
            return await run(python, "1")

    (said,) = asyncio.run(refused())
    assert "127.0.0.1:9" in said


def test_options_of_the_sdk_reach_its_tool() -> None:
    python = JupyterPython(name_override="analyse", needs_approval=True)
    assert python.tool.name == "analyse"
    assert python.tool.needs_approval is True


def test_nothing_is_left_after_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def used() -> str:
        async with JupyterPython() as python:
            return str((await run(python, PROCESSES))[0])

    server, kernel = asyncio.run(used()).split()
    assert not runs(server)
    assert not runs(kernel)


def test_the_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.csv").write_text("day,price\n1,10\n2,12\n3,7\n")
    model = model_that_runs(
        "import pandas as pd\nprices = pd.read_csv('prices.csv')",
        "%matplotlib inline\nprices.plot(x='day', y='price');",
    )
    asyncio.run(openai_agents_stock_plot.main(model))
    assert model.last_call is not None
    told = model.last_call.input[-1]["output"]
    assert [part["type"] for part in told] == ["input_text", "input_image"]


def test_the_example_of_the_documentation_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(documented("openai-agents"), {"model": model_that_runs("6 * 7")})
    assert capsys.readouterr().out == "Done.\n"
