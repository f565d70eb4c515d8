"""The lines in the server's log for sessions, executions and refusals."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from jupyter_agent_exec.observability.logs import line
from tests.asking import Agent, Send
from tests.mcp.raw_mcp import RawMcp

SECRET = "a_word_of_the_code"
HOSTILE = "x\n[E] forged\r\x1b[2J\x7f\x85\u2028\u202e\ud800"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """Return the lines of an event, as the log has them; each must be one printable line."""
    caplog.set_level(logging.INFO)

    def lines(event: str) -> list[dict[str, Any]]:
        logged = [each.getMessage() for each in caplog.records if each.name.endswith(".activity")]
        assert all(each.isascii() and each.isprintable() for each in logged)
        assert SECRET not in "".join(logged)
        return [told for each in logged if (told := json.loads(each))["event"] == event]

    return lines


async def test_each_session_and_execution_has_a_line_without_its_code(
    agent: Agent, lines: Any
) -> None:
    session = await agent.open(agent={"name": "Zoë\u202e"})
    fine = await agent.run(session, f"print('{SECRET}')")
    bad = await agent.run(session, f"{SECRET}", claim={"trace_id": "0af7" * 8})
    await agent.ask("POST", f"sessions/{session['id']}/close")
    (opened,) = lines("session_opened")
    assert (opened["session_id"], opened["target"]) == (session["id"], "scratch")
    assert opened["agent"] == "Zoë\u202e"
    finished = lines("execution_finished")
    assert [each["execution_id"] for each in finished] == [fine["id"], bad["id"]]
    assert [each["status"] for each in finished] == ["ok", "error"]
    assert [each["duration"] for each in finished] == [fine["duration"], bad["duration"]]
    assert (finished[0].get("trace_id"), finished[1]["trace_id"]) == (None, "0af7" * 8)
    (closed,) = lines("session_closed")
    assert (closed["session_id"], closed["reason"], closed["executions"]) == (
        session["id"],
        "closed",
        2,
    )


async def test_each_refusal_has_a_line_in_which_nothing_can_be_injected(
    agent: Agent, ask: Send, lines: Any
) -> None:
    assert (await ask("GET", "sessions")).status == 401
    assert (await agent.ask("POST", "sessions", {"agent": 1})).status == 400
    assert (await agent.get("sessions/s_\n[E] forged\x1b[2J")).status == 404
    unknown, wrong, missing = lines("refused")
    assert (unknown["code"], unknown["status"], unknown["route"]) == (
        "unauthenticated",
        401,
        "/sessions",
    )
    assert "username" not in unknown
    assert (wrong["code"], wrong["method"], wrong["status"]) == ("invalid_request", "POST", 400)
    assert wrong["username"]
    assert missing["session_id"] == "s_\n[E] forged\x1b[2J"


@pytest.mark.parametrize(
    "agent_exec_config",
    [
        {
            "max_sessions": 1,
            "sinks": [{"kind": "folder", "path": "/dev/null/there", "max_lag": 0.001}],
        }
    ],
)
async def test_a_refusal_is_one_line_of_the_whole_log(
    agent: Agent, ask: Send, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where a page shows it; a failure that nobody expected has Jupyter's own lines too."""
    session = await agent.open()
    executions = f"sessions/{session['id']}/executions"
    other = {"agent": {"name": "other"}}
    caplog.set_level(logging.INFO)
    for send, asked, status, code in (
        (agent.ask, ("POST", executions, {"source": "1"}), 503, "sink_behind"),
        (agent.ask, ("POST", "sessions", other), 429, "too_many_requests"),
        (agent.ask, ("GET", "sessions/s_none"), 404, "session_not_found"),
        (agent.ask, ("DELETE", "status"), 405, "method_not_allowed"),
        (agent.ask, ("GET", "sign-in/authorize"), 400, "invalid_request"),
        (ask, ("GET", "sessions"), 401, "unauthenticated"),
    ):
        caplog.clear()
        assert (await send(*asked)).status == status
        said = [each for each in caplog.records if each.levelno >= logging.INFO]
        # The sink may say only now that it is away.
        (logged,) = [each.getMessage() for each in said if each.module != "followers"]
        told = json.loads(logged)
        assert (told["status"], told["code"], told["ip"]) == (status, code, "127.0.0.1")


async def test_a_call_of_a_tool_that_is_refused_has_a_line(
    ask: Send, jp_serverapp: Any, lines: Any
) -> None:
    raw = RawMcp(ask, jp_serverapp.identity_provider.token, modern=True)
    assert (await raw.call("execute", session_id="s_none", source=SECRET))["isError"]
    assert (await raw.call("execute", source=1))["isError"]
    refused = lines("refused")
    assert [each["route"] for each in refused] == ["execute", "execute"]
    assert [each["code"] for each in refused] == ["session_not_found", "invalid_request"]


def test_a_value_is_escaped_and_cut() -> None:
    written = line("refused", {"username": HOSTILE, "route": "r" * 1000, "status": 404, "no": None})
    assert written.isascii()
    assert written.isprintable()
    assert json.loads(written) == {
        "event": "refused",
        "username": HOSTILE,
        "route": "r" * 200,
        "status": 404,
    }
