"""lagent 0.5: the same actions, which its executors call with messages."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

import pytest
from lagent.actions import ActionExecutor, AsyncActionExecutor
from lagent.schema import ActionStatusCode, AgentMessage

from jupyter_agent_exec.adapters.lagent import AsyncIPythonInterpreter, IPythonInterpreter

pytestmark = pytest.mark.usefixtures("folder")


def call(action: str, command: str) -> AgentMessage:
    content = {"name": action, "parameters": {"command": command}}
    return AgentMessage(sender="model", content=content)


def test_this_is_the_version() -> None:
    assert version("lagent").startswith("0.5")


def test_its_executor_runs_code_and_variables_stay() -> None:
    with IPythonInterpreter(20, "ENV", "images") as interpreter:
        executor = ActionExecutor([interpreter])
        assert executor(call("IPythonInterpreter", "x = 6")).content.state == 0
        answer = executor(call("IPythonInterpreter", "print(x * 7)")).content
        assert answer.result == [{"type": "text", "content": "42\n"}]
        failed = executor(call("IPythonInterpreter", "1 / 0")).content
        assert failed.state == ActionStatusCode.API_ERROR
        assert "ZeroDivisionError" in failed.errmsg


def test_its_awaiting_executor_does_too() -> None:
    async def work() -> list[str]:
        async with AsyncIPythonInterpreter(
            max_kernels=2, reuse_kernel=True, startup_rate=4, connection_dir="anywhere"
        ) as interpreter:
            executor = AsyncActionExecutor([interpreter])
            answer = await executor(call("AsyncIPythonInterpreter", "print(6 * 7)"))
            apart = await interpreter.run("'x' in dir()", session_id="other")
            await interpreter.shutdown("other")
            return [str(each.result[0]["content"]) for each in (answer.content, apart)]

    assert asyncio.run(work()) == ["42\n", "False"]


def test_it_is_described_as_lagents_own() -> None:
    from lagent.actions.ipython_interpreter import IPythonInterpreter as LagentsOwn

    with IPythonInterpreter() as interpreter:
        theirs, ours = LagentsOwn().description, interpreter.description
    assert (ours["name"], ours["required"]) == (theirs["name"], theirs["required"])
    names = [[each["name"] for each in told["parameters"]] for told in (ours, theirs)]
    assert names[0] == names[1]
