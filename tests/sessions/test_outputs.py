"""Outputs over the routes: capped, late, updated from afar, streamed, read by range."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import nbformat
import pytest

from tests.asking import Agent
from tests.sessions.test_history_pages import PLOT


def events(body: bytes) -> list[tuple[str, str, Any]]:
    found = []
    for block in body.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((fields["event"], fields["id"], json.loads(fields["data"])))
    return found


def applied(steps: list[Any], seen: list[Any] | None = None) -> list[Any]:
    """Apply the `output` events of a stream as a watcher would."""
    outputs: list[Any] = seen or []
    for change in steps:
        if change.get("truncate"):
            del outputs[change["index"] :]
        elif "append" in change:
            outputs[change["index"]]["text"] += change["append"]
        elif change["index"] == len(outputs):
            outputs.append(change["output"])
        else:
            outputs[change["index"]] = change["output"]
    return outputs


async def test_an_image_has_its_size_and_can_be_fetched(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, PLOT)
    (image,) = done["images"]
    assert (image["mimetype"], image["width"], image["height"]) == ("image/png", 2, 3)
    assert "[image 1: 2×3 png" in done["text"]
    assert "iVBOR" not in done["text"]
    fetched = await agent.get(image["url"].partition("agent-exec/")[2])
    assert fetched.status == 200
    assert fetched.body.startswith(b"\x89PNG")
    assert len(fetched.body) == image["bytes"]
    assert fetched.headers["Content-Type"] == "image/png"
    assert fetched.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in fetched.headers["Content-Security-Policy"]
    assert fetched.headers["Content-Disposition"].startswith("attachment")


async def test_what_only_the_reply_tells_is_among_the_outputs(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "x = 41")
    payloads = {
        "x?": "int([x]) -> integer",
        "x??": "int([x]) -> integer",
        "%pinfo x": "String form: 41",
        "%prun sum([1])": "function calls",
        "x?\n1 / 0": "String form: 41",
        "%recall 1": "source for the next cell. It has not run.]\nx = 41",
        "get_ipython().set_next_input('y = 42', replace=True)": "this cell's. It has not run.]\ny",
        "get_ipython().payload_manager.write_payload({'source': 'edit_magic'})": ": edit_magic]",
    }
    for source, told in payloads.items():
        done = await agent.run(session, source)
        assert told in done["text"], source
        shown = done["cell"]["outputs"][-1]
        assert shown["output_type"] == "display_data"
        assert (await agent.get(f"executions/{done['id']}")).json["text"] == done["text"]
        nbformat.validate(done["cell"], ref="code_cell", version=4, version_minor=5)
    silent = await agent.run(session, "1", values={"y": "x"})
    assert len(silent["cell"]["outputs"]) == 1


async def test_an_update_from_a_later_cell_changes_the_earlier_one(agent: Agent) -> None:
    session = await agent.open()
    first = await agent.run(session, "h = display('old', display_id='d')")
    second = await agent.run(session, "from IPython.display import update_display\nh.update('new')")
    assert second["cell"]["outputs"] == []
    again = (await agent.get(f"executions/{first['id']}")).json
    assert again["cell"]["outputs"][0]["data"]["text/plain"] == "'new'"


async def test_output_after_the_end_is_added_to_its_execution(agent: Agent) -> None:
    session = await agent.open()
    first = await agent.run(
        session,
        "import threading\ngo = threading.Event()\nsaid = threading.Event()\n"
        "def late():\n    go.wait()\n    print('late', flush=True)\n    said.set()\n"
        "t = threading.Thread(target=late); t.start(); print('early')",
    )
    assert first["cell"]["outputs"][0]["text"] == "early\n"
    second = await agent.run(session, "go.set(); said.wait(); t.join()")
    third = await agent.run(session, "1")
    texts = {}
    for execution in (first, second, third):
        outputs = (await agent.get(f"executions/{execution['id']}")).json["cell"]["outputs"]
        texts[execution["seq"]] = "".join(output.get("text", "") for output in outputs)
    assert "".join(texts.values()).count("late") == 1


@pytest.mark.parametrize("agent_exec_config", [{"max_text_bytes": 50_000}])
async def test_capped_output_says_exactly_what_is_missing_and_stays_readable(agent: Agent) -> None:
    session = await agent.open(limits={"max_output_bytes": 2000})
    done = await agent.run(session, "for i in range(20000): print(i)")
    whole = "".join(f"{i}\n" for i in range(20000))
    head, marker, tail = done["cell"]["outputs"]
    counts = marker["metadata"]["agent_exec"]["omitted"]
    assert done["omitted"] == {**counts, "unknown": False}
    assert whole.startswith(head["text"])
    assert whole.endswith(tail["text"])
    missing = whole[len(head["text"]) : len(whole) - len(tail["text"])]
    assert counts == {"bytes": len(missing), "lines": missing.count("\n"), "outputs": 0}
    assert done["outputs_complete"] is False
    text = (await agent.get(f"executions/{done['id']}/text", offset=3000, limit=100)).json
    assert text["text"] == whole[3000:3100]
    assert text["total_bytes"] == 50_000
    assert text["omitted_bytes"] == len(whole) - 50_000
    found = (await agent.get(f"executions/{done['id']}/text", match="7777")).json
    assert found["text"] == f"{whole.index('7777')}: 7777\n"


async def test_the_text_of_any_execution_can_be_read(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "print('äöü')\n{}['x']")
    text = (await agent.get(f"executions/{done['id']}/text")).json
    assert text["text"].startswith("äöü\n")
    assert "KeyError" in text["text"]
    assert text["next_offset"] is None


async def test_the_stream_of_a_running_execution_adds_up_to_its_outputs(agent: Agent) -> None:
    session = await agent.open()
    started = await agent.run(
        session,
        "import time\nfor i in range(50):\n    print(i)\n    time.sleep(0.01)\ndisplay('end')",
        wait=0,
    )
    streamed = events((await agent.get(f"executions/{started['id']}/stream")).body)
    kinds = [kind for kind, _, _ in streamed]
    assert kinds[0] == "accepted"
    assert kinds[-1] == "finished"
    final = streamed[-1][2]
    assert final["status"] == "ok"
    assert kinds.count("output") > 2
    assert (
        applied([data for kind, _, data in streamed if kind == "output"])
        == (final["cell"]["outputs"])
    )


async def test_a_stream_can_be_resumed_and_read_again_after_the_end(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "print('a'); display('b')")
    path = f"executions/{done['id']}/stream"
    streamed = events((await agent.get(path)).body)
    assert [kind for kind, _, _ in streamed] == ["accepted", "output", "output", "finished"]
    resumed = await agent.ask("GET", path, headers={"Last-Event-ID": streamed[1][1]})
    assert [kind for kind, _, _ in events(resumed.body)] == ["finished"]


async def test_whoever_resumes_a_running_stream_gets_all_outputs_again(agent: Agent) -> None:
    session = await agent.open()
    started = await agent.run(
        session, "import time\nprint('first', flush=True)\ntime.sleep(0.3)\nprint('last')", wait=0
    )
    path = f"executions/{started['id']}/stream"
    resumed = events((await agent.ask("GET", path, headers={"Last-Event-ID": "7"})).body)
    assert "accepted" not in [kind for kind, _, _ in resumed]
    seen = [{"output_type": "stream", "name": "stdout", "text": "cut o"}]
    for kind, _, data in resumed:
        if kind == "output":
            seen = applied([data], seen)
    assert seen == resumed[-1][2]["cell"]["outputs"]


async def test_an_exported_session_is_a_valid_notebook_with_all_its_cells(agent: Agent) -> None:
    session = await agent.open(title="Export")
    await agent.run(session, "x = 41")
    await agent.run(session, PLOT)
    failed = await agent.run(session, "{}['x']")
    exported = await agent.get(f"sessions/{session['id']}/notebook")
    assert exported.headers["Content-Type"] == "application/x-ipynb+json"
    notebook = nbformat.reads(exported.body.decode(), as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.metadata.agent_exec.status for cell in cells] == ["ok", "ok", "error"]
    assert cells[2].id == failed["id"]
    assert cells[1].outputs[0].data["image/png"].startswith("iVBOR")
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.language_info.name == "python"
    assert not any("trusted" in cell.metadata for cell in notebook.cells)


async def test_the_journal_is_the_chain_that_answers_name(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "1")
    journal = (await agent.get(f"sessions/{session['id']}/journal")).body
    # More may have been recorded since: the kernel's environment, when it has been idle.
    lines = [json.loads(line) for line in journal.splitlines()[: done["chain"]["length"]]]
    assert done["chain"] == {"head": lines[-1]["hash"], "length": len(lines)}
    assert [line["entry"]["type"] for line in lines] == [
        "opened",
        "kernel_started",
        "accepted",
        "dispatched",
        "finished",
    ]


async def test_the_last_executions_can_be_listed_backwards(agent: Agent) -> None:
    session = await agent.open()
    for n in range(5):
        await agent.run(session, str(n))
    path = f"sessions/{session['id']}/executions"
    first = (await agent.get(path, limit=2)).json
    assert [e["seq"] for e in first["executions"]] == [1, 2]
    assert first["next_after"] == 2
    rest = (await agent.get(path, after=2)).json
    assert [e["seq"] for e in rest["executions"]] == [3, 4, 5]
    assert rest["next_after"] is None
    last = (await agent.get(path, before=6, limit=2)).json
    assert [e["seq"] for e in last["executions"]] == [4, 5]


async def test_a_count_that_the_index_cannot_hold_is_none(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "get_ipython().execution_count = 2**63")
    after = await agent.run(session, "print('after')")
    assert (after["cell"]["execution_count"], after["text"]) == (None, "after\n")
    listed = (await agent.get(f"sessions/{session['id']}/executions")).json["executions"]
    assert [each["status"] for each in listed] == ["ok", "ok"]


async def test_thousands_of_flushed_lines_all_arrive(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "for i in range(5000): print(i, flush=True)", wait=60)
    (stream,) = done["cell"]["outputs"]
    assert stream["text"] == "".join(f"{i}\n" for i in range(5000))


async def test_what_the_kernel_has_not_been_sent_yet_has_no_outputs(
    agent: Agent, jp_serverapp: Any
) -> None:
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    session = await agent.open()
    live = app.services.manager.history.open_session(session["id"])
    kernel = live.kernel
    held = threading.Event()
    kernel.connection.channels.call(held.wait)
    try:
        running = asyncio.create_task(agent.run(session, "print(1)"))
        while not live.unfinished:
            await asyncio.sleep(0)
        (execution,) = live.unfinished
        assert (execution.changes(0), execution.outputs()) == ((0, []), [])
    finally:
        held.set()
    assert (await running)["status"] == "ok"


ACTIVE = """
import time
for each in range(3):
    print(each)
    time.sleep(0.05)
