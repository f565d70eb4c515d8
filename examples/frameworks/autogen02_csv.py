"""AutoGen 0.2: a CSV file is analysed, and a model fitted to it.

The writer's answers stand here, so that no model is needed.
"""

from __future__ import annotations

from pathlib import Path

from autogen import AssistantAgent, UserProxyAgent

from jupyter_agent_exec.adapters.autogen02 import EmbeddedIPythonCodeExecutor

CSV = "region,area,price\n" + "".join(
    f"{'north' if area % 20 else 'south'},{area},{1200 + 3.5 * area:.0f}\n"
    for area in range(30, 130, 10)
)

LOOK = """
```python
import pandas as pd

homes = pd.read_csv("homes.csv")
print(homes.groupby("region")["price"].mean().round(1).to_string())
```
"""
FIT = """
```python
import numpy as np

slope, start = np.polyfit(homes["area"], homes["price"], 1)
print(f"price = {start:.0f} + {slope:.1f} * area")
```
"""


def main() -> None:
    """Have both steps run, and print what came of them."""
    Path("homes.csv").write_text(CSV)
    answers = iter([LOOK, FIT])
    writer = AssistantAgent("writer", llm_config=False)
    writer.register_reply(
        UserProxyAgent, lambda *_args, **_kwargs: (True, next(answers, "TERMINATE")), position=0
    )
    with EmbeddedIPythonCodeExecutor() as executor:
        user = UserProxyAgent(
            "user",
            human_input_mode="NEVER",
            code_execution_config={"executor": executor},
            is_termination_msg=lambda message: message["content"] == "TERMINATE",
        )
        chat = user.initiate_chat(writer, message="How do the prices in homes.csv come about?")
    for message in chat.chat_history:
        if message["name"] == "user":
            print(message["content"])


if __name__ == "__main__":
    main()
