"""What is refused, in which words, and what that leaves behind: nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.aca.manager import MOST_LISTED
from tests.aca.dynamic_asking import DynamicSession, form
from tests.asking import Agent, Send
from tests.auth.minting import TokenAgent, bearer, mint
from tests.sessions.living_notebook import Desk, notebook_target

SessionOf = Callable[..., DynamicSession]

INLINE = {"codeInputType": "inline", "executionType": "synchronous"}


@pytest.fixture
def sessions(history_dir: Path) -> Callable[[], list[Path]]:
    """Return the sessions that are recorded."""
    return lambda: sorted((history_dir / "sessions").glob("*"))


BAD_PROPERTIES: list[tuple[object, str]] = [
    ({}, "properties.code"),
    (1, "properties"),
    ({"code": 1}, "properties.code"),
    ({"code": "1", "codeInputType": "url"}, "properties.codeInputType"),
    ({"code": "1", "executionType": "asynchronous"}, "properties.executionType"),
    ({"code": "1", "timeoutInSeconds": 0}, "properties.timeoutInSeconds"),
    ({"code": "1", "timeoutInSeconds": "soon"}, "properties.timeoutInSeconds"),
    ({"code": "1", "timeoutInSeconds": 61}, "properties.timeoutInSeconds"),
    ({"code": "1", "other": 1}, "properties.other"),
]


@pytest.mark.parametrize("agent_exec_config", [{"max_timeout": 60}])
async def test_bad_input_is_refused_by_its_field(
    session_of: SessionOf,
    sessions: Callable[[], list[Path]],
    agent_exec_config: dict[str, Any],
) -> None:
    for properties, field in BAD_PROPERTIES:
        refused = await session_of().post_code(properties)
        assert (refused.status, refused.json["code"]) == (400, "invalid_request"), properties
        assert refused.json["detail"]["field"] == field, properties
        assert field in refused.json["message"]
        assert sessions() == []


async def test_a_session_has_to_be_named(
    ask: Send, jp_auth_header: dict[str, str], sessions: Callable[[], list[Path]]
) -> None:
    code = json.dumps({"properties": {"code": "1"}})
    queries = (
        ({}, "identifier"),
        ({"identifier": ""}, "identifier"),
        ({"identifier": "x" * 129}, "identifier"),
        ({"identifier": "one", "other": "1"}, "other"),
    )
    routes = (
        ("POST", "aca/code/execute"),
        ("POST", "aca/files/upload"),
        ("GET", "aca/files"),
        ("GET", "aca/files/content/a.txt"),
    )
    for (query, field), (method, route) in product(queries, routes):
        body = code if method == "POST" else None
        refused = await ask(method, route, headers=jp_auth_header, query=query, body=body)
        assert (refused.status, refused.json["detail"]["field"]) == (400, field), (route, query)
    assert sessions() == []


async def test_a_file_that_may_not_be_there_is_refused(session_of: SessionOf) -> None:
    session = session_of()
    for filename, status in (
        ("..", 400),
        ("../up.txt", 400),
        ("%2Fetc%2Fpasswd", 400),
        ("a/b.txt", 400),
        ("a%00.txt", 400),
        ("x" * 256, 400),
        (".hidden", 403),
        ("work.ipynb", 403),
    ):
        refused = await session.upload(b"data", filename)
        assert refused.status == status, (filename, refused.body)
        assert await session.names() == []


async def test_what_is_no_form_with_one_file_is_refused(
    session_of: SessionOf, ask: Send, jp_auth_header: dict[str, str], sessions: Any
) -> None:
    session = session_of()
    answers = [await session.upload(b"data", "a.txt", field="other")]
    answers.append(await session.upload(b"data", ""))
    two = "".join(form(b"data", name)[1].replace("--edge--\r\n", "") for name in ("a", "b"))
    for content_type, body in (
        ("multipart/form-data; boundary=edge", f"{two}--edge--\r\n"),
        ("application/octet-stream", "data"),
        ("application/x-www-form-urlencoded", "file=data"),
    ):
        headers = {**jp_auth_header, "Content-Type": content_type}
        answers.append(
            await ask("POST", "aca/files/upload", headers=headers, query=session.query, body=body)
        )
    for refused in answers:
        assert (refused.status, refused.json["detail"]) == (400, {"field": "file"})
    assert sessions() == []


@pytest.mark.parametrize("agent_exec_config", [{"max_file_bytes": 1000}])
async def test_a_file_over_the_limit_leaves_nothing(
    session_of: SessionOf, sessions: Any, agent_exec_config: dict[str, Any]
) -> None:
    session = session_of()
    refused = await session.upload(bytes(1001), "a.bin")
    assert (refused.status, refused.json["code"]) == (413, "payload_too_large")
    assert refused.json["detail"] == {"limit_bytes": 1000}
    assert sessions() == []
    assert (await session.upload(bytes(1000), "a.bin")).status == 200
    assert (await session.upload(bytes(1001), "a.bin")).status == 413
    assert len((await session.read("a.bin")).body) == 1000


async def test_more_files_than_are_listed_are_none_and_the_refusal_says_so(
    session_of: SessionOf,
) -> None:
    session = session_of()
    await session.run(f"for i in range({MOST_LISTED}): open(f'{{i:05}}', 'w').close()")
    assert len(await session.names()) == MOST_LISTED
    await session.run("open('one-more', 'w').close()")
    refused = await session.list()
    assert (refused.status, refused.json["code"]) == (400, "invalid_request")
    assert refused.json["detail"] == {"field": "identifier", "limit": MOST_LISTED}
    assert (await session.read("one-more")).status == 200


@pytest.mark.parametrize("agent_exec_config", [{"max_body_bytes": 1000}])
async def test_code_over_the_limit_is_refused(
    session_of: SessionOf, sessions: Any, agent_exec_config: dict[str, Any]
) -> None:
    refused = await session_of().execute("#" * 1000)
    assert (refused.status, refused.json["detail"]) == (413, {"limit_bytes": 1000})
    assert sessions() == []


async def test_what_is_outside_is_not_there(
    session_of: SessionOf, ask: Send, jp_auth_header: dict[str, str]
) -> None:
    session = session_of()
    await session.run("open('.hidden', 'w').close()")
    for name in ("..%2F..%2Fetc%2Fpasswd", "%2e%2e", ".hidden", "no-such", "a%2Fb"):
        route = f"aca/files/content/{name}"
        refused = await ask("GET", route, headers=jp_auth_header, query=session.query)
        assert (refused.status, refused.json["code"]) == (404, "file_not_found"), name


async def test_a_link_out_of_the_folder_is_not_followed(
    session_of: SessionOf, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    session = session_of()
    await session.run(f"import os; os.symlink({str(tmp_path / 'secret')!r}, 'link')")
    assert (await session.read("link")).status == 404
    assert (await session.upload(b"data", "link")).status == 403
    assert (tmp_path / "secret").read_text() == "secret"


async def test_a_token_needs_the_scopes(session_of: SessionOf, agent: Agent) -> None:
    for scopes, runs, files in (
        (["exec:scratch"], 200, 403),
        (["files"], 403, 403),
        (["exec:notebook"], 403, 403),
        (["exec:scratch", "files"], 200, 200),
    ):
        session = session_of("one", bearer((await mint(agent, *scopes))[1]))
        answers = [
            await session.execute("1"),
            await session.upload(b"", "a.txt"),
            await session.list(),
            await session.read("a.txt"),
        ]
        assert [answer.status for answer in answers] == [runs, files, files, files], scopes
        for refused in answers:
            if refused.status == 403:
                assert refused.json["code"] == "forbidden"


async def test_the_files_beside_a_notebook_are_no_dynamic_sessions(
    session_of: SessionOf, agent: Agent, ask: Send, desk: Desk
) -> None:
    await desk.opens("reports/a.ipynb")
    desk.writes("private/b.ipynb")
    (desk.root / "private" / "secret.txt").write_text("secret")
    _, token = await mint(agent, "files", "exec:scratch", "exec:notebook:reports/**")
    opened = await TokenAgent(ask, token).open(
        client_id="aca:one", target=notebook_target("reports/a.ipynb")
    )
    session = session_of("one", bearer(token))
    assert await session.names() == []
    await desk.ask("PATCH", "contents/reports/a.ipynb", {"path": "private/a.ipynb"})
    while (await agent.get(f"sessions/{opened['id']}")).json["path"] != "private/a.ipynb":
        pass
    assert await session.names() == []
    assert (await session.read("secret.txt")).status == 404


async def test_caps_and_limits_of_a_token_hold(session_of: SessionOf, agent: Agent) -> None:
    caps = {"kernels": 1, "executions_per_minute": 2, "wall_seconds": 5}
    shown = bearer((await mint(agent, "exec:scratch", caps=caps))[1])
    session = session_of("one", shown)
    refused = await session.execute("1", timeoutInSeconds=6)
    assert refused.json["detail"]["field"] == "properties.timeoutInSeconds"
    assert (await session.execute("1")).status == 200
    assert (await session_of("another", shown).execute("1")).status == 429
    assert (await session.execute("1")).status == 200
    limited = await session.execute("1")
    assert (limited.status, limited.json["code"]) == (429, "too_many_requests")
    assert "Retry-After" in limited.headers


async def test_a_persons_own_token_is_taken_as_bearer_too(
    session_of: SessionOf, jp_serverapp: Any
) -> None:
    token = jp_serverapp.identity_provider.token
    assert (await session_of("one", bearer(token)).run("1"))["result"] == "1"
    for shown in ({}, bearer("eyJ.of.azure")):
        refused = await session_of("one", {"Accept": "*/*", **shown}).execute("1")
        assert (refused.status, refused.json["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("agent_exec_config", [{"allow_full_access": False}])
async def test_an_operator_may_want_an_agent_token(
    session_of: SessionOf, agent: Agent, agent_exec_config: dict[str, Any]
) -> None:
    session = session_of()
    assert (await session.execute("1")).status == 403
    assert (await session.upload(b"", "a.txt")).status == 403


async def test_no_answer_has_a_cookie(ask: Send, agent: Agent) -> None:
    token = (await mint(agent, "exec:scratch", "files"))[1]
    session = DynamicSession(ask, bearer(token), "one")
    answers = [
        await session.post_code({"code": "1"}),
        await session.post_code({"code": "1/0"}),
        await session.post_code({}),
        await session.upload(b"", "a.txt"),
        await session.list(),
        await session.read("a.txt"),
    ]
    assert [answer.headers.get_list("Set-Cookie") for answer in answers] == [[]] * len(answers)
