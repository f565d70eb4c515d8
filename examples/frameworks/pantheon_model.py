"""A classifier is trained with scikit-learn in the Python interpreter of Pantheon's agents."""

from __future__ import annotations

import asyncio

from jupyter_agent_exec.adapters.pantheon import PythonInterpreterToolSet

STEPS = [
    "from sklearn.datasets import load_iris\nfrom sklearn.model_selection import train_test_split\n"
    "flowers, species = load_iris(return_X_y=True, as_frame=True)\nflowers.shape",
    "train, test, train_species, test_species = train_test_split(\n"
    "    flowers, species, test_size=0.3, random_state=0, stratify=species\n)\n"
    "len(train), len(test)",
    "from sklearn.linear_model import LogisticRegression\n"
    "model = LogisticRegression(max_iter=1000).fit(train, train_species)\n"
    "[str(species) for species in model.classes_]",
]


async def main() -> None:
    """Train it step by step, and print how many of the flowers it has not seen it knows."""
    python = PythonInterpreterToolSet("python")
    for step in STEPS:
        answer = await python.run_python_code(step)
        print(answer["stdout"], end="")
    answer = await python.run_python_code(
        "known = int((model.predict(test) == test_species).sum())", result_var_name="known"
    )
    print(f"{answer['result']} of 45 known")
    await python.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
