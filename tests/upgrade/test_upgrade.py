"""Histories and settings that other versions wrote work: `write_history.py` says how they came."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jsonschema import Draft202012Validator

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.traits import REMOVED
from tests.real_server import PROJECT, RealServer, environment, real_server

WRITTEN = sorted(Path(__file__).parent.glob("*.zip"))


@dataclass(frozen=True)
class Upgraded:
    """A server of this version on what an earlier one wrote, and the user's client."""

    server: RealServer
    user: AgentExecClient

    def cli(self, *words: str | Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "jupyter_agent_exec.cli", *words],
            env=self.server.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def still_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without those that were removed, as the user does whom the start refused."""
    return {name: value for name, value in settings.items() if name not in REMOVED}


@pytest.fixture(scope="module", params=WRITTEN, ids=lambda path: path.stem)
def upgraded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Upgraded]:
    folder = tmp_path_factory.mktemp("upgraded")
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(folder / "old")
    config = Path(environment(folder)["JUPYTER_CONFIG_DIR"])
    config.mkdir()
    written = json.loads((folder / "old" / "jupyter_server_config.json").read_text())
    written["AgentExecApp"] = still_settings(written["AgentExecApp"])
    (config / "jupyter_server_config.json").write_text(json.dumps(written))
    shutil.copytree(folder / "old" / "history", folder / "history")
    with real_server(folder) as server, AgentExecClient(server.url, server.token) as user:
        yield Upgraded(server, user)


def test_there_is_a_history_to_read() -> None:
    assert WRITTEN


def test_sessions_and_what_they_ran_are_read(upgraded: Upgraded) -> None:
    found = {session.info.agent.name: session for session in upgraded.user.sessions()}
    assert set(found) == {"analyst", "writer"}
    assert {session.info.status for session in found.values()} == {"closed"}
    results = list(found["analyst"].executions())
    assert [result.status for result in results] == ["ok", "ok", "error", "ok"]
    assert results[2].error is not None
    assert results[2].error.ename == "NameError"
    reviews = [result.execution.review for result in results]
    assert [review and review.verdict for review in reviews] == [None, "approved", "flagged", None]


def test_it_is_searched(upgraded: Upgraded) -> None:
    for asked in (["wet days"], ["rains", "--status", "error"], ["--has-image"]):
        assert upgraded.cli("search", *asked).count("x_") == 1, asked
    assert upgraded.cli("search", "--review", "flagged").count("x_") == 1


def test_it_is_exported_and_each_export_verifies(upgraded: Upgraded, tmp_path: Path) -> None:
    for session in upgraded.user.sessions():
        path = session.export(tmp_path / f"{session.id}.ipynb")
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert len([cell for cell in notebook.cells if cell.cell_type == "code"]) in (1, 4)
        assert "Whole" in upgraded.cli("verify", path, "--history", upgraded.server.history_dir)


def test_the_policy_and_the_tokens_are_those_that_were_set(upgraded: Upgraded) -> None:
    policy = upgraded.user.approvals().policy
    assert (policy.notebook, policy.scratch, policy.edits) == ("always", "first", "apply")
    assert "weather station" in upgraded.cli("token", "list", "--all")
    assert "editor" in upgraded.cli("token", "list", "--all")


def test_it_goes_on_and_verifies_with_what_is_added(upgraded: Upgraded) -> None:
    upgraded.user.set_policy(scratch="none")
    with upgraded.user.open_session("later") as session:
        assert session.run("6 * 7").text == "42"
    (analyst,) = upgraded.user.sessions(agent="analyst")
    for execution in analyst.executions():
        upgraded.user.review(execution.id, "approved")
    assert "Whole" in upgraded.cli("verify", "--history", upgraded.server.history_dir)


@pytest.mark.parametrize("written", WRITTEN, ids=lambda path: path.stem)
def test_settings_are_known_and_may_have_the_values_that_they_had(written: Path) -> None:
    """Wrong values would have stopped the server of the other tests; unknown names would not."""
    with zipfile.ZipFile(written) as archive:
        config = json.loads(archive.read("jupyter_server_config.json"))
        lab = json.loads(archive.read("lab_settings.json"))
    assert set(still_settings(config["AgentExecApp"])) <= set(
        AgentExecApp.class_trait_names(config=True)
    )
    assert lab
    for plugin, settings in lab.items():
        if not settings:  # it had none, and may have gone
            continue
        schema = json.loads((PROJECT / "labextension" / "schema" / f"{plugin}.json").read_text())
        Draft202012Validator(schema).validate(settings)
