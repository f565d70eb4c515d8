"""Secrets are replaced before anything is recorded, answered or shown; the kernel has them."""

from __future__ import annotations

import asyncio
import binascii
import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify import verify_history
from jupyter_agent_exec.text.inert import sanitised, sanitised_markdown
from jupyter_agent_exec.text.model_text import html_text
from jupyter_agent_exec.text.terminal import clean
from tests.approvals.person_deciding import approve, asks
from tests.asking import Agent
from tests.mcp.tools_bench import Bench, bench
from tests.real_server import Gate, gate
from tests.sessions.living_notebook import Desk, desk, entries, finished, notebook_target

__all__ = ["bench", "desk", "gate"]

TOKEN = f"jaex_t_{'01J0AB' * 4}0Z_{'0123456789abcdef' * 4}"
PASSWORD = "correct horse battery staple"
CUSTOMER = "KD-20261124"
SECRETS = (TOKEN[-64:], PASSWORD, CUSTOMER)
MARKS = ("[redacted: agent token]", "[redacted: DB_PASSWORD]", "[redacted: customer number]")
ALL = ", ".join((TOKEN, PASSWORD, CUSTOMER))
MARKED = ", ".join(MARKS)


@pytest.fixture
def agent_exec_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    return {
        "redact_env": ["DB_PASSWORD"],
        "redact_patterns": {"customer number": r"KD-\d{8}"},
        "record_people": "outputs",
        "sinks": [{"kind": "folder", "path": str(tmp_path / "sink"), "content": "outputs"}],
    }


def found_in(folder: Path) -> list[str]:
    """Return the files below a folder that have a secret, or half of one."""
    halves = [half.encode() for each in SECRETS for half in (each[:8], each[-8:])]
    files = files_in(folder)
    assert files
    return [str(path) for path in files if any(half in files[path] for half in halves)]


def files_in(folder: Path) -> dict[Path, bytes]:
    """Return the content of the files below a folder; one that is written is renamed at its end."""
    contents = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            contents[path] = path.read_bytes()
    return contents


def is_sent(sink: Path) -> bool:
    """Whether the last entry of a closed session is in a sink's folder, and no file is written."""
    files = files_in(sink)
    is_whole = not any(path.name.startswith(".") for path in files)
    return is_whole and any(b'"closed"' in data for data in files.values())


async def test_no_secret_is_recorded_answered_or_found_and_the_code_ran_with_them(
    agent: Agent, history_dir: Path, tmp_path: Path
) -> None:
    session = await agent.open(title=f"for {CUSTOMER}", allow_stdin=True)
    outputs = f"""
import hashlib, json, sys
from IPython.display import HTML, JSON, display
secret = {ALL!r}
for at in (0, 50, 100):
    print(secret[at : at + 50], end="", flush=True)
print(secret[150:], end="")
display(HTML(f"<b>{{secret}}</b>"), JSON({{"a": [secret]}}))
print(secret, file=sys.stderr)
asked = input(f"{{secret}}? ")
display(asked)
hashlib.sha256(secret.encode()).hexdigest()
"""
    asking = await agent.run(session, outputs, wait=60, values={"s": "secret", "n": "len(secret)"})
    assert asking["input"]["prompt"] == f"{MARKED}? "
    given = {"value": PASSWORD, "wait": 60}
    done = (await agent.ask("POST", f"executions/{asking['id']}/input", given)).json
    raised = await agent.run(session, f"raise ValueError({ALL!r})", claim={"purpose": ALL})
    answers = [session, asking, done, raised]
    assert done["status"] == "ok"
    assert hashlib.sha256(ALL.encode()).hexdigest() in done["text"]
    assert done["values"]["n"]["json"] == len(ALL)
    assert done["values"]["s"]["json"] == MARKED
    # the source, stdout, HTML, JSON, stderr, the prompt, the answer, its display, value, variables
    assert done["redacted"] == done["cell"]["metadata"]["agent_exec"]["redacted"] >= 7 * 3 + 2
    assert f"secret = {MARKED!r}" in done["source"]
    assert f"<b>{MARKED}</b>" in json.dumps(done["cell"]["outputs"])
    assert raised["error"]["evalue"] == MARKED
    plain = await agent.run(session, "1 + 1")
    assert (plain["redacted"], "redacted" in plain["cell"]["metadata"]["agent_exec"]) == (0, False)

    review = {"verdict": "flagged", "comment": f"see {PASSWORD}"}
    assert (await agent.ask("PUT", f"executions/{done['id']}/review", review)).status == 200
    answers += [(await agent.get(f"sessions/{session['id']}/variables")).json]
    assert "[redacted: the beginning of a secret]" in json.dumps(answers[-1])
    await agent.ask("POST", f"sessions/{session['id']}/close")
    for path in (f"executions/{done['id']}", f"sessions/{session['id']}/notebook", "sessions"):
        answers.append((await agent.get(path)).json)
    assert answers[-3] == {**done, **{k: answers[-3][k] for k in ("chain", "review", "cell")}}
    for each in SECRETS:
        assert (await agent.get("search", q=f'"{each}"')).json["hits"] == []
    assert len((await agent.get("search", q="redacted")).json["hits"]) == 2
    text = json.dumps(answers)
    assert not any(each in text for each in SECRETS)
    assert verify_history(history_dir).outcome is Outcome.WHOLE
    async with asyncio.timeout(30):
        while not is_sent(tmp_path / "sink"):
            await asyncio.to_thread(history_dir.stat)
    assert found_in(history_dir) == found_in(tmp_path / "sink") == []


