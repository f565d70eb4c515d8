"""The interpreter that awaits, with a kernel for each session id."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lagent.schema import ActionReturn, ActionStatusCode
from test_action import text

from jupyter_agent_exec.adapters.lagent import AsyncIPythonInterpreter

PID = "import os\nprint(os.getpid())"


def runs(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists()


def used(use: Callable[[AsyncIPythonInterpreter], Awaitable[None]], **options: int) -> None:
    async def all_of_it() -> None:
        async with AsyncIPythonInterpreter(60, work_dir="images", **options) as interpreter:
            await use(interpreter)

    asyncio.run(all_of_it())


def test_each_session_has_variables_of_its_own(folder: Path) -> None:
    async def use(interpreter: AsyncIPythonInterpreter) -> None:
        await asyncio.gather(
            interpreter.run("x = 'one'", session_id=1), interpreter.run("x = 'two'", session_id=2)
        )
        one, two = await asyncio.gather(
            interpreter.run("x", session_id="1"), interpreter.run("x", session_id="2")
        )
        assert (text(one), text(two)) == ("'one'", "'two'")
        nobodys = await interpreter.run("x")
        assert "NameError" in (nobodys.errmsg or "")

        await interpreter.reset(1)
        await interpreter.reset("nobody's")
        assert text(await interpreter.run("'x' in dir()", session_id=1)) == "False"
        assert text(await interpreter.run("x", session_id=2)) == "'two'"

    used(use)


def test_it_is_called_as_an_action(folder: Path) -> None:
    async def use(interpreter: AsyncIPythonInterpreter) -> None:
        assert interpreter.name == "AsyncIPythonInterpreter"
        answer = await interpreter({"command": "print(1)", "session_id": 5})
        assert answer == ActionReturn(
            args={"text": "print(1)"},
            type="AsyncIPythonInterpreter",
            result=[{"type": "text", "content": "1\n"}],
        )
        failed = await interpreter('{"command": "print(1)\\n1 / 0"}')
        assert failed.state == ActionStatusCode.API_ERROR
        assert (failed.errmsg or "").startswith("1\n")
        for wrong in ("print(1)", "5", '{"session_id": 5}'):
            assert (await interpreter(wrong)).state == ActionStatusCode.ARGS_ERROR
        assert (await interpreter("{}", "close")).errmsg == "invalid API: close"

    used(use)


def test_cancelling_the_task_stops_the_code(folder: Path) -> None:
    async def use(interpreter: AsyncIPythonInterpreter) -> None:
        os.mkfifo(started := folder / "started")
        source = f"kept = 1\nopen({str(started)!r}, 'w').close()\nwhile True: pass"
        task = asyncio.create_task(interpreter.run(source))
        await asyncio.to_thread(started.read_text)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert text(await interpreter.run("kept")) == "1"

    used(use)


def test_a_session_waits_until_there_is_room_for_its_kernel(folder: Path) -> None:
    async def use(interpreter: AsyncIPythonInterpreter) -> None:
        first = text(await interpreter.run(PID, session_id=1)).strip()
        given_up, second = (asyncio.create_task(interpreter.run(PID, session_id=n)) for n in (3, 2))
        assert text(await interpreter.run("'still here'", session_id=1)) == "'still here'"
        assert not second.done()
        given_up.cancel()
        await interpreter.close_session(1)
        assert not runs(first)
        assert text(await second).strip() != first
        await interpreter.close_session(2)
        await interpreter.close_session(2)
        assert text(await interpreter.run("1", session_id=1)) == "1"

    used(use, max_kernels=1)


def test_it_serves_one_loop_after_the_other_and_none_is_left(folder: Path) -> None:
    interpreter = AsyncIPythonInterpreter(60, work_dir="images")
    pids = [text(asyncio.run(interpreter.run(PID, session_id=n))).strip() for n in (1, 2, 1)]
    assert pids[0] == pids[2] != pids[1]
    asyncio.run(interpreter.close())
    assert not any(map(runs, pids))


@pytest.mark.parametrize("most", [0, -1])
def test_no_room_at_all_is_refused(tmp_path: Path, most: int) -> None:
    with pytest.raises(ValueError, match="max_kernels: at least 1"):
        AsyncIPythonInterpreter(work_dir=str(tmp_path / "images"), max_kernels=most)
    assert list(tmp_path.iterdir()) == []
