"""The state of a kernel that ended comes back: what made it runs again, once, in order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import nbformat
import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.lines import lines
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.records import ApprovalAsked
from tests.approvals.person_deciding import approve, asks, set_policy
from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, mint
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target


async def restored(agent: Agent, session: dict[str, Any], **asked: Any) -> dict[str, Any]:
    answered = await agent.ask("POST", f"sessions/{session['id']}/restore", {"wait": 60, **asked})
    assert answered.status in (200, 201, 202), answered.body
    assert answered.headers["Location"].endswith(answered.json["session_id"])
    told: dict[str, Any] = answered.json
    ran = [cell for cell in told["cells"] if cell["execution_id"]]
    assert answered.status == (202 if told["status"] == "running" else 201 if ran else 200)
    return told


async def ended(agent: Agent, *sources: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Open a session, run sources, and give it a fresh kernel."""
    session = await agent.open(target={"kind": "scratch", "own_folder": True})
    ran = [await agent.run(session, source) for source in sources]
    assert (await agent.ask("POST", f"sessions/{session['id']}/restart")).status == 200
    return session, ran


async def test_restored_code_runs_once_and_is_reported(agent: Agent, history_dir: Path) -> None:
    session, ran = await ended(
        agent,
        "import math\na = [1]",
        "a",
        "!echo made > made.txt",
        "%alias_magic --line t timeit",
        "a.append(2)",
        "import string\n1 / 0",
        "def twice(x):\n    return 2 * x",
        "b = twice(len(a))",
    )
    unknown = {"leave_out": ["x_0"]}  # a slip would let code run that must not
    refused = await agent.ask("POST", f"sessions/{session['id']}/restore", unknown)
    assert (refused.status, refused.json["detail"]) == (400, {"field": "leave_out"})
    plan = await restored(agent, session, dry_run=True)
    assert (plan["status"], plan["session_id"]) == ("planned", session["id"])
    told = {cell["seq"]: (cell["source"], cell["left_out"]) for cell in plan["cells"]}
    assert list(told) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert told[2] == ("a", None)
    assert told[7] == ("def twice(x): (+1 line)", None)

    left = ran[1]["id"]
    now = await restored(agent, session, leave_out=[left])
    assert now["status"] == "finished"
    again = [cell["execution_id"] for cell in now["cells"] if cell["execution_id"]]
    ended_as = [cell["status"] for cell in now["cells"] if cell["execution_id"]]
    assert ended_as == ["ok", "ok", "ok", "ok", "error", "ok", "ok"]
    executions = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"]
    links = {each["id"]: each["restores"] for each in executions if each["restores"]}
    assert links == dict(zip(again, [ran[n]["id"] for n in (0, 2, 3, 4, 5, 6, 7)], strict=True))

    after = await agent.run(session, "print(a, b, math.pi > 3, string.digits)")
    assert after["kernel"]["restarted"]
    assert after["restored"] is True
    assert "[1, 2] 4 True 0123456789" in after["text"]
    assert "Code of the earlier kernel ran again." in after["text"]
    assert (await agent.run(session, "b"))["restored"] is False

    once_more = await restored(agent, session, leave_out=[left])
    assert [cell["execution_id"] for cell in once_more["cells"]] == [None] * 8
    assert (await agent.run(session, "a"))["text"] == "[1, 2]"
    events = (await agent.get(f"sessions/{session['id']}/events")).json["events"]
    kinds = [each["type"] for each in events if each["type"].startswith("restore")]
    assert kinds == ["restore_begun", "restore_ended"]
    await agent.ask("POST", f"sessions/{session['id']}/close")
    report = await asyncio.to_thread(verify_history, history_dir, head=None, patience=5)
    assert report.outcome == Outcome.WHOLE, report.findings


async def test_a_failure_stops_and_the_rest_runs_when_it_is_asked_for_again(agent: Agent) -> None:
    session, ran = await ended(agent, "w = 0", "c = 3", "x = c + 1", "y = x + 1")
    stopped = await restored(agent, session, leave_out=[ran[1]["id"]])
    assert stopped["status"] == "stopped"
    assert [cell["status"] for cell in stopped["cells"]] == ["ok", None, "error", "cancelled"]
    more = await restored(agent, session)
    assert [cell["status"] for cell in more["cells"]] == [None, "ok", "ok", "ok"]
    assert (await agent.run(session, "w, y"))["text"].startswith("(0, 5)")


