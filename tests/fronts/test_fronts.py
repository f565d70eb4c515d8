"""What is promised, kept on each way to a server: one table in place of one for each way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fronts.drivers import FRONTS, Front, Refused, Rest
from tests.real_server import Gate, RealServer, gate, real_server

__all__ = ["gate"]

NO_SESSION = "s_01M7YV88M6B2S4MB720J9M2Z7H"
STOPPED = "KeyboardInterrupt"
NO_EXECUTION = "x_01M7YV88M6B2S4MB720J9M2Z7H"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def rest(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with ExitStack() as stack:
        yield Rest(server, tmp_path_factory.mktemp("rest"), stack)


@pytest.fixture(params=FRONTS)
def front(request: pytest.FixtureRequest, server: RealServer, tmp_path: Path) -> Iterator[Front]:
    with ExitStack() as stack:
        yield FRONTS[request.param](server, tmp_path, stack)


@pytest.fixture(scope="module")
def session(rest: Rest) -> Iterator[str]:
    session_id = rest.open()
    yield session_id
    rest.close(session_id)


@pytest.mark.parametrize(
    ("source", "asked", "status", "text", "ename"),
    [
        ("print('a')\n40 + 2", {}, "ok", "a\n42", None),
        ("print('a')\n{}['x']", {}, "error", "a\n", "KeyError"),
        ("raise KeyboardInterrupt", {}, "error", "", "KeyboardInterrupt"),
        ("print('a'); import time; time.sleep(600)", {"timeout": 1}, "timed_out", "a\n", STOPPED),
        ("import os; os._exit(3)", {}, "kernel_died", "", None),
    ],
)
def test_a_status_says_how_code_ended(
    front: Front,
    session: str,
    source: str,
    asked: dict[str, Any],
    status: str,
    text: str,
    ename: str | None,
) -> None:
    told = front.run(session, source, **asked)
    assert (told.status, told.ename) == (status, ename)
    assert told.text.startswith(text)
    assert "\x1b" not in told.text
    assert front.read(told.id)[:2] == told[:2]


def test_a_restarted_kernel_knows_no_variable(front: Front, session: str) -> None:
    front.run(session, "x = 1")
    front.restart(session)
    assert front.run(session, "x").ename == "NameError"


def test_a_running_execution_is_stopped_once(
    front: Front, rest: Rest, session: str, gate: Gate
) -> None:
    id = rest.run(session, gate.source, wait=0).id
    gate.wait_until_it_runs()
    front.stop(id)
    assert rest.ask("GET", f"executions/{id}?wait=60")["status"] == "interrupted"
    with pytest.raises(Refused) as refused:
        front.stop(id)
    assert message_of(rest, "stop", id) in str(refused.value)


@pytest.mark.parametrize(
    "front", [name for name in FRONTS if name != "command line"], indirect=True
)
def test_code_with_the_same_key_runs_once(front: Front, rest: Rest) -> None:
    session = front.open()
    source = "n = globals().get('n', 0) + 1\nprint(n)"
    first = front.run(session, source, idempotency_key="once")
    again = front.run(session, source, idempotency_key="once")
    assert (again.id, again.text) == (first.id, first.text)
    with pytest.raises(Refused) as refused:
        front.run(session, "2", idempotency_key="once")
    assert message_of(rest, "run", session, "2", idempotency_key="once") in str(refused.value)


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("run", (NO_SESSION, "1")),
        ("restart", (NO_SESSION,)),
        ("close", (NO_SESSION,)),
        ("read", (NO_EXECUTION,)),
        ("stop", (NO_EXECUTION,)),
        ("open", ("no-such-kernel",)),
    ],
)
def test_what_is_not_there_is_refused_in_the_servers_words(
    front: Front, rest: Rest, method: str, given: tuple[str, ...]
) -> None:
    with pytest.raises(Refused) as refused:
        getattr(front, method)(*given)
    assert message_of(rest, method, *given) in str(refused.value)


def test_a_closed_session_runs_nothing(front: Front, rest: Rest) -> None:
    session = front.open()
    front.close(session)
    with pytest.raises(Refused) as refused:
        front.run(session, "1")
    assert message_of(rest, "run", session, "1") in str(refused.value)


@pytest.mark.parametrize("name", FRONTS)
def test_a_token_without_the_scope_opens_nothing(
    name: str, server: RealServer, rest: Rest, tmp_path: Path
) -> None:
    minted = rest.ask("POST", "tokens", {"label": "reader", "scopes": ["history:read:all"]})
    before = rest.ask("GET", "sessions")
    with ExitStack() as stack:
        reader = FRONTS[name](server._replace(token=minted["secret"]), tmp_path, stack)
        with pytest.raises(Refused, match="it needs the scope exec:scratch"):
            reader.open()
    assert rest.ask("GET", "sessions") == before


def message_of(rest: Rest, method: str, *given: str, **asked: Any) -> str:
    """Return how the server refuses a request."""
    with pytest.raises(Refused) as refused:
        getattr(rest, method)(*given, **asked)
    return str(refused.value)
