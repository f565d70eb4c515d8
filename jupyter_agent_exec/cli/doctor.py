"""`jupyter agent-exec doctor`: say what is wrong with an installation, and what to do about it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from jupyter_core.application import JupyterApp
from jupyter_core.paths import jupyter_config_path, jupyter_data_dir, jupyter_path
from msgspec.structs import replace
from packaging.requirements import Requirement
from traitlets.config import Config
from traitlets.config.loader import LazyConfigValue

from .._version import __version__
from ..client import AgentExecClient, Result, ServerUnreachable, UnexpectedAnswer
from ..client.errors import ClientError
from ..client.servers import TOKEN_VARIABLE, Server, named, running
from ..errors import AgentExecError, Unauthenticated
from . import exit_codes
from .command import command, option
from .command_client import own_server
from .console import Colour, Console

RUN_SECONDS: Final = 60.0
ENOUGH_BYTES: Final = 100_000_000
"""Free space of the history's disk below which a warning is due."""
PROBE_BYTES: Final = 1 << 16

PROJECT: Final = "jupyter-agent-exec"
EXTENSION: Final = "jupyter_agent_exec"
LAB: Final = Requirement("jupyterlab>=4.2,<5")

_OWN_TRAITS: Final = {
    "AgentExecApp.allow_full_access": "True",
    "AgentExecApp.forced_approval": "{'scratch': 'none'}",
}
"""Settings of the server that is tried: nobody could approve its code."""

_EPILOG: Final = """\
Run it in the environment of Jupyter Server. It changes nothing: it checks what is installed and
configured, looks at running servers, and runs code in a server of its own with another history.

exit codes: 0 no problem (there may be warnings), 1 a problem was found, 2 usage."""

Level: TypeAlias = Literal["ok", "warning", "problem"]

_COLOURS: Final[dict[Level, Colour]] = {"ok": "green", "warning": "bold", "problem": "red"}


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    check: str
    level: Level
    """``problem``: something does not work. ``warning``: something optional does not work, or may
    soon not work."""
    message: str
    advice: str | None = None
    """What to do about it; None if nothing is wrong."""


def _options(parser: ArgumentParser) -> None:
    what = "the history's folder (as configured, else agent_exec in Jupyter's data)"
    option(parser, "--history DIR", what)


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
        if not console.is_json:
            told = f"{finding.level:<8} {finding.check}: {finding.message}"
            console.line(told, _COLOURS[finding.level])
            if finding.advice is not None:
                console.line(f"{'':<8} -> {finding.advice}")
    problems = sum(finding.level == "problem" for finding in found)
    if console.is_json:
        console.json({"version": __version__, "problems": problems, "findings": found})
    console.note("No problem was found." if not problems else f"Problems: {problems}")
    return exit_codes.FAILED if problems else exit_codes.OK


def _findings(arguments: Namespace) -> Iterator[Finding]:
    server = named(arguments.url, arguments.token)
    config, readable = _configuration()
    yield readable
    yield from _packages()
    loads = _server_extension(config)
    yield loads
    yield _lab_extension()
    yield from _kernelspecs(config)
    configured = arguments.history or config.AgentExecApp.get("history_dir", None)
    yield _history(Path(configured or Path(jupyter_data_dir()) / "agent_exec"))
    token = arguments.token or os.environ.get(TOKEN_VARIABLE)
    here = [replace(each, token=each.token or token) for each in running()]
    servers = here if server is None else [server]
    for each in servers:
        yield from _server(each)
    if not servers:
        message = "No Jupyter server of yours runs here."
        yield Finding("server", "warning", message, "Start one: `jupyter lab`.")
    if readable.level == loads.level == "ok":
        yield from _own_server()


# -- what is installed and configured --------------------------------------------------------------


class _ServerConfig(JupyterApp):
    """Reads the configuration files that Jupyter Server and the extension read."""

    name = "jupyter-server"


def _configuration() -> tuple[Config, Finding]:
    """Return the user's configuration of the server; what can be read of it if a file is broken."""
    read = Config()
    for name in ("jupyter_server", EXTENSION):
        app = _ServerConfig(config_file_name=f"{name}_config", raise_config_file_errors=True)
        try:
            app.load_config_file()
        except Exception as error:  # a configuration file is code, and may raise anything
            return read, Finding(
                "configuration",
                "problem",
                f"A configuration file cannot be read: {type(error).__name__}: {error}",
                f"Correct the file {name}_config.py or .json; `jupyter --paths` shows the folders.",
            )
        read.merge(app.config)
    return read, Finding("configuration", "ok", "The configuration files can be read.")


