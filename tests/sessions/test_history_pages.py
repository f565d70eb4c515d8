"""Looking through the history over the routes: pages, events, images, filters."""

from __future__ import annotations

from typing import Any

import nbformat

from tests.asking import Agent
from tests.real_server import Gate

PLOT = """
import base64
from IPython.display import display
png = base64.b64decode(
    'iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAADklEQVR4nGNgYGBgQGYAAAAWAAGv2lPLAAAAAElFTkSu'
    'QmCC'
)
display({'image/png': png, 'text/plain': 'a plot'}, raw=True)
"""
LARGE = "print('x' * 20_000)"


async def listed(agent: Agent, path: str, /, **query: Any) -> Any:
    answered = await agent.get(path, **query)
    assert answered.status == 200, answered.body
    return answered.json


async def test_a_brief_page_leaves_out_what_each_execution_by_itself_has(agent: Agent) -> None:
    session = await agent.open()
    at = f"sessions/{session['id']}/executions"
    for source in (LARGE, PLOT, "1/0", "2"):
        await agent.run(session, source)
    brief = (await listed(agent, at, outputs="brief"))["executions"]
    full = (await listed(agent, at, outputs="full"))["executions"]
    unasked = (await listed(agent, at))["executions"]
    # The chain may grow meanwhile: the kernel's environment is recorded when it has been idle.
    assert [one | {"chain": None} for one in unasked] == [one | {"chain": None} for one in full]
    assert [one["cell"]["outputs"] for one in brief[2:]] == [
        one["cell"]["outputs"] for one in full[2:]
    ]
    assert brief[2]["error"] == full[2]["error"]
    printed, plotted = brief[0], brief[1]
    assert [output["text"] for output in printed["cell"]["outputs"]] == [""]
    assert printed["left_out"] == [{"index": 0, "bytes": 20_001, "mimetypes": ["text/plain"]}]
    assert plotted["cell"]["outputs"][0]["data"] == {"text/plain": "a plot"}
    assert plotted["left_out"][0]["mimetypes"] == ["image/png"]
    assert plotted["images"] == full[1]["images"]
    assert (await agent.get(plotted["images"][0]["url"].partition("agent-exec/")[2])).status == 200
    assert {one["text"] for one in brief} == {""}
    assert [one["left_out"] for one in full] == [[], [], [], []]
    cells = [nbformat.from_dict(one["cell"]) for one in brief]
    nbformat.validate(nbformat.v4.new_notebook(cells=cells))
    by_itself = await listed(agent, f"executions/{printed['id']}")
    assert len(by_itself["cell"]["outputs"][0]["text"]) == 20_001


async def test_what_runs_is_brief_too(agent: Agent, gate: Gate) -> None:
    session = await agent.open()
    running = await agent.run(session, f"{LARGE}\n{gate.source}", wait=0)
    while not (await listed(agent, f"executions/{running['id']}", wait=0.1))["cell"]["outputs"]:
        pass
    at = f"sessions/{session['id']}/executions"
    (brief,) = (await listed(agent, at, outputs="brief"))["executions"]
    assert brief["status"] == "running"
    assert brief["cell"]["outputs"][0]["text"] == ""
    assert brief["left_out"][0]["index"] == 0
    gate.wait_until_it_runs()
    gate.let_it_go_on()
    assert (await listed(agent, f"executions/{running['id']}", wait=60))["status"] == "ok"


async def test_open_sessions_are_listed_first_and_filtered(agent: Agent) -> None:
    closed, running = (await agent.open(title="a"), await agent.open(title="b"))
    newest = await agent.open(agent={"name": "other"})
    await agent.run(running, "1")
    for session in (newest, closed):
        await agent.ask("POST", f"sessions/{session['id']}/close")

    async def ids(**query: Any) -> list[str]:
        return [one["id"] for one in (await listed(agent, "sessions", **query))["sessions"]]

    expected = [running["id"], newest["id"], closed["id"]]
    assert await ids() == expected
    assert await ids(status="closed") == expected[1:]
    assert await ids(agent="other") == [newest["id"]]
    assert await ids(target="scratch") == expected
    assert await ids(target="notebook") == []
    assert await ids(until="2000-01-01") == []
    assert await ids(since=running["opened_at"]) == expected[:2]
    assert await ids(unreviewed="true") == [running["id"]]
    assert await ids(unreviewed="false") == expected[1:]
    page = await listed(agent, "sessions", limit=1)
    assert await ids(after=page["next_after"]) == expected[1:]


async def test_an_open_session_tells_what_is_recorded_and_what_is_not(agent: Agent) -> None:
    session = await agent.open()
    done = await agent.run(session, "1")
    at = f"sessions/{session['id']}"
    assert (await listed(agent, at))["unreviewed"] == 1
    (in_list,) = (await listed(agent, "sessions"))["sessions"]
    assert in_list == await listed(agent, at)
    review = {"verdict": "flagged", "comment": "why?"}
    assert (await agent.ask("PUT", f"executions/{done['id']}/review", review)).status == 200
    told = await listed(agent, at)
    assert (told["unreviewed"], told["status"]) == (0, "open")
    assert told["kernel"]["execution_state"] == "idle"
    assert (await listed(agent, "search", review="flagged"))["hits"][0]["seq"] == 1
    assert (await listed(agent, "search", review="none"))["hits"] == []
    assert len((await listed(agent, "search", target="scratch"))["hits"]) == 1


async def test_events_tell_what_happened_between(agent: Agent) -> None:
    session = await agent.open()
    at = f"sessions/{session['id']}"
    await agent.run(session, "1")
    await agent.ask("POST", f"{at}/restart")
    second = await agent.run(session, "2")
    await agent.ask("PUT", f"executions/{second['id']}/review", {"verdict": "approved"})
    await agent.ask("POST", f"{at}/close")
    events = (await listed(agent, f"{at}/events"))["events"]
    assert [(event["type"], event["after_seq"]) for event in events] == [
        ("kernel_started", 0),
        ("kernel_ended", 1),
        ("kernel_started", 1),
        ("reviewed", 2),
        ("kernel_ended", 2),
        ("closed", 2),
    ]
    assert events[1]["text"].startswith("The kernel was restarted by ")
    assert events[2]["text"] == "restarted"
    assert (events[3]["execution_id"], events[3]["text"]) == (second["id"], "approved")
    page = await listed(agent, f"{at}/events", limit=2)
    rest = await listed(agent, f"{at}/events", after=page["next_after"])
    assert [*page["events"], *rest["events"]] == events
    assert rest["next_after"] is None


async def test_images_are_listed_with_where_they_came_from(agent: Agent) -> None:
    session = await agent.open(title="Plots")
    first, second = [await agent.run(session, PLOT) for _ in range(2)]
    await agent.run(session, "1")
    page = await listed(agent, "images", session_id=session["id"])
    assert [image["execution_id"] for image in page["images"]] == [first["id"], second["id"]]
    image = page["images"][0]
    assert {name: image[name] for name in ("seq", "title", "agent", "output", "mimetype")} == {
        "seq": 1, "title": "Plots", "agent": "tester", "output": 0, "mimetype": "image/png",
    }  # fmt: skip
    assert (image["width"], image["height"]) == (2, 3)
    fetched = await agent.get(image["url"].partition("agent-exec/")[2])
    assert len(fetched.body) == image["bytes"]
    newest = await listed(agent, "images", q="png", limit=1)
    assert [image["execution_id"] for image in newest["images"]] == [second["id"]]
    after = await listed(agent, "images", q="png", after=newest["next_after"])
    assert [image["execution_id"] for image in after["images"]] == [first["id"]]
