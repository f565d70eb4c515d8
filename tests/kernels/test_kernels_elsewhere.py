"""Kernels that a provisioner starts on other machines: nothing but their channels is here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kernels.machines import other_address, over_ssh, processes
from tests.server_process import ServerProcess


class Far(NamedTuple):
    server: ServerProcess
    folder: Path
    closed: list[str]
    """Kernels of which nothing may be left."""


@pytest.fixture(scope="module", params=[over_ssh, other_address])
def far(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    folder = tmp_path_factory.mktemp("far")
    with request.param(folder) as server:
        far = Far(server, folder, [])
        yield far
        for kernel in far.closed:
            while processes(kernel):  # a launcher ends half a minute after its kernel
                time.sleep(0.1)


@pytest.fixture(scope="module")
def scratch(far: Far) -> str:
    return far.server.open(target={"kind": "scratch", "kernel_name": "far"})


@pytest.fixture
def notebook(far: Far) -> Iterator[str]:
    """A session in a user's notebook, whose kernel is elsewhere too."""
    target = {"kind": "notebook", "path": "far.ipynb", "create": True, "kernel_name": "far"}
    opened = far.server.open(target=target)
    yield opened
    close(far, opened)


def close(far: Far, session: str) -> None:
    assert far.server.ask("POST", f"sessions/{session}/close").is_success


def ran(far: Far, session: str, source: str, **asked: Any) -> dict[str, Any]:
    answered = far.server.run(session, source, **{"wait": 60, **asked})
    assert answered.status_code == 201, answered.text
    return dict(answered.json())


def kernel_of(far: Far, session: str) -> str:
    return str(far.server.get(f"sessions/{session}")["kernel"]["id"])


def begun(far: Far, session: str) -> str:
    """Begin code that runs until it is stopped; return its execution's id."""
    started = far.server.run(session, "print('begun', flush=True)\nwhile True: pass", wait=0)
    execution = str(started.json()["id"])
    with far.server.ask_stream(f"executions/{execution}/stream") as lines:
        next(line for line in lines if "begun" in line)
    return execution


# The first, so that the launchers end while the others run.
def test_a_restart_gives_a_fresh_kernel_and_a_close_leaves_none(far: Far) -> None:
    session = far.server.open(target={"kind": "scratch", "kernel_name": "far"})
    ran(far, session, "before = 1")
    far.closed.append(kernel_of(far, session))
    assert far.server.ask("POST", f"sessions/{session}/restart").is_success
    after = ran(far, session, "before")
    assert (after["error"]["ename"], after["kernel"]["incarnation"]) == ("NameError", 2)
    far.closed.append(kernel_of(far, session))
    assert processes(far.closed[1])
    close(far, session)


def test_all_output_of_a_scratch_kernel_arrives(far: Far, scratch: str) -> None:
    done = ran(far, scratch, "for i in range(10_000): print(i, flush=True)")
    assert (done["status"], done["outputs_complete"]) == ("ok", True)
    (output,) = done["cell"]["outputs"]
    assert "".join(output["text"]).split() == [str(i) for i in range(10_000)]


def test_a_timeout_interrupts_the_code_and_keeps_the_kernel(far: Far, scratch: str) -> None:
    ran(far, scratch, "kept = 1")
    assert ran(far, scratch, "while True: pass", timeout=1)["status"] == "timed_out"
    assert ran(far, scratch, "kept")["text"] == "1"


def test_variables_are_listed_beside_running_code(far: Far, scratch: str) -> None:
    ran(far, scratch, "listed = 5")
    running = begun(far, scratch)
    listed = far.server.get(f"sessions/{scratch}/variables")["variables"]
    assert "listed" in {each["name"] for each in listed}
    far.server.ask("POST", f"executions/{running}/cancel")
    assert far.server.get(f"executions/{running}?wait=50")["status"] == "interrupted"


def test_a_kernel_that_dies_is_told_without_an_exit_code_and_replaced(far: Far) -> None:
    session = far.server.open(target={"kind": "scratch", "kernel_name": "far"})
    died = ran(far, session, "import os\nos._exit(3)")
    assert died["status"] == "kernel_died"
    assert "exited with code" not in died["reason"], "a provisioner's code is not the kernel's"
    after = ran(far, session, "1 + 1")
    assert (after["status"], after["kernel"]["reason"]) == ("ok", "died")
    close(far, session)


def test_a_users_restart_of_a_notebooks_kernel_is_told_as_one(far: Far, notebook: str) -> None:
    assert ran(far, notebook, "6 * 7")["text"] == "42"
    running = begun(far, notebook)
    kernel = kernel_of(far, notebook)
    assert far.server.ask("POST", f"../kernels/{kernel}/restart").is_success
    assert far.server.get(f"executions/{running}?wait=50")["status"] == "interrupted"
    after = ran(far, notebook, "1 + 1")
    assert (after["text"].splitlines()[0], after["kernel"]["reason"]) == ("2", "restarted")


def test_a_notebooks_kernel_that_dies_is_told(far: Far, notebook: str) -> None:
    died = ran(far, notebook, "import os\nos._exit(3)")
    assert died["status"] == "kernel_died"
    assert ran(far, notebook, "1 + 1")["kernel"]["reason"] == "died"


@pytest.mark.parametrize("kind", ["scratch", "notebook", "kernel"])
def test_files_of_a_kernel_elsewhere_are_not_listed(far: Far, notebook: str, kind: str) -> None:
    target = {
        "scratch": {"kind": "scratch", "kernel_name": "far"},
        "notebook": {"kind": "notebook", "path": "far.ipynb"},
        "kernel": {"kind": "kernel", "kernel_id": kernel_of(far, notebook)},
    }[kind]
    session = far.server.open(target=target)
    refused = far.server.ask("GET", f"sessions/{session}/files").json()
    assert (refused["code"], "on another machine" in refused["message"]) == ("folder_unknown", True)


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"isolated": True}, 501, "isolation_unavailable"),
        ({"own_folder": True}, 400, "invalid_request"),
    ],
)
def test_what_a_kernel_elsewhere_cannot_have_is_refused(
    far: Far, asked: dict[str, Any], status: int, code: str
) -> None:
    target = {"kind": "scratch", "kernel_name": "far", **asked}
    refused = far.server.ask("POST", "sessions", {"agent": {"name": "tester"}, "target": target})
    assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text


@pytest.mark.parametrize("far", [other_address], indirect=True)
def test_a_kernel_whose_machine_is_gone_is_told_though_its_connection_stays(far: Far) -> None:
    session = far.server.open(target={"kind": "scratch", "kernel_name": "far"})
    running = begun(far, session)
    kernel = kernel_of(far, session)
    (process,) = processes(kernel)
    process.suspend()  # it does not answer, and its sockets stay open
    (far.folder / "lost" / kernel).touch()
    assert far.server.get(f"executions/{running}?wait=50")["status"] == "kernel_died"
    process.kill()
