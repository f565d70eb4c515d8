"""`jupyter agent-exec connect`: make a server known to an MCP client."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from jupyter_core.paths import jupyter_data_dir

from ..client import NoServerFound
from ..client.blocking import run
from ..client.connection import PROBE_SECONDS, BlockingConnection, Request
from ..client.errors import ClientError
from ..client.replies import read
from ..client.requests import API
from ..client.servers import Server, named, running
from ..errors import AgentExecError, NotFound
from ..storage.durability import replace_file
from ..text.connections import CHAT, CHAT_TOKEN, NAME, ChatToken, Connection, connections
from . import exit_codes
from .command import command, option
from .command_client import connected, decided
from .console import Console
from .usage import UsageError, duration

HUB_VARIABLE: Final = "JUPYTERHUB_API_URL"
"""What a hub sets in the environment of its users' servers, and so of their terminals."""

_EPILOG: Final = f"""\
Without CLIENT, it prints for each client what to run or to write. With CLIENT, it shows that, asks,
and does it: it runs the client's own command, or changes the client's file. The server is called
{NAME!r} there; an earlier one of this name is replaced. No token is written: the client signs in.
Only the chats of Jupyter AI, which cannot, get an agent token.

examples:
  jupyter agent-exec connect
  jupyter agent-exec connect claude-code
  jupyter agent-exec connect claude-code --remove"""


def _options(parser: ArgumentParser) -> None:
    names = [each.name for each in connections("")]
    option(parser, "[CLIENT]", "which client to change", choices=names)
    option(parser, "--remove", "take back what `connect CLIENT` did")
    option(parser, "-y, --yes", "do it without asking")
    how_long = "how long the token of jupyter-ai is valid: a number with m, h or d (30d)"
    option(parser, "--expires-in TIME", how_long, type=duration, default=30 * 86_400)


@command(
    "connect",
    "make a server known to an MCP client, or print how",
    _options,
    epilog=_EPILOG,
    json=False,
)
def connect(arguments: Namespace, console: Console) -> int:
    """Print how clients connect, or change the configuration of one."""
    if arguments.client is None:
        if arguments.remove:
            raise UsageError("--remove needs a CLIENT.")
        for each in connections(_mcp_url(arguments)):
            console.line(each.title, "bold")
            _show(each.text, console)
            console.line(each.then)
            console.line()
        return exit_codes.OK
    if arguments.client == CHAT:
        return _change_chats(arguments, console)
    mcp_url = "" if arguments.remove else _mcp_url(arguments)
    [client] = [each for each in connections(mcp_url) if each.name == arguments.client]
    change = _change_file if client.file else _run_commands
    return change(client, arguments, console)


def _show(text: str, console: Console) -> None:
    for line in text.splitlines():
        console.line(f"  {line}")


def _confirm(
    arguments: Namespace, console: Console, replaced: str = f"server with the name {NAME!r}"
) -> None:
    question = "Do this?"
    if not arguments.remove:
        question += f" It replaces an earlier {replaced}."
    if not arguments.yes:
        nobody = "Nobody can confirm this here: add --yes."
        console.confirm(question, otherwise=nobody, declined="Nothing was changed.")


# -- the server ------------------------------------------------------------------------------------


class _Described(msgspec.Struct):
    """What a server tells clients before they sign in."""

    public_url: str | None = None
    """The server's address for users, if its operator or its hub has set one."""


def _mcp_url(arguments: Namespace) -> str:
    """Return the address of the MCP endpoint of the named server, or of the newest that runs here.

    Raises
    ------
    UsageError, InvalidAddress, ServerUnreachable, UnexpectedAnswer, AgentExecError
        There is no such server, MCP is not installed there, or its address is not known.
    """
    problem: Exception | None = None
    server = named(arguments.url, arguments.token)
    for each in running() if server is None else [server]:
        try:
            public_url = run(_described(each)).public_url
        except (AgentExecError, ClientError) as error:
            problem = problem or error
            continue
        if server is None and public_url is not None:
            each = Server.at(public_url)
        elif server is None and HUB_VARIABLE in os.environ:
            raise UsageError(
                "The hub has not told this server its public address. Give it as your browser "
                "shows it: --url https://hub.example.org/user/you/."
            )
        return f"{each.url}{API}/mcp"
    raise problem or NoServerFound(
        "No Jupyter server of yours runs here.", "Start one with `jupyter lab`, or give --url."
    )


