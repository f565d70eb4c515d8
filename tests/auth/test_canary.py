"""A token that is used for everything is found in nothing that is kept, logged or shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.models import MintedToken
from tests.real_server import RealServer, real_server

SOURCE = "import subprocess; print('x' * 20_000); display({'image/png': 'iVBORw0KGgo='}, raw=True)"


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def server(tmp_path: Path, log_file: Path) -> Iterator[RealServer]:
    """A server that writes all that it could ever log to a file."""
    to_file = {"class": "logging.FileHandler", "filename": str(log_file), "level": "DEBUG"}
    logging = {
        "version": 1,
        "handlers": {"all": to_file},
        "root": {"handlers": ["all"], "level": "DEBUG"},
        "loggers": {"AnnouncingServer": {"handlers": ["all"], "level": "DEBUG"}},
    }
    (tmp_path / "config").mkdir()
    config = {"ServerApp": {"logging_config": logging, "log_level": "DEBUG"}}
    (tmp_path / "config" / "jupyter_server_config.json").write_text(json.dumps(config))
    with real_server(tmp_path) as running:
        yield running


def everything_an_agent_does(agent: AgentExecClient, minted: MintedToken) -> list[Any]:
    """Use a token for all that it may do, and for some things that it may not."""
    seen: list[Any] = [agent.status()]
    with agent.open_session(agent="canary", title="a bird") as session:
        seen.append(session.run(SOURCE).execution)
        seen += [session.run("1/0").execution, *agent.search("bird"), session.info]
        token = os.fspath(minted.token.id)
        kernel = session.run(
            f"import os; print({token!r} in repr(os.environ)); print(os.popen('ps axeww').read())",
        )
        seen.append(kernel.execution)
    return seen


def asked_badly(server: RealServer, secret: str) -> list[httpx2.Response]:
    """Show a token where it does not belong, and a wrong one where it does."""
    answers: list[httpx2.Response] = []
    with httpx2.Client(base_url=server.url, timeout=30) as http:
        for path in ("api/agent-exec/status", "api/agent-exec/nothing", "api/contents", "lab", ""):
            for headers in (
                {"Authorization": f"Bearer {secret}"},
                {"Authorization": f"token {secret}x"},
                {"Authorization": f"Basic {secret}"},
                {"Authorization": f"Bearer {secret}", "Origin": "https://elsewhere.example"},
            ):
                answers += [http.request(verb, path, headers=headers) for verb in ("GET", "POST")]
            answers.append(http.get(path, params={"token": secret}))
        for path in (f"api/agent-exec/search?q={secret}", f"api/agent-exec/{secret}/x"):
            answers += [http.get(path), http.get(path, headers={"Authorization": secret})]
        headers = {"Authorization": f"Bearer {secret}"}
        for body in (b"{", b'{"agent": 1}', secret.encode()):
            answers.append(http.post("api/agent-exec/sessions", content=body, headers=headers))
    return answers


def command_lines() -> str:
    """Return how all processes were called."""
    lines: list[bytes] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:
            continue  # it ended meanwhile
    return b"\n".join(lines).decode("utf-8", "replace")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_a_canary_is_found_nowhere(server: RealServer, log_file: Path, tmp_path: Path) -> None:
    with AgentExecClient(server.url, server.token) as person:
        person.status()  # asked again until it listens
        minted = person.mint_token("canary", ("exec:scratch", "files", "history:read"))
        canary = minted.secret.rpartition("_")[2]
        with AgentExecClient(server.url, minted.secret) as agent:
            seen = everything_an_agent_does(agent, minted)
        for answer in asked_badly(server, minted.secret):
            assert answer.status_code != 500
            assert canary not in answer.text, (answer.request.url, answer.text)
            assert canary not in str(answer.headers), answer.request.url
        environ = {
            **server.environ,
            "JUPYTER_AGENT_EXEC_URL": server.url,
            "JUPYTER_AGENT_EXEC_TOKEN": minted.secret,
        }
        command = [sys.executable, "-m", "jupyter_agent_exec.cli"]
        for words in (["run", "print(1)"], ["sessions"], ["token", "list"], ["run", "1/0"]):
            done = subprocess.run(
                [*command, *words], env=environ, capture_output=True, text=True, check=False
            )
            assert canary not in done.stdout + done.stderr
        verify = [*command, "verify", "--history", str(server.history_dir)]
        verified = subprocess.run(verify, capture_output=True, text=True, check=False)
        assert verified.returncode == 0, verified.stdout + verified.stderr
        (session,) = [each for each in person.sessions() if each.info.title == "a bird"]
        session.export(tmp_path / "export.ipynb")
        seen += [person.tokens(), person.revoke_token(minted.token.id)]
        assert canary not in repr(seen)
        assert canary not in command_lines()
    assert f"/tokens/{minted.token.id}" in log_file.read_text()  # the log tells of addresses
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert canary.encode() not in path.read_bytes(), path