async def test_a_closed_session_is_restored_in_a_new_one_and_only_once(agent: Agent) -> None:
    session = await agent.open(init_source="first = 1", title="sums")
    await agent.run(session, "second = first + 1")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    told = await restored(agent, session)
    assert told["session_id"] != session["id"]
    assert [cell["status"] for cell in told["cells"]] == ["ok", "ok"]
    new = (await agent.get(f"sessions/{told['session_id']}")).json
    assert (new["title"], new["agent"]) == ("sums", session["agent"])
    told_next = (await agent.run(new, "second"))["text"]
    assert told_next == "2\n[Code of the earlier kernel ran again.]"
    again = await restored(agent, session)
    assert again["session_id"] == new["id"]
    assert [cell["left_out"] for cell in again["cells"]] == ["It ran again already."] * 2


async def test_one_approval_lists_and_covers_all_that_runs_and_nothing_else(
    agent: Agent, history_dir: Path
) -> None:
    session, ran = await ended(agent, "x = 1", "y = x + 1", "z = y + 1")
    await set_policy(agent, scratch="always")
    earlier = await asks(agent, session, "w = 0")
    assert (await approve(agent, earlier)).status == 200  # lets nothing else run
    assert (await agent.get(f"executions/{earlier['id']}", wait=30)).json["status"] == "ok"
    told = await restored(agent, session, wait=0)
    assert told["status"] == "running"
    listed = (await agent.get("approvals")).json["executions"]
    [asking] = listed
    assert asking["restores"] == ran[0]["id"]
    assert [each["source"] for each in asking["approval"]["also"]] == ["y = x + 1", "z = y + 1"]
    assert "the 2 behind it" in asking["text"]
    other = await agent.run(session, "x = 5", wait=0)
    assert (await approve(agent, asking)).status == 200
    ids = [cell["execution_id"] for cell in told["cells"]]
    done = [(await agent.get(f"executions/{id}", wait=30)).json for id in ids]
    assert [each["status"] for each in done] == ["ok"] * 3
    waits = (await agent.get(f"executions/{other['id']}")).json
    assert waits["status"] == "awaiting_approval"
    await agent.ask("POST", f"executions/{other['id']}/cancel")

    journal = history_dir / "sessions" / session["id"] / "journal.jsonl"
    asked = [e for line in lines(journal) if isinstance(e := line.entry, ApprovalAsked)]
    ids = tuple(cell["execution_id"] for cell in told["cells"])
    # Without their sources, which nobody could erase.
    assert [entry.also for entry in asked if entry.also] == [ids[1:]]


async def test_an_agent_may_not_run_code_again_in_a_persons_kernel(
    agent: Agent, ask: Send, jp_root_dir: Path
) -> None:
    nbformat.write(nbformat.v4.new_notebook(), jp_root_dir / "work.ipynb")
    token = TokenAgent(ask, (await mint(agent, "exec:notebook:*", approval="none"))[1])
    target = {"kind": "notebook", "path": "work.ipynb"}
    session = await token.open(target=target)
    await token.run(session, "x = 1")
    await token.ask("POST", f"sessions/{session['id']}/close")
    refused = await token.ask("POST", f"sessions/{session['id']}/restore")
    assert (refused.status, refused.json["code"]) == (409, "kernel_not_owned")
    cells = len(nbformat.read(jp_root_dir / "work.ipynb", 4).cells)
    told = await restored(agent, session)
    assert [cell["status"] for cell in told["cells"]] == ["ok"]
    assert len(nbformat.read(jp_root_dir / "work.ipynb", 4).cells) == cells


async def test_a_session_is_restored_where_its_notebook_is_and_with_its_limits(
    agent: Agent, desk: Desk
) -> None:
    opened = await desk.opens()
    session = await agent.open(
        target=notebook_target(create=True), limits={"timeout": 50}, allow_stdin=True
    )
    await agent.run(session, "x = 1")
    await desk.ask("PATCH", f"contents/{NOTEBOOK}", {"path": "moved.ipynb"})
    await desk.ask("PATCH", f"sessions/{opened['id']}", {"path": "moved.ipynb"})
    await agent.run(session, "x += 1")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    told = await restored(agent, session)
    new = (await agent.get(f"sessions/{told['session_id']}")).json
    assert (new["path"], new["limits"]["timeout"]) == ("moved.ipynb", 50)
    assert new["allow_stdin"] is True
    await agent.ask("POST", f"sessions/{new['id']}/close")
    (desk.root / "moved.ipynb").unlink()
    gone = await agent.ask("POST", f"sessions/{session['id']}/restore")
    assert (gone.status, gone.json["code"]) == (404, "notebook_not_found")
    assert not (desk.root / NOTEBOOK).exists()


@pytest.mark.parametrize("agent_exec_config", [{"max_queued": 2}])
async def test_a_session_with_more_cells_than_may_wait_is_restored(agent: Agent) -> None:
    session, _ = await ended(agent, "x = 1", "x += 1", "x += 1", "x += 1")
    told = await restored(agent, session)
    assert [cell["status"] for cell in told["cells"]] == ["ok"] * 4
    assert (await agent.run(session, "x"))["text"].startswith("4")
