from __future__ import annotations

import itertools
import math
from typing import Any

import msgspec
import pytest

from jupyter_agent_exec import errors
from jupyter_agent_exec.client import (
    Accepted,
    AsyncSession,
    CannotConnect,
    ConnectionLost,
    Finished,
    NoServerFound,
    OutputChanged,
    StatusChanged,
    UnexpectedAnswer,
)
from jupyter_agent_exec.client.blocking import run
from jupyter_agent_exec.client.connection import RECONNECT_SECONDS
from jupyter_agent_exec.client.requests import execute_request
from jupyter_agent_exec.client.servers import Server
from jupyter_agent_exec.client.session import FIRST_WAIT_SECONDS
from jupyter_agent_exec.models import (
    ExecutionList,
    OutputChange,
    SearchHit,
    SearchResults,
    SessionList,
    StatusChange,
    WaitingFor,
)
from tests.client.wire import Script, execution, problem, reply, server_status, session

LOST = ConnectionLost("cut")
REFUSED = CannotConnect("nobody")


def keys_of(script: Script) -> list[str]:
    sent = (each.headers.get("Idempotency-Key") for each in script.sent)
    return [key for key in sent if key is not None]


def event(kind: str, data: Any, event_id: int) -> bytes:
    body = msgspec.json.encode(data).decode()
    return f"event: {kind}\nid: {event_id}\ndata: {body}\n\n".encode()


def test_run_takes_one_request_when_it_finishes_in_time() -> None:
    script = Script(reply(execution(), 201))
    result = script.run(script.session.run("1+1"))
    assert (result.status, result.text) == ("ok", "2")
    (sent,) = script.sent
    assert (sent.method, sent.path) == ("POST", "/api/agent-exec/sessions/s_1/executions")
    assert msgspec.json.decode(sent.body)["wait"] == FIRST_WAIT_SECONDS
    assert sent.read_timeout > FIRST_WAIT_SECONDS


def test_run_waits_until_the_status_is_final() -> None:
    script = Script(
        reply(execution("queued"), 202),
        reply(execution("running")),
        reply(execution("running")),
        reply(execution("timed_out")),
    )
    assert script.run(script.session.run("1+1")).status == "timed_out"
    assert {sent.path for sent in script.sent[1:]} == {"/api/agent-exec/executions/x_1?wait=30"}


@pytest.mark.parametrize(
    ("status", "who", "said"),
    [
        ("awaiting_approval", "approval", "`jupyter agent-exec approve x_1`"),
        ("queued", "pause", "`jupyter agent-exec resume`"),
    ],
)
def test_a_needed_decision_is_printed_once_on_standard_error(
    status: str, who: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    behind = WaitingFor(who=who, agent=None, execution_id=None, since=None)
    waits = reply(execution(status, waiting_for=behind))
    script = Script(reply(execution("queued"), 202), waits, waits, reply(execution()))
    assert script.run(script.session.run("1+1")).ok
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert said in line


def test_a_broken_connection_is_answered_with_the_same_body_and_key() -> None:
    script = Script(LOST, REFUSED, LOST, reply(execution(), 201))
    script.run(script.session.run("1+1"))
    assert len(set(keys_of(script))) == 1
    assert len(keys_of(script)) == 4
    assert len({sent.body for sent in script.sent}) == 1


def test_each_run_has_its_own_key_unless_one_is_given() -> None:
    script = Script(reply(execution(), 201), reply(execution(), 201), reply(execution(), 201))
    for key in (None, None, "step-3"):
        run(script.session.run("1+1", idempotency_key=key))
    assert len(set(keys_of(script))) == 3
    assert keys_of(script)[2] == "step-3"


def test_a_wait_that_breaks_goes_on() -> None:
    script = Script(reply(execution("running"), 202), LOST, LOST, reply(execution()))
    assert script.run(script.session.run("1+1")).ok
    assert [sent.method for sent in script.sent] == ["POST", "GET", "GET", "GET"]


def test_a_proxy_that_does_not_reach_the_server_is_a_broken_connection() -> None:
    script = Script(reply(b"<html>Bad gateway", 502), reply(execution(), 201))
    assert script.run(script.session.run("1+1")).ok


def test_the_servers_own_503_is_its_refusal() -> None:
    script = Script(problem("history_unavailable", "disk full", 503))
    with pytest.raises(errors.HistoryUnavailable, match="disk full"):
        script.run(script.session.run("1+1"))


def test_a_connection_that_stays_broken_is_an_error_after_a_bounded_time() -> None:
    script = Script(*itertools.repeat(LOST, 40))
    with pytest.raises(ConnectionLost):
        script.run(script.session.run("1+1"))
    assert RECONNECT_SECONDS <= sum(script.pauses) <= RECONNECT_SECONDS + 2


def test_a_wrong_address_is_told_at_once() -> None:
    script = Script(REFUSED)
    with pytest.raises(CannotConnect):
        script.run(script.session.run("1+1"))
    assert script.pauses == []


def test_opening_is_asked_again_with_one_client_id() -> None:
    script = Script(LOST, reply(session(), 201))
    script.run(script.client.open_session("a"))
    ids = {msgspec.json.decode(sent.body)["client_id"] for sent in script.sent}
    assert len(ids) == 1
    assert None not in ids


@pytest.mark.parametrize("call", [AsyncSession.interrupt, AsyncSession.restart])
def test_what_would_do_its_work_twice_is_not_asked_again(call: Any) -> None:
    script = Script(LOST)
    with pytest.raises(ConnectionLost):
        script.run(call(script.session))
    assert len(script.sent) == 1


def test_closing_what_is_closed_is_no_error() -> None:
    Script(LOST, problem("session_closed", "closed", 409)).run(lambda it: it.session.close())


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("session_not_found", errors.SessionNotFound),
        ("idempotency_conflict", errors.IdempotencyConflict),
        ("unauthenticated", errors.Unauthenticated),
        ("kernel_name_not_found", errors.KernelSpecNotFound),
    ],
)
def test_a_refusal_becomes_the_class_with_its_code(
    code: str, kind: type[errors.AgentExecError]
) -> None:
    script = Script(problem(code, "100% no", 400, field="source", message="kept"))
    with pytest.raises(kind) as caught:
        script.run(script.client.session("s_1"))
    assert type(caught.value) is kind
    assert caught.value.message == "100% no"
    assert caught.value.detail == {"field": "source", "message": "kept"}


