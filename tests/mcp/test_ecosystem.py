"""The entry for the MCP registry, the bundle for desktop clients, and the skill say what is so."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args
from zipfile import ZipFile

import pytest
from jsonschema import Draft7Validator, Draft202012Validator
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

from jupyter_agent_exec import __version__
from jupyter_agent_exec.mcp.sdk_server import TOOLS
from jupyter_agent_exec.mcp.tool import arguments, input_schema
from jupyter_agent_exec.types import Status
from scripts.mcp_bundle import build
from tests.mcp.mcp_clients import NODE_MODULES
from tests.real_server import PROJECT, TOKEN, RealServer

SKILL = PROJECT / "skills" / "jupyter-agent-exec" / "SKILL.md"
BY_NAME = {tool.name: tool for tool in TOOLS}


# -- the registry ----------------------------------------------------------------------------------


def registered() -> dict[str, Any]:
    entry: dict[str, Any] = json.loads((PROJECT / "server.json").read_text())
    return entry


def test_the_registrys_entry_follows_its_schema() -> None:
    schema = json.loads(Path(__file__).with_name("server.schema.json").read_text())
    Draft7Validator.check_schema(schema)
    Draft7Validator(schema).validate(registered())
    assert registered()["$schema"] == schema["$id"]


def test_the_registrys_entry_is_about_this_version() -> None:
    entry = registered()
    (package,) = entry["packages"]
    assert {entry["version"], package["version"]} == {__version__}
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert package["identifier"] == project["name"]
    (extra,) = package["runtimeArguments"]
    assert extra["value"] == f"{project['name']}[mcp]"
    assert "mcp" in project["optional-dependencies"]
    assert package["identifier"] in project["scripts"], "uvx runs the command of this name"


# -- the bundle ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle, as a client unpacks it."""
    folder = tmp_path_factory.mktemp("bundle")
    with ZipFile(build(folder)) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_the_bundle_passes_the_validator(bundle: Path) -> None:
    validator = NODE_MODULES / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js"
    done = subprocess.run(
        ["node", validator, "validate", bundle / "manifest.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_bundle_installs_this_version_and_names_its_tools(bundle: Path) -> None:
    project = tomllib.loads((bundle / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == [f"jupyter-agent-exec[mcp]=={__version__}"]
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["version"] == __version__
    assert [tool["name"] for tool in manifest["tools"]] == list(BY_NAME)
    assert (bundle / manifest["server"]["entry_point"]).is_file()


def test_the_same_version_gives_the_same_bundle(tmp_path: Path) -> None:
    assert build(tmp_path / "a").read_bytes() == build(tmp_path / "b").read_bytes()


@pytest.mark.parametrize("named", [True, False], ids=["a named server", "one that runs here"])
def test_a_client_that_runs_the_bundle_runs_code(
    bundle: Path, server: RealServer, tmp_path: Path, named: bool
) -> None:
    config = json.loads((bundle / "manifest.json").read_text())
    command = config["server"]["mcp_config"]
    assert command["command"] == "uv"
    assert command["args"][:3] == ["run", "--directory", "${__dirname}"]
    chosen = {
        "__dirname": str(bundle),
        "user_config.folder": str(tmp_path),
        "user_config.url": server.url.partition("?")[0] if named else "",
        "user_config.token": TOKEN if named else "",
    }

    def filled(text: str) -> str:
        return re.sub(r"\$\{([\w.]+)\}", lambda match: chosen[match[1]], text)

    parameters = StdioServerParameters(
        command=sys.executable,  # uv would not install what is tested here
        args=[filled(each) for each in command["args"][3:]],
        env={**server.environ, **{name: filled(text) for name, text in command["env"].items()}},
        cwd=bundle,
    )

    async def ask() -> str:
        async with Client(stdio_client(parameters)) as client:
            arguments = {"target": {"kind": "scratch"}, "source": "import os; os.getcwd()"}
            answer = await client.call_tool("execute", arguments)
            return str(getattr(answer.content[0], "text", ""))

    assert str(server.root_dir) in asyncio.run(ask()), "its code runs in that server"


# -- the skill -------------------------------------------------------------------------------------


def test_the_skill_is_named_and_described_as_skills_are() -> None:
    _, head, body = SKILL.read_text().split("---\n", 2)
    said = dict(line.split(": ", 1) for line in head.splitlines())
    assert said["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", said["name"])
    assert 0 < len(said["description"]) <= 1024
    assert len(body.splitlines()) < 500


def calls() -> list[tuple[str, dict[str, Any]]]:
    blocks = re.findall(r"^```\n(.*?)^```", SKILL.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [(name, json.loads(given)) for name, given in (line.split(" ", 1) for line in lines)]


@pytest.mark.parametrize(("name", "given"), calls())
def test_calls_in_the_skill_are_valid(name: str, given: dict[str, Any]) -> None:
    tool = BY_NAME[name]
    Draft202012Validator(input_schema(tool.input)).validate(given)
    arguments(tool, given)


def test_the_skill_shows_every_tool_and_every_status() -> None:
    text = SKILL.read_text()
    assert {name for name, _ in calls()} | {"list_sessions", "give_input"} == set(BY_NAME)
    assert set(re.findall(r"`(\w+)`", text.partition("## Read the status")[2])) >= set(
        get_args(Status)
    )


def test_what_the_skill_names_exists() -> None:
    known = {*BY_NAME, *get_args(Status), "session_id"}
    for tool in TOOLS:
        known |= set(input_schema(tool.input)["properties"])
    named = set(re.findall(r"`(\w+)`", SKILL.read_text()))
    assert named - known == set()
