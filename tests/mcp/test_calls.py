"""What becomes of a call, whatever its tool does: values in, values out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult
from msgspec import Meta, field

from jupyter_agent_exec.auth.scopes import Caller, Scope
from jupyter_agent_exec.errors import (
    AgentExecError,
    InvalidRequest,
    SessionNotFound,
    Unauthenticated,
)
from jupyter_agent_exec.mcp.call import Call, LogLevels
from jupyter_agent_exec.mcp.endpoint import RequestSender
from jupyter_agent_exec.mcp.sdk_server import Calls, Guard
from jupyter_agent_exec.mcp.tool import (
    ERROR_META,
    MAX_ANSWER_BYTES,
    READS,
    Answered,
    Tool,
    arguments,
    input_schema,
)
from jupyter_agent_exec.models import Answer, Edit, Placement, Request, ScratchTarget, Target
from jupyter_agent_exec.types import ExecutionId
from tests.mcp.tools_bench import NotingCall, NotingClient

LOG = logging.getLogger("test")


class Nothing(Request, frozen=True, kw_only=True):
    pass


class Told(Answer, frozen=True, kw_only=True):
    text: str


class Manager:
    """Remembers what was cancelled."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []

    async def cancel(self, id: str, caller: Caller) -> None:
        self.cancelled.append(id)
        raise SessionNotFound("It is gone.")


class Managers:
    def __init__(self) -> None:
        self.sessions = Manager()


class Gate:
    """Who asks: their connection, their token, and what they were refused."""

    def __init__(self) -> None:
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.denials: list[tuple[str, str, str]] = []
        self.ended: AgentExecError | None = None

    def asker(self) -> RequestSender:
        return RequestSender(
            caller=Caller(username="person", display_name="Person", access="full"),
            owner="person",
            authorize=self._authorize,
            check_still=self._check_still,
            refused=lambda error, method, tool: self.denials.append((error.code, method, tool)),
            gone=self.gone,
            base_url="/",
            lab_url=None,
        )

    async def _authorize(self, scope: Scope) -> None:
        return None

    def _check_still(self) -> None:
        if self.ended is not None:
            raise self.ended


def tool(run: Callable[[Call, Any], Any]) -> Tool[Any]:
    return Tool(run=run, title="Try", scopes=("exec:scratch",), hints=READS)


def made(gate: Gate, client: NotingClient | None = None) -> Call:
    managers: Any = Managers()
    return NotingCall(client or NotingClient(), asker=gate.asker(), managers=managers)


async def result(
    run: Callable[[Call, Any], Any], gate: Gate | None = None, *, client: NotingClient | None = None
) -> CallToolResult:
    gate = gate or Gate()
    calls = Calls(interrupts=False, log=LOG)
    told = await calls.run(tool(run), made(gate, client), {})
    assert isinstance(told, CallToolResult)
    return told


def error_of(told: CallToolResult) -> dict[str, Any]:
    assert told.is_error
    assert told.structured_content is None
    assert told.meta is not None
    error: dict[str, Any] = told.meta[ERROR_META]
    return error


async def test_what_a_tool_answers_is_text_and_the_same_structured() -> None:
    async def run(call: Call, asked: Nothing) -> Answered:
        return Answered(text="yes", structured=Told(text="yes"))

    told = await result(run)
    assert (told.is_error, told.structured_content) == (False, {"text": "yes"})


async def test_no_word_of_an_unexpected_error_gets_out(caplog: pytest.LogCaptureFixture) -> None:
    async def run(call: Call, asked: Nothing) -> Answered:
        raise RuntimeError("a secret")

    told = await result(run)
    assert error_of(told)["code"] == "internal_error"
    assert "a secret" not in told.model_dump_json()
    assert "a secret" in caplog.text


async def test_an_error_of_ours_says_what_to_do_and_is_noted() -> None:
    async def run(call: Call, asked: Nothing) -> Answered:
        raise SessionNotFound("There is no such session.", session_id="s_1")

    gate = Gate()
    told = await result(run, gate)
    assert error_of(told) == {
        "code": "session_not_found",
        "message": "There is no such session.",
        "detail": {"session_id": "s_1"},
        "next": "list_sessions lists yours; open_session opens one.",
    }
    assert gate.denials == [("session_not_found", "tools/call", "run")]


