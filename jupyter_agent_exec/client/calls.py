"""What the client can ask, as steps without I/O.

Here stands what is asked, what is asked again when a connection breaks, and how long: a `GET` any
number of times, an execution with the idempotency key that it was first sent with, so that it never
runs twice, and nothing that would do its work a second time.
"""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

import msgspec

from ..errors import AgentExecError, InputNotAsked, InvalidRequest, SessionClosed
from ..models import (
    Execute,
    Execution,
    ExecutionList,
    GiveInput,
    Guide,
    OpenSession,
    RunSteps,
    SearchHit,
    SearchResults,
    ServerStatus,
    Session,
    SessionList,
    SetReview,
    Steps,
    Text,
    TextMatches,
)
from ..types import FINAL_STATUSES
from .answers import check, read
from .errors import (
    ClientError,
    ConnectionLost,
    NoServerFound,
    ServerUnreachable,
    UnexpectedAnswer,
)
from .events import Event, Finished, StatusChanged, read_event
from .result import Result
from .retry import Backoff, persistently
from .routes import API, act, get, segment, send_model, with_query
from .servers import URL_VARIABLE, Server
from .sse import EventParser
from .steps import Call, Connect, Emit, Feed, Reply, Send, receive, send

WAIT_SECONDS: Final = 30.0
"""How long one request waits for an execution; then another one does."""

FIRST_WAIT_SECONDS: Final = 5.0
"""How long the request waits that brings the code, before a person is told that it asks them."""

ANSWER_SECONDS: Final = 30.0
"""How long the server may take beyond that."""

PROBE_SECONDS: Final = 5.0
"""How long a server that was found may take to say that it is there."""

_execution = msgspec.json.Decoder(Execution)
_steps = msgspec.json.Decoder(Steps)
_executions = msgspec.json.Decoder(ExecutionList)
_session = msgspec.json.Decoder(Session)
_sessions = msgspec.json.Decoder(SessionList)
_guide = msgspec.json.Decoder(Guide)
_hits = msgspec.json.Decoder(SearchResults)
_text = msgspec.json.Decoder(Text)
_matches = msgspec.json.Decoder(TextMatches)
_status = msgspec.json.Decoder(ServerStatus)
_anything: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


# -- the server ------------------------------------------------------------------------------------


def connect(given: Server | None, found: list[Server]) -> Call[None]:
    """Connect to the server that is given, or to the first of those found that answers."""
    if given is not None:
        yield Connect(given)
        return
    reasons: list[str] = []
    for server in found:
        yield Connect(server)
        try:
            reply = yield from send(Send("GET", f"{API}/status", read_timeout=PROBE_SECONDS))
            read(reply, _status)
        except (ClientError, AgentExecError) as error:
            reasons.append(f"{server.address}: {error}")
        else:
            return
    raise _nobody(reasons)


def _nobody(reasons: list[str]) -> NoServerFound:
    advice = (
        "Start one with `jupyter lab` or `jupyter server` where jupyter-agent-exec is installed, "
        f"or name one by url= and token=, or in {URL_VARIABLE}."
    )
    if not reasons:
        return NoServerFound("No Jupyter server runs here.", advice)
    return NoServerFound(
        "No Jupyter server that runs here answers for jupyter-agent-exec.",
        "\n  ".join([advice, *reasons]),
    )


def status() -> Call[ServerStatus]:
    """Ask how the extension is doing."""
    return (yield from get("/status", _status))


# -- sessions --------------------------------------------------------------------------------------


def open_session(request: OpenSession) -> Call[Session]:
    """Open a session, one only even if the connection breaks and it is asked again.

    It needs a `client_id` for that; a request without gets one.
    """
    if request.client_id is None:
        request = msgspec.structs.replace(request, client_id=f"once-{uuid4().hex}")
    reply = yield from persistently(send_model("POST", "/sessions", request, read_timeout=120.0))
    return read(reply, _session)


def session(session_id: str) -> Call[Session]:
    """Look at a session."""
    return (yield from get(f"/sessions/{segment(session_id)}", _session))


def sessions(**filters: str | bool | None) -> Feed[Session]:
    """List sessions: the open ones first, then the closed, each the newest first."""
    after: str | None = None
    told: set[str] = set()
    while True:
        page = yield from get(with_query("/sessions", after=after, **filters), _sessions)
        for each in page.sessions:
            if each.id not in told:  # it may have been closed since the page before
                told.add(each.id)
                yield Emit(each)
        after = page.next_after
        if after is None:
            return


def close_session(session_id: str) -> Call[None]:
    """Close a session; that it is closed already is no error."""
    try:
        check((yield from persistently(act(f"/sessions/{segment(session_id)}/close"))))
    except SessionClosed:
        return


def interrupt(session_id: str) -> Call[None]:
    """Interrupt what runs in a session's kernel."""
    check((yield from send(act(f"/sessions/{segment(session_id)}/interrupt"))))


