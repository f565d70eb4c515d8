"""Notebooks that jupyter-server-documents keeps on a real server, without a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.real_server import PROJECT, real_server, until

PYTHON = PROJECT / ".make" / "server-documents" / "bin" / "python"
EXTENSIONS = ("jupyter_agent_exec", "jupyter_server_documents", "jupyter_server_fileid")

pytestmark = pytest.mark.nightly


class Sales:
    """A notebook with a kernel, and an agent session in it."""

    def __init__(self, root_dir: Path, http: httpx2.Client) -> None:
        self._file = root_dir / "sales.ipynb"
        self._http = http
        self.write("sales = 6")
        kernel = {"kernel": {"name": "python3"}}
        told = {"path": "sales.ipynb", "name": "sales.ipynb", "type": "notebook", **kernel}
        self._send("POST", "api/sessions", told)
        target = {"kind": "notebook", "path": "sales.ipynb"}
        asked = {"agent": {"name": "analyst"}, "target": target}
        self._session = self._send("POST", "api/agent-exec/sessions", asked)["id"]

    def write(self, *sources: str) -> None:
        """Write the file, as another program would."""
        cells = [new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(sources)]
        nbformat.write(new_notebook(cells=cells), self._file)

    def sources(self) -> list[str]:
        """Return the sources in the file; none while it is just being written."""
        if not (text := self._file.read_text()):
            return []
        return [cell.source for cell in nbformat.reads(text, as_version=4).cells]

    def read(self) -> Any:
        """Return the cells as an agent reads them, or why it cannot."""
        return self._http.get("api/agent-exec/notebooks/sales.ipynb/cells").json()

    def append(self, source: str) -> Any:
        """Have the agent add a cell at the end; return how the notebook was reached."""
        edits = [{"op": "insert", "cell_type": "code", "source": source}]
        asked = {"session_id": self._session, "edits": edits}
        return self._send("PATCH", "api/agent-exec/notebooks/sales.ipynb/cells", asked)["via"]

    def run(self, source: str) -> Any:
        """Have the agent run code in a cell at the end."""
        asked = {"source": source, "wait": 60}
        return self._send("POST", f"api/agent-exec/sessions/{self._session}/executions", asked)

    def document(self, execution: Any) -> Any:
        """Return what became of an execution's cell."""

        def told() -> Any:
            return self._send("GET", f"api/agent-exec/executions/{execution['id']}")["document"]

        until(lambda: told()["status"] != "writing")
        return told()

    def _send(self, method: str, route: str, content: Any = None) -> Any:
        answer = self._http.request(method, route, json=content)
        assert answer.is_success, answer.text
        return answer.json()


@contextmanager
def served(folder: Path, options: Sequence[str] = ()) -> Iterator[Sales]:
    if not PYTHON.exists():
        pytest.skip("there is no jupyter-server-documents: make .make/server-documents/done")
    with (
        real_server(folder, *options, python=str(PYTHON), extensions=EXTENSIONS) as server,
        httpx2.Client(
            base_url=server.url.partition("?")[0],
            headers={"Authorization": f"token {server.token}"},
            trust_env=False,
            timeout=90,
        ) as http,
    ):
        yield Sales(server.root_dir, http)


def test_what_others_write_to_the_file_and_what_an_agent_does_are_both_kept(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as sales:
        document = sales.document(sales.run("sales * 7"))
        assert (document["status"], document["via"]) == ("written", "collaboration")
        until(lambda: sales.sources() == ["sales = 6", "sales * 7"])
        for n in range(5):
            sales.write("sales = 6", f"other = {n}")
            assert sales.append(f"sales * {n}") == "collaboration"
            until(lambda n=n: sales.sources() == ["sales = 6", f"other = {n}", f"sales * {n}"])


def test_outputs_that_are_kept_elsewhere_are_refused_with_a_reason(tmp_path: Path) -> None:
    with served(tmp_path, ["--OutputProcessor.use_outputs_service=True"]) as sales:
        done = sales.run("sales * 7")
        document = sales.document(done)
        assert (done["status"], document["status"]) == ("error", "not_written")
        for refused in (document["reason"], sales.read()["message"]):
            assert "OutputProcessor.use_outputs_service has to be off" in refused
        assert sales.sources() == ["sales = 6"]
