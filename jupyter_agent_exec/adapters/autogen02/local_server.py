"""`LocalJupyterServer`: a temporary Jupyter server with this extension."""

from __future__ import annotations

import atexit
import json
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ...own_server.launch import own_server
from ..own_servers import TRAITS
from .ipython_results import JupyterClient, JupyterConnectionInfo

Self = TypeVar("Self", bound="LocalJupyterServer")


class LocalJupyterServer:
    """A Jupyter server that serves the current folder. Also a context manager.

    It runs until `stop`, or until this process ends, even if no reference to this object is kept.

    Parameters
    ----------
    ip
        Address to listen on. By default, only this machine can reach the server.
    port
        Port to listen on; a free one when None.
    token
        The server's token; a random one by default.
    log_file
        The server's log file; no log when None.
    log_level, log_max_bytes, log_backup_count
        Minimum level of log messages, maximum size of a log file, and number of old log files.

    Raises
    ------
    ValueError
        `token` is empty or None. Anyone who reaches the server could run code.
    ServerUnreachable
        The server did not start. The message has the end of its log.
    """

    class GenerateToken:
        """Stands for a random token."""

    def __init__(
        self,
        ip: str = "127.0.0.1",
        port: int | None = None,
        token: str | GenerateToken = GenerateToken(),  # noqa: B008 - it has no state
        log_file: str | None = None,
        log_level: str = "INFO",
        log_max_bytes: int = 1048576,
        log_backup_count: int = 3,
    ) -> None:
        if isinstance(token, LocalJupyterServer.GenerateToken):
            token = secrets.token_hex(32)
        if not token:
            raise ValueError("token: a server that runs code needs one.")
        traits = {**TRAITS, "ServerApp.ip": ip}
        if port is not None:
            traits |= {"ServerApp.port": str(port), "ServerApp.port_retries": "0"}
        if log_file is not None:
            log = _logging(log_file, log_level, log_max_bytes, log_backup_count)
            traits["ServerApp.logging_config"] = json.dumps(log)
        self._stack = ExitStack()
        # This also keeps a reference to this object: executors and clients have only its address.
        atexit.register(self.stop)
        server = self._stack.enter_context(own_server(Path.cwd(), token=token, traits=traits))
        self.ip = ip
        self.port = urlsplit(server.url).port
        self.token = token

    @property
    def connection_info(self) -> JupyterConnectionInfo:
        """The server's address and token, for executors."""
        return JupyterConnectionInfo(
            host=self.ip, use_https=False, port=self.port, token=self.token
        )

    def get_client(self) -> JupyterClient:
        """Return AutoGen's own client of the server."""
        return JupyterClient(self.connection_info)

    def stop(self) -> None:
        """Stop the server and its kernels, and wait until they have ended. Idempotent."""
        atexit.unregister(self.stop)
        self._stack.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _logging(file: str, level: str, max_bytes: int, backup_count: int) -> dict[str, Any]:
    handler = {
        "class": "logging.handlers.RotatingFileHandler",
        "level": level,
        "filename": str(Path(file).absolute()),
        "maxBytes": max_bytes,
        "backupCount": backup_count,
    }
    logger = {"level": level, "handlers": ["file", "console"]}
    return {"handlers": {"file": handler}, "loggers": {"OwnServer": logger}}
