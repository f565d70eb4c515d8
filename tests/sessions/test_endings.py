"""How executions end: each status says what happened."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.asking import Agent
from tests.real_server import Gate
from tests.sessions.kernelspecs import needs_ipykernel_7
from tests.sessions.living_notebook import entries, finished, until_it_prints

LOOP = "print('before', flush=True)\nwhile True: pass"
DEAF = """
import time
end = time.monotonic() + 3
print('deaf', flush=True)
while time.monotonic() < end:
    try:
        time.sleep(0.05)
    except KeyboardInterrupt:
        pass
print('done')
"""

HELD_BACK = """
import sys, threading
sys.stdout.flush_timeout = sys.stderr.flush_timeout = 0
get_ipython().kernel.iopub_thread.schedule(threading.Event().wait)
print("held back")
"""
"""Its reply comes, its output never."""


ONCE = """
try:
    print('before', flush=True)
    while True: pass
except KeyboardInterrupt:
    print('caught', flush=True)
while True: pass
"""
"""Code that catches one interrupt."""


async def test_code_that_raises_is_a_result_not_an_http_error(agent: Agent) -> None:
    session = await agent.open()
    failed = await agent.run(session, "print('so far')\n{}['x']")
    assert failed["status"] == "error"
    assert failed["error"]["ename"] == "KeyError"
    assert failed["error"]["evalue"] == "'x'"
    assert failed["text"].startswith("so far\n")
    assert "KeyError" in failed["text"]
    assert "\x1b" not in failed["text"]
    assert failed["outputs_complete"] is True


SHOWN = pytest.param(
    {
        "class A:\n    def __repr__(self): 1 / 0\nA()": ("ZeroDivisionError", "by zero"),
        "class A:\n    def _repr_html_(self): 1 / 0\nA()": ("ZeroDivisionError", "by zero"),
    },
    marks=needs_ipykernel_7,
)
RAISED = {
    "%nothing": ("UsageError", "UsageError: Line magic function `%nothing` not found."),
    "1 +": ("SyntaxError", "SyntaxError: invalid syntax"),
    "exec('1 +')": ("SyntaxError", "SyntaxError: invalid syntax"),
}


@pytest.mark.parametrize("errors", [SHOWN, RAISED], ids=["while a value is shown", "raised"])
async def test_an_error_has_its_name_and_is_shown_once(
    agent: Agent, errors: dict[str, tuple[str, str]]
) -> None:
    session = await agent.open()
    for source, (name, told) in errors.items():
        for trial in (False, True):
            failed = await agent.run(session, source, trial=trial)
            assert (failed["status"], failed["error"]["ename"]) == ("error", name), source
            assert failed["text"].count(told) == 1, source
            again = (await agent.get(f"executions/{failed['id']}")).json
            assert again["error"] == failed["error"]


async def test_what_only_a_reply_or_a_list_tells_is_in_the_text(
    agent: Agent, odd_kernel: str
) -> None:
    session = await agent.open(target={"kind": "scratch", "kernel_name": odd_kernel})
    failed = await agent.run(session, "fail")
    assert failed["text"] == "line 1\nOddError: why"
    assert failed["error"] == {"ename": "OddError", "evalue": "why", "traceback": ["line 1"]}
    assert (await agent.run(session, "list"))["text"] == "ab\n"
    nameless = await agent.run(session, "nameless")
    assert (nameless["status"], nameless["error"]) == ("error", None)
    assert nameless["text"] == "[The kernel reported an error, and did not say which.]"


async def test_text_about_an_interrupt_is_not_an_interrupt(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "raise KeyboardInterrupt('not picklable')")
    assert done["status"] == "error"


async def test_a_timeout_interrupts_and_keeps_what_was_printed(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1")
    done = await agent.run(session, LOOP, timeout=0.5)
    assert done["status"] == "timed_out"
    assert done["interrupt_ignored"] is False
    assert done["cell"]["outputs"][0]["text"] == "before\n"
    assert "timeout of 0.5 seconds" in done["reason"]
    assert (await agent.run(session, "x"))["text"].strip() == "1"


@pytest.mark.parametrize("agent_exec_config", [{"interrupt_grace": 0.3}])
async def test_code_that_ignores_its_interrupt_is_told_and_blocks_what_follows(
    agent: Agent,
) -> None:
    session = await agent.open()
    done = await agent.run(session, DEAF, timeout=0.3)
    assert done["status"] == "timed_out"
    assert done["interrupt_ignored"] is True
    assert "ignored the interrupt" in done["text"]
    after = await agent.run(session, "2")
    assert after["status"] == "ok"
    again = (await agent.get(f"executions/{done['id']}")).json
    assert again["status"] == "timed_out"
    assert [output["text"] for output in again["cell"]["outputs"]] == ["deaf\n", "done\n"]


@pytest.mark.parametrize("agent_exec_config", [{"interrupt_grace": 4}])
async def test_code_that_catches_one_interrupt_is_sent_another(agent: Agent) -> None:
    session = await agent.open()
    started = await agent.run(session, ONCE, wait=0)
    await until_it_prints(agent, started)
    await agent.ask("POST", f"executions/{started['id']}/cancel")
    done = await finished(agent, started)
    assert (done["status"], done["interrupt_ignored"]) == ("interrupted", False)
    assert done["cell"]["outputs"][0]["text"] == "before\ncaught\n"


@pytest.mark.parametrize("agent_exec_config", [{"interrupt_grace": 0.3}])
async def test_output_that_misses_the_timeout_is_unknown(agent: Agent, jp_serverapp: Any) -> None:
    session = await agent.open()
    done = await agent.run(session, HELD_BACK, timeout=1)
    assert (done["status"], done["interrupt_ignored"]) == ("ok", False)
    assert done["outputs_complete"] is False
    assert done["omitted"] == {"bytes": 0, "lines": 0, "outputs": 0, "unknown": True}
    assert "not known whether all of its output came" in done["reason"]
    kinds = [entry["type"] for entry in await entries(agent, session)]
    assert "interrupted" not in kinds
    # Else the session's end waits for an answer of this kernel, which holds all of them back.
    await jp_serverapp.kernel_manager.shutdown_kernel(done["kernel"]["id"], now=True)


@pytest.mark.parametrize("agent_exec_config", [{"interrupt_grace": 0.3}])
async def test_a_kernel_that_ignores_its_interrupt_is_replaced_if_the_limits_say_so(
    agent: Agent,
) -> None:
    session = await agent.open(limits={"restart_if_interrupt_ignored": True})
    done = await agent.run(session, DEAF.replace("+ 3", "+ 300"), timeout=0.3)
    assert done["status"] == "timed_out"
    assert done["interrupt_ignored"] is True
    after = await agent.run(session, "2")
    assert after["status"] == "ok"
    assert after["kernel"]["restarted"] is True
    assert after["kernel"]["reason"] == "interrupt_ignored"
    assert after["kernel"]["incarnation"] == 2


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import os; os._exit(3)", "exited with code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("exit()", "The code ended the kernel"),
    ],
)
async def test_a_dead_kernel_is_told_and_the_next_execution_gets_a_fresh_one(
    agent: Agent, source: str, told: str
) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1")
    died = await agent.run(session, source)
    assert died["status"] == "kernel_died"
    assert told in died["reason"]
    after = await agent.run(session, "'x' in globals()")
    assert after["status"] == "ok"
    assert after["kernel"]["restarted"] is True
    assert after["kernel"]["reason"] == "died"
    assert "earlier variables are gone" in after["text"]
    assert after["execution_count"] == 1
    assert after["cell"]["outputs"][0]["data"]["text/plain"] == "False"
    told_once = await agent.run(session, "1")
    assert told_once["kernel"]["restarted"] is False


async def test_sys_exit_ends_the_code_and_not_the_kernel(agent: Agent) -> None:
    session = await agent.open()
    ended = await agent.run(session, "import sys; sys.exit(2)")
    assert ended["status"] == "error"
    assert ended["error"]["ename"] == "SystemExit"
    assert (await agent.run(session, "1"))["kernel"]["restarted"] is False


async def test_an_interrupt_ends_what_runs_and_says_who(agent: Agent) -> None:
    session = await agent.open()
    started = await agent.run(session, LOOP, wait=0)
    assert started["status"] in ("queued", "running")
    await until_it_prints(agent, started)
    assert (await agent.ask("POST", f"sessions/{session['id']}/interrupt")).status == 200
    done = await finished(agent, started)
    assert done["status"] == "interrupted"
    assert done["reason"].startswith("Interrupted by the user.")


async def test_an_interrupt_with_nothing_running_changes_nothing(agent: Agent) -> None:
    session = await agent.open()
    assert (await agent.ask("POST", f"sessions/{session['id']}/interrupt")).status == 200
    assert (await agent.run(session, "1"))["status"] == "ok"


async def test_a_waiting_execution_can_be_cancelled_and_never_runs(agent: Agent) -> None:
    session = await agent.open()
    first = await agent.run(session, LOOP, wait=0)
    second = await agent.run(session, "ran = True", wait=0)
    assert second["status"] == "queued"
    cancelled = (await agent.ask("POST", f"executions/{second['id']}/cancel")).json
    assert cancelled["status"] == "cancelled"
    assert cancelled["started_at"] is None
    await until_it_prints(agent, first)
    stopped = (await agent.ask("POST", f"executions/{first['id']}/cancel")).json
    assert stopped["status"] == "interrupted"
    again = await agent.ask("POST", f"executions/{first['id']}/cancel")
    assert again.status == 409
    assert again.json["code"] == "already_finished"
    assert (await agent.run(session, "'ran' in globals()"))["text"].strip() == "False"


async def test_a_waiting_execution_times_out_without_the_kernel_noticing(agent: Agent) -> None:
    session = await agent.open()
    first = await agent.run(session, LOOP, wait=0)
    waited = await agent.run(session, "1", queue_timeout=0.2)
    assert waited["status"] == "timed_out"
    assert waited["started_at"] is None
    assert (await agent.get(f"executions/{first['id']}")).json["status"] == "running"


async def test_a_restart_gives_a_fresh_kernel_and_says_so(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1")
    looping = await agent.run(session, LOOP, wait=0)
    await until_it_prints(agent, looping)
    restarted = (await agent.ask("POST", f"sessions/{session['id']}/restart")).json
    assert restarted["kernel"]["incarnation"] == 2
    assert (await finished(agent, looping))["status"] == "interrupted"
    after = await agent.run(session, "'x' in globals()")
    assert (after["kernel"]["restarted"], after["kernel"]["reason"]) == (True, "restarted")


async def test_the_ends_of_what_waits_when_a_session_is_closed_are_few_writes(
    agent: Agent, gate: Gate
) -> None:
    session = await agent.open()
    await agent.run(session, gate.source, wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    steps = {"steps": [{"source": str(n)} for n in range(40)], "wait": 0}
    answered = await agent.ask("POST", f"sessions/{session['id']}/steps", steps)
    looks = [finished(agent, execution) for execution in answered.json["executions"]]
    ends = asyncio.gather(*looks)
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert {end["status"] for end in await ends} == {"cancelled"}
    # One head for each write. What ends during a write is in the next one: how many there are
    # depends on how fast the disk is.
    assert len({end["chain"]["head"] for end in await ends}) <= 8


async def test_how_long_it_ran_is_recorded_beside_the_wall_times(agent: Agent) -> None:
    session = await agent.open(title="duration")
    done = await agent.run(session, "sum(range(100_000))")
    journal = (await agent.get(f"sessions/{session['id']}/journal")).body
    entries = [json.loads(line)["entry"] for line in journal.splitlines()]
    (finished,) = [entry for entry in entries if entry["type"] == "finished"]
    assert 0 < finished["duration"] == done["duration"]
    await agent.ask("POST", f"sessions/{session['id']}/close", body={})
    assert (await agent.get(f"executions/{done['id']}")).json["duration"] == done["duration"]
