"""An example agent: it analyses a data set in a scratch session, one step at a time.

    python examples/penguins/agent.py [path of penguins.csv]

A real agent would ask a language model for the next step, with what it has read so far. This one
knows its steps; like a real one it makes a mistake, reads the error and corrects itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from jupyter_agent_exec.client import Agent, AgentExecClient, Result, Session


class Step(NamedTuple):
    """What the agent wants, the code it tries, and what it tries next should that raise."""

    aim: str
    source: str
    correction: str = ""


STEPS = [
    Step(
        "Load the data", "import pandas as pd\n\npenguins = pd.read_csv({data!r})\npenguins.head()"
    ),
    Step(
        "What is missing?",
        "print(f'{{len(penguins)}} penguins, {{penguins.species.nunique()}} species')\n"
        "print(penguins.isna().sum().to_string())",
    ),
    Step("Summarise the measurements", "penguins.drop(columns='year').describe().round(1)"),
    Step(
        "Compare body mass between species",
        "penguins.groupby('species')['body_mass'].mean()",
        "penguins.groupby('species')['body_mass_g'].agg(['count', 'mean', 'std']).round(1)",
    ),
    Step(
        "Plot flipper length against body mass",
        "import matplotlib.pyplot as plt\n\n"
        "for species, group in penguins.groupby('species'):\n"
        "    plt.scatter(group.flipper_length_mm, group.body_mass_g, s=12, label=species)\n"
        "plt.xlabel('flipper length (mm)')\nplt.ylabel('body mass (g)')\nplt.legend();",
    ),
    Step(
        "Plot how bill length is distributed",
        "complete = penguins.dropna(subset=['bill_length_mm'])\n"
        "for species, group in complete.groupby('species'):\n"
        "    plt.hist(group.bill_length_mm, bins=20, alpha=0.6, label=species)\n"
        "plt.xlabel('bill length (mm)')\nplt.ylabel('penguins')\nplt.legend();",
    ),
    Step(
        "Show a table of species by island",
        "from IPython.display import HTML\n\n"
        "HTML(pd.crosstab(penguins.species, penguins.island, margins=True).to_html())",
    ),
    Step(
        "Do longer bills go with shallower ones, or does mixing species only make it look so?",
        "pair = ['bill_length_mm', 'bill_depth_mm']\n"
        "print('all together:', round(complete[pair].corr().iloc[0, 1], 2))\n"
        "for species, group in complete.groupby('species'):\n"
        "    print(f'{{species:>12}}:', round(group[pair].corr().iloc[0, 1], 2))",
    ),
]


def analyse(session: Session, data: str) -> list[Result]:
    """Take all steps in `session` and return what they came to, mistakes included."""
    results = []
    for step in STEPS:
        result = read(step.aim, session.run(step.source.format(data=data)))
        results.append(result)
        if result.error is not None and step.correction:
            aim = f"Correct the {result.error.ename}"
            results.append(read(aim, session.run(step.correction, raise_on_error=True)))
    return results


def read(aim: str, result: Result) -> Result:
    """Print what the agent reads, as a language model would get it."""
    print(f"\n── {aim}\n{result.execution.source}\n\n{result!r}")
    return result


def main() -> None:
    """Analyse the data in a session of a Jupyter server that runs here."""
    data = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("penguins.csv").resolve()
    agent = Agent(name="penguin-analyst", version="1.0")
    with AgentExecClient() as client, client.open_session(agent, title="Penguins") as session:
        analyse(session, str(data))


if __name__ == "__main__":
    main()
