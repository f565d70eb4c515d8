"""JupyterLab servers, and pages of a real browser that have a notebook open."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output
from servers import Server, server

from jupyter_agent_exec.client import AgentExecClient, Result

OPEN_SECONDS = 120.0
POLL_SECONDS = 0.1
COLLABORATION = ("@jupyter/collaboration-extension", "@jupyter/docprovider-extension")


@contextmanager
def lab_server(
    folder: Path, *, collaboration: bool, options: Sequence[str] = ()
) -> Iterator[Server]:
    """Run a server with JupyterLab, whose root is ``folder / "root"``.

    Parameters
    ----------
    folder
        For the root, settings and workspaces.
    collaboration
        Whether notebooks are live documents.
    options
        More of the command line.
    """
    settings = folder / "settings"
    settings.mkdir(parents=True)
    disabled = [] if collaboration else list(COLLABORATION)
    (settings / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}))
    extensions = {
        "jupyterlab": True,
        "jupyter_server_fileid": collaboration,
        "jupyter_server_ydoc": collaboration,
    }
    options = [
        *options,
        f"--LabApp.app_settings_dir={settings}",
        f"--LabApp.user_settings_dir={folder / 'user'}",
        f"--LabApp.workspaces_dir={folder / 'workspaces'}",
    ]
    if collaboration:
        options += [
            f"--BaseFileIdManager.db_path={folder / 'file_ids.db'}",
            f"--SQLiteYStore.db_path={folder / 'updates.db'}",
        ]
    with server(folder, *options, extensions=extensions) as running:
        yield running


def make_notebook(path: Path, cells: int) -> None:
    """Write a notebook with as many code cells, each with a line of output."""
    notebook = new_notebook(  # type: ignore[no-untyped-call]
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        cells=[
            new_code_cell(  # type: ignore[no-untyped-call]
                f"total = sum(range({n}))\nprint(total)",
                execution_count=n + 1,
                outputs=[new_output("stream", text=f"{sum(range(n))}\n")],  # type: ignore[no-untyped-call]
            )
            for n in range(cells)
        ],
    )
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


@contextmanager
def page(folder: Path, running: Server, path: str) -> Iterator[None]:
    """Have a notebook open in a page of JupyterLab of its own, in a browser without a window."""
    name = path.partition(".")[0]
    url = f"{running.url}/lab/workspaces/{name}/tree/{path}?token={running.token}"
    with browser(folder / f"browser-{name}", url):
        with running.client() as client:
            _wait_until_open(client, path)
        yield


@contextmanager
def browser(profile: Path, url: str, *options: str) -> Iterator[None]:
    """Run a browser without a window on a page.

    Parameters
    ----------
    profile
        Folder for what it keeps.
    url
        The page.
    options
        More of the command line.
    """
    program = os.environ.get("CHROMIUM_PATH")
    if not program:
        raise SystemExit("An installed Chromium is needed: name it in CHROMIUM_PATH.")
    process = subprocess.Popen(
        [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={profile}",
            *options,
            url,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        # The program may be a script that waits for the browser.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _wait_until_open(client: AgentExecClient, path: str) -> None:
    """Wait until the server knows that a page shows a notebook."""
    deadline = time.monotonic() + OPEN_SECONDS
    while time.monotonic() < deadline:
        found = [known for known in client.notebooks() if known.path == path]
        if found and found[0].via != "contents":
            return
        time.sleep(POLL_SECONDS)
    raise SystemExit(f"No page showed {path} within {OPEN_SECONDS:g} seconds.")


def until_written(client: AgentExecClient, result: Result) -> None:
    """Wait until an execution's cell is in the document with all its outputs."""
    document = result.document
    while document is not None and document.status == "writing":
        time.sleep(POLL_SECONDS / 10)
        document = client.execution(result.execution.id).document
    if document is None or document.status != "written":
        raise SystemExit(f"The cell was not written: {document}")
