"""Code that runs again: in a fresh kernel, in order, compared with what the record has."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_agent_exec.reruns.manager import Reruns
from jupyter_server.serverapp import ServerApp

from jupyter_agent_exec.auth.scopes import Caller
from jupyter_agent_exec.errors import InvalidRequest, NotRerun, SessionNotFound
from jupyter_agent_exec.journal.verify import Outcome, verify_history
from jupyter_agent_exec.models import RunAgain
from jupyter_agent_exec.records import digest_of
from jupyter_agent_exec.sessions.activity import EVENTS_SCHEMA_ID
from tests.asking import Agent
from tests.real_server import Gate

ONE_CELL = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
EMPTY = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}


async def begun(agent: Agent, **request: Any) -> dict[str, Any]:
    answered = await agent.ask("POST", "reruns", request)
    assert answered.status == 202, answered.body
    assert answered.headers["Location"].endswith(f"/reruns/{answered.json['session_id']}")
    told: dict[str, Any] = answered.json
    return told


async def ended(agent: Agent, rerun: dict[str, Any]) -> dict[str, Any]:
    """Wait until all cells were compared, or the session is closed; return the comparison."""
    async with asyncio.timeout(60):
        while rerun["status"] == "running":
            seen = len(rerun["cells"])
            answered = await agent.get(f"reruns/{rerun['session_id']}", after=seen, wait=30)
            rerun = answered.json
    return rerun


async def rerun(agent: Agent, **request: Any) -> dict[str, Any]:
    return await ended(agent, await begun(agent, **request))


async def test_a_sessions_code_runs_again_and_each_cell_is_compared(
    agent: Agent, tmp_path: Path, history_dir: Path
) -> None:
    data = tmp_path / "data.txt"
    data.write_text("3")
    session = await agent.open(title="sums")
    sources = [
        "import time; x = 20; print(object(), time.strftime('%Y-%m-%d %H:%M:%S'))",
        f"x + int(open({str(data)!r}).read())",
        "1 / 0",
        f"assert open({str(data)!r}).read() == '3'",
    ]
    before = [await agent.run(session, source) for source in sources]
    data.write_text("4")

    told = await rerun(agent, session_id=session["id"])
    assert (told["of"], told["status"], told["total"]) == (session["id"], "finished", 4)
    assert [cell["of"] for cell in told["cells"]] == [execution["id"] for execution in before]
    assert [cell["verdict"] for cell in told["cells"]] == ["same", "differs", "same", "failed"]
    [difference] = told["cells"][1]["differences"]
    assert difference["what"] == "Output 1 (text/plain) differs."
    assert "-23\n+24" in difference["diff"]

    now = (await agent.get(f"sessions/{told['session_id']}")).json
    assert (now["title"], now["agent"]["name"]) == ("Re-run of sums", "re-run")
    executions = (await agent.get(f"sessions/{now['id']}/executions")).json["executions"]
    assert [each["id"] for each in executions] == [cell["execution_id"] for cell in told["cells"]]
    events = (await agent.get(f"sessions/{now['id']}/events")).json["events"]
    said = [event["text"] for event in events if event["type"] == "cell_rerun"]
    assert said == [
        "same",
        "differs: Output 1 (text/plain) differs.",
        "same",
        "failed: It raised AssertionError now.",
    ]
    await agent.ask("POST", f"sessions/{session['id']}/close")
    report = await asyncio.to_thread(verify_history, history_dir, head=None, patience=5)
    assert report.outcome == Outcome.WHOLE, report.findings


async def test_what_ran_in_another_kernel_runs_in_another_kernel_again(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1")
    await agent.ask("POST", f"sessions/{session['id']}/restart")
    await agent.run(session, "'x' in globals()")
    told = await rerun(agent, session_id=session["id"])
    assert [cell["verdict"] for cell in told["cells"]] == ["same", "same"]


async def test_what_did_not_run_to_its_end_does_not_run_again(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "while True: pass", timeout=0.2)
    await agent.run(session, "1")
    told = await rerun(agent, session_id=session["id"])
    assert [cell["verdict"] for cell in told["cells"]] == ["skipped", "same"]
    assert told["cells"][0]["reason"] == "It timed out."
    assert told["cells"][0]["execution_id"] is None


async def test_output_that_the_record_lacks_cannot_be_compared(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "print('x' * 5000)", max_output_bytes=1000)
    told = await rerun(agent, session_id=session["id"])
    assert [cell["verdict"] for cell in told["cells"]] == ["not_comparable"]


async def test_a_notebooks_cells_run_again_and_its_tags_count(agent: Agent) -> None:
    def cell(source: str, text: str | None, *tags: str) -> Any:
        outputs = [] if text is None else [nbformat.v4.new_output("stream", text=text)]
        return nbformat.v4.new_code_cell(
            source, outputs=outputs, execution_count=1, metadata={"tags": list(tags)}
        )

    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# Text"),
            cell("print(1)", "1\n"),
            cell("print(2)", "3\n"),
            cell("raise SystemError", None, "skip-execution"),
            cell("print('other')", "one\n", "nbval-ignore-output"),
        ]
    )
    told = await rerun(agent, notebook=json.loads(nbformat.writes(notebook)))
    assert [cell["verdict"] for cell in told["cells"]] == [
        "same",
        "differs",
        "skipped",
        "not_comparable",
    ]
    assert told["of"] is None
    assert [each["cell_id"] for each in told["cells"]] == [each.id for each in notebook.cells[1:]]


@pytest.mark.parametrize("clean", ["true", "false"])
async def test_an_export_runs_again(agent: Agent, clean: str) -> None:
    session = await agent.open()
    done = await agent.run(session, "print('a'); 1")
    query = {"clean": clean}
    exported = await agent.ask("GET", f"sessions/{session['id']}/notebook", query=query)
    told = await rerun(agent, notebook=exported.json)
    assert [(cell["of"], cell["verdict"]) for cell in told["cells"]] == [(done["id"], "same")]


async def test_a_closed_session_ends_what_runs_again(
    agent: Agent, gate: Gate, history_dir: Path
) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in ("0", gate.source, "1")]
    )
    running = await begun(agent, notebook=json.loads(nbformat.writes(notebook)))
    assert running["status"] == "running"
    await asyncio.to_thread(gate.wait_until_it_runs)
    journal = history_dir / "sessions" / running["session_id"] / "journal.jsonl"
    journal.rename(journal.with_suffix(".away"))  # while it runs, answers do not need it
    seen = (await agent.get(f"reruns/{running['session_id']}")).json
    journal.with_suffix(".away").rename(journal)
    assert (seen["status"], len(seen["cells"])) == ("running", 1)
    await agent.ask("POST", f"sessions/{running['session_id']}/close")
    told = await ended(agent, running)
    assert told["status"] == "ended"
    assert len(told["cells"]) < told["total"]


async def test_files_that_were_uploaded_are_compared_and_the_session_lists_its_reruns(
    agent: Agent, jp_root_dir: Path
) -> None:
    session = await agent.open()
    for path, text in (
        ("a.csv", "1"),
        ("b.csv", "0"),
        ("b.csv", "2"),
        ("c.csv", "3"),
        ("d.csv", "4"),
    ):
        put = await agent.ask("PUT", f"sessions/{session['id']}/files/{path}", text)
        assert put.status in (200, 201), put.body
    await agent.ask("DELETE", f"sessions/{session['id']}/files/d.csv")
    await agent.run(session, "open('b.csv').read()")
    (jp_root_dir / "b.csv").write_text("changed")
    (jp_root_dir / "c.csv").unlink()
    told = await rerun(agent, session_id=session["id"])
    assert told["inputs"] == [
        {"path": path, "verdict": verdict, "sha256": digest_of(before), "now": now}
        for path, verdict, before, now in (
            ("a.csv", "same", b"1", digest_of(b"1")),
            ("b.csv", "changed", b"2", digest_of(b"changed")),
            ("c.csv", "missing", b"3", None),
        )
    ]
    assert [cell["verdict"] for cell in told["cells"]] == ["differs"]
    recorded = (await agent.get(f"reruns/{told['session_id']}")).json
    assert recorded == told
    other = await rerun(agent, notebook=json.loads(nbformat.writes(ONE_CELL)))
    for of, listed in (
        (session["id"], [told["session_id"]]),
        (told["session_id"], [told["session_id"]]),
        (other["session_id"], [other["session_id"]]),
    ):
        sessions = (await agent.get("sessions", rerun_of=of)).json["sessions"]
        assert [each["id"] for each in sessions] == listed


SOURCES = (
    "print(sum(data))",
    "sum(data) / len(data)",
    "{'n': len(data), 'sum': sum(data)}",
    "import statistics; print(f'mean {statistics.mean(data):.3f}')",
    "import pandas; pandas.DataFrame({'x': data, 'y': [x / 7 for x in data]})",
    "print(object()); print(*data, sep='\\n')",
    "import time; print(time.strftime('%Y-%m-%d %H:%M:%S'), max(data))",
    "import uuid; print(uuid.uuid4(), min(data))",
    "import tempfile; print(f'{tempfile.mkdtemp()}/plot.png', sorted(data))",
    "import time; start = time.time(); print('took', time.time() - start, 's'); print(data)",
    "import random; random.seed(1); print(random.random() * data[0])",
    "import datetime; print(datetime.date(2020, 1, data[0]))",
    "[][data[0]]",
    "import sys; print('to stderr', file=sys.stderr); print(data)",
    "from PIL import Image; Image.new('L', (40, 40), 8 * data[0])",
)
"""What notebooks do with their data; most print something too that is never the same."""

DRIFTED = (0, 1, 2, 3, 4, 5, 6, 8, 11, 14)
"""The notebooks of a second round whose data change."""


@pytest.mark.nightly
async def test_of_thirty_notebooks_ten_drifts_are_told_and_nothing_else(
    agent: Agent, jp_root_dir: Path
) -> None:
    session = await agent.open()
    notebooks = []
    for number, source in enumerate(2 * SOURCES):
        path = jp_root_dir / f"{number}.json"
        path.write_text("[3, 1, 2]")
        load = f"import json; data = json.load(open({path.name!r}))"
        cells = []
        for code in (load, source):
            done = (await agent.run(session, code))["cell"]
            cells.append(
                nbformat.from_dict(done | {"metadata": {}, "id": f"{number}-{len(cells)}"})
            )
        notebooks.append(nbformat.v4.new_notebook(cells=cells))
    for number in DRIFTED:
        (jp_root_dir / f"{number + len(SOURCES)}.json").write_text("[4, 1, 2]")
    kernels = asyncio.Semaphore(3)

    async def drifts(notebook: Any) -> bool:
        async with kernels:
            told = await rerun(agent, notebook=json.loads(nbformat.writes(notebook)))
        return {cell["verdict"] for cell in told["cells"]} != {"same"}

    found = await asyncio.gather(*map(drifts, notebooks))
    assert [number for number, drifted in enumerate(found) if drifted] == [
        number + len(SOURCES) for number in DRIFTED
    ]


class Broken:
    """Stands where nothing works any more."""

    async def open(self, *_: Any) -> None:
        raise OSError("unreadable")

    def publish(self, *_: Any) -> None:
        raise RuntimeError("unforeseen")


@pytest.mark.parametrize("broken", ["files", "activity"])
async def test_whatever_fails_the_session_is_closed(
    agent: Agent, jp_serverapp: Any, broken: str
) -> None:
    session = await agent.open()
    await agent.ask("PUT", f"sessions/{session['id']}/files/a.csv", "1")
    await agent.run(session, "1")
    (app,) = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    services = app.services
    parts = {"files": services.files, "activity": services.activity, broken: Broken()}
    reruns = Reruns(services.manager, log=app.log, **parts)
    caller = Caller(username="ada", display_name="Ada", access="full")
    request = RunAgain(session_id=session["id"])
    if broken == "files":
        with pytest.raises(OSError, match="unreadable"):
            await reruns.start(request, caller)
    else:
        await reruns.start(request, caller)
        await reruns.stop()
    listed = (await agent.get("sessions")).json["sessions"]
    assert {each["agent"]["name"]: each["status"] for each in listed} == {
        "tester": "open",
        "re-run": "closed",
    }


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({}, "session_id"),
        ({"session_id": "s_1", "notebook": {}}, "session_id"),
        ({"notebook": EMPTY | {"cells": [{"cell_type": "code"}]}}, "notebook"),
        ({"notebook": EMPTY}, None),
        ({"session_id": "s_1", "rules": {"ignore": ["("]}}, "rules.ignore[0]"),
    ],
)
async def test_a_bad_request_runs_nothing(
    agent: Agent, request_: dict[str, Any], field: str | None
) -> None:
    answered = await agent.ask("POST", "reruns", request_)
    assert (answered.status, answered.json["code"]) == (400, InvalidRequest.code)
    assert answered.json["detail"]["field"] == field
    assert (await agent.get("sessions")).json["sessions"] == []


async def test_what_is_not_there_is_said(agent: Agent) -> None:
    answered = await agent.ask("POST", "reruns", {"session_id": "s_1"})
    assert answered.json["code"] == SessionNotFound.code
    session = await agent.open()
    answered = await agent.get(f"reruns/{session['id']}")
    assert (answered.status, answered.json["code"]) == (404, NotRerun.code)


async def test_the_end_of_a_rerun_is_told_after_that_of_its_session(
    agent: Agent, jp_serverapp: ServerApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    apps = jp_serverapp.extension_manager.extension_apps["jupyter_agent_exec"]
    services = next(iter(apps)).services
    close = services.manager.close
    closed, told = asyncio.Event(), asyncio.Event()

    async def listen(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data["action"] == "closed":
            closed.set()
        elif closed.is_set() and data["action"] == "session":
            told.set()

    async def close_and_tell(*args: Any) -> None:
        await close(*args)
        await closed.wait()

    jp_serverapp.event_logger.add_listener(schema_id=EVENTS_SCHEMA_ID, listener=listen)
    monkeypatch.setattr(services.manager, "close", close_and_tell)
    running = await begun(agent, notebook=ONE_CELL)
    await asyncio.wait_for(told.wait(), 30)
    assert (await agent.get(f"reruns/{running['session_id']}")).json["status"] == "finished"
