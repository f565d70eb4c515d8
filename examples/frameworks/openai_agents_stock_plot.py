"""The OpenAI Agents SDK: an agent draws a plot, and its model looks at it."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, Runner

from jupyter_agent_exec.adapters.openai_agents import JupyterPython


async def main(model: Any) -> Any:
    """Return the result of the agent's run.

    Parameters
    ----------
    model
        A model of the SDK, or its name.
    """
    async with JupyterPython(timeout=60) as python:
        agent = Agent(
            name="Analyst",
            instructions="Answer with Python. Look at each plot before you describe it.",
            model=model,
            tools=[python.tool],
        )
        return await Runner.run(agent, "Plot the prices in prices.csv. What stands out?")


if __name__ == "__main__":
    print(asyncio.run(main("gpt-5")).final_output)
