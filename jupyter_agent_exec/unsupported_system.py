"""What stands in for the server extension on Windows, where it does not run."""

from __future__ import annotations

from typing import Any, Final

MESSAGE: Final = (
    "The server extension of jupyter-agent-exec does not run on Windows; it needs Linux or macOS. "
    "The Python client and `jupyter agent-exec` do run here, with a server elsewhere (--url). "
    "On this computer, run Jupyter in the Windows Subsystem for Linux."
)


def _load_jupyter_server_extension(serverapp: Any) -> None:
    """Say so in the server's log, and add nothing; the server goes on without the extension."""
    serverapp.log.warning(MESSAGE)