async def test_ordinary_output_is_shown_at_once_and_what_waited_before_input(
    agent: Agent, gate: Gate
) -> None:
    session = await agent.open(allow_stdin=True)
    code = f"print('x', end='', flush=True)\n{gate.source}\nprint('KD-1', end='')\ninput('?')"
    running = await agent.run(session, code, wait=0)

    async def shows(text: str) -> None:
        async with asyncio.timeout(30):
            while True:
                answered = (await agent.get(f"executions/{running['id']}")).json
                if "".join(each.get("text", "") for each in answered["cell"]["outputs"]) == text:
                    return

    await asyncio.to_thread(gate.wait_until_it_runs)
    await shows("x")
    await asyncio.to_thread(gate.let_it_go_on)
    await shows("xwent on\nKD-1")
    await agent.ask("POST", f"executions/{running['id']}/input", {"value": "", "wait": 60})


async def test_a_user_approves_what_is_shown_and_the_kernel_gets_the_original(
    agent: Agent,
) -> None:
    await agent.ask("PUT", "approvals/policy", {"scratch": "always"})
    session = await agent.open()
    code = f"import hashlib; hashlib.sha256({ALL!r}.encode()).hexdigest()"
    execution = await asks(agent, session, code)
    assert execution["source"] == code.replace(ALL, MARKED)
    edited = await approve(agent, execution, source=f"print({MARKED!r})")
    assert (edited.status, edited.json["detail"]["field"]) == (400, "source")
    assert (await approve(agent, execution, source=execution["source"])).status == 200
    done = await finished(agent, execution)
    assert hashlib.sha256(ALL.encode()).hexdigest() in done["text"]
    assert done["approval"]["asked_source"] is None
    assert done["redacted"] == 3


async def test_in_a_notebook_the_source_stays_and_the_outputs_have_no_secret(
    agent: Agent, desk: Desk, history_dir: Path, jp_root_dir: Path
) -> None:
    desk.writes()
    session = await agent.open(target=notebook_target())
    source = f"print({ALL!r})"
    done = await agent.run(session, source, wait=60)
    async with asyncio.timeout(30):
        while done["document"]["status"] == "writing":
            done = (await agent.get(f"executions/{done['id']}")).json
    (cell,) = (
        each
        for each in json.loads((jp_root_dir / session["target"]["path"]).read_text())["cells"]
        if each["id"] == done["id"]
    )
    assert "".join(cell["source"]) == source
    assert "".join(cell["outputs"][0]["text"]) == f"{MARKED}\n"
    about = cell["metadata"]["agent_exec"]
    assert (about["source_sha256"], about["redacted"]) == (None, 6)
    # the user's own cell
    person = await desk.sits_at(session["kernel"]["id"])
    await person.has_run(f"print({ALL!r})")
    async with asyncio.timeout(30):
        while "person_ran" not in [each["type"] for each in await entries(agent, session)]:
            pass
    assert found_in(history_dir) == []


