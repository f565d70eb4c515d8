"""`jupyter agent-exec doctor`: say what is wrong with an installation, and what to do about it."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

import httpx2
import msgspec

from .._version import __version__
from ..client import AgentExecClient, ServerUnreachable, UnexpectedAnswer
from ..client.errors import ClientError
from ..client.servers import Server, named, running
from ..errors import AgentExecError, IsolationUnavailable, TrialUnavailable, Unauthenticated
from ..own_server.launch import own_server
from . import exit_codes
from .command import command
from .console import Colour, Console
from .installation import (
    Finding,
    Level,
    configuration,
    history,
    history_folder,
    kernelspecs,
    lab_extension,
    ok,
    packages,
    problem,
    server_extension,
    warning,
)
from .usage import UsageError

ANSWER_SECONDS: Final = 10.0

CLOCK_SECONDS: Final = 60.0
"""Difference between two clocks from which it matters for tokens and times."""

RUN_SECONDS: Final = 60.0

_TRIAL: Final = {
    "AgentExecApp.allow_full_access": "True",
    "AgentExecApp.forced_approval": "{'scratch': 'none'}",
}
"""Settings of the server that is tried: nobody could approve its code."""

_COLOURS: Final[dict[Level, Colour | None]] = {"ok": "green", "warning": "bold", "problem": "red"}


_EPILOG: Final = """\
Run it in the environment of Jupyter Server. It changes nothing: it checks what is installed and
configured, looks at running servers, and runs code in a server of its own with another history.

exit codes: 0 no problem (there may be warnings), 1 a problem was found, 2 usage."""


def _options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--history",
        metavar="DIR",
        help="the history's folder (as configured, else agent_exec in Jupyter's data)",
    )


@command(
    "doctor",
    "find problems of this installation, and say how to solve them",
    _options,
    epilog=_EPILOG,
)
def doctor(arguments: Namespace, console: Console) -> int:
    """Look at an installation, and say what is wrong with it."""
    found: list[Finding] = []
    for finding in _findings(arguments):
        found.append(finding)
        if not arguments.json:
            console.line(
                f"{finding.level:<8} {finding.check}: {finding.message}", _COLOURS[finding.level]
            )
            if finding.advice is not None:
                console.line(f"{'':<8} -> {finding.advice}")
    problems = sum(finding.level == "problem" for finding in found)
    if arguments.json:
        console.json(
            {
                "version": __version__,
                "problems": problems,
                "findings": [msgspec.to_builtins(finding) for finding in found],
            }
        )
    else:
        console.note("No problem was found." if not problems else f"Problems: {problems}")
    return exit_codes.FAILED if problems else exit_codes.OK


def _findings(arguments: Namespace) -> Iterator[Finding]:
    try:
        server = named(arguments.url, arguments.token)
    except ValueError as error:
        raise UsageError(str(error)) from error
    config, readable = configuration()
    yield readable
    yield from packages()
    loads = server_extension(config)
    yield loads
    yield lab_extension()
    yield from kernelspecs(config)
    yield history(history_folder(config, arguments.history))
    if server is not None:
        yield from _server(server)
    elif servers := running():
        for each in servers:
            yield from _server(each)
    else:
        yield warning(
            "server", "No Jupyter server of yours runs here.", "Start one: `jupyter lab`."
        )
    if readable.level == loads.level == "ok":
        yield from _trial()


def _server(server: Server) -> Iterator[Finding]:
    """Check a server that runs, or is said to run."""
    transport = httpx2.HTTPTransport(uds=server.socket_path)  # through no proxy, as the client
    try:
        with httpx2.Client(transport=transport, timeout=ANSWER_SECONDS) as client:
            date = client.get(f"{server.url}/api").headers.get("Date")
        with AgentExecClient(server.address, server.token) as agent_exec:
            status = agent_exec.status()
    except (httpx2.TransportError, ServerUnreachable) as error:
        yield problem(
            "server",
            f"The server at {server.address} does not answer: {error}",
            "Start it, or correct the address.",
        )
        return
    except Unauthenticated as error:
        yield problem(
            "token",
            f"The server at {server.address} refuses the token: {error}",
            "Create another one: *Give an Agent Access* in JupyterLab, or `jupyter agent-exec "
            "token new`.",
        )
        return
    except (UnexpectedAnswer, AgentExecError) as error:
        yield problem(
            "server",
            f"The server at {server.address} does not answer as expected: {error}",
            "If the extension was installed while the server ran, restart the server.",
        )
        return
    if status.version != __version__:
        yield problem(
            "server",
            f"The server at {server.address} runs {status.version}; {__version__} is installed.",
            "Restart the server, or install the same version here.",
        )
    elif not status.history_available:
        yield problem(
            "server",
            f"The server at {server.address} cannot write its history.",
            "Look at its log; free space on its disk, or make the folder writable.",
        )
    else:
        yield ok("server", f"The server at {server.address} answers.")
    yield from _clocks(server, date)


def _clocks(server: Server, date: str | None) -> Iterator[Finding]:
    """Compare this machine's clock with the date in a server's answer."""
    if date is None:
        return
    apart = (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
    if abs(apart) > CLOCK_SECONDS:
        yield problem(
            "clock",
            f"The clock of the server at {server.address} is {abs(apart):.0f} s "
            f"{'ahead of' if apart > 0 else 'behind'} this machine's.",
            "Set both clocks. Tokens expire by the server's.",
        )


def _trial() -> Iterator[Finding]:
    """Run code in a server of our own, which has the user's configuration but another history."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with (
                own_server(Path(folder), Path(folder) / "history", traits=_TRIAL) as server,
                AgentExecClient(server.address, server.token) as client,
            ):
                yield _run(client)
                yield _isolation(client)
                yield _trials(client)
        except ServerUnreachable as error:
            yield problem(
                "trial", str(error), "Correct what the log names, such as a wrong setting."
            )


def _run(client: AgentExecClient) -> Finding:
    advice = "Look at the kernel's own messages: `jupyter run --kernel=python3`."
    try:
        with client.open_session(agent="doctor") as session:
            result = session.run("print(6 * 7)", timeout=RUN_SECONDS)
    except (AgentExecError, ClientError) as error:
        return problem("trial", f"Code cannot be run: {error}", advice)
    if not result.ok:
        return problem("trial", f"Code does not run: {result.summary}", advice)
    return ok("trial", "A new server starts, and code runs in a scratch kernel.")


def _isolation(client: AgentExecClient) -> Finding:
    try:
        client.open_session(agent="doctor", isolated=True).close()  # its kernel has started
    except IsolationUnavailable as error:
        return warning(
            "isolation", str(error), "Nothing, unless you want agents' code isolated from the user."
        )
    except (AgentExecError, ClientError) as error:
        return warning(
            "isolation",
            f"An isolated kernel does not work: {error}",
            "Read the page about isolated kernels in the documentation.",
        )
    return ok("isolation", "Scratch kernels can be isolated.")


def _trials(client: AgentExecClient) -> Finding:
    try:
        with client.open_session(agent="doctor") as session:
            result = session.run("print(6 * 7)", trial=True, timeout=RUN_SECONDS)
    except TrialUnavailable as error:
        return warning(
            "trials", str(error), "Nothing, unless agents are to look without being asked."
        )
    except (AgentExecError, ClientError) as error:
        return warning("trials", f"A trial does not work: {error}", "Look at the server's log.")
    if not result.ok:
        return warning("trials", f"A trial does not work: {result.summary}", "Update Linux.")
    return ok("trials", "Agents can look by trial, in a sealed copy of a kernel.")