def _packages() -> Iterator[Finding]:
    """Check the versions of this package's dependencies, and of those for MCP."""
    declared = [Requirement(each) for each in requires(PROJECT) or []]
    always = [each for each in declared if not each.marker or each.marker.evaluate({"extra": ""})]
    for_mcp = [
        each
        for each in declared
        if each not in always and each.marker and each.marker.evaluate({"extra": "mcp"})
    ]
    message = f"{PROJECT} {__version__} with Jupyter Server {version('jupyter_server')}."
    finding = Finding("packages", "ok", message)
    if wrong := ", ".join(filter(None, map(_unmet, always))):
        message = f"{PROJECT} {__version__} needs {wrong}."
        advice = f"Run `pip install --upgrade {PROJECT}` in this environment."
        finding = Finding("packages", "problem", message, advice)
    yield finding
    finding = Finding("mcp", "ok", "MCP clients can connect.")
    if wrong := ", ".join(filter(None, map(_unmet, for_mcp))):
        message = f"MCP clients cannot connect: MCP needs {wrong}."
        advice = f"If an agent uses MCP, run `pip install '{PROJECT}[mcp]'` in this environment."
        finding = Finding("mcp", "warning", message, advice)
    yield finding


def _unmet(requirement: Requirement) -> str | None:
    """Return what is wrong with the installed version; None if it is as required."""
    required = f"{requirement.name}{requirement.specifier}"
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return f"{required} (not installed)"
    if requirement.specifier.contains(installed, prereleases=True):
        return None
    return f"{required} (installed: {installed})"


def _server_extension(config: Config) -> Finding:
    """Check that Jupyter Server loads the extension."""
    # The server's code is imported only here, because that takes half a second.
    from jupyter_server.extension.config import ExtensionConfigManager

    manager = ExtensionConfigManager(read_config_path=jupyter_config_path())
    enabled = dict(manager.get_jpserver_extensions())  # type: ignore[no-untyped-call]
    configured = config.ServerApp.get("jpserver_extensions", {})
    if isinstance(configured, LazyConfigValue):  # of a file that calls its update()
        configured = configured.get_value({})
    enabled |= configured
    advice = f"Run `pip install --force-reinstall {PROJECT}` in this environment."
    if not enabled.get(EXTENSION, False):
        is_known = EXTENSION in enabled
        message = "The server extension is disabled."
        message = message if is_known else "Jupyter Server does not know the extension."
        advice = f"Run `jupyter server extension enable {EXTENSION}`, then restart the server."
        return Finding("server extension", "problem", message, advice)
    try:
        import_module(f"{EXTENSION}.app")
    except Exception as error:  # whatever an import raises
        message = f"The server extension cannot be loaded: {type(error).__name__}: {error}"
        return Finding("server extension", "problem", message, advice)
    message = "The server extension is enabled and can be loaded."
    return Finding("server extension", "ok", message)


def _lab_extension() -> Finding:
    """Check that JupyterLab finds the extension, in this package's version."""
    check = "lab extension"
    if (why := _unmet(LAB)) is not None:
        message = f"There is no panel in JupyterLab: it needs {why}."
        return Finding(
            check, "warning", message, f"Run `pip install '{LAB}'`. Agents work without."
        )
    reinstall = f"run `pip install --force-reinstall {PROJECT}` in the environment of JupyterLab."
    folders = (Path(each) / PROJECT for each in jupyter_path("labextensions"))
    found = next((each for each in folders if (each / "package.json").is_file()), None)
    if found is None:
        message = "JupyterLab does not find the extension, so it has no panel."
        return Finding(check, "problem", message, reinstall.capitalize())
    if (built := _read_json(found / "package.json").get("version")) != __version__:
        message = f"JupyterLab loads another version of the extension: {built} in {found}, while "
        message += f"the server's is {__version__}."
        return Finding(check, "problem", message, f"Delete that folder, then {reinstall}")
    for folder in jupyter_config_path():
        page = Path(folder) / "labconfig" / "page_config.json"
        disabled = _read_json(page).get("disabledExtensions", {})
        if PROJECT in disabled and (isinstance(disabled, list) or disabled[PROJECT]):
            message = f"The lab extension is disabled in {page}."
            advice = f"Run `jupyter labextension enable {PROJECT}`, then reload the page."
            return Finding(check, "problem", message, advice)
    return Finding(check, "ok", f"JupyterLab {version('jupyterlab')} finds the extension.")


