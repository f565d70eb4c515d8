from __future__ import annotations

import asyncio
import hashlib
import json
import re
from pathlib import Path

import pytest
from autogen_agentchat.agents import ApprovalRequest, AssistantAgent, CodeExecutorAgent
from autogen_agentchat.messages import CodeExecutionEvent, TextMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from autogen_ext.tools.code_execution import PythonCodeExecutionTool
from running import executed

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.autogen import JupyterCodeExecutor
from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.models import Execution
from jupyter_agent_exec.types import ApprovalMode
from tests.real_server import RealServer

MODEL = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=True,
    family="unknown",
    structured_output=True,
    multiple_system_messages=True,
)


def calls(source: str) -> CreateResult:
    """Return what a model answers that calls the tool."""
    call = FunctionCall(id="1", name="CodeExecutor", arguments=json.dumps({"code": source}))
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    return CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False)


def answer(executor: JupyterCodeExecutor, source: str) -> str:
    """Return what an assistant reads of the tool when its model calls it."""
    model = ReplayChatCompletionClient([calls(source)], model_info=MODEL)
    agent = AssistantAgent("assistant", model, tools=[PythonCodeExecutionTool(executor)])
    return str(asyncio.run(agent.run(task="go")).messages[-1].content)


def test_an_assistant_calls_it_as_a_tool(executor: JupyterCodeExecutor) -> None:
    assert answer(executor, "x = 6 * 7\nprint(x)") == "42\n"
    assert "ZeroDivisionError" in answer(executor, "x / 0")


def test_an_agent_executes_what_it_is_sent(executor: JupyterCodeExecutor) -> None:
    async def all_of_it() -> list[str]:
        with pytest.warns(UserWarning, match="No approval function"):
            agent = CodeExecutorAgent("executor", executor)
        told = []
        for code in ("y = 20\ny", "y + 1", "1 / 0"):
            message = TextMessage(content=f"```python\n{code}\n```", source="user")
            told.append((await agent.on_messages([message], CancellationToken())).chat_message)
        with pytest.warns(UserWarning, match="No approval function"):
            loaded = CodeExecutorAgent.load_component(agent.dump_component())
        assert type(loaded._code_executor) is JupyterCodeExecutor
        return [each.to_text() for each in told]

    first, second, failed = asyncio.run(all_of_it())
    assert (first, second) == ("20", "21")
    assert re.match(r"(?s)The script ran, then exited with an error .*ZeroDivisionError", failed)


def test_a_model_mends_what_failed_in_the_same_kernel(executor: JupyterCodeExecutor) -> None:
    model = ReplayChatCompletionClient(
        [
            "```python\nkept = 6\nprint(kept * seven)\n```",
            '{"reason": "there is no seven", "retry": true}',
            "```python\nprint(kept * 7)\n```",
            "It is 42.",
        ],
        model_info=MODEL,
    )
    with pytest.warns(UserWarning, match="No approval function"):
        agent = CodeExecutorAgent("coder", executor, model_client=model, max_retries_on_error=1)

    async def executions() -> list[CodeExecutionEvent]:
        said = agent.run_stream(task="How much is 6 times 7?")
        return [each async for each in said if isinstance(each, CodeExecutionEvent)]

    events = asyncio.run(executions())
    assert [each.result.exit_code for each in events] == [1, 0]
    assert "NameError: name 'seven' is not defined" in events[0].result.output
    assert events[1].result.output == "42\n"


class Person:
    """Decides about what asks, once it does."""

    def __init__(self, server: RealServer, mode: ApprovalMode = "always") -> None:
        self._client = AgentExecClient(server.url, server.token)
        self._mode = mode

    def __enter__(self) -> Person:
        self._client.set_policy(scratch=self._mode)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.set_policy(scratch="none")
        self._client.close()

    async def approves(self, change_into: str | None = None) -> None:
        for each in await asyncio.to_thread(self.is_asked):
            digest = hashlib.sha256(each.cell["source"].encode()).hexdigest()
            self._client.approve(each.id, digest, source=change_into)

    async def rejects(self, reason: str) -> None:
        self._client.reject((await asyncio.to_thread(self.is_asked))[0].id, reason)

    def statuses(self, agent: str) -> list[str]:
        (session,) = self._client.sessions(agent=agent)
        return [each.status for each in session.executions()]

    def is_asked(self) -> list[Execution]:
        """Wait until something asks."""
        while not (asking := self._client.approvals().executions):
            pass
        return asking


