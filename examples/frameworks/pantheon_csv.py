"""A CSV file is analysed, step by step, in the Python interpreter of Pantheon's agents."""

from __future__ import annotations

import asyncio
from pathlib import Path

from jupyter_agent_exec.adapters.pantheon import PythonInterpreterToolSet

CSV = "region,month,amount\nnorth,1,40\nsouth,1,25\nnorth,2,55\nsouth,2,30\n"

STEPS = [
    "import pandas as pd\nsales = pd.read_csv('sales.csv')\nsales.shape\nlist(sales.columns)",
    "by_region = sales.groupby('region')['amount'].sum()\nby_region.to_dict()",
    "best = by_region.idxmax()\nf'most is sold in the {best}'",
]


async def main() -> None:
    """Run the steps, and print what each says and what a variable is in the end."""
    python = PythonInterpreterToolSet("python")
    for step in STEPS:
        answer = await python.run_python_code(step)
        print(answer["stdout"], end="")
    answer = await python.run_python_code("total = float(by_region.sum())", result_var_name="total")
    print(answer["result"])
    await python.cleanup()


if __name__ == "__main__":
    Path("sales.csv").write_text(CSV)
    asyncio.run(main())
