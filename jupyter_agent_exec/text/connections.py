"""How agents connect to a server: the lines that a person types, or puts into a file.

They are defined once. The access page and the command line show them, and the documentation's are
tested against them.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ..models import Configuration

NAME: Final = "jupyter"
"""Name of the server in the configuration of MCP clients."""

CHAT: Final = "jupyter-ai"
CHAT_TOKEN: Final = "agent_exec_jupyter_ai.json"  # noqa: S105
"""File in Jupyter's data folder with the `ChatToken`; only its owner may read it."""


class ChatToken(Struct, frozen=True, kw_only=True):
    """The agent token of Jupyter AI's chats, as it is kept in `CHAT_TOKEN`."""

    id: str
    secret: str
    """The whole credential."""


class Connection(Configuration, frozen=True, kw_only=True):
    """How an MCP client that can sign in connects. There is no secret in it."""

    file: str | None = None
    """The file that has the text in it; None: the text is commands for a shell."""
    removal: str = ""
    """The command that takes it back; empty if there is a file."""
    then: str
    """What the person does next."""


def connections(mcp_url: str) -> list[Connection]:
    """Return how each client connects to an MCP endpoint."""
    return [
        _in_shell(
            "claude-code",
            "Claude Code",
            [
                _claude_add(mcp_url),
                # It asks the server, without which `login` finds no sign-in below a path.
                ["claude", "mcp", "get", NAME],
                ["claude", "mcp", "login", NAME],
            ],
            ["claude", "mcp", "remove", "--scope", "user", NAME],
            "Then start claude.",
        ),
        _in_shell(
            "codex",
            "Codex",
            [["codex", "mcp", "add", NAME, "--url", mcp_url]],
            ["codex", "mcp", "remove", NAME],
            "Then start codex.",
        ),
        _in_shell(
            "gemini",
            "Gemini CLI",
            [["gemini", "mcp", "add", "--scope", "user", "--transport", "http", NAME, mcp_url]],
            ["gemini", "mcp", "remove", "--scope", "user", NAME],
            f"Then start gemini, and type: /mcp auth {NAME}",
        ),
        _in_file("vscode", "VS Code", ".vscode/mcp.json", "servers", mcp_url),
        _in_file("cursor", "Cursor", "~/.cursor/mcp.json", "mcpServers", mcp_url),
        _in_shell(
            CHAT,
            "Jupyter AI",
            [["jupyter", "agent-exec", "connect", CHAT]],
            ["jupyter", "agent-exec", "connect", CHAT, "--remove"],
            "Then open a chat in JupyterLab.",
        ),
    ]


def configurations(
    url: str, namespace: str, secret: str, scopes: Sequence[str]
) -> list[Configuration]:
    """Return what is pasted into a client that has a token; it contains the secret.

    Parameters
    ----------
    url
        Base URL of the Jupyter server, with a slash at its end.
    namespace
        Path of the routes under it.
    secret
        The complete token.
    scopes
        The token's scopes.
    """
    base = url.rstrip("/")
    mcp = f"{base}/{namespace}/mcp"
    authorization = f"Authorization: Bearer {secret}"
    over_http = {"type": "http", "url": mcp, "headers": {"Authorization": f"Bearer {secret}"}}
    curl = ["curl", "-H", authorization, f"{base}/{namespace}/status"]
    return [
        Configuration(
            name="claude-code",
            title="Claude Code: run in a terminal",
            language="shell",
            text=f"{shlex.join([*_claude_add(mcp), '--header', authorization])}\n",
        ),
        Configuration(
            name="mcp",
            title="Cursor: mcp.json, and other MCP clients that use HTTP",
            language="json",
            text=_servers("mcpServers", over_http),
        ),
        Configuration(
            name="vscode",
            title="VS Code: .vscode/mcp.json",
            language="json",
            text=_servers("servers", over_http),
        ),
        Configuration(
            name="mcp-stdio",
            title="Claude Desktop: claude_desktop_config.json, and others that start a process",
            language="json",
            text=_servers("mcpServers", _over_stdio(base, secret)),
        ),
        Configuration(
            name="python",
            title="Python: a program",
            language="python",
            text=_python_program(base, secret, scopes),
        ),
        Configuration(
            name="curl",
            title="curl: test the connection in a terminal",
            language="shell",
            text=f"{shlex.join(curl)}\n",
        ),
    ]


def _in_shell(
    name: str, title: str, lines: Sequence[Sequence[str]], removal: Sequence[str], then: str
) -> Connection:
    return Connection(
        name=name,
        title=f"{title}: run in a terminal",
        language="shell",
        text="".join(f"{shlex.join(line)}\n" for line in lines),
        removal=shlex.join(removal),
        then=then,
    )


def _in_file(name: str, title: str, file: str, key: str, mcp_url: str) -> Connection:
    return Connection(
        name=name,
        title=f"{title}: {file}",
        language="json",
        text=_servers(key, {"type": "http", "url": mcp_url}),
        file=file,
        then=f"Then {title} asks you to sign in.",
    )


def _claude_add(mcp_url: str) -> list[str]:
    return ["claude", "mcp", "add", "--scope", "user", "--transport", "http", NAME, mcp_url]


def _over_stdio(url: str, secret: str) -> dict[str, object]:
    return {
        # Clients that have a window do not search the folders that a shell does.
        "command": sys.executable,
        "args": ["-m", "jupyter_agent_exec.cli", "mcp"],
        "env": {"JUPYTER_AGENT_EXEC_URL": url, "JUPYTER_AGENT_EXEC_TOKEN": secret},
    }


def _python_program(url: str, secret: str, scopes: Sequence[str]) -> str:
    return f"""\
from jupyter_agent_exec.client import AgentExecClient

with AgentExecClient({url!r}, {secret!r}) as client:
    with client.open_session("my-agent"{_notebook(scopes)}) as session:
        print(session.run("1 + 1").text)
"""


def _servers(key: str, server: Mapping[str, object]) -> str:
    return json.dumps({key: {NAME: server}}, indent=2) + "\n"


def _notebook(scopes: Sequence[str]) -> str:
    """Return the argument that names the first notebook whose kernel the token's agent may use."""
    right = "exec:notebook:"
    paths = [scope.removeprefix(right) for scope in scopes if scope.startswith(right)]
    path = next((path for path in paths if "*" not in path), None)
    return "" if path is None else f", notebook={path!r}"
