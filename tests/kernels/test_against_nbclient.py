"""What we store is what nbclient would have stored for the same notebook.

Both run all sources in one real ipykernel each. Two things are not compared: where the kernel
happens to cut a stream into messages (nbclient keeps each as an output; here neighbours of one name
are merged on both sides), and what differs from one process to the next.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook, new_output

from jupyter_agent_exec.kernels.displays import Displays
from jupyter_agent_exec.kernels.outputs import Outputs
from jupyter_agent_exec.models import Omitted
from jupyter_agent_exec.types import ExecutionId, Output
from tests.kernels.notebook_sources import SOURCES

CAP = 100_000_000

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

Cell = tuple["int | None", list[Output]]


@pytest.fixture(scope="module")
def kernel_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels with no person's settings, and no history on disk."""
    home = tmp_path_factory.mktemp("home")
    settings = {"IPYTHONDIR": str(home / "ipython"), "MPLCONFIGDIR": str(home / "mpl")}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture(scope="module")
def theirs(kernel_environment: None) -> dict[str, Cell]:
    notebook = new_notebook(cells=[new_code_cell(source) for source in SOURCES.values()])
    NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=120).execute()
    cells = from_disk(notebook).cells
    return {
        name: (cell.execution_count, merged(cell.outputs))
        for name, cell in zip(SOURCES, cells, strict=True)
    }


@pytest.fixture(scope="module")
def ours(kernel_environment: None) -> dict[str, Cell]:
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        return run(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run(client: BlockingKernelClient) -> dict[str, Cell]:
    displays = Displays()
    counts: dict[str, int | None] = {}
    stored: dict[str, list[Output]] = {}
    for name, source in SOURCES.items():
        outputs = Outputs(ExecutionId(name), displays, max_output_bytes=CAP, sink=None)
        msg_id = client.execute(source, stop_on_error=False, allow_stdin=False)
        for msg_type, content in messages(client, msg_id):
            outputs.feed(msg_type, content)
        reply = reply_to(client, msg_id)
        assert outputs.omitted == Omitted(), name
        counts[name] = reply["content"]["execution_count"]
        stored[name] = outputs.outputs
        for update in outputs.take_display_updates():
            for target in update.targets:
                shown = stored[target.execution_id][target.index]
                shown["data"] = update.output["data"]
                shown["metadata"] = update.output["metadata"]
    return {name: (counts[name], stored[name]) for name in SOURCES}


def messages(client: BlockingKernelClient, msg_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the kernel says about one request until it is idle."""
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != msg_id:
            continue
        yield message["msg_type"], message["content"]
        if message["content"].get("execution_state") == "idle":
            return


def reply_to(client: BlockingKernelClient, msg_id: str) -> dict[str, Any]:
    """Return the reply to one request; one to an earlier question may come before it."""
    while True:
        reply = client.get_shell_msg(timeout=60)
        if reply["parent_header"]["msg_id"] == msg_id:
            return reply


def from_disk(notebook: Any) -> Any:
    return nbformat.reads(nbformat.writes(nbformat.from_dict(notebook)), as_version=4)


def merged(outputs: list[Any]) -> list[Output]:
    """Merge neighbouring streams of one name."""
    result: list[Output] = []
    for output in outputs:
        last = result[-1] if result else {}
        if output["output_type"] == "stream" and output["name"] == last.get("name"):
            last["text"] += output["text"]
        else:
            result.append(dict(output))
    return result


def comparable(value: Any) -> Any:
    """Replace what is another in each process: addresses, and the names of temporary files."""
    if isinstance(value, str):
        value = re.sub(r"0x[0-9a-f]+", "0x", value)
        return re.sub(r"ipykernel_\d+", "ipykernel", value)
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    return value


def test_there_are_enough_sources() -> None:
    assert len(SOURCES) >= 60


@pytest.mark.parametrize("name", SOURCES)
def test_outputs_and_count_are_those_of_nbclient(
    name: str, ours: dict[str, Cell], theirs: dict[str, Cell]
) -> None:
    assert comparable(ours[name][1]) == comparable(theirs[name][1])
    assert ours[name][0] == theirs[name][0]


def test_the_stored_notebook_is_valid_and_comes_back_from_disk_as_it_was(
    ours: dict[str, Cell],
) -> None:
    notebook = new_notebook(
        cells=[
            new_code_cell(SOURCES[name], execution_count=count, outputs=outputs)
            for name, (count, outputs) in ours.items()
        ]
    )
    nbformat.validate(notebook)
    for cell, (_, outputs) in zip(from_disk(notebook).cells, ours.values(), strict=True):
        assert cell.outputs == outputs


def test_the_comparison_sees_a_difference() -> None:
    one = [new_output("stream", name="stdout", text="a\n")]
    other = [new_output("stream", name="stdout", text="b\n")]
    assert comparable(merged(one)) != comparable(merged(other))
