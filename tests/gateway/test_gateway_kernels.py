"""Agents on a server that has its kernels at a real gateway."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.gateway.gateways import (
    UNLIMITED,
    Gateway,
    Person,
    ended,
    enterprise_gateway,
    kernel_gateway,
    server_at,
)
from tests.server_process import ServerProcess

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class There(NamedTuple):
    gateway: Gateway
    server: ServerProcess
    has_subshells: bool
    """Whether its kernels answer beside running code: Enterprise Gateway's ipykernel is older."""


@pytest.fixture(
    scope="module",
    params=["kernel gateway", pytest.param("enterprise gateway", marks=pytest.mark.nightly)],
)
def there(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[There]:
    """A gateway that drops nothing, and a server that uses it.

    Enterprise Gateway speaks the legacy framing of messages.
    """
    far, near = (tmp_path_factory.mktemp(name) for name in ("far", "near"))
    is_enterprise = request.param == "enterprise gateway"
    with (
        enterprise_gateway(far) if is_enterprise else kernel_gateway(far, *UNLIMITED) as gateway,
        server_at(gateway.url, near) as server,
    ):
        write_notebook(near / "root" / "shared.ipynb")
        yield There(gateway, server, has_subshells=not is_enterprise)


def write_notebook(path: Path) -> None:
    kernelspec = {"name": "python3", "display_name": "Python 3"}
    notebook = {"cells": [], "metadata": {"kernelspec": kernelspec}}
    path.write_text(json.dumps({**notebook, "nbformat": 4, "nbformat_minor": 5}))


@pytest.fixture(scope="module")
def scratch(there: There) -> str:
    return there.server.open(target={"kind": "scratch"})


def ran(there: There, session: str, source: str, **asked: Any) -> dict[str, Any]:
    answered = there.server.run(session, source, **{"wait": 60, **asked})
    assert answered.status_code == 201, answered.text
    return dict(answered.json())


def kernel_of(there: There, session: str) -> str:
    return str(there.server.get(f"sessions/{session}")["kernel"]["id"])


def test_code_runs_and_its_outputs_are_complete(there: There, scratch: str) -> None:
    done = ran(there, scratch, "print('printed')\n6 * 7", values={"seven": "7"})
    assert (done["status"], done["outputs_complete"]) == ("ok", True)
    assert done["text"] == "printed\n42"
    assert done["values"]["seven"]["json"] == 7
    failed = ran(there, scratch, "1 / 0")
    assert (failed["status"], failed["error"]["ename"]) == ("error", "ZeroDivisionError")


def test_ten_thousand_flushed_lines_are_complete(there: There, scratch: str) -> None:
    done = ran(there, scratch, "for i in range(10_000): print(i, flush=True)")
    assert (done["status"], done["reason"], done["outputs_complete"]) == ("ok", None, True)
    (output,) = done["cell"]["outputs"]
    assert "".join(output["text"]).split() == [str(i) for i in range(10_000)]


@pytest.mark.nightly
@pytest.mark.timeout(900)  # a gateway carries few messages a second on a busy machine
def test_a_hundred_thousand_flushed_lines_are_complete(there: There) -> None:
    if not there.has_subshells:
        pytest.skip("one gateway is enough: the lines come the same way from the other")
    session = there.server.open(target={"kind": "scratch"})
    source = "for i in range(100_000): print(i, flush=True)"
    execution = there.server.run(session, source, wait=0).json()["id"]
    done = ended(there.server, execution)
    assert (done["status"], done["reason"], done["outputs_complete"]) == ("ok", None, True)
    (output,) = done["cell"]["outputs"]
    assert "".join(output["text"]).split() == [str(i) for i in range(100_000)]
    there.server.ask("POST", f"sessions/{session}/close")


def test_an_image_arrives_whole(there: There, scratch: str) -> None:
    show = "from IPython.display import Image, display\ndisplay(Image(data=bytes.fromhex({!r})))"
    done = ran(there, scratch, show.format(PNG.hex()))
    (output,) = done["cell"]["outputs"]
    assert base64.b64decode("".join(output["data"]["image/png"])) == PNG


def test_input_is_asked_for_and_given(there: There) -> None:
    session = there.server.open(target={"kind": "scratch"}, allow_stdin=True)
    asked = there.server.run(session, "input('Who? ')", wait=60).json()
    assert asked["status"] == "awaiting_input"
    given = there.server.ask("POST", f"executions/{asked['id']}/input", {"value": "Ada"})
    assert given.is_success, given.text
    done = there.server.get(f"executions/{asked['id']}?wait=60")
    assert (done["status"], done["text"]) == ("ok", "'Ada'")
    there.server.ask("POST", f"sessions/{session}/close")


def test_a_timeout_interrupts_the_code_and_keeps_the_kernel(there: There, scratch: str) -> None:
    ran(there, scratch, "kept = 1")
    stopped = ran(there, scratch, "import time\ntime.sleep(600)", timeout=1)
    assert stopped["status"] == "timed_out"
    assert ran(there, scratch, "kept")["text"] == "1"


def test_variables_are_listed_beside_running_code(there: There, scratch: str) -> None:
    ran(there, scratch, "listed = 5")
    running = there.server.run(scratch, "import time\ntime.sleep(600)", wait=0.5).json()["id"]
    answered = there.server.ask("GET", f"sessions/{scratch}/variables")
    if there.has_subshells:
        assert "listed" in {each["name"] for each in answered.json()["variables"]}
    else:
        assert answered.json()["code"] == "kernel_busy"
    there.server.ask("POST", f"executions/{running}/cancel")
    assert there.server.get(f"executions/{running}?wait=60")["status"] == "interrupted"


def test_a_kernel_that_dies_is_told_and_replaced(there: There) -> None:
    session = there.server.open(target={"kind": "scratch"})
    kernel = kernel_of(there, session)
    died = ran(there, session, "import os\nprint('last', flush=True)\nos._exit(3)")
    assert died["status"] == "kernel_died"
    assert "gateway" in died["reason"]
    after = ran(there, session, "1 + 1")
    assert (after["status"], after["kernel"]["reason"]) == ("ok", "died")
    there.server.ask("POST", f"sessions/{session}/close")
    while kernel in {each["id"] for each in there.gateway.kernels()}:
        pass  # the gateway has started it again, and refuses to end it meanwhile


def test_a_restart_gives_a_fresh_kernel(there: There) -> None:
    session = there.server.open(target={"kind": "scratch"})
    ran(there, session, "before = 1")
    assert there.server.ask("POST", f"sessions/{session}/restart").is_success
    after = ran(there, session, "before")
    assert (after["error"]["ename"], after["kernel"]["incarnation"]) == ("NameError", 2)
    there.server.ask("POST", f"sessions/{session}/close")


def test_a_closed_session_leaves_no_kernel_at_the_gateway(there: There) -> None:
    session = there.server.open(target={"kind": "scratch"})
    kernel = kernel_of(there, session)
    assert kernel in {each["id"] for each in there.gateway.kernels()}
    assert there.server.ask("POST", f"sessions/{session}/close").is_success
    assert kernel not in {each["id"] for each in there.gateway.kernels()}


def test_an_agent_waits_for_a_persons_cell_and_shares_its_variables(there: There) -> None:
    session = there.server.open(target={"kind": "notebook", "path": "shared.ipynb"})
    ran(there, session, "from_agent = 1")
    kernel = kernel_of(there, session)
    with Person(there.gateway.url, kernel) as person:
        cell = person.begins(
            "import time\nwhile not from_agent: time.sleep(0.01)\ntime.sleep(2)\nmine = 2"
        )
        waiting = there.server.run(session, "from_agent + mine", wait=60)
        done = waiting.json()
        person.until("execute_reply", cell)
    assert (done["status"], done["text"]) == ("ok", "3")
    there.server.ask("POST", f"sessions/{session}/close")
    assert kernel in {each["id"] for each in there.gateway.kernels()}, "a person's kernel stays"


def test_an_approval_lets_an_agent_run_more_in_a_kernel_there(there: There) -> None:
    there.server.ask("PUT", "approvals/policy", {"notebook": "first"})
    try:
        session = there.server.open(target={"kind": "notebook", "path": "shared.ipynb"})
        asks = there.server.run(session, "approved = 1", wait=0).json()
        assert asks["status"] == "awaiting_approval"
        decision = {"source_sha256": asks["source_sha256"]}
        there.server.ask("POST", f"executions/{asks['id']}/approve", decision)
        assert there.server.get(f"executions/{asks['id']}?wait=60")["status"] == "ok"
        assert ran(there, session, "print(approved)")["text"] == "1\n"
    finally:
        there.server.ask("PUT", "approvals/policy", {"notebook": "none"})


def test_a_persons_restart_is_told_as_one(there: There) -> None:
    session = there.server.open(target={"kind": "notebook", "path": "shared.ipynb"})
    kernel = kernel_of(there, session)
    running = there.server.run(session, "import time\ntime.sleep(600)", wait=1).json()
    assert running["status"] == "running"
    assert there.server.ask("POST", f"../kernels/{kernel}/restart").is_success
    ended = there.server.get(f"executions/{running['id']}?wait=60")
    assert ended["status"] == "interrupted"
    after = ran(there, session, "1 + 1")
    assert (after["text"].splitlines()[0], after["kernel"]["reason"]) == ("2", "restarted")
    there.server.ask("POST", f"sessions/{session}/close")


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"isolated": True}, 501, "isolation_unavailable"),
        ({"own_folder": True}, 400, "invalid_request"),
        ({"kernel_name": "absent"}, 400, "kernel_name_not_found"),
    ],
)
def test_what_a_gateway_cannot_do_is_refused(
    there: There, asked: dict[str, Any], status: int, code: str
) -> None:
    body = {"agent": {"name": "tester"}, "target": {"kind": "scratch", **asked}}
    refused = there.server.ask("POST", "sessions", body)
    assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text


