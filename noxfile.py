"""Environments for tests: one for each agent framework, and one with the oldest dependencies.

The frameworks' pins exclude each other, so each has its own environment. `make test-frameworks`
runs all of them, `nox --session lagent` runs one. `make test-versions` runs `nox --session lowest`.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"

FRAMEWORKS = {
    # lagent imports cachetools, but does not declare it as a dependency.
    "lagent": ["lagent==0.2.4", "cachetools>=5"],
    "lagent05": ["lagent==0.5.0rc3", "cachetools>=5"],
    "autogen": [
        "autogen-agentchat==0.7.5",
        "autogen-ext[azure,docker-jupyter-executor,jupyter-executor]==0.7.5",
    ],
    "autogen02": ["autogen-agentchat[jupyter-executor]==0.2.40"],
    "pantheon": [
        "aiofiles==25.1.0",
        "cloudpickle==3.1.2",
        "diff-match-patch==20241021",
        "diskcache==5.6.3",
        "fastmcp-slim[client]==4.1.2",
        "loguru==0.7.3",
        "loky==3.7.0",
        "openai==3.54.0",
        "rich==15.0.0",
        "scikit-learn>=1.5",  # an example trains a model with it
    ],
    "smolagents": ["smolagents~=1.26"],
}
"""The packages in each framework's environment, by the name of the adapter."""

WITHOUT_DEPENDENCIES = {"pantheon": ["pantheon-agents==0.6.4"]}
"""Packages to install without their many dependencies. Those that the tests need stand above."""


def _framework(name: str, packages: list[str]) -> None:
    @nox.session(name=name)
    def framework(session: nox.Session) -> None:
        # Absolute paths, because tests change the current folder and start programs there.
        found = [".", f"tests/frameworks/{name}"]
        # An empty folder is enough: the tests do not need the lab extension.
        Path("jupyter_agent_exec/labextension").mkdir(exist_ok=True)
        session.install(
            "--quiet",
            *packages,
            "--editable",
            ".[frameworks]",
            env={"SKIP_JUPYTER_BUILDER": "1"},
        )
        for package in WITHOUT_DEPENDENCIES.get(name, []):
            session.install("--quiet", "--no-deps", package)
        session.run(
            "python",
            "-m",
            "pytest",
            # Warnings of frameworks and their dependencies are not ours to fix.
            "--override-ini=filterwarnings=default",
            "--confcutdir=tests/frameworks",
            *(session.posargs or _tests(name)),
            env={"PYTHONPATH": os.pathsep.join(map(os.path.abspath, found))},
        )


def _tests(name: str) -> list[str]:
    """Return the tests of a framework, with the shared probes if it has an executor."""
    own = f"tests/frameworks/{name}"
    probes = ["tests/frameworks/test_probes.py"] if Path(own, "subjects.py").exists() else []
    return [own, *probes]


for _name, _packages in FRAMEWORKS.items():
    _framework(_name, _packages)


@nox.session
def mcp_frameworks(session: nox.Session) -> None:
    """Run the programs of docs/how-to/frameworks/over-mcp.md, against a server of nox's Python."""
    tests = "tests/frameworks/mcp_frameworks"
    session.install(
        "--quiet",
        *("langchain~=1.5", "langchain-mcp-adapters~=0.3", "openai-agents~=0.24"),
        *("pydantic-ai-slim[mcp]~=2.68", "fastmcp-slim~=3.4", "mcp~=1.30"),
        *("pytest>=9", "pytest-timeout>=2"),
    )
    session.run(
        *("python", "-m", "pytest", "--override-ini=filterwarnings=default"),
        *(f"--confcutdir={tests}", *(session.posargs or [tests])),
        env={"SERVER_PYTHON": sys.executable},
    )


# uv, because pip's resolver does not finish with the lowest versions.
@nox.session(default=False, venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """Test with the lowest versions that pyproject.toml allows."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["mcp"]]
    Path("jupyter_agent_exec/labextension").mkdir(exist_ok=True)
    session.install(
        "--quiet",
        *(re.sub(r">=([\d.]+).*", r"==\1", requirement) for requirement in declared),
        *("bash_kernel", "ipywidgets", "jsonschema", "jupyter-collaboration", "jupytext"),
        *("matplotlib", "nbclient", "nbconvert", "pandas", "papermill", "pip"),
        *("pytest", "pytest-jupyter[server]", "pytest-timeout", "pytest-xdist"),
        "--editable",
        ".",
        env={"SKIP_JUPYTER_BUILDER": "1"},
    )
    session.run(
        "python",
        "-m",
        "pytest",
        "--override-ini=filterwarnings=default",  # old versions warn about newer ones
        *(
            session.posargs
            or [f"tests/{name}" for name in ("auth", "files", "journal", "sessions")]
        ),
    )
