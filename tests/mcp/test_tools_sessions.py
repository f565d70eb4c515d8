"""Opening, finding and ending sessions by tools, looking into their kernels, and notebooks."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mcp_types import ImageContent
from msgspec.structs import replace
from PIL import Image

from jupyter_agent_exec import errors
from jupyter_agent_exec.auth.scopes import Grants
from jupyter_agent_exec.mcp.endpoint import Chat
from jupyter_agent_exec.models import TokenRef
from jupyter_agent_exec.records import digest_of
from jupyter_agent_exec.types import TokenId
from tests.asking import Agent
from tests.auth.minting import mint
from tests.mcp.tools_bench import PERSON, Bench, size
from tests.sessions.living_notebook import NOTEBOOK, Desk

pytestmark = pytest.mark.usefixtures("cells_have_time")


@pytest.fixture
def agent_exec_config() -> dict[str, Any]:
    return {"allowed_env": ["GIVEN"]}


def _png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(file, "PNG")
    return file.getvalue()


PNG = _png()

IN_NOTEBOOK = {"kind": "notebook", "path": NOTEBOOK}


# -- sessions ----------------------------------------------------------------------------------


async def test_a_session_that_lost_its_kernel_is_restored_by_opening_it(bench: Bench) -> None:
    session = (await bench.call("open_session"))["session_id"]
    await bench.run(session, "x = 1")
    await bench.call("stop", session_id=session, restart=True)
    text = await bench.text("open_session", restore=session)
    assert text.startswith(f"{session}: open")
    assert "Restore: finished." in text
    assert re.search(r"#1 x = 1: x_\w+ ok", text)
    assert "Code of the earlier kernel ran again." in (await bench.run(session, "x"))["text"]


async def test_a_session_opens_and_says_what_is_special_about_it(bench: Bench) -> None:
    opened = await bench.call("open_session", agent="analyst", title="Sales", client_id="c")
    assert (opened["agent"], opened["title"], opened["status"]) == ("analyst", "Sales", "open")
    assert opened["is_new"] is True
    again = await bench.whole("open_session", agent="analyst", title="Sales", client_id="c")
    assert again.structured_content["is_new"] is False
    assert again.structured_content["session_id"] == opened["session_id"]
    text = again.content[0].text  # type: ignore[union-attr]
    assert text.startswith(f"{opened['session_id']}: open, calls itself 'analyst', 'Sales', ")
    assert "The kernel is your own" in text
    assert size(again) < 1200


async def test_a_session_has_the_clients_name_if_its_agent_gives_none(bench: Bench) -> None:
    assert (await bench.call("open_session"))["agent"] == "MCP agent"
    bench.client.called = "x" * 300
    assert (await bench.call("open_session"))["agent"] == "x" * 200
    assert (await bench.call("open_session", agent="Ada"))["agent"] == "Ada"


async def test_sessions_are_listed_page_by_page(bench: Bench) -> None:
    ids = [await bench.open(title="é" * 500, agent="a" * 200) for _ in range(3)]
    listed = await bench.call("list_sessions")
    assert [each["session_id"] for each in listed["sessions"]] == ids[::-1]
    assert "next_after" not in listed
    assert "kernel_name may be: echo, python3]" in await bench.text("list_sessions")
    await bench.call("stop", session_id=ids[0])
    assert len((await bench.call("list_sessions"))["sessions"]) == 2
    closed = await bench.call("list_sessions", status="closed")
    assert [each["session_id"] for each in closed["sessions"]] == [ids[0]]


async def test_environment_variables_are_not_told(bench: Bench) -> None:
    target = {"kind": "scratch", "cwd": "", "env": {"GIVEN": "secret"}}
    opened = await bench.whole("open_session", target=target)
    assert "secret" not in str(opened)
    assert "secret" not in str(await bench.whole("list_sessions"))


async def test_a_session_is_exported(bench: Bench, jp_root_dir: Path) -> None:
    session = await bench.open()
    await bench.run(session, "1 + 1")
    told = await bench.text("export_notebook", session_id=session)
    assert told == f"1 execution as a notebook: GET /api/agent-exec/sessions/{session}/notebook"
    asked = {"session_id": session, "path": "made.ipynb"}
    assert "1 execution," in await bench.text("export_notebook", **asked)
    notebook = nbformat.read(jp_root_dir / "made.ipynb", as_version=4)
    assert [cell.source for cell in notebook.cells] == ["1 + 1"]
    await bench.run(session, "2 + 2")
    await bench.call("export_notebook", **asked)
    assert len(nbformat.read(jp_root_dir / "made.ipynb", as_version=4).cells) == 2
    (jp_root_dir / "theirs.ipynb").write_text("{}")
    with pytest.raises(errors.FileNotOwned):
        await bench.call("export_notebook", session_id=session, path="theirs.ipynb")
    for path in ("made.txt", "../out.ipynb", ".hidden.ipynb"):
        with pytest.raises((errors.InvalidRequest, errors.Forbidden)):
            await bench.call("export_notebook", session_id=session, path=path)
    bench.refused = {"files"}
    with pytest.raises(errors.Forbidden):
        await bench.call("export_notebook", **asked)


async def test_what_was_executed_is_listed_and_searched(bench: Bench) -> None:
    session, other = await bench.open(), await bench.open()
    first = await bench.run(session, "sales = 1")
    failed = await bench.run(session, "1 / 0")
    elsewhere = await bench.run(other, "'sales again'")
    listed = await bench.text("search_executions", session_id=session)
    assert [line.split()[0] for line in listed.splitlines()] == [
        failed["execution_id"],
        first["execution_id"],
    ]
    assert "#2 error" in listed.splitlines()[0]
    assert listed.splitlines()[1].endswith(": sales = 1")
    found = await bench.text("search_executions", query="sales")
    assert [line.split()[0] for line in found.splitlines()] == [
        elsewhere["execution_id"],
        first["execution_id"],
    ]
    assert f" in {other} " in found
    assert await bench.text("search_executions", status="rejected") == "There is no execution."
    with pytest.raises(errors.InvalidRequest) as refused:
        await bench.text("search_executions", query="[")
    assert refused.value.detail["field"] == "query"


# -- into the kernel ---------------------------------------------------------------------------


async def test_variables_and_packages_are_told(bench: Bench) -> None:
    session = await bench.open()
    await bench.run(session, "numbers = [1, 2]")
    listed = await bench.text("list_variables", session_id=session, match="numb")
    assert listed == "numbers: list, length 2, = [1, 2]"
    packages = await bench.text("list_packages", session_id=session, match="ipykernel")
    assert packages.startswith("ipykernel ")


TABLES = """
import numpy, pandas
sales = pandas.DataFrame({'region': ['a', 'b'], 'amount': [1.5, 2.5]})
by_day = sales.set_index(pandas.to_datetime(['2026-01-01', '2026-01-02']))
numbers = numpy.zeros((2, 3), 'float32')
class Name(str):
    def __str__(self): raise SystemExit
    __repr__ = __hash__ = __str__
    def __hash__(self): return 1
