"""An agent of Pantheon's draws several plots in one call, and gets all of them.

The call that a model would make stands here, so that no model is needed.
"""

from __future__ import annotations

import asyncio

from pantheon.agent import Agent

from jupyter_agent_exec.adapters.pantheon import PythonInterpreterToolSet

PLOTS = """
import matplotlib.pyplot as plt

prices = {"ABC": [101, 99, 104, 108], "XYZ": [55, 58, 57, 61]}
for name, closing in prices.items():
    plt.figure()
    plt.plot(closing)
    plt.title(name)
    plt.show()
"""


async def main() -> None:
    """Call the tool as the agent does, and print where the figures are."""
    agent = Agent(name="analyst", instructions="You plot prices.", model="openai/none")
    async with PythonInterpreterToolSet("python", workdir=".") as python:
        await agent.toolset(python)
        chat = {"client_id": "me", "chat_id": "prices"}
        answer = await agent.call_tool("python__run_python_code", {"code": PLOTS}, chat)
    for path in answer["fig_storage_paths"]:
        print(path)


if __name__ == "__main__":
    asyncio.run(main())
