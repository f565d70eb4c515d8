"""AutoGen 0.2: an agent writes code for a plot of stock prices, and another one has it run.

The writer's answers stand here, so that no model is needed; the prices are made up.
"""

from __future__ import annotations

from pathlib import Path

from autogen import ConversableAgent

from jupyter_agent_exec.adapters.autogen02 import JupyterCodeExecutor, LocalJupyterServer

ANSWER = """
First the prices of this year so far:
```python
import numpy as np
import pandas as pd

days = pd.bdate_range("2024-01-01", "2024-06-28")
steps = np.random.default_rng(0).normal(0.0005, 0.02, (len(days), 2))
prices = pd.DataFrame(100 * np.exp(steps.cumsum(axis=0)), days, ["NVDA", "TSLA"])
print(prices.iloc[-1].round(1).to_string())
```
Then the gain of each:
```python
import matplotlib.pyplot as plt

gains = (prices / prices.iloc[0] - 1) * 100
gains.plot(title="Gains since January", ylabel="%")
plt.show()
```
"""


def main() -> None:
    """Have the code run, and print what the writer is told of it."""
    Path("coding").mkdir(exist_ok=True)
    writer = ConversableAgent("writer", llm_config=False, default_auto_reply=ANSWER)
    with (
        LocalJupyterServer() as server,
        JupyterCodeExecutor(server, output_dir="coding") as executor,
    ):
        executor.user_capability.add_to_agent(writer)
        runner = ConversableAgent(
            "runner",
            llm_config=False,
            code_execution_config={"executor": executor},
            human_input_mode="NEVER",
        )
        question = "Plot how NVDA and TSLA gained this year."
        chat = runner.initiate_chat(writer, message=question, max_turns=2)
    print(chat.chat_history[2]["content"])


if __name__ == "__main__":
    main()
