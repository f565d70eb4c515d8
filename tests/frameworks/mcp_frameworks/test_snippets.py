"""The programs of a page, with models that call a tool once: they run code over MCP."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Model, ModelResponse, set_tracing_disabled
from agents.usage import Usage
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai import ModelResponse as Response
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.real_server import PROJECT, real_server

PAGE = PROJECT / "docs" / "how-to" / "frameworks" / "over-mcp.md"

CALL = {"target": {"kind": "scratch"}, "source": "6 * 7"}

TOOLS = {"execute", "get_execution", "list_sessions", "open_session"}


@pytest.fixture(autouse=True, scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("server")
    with (
        real_server(folder, python=os.environ["SERVER_PYTHON"]) as server,
        pytest.MonkeyPatch.context() as environ,
    ):
        environ.setenv("JUPYTER_AGENT_EXEC_URL", server.url)
        environ.setenv("JUPYTER_AGENT_EXEC_TOKEN", server.token)
        yield


def snippet(heading: str) -> str:
    """Return the program under a heading of the page."""
    text = PAGE.read_text().partition(f"\n## {heading}\n")[2]
    return text.partition("```python\n")[2].partition("```")[0]


class LangChainModel(FakeMessagesListChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> LangChainModel:
        assert {tool.name for tool in tools} >= TOOLS
        return self

    def _generate(self, messages: Any, *args: Any, **named: Any) -> Any:
        told = [message for message in messages if isinstance(message, ToolMessage)]
        assert ["42" in str(message.content) for message in told] == [True] * self.i
        return super()._generate(messages, *args, **named)


def test_langchain_runs_code(capsys: pytest.CaptureFixture[str]) -> None:
    call = {"name": "execute", "args": CALL, "id": "1", "type": "tool_call"}
    model = LangChainModel(responses=[AIMessage("", tool_calls=[call]), AIMessage("It is 42.")])
    exec(snippet("LangChain"), {"model": model})
    assert capsys.readouterr().out == "It is 42.\n"


class OpenAIModel(Model):
    """Calls the tool, then says what it answered."""

    async def get_response(self, *, input: Any, tools: Any, **_: Any) -> Any:
        assert {tool.name for tool in tools} >= TOOLS
        answers = [] if isinstance(input, str) else input[2:]
        call = ResponseFunctionToolCall(
            arguments=json.dumps(CALL), call_id="1", name="execute", type="function_call"
        )
        if answers:
            assert "42" in str(answers[0]["output"])
        text = ResponseOutputText(text="It is 42.", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="2", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse([message if answers else call], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **_: Any) -> Any:
        raise AssertionError


def test_the_openai_agents_sdk_runs_code(capsys: pytest.CaptureFixture[str]) -> None:
    set_tracing_disabled(True)
    exec(snippet("OpenAI Agents SDK"), {"model": OpenAIModel()})
    assert capsys.readouterr().out == "It is 42.\n"


def test_pydantic_ai_runs_code(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> Response:
        assert {tool.name for tool in info.function_tools} >= TOOLS
        told = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        assert all("42" in str(part.content) for part in told)
        return Response([TextPart("It is 42.") if told else ToolCallPart("execute", CALL)])

    exec(snippet("Pydantic AI"), {"model": FunctionModel(answer)})
    assert capsys.readouterr().out == "It is 42.\n"
