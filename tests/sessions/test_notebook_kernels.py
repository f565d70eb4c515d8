"""The Jupyter session of a notebook, looked for and started, and where its file goes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_agent_exec.executions.rules import Permit
from jupyter_agent_exec.kernels.kernel import KernelDeath
from jupyter_agent_exec.models import NotebookTarget
from jupyter_agent_exec.sessions.notebook_kernels import (
    AttachedNotebook,
    NotebookKernels,
)
from jupyter_agent_exec.sessions.server_documents import JupyterSession


class Server:
    """Jupyter sessions, contents, kernelspecs and pages of a test."""

    default_kernel_name = "python3"

    def __init__(self) -> None:
        self.sessions: list[JupyterSession] = []
        self.ended: list[str] = []
        self.opened_meanwhile: list[JupyterSession] = []

    async def of_notebook(self, path: str, *, beside: str | None = None) -> JupyterSession | None:
        found = [each for each in self.sessions if each.path == path and each.id != beside]
        return found[-1] if found else None

    async def get(self, id: str) -> JupyterSession | None:
        return next((each for each in self.sessions if each.id == id), None)

    async def start(self, path: str, kernel_name: str) -> JupyterSession:
        ours = JupyterSession("ours", path, "our kernel", connections=0)
        self.sessions += [*self.opened_meanwhile, ours]
        return ours

    async def end(self, id: str) -> None:
        self.ended.append(id)

    async def kind(self, path: str) -> str | None:
        return "notebook"

    async def kernel_name(self, path: str) -> str | None:
        return None

    async def create(self, path: str, kernel_name: str) -> None:
        raise AssertionError

    @property
    def kernel_spec_manager(self) -> Any:
        return self

    def get_kernel_spec(self, kernel_name: str) -> None:
        assert kernel_name == "python3"

    async def kernel_started(self, path: str) -> None:
        pass

    async def adopt(self, kernel_id: str) -> Any:
        return kernel_of(kernel_id)


def kernel_of(id: str) -> Any:
    """A kernel in which nobody has run anything."""
    activity = SimpleNamespace(has_executed=False)
    connection = SimpleNamespace(activity=activity)
    return SimpleNamespace(id=id, is_elsewhere=False, connection=connection)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def kernels(server: Server) -> NotebookKernels:
    return NotebookKernels(server, server, server, server, server.kernel_started)


async def attached_to(kernels: NotebookKernels, path: str) -> tuple[AttachedNotebook, list[Any]]:
    attached = await kernels.attach(NotebookTarget(path=path), Permit())
    moves: list[Any] = []
    attached.on_moved = lambda before, path: moves.append((before, path))
    return attached, moves


async def test_the_kernel_that_a_page_started_while_ours_did_is_taken_at_once(
    server: Server, kernels: NotebookKernels
) -> None:
    theirs = JupyterSession("theirs", "a.ipynb", "their kernel", connections=1)
    server.opened_meanwhile = [theirs]
    assert await kernels.session_of("a.ipynb", None, Permit()) == theirs
    assert server.ended == ["ours"]


async def test_a_kernel_of_ours_stays_where_nobody_started_another(
    server: Server, kernels: NotebookKernels
) -> None:
    server.opened_meanwhile = [JupyterSession("other", "b.ipynb", "k", connections=1)]
    assert (await kernels.session_of("a.ipynb", None, Permit())).id == "ours"
    assert server.ended == []


async def test_a_kernel_about_to_run_code_is_not_culled(
    server: Server, kernels: NotebookKernels
) -> None:
    ours = await kernels.session_of("a.ipynb", None, Permit())
    kernel = kernel_of(ours.kernel_id)
    assert await kernels.used(ours, kernel) == ours
    server.sessions.append(JupyterSession("theirs", "a.ipynb", "k", connections=1))
    assert await kernels.used(ours, kernel) == ours
    assert server.ended == []


async def test_a_notebook_parts_from_its_kernel_when_it_has_another(
    server: Server, kernels: NotebookKernels
) -> None:
    server.sessions = [JupyterSession("s", "a.ipynb", "k1", connections=1)]
    attached, moves = await attached_to(kernels, "a.ipynb")
    kernel = await attached.take()
    assert await attached.parted(kernel) is None
    shut_down = KernelDeath("shut_down", "A user shut the kernel down.")
    server.sessions = []
    assert await attached.parted(kernel) is None
    assert await attached.explain(kernel, shut_down) == shut_down
    server.sessions = [JupyterSession("s", "a.ipynb", "k2", connections=1)]
    parted = await attached.parted(kernel)
    assert parted is not None
    assert parted.reason == "changed"
    assert await attached.explain(kernel, shut_down) == parted
    died = KernelDeath("died", "Its code ended it.")
    assert await attached.explain(kernel, died) == died
    assert (await attached.take()).id == "k2"
    assert moves == []


async def test_a_notebook_goes_where_its_jupyter_session_went(
    server: Server, kernels: NotebookKernels
) -> None:
    server.sessions = [JupyterSession("s", "a.ipynb", "k", connections=1)]
    attached, moves = await attached_to(kernels, "a.ipynb")
    kernel = await attached.take()
    server.sessions = [JupyterSession("s", "RTC:b.ipynb", "k", connections=1)]
    assert await attached.parted(kernel) is None
    assert (attached.path, moves) == ("b.ipynb", [("a.ipynb", "b.ipynb")])


@pytest.mark.parametrize(
    ("before", "path", "now"),
    [
        ("x/y/a.ipynb", "b.ipynb", "b.ipynb"),
        ("x/y", "x/z", "x/z/a.ipynb"),
        ("x", "w", "w/y/a.ipynb"),
        ("x", "deeper/x", "deeper/x/y/a.ipynb"),
        ("x/y/a", "x/y/b", "x/y/a.ipynb"),
        ("y", "z", "x/y/a.ipynb"),
        ("x/y/a.ipynb.bak", "c", "x/y/a.ipynb"),
    ],
)
async def test_a_notebook_goes_where_it_or_a_folder_above_it_goes(
    kernels: NotebookKernels, before: str, path: str, now: str
) -> None:
    attached, moves = await attached_to(kernels, "x/y/a.ipynb")
    kernels.moved(before, path)
    assert attached.path == now
    assert moves == ([] if now == "x/y/a.ipynb" else [("x/y/a.ipynb", now)])
