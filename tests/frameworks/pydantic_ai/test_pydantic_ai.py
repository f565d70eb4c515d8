from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from pydantic_ai import (
    Agent,
    BinaryImage,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from examples.frameworks import pydantic_ai_conversation
from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.pydantic_ai import JupyterToolset
from tests.frameworks.sources import CRASH, PNG, PROCESSES, SHOW_IMAGE, documented, endless, runs


@pytest.fixture(scope="module")
def toolset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterToolset[None]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("work"))
        with JupyterToolset[None](timeout=30) as toolset:
            yield toolset


def agent_that_runs(toolset: JupyterToolset[None], *sources: str) -> Agent[None, str]:
    """Return an agent whose model calls the tool with each source in turn."""
    return Agent(model_that_runs(*sources), toolsets=[toolset])


def model_that_runs(*sources: str | None) -> FunctionModel:
    """Return a model that says it is done at the end, and where None stands."""
    left = [*sources, None]

    def answer(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
        source = left.pop(0)
        if source is None:
            return ModelResponse([TextPart("Done.")])
        return ModelResponse([ToolCallPart("run_python", {"code": source})])

    return FunctionModel(answer)


def returns(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    return [
        part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)
    ]


def run(toolset: JupyterToolset[None], *sources: str) -> list[ToolReturnPart]:
    result = agent_that_runs(toolset, *sources).run_sync("Go.")
    assert result.output == "Done."
    return returns(result.all_messages())


def test_the_model_is_told_of_the_tool_and_its_argument(toolset: JupyterToolset[None]) -> None:
    model = TestModel(call_tools=[])
    Agent(model, toolsets=[toolset]).run_sync("Go.")
    assert model.last_model_request_parameters is not None
    (tool,) = model.last_model_request_parameters.function_tools
    assert tool.name == "run_python"
    assert tool.sequential
    assert "keeps its state" in (tool.description or "")
    assert "cell" in tool.parameters_json_schema["properties"]["code"]["description"]


def test_variables_stay_and_the_cell_is_the_metadata(toolset: JupyterToolset[None]) -> None:
    first, second = run(toolset, "x = 20\nprint('printed')", "x + 1")
    assert (first.content, second.content) == ("printed", "21")
    assert run(toolset, "x + 2")[0].content == "22"
    nbformat.validate(nbformat.v4.new_notebook(cells=[nbformat.from_dict(second.metadata["cell"])]))


def test_images_are_images_and_the_history_can_be_stored(toolset: JupyterToolset[None]) -> None:
    result = agent_that_runs(toolset, SHOW_IMAGE).run_sync("Go.")
    (part,) = returns(result.all_messages())
    text, image = part.content
    assert PNG[:20] not in text
    assert isinstance(image, BinaryImage)
    assert image.media_type == "image/png"
    stored = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    assert returns(stored)[0].files == [image]


def test_code_that_raises_or_dies_is_told_and_uses_up_no_retries(
    toolset: JupyterToolset[None],
) -> None:
    failed, again, died, after = run(toolset, "print('before')\n1 / 0", "1 / 0", CRASH, "1")
    assert "before" in failed.content
    assert "ZeroDivisionError" in again.content
    assert "died" in died.content
    assert "variables are gone" in after.content


def test_calls_of_one_response_run_in_their_order(toolset: JupyterToolset[None]) -> None:
    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("Done.")])
        sources = ["order = [1]", "order.append(2)", "order"]
        return ModelResponse([ToolCallPart("run_python", {"code": each}) for each in sources])

    result = Agent(FunctionModel(answer), toolsets=[toolset]).run_sync("Go.")
    assert returns(result.all_messages())[-1].content == "[1, 2]"


def test_cancelling_the_run_stops_the_code(toolset: JupyterToolset[None], tmp_path: Path) -> None:
    async def cancelled() -> None:
        started = tmp_path / "started"
        agent = agent_that_runs(toolset, f"kept = 1\n{endless(started)}")
        task = asyncio.create_task(agent.run("Go."))
        while not started.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert run(toolset, "kept")[0].content == "1"


def test_a_server_that_is_not_there_fails_the_tool_and_not_the_run() -> None:
    toolset = JupyterToolset[None](target=Target(url="http://127.0.0.1:9", token="secret"))
    (said,) = run(toolset, "1")
    assert said.outcome == "failed"
    assert "127.0.0.1:9" in said.content


def test_a_run_leaves_nothing_behind_and_the_next_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    toolset = JupyterToolset[None](id="python")

    async def kept() -> list[Any]:
        agent = agent_that_runs(toolset, "x = 1")
        async with agent:
            await agent.run("Go.")
            result = await agent_that_runs(toolset, "x").run("Go.")
        return [part.content for part in returns(result.all_messages())]

    assert asyncio.run(kept()) == ["1"]
    (after,) = run(toolset, PROCESSES)
    note, printed = after.content.split("\n")
    assert "variables of earlier runs are gone" in note
    server, kernel = printed.split()
    assert not runs(server)
    assert not runs(kernel)


def test_the_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = model_that_runs(
        "import random\nsums = [random.randint(1, 6) + random.randint(1, 6) for _ in range(1000)]",
        None,
        "len(sums), 0 < sums.count(7) < 1000",
    )
    result = pydantic_ai_conversation.main(model)
    assert returns(result.new_messages())[0].content == "(1000, True)"


def test_the_example_of_the_documentation_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(documented("pydantic-ai"), {"model": model_that_runs("x = 1", None, "x")})
    assert capsys.readouterr().out == "Done.\n"
