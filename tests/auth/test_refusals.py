"""What a refusal looks like, and what is said to other origins."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from tornado import web
from tornado.simple_httpclient import HTTPStreamClosedError

from jupyter_agent_exec.app import AgentExecApp
from jupyter_agent_exec.auth.handler import AgentExecHandler
from jupyter_agent_exec.auth.operations import operations, requires
from tests.asking import NAMESPACE, Send
from tests.auth.access_asking import NOWHERE, VERBS

LAB = "https://lab.example"
PREFLIGHT = {"Origin": LAB, "Access-Control-Request-Method": "POST"}


class BreakingHandler(AgentExecHandler):
    """Answers half of what it should."""

    @web.authenticated
    @requires("history:read", answers={200: "text/plain"})
    async def get(self) -> None:
        self.write(b"half of it")
        await self.flush()
        raise RuntimeError("the disk is 50% gone")


@pytest.fixture
def allow_origin() -> dict[str, Any]:
    """What the operator says of other origins; tests override this."""
    return {}


@pytest.fixture
def jp_server_config(
    jp_server_config: dict[str, Any], allow_origin: dict[str, Any]
) -> dict[str, Any]:
    jp_server_config["ServerApp"].update(allow_origin)
    return jp_server_config


async def test_an_unknown_path_is_reported_only_to_known_callers(
    ask: Send, jp_auth_header: dict[str, str]
) -> None:
    paths = ("", "nowhere", "sessions/", "sessions/a/b", "Status", "..%2fkernels", "100%25%20%25s")
    for method, path in itertools.product(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"), paths):
        body = "{}" if method in ("POST", "PUT", "PATCH") else None
        unknown = await ask(method, path, body=body)
        assert unknown.status == 401, (method, path)
        answered = await ask(method, path, headers=jp_auth_header, body=body)
        assert answered.status == 404, (method, path)
        assert answered.headers["Content-Type"] == "application/json"
        if method != "HEAD":
            assert answered.json["code"] == "not_found"
            assert f"{NAMESPACE}/{path} here" in answered.json["message"]


async def test_a_verb_that_a_route_has_not_is_told_with_those_it_has(
    ask: Send, jp_auth_header: dict[str, str]
) -> None:
    verbs_of: dict[str, set[str]] = {}
    for template, handler in AgentExecApp.routes:
        path = template.lstrip("/").format(**NOWHERE)
        verbs_of[path] = {"OPTIONS", *map(str.upper, operations(handler))}
    for path, verbs in verbs_of.items():
        for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "BREW"} - verbs:
            body = "{}" if method in ("POST", "PUT", "PATCH") else None
            answered = await ask(method, path, headers=jp_auth_header, body=body)
            assert answered.status == 405, (method, path)
            assert answered.headers["Allow"] == ", ".join(sorted(verbs))
            assert answered.headers["Content-Type"] == "application/json"
            if method != "HEAD":
                assert answered.json["code"] == "method_not_allowed"
                assert answered.json["detail"] == {"allowed": sorted(verbs)}


async def test_a_percent_sign_stays_what_it_is(ask: Send, jp_auth_header: dict[str, str]) -> None:
    answered = await ask("GET", "sessions/100%25%20full%25s", headers=jp_auth_header)
    assert answered.json["code"] == "session_not_found"
    assert answered.json["detail"] == {"session_id": "100% full%s"}
    name = "100% %s %(x)d %"
    refused = await ask(
        "POST",
        "sessions",
        headers=jp_auth_header,
        body=json.dumps(
            {"agent": {"name": "a"}, "target": {"kind": "scratch", "kernel_name": name}}
        ),
    )
    assert refused.json["code"] == "kernel_name_not_found"
    assert name in refused.json["message"]


async def test_an_address_that_is_no_text_is_refused(
    ask: Send, jp_auth_header: dict[str, str]
) -> None:
    for path in ("sessions/%ff", "sessions?agent=%ff", "search?q=%ed%a0%80"):
        answered = await ask("GET", path, headers=jp_auth_header)
        assert (answered.status, answered.json["code"]) == (400, "invalid_request"), path
        assert answered.json["detail"] == {"field": None}


async def test_a_body_that_is_no_form_is_refused_as_that(
    ask: Send, jp_auth_header: dict[str, str]
) -> None:
    form = {"Content-Type": "multipart/form-data", **jp_auth_header}  # without a boundary
    answered = await ask("POST", "sessions", headers=form, body="a=b")
    assert (answered.status, answered.json["code"]) == (400, "invalid_request")
    assert "UTF-8" not in answered.json["message"]


async def test_an_answer_that_breaks_midway_does_not_look_complete(
    send: Send,
    jp_web_app: Any,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = f"{jp_base_url}breaking"

    async def decided() -> None:
        """Have read the user's decisions, as there are none."""

    given = {"services": {"body_limit": 1000, "refresh_decisions": decided}, "route": "breaking"}
    jp_web_app.add_handlers(".*$", [(path, BreakingHandler, given)])
    with pytest.raises(HTTPStreamClosedError):
        await send("GET", "breaking", headers=jp_auth_header)
    assert "the disk is 50% gone" in caplog.text