def _read_json(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty one if there is none."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _kernelspecs(config: Config) -> Iterator[Finding]:
    """Check that there are kernels, and that their programs are there."""
    from jupyter_client.kernelspec import KernelSpecManager

    specs = KernelSpecManager(config=config).get_all_specs()
    if not specs:
        advice = "Run `pip install ipykernel`; `jupyter kernelspec list` then shows python3."
        yield Finding("kernels", "problem", "There is no kernel.", advice)
        return
    programs = {name: str((each["spec"].get("argv") or [""])[0]) for name, each in specs.items()}
    broken = {name: each for name, each in programs.items() if shutil.which(each) is None}
    for name, program in broken.items():
        message = f"The kernel {name} cannot start: its program {program!r} is not there."
        advice = f"Install it again, or run `jupyter kernelspec remove {name}`."
        yield Finding("kernels", "warning", message, advice)
    if not broken:
        yield Finding("kernels", "ok", f"Kernels: {', '.join(sorted(specs))}.")


def _history(folder: Path) -> Finding:
    """Check that a history can be written to a folder. It is not created."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(place).free
    except OSError as error:
        message = f"The history {folder} cannot be written: {error.strerror}."
        advice = "Make the folder writable, or set AgentExecApp.history_dir to another one."
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "Free space on its disk. Until then, agents cannot run code."
        return Finding("history", "problem", message, advice)
    if free < ENOUGH_BYTES:
        message = f"The disk of the history {folder} has only {free // 1_000_000} MB free."
        advice = "Free space on it. When it is full, agents cannot run code."
        return Finding("history", "warning", message, advice)
    return Finding("history", "ok", f"The history {folder} can be written.")


# -- servers ---------------------------------------------------------------------------------------


def _server(server: Server) -> Iterator[Finding]:
    """Check a server that runs, or is said to run."""
    name = f"The server at {server.address}"
    try:
        with AgentExecClient(server.address, server.token) as client:
            status = client.status()
    except ServerUnreachable as error:
        message = f"{name} does not answer: {error}"
        yield Finding("server", "problem", message, "Start it, or correct the address.")
        return
    except Unauthenticated as error:
        if server.token is None:  # it has a password, or is behind a hub
            message = f"{name} answers, but tells nothing without a token."
            yield Finding("server", "warning", message, f"Set {TOKEN_VARIABLE}, or give --token.")
            return
        advice = "Create another one: *Give an Agent Access* in JupyterLab, or `jupyter agent-exec "
        advice += "token create`."
        yield Finding("token", "problem", f"{name} refuses the token: {error}", advice)
        return
    except (UnexpectedAnswer, AgentExecError) as error:
        advice = "If the extension was installed while the server ran, restart the server."
        yield Finding("server", "problem", f"{name} does not answer as expected: {error}", advice)
        return
    if status.version != __version__:
        message = f"{name} runs {status.version}; {__version__} is installed."
        advice = "Restart the server, or install the same version here."
        yield Finding("server", "problem", message, advice)
    elif not status.history_available:
        advice = "Look at its log; free space on its disk, or make the folder writable."
        yield Finding("server", "problem", f"{name} cannot write its history.", advice)
    elif status.broken is not None:
        message = f"{name} does not sign its record any more: {' '.join(status.broken.found)}"
        advice = "Find out who changed the history. To have it signed as it is now: `jupyter "
        advice += f"agent-exec accept-break {status.broken.name}`."
        yield Finding("server", "problem", message, advice)
    else:
        yield Finding("server", "ok", f"{name} answers.")


def _own_server() -> Iterator[Finding]:
    """Run code in a server of our own, which has the user's configuration but another history."""

    def ran(*, trial: bool = False) -> Result:
        with client.open_session(agent="doctor") as session:
            return session.run("print(6 * 7)", trial=trial, timeout=RUN_SECONDS)

    def isolated() -> None:
        client.open_session(agent="doctor", isolated=True).close()  # its kernel has started

    with tempfile.TemporaryDirectory() as folder:
        try:
            with (
                own_server(Path(folder), Path(folder) / "history", traits=_OWN_TRAITS) as server,
                AgentExecClient(server.address, server.token) as client,
            ):
                well = "A new server starts, and code runs in a scratch kernel."
                advice = "Look at the kernel's own messages: `jupyter run --kernel=python3`."
                yield _tried("own server", "problem", ran, well, advice)
                well = "Scratch kernels can be isolated."
                advice = "Nothing, unless you want agents' code isolated from the user."
                yield _tried("isolation", "warning", isolated, well, advice)
                well = "Agents can look by trial, in a sealed copy of a kernel."
                advice = "Nothing, unless agents are to look without being asked."
                yield _tried("trials", "warning", lambda: ran(trial=True), well, advice)
        except ServerUnreachable as error:
            advice = "Correct what the log names, such as a wrong setting."
            yield Finding("own server", "problem", str(error), advice)


def _tried(
    check: str, level: Level, attempt: Callable[[], Result | None], well: str, advice: str
) -> Finding:
    """Return what comes of an attempt: that all is well, or a finding of this level."""
    try:
        result = attempt()
    except (AgentExecError, ClientError) as error:
        return Finding(check, level, str(error), advice)
    if result is not None and not result.ok:
        return Finding(check, level, f"Code does not run: {result.summary}", advice)
    return Finding(check, "ok", well)
