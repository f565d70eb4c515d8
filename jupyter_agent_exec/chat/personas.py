"""Gives the personas of Jupyter AI's chats the MCP endpoint, and the agent token made for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from ..services import Leaf
from ..sessions.answers import NAMESPACE
from ..text.connections import CHAT_TOKEN, NAME, ChatToken

EXTENSION: Final = "jupyter_ai_persona_manager"
SERVERS: Final = "builtin_mcp_servers"
"""The trait of a persona manager with the MCP servers of all its personas."""


def connected(manager_class: Any, serverapp: Any) -> Any:
    """Return a subclass of a persona manager whose personas get the endpoint.

    They get it instead of the server that is the trait's default, which keeps no record. Servers
    that the trait is configured with, or that the user's file names, stay.
    """

    def begin(self: Any, *args: object, **options: object) -> None:
        manager_class.__init__(self, *args, **options)
        self.configured = getattr(self, SERVERS) if self.trait_has_value(SERVERS) else ()

    def get_mcp_settings(self: Any) -> Any:
        server = _endpoint(serverapp)
        if server is not None:
            setattr(self, SERVERS, [server, *(self.configured or ())])
        return manager_class.get_mcp_settings(self)

    methods = {"__init__": begin, "get_mcp_settings": get_mcp_settings}
    # Its configuration is that of the class with this name.
    return type(manager_class.__name__, (manager_class,), methods)


def _endpoint(serverapp: Any) -> dict[str, Any] | None:
    """Return the endpoint as a persona manager describes it; None if the user gave no token."""
    try:
        data = (Path(serverapp.data_dir) / CHAT_TOKEN).read_bytes()
        secret = msgspec.json.decode(data, type=ChatToken).secret
    except FileNotFoundError:
        return None
    return {
        "type": "http",
        "name": NAME,
        "url": f"{serverapp.connection_url}{NAMESPACE}/mcp",
        "headers": [{"name": "Authorization", "value": f"Bearer {secret}"}],
    }


class ChatLeaf(Leaf):
    """Connects Jupyter AI, if it is installed."""

    def start(self) -> None:
        """Have the chats that open from now on look for their token."""
        serverapp = self.settings.serverapp
        for app in serverapp.extension_manager.extension_apps.get(EXTENSION, ()):
            app.persona_manager_class = connected(app.persona_manager_class, serverapp)
