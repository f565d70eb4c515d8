"""The pages about MCP clients show what the server makes for each client."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.auth.token_handlers import configurations
from jupyter_agent_exec.sessions.answers import NAMESPACE

PAGES = Path(__file__).parent.parent / "docs" / "how-to" / "clients"
MADE = {
    made.name: made.text for made in configurations("http://localhost:8888/", NAMESPACE, "jaex_…")
}


def shown(page: str) -> str:
    """Return the block of a page that this file tests."""
    text = (PAGES / page).read_text(encoding="utf-8")
    found = re.search(
        r"<!-- tested by tests/test_client_pages.py -->\n```\w+\n(.*?)```", text, re.S
    )
    assert found
    return found[1]


def test_the_command_for_claude_code() -> None:
    assert shown("claude-code.md") == MADE["claude-code"]


@pytest.mark.parametrize(
    ("page", "name"),
    [("cursor.md", "mcp"), ("vscode.md", "vscode"), ("claude-desktop.md", "mcp-stdio")],
)
def test_the_configuration_of_other_clients(page: str, name: str) -> None:
    assert without_paths(json.loads(shown(page))) == without_paths(json.loads(MADE[name]))


def without_paths(configuration: Any) -> Any:
    """Return a configuration without the place of Python, which differs."""
    for servers in configuration.values():
        servers["jupyter"].pop("command", None)
    return configuration