async def test_other_origins_are_told_nothing_when_the_operator_names_none(
    ask: Send, jp_auth_header: dict[str, str]
) -> None:
    for verb in VERBS:
        for answered in (
            await ask("OPTIONS", verb.path, headers=PREFLIGHT),
            await ask("GET", verb.path, headers={"Origin": LAB}),
            await ask("GET", verb.path, headers={"Origin": LAB, **jp_auth_header}),
        ):
            assert not [name for name in answered.headers if name.startswith("Access-Control")]


@pytest.mark.parametrize(
    ("allow_origin", "told"),
    [
        ({"allow_origin": LAB}, LAB),
        ({"allow_origin": "*"}, "*"),
        ({"allow_origin_pat": r"https://.*\.example"}, LAB),
        ({"allow_origin": LAB, "allow_credentials": True}, LAB),
    ],
)
async def test_an_origin_that_the_operator_names_may_ask_and_read_refusals_too(
    ask: Send, jp_auth_header: dict[str, str], allow_origin: dict[str, Any], told: str
) -> None:
    preflight = await ask("OPTIONS", "sessions", headers=PREFLIGHT)
    assert preflight.status == 204
    assert preflight.body == b""
    assert preflight.headers["Access-Control-Allow-Origin"] == told
    assert preflight.headers["Access-Control-Allow-Methods"] == "GET, OPTIONS, POST"
    assert "Idempotency-Key" in preflight.headers["Access-Control-Allow-Headers"].split(", ")
    seen = await ask("GET", "sessions", headers={"Origin": LAB, **jp_auth_header})
    refused = await ask("GET", "sessions", headers={"Origin": LAB})
    assert (seen.status, refused.status) == (200, 401)
    for answered in (seen, refused):
        assert answered.headers["Access-Control-Allow-Origin"] == told
        credentials = answered.headers.get("Access-Control-Allow-Credentials")
        assert credentials == ("true" if "allow_credentials" in allow_origin else None)


@pytest.mark.parametrize("allow_origin", [{"allow_origin": LAB}])
async def test_an_origin_that_the_operator_names_may_send_all_headers_that_routes_read(
    ask: Send, allow_origin: dict[str, Any]
) -> None:
    for template, handler in AgentExecApp.routes:
        path = template.lstrip("/").format(**NOWHERE)
        preflight = await ask("OPTIONS", path, headers=PREFLIGHT)
        allowed = preflight.headers["Access-Control-Allow-Headers"].split(", ")
        for operation in operations(handler).values():
            assert set(operation.headers) <= set(allowed), path


@pytest.mark.parametrize("allow_origin", [{"allow_origin_pat": r"https://.*\.example"}])
async def test_an_origin_that_the_pattern_leaves_out_is_told_nothing(
    ask: Send, jp_auth_header: dict[str, str], allow_origin: dict[str, Any]
) -> None:
    answered = await ask(
        "GET", "sessions", headers={"Origin": "https://evil.test", **jp_auth_header}
    )
    assert "Access-Control-Allow-Origin" not in answered.headers


async def test_options_tells_the_verbs_to_anybody_but_a_foreign_host(ask: Send) -> None:
    for verb in VERBS:
        answered = await ask("OPTIONS", verb.path)
        assert answered.status == 204
        assert verb.method in answered.headers["Allow"].split(", ")
    assert (await ask("OPTIONS", "nowhere")).status == 204
    foreign = await ask("OPTIONS", "sessions", headers={"Host": "elsewhere.example"})
    assert (foreign.status, foreign.json["code"]) == (403, "forbidden")


async def test_an_answer_is_never_a_page(ask: Send, jp_auth_header: dict[str, str]) -> None:
    for verb in VERBS:
        answered = await ask(verb.method, verb.path, headers=jp_auth_header, body=verb.body)
        assert "default-src 'none'" in answered.headers["Content-Security-Policy"]
        assert answered.headers["X-Content-Type-Options"] == "nosniff"
        assert b"<html" not in answered.body.lower()


async def test_only_whoever_is_let_in_counts_as_activity_of_the_server(
    ask: Send, jp_auth_header: dict[str, str], jp_web_app: Any
) -> None:
    await ask("GET", "status")
    assert "api_last_activity" not in jp_web_app.settings
    await ask("GET", "status", headers=jp_auth_header)
    assert jp_web_app.settings["api_last_activity"].tzinfo is not None
