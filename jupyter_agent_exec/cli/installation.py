"""What can be wrong with an installation, seen without a server."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final, Literal, TypeAlias

from jupyter_core.application import JupyterApp
from jupyter_core.paths import jupyter_config_path, jupyter_data_dir, jupyter_path
from packaging.requirements import Requirement
from traitlets.config import Config

from .._version import __version__

Level: TypeAlias = Literal["ok", "warning", "problem"]

PROJECT: Final = "jupyter-agent-exec"
EXTENSION: Final = "jupyter_agent_exec"
LAB: Final = Requirement("jupyterlab>=4.2,<5")

ENOUGH_BYTES: Final = 100_000_000
"""Free space of the history's disk below which a warning is due."""

PROBE_BYTES: Final = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that was looked at."""

    check: str
    level: Level
    """``problem``: something does not work. ``warning``: something optional does not work, or may
    soon not work."""
    message: str
    advice: str | None = None
    """What to do about it; None if nothing is wrong."""


def ok(check: str, message: str) -> Finding:
    """Return the finding that all is well."""
    return Finding(check=check, level="ok", message=message)


def problem(check: str, message: str, advice: str) -> Finding:
    """Return the finding that something does not work."""
    return Finding(check=check, level="problem", message=message, advice=advice)


def warning(check: str, message: str, advice: str) -> Finding:
    """Return the finding that something optional does not work."""
    return Finding(check=check, level="warning", message=message, advice=advice)


class _ServerConfig(JupyterApp):
    """Reads the configuration files that Jupyter Server and the extension read."""

    name = "jupyter-server"


def configuration() -> tuple[Config, Finding]:
    """Return the user's configuration of the server; what can be read of it if a file is broken."""
    read = Config()
    for name in ("jupyter_server", EXTENSION):
        app = _ServerConfig(config_file_name=f"{name}_config", raise_config_file_errors=True)
        try:
            app.load_config_file()
        except Exception as error:  # a configuration file is code, and may raise anything
            return read, problem(
                "configuration",
                f"A configuration file cannot be read: {type(error).__name__}: {error}",
                f"Correct the file {name}_config.py or .json; `jupyter --paths` shows the folders.",
            )
        read.merge(app.config)
    return read, ok("configuration", "The configuration files can be read.")


def packages() -> Iterator[Finding]:
    """Check the versions of this package's dependencies."""
    declared = [Requirement(each) for each in requires(PROJECT) or []]
    wrong = [
        why
        for each in declared
        if each.marker is None or each.marker.evaluate({"extra": ""})
        if (why := _unmet(each)) is not None
    ]
    if wrong:
        yield problem(
            "packages",
            f"{PROJECT} {__version__} needs {_listed(wrong)}.",
            f"Run `pip install --upgrade {PROJECT}` in this environment.",
        )
    else:
        found = version("jupyter_server")
        yield ok("packages", f"{PROJECT} {__version__} with Jupyter Server {found}.")
    missing = [
        why
        for each in declared
        if each.marker is not None
        and each.marker.evaluate({"extra": "mcp"})
        and not each.marker.evaluate({"extra": ""})
        if (why := _unmet(each)) is not None
    ]
    if missing:
        yield warning(
            "mcp",
            f"MCP clients cannot connect: MCP needs {_listed(missing)}.",
            f"If an agent uses MCP, run `pip install '{PROJECT}[mcp]'` in this environment.",
        )
    else:
        yield ok("mcp", "MCP clients can connect.")


def server_extension(config: Config) -> Finding:
    """Check that Jupyter Server loads the extension."""
    # The server's code is imported only here, because that takes half a second.
    from jupyter_server.extension.config import ExtensionConfigManager

    check = "server extension"
    manager = ExtensionConfigManager(read_config_path=jupyter_config_path())
    enabled = dict(manager.get_jpserver_extensions())  # type: ignore[no-untyped-call]
    enabled |= config.ServerApp.get("jpserver_extensions", {})
    if not enabled.get(EXTENSION, False):
        return problem(
            check,
            "The server extension is disabled."
            if EXTENSION in enabled
            else "Jupyter Server does not know the extension.",
            f"Run `jupyter server extension enable {EXTENSION}`, then restart the server.",
        )
    try:
        import_module(f"{EXTENSION}.app")
    except Exception as error:  # whatever an import raises
        return problem(
            check,
            f"The server extension cannot be loaded: {type(error).__name__}: {error}",
            f"Run `pip install --force-reinstall {PROJECT}` in this environment.",
        )
    return ok(check, "The server extension is enabled and can be loaded.")


