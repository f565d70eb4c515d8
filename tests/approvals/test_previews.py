"""What a person sees of code before they decide: a trial of it, in a copy of their kernel."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.executions import previews
from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.kernels.kernel_queue import MOST_TRIALS
from jupyter_agent_exec.records import Approved, Dispatched, Entry, Rejected
from tests.approvals.person_deciding import approvals, approve, asks, reject, set_paused
from tests.asking import Agent
from tests.sessions.living_notebook import Desk, finished

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="trials need Linux")

ALWAYS = {"approval": {"notebook": "always", "kernel": "always"}}
HANGS = "if os.getpid() != kernel:\n    print('begun', flush=True)\n    while True: pass\n'ran'"


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return ALWAYS


async def opened(agent: Agent, desk: Desk) -> dict[str, Any]:
    """Open a session in a kernel in which a person has set a variable."""
    id = (await desk.opens())["kernel"]["id"]
    person = await desk.sits_at(id)
    await person.has_run("import os\nx, kernel = 1, os.getpid()")
    return await agent.open(target={"kind": "kernel", "kernel_id": id})


async def previewed(agent: Agent, execution: dict[str, Any]) -> dict[str, Any]:
    """Look until the trial has ended; the test's timeout is the bound."""
    while True:
        told = (await agent.get(f"executions/{execution['id']}/preview")).json
        if told["status"] != "pending":
            return dict(told)


def recorded(history_dir: Path, session: dict[str, Any], kind: type[Entry]) -> list[Any]:
    """Return the lines of a session's journal that have an entry of a kind."""
    journal = history_dir / "sessions" / session["id"] / "journal.jsonl"
    return [line for line in lines(journal) if isinstance(line.entry, kind)]


async def test_the_request_shows_what_the_code_would_print_change_and_be_refused(
    agent: Agent, desk: Desk, jp_root_dir: Path, history_dir: Path
) -> None:
    session = await opened(agent, desk)
    source = "x = 5\ny = x\nprint('hi')\ntry:\n    open('mark', 'w')\nexcept OSError: pass\nx + 1"
    asked = await asks(agent, session, source)
    told = await previewed(agent, asked)
    assert (told["status"], told["error"], told["reason"]) == ("ok", None, None)
    assert [output.get("text") or output["data"]["text/plain"] for output in told["outputs"]] == [
        "hi\n", "6",
    ]  # fmt: skip
    changed = {(each["change"], each["name"]) for each in told["changes"]["variables"]}
    assert changed == {("changed", "x"), ("added", "y")}
    assert told["seal"]["refused"] == [{"kind": "write", "what": "mark", "line": 5}]
    assert not (jp_root_dir / "mark").exists()
    assert (await approve(agent, asked)).status == 200
    done = await finished(agent, asked)
    assert (done["text"], (jp_root_dir / "mark").exists()) == ("hi\n6", True)
    (approved,) = recorded(history_dir, session, Approved)
    assert approved.entry.preview == done["approval"]["preview"]
    assert json.loads(approved.payloads[approved.entry.preview]) == told
    late = await agent.get(f"executions/{asked['id']}/preview")
    assert (late.status, late.json["code"]) == (409, "already_decided")

    edited = await asks(agent, session, "x = 6")
    await previewed(agent, edited)
    assert (await approve(agent, edited, source="x = 7")).status == 200
    done = await finished(agent, edited)
    assert (done["source"], done["approval"]["preview"]) == ("x = 7", None)  # that was not tried