def test_an_unknown_code_is_kept() -> None:
    with pytest.raises(errors.AgentExecError) as caught:
        Script(problem("brand_new", "no", 418)).run(lambda it: it.client.status())
    assert caught.value.detail == {"code": "brand_new"}


@pytest.mark.parametrize(
    ("status", "word"), [(404, "extension"), (302, "redirects"), (403, "token"), (500, "log")]
)
def test_an_answer_of_something_else_says_what_to_look_at(status: int, word: str) -> None:
    with pytest.raises(UnexpectedAnswer, match=word) as caught:
        Script(reply(b"<html>", status)).run(lambda it: it.client.status())
    assert caught.value.status == status


def test_an_answer_that_cannot_be_read_is_told_as_such() -> None:
    with pytest.raises(UnexpectedAnswer, match="version"):
        Script(reply({"id": "s_1"})).run(lambda it: it.client.session("s_1"))


@pytest.mark.parametrize("seconds", [math.inf, -math.inf, math.nan])
def test_infinity_is_refused_since_json_would_make_it_the_default(seconds: float) -> None:
    with pytest.raises(errors.InvalidRequest) as caught:
        execute_request("1", {"timeout": seconds})
    assert caught.value.detail["field"] == "timeout"


def test_a_lone_surrogate_is_refused_before_it_is_sent() -> None:
    script = Script()
    with pytest.raises(errors.InvalidRequest, match="surrogate"):
        script.run(script.session.run("'\ud800'"))
    assert script.sent == []


def test_a_key_that_no_header_can_hold_is_refused() -> None:
    with pytest.raises(errors.InvalidRequest, match="key"):
        Script().run(lambda it: it.session.run("1+1", idempotency_key="a\r\nX-Other: 1"))


def test_ids_are_escaped_in_paths() -> None:
    script = Script(problem("session_not_found", "no", 404))
    with pytest.raises(errors.SessionNotFound):
        script.run(script.client.session("../../contents?x=#"))
    assert script.sent[0].path == "/api/agent-exec/sessions/..%2F..%2Fcontents%3Fx%3D%23"


def test_a_stream_goes_on_after_its_last_event_when_it_breaks() -> None:
    change = OutputChange(index=0, append="b\n")
    script = Script(
        reply(execution("queued"), 202),
        reply(b""),
        event("accepted", execution("queued"), 1) + event("output", change, 2)[:20],
        LOST,
        REFUSED,
        reply(b""),
        event("output", change, 2),
        b"",
        reply(b""),
        event("from_the_future", {"x": 1}, 3) + event("finished", execution(), 4),
    )
    script.run(script.session.stream("1+1"))
    assert [type(each) for each in script.emitted] == [Accepted, OutputChanged, Finished]
    assert script.emitted[1].change == change
    resumed = [sent.headers.get("Last-Event-ID") for sent in script.sent[1:]]
    assert resumed == [None, "1", "1", "2"]


