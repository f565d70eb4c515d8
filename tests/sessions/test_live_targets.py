"""Sessions in a person's notebook and in kernels that run: found, started, refused, followed."""

from __future__ import annotations

import asyncio
from typing import Any

import nbformat
import pytest

from tests.asking import Agent
from tests.real_server import Gate
from tests.sessions.living_notebook import (
    NOTEBOOK,
    Desk,
    ask_to_open,
    entries,
    finished,
    notebook_target,
    until_it_prints,
)


async def test_an_agent_works_in_the_kernel_that_the_notebook_has(agent: Agent, desk: Desk) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    person = await desk.sits_at(kernel_id)
    await person.has_run("rows = 344")
    session = await agent.open(target=notebook_target(f"/{NOTEBOOK}"))
    assert session["kernel"]["id"] == kernel_id
    assert session["path"] == NOTEBOOK
    done = await agent.run(session, "rows + 1", placement="none")
    assert (done["status"], done["text"].strip()) == ("ok", "345")
    assert done["execution_count"] == 2
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert (await person.has_run("rows"))["status"] == "ok"
    assert [entry["type"] for entry in await entries(agent, session)] == [
        "opened",
        "kernel_started",
        "accepted",
        "dispatched",
        "finished",
        "closed",
    ]


async def test_a_notebook_without_a_kernel_gets_one_that_jupyterlab_finds(
    agent: Agent, desk: Desk
) -> None:
    desk.writes("deep/own.ipynb", kernelspec={"name": "python3", "display_name": "Python"})
    session = await agent.open(target=notebook_target("deep/own.ipynb"))
    (jupyter_session,) = await desk.sessions()
    assert jupyter_session["path"] == "deep/own.ipynb"
    assert jupyter_session["kernel"]["id"] == session["kernel"]["id"]
    done = await agent.run(session, "import os; os.getcwd()", placement="none")
    assert str(desk.root / "deep") in done["text"]
    opened = await desk.opens("deep/own.ipynb")  # what JupyterLab does when a person opens it
    assert opened["id"] == jupyter_session["id"]


async def test_two_agents_that_come_at_once_meet_in_one_kernel(agent: Agent, desk: Desk) -> None:
    desk.writes()
    first, second = await asyncio.gather(
        agent.open(target=notebook_target()), agent.open(target=notebook_target())
    )
    assert first["kernel"]["id"] == second["kernel"]["id"]
    assert len(await desk.sessions()) == 1


async def test_of_several_kernels_the_one_that_was_used_last_is_taken(
    agent: Agent, desk: Desk
) -> None:
    first = await desk.opens()
    other = await desk.opens("other.ipynb")
    await desk.ask("PATCH", f"sessions/{other['id']}", {"path": NOTEBOOK})
    for kernel_id in (other["kernel"]["id"], first["kernel"]["id"]):
        await desk.has_run(kernel_id)
    session = await agent.open(target=notebook_target())
    assert session["kernel"]["id"] == first["kernel"]["id"]


