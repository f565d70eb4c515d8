"""Pydantic AI: two runs of an agent, one conversation, one kernel."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent

from jupyter_agent_exec.adapters.pydantic_ai import JupyterToolset


def main(model: Any) -> Any:
    """Return the result of the second run.

    Parameters
    ----------
    model
        A model of Pydantic AI, or its name.
    """
    toolset = JupyterToolset(timeout=60)
    agent = Agent(model, toolsets=[toolset])
    with toolset:  # keeps the variables of the first run for the second
        first = agent.run_sync("Simulate 1,000 throws of two dice.")
        return agent.run_sync("How often was the sum seven?", message_history=first.all_messages())


if __name__ == "__main__":
    print(main("openai:gpt-5").output)
