"""Minting, listing and revoking agent tokens, and what one of them may do."""

from __future__ import annotations

import base64
import json
import logging
import shlex
from pathlib import Path
from typing import Any

import nbformat
import pytest

from jupyter_agent_exec.auth.token_store import TokenStore
from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.ledger import TokenEntries
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.records import (
    AccessDenied,
    TokenExtended,
    TokenMinted,
    TokenRevoked,
    digest_of,
)
from jupyter_agent_exec.text.connections import configurations
from jupyter_agent_exec.types import TokenId
from tests.asking import Agent, Answered, Send
from tests.auth.minting import PAST, TokenAgent, bearer, change_kept, ledger, mint


def code(answered: Answered) -> tuple[int, str]:
    return answered.status, answered.json["code"]


async def test_a_person_mints_lists_and_revokes(agent: Agent, ask: Send, history_dir: Path) -> None:
    asked = {
        "label": "Analyst",
        "scopes": ["exec:notebook:reports/*", "files"],
        "approval": "always",
    }
    minted = await agent.ask("POST", "tokens", asked)
    assert minted.status == 201
    assert minted.headers["Cache-Control"] == "no-store"
    token, secret = minted.json["token"], minted.json["secret"]
    assert secret.startswith(f"jaex_{token['id']}_")
    assert len(bytes.fromhex(secret.rpartition("_")[2])) == 32
    assert token == {
        **token,
        **asked,
        "status": "active",
        "revoked_at": None,
        "last_used_at": None,
    }
    assert (await TokenAgent(ask, secret).get("sessions")).json["sessions"] == []
    [listed] = (await agent.get("tokens")).json["tokens"]
    assert listed.pop("last_used_at") is not None
    assert listed == {key: value for key, value in token.items() if key != "last_used_at"}
    revoked = await agent.ask("DELETE", f"tokens/{token['id']}")
    assert (revoked.status, revoked.json["status"]) == (200, "revoked")
    assert code(await TokenAgent(ask, secret).get("sessions")) == (401, "unauthenticated")
    again = await agent.ask("DELETE", f"tokens/{token['id']}")
    assert again.json == {**revoked.json, "last_used_at": again.json["last_used_at"]}
    [entry] = ledger(history_dir, TokenMinted)
    assert (entry.token_id, entry.label, entry.scopes) == (
        token["id"],
        "Analyst",
        ("exec:notebook:reports/*", "files"),
    )
    assert [each.token_id for each in ledger(history_dir, TokenRevoked)] == [token["id"]]


async def test_only_a_hash_of_the_secret_is_kept(agent: Agent, history_dir: Path) -> None:
    secret = (await mint(agent))[1].rpartition("_")[2]
    [kept] = json.loads((history_dir / "tokens.json").read_bytes())["tokens"]
    assert kept["secret_sha256"] == digest_of(secret.encode())


async def test_what_is_minted_comes_with_what_to_paste(
    agent: Agent, jp_base_url: str, jp_http_port: int
) -> None:
    minted = (await agent.ask("POST", "tokens", {"label": "l", "scopes": ["files"]})).json
    texts = {each["name"]: each["text"] for each in minted["configurations"]}
    assert list(texts) == ["claude-code", "mcp", "vscode", "mcp-stdio", "python", "curl"]
    assert minted["mcp_installed"] is True
    assert all(minted["secret"] in text for text in texts.values())
    url = f"http://127.0.0.1:{jp_http_port}{jp_base_url}".rstrip("/")
    http = json.loads(texts["mcp"])["mcpServers"]["jupyter"]
    assert http["url"] == f"{url}/api/agent-exec/mcp"
    assert json.loads(texts["vscode"])["servers"]["jupyter"] == http
    claude = shlex.split(texts["claude-code"])
    assert claude[:3] == ["claude", "mcp", "add"]
    assert claude[-3:] == [http["url"], "--header", f"Authorization: Bearer {minted['secret']}"]
    stdio = json.loads(texts["mcp-stdio"])["mcpServers"]["jupyter"]
    assert Path(stdio["command"]).is_absolute()
    assert stdio["env"]["JUPYTER_AGENT_EXEC_URL"] == url
    assert minted["secret"] not in " ".join(stdio["args"])
    compile(texts["python"], "snippet", "exec")
    assert f"{url}/api/agent-exec/status" in texts["curl"]


