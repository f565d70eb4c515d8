"""A server that wants its passphrase before a person decides, and code that tries without it."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.operations import operations
from jupyter_agent_exec.auth.scopes import FOR_PEOPLE
from jupyter_agent_exec.auth.unlocks import is_slow_hash
from jupyter_agent_exec.client import AgentExecClient, Session
from jupyter_agent_exec.errors import PassphraseRequired, PassphraseWrong
from jupyter_agent_exec.models import Execution
from tests.auth.access_asking import HASHED, NOWHERE, PASSWORD
from tests.cli.command import COMMAND
from tests.real_server import TOKEN, RealServer, real_server

PASSPHRASE_HASH = AgentExecApp.class_traits()["decision_passphrase_hash"]

ATTACK = """
import json, os, urllib.error, urllib.request
from pathlib import Path

runtime = Path(os.environ["JUPYTER_RUNTIME_DIR"])
server = json.loads(next(runtime.glob("jpserver-*.json")).read_text())

def ask(method, path, body=None, **headers):
    request = urllib.request.Request(
        f"{server['url']}api/agent-exec/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())

with_token = {"Authorization": f"token {server['token']}"}

# What JupyterLab's page shows, made from the secret that the server keeps on the disk.
import hashlib, hmac, re
from tornado.web import create_signed_value
key = (runtime / "jupyter_cookie_secret").read_bytes()
secret = hmac.new(key, digestmod=hashlib.sha256).digest()
host = server["url"].split("/")[2]
user = json.dumps({"username": "ada", "name": "ada", "display_name": "ada", "initials": "a",
                   "avatar_url": None, "color": None})
name = "username-" + re.sub(r"\\W", "-", host)
cookie = create_signed_value(secret, name, user).decode()
in_page = {"Cookie": f"{name}={cookie}; _xsrf=00ff", "X-XSRFToken": "00ff"}

found = {
    f"{method} {path} {kind}": ask(method, path, body, **credential).get("code", "DONE")
    for method, path, body in DECISIONS
    for kind, credential in {"token": with_token, "cookie": in_page}.items()
}
ways_in = [ask("GET", "approvals", **each).get("code") for each in (with_token, in_page)]
json.dumps({"found": found, "ways_in": ways_in})
"""


@pytest.fixture(scope="module")
def locked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(
        tmp_path_factory.mktemp("locked"),
        f"--AgentExecApp.decision_passphrase_hash={HASHED}",
        approval={"scratch": "always"},
    ) as running:
        yield running


@pytest.fixture
def client(locked_server: RealServer) -> Iterator[AgentExecClient]:
    with AgentExecClient(locked_server.url, TOKEN) as client:
        yield client


def asked(session: Session, source: str) -> Execution:
    """Ask for an execution that waits for a person."""
    (result,) = session.submit_steps([source])
    execution = result.execution
    assert execution.status == "awaiting_approval"
    return execution


def typing(command: list[str], environ: dict[str, str], typed: list[str]) -> tuple[int, str]:
    """Run a command on a terminal of its own; return its exit code and what is seen there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, environ)
    seen = b""
    waiting = list(typed)
    while True:
        try:
            read = os.read(terminal, 4096)
        except OSError:
            break
        if not read:
            break
        seen += read
        if seen.endswith(b": ") and waiting:
            os.write(terminal, f"{waiting.pop(0)}\n".encode())
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), seen.decode()


def test_a_client_is_told_that_it_needs_the_passphrase(client: AgentExecClient) -> None:
    with client.open_session("a") as session:
        execution = asked(session, "print('ran')")
        with pytest.raises(PassphraseRequired):
            client.approve(execution.id, execution.source_sha256)
        with pytest.raises(PassphraseWrong):
            client.unlock("a guess")
        with pytest.raises(PassphraseRequired):
            client.approve(execution.id, execution.source_sha256)
        client.unlock(PASSWORD)
        client.approve(execution.id, execution.source_sha256)
        assert client.wait(execution.id).text == "ran\n"


