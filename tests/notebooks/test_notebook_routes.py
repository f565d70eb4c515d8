"""Reading and editing notebooks through a real server."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.notebooks.edits import notebook_hash
from tests.asking import Agent, Answered
from tests.notebooks.notebooks_made import (
    NEW_IDS,
    OTHER_MAKERS,
    File,
    as_written,
    code,
    markdown,
    persons_notebook,
    result,
)
from tests.on_disk import record_bytes

PATH = "work here/a+b.ipynb"
ROUTE = f"notebooks/{PATH}/cells"
STREAM = {"output_type": "stream", "name": "stdout", "text": "a\n"}


@pytest.fixture
def file(jp_root_dir: Path) -> File:
    (jp_root_dir / "work here").mkdir()
    file = File(jp_root_dir / PATH)
    file.text = as_written(
        persons_notebook(
            markdown("title", "# Sales"),
            code("load", "df = 1", [STREAM, result(text_html="<b>1</b>", text_plain="1")]),
        )
    )
    return file


def on_disk(file: File) -> list[dict[str, Any]]:
    cells = json.loads(file.text)["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells]


async def opened(agent: Agent, path: str = PATH) -> str:
    session = await agent.open(target={"kind": "notebook", "path": path})
    return str(session["id"])


async def edit(agent: Agent, session_id: str, *edits: Any, **asked: Any) -> Answered:
    body = {"session_id": session_id, "edits": list(edits), **asked}
    return await agent.ask("PATCH", asked.pop("route", ROUTE), body)


def entries(history_dir: Path, session_id: str) -> list[dict[str, Any]]:
    """Return what the journal says of edits, with payloads in the place of digests."""
    path = history_dir / "sessions" / session_id / "journal.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found = []
    for line in lines:
        entry, payloads = line["entry"], line.get("payloads", {})
        if entry["type"].startswith("notebook_edit"):
            found.append(
                {
                    key: json.loads(payloads[value]) if value in payloads else value
                    for key, value in entry.items()
                    if isinstance(value, (str, type(None)))
                }
            )
    return found


INSERT = {"op": "insert", "cell_type": "code", "source": "2"}


async def test_cells_are_read_as_an_agent_reads_them(agent: Agent, file: File) -> None:
    answered = await agent.get(ROUTE)
    assert answered.status == 200
    read = answered.json
    assert (read["path"], read["via"]) == (PATH, "contents")
    assert read["hash"] == notebook_hash(on_disk(file))
    title, load = read["cells"]
    assert (title["cell_type"], title["source"], title["text"]) == ("markdown", "# Sales", "")
    assert load == {
        "id": "load",
        "index": 1,
        "cell_type": "code",
        "source": "df = 1",
        "source_sha256": hashlib.sha256(b"df = 1").hexdigest(),
        "execution_count": None,
        "text": "a\n1",
        "execution_id": None,
        "agent": None,
        "stale": None,
    }


async def test_outputs_can_be_left_out_and_are_capped_with_a_note(agent: Agent, file: File) -> None:
    ours = {"execution_id": "x_1", "agent": {"name": "tester"}}
    long = [{**STREAM, "text": "é" * 50_000}]
    run = code("run", outputs=long)
    run["metadata"]["agent_exec"] = ours
    file.text = as_written(persons_notebook(code("own", outputs=long), run))
    own, run = (await agent.get(ROUTE)).json["cells"]
    assert len(own["text"]) < 10_100
    assert "[… 40,000 characters left out …]" in own["text"]
    assert "/executions/x_1/text?offset=10000 …]" in run["text"]
    assert (run["execution_id"], run["agent"]) == ("x_1", "tester")
    own, _ = (await agent.get(ROUTE, text_limit=1000)).json["cells"]
    assert "[… 49,000 characters left out …]" in own["text"]
    own, _ = (await agent.get(ROUTE, text_limit=100_000)).json["cells"]
    assert own["text"] == "é" * 50_000
    own, _ = (await agent.get(ROUTE, outputs="false")).json["cells"]
    assert own["text"] == ""


async def test_what_stands_in_the_place_of_our_metadata_is_no_error(
    agent: Agent, file: File
) -> None:
    cells = [code("b"), code("c")]
    cells[0]["metadata"]["agent_exec"] = "a string"
    cells[1]["metadata"]["agent_exec"] = {"execution_id": 7, "agent": ["x"]}
    file.text = as_written(persons_notebook(*cells))
    answered = await agent.get(ROUTE)
    assert [cell["execution_id"] for cell in answered.json["cells"]] == [None, None]


async def test_a_notebook_that_jupyter_cannot_sign_is_told_as_unreadable(
    agent: Agent, file: File
) -> None:
    file.text = as_written(persons_notebook(code("a", "surrogate"))).replace("surrog", "\\ud800")
    answered = await agent.get(ROUTE)
    assert (answered.status, answered.json["code"]) == (409, "document_unwritable")


NO_NOTEBOOKS = [
    ("gone.ipynb", 404, "notebook_not_found"),
    ("work here", 404, "notebook_not_found"),
    ("work here/../../x.ipynb", 404, None),
    (".hidden/a.ipynb", 404, "notebook_not_found"),
    ("text.txt", 409, "document_unwritable"),
]


async def test_where_no_notebook_is_is_said(agent: Agent, file: File, jp_root_dir: Path) -> None:
    (jp_root_dir / ".hidden").mkdir()
    File(jp_root_dir / ".hidden" / "a.ipynb").text = file.text
    File(jp_root_dir / "text.txt").text = "no notebook"
    for path, status, told in NO_NOTEBOOKS:
        answered = await agent.get(f"notebooks/{path}/cells")
        assert answered.status == status, path
        assert told is None or answered.json["code"] == told, path


async def test_edits_are_made_and_recorded_before_and_after(
    agent: Agent, file: File, history_dir: Path
) -> None:
    session_id = await opened(agent)
    read = (await agent.get(ROUTE)).json
    replace = {"op": "replace", "cell_id": "load", "source": "df = 2"}
    answered = await edit(
        agent, session_id, {**INSERT, "after": "title"}, replace, hash=read["hash"]
    )
    assert answered.status == 200, answered.body
    edited = answered.json
    (new,), changed = edited["cell_ids"]
    assert changed == ["load"]
    assert [(cell["id"], cell["source"]) for cell in on_disk(file)] == [
        ("title", "# Sales"),
        (new, "2"),
        ("load", "df = 2"),
    ]
    assert len(on_disk(file)[2]["outputs"]) == 2
    assert edited["hash"] == (await agent.get(ROUTE)).json["hash"]
    assert (edited["path"], edited["via"]) == (PATH, "contents")
    asked, made = entries(history_dir, session_id)
    assert (asked["type"], made["type"]) == ("notebook_edit_asked", "notebook_edited")
    assert [one["op"] for one in asked["edits"]] == ["insert", "replace"]
    assert made["before"] == {
        "order": ["title", "load"],
        "cells": {"load": {"cell_type": "code", "source": "df = 1"}},
    }
    assert made["after"] == {
        "order": ["title", new, "load"],
        "cells": {
            new: {"cell_type": "code", "source": "2"},
            "load": {"cell_type": "code", "source": "df = 2"},
        },
    }
    assert (await agent.get(f"sessions/{session_id}")).json["chain"] == edited["chain"]
    await agent.ask("POST", f"sessions/{session_id}/close")
    assert verify_history(history_dir).findings == []


async def test_nothing_is_done_when_the_notebook_has_changed(
    agent: Agent, file: File, history_dir: Path
) -> None:
    session_id = await opened(agent)
    read = (await agent.get(ROUTE)).json
    file.text = file.text.replace("# Sales", "# Edited by the person")
    before, recorded = file.text, record_bytes(history_dir)
    old = hashlib.sha256(b"# Sales").hexdigest()
    for answered, field in (
        (await edit(agent, session_id, INSERT, hash=read["hash"]), "hash"),
        (
            await edit(
                agent,
                session_id,
                INSERT,
                {"op": "delete", "cell_id": "title", "source_sha256": old},
            ),
            "edits[1].source_sha256",
        ),
    ):
        assert (answered.status, answered.json["code"]) == (409, "document_changed")
        detail = answered.json["detail"]
        assert detail["field"] == field
        assert detail["hash"] == notebook_hash(on_disk(file))
        assert [cell["source"] for cell in detail["cells"]] == ["# Edited by the person", "df = 1"]
    assert file.text == before
    assert record_bytes(history_dir) == recorded


REFUSED: list[tuple[dict[str, Any], int, str, str | None]] = [
    ({}, 400, "invalid_request", "session_id"),
    ({"edits": []}, 400, "invalid_request", "edits"),
    ({"edits": [INSERT] * 1001}, 400, "invalid_request", "edits"),
    ({"edits": [{"op": "explode"}]}, 400, "invalid_request", "edits[0].op"),
    ({"edits": [{**INSERT, "trusted": True}]}, 400, "invalid_request", "edits[0].trusted"),
    ({"edits": [{**INSERT, "metadata": {"trusted": True}}]}, 400, "invalid_request", None),
    ({"edits": [INSERT], "hash": "x"}, 400, "invalid_request", "hash"),
    (
        {"edits": [INSERT, {**INSERT, "after": "title", "before": "load"}]},
        400,
        "invalid_request",
        "edits[1].after",
    ),
    (
        {"edits": [{"op": "split", "cell_id": "load", "parts": []}]},
        400,
        "invalid_request",
        "edits[0].parts",
    ),
    (
        {"edits": [{"op": "clear_outputs", "cell_id": "title"}]},
        400,
        "invalid_request",
        "edits[0].cell_id",
    ),
    (
        {"edits": [{"op": "delete", "cell_id": "gone"}]},
        404,
        "cell_not_found",
        "edits[0].cell_id",
    ),
    (
        {"edits": [INSERT], "session_id": "s_01JD0000000000000000000000"},
        404,
        "session_not_found",
        None,
    ),
]


async def test_what_cannot_be_done_is_refused_by_name_and_changes_nothing(
    agent: Agent, file: File, history_dir: Path
) -> None:
    session_id = await opened(agent)
    before, recorded = file.text, record_bytes(history_dir)
    for asked, status, error, field in REFUSED:
        body = {"session_id": session_id, **asked} if asked else asked
        answered = await agent.ask("PATCH", ROUTE, body)
        assert (answered.status, answered.json["code"]) == (status, error), answered.body
        if field is not None:
            assert answered.json["detail"]["field"] == field
        assert file.text == before
        assert record_bytes(history_dir) == recorded


async def test_only_a_session_of_this_notebook_edits_it(agent: Agent, file: File) -> None:
    scratch = (await agent.open())["id"]
    answered = await edit(agent, scratch, INSERT)
    assert (answered.status, answered.json["detail"]["field"]) == (400, "session_id")
    session_id = await opened(agent)
    answered = await agent.ask(
        "PATCH", "notebooks/other.ipynb/cells", {"session_id": session_id, "edits": [INSERT]}
    )
    assert (answered.status, answered.json["detail"]["path"]) == (400, PATH)
    await agent.ask("POST", f"sessions/{session_id}/close")
    answered = await edit(agent, session_id, INSERT)
    assert (answered.status, answered.json["code"]) == (409, "session_closed")


async def test_the_record_says_that_a_notebook_cannot_be_written(
    agent: Agent, file: File, history_dir: Path
) -> None:
    file.text = json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": []})
    before = file.text
    session_id = await opened(agent)
    answered = await edit(agent, session_id, INSERT)
    assert (answered.status, answered.json["code"]) == (409, "document_unwritable")
    assert file.text == before
    asked, refused = entries(history_dir, session_id)
    assert asked["type"] == "notebook_edit_asked"
    assert (refused["type"], refused["code"]) == ("notebook_edit_refused", "document_unwritable")


@NEW_IDS
@pytest.mark.parametrize("made", ["nbformat 4.4", "an id twice"])
async def test_cells_without_ids_are_read_and_edited_by_their_names(
    agent: Agent, file: File, made: str
) -> None:
    file.text = json.dumps(OTHER_MAKERS[made])
    session_id = await opened(agent)
    read = (await agent.get(ROUTE)).json
    assert (await agent.get(ROUTE)).json == read
    title, first, second, raw, *_ = (cell["id"] for cell in read["cells"])
    edits = [
        {"op": "replace", "cell_id": second, "source": "changed"},
        {"op": "delete", "cell_id": first},
        {"op": "move", "cell_id": raw, "before": title},
        {"op": "clear_outputs"},
    ]
    edited = await edit(agent, session_id, *edits, hash=read["hash"])
    assert edited.status == 200, edited.body
    again = (await agent.get(ROUTE)).json
    assert again["hash"] == edited.json["hash"]
    assert [cell["id"] for cell in again["cells"][:3]] == [raw, title, second]
    assert again["cells"][2]["source"] == "changed"
    placement = {"cell": second, "source_sha256": again["cells"][2]["source_sha256"]}
    ran = await agent.run({"id": session_id}, "5 * 5", placement=placement)
    assert ran["document"]["cell_id"] == second
    assert [cell["text"] for cell in (await agent.get(ROUTE)).json["cells"][1:3]] == ["", "25"]


async def test_a_notebook_is_found_by_its_absolute_path_and_in_capital_letters(
    agent: Agent, file: File, jp_root_dir: Path
) -> None:
    capital = File(jp_root_dir / "work here" / "x.IPYNB")
    capital.text = file.text
    session = await agent.open(target={"kind": "notebook", "path": "work here/x.IPYNB"})
    assert session["target"]["path"] == "work here/x.IPYNB"
    absolute = f"{jp_root_dir}/{PATH}"
    session = await agent.open(target={"kind": "notebook", "path": absolute})
    assert session["target"]["path"] == PATH
    route = f"notebooks{absolute}/cells"
    assert (await agent.get(route)).json["path"] == PATH
    edited = await agent.ask("PATCH", route, {"session_id": session["id"], "edits": [INSERT]})
    assert edited.json["path"] == PATH
    # What is there as a contents path is taken as one.
    (jp_root_dir / absolute.lstrip("/")).parent.mkdir(parents=True)
    File(jp_root_dir / absolute.lstrip("/")).text = file.text
    session = await agent.open(target={"kind": "notebook", "path": absolute})
    assert session["target"]["path"].lstrip("/") == absolute.lstrip("/")
    outside = await agent.get(f"notebooks{jp_root_dir.parent}/gone.ipynb/cells")
    assert (outside.status, outside.json["code"]) == (404, "notebook_not_found")


async def test_a_body_over_its_limit_is_refused(agent: Agent, file: File) -> None:
    session_id = await opened(agent)
    answered = await edit(agent, session_id, {**INSERT, "source": "x" * 6_000_000})
    assert (answered.status, answered.json["code"]) == (413, "payload_too_large")


async def test_notebooks_in_use_are_listed(agent: Agent, file: File, jp_serverapp: Any) -> None:
    assert (await agent.get("notebooks")).json == {"notebooks": []}
    session_id = await opened(agent)
    (listed,) = (await agent.get("notebooks")).json["notebooks"]
    kernel = (await agent.get(f"sessions/{session_id}")).json["kernel"]
    assert listed["kernel"].pop("execution_state") in ("starting", "idle", "busy")
    assert listed == {
        "path": PATH,
        "via": "contents",
        "kernel": {"id": kernel["id"], "name": kernel["name"]},
        "tabs": 0,
        "unsaved": None,
        "session_ids": [session_id],
    }
    await agent.ask("POST", f"sessions/{session_id}/close")
    (listed,) = (await agent.get("notebooks")).json["notebooks"]
    assert listed["session_ids"] == []


async def test_a_verb_that_is_not_there_is_told(agent: Agent, file: File) -> None:
    answered = await agent.ask("POST", ROUTE, {})
    assert (answered.status, answered.headers["Allow"]) == (405, "GET, OPTIONS, PATCH")
