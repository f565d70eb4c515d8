"""A CSV file analysed with lagent's code interpreter, which starts where the data is."""

import sys
from pathlib import Path

from jupyter_agent_exec.adapters.lagent import IPythonInterpreter

data = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("sales.csv")
if not data.exists():
    data.write_text("region,amount\nnorth,3\nsouth,5\nnorth,4\n")

# The kernel goes to the folder in which this one is.
interpreter = IPythonInterpreter(user_data_dir=str(data.resolve()))
for command in (
    f"import pandas as pd\nsales = pd.read_csv({data.name!r})\nsales.shape",
    "print(sales.groupby('region').amount.sum().to_string())",
):
    print(interpreter.run(command).format_result())
