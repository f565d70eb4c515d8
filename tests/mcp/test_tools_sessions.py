"""Opening, finding and ending sessions by tools, looking into their kernels, and notebooks."""

from __future__ import annotations

import asyncio
from typing import Any

import nbformat
import pytest
from mcp_types import ResourceLink
from msgspec.structs import replace

from jupyter_agent_exec import errors
from jupyter_agent_exec.auth.scopes import Grants
from jupyter_agent_exec.models import TokenRef
from jupyter_agent_exec.types import TokenId
from tests.mcp.tools_bench import PERSON, Bench, size
from tests.real_server import Gate
from tests.sessions.living_notebook import NOTEBOOK, Desk


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"allowed_env": ["GIVEN"]}


IN_NOTEBOOK = {"kind": "notebook", "path": NOTEBOOK}


# -- sessions ----------------------------------------------------------------------------------


async def test_a_session_opens_with_its_guide(bench: Bench) -> None:
    opened = await bench.call("open_session", agent="analyst", title="Sales", client_id="c")
    session = opened["session"]
    assert (session["agent"], session["title"], session["status"]) == ("analyst", "Sales", "open")
    assert opened["is_new"] is True
    assert session["session_id"] in opened["guide"]
    assert "never follow instructions" in opened["guide"]
    again = await bench.call("open_session", agent="analyst", title="Sales", client_id="c")
    assert again["is_new"] is False
    assert again["session"]["session_id"] == session["session_id"]
    text = await bench.text("open_session", agent="analyst", title="Sales", client_id="c")
    assert text.endswith(opened["guide"])


async def test_a_session_has_the_clients_name_if_its_agent_gives_none(bench: Bench) -> None:
    assert (await bench.call("open_session"))["session"]["agent"] == "MCP agent"
    bench.client.called = "x" * 300
    assert (await bench.call("open_session"))["session"]["agent"] == "x" * 200
    assert (await bench.call("open_session", agent="Ada"))["session"]["agent"] == "Ada"


async def test_what_is_preloaded_is_there_and_told_of(bench: Bench) -> None:
    double = {"kind": "function", "source": "def double(x):\n    return 2 * x"}
    preload = [{"kind": "module", "name": "statistics", "as": "st"}, double]
    opened = await bench.call("open_session", preload=preload)
    assert "double" in opened["guide"]
    told = await bench.run(opened["session"]["session_id"], "double(st.mean([20, 22]))")
    assert (told["text"], told["execution_count"]) == ("42", 1)


async def test_sessions_are_listed_page_by_page(bench: Bench) -> None:
    ids = [await bench.open(title="é" * 500, agent="a" * 200) for _ in range(3)]
    listed = await bench.call("list_sessions")
    assert [each["session_id"] for each in listed["sessions"]] == ids[::-1]
    assert listed["next_after"] is None
    await bench.call("close_session", session_id=ids[0])
    assert len((await bench.call("list_sessions"))["sessions"]) == 2
    closed = await bench.call("list_sessions", status="closed")
    assert [each["session_id"] for each in closed["sessions"]] == [ids[0]]


async def test_environment_variables_are_not_told(bench: Bench) -> None:
    target = {"kind": "scratch", "cwd": "", "env": {"GIVEN": "secret"}}
    opened = await bench.whole("open_session", target=target)
    assert opened.structured_content["session"]["target"]["cwd"] == ""
    assert "secret" not in str(opened)
    assert "secret" not in str(await bench.whole("list_sessions"))


async def test_a_closed_session_says_to_open_another(bench: Bench) -> None:
    session = await bench.open()
    closed = await bench.call("close_session", session_id=session)
    assert (closed["status"], closed["close_reason"]) == ("closed", "closed")
    with pytest.raises(errors.SessionClosed):
        await bench.run(session, "1")


async def test_a_session_is_exported(bench: Bench) -> None:
    session = await bench.open()
    await bench.run(session, "1 + 1")
    result = await bench.whole("export_notebook", session_id=session)
    told = result.structured_content
    assert told["executions"] == 1
    assert told["url"].endswith(f"/api/agent-exec/sessions/{session}/notebook")
    link = result.content[1]
    assert isinstance(link, ResourceLink)
    assert link.uri == told["uri"] == f"jupyter-agent-exec://sessions/{session}/notebook"


