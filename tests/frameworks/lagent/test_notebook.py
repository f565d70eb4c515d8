"""The interpreter in a kernel of a person's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from test_action import text

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.lagent import IPythonInterpreter
from jupyter_agent_exec.errors import KernelNotOwned
from tests.person import Person, person_at, runs
from tests.real_server import RealServer

KNOW = """
import builtins, os
theirs = 1
folder = os.getcwd()
system = get_ipython().system
known = set(globals()) | {'known', '_', '__', '___', '_i', '_ii', '_iii', 'changed'}
def changed():
    new = {name for name in globals() if not name.startswith('_')} - known
    return new, input is builtins.input or 'input' in globals(), os.getcwd() == folder
"""


class Desk(NamedTuple):
    person: Person
    kernel: BlockingKernelClient
    kernel_id: str


@pytest.fixture(scope="module")
def desk(server: RealServer) -> Iterator[Desk]:
    with person_at(server) as person:
        person.writes("theirs.ipynb", "theirs = 1")
        kernel_id = person.opens("theirs.ipynb")
        with person.at(kernel_id) as kernel:
            assert runs(kernel, KNOW) == "ok"
            yield Desk(person, kernel, kernel_id)


def interpreter_at(server: RealServer, tmp_path: Path, **where: str) -> IPythonInterpreter:
    return IPythonInterpreter(
        user_data_dir="/somewhere/else",
        work_dir=str(tmp_path),
        target=Target(url=server.url, token=server.token, **where),
    )


def unchanged(interpreter: IPythonInterpreter) -> bool:
    before = "(set(), True, True)"
    own_system = "get_ipython().system == system"
    return [text(interpreter.run(each)) for each in ("changed()", own_system)] == [before, "True"]


def test_cells_go_into_the_notebook_and_nothing_else_changes(
    server: RealServer, desk: Desk, tmp_path: Path
) -> None:
    with interpreter_at(server, tmp_path, notebook="theirs.ipynb") as interpreter:
        assert text(interpreter.run("theirs + 1")) == "2"
        assert unchanged(interpreter)
        plot = interpreter.run(
            "from IPython.display import Image\nImage(data=b'GIF89a', format='gif')"
        )
        assert plot.result is not None
        assert Path(plot.result[1]["content"]).read_bytes() == b"GIF89a"
    sources = [cell.source for cell in desk.person.reads("theirs.ipynb").cells]
    assert sources[:2] == ["theirs = 1", "theirs + 1"]
    assert runs(desk.kernel, "assert theirs == 1; del Image") == "ok"


def test_a_kernel_by_its_id_is_left_as_it_is(
    server: RealServer, desk: Desk, tmp_path: Path
) -> None:
    with interpreter_at(server, tmp_path, kernel_id=desk.kernel_id) as interpreter:
        assert unchanged(interpreter)
    assert runs(desk.kernel, "theirs") == "ok"


def test_what_is_a_persons_is_not_reset(server: RealServer, desk: Desk, tmp_path: Path) -> None:
    with interpreter_at(server, tmp_path, notebook="theirs.ipynb") as interpreter:
        with pytest.raises(KernelNotOwned, match="it is not reset"):
            interpreter.reset()
        assert text(interpreter.run("theirs")) == "1"
