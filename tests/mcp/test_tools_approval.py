"""Code that a person has to let run, asked for by tools."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agent_exec import errors
from jupyter_agent_exec.mcp.tool import Failure
from jupyter_agent_exec.models import Approve
from jupyter_agent_exec.records import digest_of
from tests.mcp.mcp_clients import text_of
from tests.mcp.tools_bench import PERSON, Bench


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"approval": {"scratch": "always"}}


async def test_an_agent_is_told_where_a_person_lets_it_run(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, "1", wait=0)
    assert told["status"] == "awaiting_approval"
    assert told["waiting_for"]["who"] == "approval"
    assert told["notes"][0].startswith(
        "The user has to approve it in JupyterLab, at http://localhost:8888/lab; tell them."
    )


async def test_an_agent_is_told_what_ran_if_the_user_changed_its_code(bench: Bench) -> None:
    session = await bench.open()
    asked = await bench.run(session, "print('all rows')", wait=0)
    wanted = Approve(source_sha256=digest_of(b"print('all rows')"), source="print('ten rows')")
    await bench.approvals.approve(asked["execution_id"], wanted, PERSON)
    result = await bench.whole("get_execution", execution_id=asked["execution_id"], wait=30)
    told = result.structured_content
    assert (told["ran_source"], told["text"]) == ("print('ten rows')", "ten rows\n")
    assert text_of(result).startswith(
        "[The user changed your code before approving it. This ran instead of yours:]\n"
        "print('ten rows')\n[Its output:]\nten rows\n"
    )


async def test_what_is_no_execution_passes_the_same_gate(bench: Bench) -> None:
    session = await bench.open()
    asked = {"session_id": session, "path": "tools.py", "text": "steal()"}
    with pytest.raises(errors.ApprovalRequired, match="Approve and let it run…") as refused:
        await bench.call("write_file", **asked)
    assert (Failure.of(refused.value).next or "").endswith("call again when they have approved.")
    waiting = await bench.run(session, "1", wait=0)
    wanted = Approve(source_sha256=digest_of(b"1"), grant="until_restart")
    await bench.approvals.approve(waiting["execution_id"], wanted, PERSON)
    await bench.call("write_file", **asked)
    await bench.approvals.set_paused(True, PERSON)
    with pytest.raises(errors.Paused):
        await bench.call("write_file", **asked)
