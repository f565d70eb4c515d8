"""The tool set as Pantheon's agents use it: calls as a model makes them, without a model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pantheon.agent import Agent, StopRunning

from jupyter_agent_exec.adapters.pantheon import PythonInterpreterToolSet
from jupyter_agent_exec.client import Result, Session

RUN = "python__run_python_code"


def call(number: int, code: str, name: str = RUN) -> dict[str, Any]:
    """Return a call as a model asks for it."""
    return {
        "id": str(number),
        "type": "function",
        "function": {"name": name, "arguments": json.dumps({"code": code})},
    }


async def agent_with(toolset: PythonInterpreterToolSet) -> Agent:
    agent = Agent(name="analyst", instructions="You analyse.", model="openai/none")
    await agent.toolset(toolset)
    return agent


def answers(
    toolset: PythonInterpreterToolSet, chat: str, *codes: str, **options: Any
) -> list[dict[str, Any]]:
    """Have an agent make calls at once; return the messages that its model is sent."""

    async def handle() -> list[dict[str, Any]]:
        agent = await agent_with(toolset)
        calls = [call(number, code) for number, code in enumerate(codes)]
        context = {"client_id": "person", "chat_id": chat}
        messages = await agent._handle_tool_calls(calls, context, timeout=60, **options)
        return list(messages)

    return asyncio.run(handle())


def test_a_model_is_offered_the_tools(toolset: PythonInterpreterToolSet) -> None:
    async def offered() -> dict[str, Any]:
        tools = await (await agent_with(toolset)).get_tools_for_llm()
        return {tool["function"]["name"]: tool["function"] for tool in tools}

    tools = asyncio.run(offered())
    assert {name for name in tools if name.startswith("python__")} == {
        RUN,
        "python__manage_interpreters",
    }
    assert {"code", "interpreter_id", "result_var_name"} <= set(
        tools[RUN]["parameters"]["properties"]
    )


def test_calls_of_one_chat_share_variables_and_other_chats_have_none(
    toolset: PythonInterpreterToolSet,
) -> None:
    one = answers(toolset, "one", "x = 1", "print(x + 1)")
    assert json.loads(one[1]["content"])["stdout"] == "2\n"
    (other,) = answers(toolset, "other", "'x' in dir()")
    assert json.loads(other["content"])["stdout"] == "False\n"


def test_a_model_reads_where_figures_are_and_never_their_bytes(
    toolset: PythonInterpreterToolSet,
) -> None:
    (message,) = answers(toolset, "one", "_ = plt.plot([1, 2])")
    assert ".matplotlib_figs/" in message["content"]
    assert "base64" not in message["content"]
    assert message["raw_content"]["base64_uri"][0].startswith("data:image/png;base64,")


def test_a_model_reads_the_traceback_of_an_error(toolset: PythonInterpreterToolSet) -> None:
    failed, exited = answers(toolset, "one", "print('before')\n1 / 0", "import sys\nsys.exit(2)")
    assert "before" in failed["content"]
    assert "ZeroDivisionError: division by zero" in failed["content"]
    assert "SystemExit" in exited["content"]


def test_stopping_the_agent_stops_the_code(toolset: PythonInterpreterToolSet, folder: Path) -> None:
    started = folder / "agent-started"
    code = f"open({str(started)!r}, 'w').close()\nwhile True: pass"
    with pytest.raises(StopRunning):
        answers(toolset, "one", code, check_stop=lambda _: started.exists(), time_delta=0.05)
    (message,) = answers(toolset, "one", "'still here'")
    assert json.loads(message["content"])["stdout"] == "still here\n"


def test_each_call_is_an_execution_of_the_history(toolset: PythonInterpreterToolSet) -> None:
    answers(toolset, "history", "kept = 1")
    answers(toolset, "history", "kept + 1")

    def executions(session: Session) -> list[Result]:
        assert session.info.agent.name == "pantheon"
        assert session.info.title == "python: history"
        return [each for each in session.executions() if not each.execution.init]

    place = toolset.interpreters[toolset.clientid_to_interpreterid["history"]].place
    first, second = place.do(executions)
    assert [first.execution.source, second.execution.source] == ["kept = 1", "kept + 1"]
    (output,) = second.cell["outputs"]
    assert (output["output_type"], output["data"]["text/plain"]) == ("execute_result", "2")
    assert [first.cell["execution_count"], second.cell["execution_count"]] == [1, 2]