HIDING = {
    "colours": "print(f'\\x1b[31m{a}\\x1b[0m{b}')",
    "grep": "!printenv DB_PASSWORD | sed 's/^/key=/' | grep --color=always orse",
    "backspaces": "print(f'{a}xy\\b\\b{b}')",
    "carriage return": "print(f\"{'x' * len(a)}{b}\\r{a}\")",
    "pieces with colours": "for each in (a, '\\x1b', '[0m', b): print(each, end='', flush=True)",
    "pieces around an update": """
shown = display('x', display_id=True)
print(a, end='', flush=True)
shown.update('y')
print(b)""",
    "a list of lines": "display({'text/plain': [a, b]}, raw=True)",
    "colours of a result": "display({'text/plain': f'{a}\\x1b[0m{b}'}, raw=True)",
    "tags": "HTML(f'<table><tr><td><b>{a}</b><i class=\"x > y\">{b}</i></td></tr></table>')",
    "entities": "HTML(secret.replace('o', '&#111;'))",
    "a comment and a script": "HTML(f'{a}<!-- x --><script>1</script>{b}')",
    "tags in Markdown": "Markdown(f'{a}<b></b>{b}')",
    "SVG": "SVG(f'<svg xmlns=\"http://www.w3.org/2000/svg\"><text>{a}<tspan>{b}</tspan></text></svg>')",
    "an image that is none": "display({'image/png': secret}, raw=True)",
    "an image in lines": "display({'image/png': [a, b]}, raw=True)",
    "an image of a text": "display({'image/jpeg': b64encode(secret.encode()).decode()}, raw=True)",
    "a comment in an image": """
data = b'\\x89PNG\\r\\n\\x1a\\n' + bytes(range(256)) * 9 + b'tEXtComment\\0' + secret.encode()
display({'image/png': b64encode(data).decode(), 'text/plain': 'an image'}, raw=True)""",
    "a sound that is none": "display({'audio/wav': secret, 'application/pdf': secret}, raw=True)",
    "a message": "raise ValueError(f'{a}\\x1b[0m{b}')",
    "coloured source": f"{CUSTOMER} + 1",
    "a variable": "variable = f'{a}\\x1b[0m{b}'; print(variable)",
    "output after the end": """
import threading
print(a, end='', flush=True)
threading.Timer(0.5, print, [b]).start()""",
}
"""How code shows a secret that is in no text by itself. `a` and `b` are its halves."""

PREPARED = """
import os
from base64 import b64encode
from IPython.display import HTML, SVG, Markdown, display
secret = os.environ['DB_PASSWORD']
a, b = secret[:9], secret[9:]
"""


def read_in(value: Any) -> Iterator[str]:
    """Yield what is read in JSON: each text in it, also as pages and terminals show it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from read_in(key)
            yield from read_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from read_in(item)
        if all(isinstance(item, str) for item in value):
            yield from read_in("".join(value))
            yield from read_in("\n".join(value))
    elif isinstance(value, str):
        yield value
        yield clean(value)
        yield html_text(value)
        for page in (sanitised(value)[0], sanitised_markdown(value)[0]):
            if page is not None:
                yield from (page, html_text(page))
        with contextlib.suppress(ValueError):
            yield binascii.a2b_base64(value).decode("utf-8", "replace")


async def test_nothing_that_is_read_joins_what_code_has_hidden(
    agent: Agent, desk: Desk, bench: Bench, jp_root_dir: Path
) -> None:
    desk.writes()
    session = await agent.open(target=notebook_target())
    await agent.run(session, PREPARED, wait=60)
    read: dict[tuple[str, str], Any] = {}
    ran = {way: await agent.run(session, code, wait=60) for way, code in HIDING.items()}
    late = ran["output after the end"]
    async with asyncio.timeout(30):
        while "staple" not in late["text"] and "redacted" not in late["text"]:
            late = (await agent.get(f"executions/{late['id']}")).json
    unsaid = set()
    for way, done in ran.items():
        path = f"executions/{done['id']}"
        answered = (await agent.get(path)).json
        if "[redacted: " not in answered["text"] or not answered["redacted"]:
            unsaid.add(way)
        read[way, "answer"] = done
        read[way, "answer later"] = answered
        read[way, "text"] = (await agent.get(f"{path}/text")).json
        read[way, "stream"] = [
            json.loads(line.removeprefix("data: "))
            for line in (await agent.get(f"{path}/stream")).body.decode().splitlines()
            if line.startswith("data: ")
        ]
        told = await bench.whole("get_execution", execution_id=done["id"])
        read[way, "MCP"] = told.model_dump(mode="json")
    for each in ("redacted", PASSWORD.split()[0], PASSWORD.split()[-1]):
        read["all", f"search for {each}"] = (await agent.get("search", q=each)).json
    read["all", "variables"] = (await agent.get(f"sessions/{session['id']}/variables")).json
    told = await bench.whole("list_variables", session_id=session["id"])
    read["all", "variables, MCP"] = told.model_dump(mode="json")
    read["all", "export"] = (await agent.get(f"sessions/{session['id']}/notebook")).json
    await agent.ask("POST", f"sessions/{session['id']}/close")
    notebook = json.loads((jp_root_dir / session["target"]["path"]).read_text())
    assert len(notebook["cells"]) >= len(HIDING)
    read["all", "notebook"] = [each.get("outputs") for each in notebook["cells"]]
    leaks = {
        place
        for place, value in read.items()
        if any(each in text for text in read_in(value) for each in SECRETS)
    }
    assert (leaks, unsaid) == (set(), set())
