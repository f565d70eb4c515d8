"""A kernel that is not Python's: what does not need Python works there, and the rest says so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from tornado.httpclient import HTTPResponse

from tests.approvals.person_deciding import approve, asks
from tests.asking import Agent
from tests.sessions.kernelspecs import install_kernel
from tests.sessions.living_notebook import finished


@pytest.fixture(autouse=True)
def bash_spec(jp_data_dir: Path) -> None:
    install_kernel(jp_data_dir, "bash", "-m", "bash_kernel", language="bash")


BASH = {"kind": "scratch", "kernel_name": "bash"}


async def entries(agent: Agent, session: dict[str, Any]) -> list[str]:
    journal = (await agent.get(f"sessions/{session['id']}/journal")).body
    return [json.loads(line)["entry"]["type"] for line in journal.splitlines()]


async def test_code_runs_fails_and_keeps_its_variables(agent: Agent) -> None:
    bash = await agent.open(target=BASH)
    first = await agent.run(bash, "mine=7\necho $mine")
    assert (first["status"], first["text"], first["changes"]) == ("ok", "7\n", None)
    again = await agent.run(bash, "echo $((mine * 6))")
    assert again["text"] == "42\n"
    failed = await agent.run(bash, "ls /no-such-place")
    assert failed["status"] == "error"
    assert failed["error"]["evalue"] != "0"
    assert "No such file" in failed["text"]


async def test_an_export_says_what_language_it_is(agent: Agent) -> None:
    bash = await agent.open(target=BASH)
    await agent.run(bash, "echo 1")
    exported = (await agent.get(f"sessions/{bash['id']}/notebook")).json
    nbformat.validate(exported)
    assert exported["metadata"]["language_info"]["name"] == "bash"
    assert exported["metadata"]["kernelspec"] == {
        "name": "bash",
        "display_name": "Bash",
        "language": "bash",
    }


async def test_what_runs_is_interrupted_and_the_kernel_goes_on(agent: Agent) -> None:
    bash = await agent.open(target=BASH)
    running = await agent.run(bash, "echo begun; sleep 1000", wait=0)
    while "begun" not in (await agent.get(f"executions/{running['id']}")).json["text"]:
        await asyncio.sleep(0.01)
    busy = await agent.ask("POST", f"sessions/{bash['id']}/complete", {"code": "ec"})
    assert (busy.status, busy.json["code"], busy.json["detail"]["seq"]) == (409, "kernel_busy", 1)
    assert busy.json["message"].endswith("runs; ask again when it has ended.")
    await agent.ask("POST", f"sessions/{bash['id']}/interrupt")
    assert (await finished(agent, running))["status"] == "interrupted"
    assert (await agent.run(bash, "echo on"))["text"] == "on\n"


async def test_a_timeout_and_a_restart_are_as_elsewhere(agent: Agent) -> None:
    bash = await agent.open(target=BASH)
    await agent.run(bash, "mine=7")
    late = await agent.run(bash, "sleep 1000", timeout=0.5)
    assert late["status"] == "timed_out"
    assert (await agent.ask("POST", f"sessions/{bash['id']}/restart")).status == 200
    fresh = await agent.run(bash, "echo [$mine]")
    assert (fresh["text"].splitlines()[0], fresh["kernel"]["restarted"]) == ("[]", True)


async def test_completion_and_documentation_are_the_kernels(agent: Agent) -> None:
    bash = await agent.open(target=BASH)
    await agent.run(bash, "quokka_one=1; quokka_two=2")
    told = await agent.ask("POST", f"sessions/{bash['id']}/complete", {"code": "echo $quokka_"})
    assert told.json == {
        "completions": [
            {"text": "$quokka_one", "type": None},
            {"text": "$quokka_two", "type": None},
        ],
        "cursor_start": 5,
        "cursor_end": 13,
        "more": 0,
        "static": False,
    }
    told = await agent.ask("POST", f"sessions/{bash['id']}/inspect", {"code": "echo"})
    assert told.json == {"found": False, "text": ""}
    assert (await entries(agent, bash)).count("accepted") == 1


async def test_what_needs_python_is_refused_before_anything_ran(agent: Agent) -> None:
    bash = await agent.open(target=BASH)
    refused = [
        await agent.get(f"sessions/{bash['id']}/variables"),
        await agent.get(f"sessions/{bash['id']}/packages"),
        await agent.ask(
            "POST",
            f"sessions/{bash['id']}/executions",
            {"source": "touch ran", "values": {"x": "1"}},
        ),
    ]
    told = [(each.status, each.json["code"], each.json["detail"]) for each in refused]
    detail = {"language": "bash", "kernel_name": "bash"}
    assert told == [
        (400, "language_not_supported", {"field": field, **detail})
        for field in ("variables", "packages", "values")
    ]
    assert "bash" in refused[0].json["message"]
    assert "accepted" not in await entries(agent, bash)
    assert (await agent.run(bash, "ls ran"))["status"] == "error"


@pytest.mark.parametrize("agent_exec_config", [{"approval": {"scratch": "always"}}])
async def test_code_waits_for_a_person(agent: Agent) -> None:
    session = await agent.open(target=BASH)
    execution = await asks(agent, session, "echo approved")
    completing = {"code": "$(touch${IFS}ran)"}
    refused = await agent.ask("POST", f"sessions/{session['id']}/complete", completing)
    assert (refused.status, refused.json["code"]) == (403, "approval_required")
    assert (await approve(agent, execution)).status == 200
    assert (await finished(agent, execution))["text"] == "approved\n"


async def test_outputs_are_streamed(agent: Agent, jp_fetch: Any, jp_base_url: str) -> None:
    bash = await agent.open(target=BASH)
    done = await agent.run(bash, "echo one; echo two")
    response: HTTPResponse = await jp_fetch("api", "agent-exec", "executions", done["id"], "stream")
    assert b"one" in response.body
    assert b"event: finished" in response.body


async def test_nothing_of_python_is_preloaded_there_and_no_session_opens(
    agent: Agent, jp_serverapp: Any
) -> None:
    module = {"kind": "module", "name": "json"}
    body = {"agent": {"name": "tester"}, "target": BASH, "preload": [module]}
    refused = await agent.ask("POST", "sessions", body)
    assert (refused.status, refused.json["code"]) == (400, "language_not_supported")
    assert refused.json["detail"] == {
        "field": "preload",
        "language": "bash",
        "kernel_name": "bash",
    }
    assert (await agent.get("sessions")).json["sessions"] == []
    assert jp_serverapp.kernel_manager.list_kernels() == []
