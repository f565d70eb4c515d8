"""Print what builds the package, as pyproject.toml names it, a requirement each line."""

import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())
hook = project["tool"]["hatch"]["build"]["hooks"]["jupyter-builder"]
print(*project["build-system"]["requires"], *hook["dependencies"], sep="\n")
