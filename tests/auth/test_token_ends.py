"""What a token's end, a rename and its caps do to what is on its way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent, Answered, Send
from tests.auth.minting import PAST, TokenAgent, change_kept, mint
from tests.real_server import Gate
from tests.sessions.living_notebook import (
    Desk,
    at_persons_cell,
    finished,
    notebook_target,
    until_status,
)


async def two_on_their_way(mine: TokenAgent, gate: Gate, **asked: Any) -> tuple[Any, Any, Any]:
    """Return a session, what runs in its kernel, and what waits."""
    session = await mine.open(**asked)
    runs = await mine.run(session, gate.source, wait=0, placement="none")
    await asyncio.to_thread(gate.wait_until_it_runs)
    waits = await mine.run(session, "1", wait=0, placement="none")
    return session, runs, waits


async def until_closed(agent: Agent, session: dict[str, Any]) -> dict[str, Any]:
    while (looked := (await agent.get(f"sessions/{session['id']}")).json)["status"] != "closed":
        pass
    return dict(looked)


def code(answered: Answered) -> tuple[int, str]:
    return answered.status, answered.json["code"]


async def test_a_revocation_ends_what_runs_and_what_waits_at_once(
    agent: Agent, ask: Send, gate: Gate
) -> None:
    id, token = await mint(agent)
    mine = TokenAgent(ask, token)
    session, runs, waits = await two_on_their_way(mine, gate)
    waiting = asyncio.create_task(mine.get(f"executions/{runs['id']}", wait=60))
    following = asyncio.create_task(mine.get(f"executions/{runs['id']}/stream"))
    await until_status(agent, runs, "running")
    await agent.ask("DELETE", f"tokens/{id}")
    assert code(await mine.execute(session, "2")) == (401, "unauthenticated")
    assert code(await waiting) == (401, "unauthenticated")
    with pytest.raises(Exception, match="closed"):
        await following
    ended = await finished(agent, runs)
    assert (ended["status"], ended["reason"]) == ("interrupted", "The agent's token was revoked.")
    taken_back = await finished(agent, waits)
    assert taken_back["status"] == "cancelled"
    assert "revoked" in taken_back["reason"]
    assert (await until_closed(agent, session))["close_reason"] == "token_revoked"


async def test_an_expiry_lets_what_runs_come_to_its_end(
    agent: Agent, ask: Send, gate: Gate, history_dir: Path
) -> None:
    id, token = await mint(agent)
    session, runs, waits = await two_on_their_way(TokenAgent(ask, token), gate)
    change_kept(history_dir, id, expires_at=PAST)
    taken_back = await finished(agent, waits)
    assert taken_back["status"] == "cancelled"
    assert "expired" in taken_back["reason"]
    assert (await agent.get(f"executions/{runs['id']}")).json["status"] == "running"
    gate.let_it_go_on()
    ended = await finished(agent, runs)
    assert (ended["status"], ended["text"]) == ("ok", "went on\n")
    assert (await until_closed(agent, session))["close_reason"] == "token_expired"


async def test_a_revocation_after_the_expiry_ends_what_still_runs(
    agent: Agent, ask: Send, gate: Gate, history_dir: Path
) -> None:
    id, token = await mint(agent)
    session, runs, waits = await two_on_their_way(TokenAgent(ask, token), gate)
    change_kept(history_dir, id, expires_at=PAST)
    assert (await finished(agent, waits))["status"] == "cancelled"
    await agent.ask("DELETE", f"tokens/{id}")
    assert (await finished(agent, runs))["status"] == "interrupted"
    await until_closed(agent, session)


async def test_the_server_stops_while_an_expired_tokens_code_runs(
    agent: Agent, ask: Send, gate: Gate, history_dir: Path, jp_serverapp: Any
) -> None:
    id, token = await mint(agent)
    session, _, waits = await two_on_their_way(TokenAgent(ask, token), gate)
    change_kept(history_dir, id, expires_at=PAST)
    assert (await finished(agent, waits))["status"] == "cancelled"
    apps = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    await next(iter(apps)).stop_extension()
    journal = (history_dir / "sessions" / session["id"] / "journal.jsonl").read_text()
    assert '"status":"interrupted"' in journal
    assert journal.count('"type":"closed"') == 1


async def test_what_waits_for_a_person_is_not_sent_once_its_token_has_ended(
    agent: Agent, ask: Send, desk: Desk, gate: Gate, history_dir: Path
) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    person = await desk.sits_at(kernel_id)
    id, token = await mint(agent, "exec:notebook")
    session = await TokenAgent(ask, token).open(target=notebook_target())
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    waits = await TokenAgent(ask, token).run(session, "touched = 1", wait=0, placement="none")
    change_kept(history_dir, id, revoked_at=PAST)
    gate.let_it_go_on()
    await person.reply(cell)
    assert (await finished(agent, waits))["status"] == "cancelled"
    assert (await person.has_run("touched"))["ename"] == "NameError"


async def test_a_session_whose_notebook_left_the_pattern_runs_nothing_more(
    agent: Agent, ask: Send, desk: Desk, gate: Gate
) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    person = await desk.sits_at(kernel_id)
    mine = TokenAgent(ask, (await mint(agent, "exec:notebook:sales.ipynb"))[1])
    session = await mine.open(target=notebook_target())
    cell = person.runs(gate.source)
    await at_persons_cell(agent, session, gate)
    waits = await mine.run(session, "touched = 1", wait=0, placement="none")
    await desk.ask("PATCH", "contents/sales.ipynb", {"path": "private.ipynb"})
    gate.let_it_go_on()
    await person.reply(cell)
    ended = await finished(agent, waits)
    assert ended["status"] == "cancelled"
    assert "private.ipynb" in ended["reason"]
    assert (await person.has_run("touched"))["ename"] == "NameError"
    assert code(await mine.execute(session, "1")) == (404, "notebook_not_found")
    assert (await mine.get(f"executions/{waits['id']}")).status == 200
    await desk.ask("PATCH", "contents/private.ipynb", {"path": "sales.ipynb"})
    assert (await mine.run(session, "1", placement="none"))["status"] == "ok"
    await desk.ask("PATCH", "contents/sales.ipynb", {"path": "private.ipynb"})
    closed = await mine.ask("POST", f"sessions/{session['id']}/close")
    assert closed.json["status"] == "closed"


async def test_a_notebook_moved_out_of_scope_reaches_no_files(
    agent: Agent, ask: Send, desk: Desk, jp_root_dir: Path
) -> None:
    await desk.opens()
    (jp_root_dir / "private").mkdir()
    (jp_root_dir / "private" / "plan.txt").write_text("secret")
    mine = TokenAgent(ask, (await mint(agent, "exec:notebook:sales.ipynb", "files"))[1])
    session = await mine.open(target=notebook_target())
    assert (await mine.get(f"sessions/{session['id']}/files")).status == 200
    await desk.ask("PATCH", "contents/sales.ipynb", {"path": "private/sales.ipynb"})
    for method, path in (("GET", ""), ("GET", "/plan.txt"), ("DELETE", "/plan.txt")):
        refused = await mine.ask(method, f"sessions/{session['id']}/files{path}")
        assert code(refused) == (404, "notebook_not_found")


async def test_a_kernel_whose_notebook_left_the_pattern_runs_nothing_more(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    jupyter_session = (await desk.sessions())[0]["id"]
    mine = TokenAgent(ask, (await mint(agent, "exec:notebook:sales.ipynb"))[1])
    session = await mine.open(target={"kind": "kernel", "kernel_id": kernel_id})
    assert (await mine.run(session, "1"))["status"] == "ok"
    await desk.ask("PATCH", f"sessions/{jupyter_session}", {"path": "private.ipynb"})
    assert code(await mine.execute(session, "1")) == (404, "kernel_not_found")


# -- caps ------------------------------------------------------------------------------------------


async def test_a_cap_on_time_and_output_is_the_default_and_the_most(
    agent: Agent, ask: Send
) -> None:
    caps = {"wall_seconds": 0.5, "output_bytes": 1000}
    mine = TokenAgent(ask, (await mint(agent, caps=caps))[1])
    for limits in ({"timeout": 1}, {"max_output_bytes": 1001}):
        refused = await mine.ask("POST", "sessions", {"agent": {"name": "a"}, "limits": limits})
        assert code(refused) == (400, "invalid_request")
    session = await mine.open()
    for asked, field in (({"timeout": 1}, "timeout"), ({"max_output_bytes": 1001},) * 2):
        refused = await mine.execute(session, "1", **asked)
        assert code(refused) == (400, "invalid_request")
        assert refused.json["detail"]["field"] in (field, "max_output_bytes")
    assert (await mine.run(session, "print('a' * 5000)"))["omitted"]["bytes"] > 4000
    endless = await mine.run(session, "import threading; threading.Event().wait()", wait=60)
    assert endless["status"] == "timed_out"


async def test_so_many_sessions_may_be_open_at_once(agent: Agent, ask: Send) -> None:
    mine = TokenAgent(ask, (await mint(agent, caps={"kernels": 1}))[1])
    asked = {"agent": {"name": "a"}}
    answers = await asyncio.gather(*(mine.ask("POST", "sessions", asked) for _ in range(3)))
    assert sorted(each.status for each in answers) == [201, 429, 429]
    session = next(each.json for each in answers if each.status == 201)
    refused = await mine.ask("POST", "sessions", asked)
    assert code(refused) == (429, "too_many_requests")
    assert "close one" in refused.json["message"]
    await mine.ask("POST", f"sessions/{session['id']}/close")
    await mine.open()


async def test_so_many_executions_may_wait_and_run_at_once(
    agent: Agent, ask: Send, gate: Gate
) -> None:
    mine = TokenAgent(ask, (await mint(agent, caps={"concurrent_executions": 2}))[1])
    session, _, waits = await two_on_their_way(mine, gate)
    other = await mine.open()
    for each in (session, other):
        refused = await mine.execute(each, "1", wait=0)
        assert code(refused) == (429, "too_many_requests")
    gate.let_it_go_on()
    await finished(agent, waits)
    assert (await mine.run(other, "1"))["status"] == "ok"


async def test_so_many_executions_may_be_asked_for_in_a_minute(agent: Agent, ask: Send) -> None:
    mine = TokenAgent(ask, (await mint(agent, caps={"executions_per_minute": 2}))[1])
    session = await mine.open()
    route, key = f"sessions/{session['id']}/executions", {"Idempotency-Key": "k"}
    first = await mine.ask("POST", route, {"source": "1"}, headers=key)
    assert (await mine.execute(session, "1", timeout=-1)).status == 400  # nothing was asked for
    assert (await mine.run(session, "2"))["status"] == "ok"
    refused = await mine.execute(session, "3")
    assert code(refused) == (429, "too_many_requests")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.json["detail"]["retry_after"] == int(refused.headers["Retry-After"])
    again = await mine.ask("POST", route, {"source": "1"}, headers=key)
    assert again.json["id"] == first.json["id"]


async def test_what_runs_first_and_a_restart_count_too(agent: Agent, ask: Send) -> None:
    caps = {"executions_per_minute": 3}
    mine = TokenAgent(ask, (await mint(agent, caps=caps))[1])
    preload = [{"kind": "module", "name": "math"}]
    session = await mine.open(init_source="x = 1", preload=preload)
    restart = f"sessions/{session['id']}/restart"
    assert code(await mine.ask("POST", restart)) == (429, "too_many_requests")
    assert (await mine.run(session, "x"))["text"].strip() == "1"  # it was not restarted
    another = {"agent": {"name": "a"}, "init_source": "1"}
    assert code(await mine.ask("POST", "sessions", another)) == (429, "too_many_requests")
    plain = await mine.open()
    assert code(await mine.ask("POST", f"sessions/{plain['id']}/restart")) == (
        429,
        "too_many_requests",
    )


@pytest.mark.parametrize("agent_exec_config", [{"max_sessions": 4}])
async def test_one_token_takes_no_more_than_half_of_the_sessions(agent: Agent, ask: Send) -> None:
    mine = TokenAgent(ask, (await mint(agent, caps={"kernels": 3}))[1])
    first, _ = await mine.open(), await mine.open()
    refused = await mine.ask("POST", "sessions", {"agent": {"name": "a"}})
    assert code(refused) == (429, "too_many_requests")
    assert refused.json["detail"]["limit"] == 2
    other = TokenAgent(ask, (await mint(agent))[1])
    await other.open()
    await mine.ask("POST", f"sessions/{first['id']}/close")
    await mine.open()


# -- approval and full access ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent_exec_config",
    [{"approval": {"notebook": "none"}, "forced_approval": {"scratch": "first"}}],
)
async def test_a_tokens_approval_overrides_all_but_the_forced_policy(
    agent: Agent, ask: Send, desk: Desk
) -> None:
    desk.writes()
    scopes = ("exec:scratch", "exec:notebook")
    modes: list[tuple[str, str]] = []
    for approval in (None, "none", "first", "always"):
        mine = TokenAgent(ask, (await mint(agent, *scopes, approval=approval))[1])
        opened = [await mine.open(), await mine.open(target=notebook_target())]
        modes.append((opened[0]["approval"], opened[1]["approval"]))
    assert modes == [
        ("first", "none"),
        ("first", "none"),
        ("first", "first"),
        ("always", "always"),
    ]
    asks = await mine.run(opened[1], "1", wait=0, placement="none")
    assert asks["status"] == "awaiting_approval"
    assert [e["id"] for e in (await mine.get("approvals")).json["executions"]] == [asks["id"]]
    assert code(await mine.ask("POST", f"executions/{asks['id']}/approve")) == (403, "forbidden")
    other = TokenAgent(ask, (await mint(agent))[1])
    assert (await other.get("approvals")).json["executions"] == []


@pytest.mark.parametrize("agent_exec_config", [{"allow_full_access": False}])
async def test_without_full_access_programs_need_an_agent_token(
    agent: Agent, ask: Send, log_in: Any, jp_serverapp: Any
) -> None:
    asked = {"agent": {"name": "a"}}
    refused = await agent.ask("POST", "sessions", asked)
    assert code(refused) == (403, "forbidden")
    assert "agent token" in refused.json["message"]
    assert (await agent.get("sessions")).status == 200
    mine = TokenAgent(ask, (await mint(agent))[1])
    session = await mine.open()
    assert code(
        await agent.ask("POST", f"sessions/{session['id']}/executions", {"source": "1"})
    ) == (
        403,
        "forbidden",
    )
    waits = await mine.run(session, "input()", wait=0)
    changed = {"source_sha256": waits["source_sha256"], "source": "1"}
    refused = await agent.ask("POST", f"executions/{waits['id']}/approve", changed)
    assert code(refused) == (403, "forbidden")
    person = await log_in(jp_serverapp.identity_provider.token)
    in_page = {"Cookie": person.cookie, "X-XSRFToken": person.xsrf}
    token = {"Authorization": f"token {jp_serverapp.identity_provider.token}"}
    for headers, status in (
        (in_page, 400),
        ({**in_page, **token}, 400),
        ({**in_page, **token, "X-XSRFToken": "wrong"}, 403),
        (token, 403),
    ):
        answered = await ask("POST", "sessions", headers=headers, body='{"no_such_field": 1}')
        assert answered.status == status, headers