@pytest.mark.parametrize(
    ("scopes", "opened"),
    [
        (["exec:scratch", "exec:notebook:it's.ipynb", "exec:notebook:b.ipynb"], "it's.ipynb"),
        (["look:notebook:a.ipynb", "exec:notebook:reports/*.ipynb", "exec:notebook"], None),
    ],
)
def test_the_lines_for_python_open_the_notebook_that_the_token_is_for(
    scopes: list[str], opened: str | None
) -> None:
    made = configurations("http://localhost:8888/", "api/agent-exec", "jaex_…", scopes)
    [python] = [each.text for each in made if each.name == "python"]
    argument = "" if opened is None else f", notebook={opened!r}"
    assert f'open_session("my-agent"{argument})' in python


NOT_MINTED: list[tuple[dict[str, Any], str]] = [
    ({}, "label"),
    ({"label": ""}, "label"),
    ({"scopes": []}, "scopes"),
    ({"scopes": ["files", "everything"]}, "scopes[1]"),
    ({"scopes": ["exec:notebook:../x"]}, "scopes[0]"),
    ({"expires_in": 59}, "expires_in"),
    ({"expires_in": 2_592_001}, "expires_in"),
    ({"expires_in": 100_001}, "expires_in"),
    ({"caps": {"kernels": 0}}, "caps.kernels"),
    ({"caps": {"cpus": 1}}, "caps.cpus"),
    ({"approval": "sometimes"}, "approval"),
    ({"secret": "mine"}, "secret"),
]


@pytest.mark.parametrize("agent_exec_config", [{"max_token_lifetime": 100_000}])
async def test_what_cannot_be_minted_is_told_by_field(agent: Agent, history_dir: Path) -> None:
    for wrong, field in NOT_MINTED:
        asked = {"label": "l", "scopes": ["files"], **wrong} if wrong else {"scopes": ["files"]}
        refused = await agent.ask("POST", "tokens", asked)
        assert code(refused) == (400, "invalid_request"), wrong
        assert refused.json["detail"]["field"] == field
        assert not (history_dir / "tokens.json").exists()
        assert ledger(history_dir, TokenMinted) == []


async def test_another_servers_revocation_and_expiry_count_at_once(
    agent: Agent, ask: Send, history_dir: Path
) -> None:
    (first, one), (second, other) = await mint(agent), await mint(agent)
    for token in (one, other):
        assert (await TokenAgent(ask, token).get("status")).status == 200
    change_kept(history_dir, first, revoked_at=PAST)
    refused = await TokenAgent(ask, one).get("status")
    assert code(refused) == (401, "unauthenticated")
    assert "was revoked" in refused.json["message"]
    change_kept(history_dir, second, expires_at=PAST)
    assert "has expired" in (await TokenAgent(ask, other).get("status")).json["message"]
    statuses = {each["id"]: each["status"] for each in (await agent.get("tokens")).json["tokens"]}
    assert statuses == {first: "revoked", second: "expired"}


async def test_a_token_that_was_not_minted_as_it_is_kept_lets_nobody_in(
    agent: Agent, ask: Send, history_dir: Path
) -> None:
    (first, one), (_, other) = await mint(agent), await mint(agent)
    assert (await TokenAgent(ask, one).get("status")).status == 200
    planted = f"t_{first[2:][::-1]}"
    path = history_dir / "tokens.json"
    kept = json.loads(path.read_bytes())
    kept["tokens"].append({**kept["tokens"][0], "id": planted})
    path.write_text(json.dumps(kept))
    shown = one.replace(first, planted)
    assert code(await TokenAgent(ask, shown).get("status")) == (401, "unauthenticated")
    assert (await TokenAgent(ask, one).get("status")).status == 200
    change_kept(history_dir, first, scopes=["exec:scratch", "history:read:all"])
    assert code(await TokenAgent(ask, one).get("status")) == (401, "unauthenticated")
    assert (await TokenAgent(ask, other).get("status")).status == 200


async def test_a_revocation_that_cannot_be_written_counts_and_is_written_later(
    agent: Agent, ask: Send, history_dir: Path
) -> None:
    id, token = await mint(agent)
    assert (await TokenAgent(ask, token).get("status")).status == 200
    in_the_way = history_dir / "tokens.json.new"
    in_the_way.mkdir()
    refused = await agent.ask("DELETE", f"tokens/{id}")
    assert code(refused) == (503, "history_unavailable")
    assert "revoked here and now" in refused.json["message"]
    assert (await TokenAgent(ask, token).get("status")).status == 401
    minted = await agent.ask("POST", "tokens", {"label": "l", "scopes": ["files"]})
    assert code(minted) == (503, "history_unavailable")
    in_the_way.rmdir()
    await mint(agent)
    kept = json.loads((history_dir / "tokens.json").read_bytes())["tokens"]
    assert [(each["id"] == id, "revoked_at" in each) for each in kept] == [
        (True, True),
        (False, False),
    ]


