"""Write a small history with what a later version must still read, and settings, into a zip file.

Run it once for each release, with the Python of an environment in which the released wheel is
installed, and keep what it writes. `test_upgrade.py` reads every such file:

    python -m venv /tmp/released
    /tmp/released/bin/pip install jupyter-agent-exec==VERSION
    /tmp/released/bin/python tests/upgrade/write_history.py VERSION

It imports only the package, and nothing of this repository. Do not write a file of a released
version again: it is worth something because an old version wrote it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from pathlib import Path

from jupyter_core.paths import jupyter_path

from jupyter_agent_exec import __version__
from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.own_server.launch import own_server

HERE = Path(__file__).parent
SHOWN = """
from base64 import b64decode
from IPython.display import HTML, Image, display

display(HTML("<table><tr><td>Mon</td><td>3</td></tr></table>"))
Image(b64decode("iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg=="))
"""
SOURCES = (
    "rain = [3, 0, 12]",
    SHOWN,
    "print('wet days:', sum(mm > 0 for mm in rain))\nsum(rains)",  # a mistake
    "print('x' * 300_000)",  # more than is kept in the cell
)


def main() -> None:
    """Write the file."""
    (version,) = sys.argv[1:]
    if version != __version__:
        sys.exit(f"This environment has version {__version__}.")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "root").mkdir()
        _work(folder / "root", folder / "history")
        settings = {"AgentExecApp": _settings()}
        (folder / "jupyter_server_config.json").write_text(json.dumps(settings, indent=2) + "\n")
        lab_settings = json.dumps(_lab_settings(), indent=2) + "\n"
        (folder / "lab_settings.json").write_text(lab_settings)
        with zipfile.ZipFile(HERE / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(folder))


def _work(root: Path, history: Path) -> None:
    """Do a bit of everything that leaves something in a history."""
    with own_server(root, history) as server, AgentExecClient(server.url, server.token) as person:
        person.set_policy(notebook="none", scratch="none", edits="propose")
        station = person.mint_token("weather station", ["exec:scratch", "files"])
        with (
            AgentExecClient(server.url, station.secret) as agent,
            agent.open_session("analyst", title="Rainfall", max_output_bytes=100_000) as session,
        ):
            ids = [session.run(source).id for source in SOURCES]
            session.upload(b"station,mm\na,3\n", "stations.csv")
        person.review(ids[1], "approved")
        person.review(ids[2], "flagged", comment="rains?")
        editor = person.mint_token("editor", ["exec:notebook", "edit:notebook", "read:notebook"])
        with (
            AgentExecClient(server.url, editor.secret) as agent,
            agent.open_session("writer", notebook="rain.ipynb", create=True) as session,
        ):
            session.run("total = 3 + 0 + 12\ntotal")
            session.edit([{"op": "insert", "cell_type": "markdown", "source": "# Rainfall"}])
            person.session(session.id).keep_edits()
        person.revoke_token(editor.token.id)
        person.set_policy(notebook="always", scratch="first", edits="apply")


def _settings() -> dict[str, object]:
    """Return settings of the server: those of simple types at their defaults, and some others."""
    simple = {
        name: trait.default_value
        for name, trait in AgentExecApp.class_traits(config=True).items()
        if trait.this_class.__module__.startswith("jupyter_agent_exec.")
        and isinstance(trait.default_value, (bool, int, float, str))
        and trait.default_value != ""
    }
    return simple | {
        "allowed_env": ["LANG"],
        "approval": {"notebook": "first", "edits": "propose"},
        "forced_approval": {"kernel": "always"},
    }


def _lab_settings() -> dict[str, object]:
    """Return all of a user's settings in JupyterLab, at their defaults, by plugin."""
    schemas = [
        path
        for folder in jupyter_path("labextensions")
        for path in Path(folder).glob("jupyter-agent-exec/schemas/jupyter-agent-exec/*.json")
    ]
    read = {path.stem: json.loads(path.read_text())["properties"] for path in schemas}
    return {
        plugin: {name: one["default"] for name, one in properties.items() if "default" in one}
        for plugin, properties in read.items()
    }


if __name__ == "__main__":
    main()