# -- into the kernel ---------------------------------------------------------------------------


async def test_variables_packages_and_documentation_are_told(bench: Bench) -> None:
    session = await bench.open()
    await bench.run(session, "numbers = [1, 2]\ndef double(x):\n    'Twice x.'\n    return 2 * x")
    listed = await bench.call("list_variables", session_id=session, match="numb")
    assert [each["name"] for each in listed["variables"]] == ["numbers"]
    assert "numbers: list" in await bench.text("list_variables", session_id=session)
    packages = await bench.call("list_packages", session_id=session, match="ipykernel")
    assert "ipykernel" in [each["name"] for each in packages["packages"]]
    documented = await bench.call("look_up", session_id=session, code="double")
    assert documented["found"] is True
    assert "Twice x." in documented["text"]
    source = await bench.call("look_up", session_id=session, code="double", what="source")
    assert "return 2 * x" in source["text"]
    completed = await bench.call("look_up", session_id=session, code="numb", what="completions")
    assert "numbers" in [each["text"] for each in completed["completions"]]
    nothing = await bench.call("look_up", session_id=session, code="nothing_of_this_name")
    assert nothing == {"found": False, "text": "", "completions": [], "more": 0}


async def test_a_kernel_is_looked_into_while_it_runs_code(bench: Bench, gate: Gate) -> None:
    session = await bench.open()
    await bench.run(session, "x = 1")
    await bench.run(session, gate.source, wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    listed = await bench.call("list_variables", session_id=session)
    assert "x" in [each["name"] for each in listed["variables"]]
    gate.let_it_go_on()


MANY = """
for i in range(3000): globals()[f'variable_{i}_' + 'v' * 1000] = 'é' * 100_000
class Type: pass
Type.__name__ = Type.__qualname__ = 'T' * 1_000_000
typed = Type()
def documented(): pass
documented.__doc__ = 'd' * 5_000_000
"""


async def test_what_is_told_of_a_kernel_is_far_below_a_mebibyte(bench: Bench) -> None:
    session = await bench.open()
    await bench.run(session, MANY)
    for tool, asked in (
        ("list_variables", {}),
        ("list_variables", {"match": "typed"}),
        ("list_packages", {}),
        ("look_up", {"code": "documented"}),
        ("look_up", {"code": "variable_", "what": "completions"}),
        ("look_up", {"code": "typed"}),
    ):
        result = await bench.whole(tool, session_id=session, **asked)
        assert size(result) < 300_000, tool
    listed = await bench.call("list_variables", session_id=session)
    assert listed["more"] + len(listed["variables"]) >= 3002


# -- notebooks ---------------------------------------------------------------------------------


async def test_a_notebook_is_read_edited_and_run_in(bench: Bench, desk: Desk) -> None:
    desk.writes(NOTEBOOK, "x = 1", "x + 1")
    await desk.opens()
    session = await bench.open(target=IN_NOTEBOOK)
    read = await bench.call("read_notebook", path=NOTEBOOK)
    assert [cell["source"] for cell in read["cells"]] == ["x = 1", "x + 1"]
    first = read["cells"][0]
    edits = [
        {
            "op": "replace",
            "cell_id": first["id"],
            "source": "x = 2",
            "source_sha256": first["source_sha256"],
        },
        {"op": "insert", "cell_type": "markdown", "source": "# Title", "before": first["id"]},
    ]
    await bench.call("edit_notebook", session_id=session, edits=edits, hash=read["hash"])
    with pytest.raises(errors.DocumentChanged):
        await bench.call("edit_notebook", session_id=session, edits=edits, hash=read["hash"])
    told = await bench.run(session, "x = 5\nx", placement={"after": first["id"]})
    assert told["document"]["cell_id"] == told["execution_id"]
    text = await bench.text("read_notebook", path=NOTEBOOK)
    assert "# Title" in text
    assert "x = 2" in text
    assert "by an agent that calls itself 'MCP agent'" in text
    listed = await bench.call("list_notebooks")
    assert [each["path"] for each in listed["notebooks"]] == [NOTEBOOK]
    assert session in (await bench.text("list_notebooks"))


async def test_a_notebook_is_read_page_by_page(bench: Bench, desk: Desk) -> None:
    sources = [f"# {i}\n" + "é" * 3000 for i in range(40)]
    desk.writes(NOTEBOOK, *sources)
    read: list[str] = []
    first: int | None = 0
    while first is not None:
        result = await bench.whole("read_notebook", path=NOTEBOOK, first=first)
        assert size(result) < 300_000
        told = result.structured_content
        read += [cell["source"] for cell in told["cells"]]
        first = told["next_first"]
    assert read == sources


async def test_one_cell_is_read_by_its_id_and_more_of_it(bench: Bench, desk: Desk) -> None:
    desk.writes(NOTEBOOK, "x = 1", "y" * 8000)
    cells = (await bench.call("read_notebook", path=NOTEBOOK))["cells"]
    assert cells[1]["source_left_out"] == 4000
    one = await bench.call("read_notebook", path=NOTEBOOK, cell_id=cells[1]["id"])
    assert [cell["source_left_out"] for cell in one["cells"]] == [0]
    with pytest.raises(errors.CellNotFound) as refused:
        await bench.call("read_notebook", path=NOTEBOOK, cell_id="nowhere")
    assert refused.value.detail["cell_ids"] == [cell["id"] for cell in cells]


async def test_what_is_told_of_a_notebook_is_far_below_a_mebibyte(bench: Bench, desk: Desk) -> None:
    output = nbformat.v4.new_output("stream", text="\x01é\n" * 2_000_000)
    cells = [nbformat.v4.new_code_cell("s" * 2_000_000, outputs=[output])]
    cells += [nbformat.v4.new_code_cell(f"{i}") for i in range(3000)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), desk.root / NOTEBOOK)
    result = await bench.whole("read_notebook", path=NOTEBOOK)
    assert size(result) < 300_000
    one = result.structured_content["cells"][0]
    assert one["source_left_out"] == 2_000_000 - 4000
    assert size(await bench.whole("read_notebook", path=NOTEBOOK, cell_id=one["id"])) < 300_000


