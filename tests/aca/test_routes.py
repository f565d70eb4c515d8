"""The protocol: code, files, and whose they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from tests.aca.dynamic_asking import DynamicSession
from tests.asking import Agent, Send
from tests.auth.minting import bearer, mint

SessionOf = Callable[..., DynamicSession]

PIXEL = (
    "import base64\nfrom IPython.display import Image, display\n"
    "png = Image(data=base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='))\n"
)


def is_gone(folder: str) -> bool:
    return not Path(folder).exists()


async def test_code_runs_in_the_session_of_its_identifier(session_of: SessionOf) -> None:
    one, other = session_of("one"), session_of("other")
    assert await one.run("x = 20\nprint('out')\nx + 1") == {
        "status": "Success",
        "stdout": "out\n",
        "stderr": "",
        "result": "21",
    }
    assert (await one.run("x"))["result"] == "20"
    assert "NameError" in (await other.run("x"))["stderr"]


async def test_a_session_is_an_agents_with_a_folder_of_its_own(
    session_of: SessionOf, agent: Agent, jp_root_dir: Path
) -> None:
    await session_of("a-b_c").run("open('mine.txt', 'w').write('')")
    (session,) = (await agent.get("sessions")).json["sessions"]
    assert session["client_id"] == "aca:a-b_c"
    assert session["target"]["kind"] == "scratch"
    assert session["target"]["own_folder"] is True
    assert session["limits"]["restart_if_interrupt_ignored"] is True
    assert not (jp_root_dir / "mine.txt").exists()


async def test_two_callers_with_one_identifier_share_nothing(
    session_of: SessionOf, agent: Agent
) -> None:
    sessions = [
        session_of("same", bearer((await mint(agent, "exec:scratch", "files"))[1])) for _ in "ab"
    ]
    sessions.append(session_of("same"))
    for number, session in enumerate(sessions):
        await session.run(f"x = {number}")
        assert (await session.upload(b"", f"{number}.txt")).status == 200
    for number, session in enumerate(sessions):
        assert (await session.run("x"))["result"] == str(number)
        assert await session.names() == [f"{number}.txt"]
        for other in {0, 1, 2} - {number}:
            assert (await session.read(f"{other}.txt")).status == 404


async def test_files_go_up_replace_are_listed_and_come_down(
    session_of: SessionOf,
) -> None:
    session = session_of()
    uploaded = await session.upload(b"first", "my%20data%C3%A4.csv")
    assert uploaded.status == 200
    (told,) = uploaded.json["value"]
    assert (told["properties"]["filename"], told["properties"]["size"]) == ("my dataä.csv", 5)
    assert (await session.list()).json == uploaded.json
    assert (await session.run("open('my dataä.csv').read()"))["result"] == "'first'"
    await session.run("open('my dataä.csv', 'w').write('by code'); import os; os.mkdir('below')")
    read = await session.read("my dataä.csv")
    assert read.body == b"by code"
    assert read.headers["Content-Disposition"].startswith("attachment")
    assert (await session.upload(b"second", "my dataä.csv")).status == 200
    assert (await session.read("my dataä.csv")).body == b"second"
    assert await session.names() == ["my dataä.csv"]


async def test_looking_opens_no_session(session_of: SessionOf, agent: Agent) -> None:
    session = session_of()
    assert await session.names() == []
    missing = await session.read("a.txt")
    assert (missing.status, missing.json["code"]) == (404, "file_not_found")
    assert (await agent.get("sessions")).json["sessions"] == []


async def test_all_files_are_listed_however_many(session_of: SessionOf) -> None:
    session = session_of()
    await session.run("for i in range(1001): open(f'{i:04}', 'w').close()")
    assert await session.names() == [f"{i:04}" for i in range(1001)]


@pytest.mark.parametrize(
    ("code", "where"),
    [(f"{PIXEL}display(png)\nprint('drawn')", "stdout"), (f"{PIXEL}png", "result")],
)
async def test_an_image_is_a_file_and_a_note(session_of: SessionOf, code: str, where: str) -> None:
    session = session_of()
    told = await session.run(code)
    (name,) = await session.names()
    assert told[where].startswith(f"[image {name}: 1\N{MULTIPLICATION SIGN}1 png, 70 bytes]")
    assert name.endswith("-1.png")
    image = await session.read(name)
    assert image.headers["Content-Type"] == "image/png"
    assert image.body.startswith(b"\x89PNG")
    assert "iVBOR" not in str(told)


async def test_without_files_an_image_is_where_the_history_has_it(
    session_of: SessionOf, agent: Agent, send: Send, jp_base_url: str
) -> None:
    shown = bearer((await mint(agent, "exec:scratch"))[1])
    session = session_of("one", shown)
    result = (await session.run(f"{PIXEL}png"))["result"]
    url = result.removeprefix("[image ").partition(": ")[0]
    assert url.startswith(f"{jp_base_url}api/agent-exec/blobs/")
    image = await send("GET", url.removeprefix(jp_base_url), headers=shown)
    assert image.body.startswith(b"\x89PNG")
    assert (await session.list()).status == 403


async def test_an_image_that_nobody_can_file_is_where_the_history_has_it(
    session_of: SessionOf, jp_base_url: str
) -> None:
    session = session_of()
    spoil = "import os, shutil\nfolder = os.getcwd(); os.chdir('/'); shutil.rmtree(folder)\n"
    told = await session.run(f"{PIXEL}{spoil}open(folder, 'w').close()\npng")
    assert told["status"] == "Success", told
    assert told["result"].startswith(f"[image {jp_base_url}api/agent-exec/blobs/")
    assert (await session.run("os.remove(folder)"))["status"] == "Success"


async def test_large_output_is_complete(session_of: SessionOf) -> None:
    told = await session_of().run("for i in range(100_000): print(i)\n'x' * 1_000_000")
    assert told["stdout"] == "".join(f"{i}\n" for i in range(100_000))
    assert told["result"] == repr("x" * 1_000_000)


async def test_what_may_be_large_is_made_and_encoded_beside_the_loop(
    session_of: SessionOf,
) -> None:
    on_loop: list[str] = []

    def note(frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            on_loop.append(frame.f_code.co_name)
        elif event == "c_call" and called is msgspec.json.encode:
            on_loop.append(type(frame.f_locals.get("model")).__name__)
        elif event == "c_call":
            on_loop.append(called.__name__)

    session = session_of()
    await session.run("1")
    sys.setprofile(note)
    try:
        told = await session.run(f"{PIXEL}print('x' * 100_000)\npng")
    finally:
        sys.setprofile(None)
    assert told["status"] == "Success"
    assert "_keep_images" in on_loop
    assert {"a2b_base64", "outcome", "images", "CodeExecuted"}.isdisjoint(on_loop)


@pytest.mark.parametrize("agent_exec_config", [{"max_output_bytes": 10_000}])
async def test_more_than_is_kept_is_said_to_be_missing(
    session_of: SessionOf, agent_exec_config: dict[str, Any]
) -> None:
    told = await session_of().run("for i in range(10_000): print(i)")
    assert told["status"] == "Success"
    assert len(told["stdout"]) < 11_000
    assert told["stdout"].startswith("0\n1\n")
    assert told["stdout"].endswith("\n9999\n")
    assert "left out" in told["stdout"]


async def test_a_timeout_is_a_sentence_and_the_state_survives(session_of: SessionOf) -> None:
    session = session_of()
    told = await session.run("x = 1\nprint('so far')\nwhile True: pass", timeoutInSeconds=0.5)
    assert (told["status"], told["stdout"]) == ("Failure", "so far\n")
    assert "KeyboardInterrupt" in told["stderr"]
    assert told["stderr"].endswith("\n[It was interrupted after its timeout of 0.5 seconds.]\n")
    assert (await session.run("x"))["result"] == "1"


async def test_a_dead_kernel_is_a_sentence_and_so_is_what_is_gone(session_of: SessionOf) -> None:
    session = session_of()
    await session.run("x = 1; open('kept.txt', 'w').write('kept')")
    died = await session.run("import os; os._exit(1)")
    assert died["status"] == "Failure"
    assert "kernel died" in died["stderr"]
    after = await session.run("open('kept.txt').read()")
    assert (after["status"], after["result"]) == ("Success", "'kept'")
    assert "earlier variables are gone" in after["stderr"]
    assert (await session.run("1"))["stderr"] == ""


async def test_a_session_that_was_closed_is_said_to_be_fresh(
    session_of: SessionOf, agent: Agent
) -> None:
    session = session_of()
    await session.run("x = 1")
    (opened,) = (await agent.get("sessions")).json["sessions"]
    await agent.ask("POST", f"sessions/{opened['id']}/close")
    assert await session.names() == []
    again = await session.run("'x' in globals()")
    assert again["result"] == "False"
    assert "earlier variables and files are gone" in again["stderr"]
    assert (await session.run("1"))["stderr"] == ""


async def test_what_the_client_sets_up_with_works(session_of: SessionOf) -> None:
    session = session_of()
    packages = "\nimport pkg_resources\n[d.project_name for d in pkg_resources.working_set]\n"
    told = await session.run(packages)
    assert (told["status"], told["stderr"]) == ("Success", "")
    assert ",\n 'ipykernel',\n" in told["result"]
    await session.run("import os; os.chdir('/')")
    await session.run("import os; os.chdir('/mnt/data')")
    await session.run("open('here.txt', 'w').close()")
    assert await session.names() == ["here.txt"]


@pytest.mark.parametrize("agent_exec_config", [{"aca_idle_timeout": 0.05}])
async def test_an_idle_session_is_closed_with_its_folder(
    session_of: SessionOf, agent: Agent, agent_exec_config: dict[str, Any]
) -> None:
    session = session_of()
    told = await session.run("import os, time; time.sleep(0.3); print(os.getcwd())")
    assert told["status"] == "Success"  # what runs is not idle
    (closed,) = (await agent.get("sessions")).json["sessions"]
    while closed["status"] != "closed":
        (closed,) = (await agent.get("sessions")).json["sessions"]
    assert closed["close_reason"] == "closed"
    assert is_gone(told["stdout"].strip())