def test_files_of_a_kernel_elsewhere_are_not_listed(there: There, scratch: str) -> None:
    refused = there.server.ask("GET", f"sessions/{scratch}/files")
    assert refused.json()["code"] == "folder_unknown"
    assert "on another machine" in refused.json()["message"]


def test_the_folder_is_passed_on_as_jupyter_does(there: There) -> None:
    (Path(there.server.folder) / "root" / "work").mkdir()
    session = there.server.open(target={"kind": "scratch", "cwd": "work"})
    done = ran(there, session, "import os\nos.environ['KERNEL_WORKING_DIR']")
    assert done["text"].strip("'").endswith("/root/work")
    there.server.ask("POST", f"sessions/{session}/close")


def test_what_people_run_there_is_recorded_while_an_agent_is_attached(
    there: There, tmp_path: Path
) -> None:
    with server_at(there.gateway.url, tmp_path, "--AgentExecApp.record_people=outputs") as server:
        kernel = server.ask("POST", "../kernels", {"name": "python3"}).json()["id"]
        with Person(there.gateway.url, kernel) as person:
            assert person.has_run("print('before')") == "ok"
            session = server.open(target={"kind": "kernel", "kernel_id": kernel})
            # The gateway's WebSocket takes a moment to open.
            while server.get(f"sessions/{session}")["kernel"]["execution_state"] == "starting":
                pass
            assert person.has_run("print('a')") == "ok"
            assert person.has_run("1 / 0  # 'b'") == "error"
        while len(ran := people_in(server, session)) < 2:
            pass
        server.ask("DELETE", f"../kernels/{kernel}")
    assert [(e["source_text"], e["by"]["username"], e["status"]) for e in ran] == [
        ("print('a')", "ada", "ok"),
        ("1 / 0  # 'b'", "ada", "error"),
    ]


def people_in(server: ServerProcess, session: str) -> list[dict[str, Any]]:
    """Return what the record of a session has of people's code."""
    told = server.get(f"sessions/{session}/notebook")["metadata"]["agent_exec"]["events"]
    return [event for event in told if event["type"] == "person_ran"]
