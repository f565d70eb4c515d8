"""What cannot be understood or is not allowed is refused by name, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.asking import Agent, Answered, Send
from tests.on_disk import record_bytes

AGENT = {"name": "tester"}
SESSION = "s_01JD0000000000000000000000"
EXECUTION = "x_01JD0000000000000000000000"


def opening(**asked: Any) -> dict[str, Any]:
    return {"agent": AGENT, **asked}


def scratch(**target: Any) -> dict[str, Any]:
    return opening(target={"kind": "scratch", **target})


BODIES: list[tuple[str | bytes, str | None]] = [
    (b"", "source"),
    (b"{", None),
    (b"source=1", None),
    (b"[1]", None),
    (b"null", None),
    (b'"print(1)"', None),
    (b'{"source": "1"} {}', None),
    (b"\xff\xfe", None),
    (b'{"source": "\xed\xa0\x80"}', "source"),
    ('{"source": "\\ud800"}', "source"),
    ('{"source": "1", "\\ud800": 1}', None),
    ('{"source": "1", "timeout": NaN}', "timeout"),
    ('{"source": "1", "timeout": Infinity}', "timeout"),
    ('{"source": "1", "timeout": 1e999}', "timeout"),
    ('{"source": ' + "[" * 100_000, None),
    ('{"source": "1", "values": {"a": ' + "[" * 600 + "]" * 600 + "}}", "values.a"),
    ('{"source": "1", "source": "2"}', "source"),
    ('{"source": NaN, "source": ' + "[" * 600 + "]" * 600 + "}", "source"),
    ('{"source": "' + '\\"' * 1_000 + "[" * 101, None),
]
"""Bodies of an execution that are no JSON, or not ours, with the field that is told."""

EXECUTIONS: list[tuple[dict[str, Any], str]] = [
    ({}, "source"),
    ({"source": None}, "source"),
    ({"source": 1}, "source"),
    ({"source": ["1"]}, "source"),
    ({"source": "1", "code": 1}, "code"),
    ({"source": "1", "timeout": 0}, "timeout"),
    ({"source": "1", "timeout": -1}, "timeout"),
    ({"source": "1", "timeout": 1e9}, "timeout"),
    ({"source": "1", "timeout": 61}, "timeout"),
    ({"source": "1", "timeout": "1"}, "timeout"),
    ({"source": "1", "timeout": True}, "timeout"),
    ({"source": "1", "values": {"": "1"}}, "values"),
    ({"source": "1", "queue_timeout": 0}, "queue_timeout"),
    ({"source": "1", "wait": -0.1}, "wait"),
    ({"source": "1", "wait": 3601}, "wait"),
    ({"source": "1", "max_output_bytes": 999}, "max_output_bytes"),
    ({"source": "1", "max_output_bytes": 1000.5}, "max_output_bytes"),
    ({"source": "1", "max_output_bytes": 10**30}, "max_output_bytes"),
]

OPENINGS: list[tuple[dict[str, Any], str]] = [
    ({}, "agent"),
    ({"agent": "tester"}, "agent"),
    ({"agent": {}}, "agent.name"),
    ({"agent": {"name": ""}}, "agent.name"),
    ({"agent": {"name": "x" * 201}}, "agent.name"),
    ({"agent": {"name": "a", "colour": 1}}, "agent.colour"),
    (opening(subject="x"), "subject"),
    (opening(title="x" * 501), "title"),
    (opening(client_id=""), "client_id"),
    (opening(init_source=1), "init_source"),
    (opening(target="scratch"), "target"),
    (opening(target={"kind": "cluster"}), "target.kind"),
    (opening(target={"cwd": "work"}), "target.kind"),
    (scratch(kernel_name=""), "target.kernel_name"),
    (scratch(foo=1), "target.foo"),
    (scratch(env={"A": 1}), "target.env"),
    (scratch(env={"1A": "x"}), "target.env"),
    (scratch(env={"PATH": "/"}), "target.env"),
    (scratch(env={"ALLOWED": "1", "LD_PRELOAD": "x"}), "target.env"),
    (scratch(cwd="missing"), "target.cwd"),
    (scratch(cwd="file.txt"), "target.cwd"),
    (scratch(cwd=".hidden"), "target.cwd"),
    (scratch(cwd=".."), "target.cwd"),
    (scratch(cwd="folder/../.."), "target.cwd"),
    (scratch(cwd="../outside"), "target.cwd"),
    (scratch(cwd="folder\x00"), "target.cwd"),
    (scratch(cwd="x" * 4097), "target.cwd"),
    (scratch(cwd="x" * 300), "target.cwd"),
    (scratch(cwd="x/" * 2048), "target.cwd"),
    (opening(limits={"timeout": 0}), "limits.timeout"),
    (opening(limits={"timeout": 61}), "limits.timeout"),
    (opening(limits={"queue_timeout": -1}), "limits.queue_timeout"),
    (opening(limits={"max_output_bytes": 1}), "limits.max_output_bytes"),
    (opening(limits={"max_output_bytes": 10**9}), "limits.max_output_bytes"),
    (opening(limits={"restart_if_interrupt_ignored": 1}), "limits.restart_if_interrupt_ignored"),
    (opening(limits={"timeouts": 1}), "limits.timeouts"),
]

QUERIES: list[tuple[str, dict[str, str], str]] = [
    ("sessions", {"limit": "0"}, "limit"),
    ("sessions", {"limit": "501"}, "limit"),
    ("sessions", {"limit": "ten"}, "limit"),
    ("sessions", {"limit": ""}, "limit"),
    ("sessions", {"status": "opened"}, "status"),
    ("sessions", {"state": "open"}, "state"),
    ("sessions", {"target": "moon"}, "target"),
    ("sessions", {"since": "yesterday"}, "since"),
    ("sessions", {"until": "2026-13-01"}, "until"),
    ("sessions", {"unreviewed": "perhaps"}, "unreviewed"),
    ("sessions", {"after": "ajar:s_01JD0000000000000000000000"}, "after"),
    ("status", {"verbose": "1"}, "verbose"),
    ("sessions/{session}", {"full": "1"}, "full"),
    ("sessions/{session}/executions", {"after": "-1"}, "after"),
    ("sessions/{session}/executions", {"before": "0"}, "before"),
    ("sessions/{session}/executions", {"after": "1", "before": "2"}, "before"),
    ("sessions/{session}/executions", {"after": "1.5"}, "after"),
    ("sessions/{session}/executions", {"after": str(2**63)}, "after"),
    ("sessions/{session}/executions", {"outputs": "none"}, "outputs"),
    ("sessions/{session}/variables", {"limit": "0"}, "limit"),
    ("sessions/{session}/variables", {"sort": "name"}, "sort"),
    ("sessions/{session}/packages", {"limit": "10001"}, "limit"),
    ("sessions/{session}/packages", {"match": "x" * 201}, "match"),
    ("sessions/{session}/events", {"after": "-1"}, "after"),
    ("sessions/{session}/events", {"after": str(2**63)}, "after"),
    ("sessions/{session}/events", {"limit": "501"}, "limit"),
    ("executions/{execution}", {"wait": "-1"}, "wait"),
    ("executions/{execution}", {"wait": "3601"}, "wait"),
    ("executions/{execution}", {"wait": "nan"}, "wait"),
    ("executions/{execution}", {"wait": "soon"}, "wait"),
    ("executions/{execution}/text", {"offset": "-1"}, "offset"),
    ("executions/{execution}/text", {"limit": "1000001"}, "limit"),
    ("executions/{execution}/text", {"match": "x" * 201}, "match"),
    ("search", {"q": "x" * 1001}, "q"),
    ("search", {"status": "finished"}, "status"),
    ("search", {"since": "yesterday"}, "since"),
    ("search", {"since": "0001-01-01T00:00:00+14:00"}, "since"),
    ("search", {"until": "2026-13-01T00:00:00Z"}, "until"),
    ("search", {"has_image": "perhaps"}, "has_image"),
    ("search", {"review": "fine"}, "review"),
    ("search", {"target": "moon"}, "target"),
    ("images", {"review": "fine"}, "review"),
    ("images", {"q": "=="}, "q"),
    ("images", {"after": "x"}, "after"),
    ("images", {"limit": "0"}, "limit"),
    ("notebooks/a.ipynb/cells", {"outputs": "false", "text_limit": "100"}, "text_limit"),
    ("notebooks/a.ipynb/cells", {"text_limit": "99"}, "text_limit"),
    ("notebooks/a.ipynb/cells", {"outputs": "x"}, "outputs"),
    ("notebooks/a.ipynb/cells", {"x": "1"}, "x"),
]

IDS = [
    "nothing",
    SESSION.lower(),
    SESSION + "0",
    "..",
    "%2e%2e",
    "..%2f..%2fledger",
    "%00",
    "s_%20",
]


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"max_timeout": 60, "allowed_env": ["ALLOWED"], "max_body_bytes": 200_000}


@pytest.fixture
def folders(jp_root_dir: Path) -> None:
    (jp_root_dir / "folder").mkdir()
    (jp_root_dir / ".hidden").mkdir()
    (jp_root_dir / "file.txt").write_text("")
    (jp_root_dir.parent / "outside").mkdir()


@pytest.fixture
def untouched(agent: Agent, jp_serverapp: Any, history_dir: Path, folders: None) -> Any:
    """Give a session that has run something, and look whether it is untouched at the end."""

    @asynccontextmanager
    async def untouched() -> AsyncIterator[dict[str, str]]:
        session = await agent.open()
        done = await agent.run(session, "x = 1")
        await agent.settle(session)
        before = record_bytes(history_dir)
        kernels = (await agent.get("status")).json["kernels"]
        kernel_ids = set(jp_serverapp.kernel_manager.list_kernel_ids())
        yield {"session": session["id"], "execution": done["id"]}
        assert record_bytes(history_dir) == before
        assert (await agent.get("status")).json["kernels"] == kernels
        started = set(jp_serverapp.kernel_manager.list_kernel_ids()) - kernel_ids
        assert not started
        sessions = (await agent.get("sessions")).json["sessions"]
        assert [known["id"] for known in sessions] == [session["id"]]
        after = await agent.run(session, "x")
        assert (after["execution_count"], after["seq"]) == (2, 2)
        assert after["cell"]["outputs"][0]["data"]["text/plain"] == "1"

    return untouched


def fault(asked: object, answered: Answered, field: str | None, code: str, status: int) -> str:
    """Say what is wrong with a refusal; nothing if it is right."""
    expected = (status, code, field)
    if answered.status < 400:
        return f"{asked!r:.120}: was not refused"
    told = (answered.status, answered.json["code"], answered.json["detail"].get("field"))
    if told != expected:
        return f"{asked!r:.120}: {told} instead of {expected}; {answered.json['message']}"
    return ""


def none_of(faults: list[str]) -> None:
    found = [fault for fault in faults if fault]
    assert not found, "\n".join(found)


async def test_an_execution_that_cannot_be_understood_is_refused(
    agent: Agent, untouched: Any
) -> None:
    async with untouched() as known:
        path = f"sessions/{known['session']}/executions"
        none_of(
            [
                fault(body, await agent.ask("POST", path, body), field, "invalid_request", 400)
                for body, field in [*BODIES, *EXECUTIONS]
            ]
        )


async def test_a_session_that_cannot_be_understood_is_not_opened(
    agent: Agent, untouched: Any
) -> None:
    async with untouched():
        none_of(
            [
                fault(
                    body, await agent.ask("POST", "sessions", body), field, "invalid_request", 400
                )
                for body, field in OPENINGS
            ]
        )


async def test_an_unknown_kernel_name_is_told_with_those_that_are_known(
    agent: Agent, untouched: Any
) -> None:
    async with untouched():
        for name in ("python4", "../python3", "Python3 "):
            answered = await agent.ask("POST", "sessions", scratch(kernel_name=name))
            assert not fault(name, answered, "target.kernel_name", "kernel_name_not_found", 400)
            assert "python3" in answered.json["detail"]["allowed"]


async def test_a_query_that_cannot_be_understood_is_refused(agent: Agent, untouched: Any) -> None:
    async with untouched() as known:
        none_of(
            [
                fault(
                    (path, query),
                    await agent.ask("GET", path.format(**known), query=query),
                    field,
                    "invalid_request",
                    400,
                )
                for path, query, field in QUERIES
            ]
        )


@pytest.mark.parametrize("verb", ["close", "interrupt", "restart"])
async def test_an_action_takes_no_field_that_it_does_not_know(
    agent: Agent, untouched: Any, verb: str
) -> None:
    async with untouched() as known:
        path = f"sessions/{known['session']}/{verb}"
        for body, field in [('{"force": true}', "force"), ("[]", None), ("{", None)]:
            refused = await agent.ask("POST", path, body)
            assert not fault(body, refused, field, "invalid_request", 400)


async def test_ids_that_nobody_has_are_not_found_whatever_they_try(
    ask: Send, jp_auth_header: dict[str, str], untouched: Any
) -> None:
    routes = [
        ("GET", "sessions/{}", "session_not_found"),
        ("GET", "sessions/{}/executions", "session_not_found"),
        ("GET", "sessions/{}/notebook", "session_not_found"),
        ("GET", "sessions/{}/journal", "session_not_found"),
        ("GET", "sessions/{}/variables", "session_not_found"),
        ("POST", "sessions/{}/executions", "session_not_found"),
        ("POST", "sessions/{}/close", "session_not_found"),
        ("POST", "sessions/{}/interrupt", "session_not_found"),
        ("POST", "sessions/{}/restart", "session_not_found"),
        ("GET", "executions/{}", "execution_not_found"),
        ("GET", "executions/{}/stream", "execution_not_found"),
        ("GET", "executions/{}/text", "execution_not_found"),
        ("POST", "executions/{}/cancel", "execution_not_found"),
        ("GET", "blobs/{}", "blob_not_found"),
    ]
    wrong: list[str] = []
    async with untouched():
        for method, path, code in routes:
            body = '{"source": "1"}' if path.endswith("executions") else "{}"
            for id in [*IDS, SESSION, EXECUTION, "0" * 64]:
                answered = await ask(
                    method,
                    path.format(id),
                    headers=jp_auth_header,
                    body=body if method == "POST" else None,
                )
                told = (answered.status, answered.json["code"])
                if told != (404, code):
                    wrong.append(f"{method} {path.format(id)}: {told}")
    assert not wrong, "\n".join(wrong)


async def test_a_body_over_its_limit_is_refused(agent: Agent, untouched: Any) -> None:
    async with untouched() as known:
        path = f"sessions/{known['session']}/executions"
        body = json.dumps({"source": "#" * 200_000})
        refused = await agent.ask("POST", path, body)
        assert (refused.status, refused.json["code"]) == (413, "payload_too_large")
        assert refused.json["detail"] == {"limit_bytes": 200_000}


async def test_a_body_up_to_its_limit_is_taken(agent: Agent) -> None:
    session = await agent.open()
    room = 200_000 - len(json.dumps({"source": ""}))
    done = await agent.run(session, "#" * room)
    assert (done["status"], len(done["source"])) == ("ok", room)


@pytest.mark.parametrize("key", ["", "k" * 201])
async def test_a_key_that_is_none_is_refused(agent: Agent, untouched: Any, key: str) -> None:
    async with untouched() as known:
        path = f"sessions/{known['session']}/executions"
        refused = await agent.ask("POST", path, {"source": "1"}, headers={"Idempotency-Key": key})
        assert not fault(key, refused, "Idempotency-Key", "invalid_request", 400)


async def test_the_same_key_with_another_body_is_refused_and_tells_whose_it_is(
    agent: Agent, history_dir: Path
) -> None:
    session = await agent.open()
    path, key = f"sessions/{session['id']}/executions", {"Idempotency-Key": "step-1"}
    first = await agent.ask("POST", path, {"source": "x = 1"}, headers=key)
    await agent.settle(session)
    before = record_bytes(history_dir)
    for same in ({"source": "x = 1"}, {"source": "x = 1", "wait": 0.5}):
        again = await agent.ask("POST", path, same, headers=key)
        assert (again.status, again.json["id"]) == (201, first.json["id"])
    for other in ({"source": "x = 2"}, {"source": "x = 1", "timeout": 3}):
        refused = await agent.ask("POST", path, other, headers=key)
        assert not fault(other, refused, "Idempotency-Key", "idempotency_conflict", 422)
        assert refused.json["detail"]["execution_id"] == first.json["id"]
    assert record_bytes(history_dir) == before
    assert (await agent.run(session, "x"))["text"].strip() == "1"


async def test_a_closed_session_takes_nothing_and_its_record_stays_as_it_is(
    agent: Agent, history_dir: Path
) -> None:
    session = await agent.open()
    done = await agent.run(session, "1")
    await agent.ask("POST", f"sessions/{session['id']}/close")
    before = record_bytes(history_dir)
    for path, body in [("executions", {"source": "1"}), ("interrupt", {}), ("restart", {})]:
        refused = await agent.ask("POST", f"sessions/{session['id']}/{path}", body)
        assert (refused.status, refused.json["code"]) == (409, "session_closed")
    refused = await agent.get(f"sessions/{session['id']}/variables")
    assert (refused.status, refused.json["code"]) == (409, "session_closed")
    assert (await agent.ask("POST", f"sessions/{session['id']}/close")).status == 200
    refused = await agent.ask("POST", f"executions/{done['id']}/cancel")
    assert (refused.status, refused.json["code"]) == (409, "already_finished")
    assert record_bytes(history_dir) == before