class Table(pandas.DataFrame):
    @property
    def _mgr(self): raise SystemExit
odd = pandas.DataFrame({7: [1]})
odd.columns = pandas.Index([Name('x')], dtype=object)
own = object.__new__(Table)
"""


async def test_tables_are_told_with_their_columns(bench: Bench) -> None:
    session = await bench.open()
    values = {"by_day": "by_day"}
    told = await bench.run(session, TABLES, values=values)
    assert told["status"] == "ok", told["text"]
    value = told["values"]["by_day"]
    assert value["index"] == ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]
    assert value["dtypes"] == {"region": "str", "amount": "float64"}
    lines = (await bench.text("list_variables", session_id=session)).splitlines()
    columns = "columns: region str; amount float64"
    assert [line for line in lines if not line.endswith(": type")] == [
        f"by_day: pandas.DataFrame, shape (2, 2), index DatetimeIndex, {columns}",
        "numbers: numpy.ndarray, shape (2, 3), float32",
        "odd: pandas.DataFrame, shape (1, 1), columns: <Name> int64",
        "own: Table",
        f"sales: pandas.DataFrame, shape (2, 2), {columns}",
    ]


MANY = """
for i in range(3000): globals()[f'variable_{i}_' + 'v' * 1000] = 'é' * 100_000
class Type: pass
Type.__name__ = Type.__qualname__ = 'T' * 1_000_000
typed = Type()
"""


async def test_what_is_told_of_a_kernel_is_far_below_a_mebibyte(bench: Bench) -> None:
    session = await bench.open()
    await bench.run(session, MANY)
    for tool, asked in (
        ("list_variables", {}),
        ("list_variables", {"match": "typed"}),
        ("list_packages", {}),
    ):
        result = await bench.whole(tool, session_id=session, **asked)
        assert size(result) < 300_000, tool
    *listed, more = (await bench.text("list_variables", session_id=session)).splitlines()
    assert len(listed) + int(more.split()[0][1:].replace(",", "")) >= 3002


# -- notebooks ---------------------------------------------------------------------------------


def cell_ids(read: str) -> list[str]:
    """Return the ids of the cells in a text of read_notebook."""
    return re.findall(r"^--- \d+ \w+ (\S+?)(?:,|$)", read, re.MULTILINE)


def hash_of(read: str) -> str:
    found = re.search(r"hash (?:is )?(\w{64})", read)
    assert found is not None
    return found[1]


async def test_a_notebook_is_read_edited_and_run_in(bench: Bench, desk: Desk) -> None:
    desk.writes(NOTEBOOK, "x = 1", "x + 1")
    await desk.opens()
    session = await bench.open(target=IN_NOTEBOOK)
    read = await bench.text("read_notebook", path=NOTEBOOK)
    first, second = cell_ids(read)
    assert f"--- 0 code {first}\nx = 1\n--- 1 code {second}\nx + 1" in read
    one = await bench.text("read_notebook", path=NOTEBOOK, cells=[first])
    edits = [
        {
            "op": "replace",
            "cell_id": first,
            "source": "x = 2",
            "source_sha256": one.split("source_sha256 ")[1][:64],
        },
        {"op": "insert", "cell_type": "markdown", "source": "# Title", "before": first},
    ]
    asked = {"session_id": session, "edits": edits, "hash": hash_of(read)}
    edited = await bench.text("edit_notebook", **asked)
    assert f"replace: {first}, source_sha256 {digest_of(b'x = 2')}" in edited
    with pytest.raises(errors.DocumentChanged):
        await bench.call("edit_notebook", **asked)
    result = await bench.whole(
        "execute", session_id=session, source="x = 5\nx", placement={"after": first}
    )
    told = result.structured_content
    digest = digest_of(b"x = 5\nx")
    assert told["cell"] == {
        "cell_id": told["execution_id"],
        "source_sha256": digest,
    }
    assert f"its cell has the same id, source_sha256 {digest}]" in result.content[0].text  # type: ignore[union-attr]
    text = await bench.text("read_notebook", path=NOTEBOOK)
    assert "# Title" in text
    assert "x = 2" in text
    assert "by an agent that calls itself 'MCP agent'" in text


async def test_a_chat_works_in_the_notebook_in_front(bench: Bench, desk: Desk) -> None:
    desk.writes(NOTEBOOK, "x = 1")
    with pytest.raises(errors.InvalidRequest):
        await bench.call("execute", source="1")
    bench.managers = dataclasses.replace(bench.managers, open_notebooks=lambda: [NOTEBOOK])
    with pytest.raises(errors.InvalidRequest):
        await bench.call("execute", source="1")
    bench.chat = Chat(id="c1", persona="Claude")
    ran = await bench.whole("execute", source="6 * 7")
    assert ran.content[0].text.startswith("[session s_")
    assert f" in '{NOTEBOOK}': name it" in ran.content[0].text
    assert ran.structured_content["session_id"] == await bench.open(target=IN_NOTEBOOK)


async def test_text_in_a_cell_is_found_and_replaced(bench: Bench, desk: Desk) -> None:
    desk.writes(NOTEBOOK, "total = summ(rows) + 1 + 1")
    session = await bench.open(target=IN_NOTEBOOK)
    (cell,) = cell_ids(await bench.text("read_notebook", path=NOTEBOOK))
    edit = {"op": "replace", "cell_id": cell, "find": "summ(", "source": "sum("}
    # Some clients send JSON in a string.
    edited = await bench.text("edit_notebook", session_id=session, edits=json.dumps([edit]))
    assert digest_of(b"total = sum(rows) + 1 + 1") in edited
    assert "total = sum(rows)" in await bench.text("read_notebook", path=NOTEBOOK)
    for find, count in (("summ(", 0), (" + 1", 2)):
        with pytest.raises(errors.InvalidRequest, match=f"occurs {count} times"):
            await bench.call("edit_notebook", session_id=session, edits=[{**edit, "find": find}])


async def test_notebooks_are_found_in_use_and_on_disk(bench: Bench, desk: Desk) -> None:
    desk.writes(NOTEBOOK, "x = 1")
    folder = desk.root / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "other.ipynb").write_bytes((desk.root / NOTEBOOK).read_bytes())
    (folder / ".hidden.ipynb").write_bytes((desk.root / NOTEBOOK).read_bytes())
    session = await bench.open(target=IN_NOTEBOOK)
    in_use, other = (await bench.text("read_notebook")).splitlines()
    assert in_use.startswith(f"{NOTEBOOK!r}, kernel 'python3' ")
    assert in_use.endswith(f", sessions {session}")
    assert other == "'deep/er/other.ipynb'"
    for path in ("deep/", str(folder)):
        assert await bench.text("read_notebook", path=path) == other
    assert await bench.text("read_notebook", path=str(desk.root)) == f"{in_use}\n{other}"
    assert await bench.text("read_notebook", path="../") == "There is no notebook."


async def test_a_long_notebook_is_read_as_an_outline(bench: Bench, desk: Desk) -> None:
    desk.writes(NOTEBOOK, *(f"# Step {i}\n" + "work()\n" * 20 for i in range(120)))
    result = await bench.whole("read_notebook", path=NOTEBOOK)
    assert size(result) < 12_000
    text = await bench.text("read_notebook", path=NOTEBOOK)
    head, *lines, note = text.splitlines()
    assert "120 cells" in head
    assert [line.split()[0] for line in lines] == [str(i) for i in range(120)]
    assert lines[7].endswith(": # Step 7 (+20 lines)")
    assert "cells=[" in note
    id = lines[7].split()[2].rstrip(":")
    read = await bench.text("read_notebook", path=NOTEBOOK, cells=[id, 119])
    assert cell_ids(read)[0] == id
    assert read.count("work()") == 40


async def test_an_outline_is_read_page_by_page(bench: Bench, desk: Desk) -> None:
    desk.writes(NOTEBOOK, *(f"{i}\n" + "é" * 100 for i in range(1000)))
    read: list[str] = []
    first = 0
    while True:
        text = await bench.text("read_notebook", path=NOTEBOOK, first=first)
        read += re.findall(r"^(?:--- )?(\d+) code ", text, re.MULTILINE)
        if (more := re.search(r"first=(\d+)", text)) is None:
            break
        first = int(more[1])
    assert read == [str(i) for i in range(1000)]


async def test_a_cell_is_read_with_its_images_and_more_of_it(bench: Bench, desk: Desk) -> None:
    data = base64.b64encode(PNG).decode()
    output = nbformat.v4.new_output("display_data", {"image/png": data})
    cells = [nbformat.v4.new_code_cell("y" * 8000, outputs=[output])]
    cells += [nbformat.v4.new_code_cell("z" * 8000)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), desk.root / NOTEBOOK)
    both = await bench.text("read_notebook", path=NOTEBOOK, cells=[0, 1])
    assert both.count("4,000 characters left out]") == 2
    text, image = (await bench.whole("read_notebook", path=NOTEBOOK, cells=["0"])).content
    assert "y" * 8000 in text.text  # type: ignore[union-attr]
    assert isinstance(image, ImageContent)
    assert base64.b64decode(image.data) == PNG
    plain = await bench.whole("read_notebook", path=NOTEBOOK, cells=[0], outputs=False)
    assert len(plain.content) == 1
    with pytest.raises(errors.CellNotFound) as refused:
        await bench.call("read_notebook", path=NOTEBOOK, cells=["nowhere"])
    assert len(refused.value.detail["cell_ids"]) == 2


async def test_only_images_of_cells_that_are_read_are_shown(
    bench: Bench, agent: Agent, desk: Desk
) -> None:
    data = base64.b64encode(PNG).decode()
    output = nbformat.v4.new_output("display_data", {"image/png": data})
    cells = [nbformat.v4.new_code_cell("é" * 8000, id=id) for id in "abcde"]
    cells[0].outputs = cells[4].outputs = [output]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), desk.root / NOTEBOOK)
    scopes = ["exec:notebook", "edit:notebook", "history:read"]
    token = TokenRef(id=TokenId((await mint(agent, *scopes))[0]), label="proposes")
    grants = Grants.parse(scopes)
    bench.caller = replace(PERSON, access="token", token=token, grants=grants, edits="propose")
    session = await bench.open(target=IN_NOTEBOOK)
    new = {"op": "insert", "cell_type": "code", "source": "new", "before": "a"}
    edited = await bench.text("edit_notebook", session_id=session, edits=[new])
    assert edited.startswith("Proposed")
    read = partial(bench.whole, "read_notebook", path=NOTEBOOK, proposed_by=session)
    for named, shown in (([0], 0), ([1], 1), (["a"], 1), (["b", "c", "d", "a", "e"], 1)):
        _, *seen = (await read(cells=named)).content
        assert len(seen) == shown, named


async def test_an_index_is_not_taken_for_an_id(bench: Bench, desk: Desk) -> None:
    cells = [nbformat.v4.new_code_cell(f"x = {id}", id=id) for id in "210"]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), desk.root / NOTEBOOK)
    text = await bench.text("read_notebook", path=NOTEBOOK, cells=[2, "2"])
    assert cell_ids(text) == ["0", "2"]


async def test_what_is_told_of_a_notebook_is_far_below_a_mebibyte(bench: Bench, desk: Desk) -> None:
    output = nbformat.v4.new_output("stream", text="\x01é\n" * 200_000)
    cells = [nbformat.v4.new_code_cell("s" * 2_000_000, outputs=[output])]
    cells += [nbformat.v4.new_code_cell(f"{i}") for i in range(3000)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), desk.root / NOTEBOOK)
    for asked in ({}, {"cells": [0]}, {"cells": list(range(100))}):
        assert size(await bench.whole("read_notebook", path=NOTEBOOK, **asked)) < 300_000


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
        ("stop", {"restart": True}),
        ("stop", {}),
        ("export_notebook", {}),
        ("search_executions", {}),
        ("list_variables", {}),
        ("list_packages", {}),
    ]
    for tool, arguments in by_session:
        with pytest.raises(errors.SessionNotFound):
            await bench.call(tool, session_id=session, **arguments)
    for tool in ("get_execution", "stop"):
        with pytest.raises(errors.ExecutionNotFound):
            await bench.call(tool, execution_id=ran["execution_id"])
    with pytest.raises(errors.NotebookNotFound):
        await bench.call("read_notebook", path=NOTEBOOK)
    edits = [{"op": "clear_outputs"}]
    with pytest.raises((errors.Forbidden, errors.SessionNotFound)):
        await bench.call("edit_notebook", session_id=session, edits=edits)
    assert (await bench.call("list_sessions"))["sessions"] == []
    assert await bench.text("read_notebook") == "There is no notebook."
    assert await bench.text("search_executions") == "There is no execution."
    with pytest.raises(errors.NotebookNotFound):
        await bench.open(target=IN_NOTEBOOK)
    with pytest.raises(errors.NotebookNotFound):
        await bench.call("execute", target=IN_NOTEBOOK, source="1")
