"""Code that a person has to let run, asked for by tools."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from jupyter_agent_exec import errors
from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.mcp.call import Elicited
from jupyter_agent_exec.mcp.tool import Failure
from jupyter_agent_exec.models import Approve, TokenRef
from jupyter_agent_exec.records import digest_of
from jupyter_agent_exec.types import TokenId
from tests.mcp.mcp_clients import text_of
from tests.mcp.tools_bench import PERSON, Bench

RUN = Elicited(action="accept", content={"decision": "Run it"})


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": {"scratch": "always"}}


def answers(bench: Bench, answer: Elicited) -> None:
    async def answer_it() -> Elicited:
        return answer

    bench.client.answers = answer_it


async def test_an_agent_is_told_that_a_person_has_to_let_it_run(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, "1", wait=0)
    assert told["status"] == "awaiting_approval"
    assert told["waiting_for"]["who"] == "approval"
    assert "The user has to approve it in JupyterLab; tell them." in told["notes"][0]


async def test_the_clients_person_lets_it_run(bench: Bench) -> None:
    answers(bench, RUN)
    session = await bench.open()
    told = await bench.run(session, "print('ran')")
    assert (told["status"], told["text"]) == ("ok", "ran\n")
    ((message, _),) = bench.client.asked
    assert "print('ran')" in message
    assert "'MCP agent'" in message
    record = await bench.managers.sessions.execution(told["execution_id"])
    assert record.approval is not None
    assert (record.approval.status, record.approval.decided_by) == ("approved", "Ada")


UNTIL_RESTART = "Run it, and let the agent run code in this kernel until it restarts"
FOR_AN_HOUR = "Run it, and let the agent run code in this kernel for an hour"


@pytest.mark.parametrize(
    ("agent_exec_config", "offered"),
    [
        ({"approval": {"scratch": "first"}}, [UNTIL_RESTART, FOR_AN_HOUR]),
        ({"approval": {"scratch": "always"}}, ["Run it", UNTIL_RESTART, FOR_AN_HOUR]),
    ],
)
async def test_the_form_says_what_an_approval_lets_the_agent_do(
    bench: Bench, offered: list[str]
) -> None:
    answers(bench, Elicited(action="accept", content={"decision": UNTIL_RESTART}))
    session = await bench.open()
    assert (await bench.run(session, "x = 1"))["status"] == "ok"
    assert (await bench.run(session, "x"))["status"] == "ok"
    (form,) = bench.client.forms
    assert form["properties"]["decision"]["enum"] == [*offered, "Do not run it"]


@pytest.mark.parametrize(
    "answer",
    [
        Elicited(action="decline", content={}),
        Elicited(action="accept", content={"decision": "Do not run it", "reason": " not now "}),
    ],
)
async def test_the_clients_person_does_not_let_it_run(bench: Bench, answer: Elicited) -> None:
    answers(bench, answer)
    session = await bench.open()
    told = await bench.run(session, "x = 1")
    assert told["status"] == "rejected"
    why = "says: not now" if answer.content else "gave no reason"
    assert f"Ada rejected it and {why}" in told["text"]


@pytest.mark.parametrize(
    "answer",
    [
        Elicited(action="cancel", content={}),
        Elicited(action="accept", content={}),
        Elicited(action="accept", content={"decision": "Run it!"}),
        Elicited(action="accept", content={"decision": True}),
    ],
)
async def test_what_is_no_clear_yes_decides_nothing(bench: Bench, answer: Elicited) -> None:
    answers(bench, answer)
    session = await bench.open()
    assert (await bench.run(session, "1", wait=0))["status"] == "awaiting_approval"


@pytest.mark.parametrize(
    "source",
    [
        "1  # \u202e hidden",
        "1\n" * 3000,
        "x = '\x1b[2J'",
        "a\u200bb = 1",
        "1\u2028",
        "\u0440assword",
    ],
)
async def test_the_client_is_not_asked_about_code_that_it_would_show_in_part(
    bench: Bench, source: str
) -> None:
    answers(bench, RUN)
    session = await bench.open()
    assert (await bench.run(session, source, wait=0))["status"] == "awaiting_approval"
    assert bench.client.asked == []


@pytest.mark.parametrize(
    "caller",
    [
        replace(PERSON, token=TokenRef(id=TokenId("t_1"), label="a")),
        replace(PERSON, access="token"),
    ],
)
async def test_with_an_agent_token_nobody_is_asked_through_the_client(
    bench: Bench, caller: Caller
) -> None:
    answers(bench, RUN)
    session = await bench.open()
    bench.caller = caller
    assert (await bench.run(session, "1", wait=0))["status"] == "awaiting_approval"
    assert bench.client.asked == []


async def test_who_may_not_decide_is_not_asked(bench: Bench) -> None:
    answers(bench, RUN)
    bench.refused = {"decide"}
    session = await bench.open()
    assert (await bench.run(session, "1", wait=0))["status"] == "awaiting_approval"
    assert bench.client.asked == []


async def test_a_decision_in_jupyterlab_that_comes_first_counts(bench: Bench) -> None:
    asked = asyncio.Event()

    async def never() -> Elicited:
        asked.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    bench.client.answers = never
    session = await bench.open()
    running = asyncio.create_task(bench.run(session, "print('ran')"))
    await asked.wait()
    ((_, state),) = bench.client.asked
    id = state.split()[0]
    wanted = Approve(source_sha256=digest_of(b"print('ran')"))
    await bench.managers.approvals.approve(id, wanted, PERSON)
    assert (await running)["text"] == "ran\n"


async def test_an_agent_is_told_what_ran_if_the_user_changed_its_code(bench: Bench) -> None:
    session = await bench.open()
    asked = await bench.run(session, "print('all rows')", wait=0)
    wanted = Approve(source_sha256=digest_of(b"print('all rows')"), source="print('ten rows')")
    await bench.managers.approvals.approve(asked["execution_id"], wanted, PERSON)
    result = await bench.whole("get_execution", execution_id=asked["execution_id"], wait=30)
    told = result.structured_content
    assert (told["ran_source"], told["text"]) == ("print('ten rows')", "ten rows\n")
    assert text_of(result).startswith(
        "[The user changed your code before approving it. This ran instead of yours:]\n"
        "print('ten rows')\n[Its output:]\nten rows\n"
    )


async def test_a_no_that_comes_after_jupyterlabs_yes_changes_nothing(bench: Bench) -> None:
    session = await bench.open()
    first = await bench.run(session, "1", wait=0, idempotency_key="k")
    wanted = Approve(source_sha256=digest_of(b"1"))

    async def late() -> Elicited:
        await bench.managers.approvals.approve(first["execution_id"], wanted, PERSON)
        return Elicited(action="decline", content={})

    bench.client.answers = late
    told = await bench.run(session, "1", idempotency_key="k")
    assert (told["status"], told["text"]) == ("ok", "1")


async def test_a_call_that_is_sent_again_with_the_answer_runs_nothing_anew(bench: Bench) -> None:
    session = await bench.open()
    first = await bench.run(session, "1", wait=0)
    state = f"{first['execution_id']} {digest_of(b'1')}"
    answers(bench, RUN)
    asked = {"session_id": session, "source": "1"}
    told = await bench.call("execute", bench.begin(state), **asked)
    assert (told["execution_id"], told["status"]) == (first["execution_id"], "ok")
    by_target = {"target": {"kind": "scratch"}, "source": "1"}
    told = await bench.call("execute", bench.begin(state), **by_target)
    assert (told["execution_id"], told["session_id"]) == (first["execution_id"], session)


async def test_a_state_that_the_client_changed_is_refused(bench: Bench) -> None:
    session, other = await bench.open(), await bench.open()
    first = await bench.run(session, "1", wait=0)
    answers(bench, RUN)
    id, sha256 = first["execution_id"], digest_of(b"1")
    for state, asked in (
        ("", {"session_id": session, "source": "1"}),
        (f"{id}", {"session_id": session, "source": "1"}),
        (f"{id} {sha256}", {"session_id": session, "source": "2"}),
        (f"{id} {sha256}", {"session_id": other, "source": "1"}),
    ):
        with pytest.raises(errors.InvalidRequest):
            await bench.call("execute", bench.begin(state), **asked)
    forged = bench.begin(f"{id} {digest_of(b'2')}")
    told = await bench.call("execute", forged, session_id=session, source="1", wait=0)
    assert told["status"] == "awaiting_approval"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_file", {"path": "tools.py", "text": "steal()"}),
        ("look_up", {"code": "print"}),
    ],
)
async def test_what_is_no_execution_passes_the_same_gate(
    bench: Bench, name: str, arguments: dict[str, Any]
) -> None:
    session = await bench.open()
    with pytest.raises(errors.ApprovalRequired, match="Approve and let it run…") as refused:
        await bench.call(name, session_id=session, **arguments)
    assert (Failure.of(refused.value).next or "").endswith("call again when they have approved.")
    answers(
        bench,
        Elicited(
            action="accept",
            content={
                "decision": "Run it, and let the agent run code in this kernel until it restarts"
            },
        ),
    )
    await bench.run(session, "1")
    await bench.call(name, session_id=session, **arguments)
    await bench.managers.approvals.set_paused(True, PERSON)
    with pytest.raises(errors.Paused):
        await bench.call(name, session_id=session, **arguments)
