"""A chat of Jupyter AI: its agent is a process that speaks the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import nbformat
import pytest
from nbformat.v4 import new_notebook
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.cli.command import Cli
from tests.real_server import PROJECT, RealServer, real_server

PYTHON = PROJECT / ".make" / "jupyter-ai" / "bin" / "python"
AGENT = Path(__file__).with_name("acp_agent.py")
EXTENSIONS = (
    "jupyter_agent_exec",
    "jupyter_ai_acp_client",
    "jupyter_ai_persona_manager",
    "jupyter_ai_router",
    "jupyterlab_chat",
)
PERSONA = f"""\
from jupyter_ai_acp_client.base_acp_persona import BaseAcpPersona
from jupyter_ai_persona_manager import PersonaDefaults

class RunningPersona(BaseAcpPersona):
    def __init__(self, *args, **options):
        super().__init__(*args, executable=[{str(PYTHON)!r}, {str(AGENT)!r}], **options)

    @property
    def defaults(self):
        return PersonaDefaults(name="Runner", description="", avatar_path="", system_prompt="")
"""
PERSONA_ID = "jupyter-ai-personas::running_persona::RunningPersona"
SECONDS = 120

pytestmark = pytest.mark.nightly


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    if not PYTHON.exists():
        pytest.skip("there is no Jupyter AI: make .make/jupyter-ai/done")
    with real_server(tmp_path, python=str(PYTHON), extensions=EXTENSIONS) as server:
        personas = server.root_dir / ".jupyter" / "personas"
        personas.mkdir(parents=True)
        (personas / "running_persona.py").write_text(PERSONA)
        nbformat.write(new_notebook(), server.root_dir / "sales.ipynb")
        yield server


async def heard(chat: WebSocketClientConnection, what: str, **expected: Any) -> Any:
    """Wait for a frame with an action; return it."""
    while True:
        text = await asyncio.wait_for(chat.read_message(), SECONDS)
        assert text is not None, "the server has closed the chat"
        frame = json.loads(text)
        if frame["action"] == what and expected.items() <= frame.get("message", frame).items():
            return frame


async def test_an_agent_in_a_chat_runs_code_in_a_notebook(
    server: RealServer, tmp_path: Path
) -> None:
    done = Cli(server.environ, tmp_path)("connect", "jupyter-ai", "-y")
    assert done.returncode == 0, done.stderr
    base = server.url.partition("?")[0]
    key = {"Authorization": f"token {server.token}"}
    url = f"{base.replace('http', 'ws', 1)}api/chat/ws/work.chat"
    chat = await websocket_connect(HTTPRequest(url, headers=key))
    begun = await heard(chat, "connection")
    while PERSONA_ID not in begun["users"]:
        begun |= await heard(chat, "users")
    answers: dict[str, str] = {}
    for number, source in enumerate(("x = 6", "x * 7")):
        said = {"id": f"m{number}", "body": source, "metadata": {"to_persona": PERSONA_ID}}
        await chat.write_message(json.dumps({"type": "client", "action": "send", **said}))
        while len(answers) <= number:  # it is begun empty, and told again at its end
            told = (await heard(chat, "message", sender=PERSONA_ID))["message"]
            answers |= {told["id"]: told["body"]} if told["body"] else {}
    first, second = answers.values()
    assert first.startswith("jupyter: [session s_"), first
    assert "42" in second
    chat.close()

    async with httpx2.AsyncClient(headers=key, trust_env=False, timeout=60) as http:
        routes = f"{base}api/agent-exec"
        [session] = (await http.get(f"{routes}/sessions")).json()["sessions"]
        ran = (await http.get(f"{routes}/sessions/{session['id']}/executions")).json()
        [token] = (await http.get(f"{routes}/tokens")).json()["tokens"]
    assert session["agent"]["name"] == "RunningPersona"
    assert session["client_id"].startswith(f"chat {begun['id']} ")
    assert session["target"]["path"] == "sales.ipynb"
    assert [each["source"] for each in ran["executions"]] == ["x = 6", "x * 7"]
    assert (token["label"], token["last_used_at"] is None) == ("Jupyter AI", False)