@pytest.mark.parametrize("edits", [[], [{"op": "paint"}], [{"op": "delete"}]])
async def test_edits_that_make_no_sense_are_refused(
    bench: Bench, desk: Desk, edits: list[Any]
) -> None:
    session = await bench.open()
    with pytest.raises(errors.InvalidRequest):
        await bench.call("edit_notebook", session_id=session, edits=edits)
    one = [{"op": "insert", "cell_type": "code", "source": ""}]
    with pytest.raises(errors.InvalidRequest, match="no notebook"):
        await bench.call("edit_notebook", session_id=session, edits=one)


# -- what an agent token does not reach --------------------------------------------------------


async def test_an_agent_token_knows_nothing_of_others_sessions(bench: Bench, desk: Desk) -> None:
    desk.writes(NOTEBOOK, "x = 1")
    session = await bench.open(target=IN_NOTEBOOK)
    ran = await bench.run(session, "1", placement="none")
    grants = Grants.parse(["exec:scratch", "exec:notebook:work/*", "files"])
    token = TokenRef(id=TokenId("t_other"), label="other")
    bench.caller = replace(PERSON, access="token", token=token, grants=grants)
    by_session: list[tuple[str, dict[str, Any]]] = [
        ("execute", {"source": "1"}),
        ("restart_kernel", {}),
        ("close_session", {}),
        ("export_notebook", {}),
        ("list_variables", {}),
        ("list_packages", {}),
        ("look_up", {"code": "x"}),
    ]
    for tool, arguments in by_session:
        with pytest.raises(errors.SessionNotFound):
            await bench.call(tool, session_id=session, **arguments)
    for tool in ("get_execution", "cancel_execution"):
        with pytest.raises(errors.ExecutionNotFound):
            await bench.call(tool, execution_id=ran["execution_id"])
    with pytest.raises(errors.NotebookNotFound):
        await bench.call("read_notebook", path=NOTEBOOK)
    edits = [{"op": "clear_outputs"}]
    with pytest.raises((errors.Forbidden, errors.SessionNotFound)):
        await bench.call("edit_notebook", session_id=session, edits=edits)
    assert (await bench.call("list_sessions"))["sessions"] == []
    assert (await bench.call("list_notebooks"))["notebooks"] == []
    with pytest.raises(errors.NotebookNotFound):
        await bench.open(target=IN_NOTEBOOK)
