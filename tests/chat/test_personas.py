"""Chats get the endpoint once the user has given them a token."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from traitlets import List, default
from traitlets.config import Config, Configurable

from jupyter_agent_exec.chat.personas import connected
from jupyter_agent_exec.text.connections import CHAT_TOKEN

UNRECORDED = {"type": "http", "name": "other", "url": "http://localhost:3001/mcp"}
CONFIGURED = {"name": "mine", "command": "x", "args": []}


class PersonaManager(Configurable):
    """As Jupyter AI's: the part that is for those who configure or extend it."""

    builtin_mcp_servers = List(allow_none=True).tag(config=True)

    @default("builtin_mcp_servers")
    def _unrecorded(self) -> list[dict[str, Any]]:
        return [UNRECORDED]

    def get_mcp_settings(self) -> Any:
        return self.builtin_mcp_servers


def keep(folder: Path, secret: str) -> None:
    (folder / CHAT_TOKEN).write_text(json.dumps({"id": "t_1", "secret": secret}))


def names(manager: Any) -> list[str]:
    return [each["name"] for each in manager.get_mcp_settings()]


@pytest.fixture
def manager_class(tmp_path: Path) -> Any:
    url = "http://127.0.0.1:8888/user/ada/"
    return connected(PersonaManager, SimpleNamespace(data_dir=str(tmp_path), connection_url=url))


def test_a_chat_that_is_open_gets_the_endpoint_and_each_new_token(
    manager_class: Any, tmp_path: Path
) -> None:
    chat = manager_class()
    assert names(chat) == ["other"]
    for secret in ("jaex_t_1_a", "jaex_t_2_b"):
        keep(tmp_path, secret)
        assert chat.get_mcp_settings() == [
            {
                "type": "http",
                "name": "jupyter",
                "url": "http://127.0.0.1:8888/user/ada/api/agent-exec/mcp",
                "headers": [{"name": "Authorization", "value": f"Bearer {secret}"}],
            }
        ]


@pytest.mark.parametrize("configured", [[CONFIGURED], [], None])
def test_what_is_configured_stays(manager_class: Any, tmp_path: Path, configured: Any) -> None:
    config = Config({"PersonaManager": {"builtin_mcp_servers": configured}})
    keep(tmp_path, "jaex_t_1_a")
    chat = manager_class(config=config)
    for _ in range(2):
        assert names(chat) == ["jupyter", *(each["name"] for each in configured or ())]
