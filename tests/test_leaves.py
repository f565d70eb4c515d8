"""Leaves: the package finds each, and works when one is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jupyter_agent_exec.leaves import installed
from tests.real_server import PROJECT, environment, real_server

PACKAGE = PROJECT / "jupyter_agent_exec"
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())
(CONTRACT,) = [
    each
    for each in SETTINGS["tool"]["importlinter"]["contracts"]
    if each["name"].startswith("Nothing imports a leaf")
]
LEAVES = [module.removeprefix("jupyter_agent_exec.") for module in CONTRACT["protected_modules"]]

RUN = """
import jupyter_agent_exec
from jupyter_agent_exec.cli import main
from jupyter_agent_exec.client import AgentExecClient

with AgentExecClient() as client, client.open_session("analyst") as session:
    assert session.run("6 * 7").text == "42"
assert main(["export", session.id]) == 0
print("exported by", jupyter_agent_exec.__file__)
"""
REFUSED = {
    "isolation": """
from jupyter_agent_exec.errors import IsolationUnavailable

try:
    with AgentExecClient() as client:
        client.open_session("analyst", isolated=True)
except IsolationUnavailable as error:
    assert "missing" in error.message
else:
    raise AssertionError
""",
    "own_server": """
from os import environ

del environ["JUPYTER_AGENT_EXEC_URL"], environ["JUPYTER_AGENT_EXEC_TOKEN"]
environ["JUPYTER_RUNTIME_DIR"] = environ["JUPYTER_CONFIG_DIR"]  # no server is found there
assert main(["run", "1"]) == 3
""",
}
"""What a leaf would do, if it were there."""


def without(leaf: str, folder: Path) -> dict[str, str]:
    """Make the package without a leaf, and return an environment in which it is found."""
    package = folder / "without" / PACKAGE.name
    package.mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.name != leaf:
            (package / path.name).symlink_to(path)
    path = os.pathsep.join([str(package.parent), str(PROJECT)])
    return {**environment(folder), "PYTHONPATH": path}


@pytest.mark.parametrize("group", ["leaves", "commands", "servers"])
def test_the_leaves_of_a_group_are_found(group: str) -> None:
    declared = SETTINGS["project"]["entry-points"][f"jupyter_agent_exec.{group}"]
    assert len(list(installed(group))) == len(declared), "install the package again"


@pytest.mark.parametrize("leaf", LEAVES)
def test_code_runs_and_is_exported_without_a_leaf(leaf: str, tmp_path: Path) -> None:
    environ = without(leaf, tmp_path)
    with real_server(tmp_path, environ=environ) as server:
        done = subprocess.run(
            [sys.executable, "-c", RUN + REFUSED.get(leaf, "")],
            env={
                **environ,
                "JUPYTER_AGENT_EXEC_URL": server.url,
                "JUPYTER_AGENT_EXEC_TOKEN": server.token,
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert f"exported by {tmp_path}" in done.stdout
