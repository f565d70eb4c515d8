"""Jupyter servers with other MCP servers, each in its own environment."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import nbformat
from devtools import Page, open_page
from nbformat.v4 import new_code_cell, new_notebook

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".make" / "bench"
START_SECONDS = 120.0
POLL_SECONDS = 0.1

NOTEBOOK = "benchmark.ipynb"
CELL = "the-only-cell"

PACKAGES = {
    "jupyter-mcp-server": ("jupyter-mcp-server==2.2.4", "ipykernel", "matplotlib"),
    "jupyter-server-mcp": (
        "jupyter-server-mcp==0.4.1",
        "jupyter-ai-tools==0.7.0",
        "jupyterlab",
        "ipykernel",
        "matplotlib",
    ),
}
"""What is installed, by the name of the environment."""

THEIRS = {name: packages[0].replace("==", " ") for name, packages in PACKAGES.items()}
"""Their names with their versions, by the name of the environment."""

PAGE_TOOLS = (
    *(
        f"jupyter_ai_tools.toolkits.notebook:{name}"
        for name in (
            *("read_notebook", "read_notebook_cells", "read_cell"),
            *("add_cell", "insert_cell", "delete_cell", "edit_cell", "select_cell"),
            *("get_cell_id_from_index", "get_active_notebook", "get_active_cell_id"),
            "create_notebook",
        )
    ),
    *(
        f"jupyter_ai_tools.toolkits.jupyterlab:{name}"
        for name in ("open_file", "run_cell", "run_all_cells")
    ),
)
"""All tools of jupyter-ai-tools. JupyterLab's commands are registered by themselves."""


class McpServer(NamedTuple):
    """A server that runs, where its endpoint is, and a kernel on it."""

    endpoint: str
    token: str
    url: str
    kernel_id: str

    def restart(self) -> None:
        """Give it a fresh kernel."""
        _answered("POST", f"{self.url}/api/kernels/{self.kernel_id}/restart", self.token)


def python_of(name: str) -> Path:
    """Return the Python of an environment, which is made if need be."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        options = ("--disable-pip-version-check", "install", "--quiet")
        subprocess.run([python, "-m", "pip", *options, *PACKAGES[name]], check=True)
        (folder / "done").touch()
    return python


@contextmanager
def jupyter_mcp_server(folder: Path) -> Iterator[McpServer]:
    """Run jupyter-mcp-server as Jupyter's extension, with a kernel."""
    options = ["--JupyterMCPServerExtensionApp.jupyterlab=False"]
    with _jupyter("jupyter-mcp-server", "jupyter_server", folder, options) as (url, token):
        kernel = _answered("POST", f"{url}/api/kernels", token)
        yield McpServer(f"{url}/mcp", token, url, kernel["id"])


@contextmanager
def jupyter_server_mcp(folder: Path) -> Iterator[McpServer]:
    """Run jupyter-server-mcp, whose tools run cells in JupyterLab's page, which is open."""
    port = _free_port()
    tools = [f"--MCPExtensionApp.mcp_tools={tool}" for tool in PAGE_TOOLS]
    options = [f"--MCPExtensionApp.mcp_port={port}", *tools]
    root = folder / "root"
    root.mkdir(parents=True)
    cell = new_code_cell("1+1", id=CELL)
    nbformat.write(new_notebook(cells=[cell], metadata=_kernelspec()), root / NOTEBOOK)
    with (
        _jupyter("jupyter-server-mcp", "jupyterlab", folder, options) as (url, token),
        open_page(folder / "browser", "about:blank") as page,
    ):
        asked = {"path": NOTEBOOK, "type": "notebook", "name": "", "kernel": {"name": "python3"}}
        session = _answered("POST", f"{url}/api/sessions", token, asked)
        _open_notebook(page, url, token)
        yield McpServer(f"http://127.0.0.1:{port}/mcp", token, url, session["kernel"]["id"])


def _open_notebook(page: Page, url: str, token: str) -> None:
    page.go(
        f"{url}/lab/tree/{NOTEBOOK}?token={token}",
        "document.querySelector('.jp-Notebook-ExecutionIndicator[data-status=idle]')",
    )


@contextmanager
def _jupyter(name: str, module: str, folder: Path, options: list[str]) -> Iterator[tuple[str, str]]:
    """Run a Jupyter server of an environment; give its address and token."""
    root = folder / "root"
    root.mkdir(parents=True, exist_ok=True)
    token, port = secrets.token_hex(16), _free_port()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    log = folder / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [
                *(python_of(name), "-m", module),
                "--ServerApp.ip=127.0.0.1",
                f"--ServerApp.port={port}",
                "--ServerApp.port_retries=0",
                "--ServerApp.open_browser=False",
                "--ServerApp.allow_root=True",
                f"--ServerApp.root_dir={root}",
                f"--IdentityProvider.token={token}",
                *options,
            ],
            env=environ,
            cwd=root,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_it_answers(url, token, process, log)
        yield url, token
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_it_answers(
    url: str, token: str, process: subprocess.Popen[bytes], log: Path
) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            _answered("GET", f"{url}/api/status", token)
        except httpx2.TransportError:
            time.sleep(POLL_SECONDS)
        else:
            return
    lines = log.read_text(errors="replace").splitlines()
    raise SystemExit("\n".join(["A server did not start as it should:", *lines[-30:]]))


def _answered(verb: str, url: str, token: str, body: Any = None) -> Any:
    headers = {"Authorization": f"token {token}"}
    answer = httpx2.request(
        verb, url, headers=headers, json=body, timeout=START_SECONDS, trust_env=False
    )
    answer.raise_for_status()
    return answer.json()


def _kernelspec() -> dict[str, dict[str, str]]:
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"kernelspec": spec}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
