"""AutoGen's first example of a code tool: a model works out a Fibonacci number in Python.

`ReplayChatCompletionClient` stands for the model, so that this runs without one; put
`OpenAIChatCompletionClient(model="gpt-4o")` in its place. Only the import of the executor differs
from AutoGen's documentation. No Jupyter server needs to run.
"""

import asyncio
import json

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from autogen_ext.tools.code_execution import PythonCodeExecutionTool

from jupyter_agent_exec.adapters.autogen import JupyterCodeExecutor

CODE = """\
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a

print(fibonacci(10))
"""


def model() -> ReplayChatCompletionClient:
    """Return a model that calls the tool, and then says what it is to say."""
    call = FunctionCall(id="1", name="CodeExecutor", arguments=json.dumps({"code": CODE}))
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    return ReplayChatCompletionClient(
        [
            CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False),
            "The 10th Fibonacci number is 55.",
        ],
        model_info=ModelInfo(
            vision=False,
            function_calling=True,
            json_output=False,
            family=ModelFamily.UNKNOWN,
            structured_output=False,
        ),
    )


async def main() -> None:
    """Ask the assistant, and print what is said and done."""
    async with JupyterCodeExecutor() as executor:
        tool = PythonCodeExecutionTool(executor)
        agent = AssistantAgent(
            "assistant", model_client=model(), tools=[tool], reflect_on_tool_use=True
        )
        result = await agent.run(
            task="What is the 10th Fibonacci number? Use Python to calculate it."
        )
        for message in result.messages:
            print(f"{message.source}: {message.to_text()}")


if __name__ == "__main__":
    asyncio.run(main())
