"""What Pantheon's own gets wrong: crashes, clients, loops, and what is left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest
from calls import Run
from pantheon.toolset import ToolSet, tool
from pantheon.toolsets.python.python_interpreter import PythonInterpreterError

from jupyter_agent_exec.adapters.pantheon import PythonInterpreterToolSet


def test_a_crash_is_named_nothing_runs_twice_and_the_next_call_works(
    run: Run, client: dict[str, str], folder: Path
) -> None:
    run("kept = 1", context_variables=client)
    crashed = run("open('ran', 'a').write('x')\nos.kill(os.getpid(), 11)", context_variables=client)
    assert crashed["success"] is False
    assert crashed["interpreter_crashed"] is True
    assert "SIGSEGV" in crashed["stderr"]
    after = run("'kept' in dir()", context_variables=client)
    assert after["stdout"] == "False\n"
    assert after["interpreter_restarted"] is True
    assert "variables are gone" in after["restart_reason"]
    assert (folder / "ran").read_text() == "x"
    assert "interpreter_restarted" not in run("1", context_variables=client)


def test_a_crashed_interpreter_is_listed_as_failed_until_it_runs_again(
    toolset: PythonInterpreterToolSet,
) -> None:
    async def statuses() -> list[str]:
        listed = await toolset.manage_interpreters("list")
        return [each["status"] for each in listed["interpreters"] if each["id"] == id]

    async def work() -> list[list[str]]:
        nonlocal id
        id = (await toolset.new_interpreter())["interpreter_id"]
        told = [await statuses()]
        for code in ("x = 1", "import os; os._exit(3)", "x = 2"):
            await toolset.run_python_code(code, interpreter_id=id)
            told.append(await statuses())
        await toolset.delete_interpreter(id)
        return told

    id = ""
    assert asyncio.run(work()) == [["running"], ["running"], ["failed"], ["running"]]


def test_an_error_after_a_crash_says_that_the_variables_are_gone(
    run: Run, client: dict[str, str]
) -> None:
    run("kept = 1\nos._exit(3)", context_variables=client)
    with pytest.raises(PythonInterpreterError, match=r"(?s)variables are gone.*NameError"):
        run("kept", context_variables=client)


def test_a_loop_ends_with_its_timeout_and_the_variables_stay(folder: Path) -> None:
    async def loop() -> list[dict[str, Any]]:
        async with PythonInterpreterToolSet("python", str(folder), timeout=1) as toolset:
            await toolset.new_interpreter()
            return [
                await toolset.run_python_code(code)
                for code in ("kept = 1", "print('begun')\nwhile True: pass", "kept")
            ]

    _, looped, after = asyncio.run(loop())
    assert (looped["success"], looped["result"], looped["stdout"]) == (False, None, "begun\n")
    assert "timeout" in looped["stderr"].lower() or "timed out" in looped["stderr"].lower()
    assert after == {"success": True, "result": None, "stdout": "1\n", "stderr": ""}


def test_clients_and_chats_share_nothing(toolset: PythonInterpreterToolSet) -> None:
    contexts: list[dict[str, str]] = [
        {"client_id": "one", "chat_id": "chat 1"},
        {"client_id": "one", "chat_id": "chat 2"},
        {"client_id": "two"},
        {"client_id": "three"},
    ]

    async def talk() -> list[str]:
        async def call(code: str, context: dict[str, str]) -> str:
            answer = await toolset.run_python_code(code, context_variables=context)
            return str(answer["stdout"])

        await asyncio.gather(*(call(f"mine = {c!r}", c) for c in contexts))
        nobody = await toolset.run_python_code("'mine' in dir()")
        return [*(await asyncio.gather(*(call("mine", c) for c in contexts))), nobody["stdout"]]

    assert asyncio.run(talk()) == [*(f"{c}\n" for c in contexts), "False\n"]


def test_the_context_of_another_tools_call_does_not_name_the_client(
    toolset: PythonInterpreterToolSet,
) -> None:
    class Outer(ToolSet):
        @tool
        async def ask(self, code: str) -> dict[str, Any]:
            """Ask."""
            return dict(await toolset.run_python_code(code))

    async def talk() -> list[str]:
        outer = Outer("outer")
        asked = [
            await outer.ask("who = 'within'", context_variables={"client_id": "outer"}),
            await toolset.run_python_code(
                "'who' in dir()\nwho = 'x'", context_variables={"client_id": "x"}
            ),
            await toolset.run_python_code("'who' in dir()"),
            await outer.ask("who", context_variables={"client_id": "outer"}),
        ]
        return [answer["stdout"] for answer in asked]

    assert asyncio.run(talk()) == ["", "False\n", "False\n", "within\n"]


def test_a_client_cannot_use_the_interpreter_of_another(
    toolset: PythonInterpreterToolSet,
) -> None:
    async def talk() -> None:
        a, b = ({"context_variables": {"client_id": name}} for name in ("a", "b"))
        own = (await toolset.new_interpreter(**a))["interpreter_id"]
        all_s = (await toolset.new_interpreter())["interpreter_id"]
        listed = [
            {each["id"] for each in (await toolset.list_interpreters(**who))["interpreters"]}
            for who in (a, b, {})
        ]
        assert [own in ids for ids in listed] == [True, False, True]
        assert [all_s in ids for ids in listed] == [True, True, True]
        with pytest.raises(ValueError, match="not found"):
            await toolset.run_python_code("1", interpreter_id=own, **b)
        assert not (await toolset.delete_interpreter(own, **b))["success"]
        assert (await toolset.run_python_code("1", interpreter_id=all_s, **b))["success"]
        named_default = {"context_variables": {"client_id": "default"}}
        with pytest.raises(ValueError, match="not found"):
            await toolset.run_python_code("1", interpreter_id=own, **named_default)
        for each in (own, all_s):
            assert (await toolset.delete_interpreter(each))["success"]

    asyncio.run(talk())


def test_calls_at_once_of_a_new_client_share_its_interpreter(
    toolset: PythonInterpreterToolSet,
) -> None:
    async def talk() -> set[str]:
        context = {"client_id": "at once"}
        calls = [
            toolset.run_python_code(f"print({n})\nos.getpid()", context_variables=context)
            for n in range(4)
        ]
        outputs = [answer["stdout"].split() for answer in await asyncio.gather(*calls)]
        assert [n for n, _ in outputs] == ["0", "1", "2", "3"]
        return {pid for _, pid in outputs}

    assert len(asyncio.run(talk())) == 1


def test_deleting_an_interpreter_ends_its_process_and_what_runs_there(
    toolset: PythonInterpreterToolSet, client: dict[str, str], folder: Path
) -> None:
    async def delete() -> tuple[dict[str, Any], str]:
        own = (await toolset.new_interpreter())["interpreter_id"]
        code = "open('pid', 'w').write(str(os.getpid()))\nopen('at', 'w').close()\nwhile True: pass"
        call = asyncio.create_task(toolset.run_python_code(code, interpreter_id=own))
        while not (folder / "at").exists():
            await asyncio.sleep(0.01)
        await toolset.delete_interpreter(own)
        return await call, (folder / "pid").read_text()

    answer, pid = asyncio.run(delete())
    assert answer["success"] is False
    assert not psutil.pid_exists(int(pid))


def test_after_cleanup_the_next_call_starts_anew(
    toolset: PythonInterpreterToolSet, folder: Path
) -> None:
    async def use() -> str:
        await toolset.run_python_code("1")  # a user of the server, which goes on
        async with PythonInterpreterToolSet("python", str(folder)) as other:
            first = await other.run_python_code("own = 1\nos.getpid()")
            await other.cleanup()
            assert not psutil.pid_exists(int(first["stdout"]))
            second = await other.run_python_code("'own' in dir()\nos.getpid()")
        gone, pid = second["stdout"].split()
        assert not psutil.pid_exists(int(pid))
        return str(gone)

    assert asyncio.run(use()) == "False"
