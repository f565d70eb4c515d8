"""How to hand an agent token to an agent: text to paste, for the clients that there are. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..models import Configuration

NAME = "jupyter"
"""How clients of MCP call the server."""


def configurations(url: str, namespace: str, secret: str) -> list[Configuration]:
    """Return what to paste, the secret in it.

    Parameters
    ----------
    url
        Base URL of the Jupyter server, with a slash at its end.
    namespace
        Path of the routes under it.
    secret
        The whole credential.
    """
    base = url.rstrip("/")
    over_http = {
        "type": "http",
        "url": f"{base}/{namespace}/mcp",
        "headers": {"Authorization": f"Bearer {secret}"},
    }
    over_stdio = {
        "command": "jupyter",
        "args": ["agent-exec", "mcp"],
        "env": {"JUPYTER_AGENT_EXEC_URL": base, "JUPYTER_AGENT_EXEC_TOKEN": secret},
    }
    python = f"""\
from jupyter_agent_exec.client import AgentExecClient

with AgentExecClient({base!r}, {secret!r}) as client:
    with client.open_session(agent="my-agent") as session:
        print(session.run("1 + 1").text)
"""
    curl = f"""\
curl -H 'Authorization: Bearer {secret}' {base}/{namespace}/status
"""
    return [
        Configuration(name="mcp", language="json", text=_servers(over_http)),
        Configuration(name="mcp-stdio", language="json", text=_servers(over_stdio)),
        Configuration(name="python", language="python", text=python),
        Configuration(name="curl", language="shell", text=curl),
    ]


def _servers(server: Mapping[str, object]) -> str:
    return json.dumps({"mcpServers": {NAME: server}}, indent=2) + "\n"