def restart(session_id: str) -> Call[Session]:
    """Give a session a fresh kernel and look at the session."""
    check((yield from send(act(f"/sessions/{segment(session_id)}/restart"))))
    return (yield from session(session_id))


def guide(session_id: str) -> Call[str]:
    """Ask for the text for a system message."""
    return (yield from get(f"/sessions/{segment(session_id)}/guide", _guide)).text


# -- executions ------------------------------------------------------------------------------------


def run(
    session_id: str, execute: Execute, key: str | None, *, until_input: bool = False
) -> Call[Result]:
    """Run a source once and wait until it has finished, however long that takes.

    Parameters
    ----------
    until_input
        Wait no longer when its code asks for input.
    """
    accepted = yield from _execute(session_id, execute, key, wait=FIRST_WAIT_SECONDS)
    return Result((yield from _finished(accepted, until_input=until_input)))


def run_steps(session_id: str, steps: RunSteps, key: str | None) -> Call[list[Result]]:
    """Run several sources and wait until all have finished, however long that takes."""
    results: list[Result] = []
    for each in (yield from submit_steps(session_id, steps, key, wait=FIRST_WAIT_SECONDS)):
        results.append(Result((yield from _finished(each.execution))))
    return results


def submit_steps(
    session_id: str, steps: RunSteps, key: str | None, *, wait: float = 0.0
) -> Call[list[Result]]:
    """Have several sources accepted, and look at them after `wait` seconds at the latest."""
    request = send_model(
        "POST",
        f"/sessions/{segment(session_id)}/steps",
        msgspec.structs.replace(steps, wait=wait),
        headers=((b"Idempotency-Key", _header_value(key or uuid4().hex)),),
        read_timeout=wait + ANSWER_SECONDS,
    )
    accepted = read((yield from persistently(request)), _steps).executions
    return [Result(each) for each in accepted]


def give_input(execution_id: str, value: str, asked_at: str | None) -> Call[Result]:
    """Answer what the code of an execution asks for."""
    path = f"/executions/{segment(execution_id)}/input"
    return read_result(
        (yield from send(send_model("POST", path, GiveInput(value=value, asked_at=asked_at))))
    )


def answer(asking: Result, value: str) -> Call[Result]:
    """Answer what is asked, unless somebody has, and wait until it has finished or asks again."""
    asked = asking.input
    assert asked is not None
    with suppress(InputNotAsked):
        yield from give_input(asking.id, value, asked.asked_at)
    current = (yield from execution(asking.id)).execution
    return Result((yield from _finished(current, until_input=True)))


def stream(session_id: str, execute: Execute, key: str | None) -> Feed[Event]:
    """Run a source once and tell what happens, as it happens."""
    accepted = yield from _execute(session_id, execute, key, wait=0.0)
    yield from follow(accepted.id)


def follow(execution_id: str) -> Feed[Event]:
    """Tell what happened to an execution since it was accepted, and what happens."""
    backoff = Backoff()
    last_id = ""
    last_status: Event | None = None
    while True:
        try:
            yield from _open_stream(execution_id, last_id)
            parser = EventParser()
            while chunk := (yield from receive()):
                backoff.reset()
                for message in parser.feed(chunk):
                    event = _event(message)
                    last_id = message.id
                    if event is None or event == last_status:
                        continue  # of a kind unknown here, or told again to whoever resumes
                    if isinstance(event, StatusChanged):
                        last_status = event
                    yield Emit(event)
                    if isinstance(event, Finished):
                        return
            raise ConnectionLost("The server ended the stream before the execution had finished.")
        except ServerUnreachable as error:
            yield backoff.after(error)


def execution(execution_id: str) -> Call[Result]:
    """Look at an execution."""
    return Result((yield from get(f"/executions/{segment(execution_id)}", _execution)))


def wait(execution_id: str) -> Call[Result]:
    """Wait until an execution has finished."""
    return Result((yield from _finished((yield from execution(execution_id)).execution)))


def executions(session_id: str) -> Feed[Result]:
    """List a session's executions in order."""
    after: int | None = None
    while True:
        path = with_query(f"/sessions/{segment(session_id)}/executions", after=after)
        page = yield from get(path, _executions)
        for each in page.executions:
            yield Emit(Result(each))
        after = page.next_after
        if after is None:
            return


def cancel(execution_id: str) -> Call[None]:
    """Take back an execution that waits, or interrupt it if it runs."""
    check((yield from persistently(act(f"/executions/{segment(execution_id)}/cancel"))))


def review_execution(execution_id: str, review: SetReview) -> Call[Result]:
    """Say what to think of an execution."""
    path = f"/executions/{segment(execution_id)}/review"
    return read_result((yield from send(send_model("PUT", path, review))))


