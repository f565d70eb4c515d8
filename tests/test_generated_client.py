"""A client that a generator makes from the OpenAPI document works."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.openapi import document
from tests.real_server import real_server

PROGRAM = """
import sys
from made import AuthenticatedClient
from made.api.executions import post_sessions_session_id_executions as executions
from made.api.files import get_sessions_session_id_files_path as file
from made.api.files import put_sessions_session_id_files_path as upload
from made.api.sessions import post_sessions as sessions
from made.models import Agent, Execute, OpenSession, ScratchTarget, ScratchTargetKind
from made.types import File
from io import BytesIO

url, token = sys.argv[1:]
with AuthenticatedClient(url, token, prefix="token", timeout=60) as client:
    target = ScratchTarget(ScratchTargetKind.SCRATCH, own_folder=True)
    session = sessions.sync(client=client, body=OpenSession(Agent("made"), target=target))
    ran = executions.sync(session.id, client=client, body=Execute(source="print(6 * 7)"))
    upload.sync(session.id, "a.txt", client=client, body=File(BytesIO(b"data")))
    read = file.sync(session.id, "a.txt", client=client)
    print(ran.status, ran.text, read.payload.read().decode())
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a generated client, and what the generator printed."""
    folder = tmp_path_factory.mktemp("generated")
    made = document(AgentExecApp.routes, version="0", base_path="/")
    (folder / "openapi.json").write_text(json.dumps(made))
    (folder / "config.yml").write_text("package_name_override: made\npost_hooks: []\n")
    arguments = ["--path", "openapi.json", "--output-path", "out", "--config", "config.yml"]
    generator = [sys.executable, "-m", "openapi_python_client", "generate", *arguments]
    done = subprocess.run(generator, cwd=folder, capture_output=True, text=True, check=True)
    return folder / "out", done.stdout + done.stderr


def test_every_operation_is_generated(generated: tuple[Path, str]) -> None:
    folder, printed = generated
    modules = {path.stem for path in (folder / "made" / "api").glob("*/*.py")} - {"__init__"}
    paths = document(AgentExecApp.routes, version="0", base_path="/")["paths"]
    assert len(modules) == sum(len(verbs) for verbs in paths.values())
    assert "will not be generated" not in printed
    assert "Unable to process schema" not in printed


def test_it_opens_a_session_runs_code_and_moves_a_file(
    generated: tuple[Path, str], tmp_path: Path
) -> None:
    with real_server(tmp_path) as server:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, f"{server.url}api/agent-exec", server.token],
            cwd=generated[0],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout == "ok 42\n data\n", done.stderr
