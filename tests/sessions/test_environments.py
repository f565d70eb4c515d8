"""What a session's code runs in: interpreter, platform and packages, in its record and exports."""

from __future__ import annotations

import asyncio
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from tests.asking import Agent


def wheel(folder: Path, number: str) -> Path:
    """Return a package that pip can install without an index."""
    path = folder / f"quokka-{number}-py3-none-any.whl"
    about = f"quokka-{number}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("quokka.py", "")
        file.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: quokka\nVersion: {number}\n"
        )
        file.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{about}/RECORD", "")
    return path


async def environments(agent: Agent, session: dict[str, Any]) -> list[dict[str, Any]]:
    exported = (await agent.get(f"sessions/{session['id']}/notebook")).json
    told: list[dict[str, Any]] = exported["metadata"]["agent_exec"]["environments"]
    return told


async def test_the_record_says_what_code_runs_in_and_what_pip_changed_later(
    agent: Agent, tmp_path: Path, history_dir: Path
) -> None:
    session = await agent.open()
    at = f"sessions/{session['id']}/requirements"
    assert (await agent.get(at)).body == b"# The record does not say which packages there were.\n"
    here, one, two = tmp_path / "here", wheel(tmp_path, "1.0"), wheel(tmp_path, "2.0")
    install = f"%pip install -q --no-index --no-deps --target {here}"
    first = f"import sys; sys.path.append({str(here)!r})\n{install} {one}"
    again = f"import shutil; shutil.rmtree({str(here)!r})\n{install} {two}"
    ran = [await agent.run(session, first)]
    assert f"quokka @ {one.as_uri()}" in (await agent.get(at)).body.decode()
    ran += [await agent.run(session, source) for source in (again, "x = 1")]
    assert [each["status"] for each in ran] == ["ok", "ok", "ok"]

    [told] = await environments(agent, session)
    assert told["interpreter"] == sys.executable
    assert told["version"] == ".".join(map(str, sys.version_info[:3]))
    assert f"ipykernel=={version('ipykernel')}" in told["packages"]
    assert not [line for line in told["packages"] if line.startswith("quokka")]
    lines = f"-quokka @ {one.as_uri()}", f"+quokka @ {two.as_uri()}"
    assert told["changes"] == [
        {"execution_id": ran[0]["id"], "packages": [f"+quokka @ {one.as_uri()}"]},
        {"execution_id": ran[1]["id"], "packages": list(lines)},
    ]
    required = (await agent.get(at)).body.decode().splitlines()
    assert required[0].startswith("# CPython 3.")
    assert [line for line in required if "quokka" in line] == [lines[1][1:]]

    events = (await agent.get(f"sessions/{session['id']}/events")).json["events"]
    assert " ".join(lines) in [e["text"] for e in events if e["type"] == "packages_changed"]
    await agent.ask("POST", f"sessions/{session['id']}/close")
    report = await asyncio.to_thread(verify_history, history_dir, head=None, patience=5)
    assert report.outcome == Outcome.WHOLE, report.findings


async def test_another_kernel_with_the_same_environment_tells_nothing_new(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1")
    [first] = await environments(agent, session)
    await agent.ask("POST", f"sessions/{session['id']}/restart")
    await agent.run(session, "x = 1")
    assert await environments(agent, session) == [first]
    changed = "import sys; sys.path.insert(0, '/nowhere'); sys.executable = '/other/python'"
    await agent.ask("POST", f"sessions/{session['id']}/restart")
    await agent.run(session, changed)
    told = await environments(agent, session)
    assert [each["incarnation"] for each in told] == [1, 3]
    assert told[1]["interpreter"] == "/other/python"


async def test_a_kernel_that_does_not_tell_is_named_as_such(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "import importlib.metadata; importlib.metadata.distributions = None")
    [told] = await environments(agent, session)
    assert "packages" not in told
    assert told["reason"] == "The kernel did not tell which packages it has."
    requirements = (await agent.get(f"sessions/{session['id']}/requirements")).body.decode()
    assert requirements == f"# {told['reason']}\n"