async def test_an_answer_that_is_too_large_is_refused_rather_than_sent() -> None:
    async def run(call: Call, asked: Nothing) -> Answered:
        text = "\u00e9" * (MAX_ANSWER_BYTES // 2)
        return Answered(text=text, structured=Told(text=""))

    told = await result(run)
    assert error_of(told)["code"] == "payload_too_large"
    assert len(told.model_dump_json()) < 10_000


async def test_a_token_that_ended_meanwhile_gets_no_answer() -> None:
    gate = Gate()

    async def run(call: Call, asked: Nothing) -> Answered:
        gate.ended = Unauthenticated("This agent token was revoked.")
        return Answered(text="secret", structured=Told(text="secret"))

    told = await result(run, gate)
    assert error_of(told)["code"] == "unauthenticated"
    assert "secret" not in told.model_dump_json()


@pytest.mark.parametrize("interrupts", [False, True])
async def test_a_client_that_goes_ends_the_wait_and_not_the_work(interrupts: bool) -> None:
    gate, reached = Gate(), asyncio.Event()
    ended: list[str] = []

    async def run(call: Call, asked: Nothing) -> Answered:
        call.watched = ExecutionId("x_1")
        reached.set()
        try:
            await call.until(asyncio.Event().wait())
        finally:
            await asyncio.sleep(0)
            ended.append("tidied up")
        raise AssertionError

    call = made(gate)
    calls = Calls(interrupts=interrupts, log=LOG)
    running = asyncio.ensure_future(calls.run(tool(run), call, {}))
    await reached.wait()
    gate.gone.set_result(None)
    told = await running
    assert isinstance(told, CallToolResult)
    assert error_of(told)["code"] == "cancelled"
    assert ended == ["tidied up"]
    manager: Any = call.managers.sessions
    assert manager.cancelled == (["x_1"] if interrupts else [])


async def test_what_has_begun_is_done_though_the_call_is_cancelled() -> None:
    begun, may_end, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(call: Call, asked: Nothing) -> Answered:
        begun.set()
        await may_end.wait()
        done.set()
        return Answered(text="", structured=Told(text=""))

    calls = Calls(interrupts=False, log=LOG)
    running = asyncio.ensure_future(calls.run(tool(run), made(Gate()), {}))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    may_end.set()
    await calls.stop()
    assert done.is_set()


async def test_a_call_that_nobody_waits_for_tells_nothing_more() -> None:
    client, gate = NotingClient(), Gate()
    call = made(gate, client)
    await call.tell("before", "output")
    call.cancel()
    await call.tell("after", "more")
    assert (client.told, client.logged) == (["before"], ["output"])


async def test_no_word_of_an_unexpected_error_gets_out_of_other_methods(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails(_: Any) -> None:
        raise RuntimeError("a secret")

    context: Any = type("Context", (), {"method": "tools/list"})
    with pytest.raises(MCPError) as raised:
        await Guard(LOG)(context, fails)
    assert (raised.value.code, raised.value.message) == (-32603, "Unhandled error")
    assert "a secret" in caplog.text


def test_log_levels_are_forgotten_oldest_first() -> None:
    levels = LogLevels(2)
    for session in ("a", "b", "c"):
        levels.set(session, "error")
    assert ["warning" in levels.of(session) for session in ("a", "b", "c")] == [True, False, False]
    assert [level in levels.of(None) for level in ("debug", "info")] == [False, True]


class Many(Request, frozen=True, kw_only=True):
    """Arguments of many kinds."""

    id: str
    count: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="How many.")] = None
    mode: Literal["a", "b"] = "a"
    target: Annotated[Target, Meta(description="Where.")] = ScratchTarget()
    edits: Annotated[list[Edit], Meta(description="What.")] = field(default_factory=list)
    mixed: Annotated[Placement | Literal["end"], Meta(description="Which.")] = "end"


def test_a_schema_is_short_and_describes_objects_in_words() -> None:
    assert input_schema(Many) == {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "count": {"type": "integer", "description": "How many."},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "target": {"type": "object", "description": "Where."},
            "edits": {"type": "array", "items": {"type": "object"}, "description": "What."},
            "mixed": {"type": "object", "description": "Which."},
        },
        "required": ["id"],
    }
    assert input_schema(Nothing) == {"type": "object", "properties": {}}


def test_json_in_a_text_is_read_where_a_text_is_not_accepted() -> None:
    given = {"id": "5", "count": "5", "target": '{"kind": "scratch"}', "edits": "[]"}

    async def run(call: Call, asked: Many) -> Answered:
        raise AssertionError

    wanted = tool(run)
    assert arguments(wanted, given) == Many(id="5", count=5)
    for name, value in (("count", "five"), ("edits", '"[]"')):
        with pytest.raises(InvalidRequest) as refused:
            arguments(wanted, {"id": "5", name: value})
        assert refused.value.detail["expected"] == input_schema(Many)["properties"][name]


async def test_an_ended_token_gets_no_more_progress() -> None:
    gate, client = Gate(), NotingClient()

    async def run(call: Call, asked: Nothing) -> Answered:
        await call.tell("goes", "")
        gate.ended = Unauthenticated("It was revoked.")
        await call.tell("secret", "secret")
        raise AssertionError

    assert error_of(await result(run, gate, client=client))["code"] == "unauthenticated"
    assert (client.told, client.logged) == (["goes"], [])