async def test_when_a_token_was_used_is_kept_for_the_next_server(
    agent: Agent, ask: Send, history_dir: Path, jp_serverapp: Any
) -> None:
    token = (await mint(agent))[1]
    await TokenAgent(ask, token).get("status")
    [used] = [each["last_used_at"] for each in (await agent.get("tokens")).json["tokens"]]
    apps = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    await next(iter(apps)).stop_extension()
    [kept] = json.loads((history_dir / "tokens.json").read_bytes())["tokens"]
    assert kept["last_used_at"] == used


async def test_a_token_that_there_is_not_cannot_be_revoked(agent: Agent) -> None:
    for id in ("t_01JD0000000000000000000000", "nothing", "%2e%2e"):
        assert code(await agent.ask("DELETE", f"tokens/{id}")) == (404, "not_found")


async def test_a_token_gets_more_scopes_at_once(
    agent: Agent, ask: Send, jp_root_dir: Path, history_dir: Path
) -> None:
    nbformat.write(nbformat.v4.new_notebook(), jp_root_dir / "a.ipynb")
    id, secret = await mint(agent, "exec:scratch")
    mine = TokenAgent(ask, secret)
    session = await mine.open()
    body = {"agent": {"name": "a"}, "target": {"kind": "notebook", "path": "a.ipynb"}}
    refused = await mine.ask("POST", "sessions", body)
    assert (refused.json["code"], refused.json["detail"]) == (
        "forbidden",
        {"scope": "exec:notebook:a.ipynb"},
    )
    assert "Ask the person for a token that has it, or sign in again." in refused.json["message"]
    assert code(await mine.ask("GET", f"sessions/{session['id']}/files")) == (403, "forbidden")
    more = ["exec:notebook:a.ipynb", "files"]
    given = await agent.ask("POST", f"tokens/{id}/scopes", {"scopes": more})
    assert (given.status, given.json["scopes"]) == (200, ["exec:scratch", *more])
    assert (await mine.ask("POST", "sessions", body)).status == 201
    assert (await mine.get(f"sessions/{session['id']}/files")).status == 200
    [entry] = ledger(history_dir, TokenExtended)
    assert (entry.token_id, entry.scopes) == (id, tuple(more))
    assert (entry.by.kind, entry.by.token_id) == ("person", None)
    kept = TokenStore(history_dir, TokenEntries(history_dir).read, logging.getLogger("test"))
    assert list(kept.read()[TokenId(id)].scopes) == given.json["scopes"]
    assert verify_history(history_dir).outcome is Outcome.WHOLE


async def test_only_people_give_a_token_more_scopes(
    agent: Agent, ask: Send, history_dir: Path
) -> None:
    id, secret = await mint(agent, "exec:scratch", "history:read:all")
    path = f"tokens/{id}/scopes"
    for headers, status in (({}, 401), (bearer(secret), 403)):
        answered = await ask("POST", path, headers=headers, body='{"scopes": ["files"]}')
        assert answered.status == status
    for wrong, field in (({}, "scopes"), ({"scopes": []}, "scopes"), ({"scopes": ["x"]},) * 2):
        refused = await agent.ask("POST", path, wrong)
        assert code(refused) == (400, "invalid_request")
        assert refused.json["detail"]["field"] in (field, "scopes[0]")
    same = await agent.ask("POST", path, {"scopes": ["exec:scratch"]})
    assert same.json["scopes"] == ["exec:scratch", "history:read:all"]
    await agent.ask("DELETE", f"tokens/{id}")
    assert code(await agent.ask("POST", path, {"scopes": ["files"]})) == (404, "not_found")
    assert ledger(history_dir, TokenExtended) == []