async def _described(server: Server) -> _Described:
    """Ask a server what it tells clients, which needs no credential."""
    if server.socket_path is not None:
        raise UsageError(
            f"{server.address} is a Unix socket, to which MCP clients connect through a process: "
            "`jupyter agent-exec mcp`."
        )
    connection = BlockingConnection(server.url, None)
    path = f"{API}/.well-known/oauth-protected-resource"
    try:
        answered = await connection.send(Request("GET", path, read_timeout=PROBE_SECONDS))
        return read(answered, _Described)
    finally:
        await connection.close()


# -- the client ------------------------------------------------------------------------------------


def _run_commands(client: Connection, arguments: Namespace, console: Console) -> int:
    """Run the client's own commands."""
    text = client.removal if arguments.remove else client.text
    lines = [shlex.split(line) for line in text.splitlines()]
    program = shutil.which(lines[0][0])
    if program is None:
        raise UsageError(f"There is no {lines[0][0]} here. Run this where it is installed:\n{text}")
    _show(text, console)
    _confirm(arguments, console)
    if not arguments.remove:  # Claude Code refuses to replace a server
        _run(program, shlex.split(client.removal), is_silent=True)
    for line in lines:
        if code := _run(program, line):
            console.complain(f"{shlex.join(line)} has failed, with exit code {code}.")
            return exit_codes.FAILED
    if not arguments.remove:
        console.note(client.then)
    return exit_codes.OK


def _run(program: str, line: Sequence[str], *, is_silent: bool = False) -> int:
    run = subprocess.run([program, *line[1:]], check=False, capture_output=is_silent)  # noqa: S603
    return run.returncode


def _change_file(client: Connection, arguments: Namespace, console: Console) -> int:
    """Put the server into the client's file, or take it out."""
    file = Path(client.file or "").expanduser().resolve()
    [(key, ours)] = json.loads(client.text).items()
    try:
        content = json.loads(file.read_text("utf-8")) if file.exists() else {}
        servers = content.setdefault(key, {})
        before = servers.pop(NAME, None)
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(
            f"{file} is not JSON with the servers under {key!r}; comments are not JSON. It stays "
            f"as it is: change it by hand.\n{client.text}"
        ) from error
    if before == (None if arguments.remove else ours[NAME]):
        console.note(f"There is nothing to change in {file}.")
        return exit_codes.OK
    console.line(str(file), "bold")
    _show(f"remove {NAME!r}" if arguments.remove else client.text, console)
    _confirm(arguments, console)
    if not arguments.remove:
        servers |= ours
    elif content == {key: {}}:
        file.unlink()
        return exit_codes.OK
    file.parent.mkdir(exist_ok=True)
    replace_file(file, f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode())
    if not arguments.remove:
        console.note(client.then)
    return exit_codes.OK


# -- the chats of Jupyter AI -----------------------------------------------------------------------


CHAT_SCOPES: Final = ("exec:scratch", "exec:notebook", "edit:notebook", "files")


def _change_chats(arguments: Namespace, console: Console) -> int:
    """Mint the token of the chats, or revoke it. The server, on this machine, reads the file."""
    file = Path(jupyter_data_dir()) / CHAT_TOKEN
    before = msgspec.json.decode(file.read_bytes(), type=ChatToken) if file.exists() else None
    if arguments.remove and before is None:
        console.note(f"There is nothing to change: there is no {file}.")
        return exit_codes.OK
    with connected(arguments, console, may_start=False) as client:
        if client.address not in {each.address for each in running() if not each.socket_path}:
            raise UsageError(
                "The server must run on this machine, where its chats read the token, and listen "
                "on a port."
            )
        console.line(str(file), "bold")
        hours = arguments.expires_in / 3600
        text = f"a token for {', '.join(CHAT_SCOPES)}, valid for {hours:g} hours"
        _show("remove it, and revoke its token" if arguments.remove else text, console)
        _confirm(arguments, console, "token")
        if not arguments.remove:
            minted = decided(
                client,
                console,
                client.mint_token,
                "Jupyter AI",
                CHAT_SCOPES,
                expires_in=arguments.expires_in,
            )
            kept = ChatToken(id=minted.token.id, secret=minted.secret)
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, msgspec.json.encode(kept))
            if not minted.mcp_installed:
                console.note("The server needs the extra 'jupyter-agent-exec[mcp]'.")
        if before is not None:
            with suppress(NotFound):
                client.revoke_token(before.id)
        if arguments.remove:
            file.unlink()
        else:
            console.note("Then open a chat in JupyterLab.")
    return exit_codes.OK
