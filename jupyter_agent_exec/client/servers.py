"""Addresses and tokens of servers, given by the user or found on this machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit, urlunsplit

from jupyter_core.paths import jupyter_runtime_dir
from msgspec import Struct
from msgspec.structs import replace

from ..types import AGENT_PREFIX
from .errors import InvalidAddress

URL_VARIABLE = "JUPYTER_AGENT_EXEC_URL"
TOKEN_VARIABLE = "JUPYTER_AGENT_EXEC_TOKEN"  # noqa: S105

_PAGE = re.compile(r"(/(lab|doc)(/workspaces/[^/]+)?(/tree(/.*)?)?|/tree|/notebooks(/.+\.ipynb)?)$")
"""The end of the URL of a page."""


class Server(Struct, frozen=True, kw_only=True):
    """A Jupyter server."""

    url: str
    """Base URL without a trailing slash."""
    token: str | None
    socket_path: str | None = None
    """The Unix socket on which it listens; null for TCP."""

    @classmethod
    def at(cls, url: str, token: str | None = None) -> Server:
        """Return the server at an address that a user gives.

        Parameters
        ----------
        url
            A base URL, or the URL of a page as it is in a browser, or with ``?token=`` as Jupyter
            prints it at its start. May also be ``http+unix://`` and the quoted path of a Unix
            socket.
        token
            The token; the one in `url` when None.

        Raises
        ------
        InvalidAddress
            `url` is not a valid address of a Jupyter server, or has another token than `token`.
        """
        try:
            parts = urlsplit(url)
            _ = parts.scheme == "http+unix" or parts.port  # raises when it is not a number
        except ValueError as error:
            raise InvalidAddress(f"Not a URL: {url!r} ({error}).") from error
        if parts.scheme not in ("http", "https", "http+unix") or not parts.netloc:
            raise InvalidAddress(
                f"Not the address of a Jupyter server: {url!r}. Give it as http://host:port/base/."
            )
        path = _PAGE.sub("", parts.path.rstrip("/"), count=1)
        in_url = parse_qs(parts.query).get("token", [None])[0]
        if token and in_url and token != in_url:
            raise InvalidAddress("token: the URL has another one. Give one of them.")
        token = token or in_url
        if token is not None and not (token.isascii() and token.isprintable()):
            raise InvalidAddress("Not a token: it holds characters that no token has.")
        if parts.scheme == "http+unix":
            return cls(
                url=f"http://localhost{path}", token=token, socket_path=unquote(parts.netloc)
            )
        return cls(url=urlunsplit((parts.scheme, parts.netloc, path, "", "")), token=token)

    @property
    def authorization(self) -> str:
        """The value of the header `Authorization`."""
        assert self.token is not None
        scheme = "Bearer" if self.token.startswith(AGENT_PREFIX) else "token"
        return f"{scheme} {self.token}"

    @property
    def address(self) -> str:
        """The address for users, without the token."""
        if self.socket_path is None:
            return self.url
        base = urlsplit(self.url).path
        return f"http+unix://{quote(self.socket_path, safe='')}{base}"


def named(
    url: str | None, token: str | None, environ: Mapping[str, str] = os.environ
) -> Server | None:
    """Return the server that the arguments or the environment variables name; None if neither do.

    Without a token, use the token of the server on this machine with the same address.
    """
    url = url or environ.get(URL_VARIABLE)
    if not url:
        return None
    server = Server.at(url, token)
    if server.token is None:
        server = Server.at(url, environ.get(TOKEN_VARIABLE))
    if server.token is not None:
        return server
    return next((known for known in running() if known.address == server.address), server)


def found(token: str | None, environ: Mapping[str, str] = os.environ) -> list[Server]:
    """Return the servers on this machine, newest first, with the given token if there is one.

    The token is the argument or that of the environment variable.
    """
    token = token or environ.get(TOKEN_VARIABLE) or None
    return running() if token is None else [replace(each, token=token) for each in running()]


def running(runtime_dir: Path | None = None) -> list[Server]:
    """Return this user's Jupyter servers on this machine, newest first.

    These are the servers whose file in Jupyter's runtime folder names a living process. They may
    still not answer.
    """
    folder = Path(jupyter_runtime_dir()) if runtime_dir is None else runtime_dir
    found: list[tuple[float, Server]] = []
    for file in folder.glob("jpserver-*.json"):
        try:
            info = json.loads(file.read_text(encoding="utf-8"))
            modified = file.stat().st_mtime
            if _is_alive(int(info["pid"])):
                found.append((modified, Server.at(info["url"], info.get("token") or None)))
        except (OSError, ValueError, KeyError, TypeError):
            # The file is being written or removed, or is not a server's file. Skip it.
            continue
    return [server for _, server in sorted(found, key=lambda entry: entry[0], reverse=True)]


def _is_alive(pid: int) -> bool:
    if os.name == "nt":
        # On Windows, signal 0 would end the process. The client contacts the server anyway.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