async def test_every_denial_is_an_entry_and_a_flood_of_them_few(
    agent: Agent, ask: Send, jp_serverapp: Any, history_dir: Path
) -> None:
    id, token = await mint(agent, "exec:scratch")
    session = await agent.open()
    mine = TokenAgent(ask, token)
    for _ in range(30):
        assert (await mine.get(f"sessions/{session['id']}")).status == 404
    assert (await mine.get("sessions/s_01JD0000000000000000000000")).status == 404
    assert (await mine.get("tokens")).status == 403
    assert (await ask("GET", "status", headers=bearer(token[:-3] + "000"))).status == 401
    assert (await ask("GET", f"search?q={token}")).status == 400
    assert (await mine.get("status")).status == 200
    apps = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    await next(iter(apps)).services.denials.stop()
    entries = ledger(history_dir, AccessDenied)
    told = [(e.token_id, e.code, e.method, e.route, e.count) for e in entries]
    assert told == [
        (id, "session_not_found", "GET", "/sessions/{session_id}", 1),
        (id, "forbidden", "GET", "/tokens", 1),
        (id, "unauthenticated", "GET", "/status", 1),
        (id, "invalid_request", "GET", "/search", 1),
        (id, "session_not_found", "GET", "/sessions/{session_id}", 29),
    ]
    assert token.rpartition("_")[2] not in repr(entries)


# -- what one token reaches ------------------------------------------------------------------------


async def test_what_others_did_is_nowhere_to_be_seen(agent: Agent, ask: Send) -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n of the person").decode()
    theirs = await agent.open(title="theirs", client_id="c")
    source = f"print('theirs'); display({{'image/png': '{png}'}}, raw=True)"
    done = await agent.run(theirs, source)
    mine = TokenAgent(ask, (await mint(agent))[1])
    session = await mine.open(client_id="c")
    assert session["id"] != theirs["id"]
    assert (theirs["access"], theirs["token"]) == ("full", None)
    assert (session["access"], session["token"]["label"]) == ("token", "of the tests")
    assert (await mine.run(session, "print('mine')"))["status"] == "ok"
    assert [s["id"] for s in (await mine.get("sessions")).json["sessions"]] == [session["id"]]
    assert (await mine.get("sessions", limit=1)).json["next_after"] is None
    assert (await mine.get("search", q="theirs")).json["hits"] == []
    assert (await mine.get("search", session_id=theirs["id"])).json["hits"] == []
    assert [h["session_id"] for h in (await mine.get("search")).json["hits"]] == [session["id"]]
    assert (await mine.get("images")).json["images"] == []
    assert (await mine.get("status")).json["open_sessions"] == 1
    missing = await mine.get("executions/x_01JD0000000000000000000000")
    hidden = await mine.get(f"executions/{done['id']}")
    assert code(hidden) == code(missing) == (404, "execution_not_found")
    assert hidden.json["message"] == missing.json["message"]
    assert set(hidden.json["detail"]) == set(missing.json["detail"])
    blob = done["images"][0]["url"].rpartition("/")[2]
    assert code(await mine.get(f"blobs/{blob}")) == (404, "blob_not_found")
    revising = await mine.execute(session, "1", revises=done["id"])
    assert code(revising) == (400, "invalid_request")
    everything = TokenAgent(ask, (await mint(agent, "history:read:all", "exec:scratch"))[1])
    assert len((await everything.get("sessions")).json["sessions"]) == 2
    assert (await everything.get(f"blobs/{blob}")).status == 200
    refused = await everything.execute(theirs, "1")
    assert code(refused) == (403, "forbidden")
    assert "Open a session of your own" in refused.json["message"]


async def test_a_key_of_ones_own_never_finds_anothers_execution(agent: Agent, ask: Send) -> None:
    one, other = [TokenAgent(ask, (await mint(agent))[1]) for _ in range(2)]
    key = {"Idempotency-Key": "k"}
    done = []
    for each in (one, other):
        session = await each.open(client_id="c")
        route = f"sessions/{session['id']}/executions"
        for _ in range(2):
            done.append((await each.ask("POST", route, {"source": "1"}, headers=key)).json["id"])
    assert done[0] == done[1] != done[2] == done[3]
    theirs = await one.ask("POST", route, {"source": "1"}, headers=key)
    assert code(theirs) == (404, "session_not_found")


NOTEBOOKS = ("reports/a.ipynb", "reports/deep/b.ipynb", "private/c.ipynb", "Work/d.ipynb")


@pytest.fixture
def notebooks(jp_root_dir: Path) -> Path:
    for path in NOTEBOOKS:
        (jp_root_dir / path).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(
            nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", id="c1")]),
            jp_root_dir / path,
        )
    return jp_root_dir


def target(path: str, **more: Any) -> dict[str, Any]:
    return {"agent": {"name": "a"}, "target": {"kind": "notebook", "path": path, **more}}


