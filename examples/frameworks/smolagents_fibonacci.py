"""smolagents: the guided tour's question, answered in a kernel of Jupyter."""

from __future__ import annotations

from typing import Any

from smolagents import CodeAgent, InferenceClientModel

from jupyter_agent_exec.adapters.smolagents import JupyterExecutor


def main(model: Any) -> Any:
    """Return the agent's answer."""
    with CodeAgent(tools=[], model=model, executor=JupyterExecutor(timeout=60)) as agent:
        return agent.run("Could you give me the 118th number in the Fibonacci sequence?")


if __name__ == "__main__":
    print(main(InferenceClientModel()))