def test_a_status_that_is_told_again_after_a_break_is_told_once() -> None:
    running = event("status", StatusChange(status="running"), 0)
    script = Script(
        reply(execution("running"), 202),
        reply(b""),
        event("status", StatusChange(status="queued"), 0) + running,
        LOST,
        reply(b""),
        running + event("finished", execution(), 1),
    )
    script.run(script.session.stream("1+1"))
    assert [type(each) for each in script.emitted] == [StatusChanged, StatusChanged, Finished]


def test_a_stream_that_cannot_come_back_ends_with_an_error() -> None:
    script = Script(reply(execution("queued"), 202), *itertools.repeat(REFUSED, 40))
    with pytest.raises(CannotConnect):
        script.run(script.session.stream("1+1"))
    assert sum(script.pauses) >= RECONNECT_SECONDS


def test_a_stream_of_something_unreadable_is_told_as_such() -> None:
    script = Script(reply(execution(), 201), reply(b""), b"event: output\ndata: {}\n\n")
    with pytest.raises(UnexpectedAnswer, match="output"):
        script.run(script.session.stream("1+1"))


def test_lists_are_read_page_by_page() -> None:
    script = Script(
        reply(ExecutionList(executions=[execution(), execution()], next_after=2)),
        reply(ExecutionList(executions=[execution("error")], next_after=None)),
    )
    script.run(script.session.executions())
    assert [result.status for result in script.emitted] == ["ok", "ok", "error"]
    assert script.sent[1].path.endswith("/sessions/s_1/executions?after=2")


def hit(number: int) -> SearchHit:
    return SearchHit(
        execution_id=f"x_{number}",  # type: ignore[arg-type]
        session_id="s_1",  # type: ignore[arg-type]
        seq=number,
        execution_count=number,
        status="ok",
        agent="a",
        title=None,
        accepted_at="2026-01-01T00:00:00.000Z",
        images=0,
        source="",
        snippet="",
    )


def test_search_gives_no_more_than_is_wanted() -> None:
    first = SearchResults(hits=[hit(n) for n in range(100)], next_after="x_99")  # type: ignore[arg-type]
    script = Script(
        reply(first), reply(SearchResults(hits=[hit(n) for n in range(50)], next_after=None))
    )
    script.run(script.client.search("mean", limit=120, has_image=True))
    assert len(script.emitted) == 120
    assert script.sent[0].path == "/api/agent-exec/search?q=mean&limit=100&has_image=true"
    assert "after=x_99&q=mean&limit=100" in script.sent[1].path


def test_a_session_that_closes_while_all_are_listed_is_told_once() -> None:
    first = SessionList(sessions=[session("s_3"), session("s_2")], next_after="open:s_2")
    last = SessionList(sessions=[session("s_3"), session("s_1")], next_after=None)
    script = Script(reply(first), reply(last))
    script.run(script.client.sessions(target="notebook", unreviewed=True))
    assert [each.id for each in script.emitted] == ["s_3", "s_2", "s_1"]
    assert script.sent[0].path == "/api/agent-exec/sessions?target=notebook&unreviewed=true"
    assert "after=open%3As_2" in script.sent[1].path


def test_a_server_that_does_not_answer_gives_way_to_the_next() -> None:
    servers = [Server.at("http://127.0.0.1:1/"), Server.at("http://127.0.0.1:2/base/")]
    script = Script(REFUSED, reply(server_status()), servers=servers)
    script.run(script.client.connect())
    assert script.tried == ["http://127.0.0.1:1", "http://127.0.0.1:2/base"]


def test_the_error_without_a_server_names_those_that_were_tried() -> None:
    servers = [Server.at("http://127.0.0.1:1/?token=secret"), Server.at("http://127.0.0.1:2/")]
    script = Script(REFUSED, reply(b"", 404), servers=servers)
    with pytest.raises(NoServerFound) as caught:
        script.run(script.client.connect())
    message = str(caught.value)
    assert "jupyter lab" in message
    assert "127.0.0.1:1: nobody" in message
    assert "127.0.0.1:2: HTTP 404" in message
    assert "secret" not in message


def test_no_server_at_all_is_a_connection_error_too() -> None:
    with pytest.raises(ConnectionError, match="No Jupyter server runs here"):
        Script(servers=[]).run(lambda it: it.client.connect())