async def test_a_trial_that_still_runs_delays_no_decision_and_is_not_recorded(
    agent: Agent, desk: Desk, history_dir: Path
) -> None:
    session = await opened(agent, desk)
    asked = await asks(agent, session, HANGS)
    assert (await approve(agent, asked)).status == 200
    done = await finished(agent, asked)
    assert (done["text"], done["approval"]["preview"]) == ("'ran'", None)
    children = (
        "def children(path=f'/proc/{kernel}/task/{kernel}/children'):\n"
        "    return open(path).read()\nwhile children(): pass\n'gone'"
    )
    again = await asks(agent, session, children)
    assert (await approve(agent, again)).status == 200
    assert (await finished(agent, again))["text"] == "'gone'"
    sent = [line.entry.execution_id for line in recorded(history_dir, session, Dispatched)]
    assert sent == [asked["id"], again["id"]]


async def test_a_trial_that_hangs_ends_by_its_time(
    agent: Agent, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await opened(agent, desk)
    monkeypatch.setattr(previews, "SECONDS", 3.0)
    asked = await asks(agent, session, HANGS)
    told = await previewed(agent, asked)
    assert (told["status"], told["outputs"][0]["text"]) == ("timed_out", "begun\n")
    assert "not as a trial" in told["reason"]
    await reject(agent, asked)


async def test_a_trial_that_has_ended_leaves_room_for_others(agent: Agent, desk: Desk) -> None:
    session = await opened(agent, desk)
    for _ in range(MOST_TRIALS + 1):
        asked = await asks(agent, session, "x")
        assert (await previewed(agent, asked))["status"] == "ok"
        await reject(agent, asked)


async def test_a_trial_waits_for_the_code_before_it_and_sees_what_that_did(
    agent: Agent, desk: Desk, history_dir: Path
) -> None:
    session = await opened(agent, desk)
    first, second = await asks(agent, session, "x = 7"), await asks(agent, session, "x")
    assert (await previewed(agent, first))["status"] == "ok"
    pending = (await agent.get(f"executions/{second['id']}/preview")).json
    assert pending["status"] == "pending"
    assert (await approve(agent, first)).status == 200
    told = await previewed(agent, second)
    assert told["outputs"][0]["data"]["text/plain"] == "7"
    assert (await reject(agent, second, "no")).status == 200
    (rejected,) = recorded(history_dir, session, Rejected)
    assert json.loads(rejected.payloads[rejected.entry.preview]) == told


async def test_output_is_inert_and_code_that_fails_says_how(agent: Agent, desk: Desk) -> None:
    session = await opened(agent, desk)
    source = "from IPython.display import HTML\ndisplay(HTML('<b onclick=x()>b</b>'))\n1 / 0"
    told = await previewed(agent, await asks(agent, session, source))
    assert (told["status"], told["error"]["ename"]) == ("error", "ZeroDivisionError")
    assert told["outputs"][0]["data"]["text/html"] == "<b>b</b>"


async def test_a_pause_holds_a_trial_back(agent: Agent, desk: Desk) -> None:
    session = await opened(agent, desk)
    await set_paused(agent, True)
    asked = await asks(agent, session, "x")
    assert (await agent.get(f"executions/{asked['id']}/preview")).json["status"] == "pending"
    await set_paused(agent, False)
    assert (await previewed(agent, asked))["status"] == "ok"


async def test_the_list_of_what_asks_does_not_tell_agents_what_a_trial_showed(
    agent: Agent, desk: Desk
) -> None:
    session = await opened(agent, desk)
    asked = await asks(agent, session, "print('secret', 'of the person')")
    await previewed(agent, asked)
    (listed,) = (await approvals(agent))["executions"]
    looked = (await agent.get(f"executions/{asked['id']}")).json
    assert "secret of the person" not in json.dumps([listed, looked])


@pytest.mark.parametrize("agent_exec_config", [{**ALWAYS, "previews": False}])
async def test_an_operator_can_switch_previews_off(agent: Agent, desk: Desk) -> None:
    session = await opened(agent, desk)
    asked = await asks(agent, session, "x")
    told = await previewed(agent, asked)
    assert (told["status"], told["outputs"]) == ("none", [])
    assert "switched off" in told["reason"]
    await reject(agent, asked)
    assert (await agent.run(session, "x", trial=True))["text"] == "1"