def lab_extension() -> Finding:
    """Check that JupyterLab finds the extension, in this package's version."""
    check = "lab extension"
    why = _unmet(LAB)
    if why is not None:
        return warning(
            check,
            f"There is no panel in JupyterLab: it needs {why}.",
            f"Run `pip install '{LAB}'`. Agents work without it.",
        )
    folders = [Path(each) / PROJECT for each in jupyter_path("labextensions")]
    found = [folder for folder in folders if (folder / "package.json").is_file()]
    if not found:
        return problem(
            check,
            "JupyterLab does not find the extension, so it has no panel.",
            f"Run `pip install --force-reinstall {PROJECT}` in the environment of JupyterLab.",
        )
    first = found[0]  # JupyterLab loads this one
    try:
        built = str(json.loads((first / "package.json").read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        built = "of no version"
    if built != __version__:
        return problem(
            check,
            f"JupyterLab loads another version of the extension: {built} in {first}, while the "
            f"server's is {__version__}.",
            f"Delete that folder, then run `pip install --force-reinstall {PROJECT}`.",
        )
    if disabling := _disabling():
        return problem(
            check,
            f"The lab extension is disabled in {disabling}.",
            f"Run `jupyter labextension enable {PROJECT}`, then reload the page.",
        )
    return ok(check, f"JupyterLab {version('jupyterlab')} finds the extension.")


def _disabling() -> Path | None:
    """Return the file that disables the lab extension."""
    for folder in jupyter_config_path():
        file = Path(folder) / "labconfig" / "page_config.json"
        try:
            disabled = json.loads(file.read_text("utf-8"))["disabledExtensions"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if isinstance(disabled, list):
            disabled = dict.fromkeys(disabled, True)
        if disabled.get(PROJECT):
            return file
    return None


def kernelspecs(config: Config) -> Iterator[Finding]:
    """Check that there are kernels, and that their programs are there."""
    from jupyter_client.kernelspec import KernelSpecManager

    specs = KernelSpecManager(config=config).get_all_specs()
    if not specs:
        yield problem(
            "kernels",
            "There is no kernel.",
            "Run `pip install ipykernel`; `jupyter kernelspec list` then shows python3.",
        )
        return
    broken = False
    for name, spec in specs.items():
        program = str((spec["spec"].get("argv") or [""])[0])
        if shutil.which(program) is None:
            broken = True
            yield warning(
                "kernels",
                f"The kernel {name} cannot start: its program {program!r} is not there.",
                f"Install it again, or run `jupyter kernelspec remove {name}`.",
            )
    if not broken:
        yield ok("kernels", f"Kernels: {', '.join(sorted(specs))}.")


def history_folder(config: Config, named: str | None) -> Path:
    """Return the history's folder: the one that is named, or as configured."""
    configured = config.AgentExecApp.get("history_dir", None)
    return Path(named or configured or Path(jupyter_data_dir()) / "agent_exec")


def history(folder: Path) -> Finding:
    """Check that a history can be written to a folder. It is not created."""
    check = "history"
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(place).free
        later = [
            path for path in folder.glob("ledger-*") if path.stat().st_mtime > time.time() + 60
        ]
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return problem(
            check,
            f"The history {folder} cannot be written: {error.strerror}.",
            "Free space on its disk. Until then, agents cannot run code."
            if full
            else "Make the folder writable, or set AgentExecApp.history_dir to another one.",
        )
    if later:
        return problem(
            "clock",
            f"The clock of this machine is behind: {later[0]} was written later.",
            "Set the clock. Tokens expire and entries are dated by it.",
        )
    if free < ENOUGH_BYTES:
        return warning(
            check,
            f"The disk of the history {folder} has only {free // 1_000_000} MB free.",
            "Free space on it. When it is full, agents cannot run code.",
        )
    return ok(check, f"The history {folder} can be written.")


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


def _listed(items: list[str]) -> str:
    return ", ".join(items)
