"""What tools say costs a model little, is true, and leads to what was left out."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mcp_types import ImageContent
from msgspec.structs import replace
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from jupyter_agent_exec import errors
from jupyter_agent_exec.auth.scopes import Grants
from jupyter_agent_exec.mcp import budget
from jupyter_agent_exec.mcp.sdk_server import TOOLS, _described
from jupyter_agent_exec.models import TokenRef
from jupyter_agent_exec.types import TokenId
from tests.asking import Agent, Send
from tests.auth.minting import mint
from tests.mcp.mcp_clients import text_of
from tests.mcp.raw_mcp import RawMcp
from tests.mcp.tools_bench import PERSON, Bench
from tests.real_server import Gate

NOTE_CHARACTERS = 400
"""Of what an answer says about itself."""
NOISE = """
import io, os
from IPython.display import display
from PIL import Image
image = Image.frombytes('RGB', (400, 400), os.urandom(3 * 400 * 400))
"""


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"max_output_bytes": 200_000}


def as_agent(bench: Bench, name: str, *scopes: str) -> None:
    """Call as an agent with a token of its own."""
    token = TokenRef(id=TokenId(f"t_{name}"), label=name)
    bench.caller = replace(PERSON, access="token", token=token, grants=Grants.parse(list(scopes)))


async def test_an_empty_list_says_of_what_there_is_none(bench: Bench) -> None:
    session = await bench.open()
    variables = partial(bench.text, "list_variables", session_id=session)
    packages = partial(bench.text, "list_packages", session_id=session)
    search = partial(bench.text, "search_executions")
    assert await variables() == "There is no variable."
    assert await variables(match="df") == "There is no variable with 'df'."
    assert await packages(match="nosuch") == "There is no package with 'nosuch'."
    assert await search(status="rejected") == "There is no execution."
    assert await search(query="nosuch") == "There is no execution with 'nosuch'."
    as_agent(bench, "other", "exec:scratch")
    assert (await bench.text("list_sessions")).startswith("There is no such session.")


async def test_a_table_is_bounded_and_read_on(bench: Bench, jp_root_dir: Path) -> None:
    session = await bench.open()
    (jp_root_dir / "table.csv").write_text("".join(f"{i},{i * i}\n" for i in range(10_000)))
    told = await bench.text("read_file", session_id=session, path="table.csv")
    assert len(told) <= 2_000 + NOTE_CHARACTERS
    more = re.search(r"more: read_file\(…, offset=(\d+)\)\]$", told)
    assert more is not None
    onward = {"session_id": session, "path": "table.csv", "offset": int(more[1])}
    joined = told.rpartition("\n")[0] + (await bench.text("read_file", **onward))
    assert joined.startswith("".join(f"{i},{i * i}\n" for i in range(300)))


async def test_a_hit_shows_what_was_searched_for(bench: Bench) -> None:
    session = await bench.open()
    await bench.run(session, "print('-' * 300)\nraise ValueError('ze' + 'bra')")
    [line] = (await bench.text("search_executions", query="zebra")).splitlines()
    assert "zebra" in line
    assert "----" not in line
    await bench.run(session, "print('one two three four five six seven ' * 3 + 'gnu')")
    [line] = (await bench.text("search_executions", query="gnu")).splitlines()
    assert "gnu" in line.partition(": ")[2]


async def test_the_note_about_an_image_over_the_limit_names_a_way_that_works(
    bench: Bench,
) -> None:
    session = await bench.open()
    told = await bench.run(session, f"{NOISE}display(image)")
    [note] = told["notes"]
    assert "get_execution" not in note
    assert "over the limit and not kept" in note
    assert "read_file shows an image scaled down" in note
    await bench.run(session, "image.save('noise.png')")
    shown = await bench.whole("read_file", session_id=session, path="noise.png")
    assert isinstance(shown.content[1], ImageContent)
    assert "the image is below" in text_of(shown)
    told = await bench.run(session, "print('line\\n' * 100_000)")
    [note] = told["notes"]
    assert f'get_execution(execution_id="{told["execution_id"]}", offset=0)' in note


async def test_code_that_runs_the_shells_pip_is_told_where_that_installs(bench: Bench) -> None:
    session = await bench.open()
    for source, is_told in (
        ("!pip install --quiet --no-index nosuch", True),
        ("if True:\n    !pip3 install --quiet --no-index nosuch", True),
        ("!pip --version", False),
        ("print('!pip install')", False),
        ("%pip --version", False),
    ):
        notes = (await bench.run(session, source)).get("notes") or []
        assert any("%pip install" in note for note in notes) is is_told, source


async def test_an_agent_that_stops_its_own_code_is_named_as_itself(
    bench: Bench, gate: Gate
) -> None:
    for stops, said in (("mine", "the agent itself"), (None, PERSON.display_name)):
        as_agent(bench, "mine", "exec:scratch")
        session = await bench.open()
        await bench.run(session, gate.source, wait=0)
        waiting = await bench.run(session, "1", wait=0)
        if stops is None:
            bench.caller = PERSON
        told = await bench.text("stop", execution_id=waiting["execution_id"])
        assert f"Cancelled by {said}." in told


async def test_a_refusal_names_each_pattern_of_a_token_once(bench: Bench) -> None:
    as_agent(bench, "mine", "exec:notebook:work/**", "edit:notebook:work/**")
    with pytest.raises(errors.NotebookNotFound, match=r"of this token \(work/\*\*\) there is no"):
        await bench.text("read_notebook", path="elsewhere.ipynb")


async def test_an_answer_is_short_unless_its_tool_is_listed_as_long(
    bench: Bench, gate: Gate
) -> None:
    target = {"kind": "notebook", "path": "many.ipynb", "create": True}
    session = await bench.open(target=target, title="t" * 500)
    many = "\n".join(f"{'v' * 80}{i} = 'x' * 200" for i in range(300))
    await bench.run(session, many)
    await bench.run(session, many + "\n1 / 0")
    running = f"print('x' * 50_000, flush=True)\n{gate.source}"
    waiting = await bench.run(session, running, wait=0)
    inserted = [{"op": "insert", "cell_type": "code", "source": "1"}] * 300
    asked: dict[str, dict[str, Any]] = {
        "edit_notebook": {"session_id": session, "edits": inserted},
        "list_sessions": {},
        "list_variables": {"session_id": session},
        "list_packages": {"session_id": session},
        "search_executions": {"query": "v" * 80},
        "stop": {"execution_id": waiting["execution_id"]},
        "open_session": {"target": target, "client_id": "other", "title": "t" * 500},
    }
    asked["export_notebook"] = {"session_id": session}
    asked["write_file"] = {"session_id": session, "path": "a.txt", "text": "a"}
    usual = [tool for tool in TOOLS if not tool.is_extra]
    short = {tool.name for tool in usual if _described(tool).meta is None}
    assert set(asked) == short
    for name, given in asked.items():
        told = await bench.whole(name, **given)
        assert len(text_of(told)) <= budget.SHORT_RESULT, name
        assert len(json.dumps(told.structured_content)) <= budget.SHORT_RESULT, name
    long = [tool for tool in usual if tool.name not in short]
    limits = [(_described(tool).meta or {}).get("anthropic/maxResultSizeChars") for tool in long]
    assert limits == [budget.LONG_RESULT] * len(long)


CELLS = {
    "load": "import statistics\nsales = [3, 1, 4, 1, 5, 9, 2, 6]\nlen(sales)",
    "mean": "mean = statistics.mean(sales)\nmean",
    "report": "for name, value in (('mean', mean), ('max', max(sales))):\n    print(name, value)",
}


class TestATask:
    """An agent reads a notebook, looks in a trial, runs its cells, and proposes an edit."""

    @pytest.fixture
    def agent_exec_config(self) -> dict[str, Any]:
        return {"approval": {"notebook": "none", "edits": "propose"}}

    async def test_a_task_costs_a_model_little(
        self, agent: Agent, ask: Send, jp_root_dir: Path
    ) -> None:
        path = "sales.ipynb"
        cells = [new_code_cell(source, id=id) for id, source in CELLS.items()]
        cells.insert(0, new_markdown_cell("# Sales by month", id="title"))
        nbformat.write(new_notebook(cells=cells), jp_root_dir / path)
        _, secret = await mint(agent, "exec:notebook", "edit:notebook", "history:read")
        raw = RawMcp(ask, secret, modern=True)
        texts: list[str] = []
        lengths: list[int] = []
        """Characters of the part of each answer that is longer."""

        async def call(name: str, **asked: Any) -> Any:
            told = await raw.call(name, **asked)
            assert not told.get("isError"), told
            structured = told.get("structuredContent")
            texts.append(told["content"][0]["text"])
            lengths.append(max(len(texts[-1]), len(json.dumps(structured)) if structured else 0))
            return structured

        await call("read_notebook", path=path)
        opened = await call("open_session", target={"kind": "notebook", "path": path})
        session = {"session_id": opened["session_id"]}
        await call("execute", **session, source="import sys; sys.version_info[:2]", trial=True)
        for id in CELLS:
            await call("execute", **session, placement={"cell": id})
        edit = {"op": "replace", "cell_id": "report", "find": "max(sales)", "source": "min(sales)"}
        await call("edit_notebook", **session, edits=[edit])
        assert "Proposed" in texts[-1]
        assert sum(lengths) <= 4 * 2_000
