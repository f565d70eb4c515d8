"""Running code by tools, and what is told of it."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jupyter_core.utils import ensure_async
from mcp_types import ImageContent, TextContent

from jupyter_agent_exec import errors
from jupyter_agent_exec.mcp import budget
from jupyter_agent_exec.models import Claim
from jupyter_agent_exec.types import ExecutionId
from tests.asking import Agent
from tests.mcp.mcp_clients import text_of
from tests.mcp.tools_bench import Bench, size
from tests.real_server import Gate

PLOT = """
import base64, io, struct, zlib
from IPython.display import display, Image, SVG
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(width, height, row=None):
    row = row or (lambda: b"\\xff\\x80\\x00" * width)
    rows = zlib.compress(b"".join(b"\\0" + row() for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\\x89PNG\\r\\n\\x1a\\n" + body
"""


async def test_code_that_runs_is_told_as_text_first(bench: Bench) -> None:
    session = await bench.open()
    result = await bench.whole("execute", session_id=session, source="print('seen')\n1 + 1")
    told = result.structured_content
    assert told["text"] == "seen\n2"
    assert (told["status"], told["seq"]) == ("ok", 1)
    assert set(told) == {"execution_id", "seq", "status", "text", "next_approval", "duration"}
    (text,) = result.content
    assert isinstance(text, TextContent)
    assert text.text.startswith(f"seen\n2\n[execution {told['execution_id']} (#1): ok, ")


async def test_a_restart_is_told_with_the_next_execution(bench: Bench) -> None:
    session = await bench.open()
    await bench.run(session, "x = 1")
    await bench.call("stop", session_id=session, restart=True)
    told = await bench.run(session, "'x' in globals()")
    assert told["text"].startswith("False\n[The kernel is a fresh one")


async def test_values_come_as_json(bench: Bench) -> None:
    session = await bench.open()
    values = {"n": "1 + 1", "names": "['a', 'b']", "bad": "1 / 0"}
    result = await bench.whole("execute", session_id=session, source="x = 1", values=values)
    told = result.structured_content["values"]
    assert told["n"] == {"status": "ok", "json": 2}
    assert told["names"]["json"] == ["a", "b"]
    assert told["bad"]["ename"] == "ZeroDivisionError"
    first = result.content[0]
    assert isinstance(first, TextContent)
    assert 'n = 2\nnames = ["a","b"]\nbad = ZeroDivisionError' in first.text


async def test_a_long_text_is_cut_and_read_on_with_a_tool(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, "for i in range(20_000): print('line', i)")
    assert len(told["text"]) < budget.TEXT + 200
    note = told["text"].split("[… ")[1].split(" …]")[0]
    call = f'get_execution(execution_id="{told["execution_id"]}", offset='
    assert f"characters left out; {call}" in note
    offset = int(note.rpartition("offset=")[2].rstrip(")"))
    head = told["text"].split("[… ")[0]
    part = await bench.text("get_execution", execution_id=told["execution_id"], offset=offset)
    text, _, note = part.rpartition("\n")
    whole = "".join(f"line {i}\n" for i in range(20_000))
    assert (head + text).rstrip("\n") == whole[: offset + 20_000].rstrip("\n")
    assert f"go on with {call}{offset + 20_000})]" in note


async def test_a_text_is_searched(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, "for i in range(5000): print('line', i)")
    whole = "".join(f"line {i}\n" for i in range(5000))
    look = partial(bench.text, "get_execution", execution_id=told["execution_id"])
    assert (await look(match="LINE 999")).splitlines() == [f"{whole.index('line 999')}: line 999"]
    assert await look(match="999", offset=len(whole) - 5) == f"{len(whole) - 5}: 4999"
    assert await look(match="nosuch") == "There is no line with 'nosuch'."


async def test_matches_that_do_not_fit_are_found_further_on(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, "for i in range(99): print(f'{i:02}', 'é' * 900)")
    lines: list[str] = []
    offset: int | None = 0
    calls = 0
    while offset is not None:
        asked = {"execution_id": told["execution_id"], "match": "é", "offset": offset}
        text = await bench.text("get_execution", **asked)
        lines += re.findall(r"^\d+: (\d\d) ", text, re.MULTILINE)
        more = re.search(r"offset=(\d+)", text)
        offset, calls = None if more is None else int(more[1]), calls + 1
    assert lines == [f"{i:02}" for i in range(99)]
    assert calls > 1


# -- sessions and steps ------------------------------------------------------------------------


async def test_the_first_execution_opens_a_session(bench: Bench) -> None:
    asked = {"target": {"kind": "scratch"}, "source": "x = 6", "idempotency_key": "first"}
    result = await bench.whole("execute", **asked)
    told = result.structured_content
    session = told["session_id"]
    assert text_of(result).startswith(f"[session {session}: name it in your next calls]\n")
    assert (await bench.run(session, "x * 7"))["text"] == "42"
    again = await bench.call("execute", **asked)
    assert (again["session_id"], again["execution_id"]) == (session, told["execution_id"])
    with pytest.raises(errors.InvalidRequest, match="give a target to open one"):
        await bench.call("execute", source="1")


async def test_a_call_that_is_refused_leaves_no_session_open(bench: Bench) -> None:
    scratch = {"target": {"kind": "scratch"}}
    for refused in ({}, {"source": "1", "placement": {"cell": "a"}}, {"steps": [{}]}):
        with pytest.raises(errors.InvalidRequest):
            await bench.call("execute", **scratch, **refused)
    assert (await bench.call("list_sessions"))["sessions"] == []
    told = await bench.call("execute", **scratch, source="1", idempotency_key="one")
    with pytest.raises(errors.IdempotencyConflict):
        await bench.call("execute", **scratch, source="2", idempotency_key="one")
    listed = (await bench.call("list_sessions"))["sessions"]
    assert [each["session_id"] for each in listed] == [told["session_id"]]


async def test_a_call_that_is_refused_leaves_no_notebook(
    bench: Bench, jp_root_dir: Path, jp_serverapp: Any
) -> None:
    target = {"kind": "notebook", "path": "new.ipynb", "create": True}
    refused: tuple[dict[str, Any], ...] = (
        {},
        {"source": "1", "placement": {"cell": "a"}},
        {"source": "1", "timeout": 10**9},
        {"steps": [{}]},
    )
    for asked in refused:
        with pytest.raises(errors.AgentExecError):
            await bench.call("execute", target=target, **asked)
        assert not (jp_root_dir / "new.ipynb").exists()
        assert await ensure_async(jp_serverapp.session_manager.list_sessions()) == []


async def test_each_step_says_why(bench: Bench) -> None:
    told = await bench.whole(
        "execute",
        target={"kind": "scratch"},
        purpose="to count",
        steps=[{"source": "1"}, {"source": "2", "claim": {"purpose": "to go on"}}],
    )
    ids = re.findall(r"execution (x_\w+)", text_of(told))
    records = [await bench.managers.sessions.execution(ExecutionId(id)) for id in ids]
    claims = [record.claim for record in records]
    assert claims == [Claim(purpose="to count"), Claim(purpose="to go on")]


async def test_several_steps_run_until_one_fails(bench: Bench) -> None:
    session = await bench.open()
    steps = [{"source": "x = 1"}, {"source": "x + 1", "values": {"x": "x"}}, {"source": "1 / 0"}]
    text = await bench.text("execute", session_id=session, steps=[*steps, {"source": "x = 5"}])
    assert "\n2\nx = 1\n[execution x_" in text
    statuses = re.findall(r"^\[execution \w+ \(#\d\): (\w+)", text, re.MULTILINE)
    assert statuses == ["ok", "ok", "error", "cancelled"]
    assert (await bench.run(session, "x"))["text"] == "1"


async def test_steps_that_wait_say_so(bench: Bench, gate: Gate) -> None:
    session = await bench.open()
    steps = [{"source": gate.source}, {"source": "2"}]
    text = await bench.text("execute", session_id=session, steps=steps, wait=0.2)
    assert re.findall(r"\(#\d\): (\w+)", text) == ["running", "queued"]
    await asyncio.to_thread(gate.wait_until_it_runs)
    gate.let_it_go_on()


async def test_the_pictures_and_texts_of_steps_share_the_room_of_one(bench: Bench) -> None:
    session = await bench.open()
    noise = f"{PLOT}\nimport os\ndisplay(Image(png(400, 300, lambda: os.urandom(1200))))"
    noise += "\nprint('é\"' * 100_000)"
    steps = [{"source": noise, "values": {"v": "'é' * 100_000"}}] * budget.STEPS
    result = await bench.whole("execute", session_id=session, steps=steps, wait=60)
    assert size(result) < 950_000
    assert text_of(result).count(": ok, ") == budget.STEPS


async def test_of_long_steps_only_the_last_is_told_whole(bench: Bench, agent: Agent) -> None:
    session = await bench.open()
    first = await bench.run(session, "1")
    review = {"verdict": "flagged", "comment": "Not so."}
    answered = await agent.ask("PUT", f"executions/{first['execution_id']}/review", review)
    assert answered.status == 200, answered.body
    steps = [{"source": "1", "values": {"v": "'v' * 9_000"}}] * budget.STEPS
    text = await bench.text("execute", session_id=session, steps=steps, wait=60)
    assert text.count(": ok, ") == budget.STEPS
    assert text.count("v = ") == 1
    assert "The user wrote about cell 1 (flagged): Not so." in text


async def test_frames_in_libraries_are_folded(bench: Bench) -> None:
    session = await bench.open()
    told = await bench.run(session, "import json\njson.loads('{x')")
    first, where, *lines = told["text"].splitlines()
    assert first.startswith("JSONDecodeError")
    assert where.startswith("Cell In[1], line 2")
    assert "----> 2 json.loads('{x')" in lines
    assert (
        "[3 frames in libraries, the last: json/decoder.py:353, in JSONDecoder.raw_decode]" in lines
    )
    assert lines[-1].startswith("JSONDecodeError: Expecting property name")
    whole = await bench.text("get_execution", execution_id=told["execution_id"], offset=0)
    assert "obj, end = self.scan_once(s, idx)" in whole


# -- images ------------------------------------------------------------------------------------


async def test_an_image_comes_as_image_content_with_the_url_of_the_original(bench: Bench) -> None:
    session = await bench.open()
    source = f"{PLOT}\ndisplay(Image(png(4000, 2400)))\nprint('done')"
    result = await bench.whole("execute", session_id=session, source=source)
    text, image = result.content
    assert isinstance(text, TextContent)
    assert isinstance(image, ImageContent)
    told = result.structured_content
    assert text.text.startswith("[image 1: 4000×2400 png, ")
    assert image.mime_type == "image/png"
    (described,) = told["images"]
    assert described["shown"] is True
    original = f"Original: GET {described['url']}"
    assert f"[image 1 is below, scaled down from 4000×2400. {original}]" in text.text
    history = bench.managers.sessions.history
    digest = described["url"].removeprefix("/api/agent-exec/blobs/")
    path, mimetype, size_bytes = await history.read(history.recorded.blob, digest)
    assert (path.stat().st_size, mimetype) == (size_bytes, "image/png")
    assert "iVBOR" not in text.text + str(told)


async def test_of_many_images_some_are_shown_and_the_others_named(bench: Bench) -> None:
    session = await bench.open()
    source = f"{PLOT}\nfor i in range(30): display(Image(png(20 + i, 20)))"
    result = await bench.whole("execute", session_id=session, source=source)
    assert sum(isinstance(block, ImageContent) for block in result.content) == budget.PICTURES
    told = result.structured_content
    assert len(told["images"]) == budget.IMAGES
    assert [image["shown"] for image in told["images"]] == [True] * 4 + [False] * 16
    assert "10 more images are in the exported notebook" in told["notes"]


async def test_an_svg_is_named_with_its_size_and_url(bench: Bench) -> None:
    session = await bench.open()
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"/>'
    source = f"from IPython.display import SVG\nSVG({svg!r})"
    result = await bench.whole("execute", session_id=session, source=source)
    (text,) = result.content
    assert isinstance(text, TextContent)
    (told,) = result.structured_content["images"]
    assert text.text.startswith(f"[image 1: 30×20 svg, {told['bytes']} bytes]")
    assert f"display it as PNG to see it. Original: GET {told['url']}]" in text.text


async def test_a_damaged_image_and_a_chart_are_named(bench: Bench) -> None:
    session = await bench.open()
    source = (
        "from IPython.display import display\n"
        "display({'image/png': 'iVBORw0KGgo='}, raw=True)\n"
        "display({'application/vnd.plotly.v1+json': {'data': [{'type': 'bar'}]}}, raw=True)"
    )
    text = await bench.text("execute", session_id=session, source=source)
    assert "image 1 is not shown: Its data is damaged" in text
    assert "[application/vnd.plotly.v1+json output]" in text


# -- waiting -----------------------------------------------------------------------------------


async def test_code_that_goes_on_is_told_of_meanwhile(bench: Bench, gate: Gate) -> None:
    session = await bench.open()
    source = f"print('first line')\n{gate.source}"
    waiting = asyncio.create_task(bench.run(session, source, wait=30))
    await asyncio.to_thread(gate.wait_until_it_runs)
    await bench.client.heard.wait()
    progress = bench.client.told[-1]
    assert bench.client.logged == ["first line"]
    gate.let_it_go_on()
    told = await waiting
    assert told["text"] == "first line\nwent on\n"
    assert progress.startswith("Runs; ")
    assert progress.endswith(", 1 line of output.")


async def test_when_the_wait_is_over_the_code_goes_on(bench: Bench, gate: Gate) -> None:
    session = await bench.open()
    told = await bench.run(session, gate.source, wait=0.2)
    assert told["status"] == "running"
    assert f'get_execution(execution_id="{told["execution_id"]}", wait=30)' in told["notes"][0]
    waiting = asyncio.create_task(
        bench.call("get_execution", execution_id=told["execution_id"], wait=30)
    )
    await asyncio.to_thread(gate.wait_until_it_runs)
    gate.let_it_go_on()
    assert (await waiting)["text"] == "went on\n"


async def test_what_runs_is_cancelled(bench: Bench, gate: Gate) -> None:
    session = await bench.open()
    running = await bench.run(session, gate.source, wait=0)
    waiting = await bench.run(session, "1", wait=0)
    assert waiting["status"] == "queued"
    id = running["execution_id"]
    assert f'behind your own execution {id}, which stop(execution_id="{id}")' in waiting["notes"][0]
    cancelled = await bench.call("stop", execution_id=waiting["execution_id"])
    assert cancelled["status"] == "cancelled"
    await asyncio.to_thread(gate.wait_until_it_runs)
    stopped = await bench.call("stop", execution_id=running["execution_id"])
    assert stopped["status"] == "interrupted"
    with pytest.raises(errors.AlreadyFinished):
        await bench.call("stop", execution_id=running["execution_id"])


# -- arguments ---------------------------------------------------------------------------------


async def test_a_refused_argument_says_what_is_expected(bench: Bench) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        await bench.call("execute", session_id="s_1", source="1", wait="long")
    assert refused.value.detail["expected"]["type"] == "number"
    with pytest.raises(errors.InvalidRequest) as refused:
        await bench.call("execute", session_id="s_1", code="1")
    assert {"session_id", "source", "target"} < set(refused.value.detail["arguments"])


# -- refusals ----------------------------------------------------------------------------------


BAD_ARGUMENTS: list[tuple[str, dict[str, Any], str]] = [
    *(
        ("execute", {"session_id": "{session}", **arguments}, field)
        for arguments, field in (
            ({"source": 5}, "source"),
            ({"source": "1", "wait": -1}, "wait"),
            ({"source": "1", "timeout": 0}, "timeout"),
            ({"source": "1", "idempotency_key": "k" * 201}, "idempotency_key"),
            ({"source": "1", "values": {"a": 1}}, "values"),
            ({"source": "1", "steps": [{"source": "1"}]}, "source"),
            ({"values": {"a": "1"}, "steps": [{"source": "1"}]}, "values"),
            ({"placement": "none", "steps": [{"source": "1"}]}, "placement"),
            ({"trial": True, "steps": [{"source": "1"}]}, "trial"),
            ({"revises": "x_1", "steps": [{"source": "1"}]}, "revises"),
            ({"source": "1", "target": {"kind": "scratch"}}, "target"),
            ({"steps": [1]}, "steps"),
            ({"steps": [{"source": "1"}, {"code": "1"}]}, "steps"),
            ({"source": "1", "target": {"kind": "moon"}}, "target"),
            ({"source": "1", "more": 1}, "more"),
            ({"source": "1", "placement": "middle"}, "placement"),
            ({"source": None}, "source"),
        )
    ),
    ("open_session", {"restore": "s_1", "title": "again"}, "title"),
    ("open_session", {"restore": "s_1", "target": {"kind": "kernel", "kernel_id": "k"}}, "target"),
    ("stop", {"execution_id": "x_1", "session_id": "s_1"}, "session_id"),
    ("stop", {"execution_id": "x_1", "restart": True}, "restart"),
    ("stop", {}, "execution_id"),
    ("read_notebook", {"path": "a.ipynb", "cells": [1], "first": 1}, "first"),
    ("read_notebook", {"cells": [1]}, "cells"),
    ("read_notebook", {"path": "work", "proposed_by": "s_1"}, "proposed_by"),
    ("edit_notebook", {"session_id": "{session}", "edits": [{"op": "paint"}]}, "edits"),
    ("write_file", {"session_id": "{session}", "path": "a"}, "text"),
    (
        "write_file",
        {"session_id": "{session}", "path": "a", "text": "a", "base64": "YQ=="},
        "base64",
    ),
    ("write_file", {"session_id": "{session}", "path": "a", "base64": "not base64!"}, "base64"),
    ("read_file", {"session_id": "{session}", "match": "a"}, "match"),
    ("read_file", {"session_id": "{session}", "offset": 1}, "offset"),
]
"""Tools, arguments and the field that is refused; `{session}` is a session that is open."""


async def test_bad_arguments_are_refused_by_name(bench: Bench) -> None:
    session = await bench.open()
    for tool, arguments, field in BAD_ARGUMENTS:
        if "session_id" in arguments:
            arguments |= {"session_id": arguments["session_id"].format(session=session)}
        with pytest.raises(errors.InvalidRequest) as refused:
            await bench.call(tool, **arguments)
        assert field in str(refused.value.detail["field"]), arguments


async def test_each_tool_asks_for_its_scope_before_it_does_anything(bench: Bench) -> None:
    session = await bench.open()
    ran = await bench.run(session, "x = 1")
    bench.refused = {"exec", "stop", "history:read"}
    for tool, arguments in (
        ("execute", {"session_id": session, "source": "x = 2"}),
        ("get_execution", {"execution_id": ran["execution_id"]}),
        ("stop", {"execution_id": ran["execution_id"]}),
    ):
        with pytest.raises(errors.Forbidden):
            await bench.call(tool, **arguments)
    bench.refused = set()
    assert (await bench.run(session, "x"))["text"] == "1"


# -- always bounded ----------------------------------------------------------------------------

HUGE = {
    "text": "print('é\\n' * 3_000_000)",
    "control characters": "print('\\x01\\x02\"\\\\' * 1_000_000)",
    "one line": "print('x' * 10_000_000)",
    "error": "raise ValueError('\\u2028' * 5_000_000)",
    "name of an error": "raise type('E' * 1_000_000, (Exception,), {})('x')",
    "result": "'y' * 8_000_000",
    "html": "from IPython.display import HTML\nHTML('<p>' + 'z ' * 4_000_000)",
    "json": "from IPython.display import JSON\nJSON({'k' * 5_000_000: ['v'] * 500_000})",
    "images": (
        f"{PLOT}\nimport os\n"
        "for i in range(8): display(Image(png(900, 700, lambda: os.urandom(2700))))\n"
        "print('é\"' * 100_000)"
    ),
}


async def test_an_answer_is_far_below_a_mebibyte_whatever_runs(bench: Bench) -> None:
    session = await bench.open()
    values = {f"{i:03}" + "é" * 190: "'\\x00\"' * 100_000" for i in range(20)}
    values["table"] = "{'k' * 1000 + str(i): 'é' * 1000 for i in range(1000)}"
    for what, source in HUGE.items():
        result = await bench.whole("execute", session_id=session, source=source, values=values)
        assert size(result) < 950_000, what
        assert len(text_of(result)) <= budget.LONG_RESULT, what
        id = result.structured_content["execution_id"]
        for asked in ({}, {"offset": 0}, {"offset": 1_000_001}, {"match": "x"}):
            found = await bench.whole("get_execution", execution_id=id, **asked)
            assert size(found) < 950_000, (what, asked)
