"""A person at a real server: they have notebooks, open them, and run cells in their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import nbformat
from jupyter_client.blocking.client import BlockingKernelClient

from tests.real_server import RealServer


class Person:
    """Does what JupyterLab does for a person, over the server's own routes.

    Parameters
    ----------
    server
        Where they work.
    """

    def __init__(self, server: RealServer, http: httpx2.Client) -> None:
        self._server = server
        self._http = http

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask one of Jupyter's own routes."""
        answer = self._http.request(method, f"api/{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def writes(self, path: str, *sources: str) -> list[str]:
        """Save a notebook of code cells; return their ids."""
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        notebook = nbformat.v4.new_notebook(cells=cells, metadata={"person": "ada"})
        file = self._server.root_dir / path
        file.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, file)
        return [str(cell.id) for cell in cells]

    def reads(self, path: str) -> Any:
        """Return a notebook as it is saved, which is a valid one."""
        notebook = nbformat.read(self._server.root_dir / path, as_version=4)
        nbformat.validate(notebook)
        return notebook

    def opens(self, path: str) -> str:
        """Start a notebook's kernel, as opening it does; return the kernel's id."""
        session = self.ask(
            "POST",
            "sessions",
            {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}},
        )
        return str(session["kernel"]["id"])

    def renames(self, path: str, new_path: str) -> None:
        """Rename a notebook, as JupyterLab does with the sessions that it knows."""
        self.ask("PATCH", f"contents/{path}", {"path": new_path})
        for session in self.ask("GET", "sessions"):
            if session["path"] == path:
                self.ask("PATCH", f"sessions/{session['id']}", {"path": new_path})

    @contextmanager
    def at(self, kernel_id: str) -> Iterator[BlockingKernelClient]:
        """Talk to a kernel."""
        folder = Path(self._server.environ["JUPYTER_RUNTIME_DIR"])
        client = BlockingKernelClient(connection_file=str(folder / f"kernel-{kernel_id}.json"))
        client.load_connection_file()
        client.start_channels(hb=False)  # which takes a kernel that is slow for one that is dead
        try:
            client.wait_for_ready(60)
            yield client
        finally:
            client.stop_channels()


@contextmanager
def person_at(server: RealServer) -> Iterator[Person]:
    """Give a person at a server."""
    headers = {"Authorization": f"token {server.token}"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as http:
        yield Person(server, http)


def runs(kernel: BlockingKernelClient, source: str) -> str:
    """Run a person's cell to its end; return its status."""
    reply = kernel.execute_interactive(source, timeout=60, output_hook=lambda _: None)
    return str(reply["content"]["status"])
