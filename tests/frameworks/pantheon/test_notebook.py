"""The tool set in a person's notebook, on a server that somebody runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.pantheon import PythonInterpreterToolSet
from tests.person import person_at, runs
from tests.real_server import RealServer, real_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def kernel(server: RealServer) -> Iterator[BlockingKernelClient]:
    """The person's, of ``sales.ipynb``."""
    with person_at(server) as person:
        person.writes("sales.ipynb", "theirs = 1")
        with person.at(person.opens("sales.ipynb")) as kernel:
            assert runs(kernel, "theirs = 1") == "ok"
            yield kernel


def answered(server: RealServer, folder: Path, *codes: str, **where: str) -> list[dict[str, Any]]:
    async def run() -> list[dict[str, Any]]:
        async with PythonInterpreterToolSet(
            "python", str(folder), target=Target(url=server.url, token=server.token, **where)
        ) as toolset:
            return [await toolset.run_python_code(code) for code in codes]

    return asyncio.run(run())


def test_code_runs_in_the_persons_kernel_which_stays_as_it_is(
    server: RealServer, kernel: BlockingKernelClient, tmp_path: Path
) -> None:
    code = "from IPython.display import display\ndisplay({'image/png': 'iVBORw=='}, raw=True)"
    first, second, plot = answered(
        server, tmp_path, "1\ntheirs + 1\n'text'", "None", code, notebook="sales.ipynb"
    )
    assert first["stdout"] == "'text'\n"
    assert second["success"]
    assert (tmp_path / plot["fig_storage_path"]).read_bytes() == b"\x89PNG"
    assert runs(kernel, "assert theirs == 1 and 'plt' not in globals()") == "ok"
    cells = nbformat.read(server.root_dir / "sales.ipynb", as_version=4).cells
    assert [cell.source for cell in cells] == ["theirs = 1", "1\ntheirs + 1\n'text'", "None", code]


def test_a_named_server_has_interpreters_in_the_work_folder(
    server: RealServer, tmp_path: Path
) -> None:
    where, named = answered(server, tmp_path, "os.getcwd()", "'a'\nplt.__name__")
    assert where["stdout"] == f"{tmp_path}\n"
    assert named["stdout"] == "a\nmatplotlib.pyplot\n"
