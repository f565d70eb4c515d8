"""The executor in a person's notebook."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from blocks import run, text
from jupyter_client.blocking.client import BlockingKernelClient

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.autogen02 import EmbeddedIPythonCodeExecutor, JupyterCodeExecutor
from jupyter_agent_exec.client import AgentExecClient
from jupyter_agent_exec.models import Execution
from tests.person import Person, person_at, runs
from tests.real_server import RealServer

NAMES = "sorted(name for name in globals() if name not in known)"
KNOW = "known = set(globals()) | {'known', '_i', '_ii', '_iii', '_'}; result = 'theirs'; code = 1"


class Desk(NamedTuple):
    person: Person
    kernel: BlockingKernelClient
    kernel_id: str


@pytest.fixture(scope="module")
def desk(server: RealServer) -> Iterator[Desk]:
    with person_at(server) as person:
        person.writes("sales.ipynb", "known = 1")
        kernel_id = person.opens("sales.ipynb")
        with person.at(kernel_id) as kernel:
            assert runs(kernel, KNOW) == "ok"
            yield Desk(person, kernel, kernel_id)


@pytest.fixture
def executor(server: RealServer, desk: Desk, tmp_path: Path) -> Iterator[JupyterCodeExecutor]:
    with JupyterCodeExecutor(
        target=Target(url=server.url, token=server.token, notebook="sales.ipynb"),
        output_dir=tmp_path,
    ) as opened:
        yield opened


def test_values_plots_and_exit_codes_reach_the_agent(executor: JupyterCodeExecutor) -> None:
    assert run(executor, "result").output == "'theirs'"
    failed = run(executor, "code / 0")
    assert (failed.exit_code, "ZeroDivisionError" in failed.output) == (1, True)
    plot = run(
        executor,
        "from IPython.display import display\ndisplay({'image/png': 'iVBORw=='}, raw=True)",
    )
    assert plot.exit_code == 0
    assert Path(plot.output_files[0]).read_bytes() == b"\x89PNG"


def test_no_variable_of_the_person_is_touched(executor: JupyterCodeExecutor, desk: Desk) -> None:
    before = text(executor, NAMES)
    assert text(executor, "added = 1", "result, code") == "('theirs', 1)"
    after = text(executor, NAMES)
    added = set(eval(after)) - set(eval(before))
    assert {name for name in added if not name.startswith("_")} == {"added"}
    assert runs(desk.kernel, "assert (result, code, added) == ('theirs', 1, 1); del added") == "ok"


def test_each_block_becomes_a_cell_of_the_notebook(
    executor: JupyterCodeExecutor, desk: Desk
) -> None:
    text(executor, "21 * 2")
    executor.stop()  # what is on its way to the file has arrived then
    cell = desk.person.reads("sales.ipynb").cells[-1]
    assert cell.source == "21 * 2"
    assert cell.outputs[0]["data"]["text/plain"] == "42"
    assert cell.metadata["agent_exec"]["agent"]["name"] == "autogen"


def test_restart_and_stop_leave_the_persons_kernel_alone(
    executor: JupyterCodeExecutor, desk: Desk
) -> None:
    executor.restart()
    assert text(executor, "result") == "'theirs'"
    executor.stop()
    assert runs(desk.kernel, "assert result == 'theirs'") == "ok"


def test_a_kernel_that_runs_can_be_named_instead(server: RealServer, desk: Desk) -> None:
    with EmbeddedIPythonCodeExecutor(
        target=Target(url=server.url, token=server.token, kernel_id=desk.kernel_id)
    ) as executor:
        assert text(executor, "result") == "'theirs'"


def test_an_agent_is_told_whose_kernel_it_is(executor: JupyterCodeExecutor) -> None:
    told = executor.user_capability.system_message_update
    assert "a person's notebook, 'sales.ipynb'" in told


def test_what_a_person_decides_is_told(executor: JupyterCodeExecutor, server: RealServer) -> None:
    with AgentExecClient(server.url, server.token) as client, ThreadPoolExecutor(1) as thread:
        client.set_policy(notebook="always")
        rejected = thread.submit(run, executor, "touched = 1")
        client.reject(asking(client, rejected).id, "not today")
        changed = thread.submit(run, executor, "1 + 1")
        asked = asking(client, changed)
        client.approve(asked.id, asked.source_sha256, source="1 + 2")
        client.set_policy(notebook="none")
        assert rejected.result().exit_code == 1
        assert "not today" in rejected.result().output
        assert changed.result().exit_code == 0
        assert changed.result().output == "A person changed the code before it ran:\n1 + 2\n3"


def asking(client: AgentExecClient, running: Future[Any]) -> Execution:
    """Wait until it asks for approval."""
    while not (asked := client.approvals().executions):
        assert not running.done()
    return asked[0]


def test_an_executor_in_a_cell_of_the_same_notebook_is_refused(
    server: RealServer, desk: Desk
) -> None:
    cell = f"""
from autogen.coding import CodeBlock
from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.autogen02 import EmbeddedIPythonCodeExecutor
from jupyter_agent_exec.errors import KernelWaitsForItself
target = Target(url={server.url!r}, token={server.token!r}, notebook='sales.ipynb')
try:
    with EmbeddedIPythonCodeExecutor(target=target) as executor:
        executor.execute_code_blocks([CodeBlock(code="1", language="python")])
except KernelWaitsForItself as error:
    refused = str(error)
assert "in an adapter's target too" in refused
"""
    assert runs(desk.kernel, cell) == "ok"