DETOURS = (
    "reports/../private/c.ipynb",
    "reports//../private/c.ipynb",
    "./private/c.ipynb",
    "reports/./../private/c.ipynb",
    "/reports/../private/c.ipynb",
    "RTC:private/c.ipynb",
    "private/c.ipynb",
    "WORK/a.ipynb",
    "reports/deep/b.ipynb",
    "reports/no/such.ipynb",
    "../private/c.ipynb",
)


async def test_a_token_reaches_no_notebook_outside_its_pattern(
    agent: Agent, ask: Send, notebooks: Path
) -> None:
    mine = TokenAgent(ask, (await mint(agent, "exec:notebook:reports/*"))[1])
    for path in DETOURS:
        opened = await mine.ask("POST", "sessions", target(path))
        assert code(opened) == (404, "notebook_not_found"), path
        assert "reports/*" in opened.json["message"]
        read = await mine.get(f"notebooks/{path.replace('/', '%2F')}/cells")
        assert code(read) == (404, "notebook_not_found"), path
    for path in ("reports/%2e%2e/private/c.ipynb", "reports%2f..%2fprivate%2fc.ipynb"):
        assert (await mine.get(f"notebooks/{path}/cells")).status == 404
    assert (await mine.get("notebooks/reports%2Fa.ipynb/cells")).status == 200
    assert (await agent.get("sessions")).json["sessions"] == []


async def test_a_notebooks_code_and_its_cells_are_two_scopes(
    agent: Agent, ask: Send, notebooks: Path
) -> None:
    mine = TokenAgent(ask, (await mint(agent, "exec:notebook:reports/*"))[1])
    made = await mine.ask("POST", "sessions", target("reports/new.ipynb", create=True))
    assert code(made) == (403, "forbidden")
    assert made.json["detail"] == {"scope": "edit:notebook:reports/new.ipynb"}
    session = (await mine.ask("POST", "sessions", target("reports/a.ipynb"))).json
    assert (await mine.run(session, "x = 1"))["status"] == "ok"
    rerun = await mine.execute(session, "2", placement={"cell": "c1"})
    assert code(rerun) == (403, "forbidden")
    edits = {"session_id": session["id"], "edits": [{"op": "clear_outputs"}]}
    assert code(await mine.ask("PATCH", "notebooks/reports/a.ipynb/cells", edits)) == (
        403,
        "forbidden",
    )
    editor = TokenAgent(ask, (await mint(agent, "edit:notebook:reports/*"))[1])
    theirs = await editor.ask("PATCH", "notebooks/reports/a.ipynb/cells", edits)
    assert code(theirs) == (404, "session_not_found")
    assert code(await mine.ask("POST", "sessions", {"agent": {"name": "a"}})) == (403, "forbidden")


async def test_a_persons_kernel_is_reached_by_its_notebook_alone(
    agent: Agent, ask: Send, notebooks: Path, jp_serverapp: Any
) -> None:
    person = (await agent.ask("POST", "sessions", target("private/c.ipynb"))).json
    lone = await jp_serverapp.kernel_manager.start_kernel(kernel_name="python3")
    kernel = person["kernel"]["id"]
    for scopes, reached in (
        (["exec:notebook:reports/**"], {kernel: 404, lone: 404}),
        (["exec:notebook:private/*"], {kernel: 201, lone: 404}),
        (["exec:notebook"], {kernel: 201, lone: 201}),
        (["exec:scratch", "edit:notebook"], {kernel: 403, lone: 403}),
    ):
        mine = TokenAgent(ask, (await mint(agent, *scopes))[1])
        for id, status in reached.items():
            asked = {"agent": {"name": "a"}, "target": {"kind": "kernel", "kernel_id": id}}
            answered = await mine.ask("POST", "sessions", asked)
            assert answered.status == status, (scopes, answered.body)


async def test_a_scratch_kernel_is_its_own_sessions_alone(
    agent: Agent, ask: Send, jp_serverapp: Any
) -> None:
    session = await agent.open()
    await agent.open()  # by now the kernel after the next is warm, or about to be
    kernels = jp_serverapp.kernel_manager
    mine = TokenAgent(ask, (await mint(agent, "exec:notebook"))[1])
    told = []
    for id in (*kernels.list_kernel_ids(), "5e5f0a1e-0000-4000-8000-000000000000"):
        asked = {"agent": {"name": "a"}, "target": {"kind": "kernel", "kernel_id": id}}
        refused = await mine.ask("POST", "sessions", asked)
        assert code(refused) == (404, "kernel_not_found"), id
        told.append(refused.json["message"].replace(id, "…"))
    assert len(set(told)) == 1
    assert (await agent.run(session, "1"))["status"] == "ok"