async def test_a_notebook_is_made_if_asked(agent: Agent, desk: Desk) -> None:
    session = await agent.open(target=notebook_target("new.ipynb", create=True))
    notebook = nbformat.read(desk.root / "new.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert notebook.nbformat_minor == 5
    assert notebook.metadata.kernelspec.name == "python3"
    types = [entry["type"] for entry in await entries(agent, session)]
    assert types == ["opened", "notebook_created", "kernel_started"]


async def test_a_notebook_that_is_there_is_not_made_again(agent: Agent, desk: Desk) -> None:
    desk.writes(NOTEBOOK, "kept = 1")
    session = await agent.open(target=notebook_target(create=True))
    assert nbformat.read(desk.root / NOTEBOOK, as_version=4).cells[0].source == "kept = 1"
    assert "notebook_created" not in [entry["type"] for entry in await entries(agent, session)]


NO_NOTEBOOKS: list[tuple[dict[str, Any], int, str, str]] = [
    ({"path": "none.ipynb"}, 404, "notebook_not_found", "target.path"),
    ({"path": "a/../b.ipynb"}, 404, "notebook_not_found", "target.path"),
    ({"path": "../b.ipynb", "create": True}, 404, "notebook_not_found", "target.path"),
    ({"path": ".hidden.ipynb"}, 404, "notebook_not_found", "target.path"),
    ({"path": ".new.ipynb", "create": True}, 404, "notebook_not_found", "target.path"),
    ({"path": "text.txt"}, 404, "notebook_not_found", "target.path"),
    ({"path": "/"}, 404, "notebook_not_found", "target.path"),
    ({"path": "nowhere/n.ipynb", "create": True}, 404, "notebook_not_found", "target.path"),
    ({"path": "folder"}, 400, "invalid_request", "target.path"),
    ({"path": "new.txt", "create": True}, 400, "invalid_request", "target.path"),
    (
        {"path": NOTEBOOK, "kernel_name": "cobol"},
        400,
        "kernel_name_not_found",
        "target.kernel_name",
    ),
]


async def test_what_is_no_notebook_is_refused_and_nothing_started(agent: Agent, desk: Desk) -> None:
    desk.writes()
    desk.writes(".hidden.ipynb")
    (desk.root / "text.txt").write_text("no notebook")
    (desk.root / "folder").mkdir()
    for target, status, code, field in NO_NOTEBOOKS:
        refused = await ask_to_open(agent, {"kind": "notebook", **target})
        assert (refused.status, refused.json["code"]) == (status, code), target
        assert refused.json["detail"]["field"] == field
        assert await desk.sessions() == []
        assert (await agent.get("sessions")).json["sessions"] == []


async def test_a_notebook_whose_kernelspec_is_not_installed_is_told(
    agent: Agent, desk: Desk
) -> None:
    desk.writes(NOTEBOOK, kernelspec={"name": "cobol", "display_name": "COBOL"})
    refused = await ask_to_open(agent, notebook_target())
    assert (refused.status, refused.json["code"]) == (400, "kernel_name_not_found")
    opened = await agent.open(target=notebook_target(kernel_name="python3"))
    assert opened["kernel"]["name"] == "python3"


async def test_an_agent_joins_a_kernel_by_its_id(agent: Agent, desk: Desk) -> None:
    kernel = await desk.ask("POST", "kernels", {"name": "python3"})
    person = await desk.sits_at(kernel["id"])
    await person.has_run("x = 'a console'")
    target = {"kind": "kernel", "kernel_id": kernel["id"]}
    session = await agent.open(target=target)
    assert session["path"] is None
    done = await agent.run(session, "x")
    assert (done["text"].strip(), done["document"]) == ("'a console'", None)
    await desk.ask("DELETE", f"kernels/{kernel['id']}")
    while (await agent.get(f"sessions/{session['id']}")).json["kernel"] is not None:
        await asyncio.sleep(0.01)
    later = await agent.run(session, "x")
    assert later["status"] == "cancelled"
    assert kernel["id"] in later["reason"]
    refused = await ask_to_open(agent, target)
    assert (refused.status, refused.json["code"]) == (404, "kernel_not_found")


async def test_a_cell_cannot_be_placed_without_a_notebook(agent: Agent) -> None:
    session = await agent.open()
    for asked, field in (
        ({"source": "1", "placement": {"after": "a"}}, "placement"),
        ({"placement": {"cell": "a"}}, "placement"),
        ({}, "source"),
    ):
        refused = await agent.ask("POST", f"sessions/{session['id']}/executions", asked)
        assert (refused.status, refused.json["detail"]["field"]) == (400, field)
    done = await agent.run(session, "1", placement="none")
    assert (done["status"], done["document"]) == ("ok", None)


async def path_is(agent: Agent, session: dict[str, Any], path: str) -> None:
    while (await agent.get(f"sessions/{session['id']}")).json["path"] != path:
        await asyncio.sleep(0.01)


async def test_renames_are_followed_however_they_are_made(agent: Agent, desk: Desk) -> None:
    jupyter_session = await desk.opens("folder/a.ipynb")
    session = await agent.open(target=notebook_target("folder/a.ipynb"))
    await desk.ask("PATCH", "contents/folder/a.ipynb", {"path": "folder/b.ipynb"})
    await path_is(agent, session, "folder/b.ipynb")
    await desk.ask("PATCH", f"sessions/{jupyter_session['id']}", {"path": "folder/b.ipynb"})
    await desk.ask("PATCH", "contents/folder", {"path": "drawer"})
    await path_is(agent, session, "drawer/b.ipynb")
    done = await agent.run(session, "1", placement="none")
    assert done["status"] == "ok"
    moved = [e for e in await entries(agent, session) if e["type"] == "notebook_moved"]
    assert [(e["before"], e["path"]) for e in moved[:2]] == [
        ("folder/a.ipynb", "folder/b.ipynb"),
        ("folder/b.ipynb", "drawer/b.ipynb"),
    ]


async def test_a_rename_that_nobody_announced_is_seen_at_the_next_execution(
    agent: Agent, desk: Desk
) -> None:
    jupyter_session = await desk.opens()
    session = await agent.open(target=notebook_target())
    (desk.root / NOTEBOOK).rename(desk.root / "other.ipynb")
    await desk.ask("PATCH", f"sessions/{jupyter_session['id']}", {"path": "other.ipynb"})
    await agent.run(session, "1", placement="none")
    await path_is(agent, session, "other.ipynb")


async def test_a_client_comes_back_to_its_session_also_after_a_rename(
    agent: Agent, desk: Desk
) -> None:
    await desk.opens()
    first = await agent.open(target=notebook_target(), client_id="c")
    await desk.ask("PATCH", f"contents/{NOTEBOOK}", {"path": "other.ipynb"})
    await path_is(agent, first, "other.ipynb")
    again = await ask_to_open(agent, notebook_target("/other.ipynb"), client_id="c")
    assert (again.status, again.json["id"]) == (200, first["id"])
    refused = await ask_to_open(agent, {"kind": "scratch"}, client_id="c")
    assert (refused.status, refused.json["detail"]["field"]) == (400, "client_id")


async def test_the_person_restarts_their_kernel_while_the_agent_runs_and_waits(
    agent: Agent, desk: Desk, gate: Gate
) -> None:
    jupyter_session = await desk.opens()
    session = await agent.open(target=notebook_target())
    running = await agent.run(session, gate.deaf_source, placement="none", wait=0)
    waiting = await agent.run(session, "'x' in globals()", placement="none", wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    await desk.ask("POST", f"kernels/{jupyter_session['kernel']['id']}/restart")
    ended = await finished(agent, running)
    why = "A user restarted the kernel. Its variables are gone."
    assert (ended["status"], ended["reason"]) == ("interrupted", why)
    assert why in ended["text"]
    assert "died" not in str(ended)
    (kernel_ended,) = (e for e in await entries(agent, session) if e["type"] == "kernel_ended")
    assert (kernel_ended["reason"], "died" in kernel_ended["message"]) == ("restarted", False)
    went_on = await finished(agent, waiting)
    assert (went_on["status"], went_on["text"].splitlines()[0]) == ("ok", "False")
    assert (went_on["kernel"]["restarted"], went_on["kernel"]["reason"]) == (True, "restarted")
    assert went_on["kernel"]["incarnation"] == 2
    after = await agent.run(session, "1", placement="none")
    assert after["kernel"]["restarted"] is False


async def test_the_person_gives_the_notebook_another_kernel(agent: Agent, desk: Desk) -> None:
    jupyter_session = await desk.opens()
    session = await agent.open(target=notebook_target())
    changed = await desk.ask(
        "PATCH", f"sessions/{jupyter_session['id']}", {"kernel": {"name": "python3"}}
    )
    done = await agent.run(session, "1", placement="none")
    assert done["status"] == "ok"
    assert done["kernel"]["id"] == changed["kernel"]["id"] != jupyter_session["kernel"]["id"]
    assert (done["kernel"]["restarted"], done["kernel"]["reason"]) == (True, "changed")
    ended = [e for e in await entries(agent, session) if e["type"] == "kernel_ended"]
    assert [e["reason"] for e in ended] == ["changed"]


async def test_the_person_shuts_the_kernel_down(agent: Agent, desk: Desk, gate: Gate) -> None:
    jupyter_session = await desk.opens()
    session = await agent.open(target=notebook_target())
    running = await agent.run(session, gate.deaf_source, placement="none", wait=0)
    waiting = await agent.run(session, "1", placement="none", wait=0)
    await asyncio.to_thread(gate.wait_until_it_runs)
    await desk.ask("DELETE", f"sessions/{jupyter_session['id']}")
    ended = await finished(agent, running)
    assert (ended["status"], "shut the kernel down" in ended["reason"]) == ("interrupted", True)
    taken_back = await finished(agent, waiting)
    assert (taken_back["status"], "shut" in taken_back["reason"]) == ("cancelled", True)
    after = await agent.run(session, "2", placement="none")
    assert after["status"] == "ok"
    assert (after["kernel"]["restarted"], after["kernel"]["reason"]) == (True, "shut_down")
    (again,) = await desk.sessions()
    assert (again["path"], again["kernel"]["id"]) == (NOTEBOOK, after["kernel"]["id"])


async def test_an_agent_may_not_restart_a_persons_kernel(agent: Agent, desk: Desk) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    session = await agent.open(target=notebook_target())
    refused = await agent.ask("POST", f"sessions/{session['id']}/restart")
    assert (refused.status, refused.json["code"]) == (409, "kernel_not_owned")
    done = await agent.run(session, "1", placement="none")
    assert (done["kernel"]["id"], done["kernel"]["restarted"]) == (kernel_id, False)


@pytest.mark.parametrize("agent_exec_config", [{"kernel_idle_timeout": 0.05}])
async def test_a_persons_kernel_is_never_culled(agent: Agent, desk: Desk) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    session = await agent.open(target=notebook_target())
    scratch = await agent.open()
    while (await agent.get(f"sessions/{scratch['id']}")).json["kernel"] is not None:
        await asyncio.sleep(0.01)  # until one of its own has been culled
    looked = (await agent.get(f"sessions/{session['id']}")).json
    assert looked["kernel"]["id"] == kernel_id
    assert kernel_id in desk.server.kernel_manager


async def test_closing_interrupts_what_the_agent_runs_and_leaves_the_kernel(
    agent: Agent, desk: Desk
) -> None:
    kernel_id = (await desk.opens())["kernel"]["id"]
    person = await desk.sits_at(kernel_id)
    session = await agent.open(target=notebook_target())
    looping = "kept = 1\nprint('on', flush=True)\nwhile True: pass"
    running = await agent.run(session, looping, placement="none", wait=0)
    await until_it_prints(agent, running)
    await agent.ask("POST", f"sessions/{session['id']}/close")
    assert (await finished(agent, running))["status"] == "interrupted"
    assert (await person.has_run("kept"))["status"] == "ok"


async def test_code_that_ends_a_persons_kernel_is_told_so(agent: Agent, desk: Desk) -> None:
    await desk.opens()
    session = await agent.open(target=notebook_target())
    done = await agent.run(session, "import os; os._exit(3)", placement="none")
    assert done["status"] == "kernel_died"
    after = await agent.run(session, "1", placement="none")
    assert (after["status"], after["kernel"]["reason"]) == ("ok", "died")