def test_a_person_decides_and_what_was_approved_runs_once(server: RealServer) -> None:
    message = TextMessage(content="```python\nx = 1\n```\n```python\nx + 1\n```", source="user")

    async def all_of_it(person: Person) -> list[str]:
        async with JupyterCodeExecutor(
            target=Target(url=server.url, token=server.token), agent="careful"
        ) as executor:
            agent = CodeExecutorAgent("executor", executor, approval_func=executor.approval_func)
            told = []
            for deciding in (
                person.approves(),
                person.rejects("not on a Friday"),
                person.approves(change_into="x = 5"),
            ):
                response, _ = await asyncio.gather(
                    agent.on_messages([message], CancellationToken()), deciding
                )
                told.append(response.chat_message.to_text())
            assert person.statuses("careful") == ["ok", "ok", "rejected", "cancelled", "ok", "ok"]
            return told

    with Person(server) as person:
        approved, rejected, changed = asyncio.run(all_of_it(person))
    assert approved == "\n2"
    assert rejected == "Code execution was not approved. Reason: not on a Friday"
    assert "A person changed the code before it ran:\nx = 5" in changed


def test_what_was_cancelled_while_a_person_decided_stops_and_runs_anew_later(
    server: RealServer, marked: Path
) -> None:
    source = f"open({str(marked)!r}, 'w').close()\nimport time\nwhile wait: time.sleep(0.01)"
    message = TextMessage(content=f"```python\n{source}\n```", source="user")

    async def all_of_it(person: Person) -> list[str]:
        async with JupyterCodeExecutor(
            timeout=10, target=Target(url=server.url, token=server.token), agent="hasty"
        ) as executor:
            agent = CodeExecutorAgent("executor", executor, approval_func=executor.approval_func)
            await asyncio.gather(executed(executor, "wait = True"), person.approves())
            token = CancellationToken()
            answering = asyncio.create_task(agent.on_messages([message], token))
            await asyncio.to_thread(person.is_asked)
            token.cancel()
            await person.approves()
            with pytest.raises(asyncio.CancelledError):
                await answering
            stopped = person.statuses("hasty")
            await asyncio.gather(executed(executor, "wait = False"), person.approves())
            await asyncio.gather(executed(executor, source), person.approves())
            return stopped

    with Person(server) as person:
        stopped = asyncio.run(all_of_it(person))
        assert stopped in (["ok", "interrupted"], ["ok", "cancelled"])
        assert person.statuses("hasty") == [*stopped, "ok", "ok"]


def test_the_same_source_can_be_approved_for_two_agents(server: RealServer) -> None:
    message = TextMessage(content="```python\ntimes = times + 1\ntimes\n```", source="user")

    async def all_of_it(person: Person) -> list[str]:
        async with JupyterCodeExecutor(
            target=Target(url=server.url, token=server.token), agent="both"
        ) as executor:
            await asyncio.gather(executed(executor, "times = 0"), person.approves())
            asked = [executor.approval_func(request(message)) for _ in range(2)]
            decided = asyncio.gather(*asked)
            while len(await asyncio.to_thread(person.is_asked)) < 2:
                pass
            await person.approves()
            assert all(each.approved for each in await decided)
            source = "times = times + 1\ntimes"
            again = [await asyncio.wait_for(executed(executor, source), 30) for _ in asked]
            return [each.output for each in again]

    def request(message: TextMessage) -> ApprovalRequest:
        return ApprovalRequest(code=message.content, context=[])

    with Person(server) as person:
        assert sorted(asyncio.run(all_of_it(person))) == ["1", "2"]  # asked at once, in any order
        assert person.statuses("both") == ["ok"] * 3


def test_who_approves_the_first_is_not_asked_again(server: RealServer) -> None:
    message = TextMessage(content="```python\n40 + 2\n```", source="user")

    async def all_of_it(person: Person) -> list[str]:
        async with JupyterCodeExecutor(
            target=Target(url=server.url, token=server.token)
        ) as executor:
            agent = CodeExecutorAgent("executor", executor, approval_func=executor.approval_func)
            answering = agent.on_messages([message], CancellationToken())
            first, _ = await asyncio.gather(answering, person.approves())
            second = await agent.on_messages([message], CancellationToken())
            return [each.chat_message.to_text() for each in (first, second)]

    with Person(server, "first") as person:
        assert asyncio.run(all_of_it(person)) == ["42", "42"]


def test_nothing_is_approved_where_nobody_would_be_asked(executor: JupyterCodeExecutor) -> None:
    agent = CodeExecutorAgent("executor", executor, approval_func=executor.approval_func)
    message = TextMessage(content="```python\nnever = 1\n```", source="user")
    told = asyncio.run(agent.on_messages([message], CancellationToken())).chat_message.to_text()
    assert told.startswith("Code execution was not approved. Reason: Nobody is asked: ")
    assert answer(executor, "'never' in dir()") == "False"
