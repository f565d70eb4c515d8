"""Two agents of AutoGen draw a chart of stock prices: one writes code, the other executes it.

The prices are made up and uploaded as a file; `ReplayChatCompletionClient` stands for the model.
The chart becomes a file here, and all that ran is in the history of the Jupyter server.
"""

import asyncio
import random
from pathlib import Path

from autogen_agentchat.agents import (
    ApprovalRequest,
    ApprovalResponse,
    AssistantAgent,
    CodeExecutorAgent,
)
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_ext.models.replay import ReplayChatCompletionClient

from jupyter_agent_exec.adapters.autogen import JupyterCodeExecutor

WRITTEN = """\
```python
import matplotlib.pyplot as plt
import pandas as pd

prices = pd.read_csv("prices.csv", index_col="date", parse_dates=True)
change = prices / prices.iloc[0] - 1
change.plot(title="Change of the stock prices since the beginning of the year")
plt.savefig("change.png")
print(change.iloc[-1].round(3).to_string())
```
"""


def make_prices(path: Path) -> None:
    """Write a year's prices of two stocks that nobody has."""
    chance = random.Random(2024)
    nvda, tsla = 100.0, 100.0
    lines = ["date,NVDA,TSLA"]
    for day in range(1, 29):
        nvda *= chance.uniform(0.98, 1.04)
        tsla *= chance.uniform(0.96, 1.04)
        lines.append(f"2024-01-{day:02},{nvda:.2f},{tsla:.2f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def approve(request: ApprovalRequest) -> ApprovalResponse:
    """Let all run; `executor.approval_func` in its place has a person decide in JupyterLab."""
    return ApprovalResponse(approved=True, reason="What the model says is known.")


async def main() -> None:
    """Have the chart drawn, and fetch it."""
    folder = Path("coding")
    async with JupyterCodeExecutor(output_dir=folder) as executor:
        make_prices(folder / "prices.csv")
        await executor.upload_files(["prices.csv"], CancellationToken())
        runner = CodeExecutorAgent("executor", executor, approval_func=approve)
        model = ReplayChatCompletionClient([WRITTEN, "The chart is in change.png. TERMINATE"])
        team = RoundRobinGroupChat(
            [AssistantAgent("coder", model), runner],
            termination_condition=TextMentionTermination("TERMINATE"),
        )
        task = "Plot a chart of NVDA's and TSLA's price change, and save it to change.png."
        async for message in team.run_stream(task=task):
            if hasattr(message, "to_text"):
                print(f"---------- {message.source} ----------\n{message.to_text()}")
        print(await executor.download_files(["change.png"], CancellationToken()))


if __name__ == "__main__":
    asyncio.run(main())
