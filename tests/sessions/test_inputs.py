"""Code that asks for input while it runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.asynchronous.client import AsyncKernelClient

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from tests.asking import Agent, Answered, Send
from tests.auth.minting import TokenAgent, mint
from tests.sessions.living_notebook import (
    Desk,
    entries,
    finished,
    notebook_target,
    until_it_waits_for,
)

ASKS_TWICE = "first = input('First? ')\nsecond = input('Second? ')\nfirst, second"
SECRET = "correct horse battery staple 17"


async def answer(agent: Agent, execution: dict[str, Any], value: str, **more: Any) -> Answered:
    return await agent.ask("POST", f"executions/{execution['id']}/input", {"value": value, **more})


async def asks(agent: Agent, session: dict[str, Any], source: str, **asked: Any) -> dict[str, Any]:
    """Run something that asks for input."""
    execution = await agent.run(session, source, wait=60, **asked)
    assert execution["status"] == "awaiting_input", execution
    return execution


async def test_an_execution_waits_for_input_and_goes_on_with_what_it_is_given(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    assert session["allow_stdin"]
    first = await asks(agent, session, ASKS_TWICE)
    assert (first["input"]["prompt"], first["input"]["password"]) == ("First? ", False)
    assert "waits for input: 'First? '" in first["text"]
    second = (await answer(agent, first, "Ada", wait=60)).json
    assert (second["status"], second["input"]["prompt"]) == ("awaiting_input", "Second? ")
    done = (await answer(agent, second, "Lovelace", wait=60)).json
    assert (done["status"], done["input"]) == ("ok", None)
    assert done["text"].strip() == "('Ada', 'Lovelace')"
    again = await asks(agent, session, ASKS_TWICE)
    assert again["input"]["prompt"] == "First? "


async def test_code_that_may_not_ask_fails_with_advice(
    agent: Agent,
) -> None:
    session = await agent.open()
    for source in ("input()", "import getpass; getpass.getpass()"):
        failed = await agent.run(session, source, wait=60)
        assert (failed["status"], failed["error"]["ename"]) == ("error", "StdinNotImplementedError")
        assert "open a session with allow_stdin" in failed["text"]
    assert (await answer(agent, failed, "x")).json["code"] == "input_not_asked"


async def test_a_wait_ends_when_something_is_asked_that_was_not_known(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    first = await asks(agent, session, ASKS_TWICE)
    at = first["input"]["asked_at"]
    waits = asyncio.ensure_future(agent.get(f"executions/{first['id']}", wait=60, asked_at=at))
    assert (await agent.get(f"executions/{first['id']}", wait=60)).json["input"] == first["input"]
    assert not waits.done()
    await answer(agent, first, "1")
    assert (await waits).json["input"]["prompt"] == "Second? "


async def test_only_the_first_of_two_answers_counts(
    agent: Agent,
) -> None:
    session = await agent.open(allow_stdin=True)
    first = await asks(agent, session, ASKS_TWICE)
    at = first["input"]["asked_at"]
    answers = await asyncio.gather(
        answer(agent, first, "one", asked_at=at), answer(agent, first, "two", asked_at=at)
    )
    assert sorted(each.status for each in answers) == [200, 409]
    late = next(each for each in answers if each.status == 409)
    assert late.json["code"] == "input_not_asked"
    taken = "one" if answers[0].status == 200 else "two"
    second = (await agent.get(f"executions/{first['id']}", wait=60)).json
    assert second["input"]["prompt"] == "Second? "
    stale = await answer(agent, second, "three", asked_at=at)
    assert (stale.status, stale.json["detail"]["field"]) == (409, "asked_at")
    done = (await answer(agent, second, "four", wait=60)).json
    assert done["text"].strip() == f"('{taken}', 'four')"
    assert (await answer(agent, done, "five")).json["detail"]["status"] == "ok"


async def test_what_is_asked_and_given_is_recorded_and_shown_between_the_cells(
    agent: Agent, history_dir: Path
) -> None:
    session = await agent.open(allow_stdin=True)
    first = await asks(agent, session, "input('Name? ')")
    await answer(agent, first, "Ada", wait=60)
    kinds = [entry["type"] for entry in await entries(agent, session)]
    assert kinds[-4:] == ["dispatched", "input_asked", "input_given", "finished"]
    events = (await agent.get(f"sessions/{session['id']}/events")).json["events"]
    told = [(e["type"], e["text"]) for e in events if e["type"].startswith("input")]
    assert told == [("input_asked", "Name?"), ("input_given", "Ada")]
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert verify_history(history_dir).outcome is Outcome.WHOLE


async def test_a_password_is_nowhere(
    agent: Agent, history_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = await agent.open(allow_stdin=True)
    source = "import getpass\nlen(getpass.getpass('Key: '))"
    first = await asks(agent, session, source)
    assert (first["input"]["prompt"], first["input"]["password"]) == ("Key: ", True)
    done = await answer(agent, first, SECRET, wait=60)
    assert done.json["text"].strip() == str(len(SECRET))
    given = [e for e in await entries(agent, session) if e["type"] == "input_given"]
    assert [entry["execution_id"] for entry in given] == [first["id"]]
    assert "value" not in given[0]
    stream = await agent.get(f"executions/{first['id']}/stream")
    events = await agent.get(f"sessions/{session['id']}/events")
    notebook = await agent.get(f"sessions/{session['id']}/notebook")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    for answered in (done, stream, events, notebook):
        assert SECRET.encode() not in answered.body
    assert SECRET not in caplog.text
    assert_nowhere(SECRET, history_dir)


def assert_nowhere(secret: str, folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 3
    for path in files:
        assert secret.encode() not in path.read_bytes(), path


async def test_a_prompt_is_cut_and_cleaned(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    execution = await asks(agent, session, "input('\\x1b[31mred' + 'x' * 1_000_000)")
    assert len(execution["input"]["prompt"]) == 2000
    assert "\x1b" not in execution["text"]


async def test_an_interrupt_ends_the_waiting(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    execution = await asks(agent, session, "try:\n    input()\nfinally:\n    print('cleaned')")
    await agent.ask("POST", f"sessions/{session['id']}/interrupt")
    done = await finished(agent, execution)
    assert (done["status"], done["input"]) == ("interrupted", None)
    assert "cleaned" in done["text"]
    assert (await agent.run(session, "1 + 1", wait=60))["status"] == "ok"


async def test_code_may_ask_again_after_an_interrupt(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    source = "try:\n    input('a')\nexcept KeyboardInterrupt:\n    got = input('b')\ngot"
    execution = await asks(agent, session, source)
    await agent.ask("POST", f"executions/{execution['id']}/cancel")
    again = (await agent.get(f"executions/{execution['id']}", wait=60)).json
    assert (again["status"], again["input"]["prompt"]) == ("awaiting_input", "b")
    await answer(agent, again, "x", wait=60)


async def test_time_counts_on_while_code_waits_for_input(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    execution = await asks(agent, session, "input()", timeout=5)
    done = await finished_for_good(agent, execution)
    assert (done["status"], done["input"]) == ("timed_out", None)


async def finished_for_good(agent: Agent, execution: dict[str, Any]) -> dict[str, Any]:
    at = execution["input"]["asked_at"]
    answered = await agent.get(f"executions/{execution['id']}", wait=60, asked_at=at)
    return dict(answered.json)


async def test_a_kernel_that_dies_while_code_waits_is_told(agent: Agent, jp_serverapp: Any) -> None:
    session = await agent.open(allow_stdin=True)
    execution = await asks(agent, session, "import os; print(os.getpid(), flush=True)\ninput()")
    manager = jp_serverapp.kernel_manager.get_kernel(session["kernel"]["id"])
    await manager.signal_kernel(9)
    done = await finished_for_good(agent, execution)
    assert (done["status"], done["input"]) == ("kernel_died", None)
    assert (await answer(agent, done, "x")).status == 409


async def test_a_session_can_be_closed_while_its_code_waits(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    execution = await asks(agent, session, "input()")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    done = (await agent.get(f"executions/{execution['id']}")).json
    assert (done["status"], done["input"]) == ("interrupted", None)


async def test_the_stream_tells_what_is_asked(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    execution = await asks(agent, session, "input('Name? ')")
    stream = asyncio.ensure_future(agent.get(f"executions/{execution['id']}/stream"))
    listed = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"]
    assert listed[-1]["input"] == execution["input"]
    await answer(agent, execution, "Ada")
    body = (await stream).body.decode()
    told = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ")]
    assert told[0]["status"] in ("awaiting_input", "running", "ok")
    assert told[-1]["status"] == "ok"


async def test_an_init_source_may_not_ask(agent: Agent) -> None:
    body = {"agent": {"name": "tester"}, "allow_stdin": True, "init_source": "input()"}
    answered = await agent.ask("POST", "sessions", body)
    assert (answered.status, answered.json["code"]) == (422, "init_failed")


async def input_request(kernel: AsyncKernelClient) -> dict[str, Any]:
    message: dict[str, Any] = await kernel.get_stdin_msg(timeout=60)
    return dict(message["content"])


async def test_in_a_persons_kernel_each_answers_what_their_own_code_asks(
    agent: Agent, desk: Desk
) -> None:
    opened = await desk.opens()
    person = (await desk.sits_at(opened["kernel"]["id"])).client
    assert person.stdin_channel  # which connects when it is first looked at
    await person.wait_for_ready(timeout=60)
    session = await agent.open(target=notebook_target(), allow_stdin=True)
    person.execute("mine = input('Person? ')", allow_stdin=True)
    assert (await input_request(person))["prompt"] == "Person? "
    queued = await agent.run(session, "theirs = input('Agent? ')", wait=0)
    await until_it_waits_for(agent, queued, "person")
    assert (await answer(agent, queued, "no")).json["code"] == "input_not_asked"
    person.input("from the person")
    execution = (await agent.get(f"executions/{queued['id']}", wait=60)).json
    assert (execution["status"], execution["input"]["prompt"]) == ("awaiting_input", "Agent? ")
    person.execute("both = mine, theirs", allow_stdin=True)
    assert not await person.stdin_channel.msg_ready()
    assert (await answer(agent, execution, "from the agent", wait=60)).json["status"] == "ok"
    told = await agent.run(session, "both", wait=60)
    assert told["text"].strip() == "('from the person', 'from the agent')"


async def test_each_new_connection_hears_what_is_asked_at_once(agent: Agent, desk: Desk) -> None:
    opened = await desk.opens()
    kernel_id = opened["kernel"]["id"]
    for _ in range(5):
        target = {"kind": "kernel", "kernel_id": kernel_id}
        session = await agent.open(target=target, allow_stdin=True)
        execution = await asks(agent, session, "input()")
        assert (await answer(agent, execution, "", wait=60)).json["status"] == "ok"
        await agent.ask("POST", f"sessions/{session['id']}/close")


WRONG_ANSWERS: list[dict[str, Any]] = [
    {},
    {"value": 1},
    {"value": "x" * 100_001},
    {"value": "", "a": 1},
]


async def test_a_wrong_answer_is_refused_and_leaves_the_question(agent: Agent) -> None:
    session = await agent.open(allow_stdin=True)
    execution = await asks(agent, session, "input()")
    for body in WRONG_ANSWERS:
        refused = await agent.ask("POST", f"executions/{execution['id']}/input", body)
        assert (refused.status, refused.json["code"]) == (400, "invalid_request"), body
    assert (await answer(agent, execution, "", wait=60)).json["status"] == "ok"
    unknown = await agent.ask("POST", "executions/x_0/input", {"value": ""})
    assert (unknown.status, unknown.json["code"]) == (404, "execution_not_found")


async def test_while_agents_are_paused_no_token_answers_what_code_asks(
    agent: Agent, ask: Send
) -> None:
    mine = TokenAgent(ask, (await mint(agent))[1])
    execution = await asks(mine, await mine.open(allow_stdin=True), "input()")
    await agent.ask("PUT", "approvals/pause", {"paused": True})
    refused = await answer(mine, execution, "1")
    assert (refused.status, refused.json["code"]) == (409, "agents_paused")
    await agent.ask("PUT", "approvals/pause", {"paused": False})
    assert (await answer(mine, execution, "1", wait=60)).json["status"] == "ok"
