"""`jupyter agent-exec hub`: the service of a JupyterHub, and its administrators' pause."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import httpx2

from ..cli import exit_codes
from ..cli.command import command
from ..cli.console import Console
from ..cli.usage import UsageError
from ..client import AgentExecClient, ServerUnreachable, UnexpectedAnswer
from ..errors import AgentExecError

URL_VARIABLE: Final = "JUPYTERHUB_PUBLIC_HUB_URL"
TOKEN_VARIABLE: Final = "JUPYTERHUB_API_TOKEN"  # noqa: S105
AT_ONCE: Final = 20
"""How many servers are paused at a time."""
PAGED: Final = "application/jupyterhub-pagination+json"


class UserServer(NamedTuple):
    """A user's server that runs."""

    title: str
    url: str


_EPILOG: Final = f"""\
docs/how-to/hub.md shows how to configure the service. To pause, put a token of an administrator
into {TOKEN_VARIABLE}; users' code that runs goes on, and servers that do not run are not
started for agents any more.

examples:
  jupyter agent-exec hub pause --hub-url https://hub.example.org/
  jupyter agent-exec hub resume --hub-url https://hub.example.org/"""


def _options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        metavar="ACTION",
        nargs="?",
        choices=("serve", "pause", "resume"),
        default="serve",
        help="serve: what JupyterHub starts; pause: pause all agents of all users; resume: let "
        "them go on (%(default)s)",
    )
    parser.add_argument(
        "--hub-url",
        metavar="URL",
        help="address of the hub's proxy with the hub's base URL; else from "
        f"{URL_VARIABLE}, which the hub sets if it knows its public URL",
    )
    parser.add_argument(
        "--database",
        metavar="FILE",
        default="agent-exec-hub.sqlite",
        help="of the service: what people have granted (%(default)s)",
    )
    parser.add_argument(
        "--client-documents",
        action="store_true",
        help="of the service: let MCP clients name themselves by the address of a document, which "
        "it fetches from the internet; else they register themselves",
    )
    parser.add_argument(
        "--service",
        metavar="NAME",
        default="agent-exec",
        help="for pause and resume: the service's name at the hub (%(default)s)",
    )


@command(
    "hub",
    "serve MCP for all users of a JupyterHub, or pause all their agents",
    _options,
    epilog=_EPILOG,
    server=False,
    json=False,
)
def hub(arguments: Namespace, console: Console) -> int:
    """Run the service, or pause or resume all agents of all users."""
    url = arguments.hub_url or os.environ.get(URL_VARIABLE, "").removesuffix("hub/")
    if not url:
        raise UsageError(f"Name the hub with --hub-url, or with {URL_VARIABLE}.")
    if arguments.action != "serve":
        return _set_paused(url.rstrip("/"), arguments.action == "pause", arguments, console)
    if find_spec("jupyterhub") is None or find_spec("mcp") is None:
        raise UsageError("This needs pip install 'jupyter-agent-exec[hub]'.")
    if "JUPYTERHUB_SERVICE_URL" not in os.environ:
        raise UsageError(
            "JupyterHub starts this, as one of its services; see the hub's page in the docs."
        )
    from .service import serve

    serve(url, Path(arguments.database), arguments.client_documents)
    return exit_codes.OK


def _set_paused(url: str, paused: bool, arguments: Namespace, console: Console) -> int:
    """Pause the service first, so that it starts no servers, and then each server."""
    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise UsageError(f"Put an administrator's token of the hub into {TOKEN_VARIABLE}.")
    done, problems = "paused" if paused else "resumed", 0

    def tell(title: str, problem: str | None) -> None:
        nonlocal problems
        problems += problem is not None
        console.line(f"{title}: {done if problem is None else f'NOT {done}: {problem}'}")

    headers = {"Authorization": f"token {token}"}
    with httpx2.Client(headers=headers, timeout=30, trust_env=False) as http:
        service = f"{url}/services/{arguments.service}/pause"
        tell("the service", _problem(partial(_pause_service, http, service, paused)))
        servers = list(_running(http, url))
    with ThreadPoolExecutor(AT_ONCE) as threads:
        each = [partial(_pause_server, server, token, paused) for server in servers]
        for server, problem in zip(servers, threads.map(_problem, each), strict=True):
            tell(server.title, problem)
    return exit_codes.REFUSED if problems else exit_codes.OK


def _pause_service(http: httpx2.Client, url: str, paused: bool) -> None:
    http.put(url, content=json.dumps({"paused": paused})).raise_for_status()


def _pause_server(server: UserServer, token: str, paused: bool) -> None:
    with AgentExecClient(server.url, token) as client:
        if paused:
            client.pause()
        else:
            client.resume()


def _problem(act: Callable[[], None]) -> str | None:
    """Return what went wrong; None if nothing did."""
    try:
        act()
    except (AgentExecError, ServerUnreachable, UnexpectedAnswer, httpx2.HTTPError) as error:
        return str(error)
    return None


def _running(http: httpx2.Client, url: str) -> Iterator[UserServer]:
    """Yield all servers that run, of all users."""
    origin = str(httpx2.URL(url).copy_with(raw_path=b"/")).rstrip("/")
    page: str | None = f"{url}/hub/api/users?state=active"
    while page is not None:
        try:
            answered = http.get(page, headers={"Accept": PAGED})
        except httpx2.HTTPError as error:
            raise ServerUnreachable(f"The hub at {url} does not answer: {error}") from error
        if answered.status_code != httpx2.codes.OK:
            raise UnexpectedAnswer(
                f"The hub does not list its users: {answered.text}", answered.status_code
            )
        found = answered.json()
        for user in found["items"]:
            for name, server in user["servers"].items():
                yield UserServer(f"{user['name']}/{name}".rstrip("/"), origin + server["url"])
        following = found["_pagination"]["next"]
        page = None if following is None else following["url"]
