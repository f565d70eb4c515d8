"""LangChain: a model analyses a CSV file with the tool, until it has no more calls."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from jupyter_agent_exec.adapters.langchain import JupyterPythonTool


def main(model: Any, question: str) -> list[BaseMessage]:
    """Return the conversation; the answer is the last message.

    Parameters
    ----------
    model
        A chat model of LangChain that can call tools.
    """
    messages: list[BaseMessage] = [HumanMessage(question)]
    with JupyterPythonTool(timeout=60) as python:
        with_tool = model.bind_tools([python])
        while True:
            message = with_tool.invoke(messages)
            messages.append(message)
            if not message.tool_calls:
                return messages
            messages.extend(python.invoke(call) for call in message.tool_calls)


if __name__ == "__main__":
    from langchain.chat_models import init_chat_model

    asked = "Which region in sales.csv has the highest revenue?"
    print(main(init_chat_model("openai:gpt-5"), asked)[-1].content)