def review_session(session_id: str, review: SetReview) -> Call[Session]:
    """Say what to think of all that a session has run."""
    path = f"/sessions/{segment(session_id)}/review"
    return read((yield from send(send_model("PUT", path, review))), _session)


def text(execution_id: str, offset: int, limit: int | None) -> Call[Text]:
    """Read a range of an execution's whole text."""
    path = f"/executions/{segment(execution_id)}/text"
    return (yield from get(with_query(path, offset=offset, limit=limit), _text))


def grep(execution_id: str, pattern: str, offset: int) -> Call[TextMatches]:
    """Find the lines of an execution's whole text that match."""
    path = f"/executions/{segment(execution_id)}/text"
    return (yield from get(with_query(path, grep=pattern, offset=offset), _matches))


def search(q: str, limit: int | None, **filters: str | bool | None) -> Feed[SearchHit]:
    """Search the history, the newest first; `limit` bounds how many hits are told."""
    after: str | None = None
    left = math.inf if limit is None else limit
    while left > 0:
        page_size = None if left == math.inf else min(int(left), 100)
        path = with_query("/search", q=q, after=after, limit=page_size, **filters)
        page = yield from get(path, _hits)
        for hit in page.hits[: None if left == math.inf else int(left)]:
            yield Emit(hit)
        left -= len(page.hits)
        after = page.next_after
        if after is None:
            return


def export(session_id: str, *, clean: bool) -> Feed[bytes]:
    """Tell a session's notebook, piece by piece."""
    path = f"/sessions/{segment(session_id)}/notebook"
    return _download(with_query(path, clean=True) if clean else path)


def journal(session_id: str) -> Feed[bytes]:
    """Tell a session's journal, piece by piece."""
    return _download(f"/sessions/{segment(session_id)}/journal")


def _download(path: str) -> Feed[bytes]:
    reply = yield from send(Send("GET", f"{API}{path}", streamed=True))
    check(reply)
    while chunk := (yield from receive()):
        yield Emit(chunk)


def notebook(content: bytes) -> dict[str, Any]:
    """Read a notebook that was downloaded."""
    return read(Reply(200, content), _anything)


def read_result(reply: Reply) -> Result:
    """Read an answer that is an execution."""
    return Result(read(reply, _execution))


# -- parts -----------------------------------------------------------------------------------------


def _execute(session_id: str, execute: Execute, key: str | None, wait: float) -> Call[Execution]:
    request = send_model(
        "POST",
        f"/sessions/{segment(session_id)}/executions",
        msgspec.structs.replace(execute, wait=wait),
        headers=((b"Idempotency-Key", _header_value(key or uuid4().hex)),),
        read_timeout=wait + ANSWER_SECONDS,
    )
    return read((yield from persistently(request)), _execution)


def _finished(current: Execution, *, until_input: bool = False) -> Call[Execution]:
    is_told = False
    while current.status not in FINAL_STATUSES:
        is_told = is_told or tell_what_it_needs(current) is not None
        asked = current.input
        if until_input and asked is not None:
            break
        path = with_query(
            f"/executions/{current.id}",
            wait=f"{WAIT_SECONDS:g}",
            asked_at=None if asked is None else asked.asked_at,
        )
        current = yield from get(path, _execution, read_timeout=WAIT_SECONDS + ANSWER_SECONDS)
    return current


def tell_what_it_needs(current: Execution) -> str | None:
    """Say on standard error what a person has to do first; return that, or None for nothing.

    Nothing else would show why a program stands still, perhaps for hours.
    """
    who = None if current.waiting_for is None else current.waiting_for.who
    if current.status == "awaiting_approval":
        needs = f"your approval: see JupyterLab, or `jupyter agent-exec approve {current.id}`"
    elif who == "approval":
        needs = "your approval of code before it: see JupyterLab, or `jupyter agent-exec pending`"
    elif who == "pause":
        needs = "you to let agents go on: see JupyterLab, or `jupyter agent-exec resume`"
    else:
        return None
    sys.stderr.write(f"jupyter-agent-exec: execution {current.id} waits for {needs}.\n")
    sys.stderr.flush()
    return needs


def _open_stream(execution_id: str, last_id: str) -> Call[None]:
    headers = ((b"Last-Event-ID", last_id.encode()),) if last_id else ()
    path = f"{API}/executions/{segment(execution_id)}/stream"
    check((yield from send(Send("GET", path, headers=headers, streamed=True))))


def _event(message: Any) -> Event | None:
    try:
        return read_event(message)
    except msgspec.DecodeError as error:
        raise UnexpectedAnswer(
            f"The stream brought a {message.event!r} event that is unknown here: {error}", 200
        ) from error


def _header_value(key: str) -> bytes:
    if not key.isprintable() or not key.isascii():
        raise InvalidRequest("An idempotency key is printable ASCII.", field="Idempotency-Key")
    return key.encode()