def test_code_that_takes_the_servers_token_and_cookie_secret_decides_nothing(
    client: AgentExecClient,
) -> None:
    decisions = [
        (verb.upper(), path.lstrip("/").format(**NOWHERE))
        for path, handler in AgentExecApp.routes
        for verb, operation in operations(handler).items()
        if FOR_PEOPLE.intersection(operation.scopes) and not operation.without_passphrase
    ]
    bodies: dict[str, Any] = {
        "approvals/policy": {"scratch": "none"},
        "tokens": {"label": "mine", "scopes": ["exec:scratch"]},
    }
    with client.open_session("a") as session:
        waiting = asked(session, "print('never')")
        sha256 = {"source_sha256": waiting.source_sha256}
        tried = [(method, path, bodies.get(path, {})) for method, path in decisions]
        tried += [
            ("POST", f"executions/{waiting.id}/approve", sha256),
            ("POST", f"executions/{waiting.id}/reject", {}),
            ("POST", f"executions/{waiting.id}/approve", {**sha256, "grant": "hour"}),
            ("PUT", "approvals/pause", {"paused": False}),
        ]
        with client.open_session("attacker") as other:
            source = f"import json\nDECISIONS = json.loads({json.dumps(tried)!r})\n{ATTACK}"
            client.unlock(PASSWORD)
            attack = asked(other, source)
            client.approve(attack.id, attack.source_sha256)
            result = client.wait(attack.id)
            assert result.status == "ok", result.text
            told = json.loads(eval(result.text))
        assert told["ways_in"] == [None, None]
        assert set(told["found"].values()) == {"passphrase_required"}, told["found"]
        assert len(told["found"]) >= 2 * len(tried) - 10
        assert client.execution(waiting.id).status == "awaiting_approval"
        client.reject(waiting.id)
    assert client.tokens() == []
    assert client.approvals().policy.scratch == "always"


def test_the_command_line_asks_on_the_terminal(
    locked_server: RealServer, client: AgentExecClient
) -> None:
    with client.open_session("a") as session:
        execution = asked(session, "print('ran')")
        command = [*COMMAND, "approve", execution.id, "--yes"]
        code, seen = typing(command, locked_server.environ, typed=["a wrong one", PASSWORD])
        assert code == 0, seen
        assert "This is not the passphrase." in seen
        assert f"{execution.id}  approved by " in seen
        assert PASSWORD not in seen
        assert client.wait(execution.id).text == "ran\n"


@pytest.mark.parametrize(
    "words",
    [
        ("reject", NOWHERE["execution_id"]),
        ("resume",),
        ("token", "create", "mine"),
        ("review", NOWHERE["execution_id"], "--approve"),
    ],
    ids=lambda words: words[0],
)
def test_without_a_terminal_the_command_line_decides_nothing(
    locked_server: RealServer, client: AgentExecClient, tmp_path: Path, words: tuple[str, ...]
) -> None:
    if words == ("resume",):
        client.pause()
    done = subprocess.run(
        [*COMMAND, *words],
        env=locked_server.environ,
        cwd=tmp_path,
        input=f"{PASSWORD}\n",
        capture_output=True,
        encoding="utf-8",
        start_new_session=True,  # which has no terminal
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "A passphrase is typed on a terminal" in done.stderr
    if words == ("resume",):
        assert client.approvals().paused is not None
        client.unlock(PASSWORD)
        client.resume()


def test_the_line_that_the_setting_names_makes_a_hash() -> None:
    line = re.search("`(python -c .*?)`", " ".join(str(PASSPHRASE_HASH.help).split()))
    assert line is not None
    _, *words = shlex.split(line[1])
    code, seen = typing([sys.executable, *words], dict(os.environ), typed=["a few words"] * 2)
    assert code == 0, seen
    assert is_slow_hash(seen.splitlines()[-1])