display({"text/html": "<b>bold</b><script>run()</script>", "text/plain": "bold"}, raw=True)
display({"application/javascript": "run()"}, raw=True)
"""


async def test_an_inert_copy_of_outputs_is_answered_on_request(agent: Agent) -> None:
    session = await agent.open()
    original = await agent.run(session, ACTIVE)
    assert "<script>" in original["cell"]["outputs"][1]["data"]["text/html"]
    assert "held" not in original["cell"]["metadata"]["agent_exec"]
    read = (await agent.get(f"executions/{original['id']}", inert="true")).json
    listed = (await agent.get(f"sessions/{session['id']}/executions", inert="true")).json
    assert listed["executions"][0]["cell"] == read["cell"]
    stream, html, script = read["cell"]["outputs"]
    assert stream == original["cell"]["outputs"][0]
    assert html["data"] == {"text/html": "<b>bold</b>", "text/plain": "bold"}
    assert script["data"].keys() == {"text/plain"}
    held = read["cell"]["metadata"]["agent_exec"]["held"]
    assert sorted(held) == ["application/javascript", "text/html"]
    sent = {"cell": None, "next_approval": None}  # the latter is told once, to who sent the code
    assert {**read, **sent} == {**original, **sent}
    nbformat.validate(read["cell"], ref="code_cell", version=4, version_minor=5)


async def test_a_stream_sends_an_inert_copy_on_request(agent: Agent) -> None:
    session = await agent.open()
    started = await agent.run(session, ACTIVE, wait=0)
    path = f"executions/{started['id']}/stream"
    running = events((await agent.get(path, inert="true")).body)
    replayed = events((await agent.get(path, inert="true")).body)
    whole = (await agent.get(f"executions/{started['id']}", inert="true")).json
    for streamed in (running, replayed):
        outputs = applied([data for kind, _, data in streamed if kind == "output"])
        assert outputs == streamed[-1][2]["cell"]["outputs"] == whole["cell"]["outputs"]
