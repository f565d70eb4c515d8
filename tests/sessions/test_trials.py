"""Trials through the routes: code in a sealed copy of a kernel (docs/explanation/trials.md).

The environment sets how many of them have to leave nothing: `AGENT_EXEC_TRIALS=1000`.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import nbformat
import pytest

from jupyter_agent_exec.journal.findings import Outcome
from jupyter_agent_exec.journal.verify_notebook import verify_notebook
from tests.asking import Agent
from tests.sessions.living_notebook import NOTEBOOK, Desk, notebook_target, until_status

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="trials need Linux")

TRIALS = int(os.environ.get("AGENT_EXEC_TRIALS", "10"))


async def attempt(agent: Agent, session: dict[str, Any], source: str, **more: Any) -> Any:
    return await agent.run(session, source, trial=True, **more)


async def test_a_trial_sees_the_variables_and_changes_none(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1\ngone = 2\nnames = ['a']")
    tried = await attempt(
        agent, session, "x = 5\ny = x\ndel gone\nnames.append('b')\nprint('hi')\nx + 1",
        values={"twice": "x * 2"},
    )  # fmt: skip
    assert (tried["status"], tried["trial"], tried["seal"]["seccomp"]) == ("ok", True, True)
    assert tried["text"] == "hi\n6"
    assert tried["values"]["twice"]["json"] == 10
    assert {(each["change"], each["name"]) for each in tried["changes"]["variables"]} == {
        ("changed", "x"), ("added", "y"), ("removed", "gone"), ("changed", "names"),
    }  # fmt: skip
    after = await agent.run(session, "x, gone, names, 'y' in dir()")
    assert after["text"] == "(1, 2, ['a'], False)"


BEFORE = """
import pandas as pd
sales, x0 = pd.DataFrame({"a": range(400), "b": "text"}), 0
rows = [[0] * 200 for _ in range(200)]
for i in range(200): globals()[f"v{i}"] = i
"""


async def test_a_trial_leaves_no_harm_out_however_many_variables_there_are(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, BEFORE)
    source = "tmp = 1; sales.drop(sales.index, inplace=True); x0 = 'changed'; del pd"
    changes = (await attempt(agent, session, f"{source}; rows[199][199] = 1"))["changes"]
    told = {each["name"]: each for each in changes["variables"]}
    assert {name: each["change"] for name, each in told.items()} == {
        "tmp": "added", "sales": "changed", "x0": "changed", "rows": "changed", "pd": "removed",
    }  # fmt: skip
    assert (told["sales"]["before"]["shape"], told["sales"]["shape"]) == ([400, 2], [0, 2])
    assert told["x0"]["before"]["preview"] == "0"
    assert changes["not_compared"] == 0
    for source, change in (("sales = None", "changed"), ("del sales", "removed")):
        changes = (await attempt(agent, session, source))["changes"]
        assert [(each["name"], each["change"]) for each in changes["variables"]] == [
            ("sales", change)
        ]
    short = await attempt(agent, session, "sales = None\nwhile True: pass", timeout=0.2)
    assert (short["status"], short["changes"]) == ("timed_out", None)


async def test_a_trial_shows_what_the_kernel_would_show(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "import asyncio, os, sys")
    awaited = await attempt(agent, session, "await asyncio.sleep(0)\n'awaited'")
    assert awaited["text"] == "'awaited'"
    hidden = await attempt(agent, session, "x = 1\nx;")
    assert hidden["text"] == ""
    failed = await attempt(agent, session, "1 / 0")
    assert (failed["status"], failed["error"]["ename"]) == ("error", "ZeroDivisionError")
    raw = await attempt(agent, session, "os.write(1, b'from below\\n'); None")
    assert raw["text"] == "from below\n"
    figure = await attempt(
        agent, session, "import matplotlib.pyplot as p\n%matplotlib inline\np.plot([1])\np.show()"
    )
    assert [image["mimetype"] for image in figure["images"]] == ["image/png"]
    for source in ("os.path?", "%pinfo os.path"):
        asked = await attempt(agent, session, source, values={"two": "1 + 1"})
        assert "posixpath.py" in asked["text"]
        assert asked["values"]["two"]["json"] == 2
    loaded = await attempt(agent, session, "get_ipython().set_next_input('y = 42')")
    assert "y = 42" in loaded["text"]
    refused = await attempt(agent, session, "open('mark', 'w')")
    assert refused["error"]["ename"] == "PermissionError"
    assert "not as a trial" in refused["text"]
    program = await attempt(agent, session, "!ls")
    assert "not as a trial" in program["text"]
    asks = await attempt(agent, session, "input()")
    assert asks["error"]["ename"] == "StdinNotImplementedError"


async def test_a_refusal_has_the_line_that_tried_it_if_that_is_known(agent: Agent) -> None:
    session = await agent.open()
    known = (
        "import pathlib, os\ndef writes(name):\n    pathlib.Path(name).write_text('x')\n"
        "for each in 'aa':\n    try:\n        writes(each)\n    except OSError: pass\n"
        "%pwd\ntry:\n    !ls\nexcept OSError: pass\nos.listdir('/root')\n"
    )
    tried = (await attempt(agent, session, known))["seal"]["refused"]
    lines = [(each["kind"], each["line"]) for each in tried]
    assert lines == [("write", 3), ("start", 10), ("access", 12)]
    for shifted in ("\n\nopen('mark', 'w')", "%%time\n\nopen('mark', 'w')"):
        tried = (await attempt(agent, session, shifted))["seal"]["refused"]
        assert [(each["what"], each["line"]) for each in tried] == [("mark", None)]


async def test_a_trial_runs_again_after_somebody_has_removed_our_code_from_the_kernel(
    agent: Agent,
) -> None:
    session = await agent.open()
    assert (await attempt(agent, session, "1"))["text"] == "1"
    await agent.run(session, "get_ipython().kernel.comm_manager.targets.clear()")
    assert (await attempt(agent, session, "2"))["text"] == "2"


async def test_a_trial_that_crashes_or_ends_itself_leaves_the_kernel(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1")
    crashed = await attempt(agent, session, "import ctypes; ctypes.string_at(0)")
    assert (crashed["status"], "SIGSEGV" in crashed["text"]) == ("error", True)
    left = await attempt(agent, session, "import os; os._exit(0)")
    assert (left["status"], left["outputs_complete"]) == ("error", False)
    hangs = await attempt(agent, session, "print('begun')\nwhile True: pass", timeout=1)
    assert (hangs["status"], hangs["text"].startswith("begun")) == ("timed_out", True)
    assert "not as a trial" in hangs["reason"]
    assert (await agent.run(session, "x"))["text"] == "1"


LIES = (
    *('"stream", None', '"stream", {"name": 1, "text": 2}', '"stream", [1]', '"error", 3'),
    *('"display_data", {"data": 3, "metadata": [], "transient": 4}', '"execute_result", {}'),
    *('"clear_output", {"wait": []}', '"trial_exited", 3', '"trial_failed", {"reason": []}'),
    *('"trial_refused", {"reason": "not true"}', '"trial_sealed", {}'),
)


ENDS = (
    *("3", "{}", '{"reply": {"status": 1, "payload": 5}, "before": 3}'),
    '{"reply": {"status": "error", "ename": [], "traceback": 7}, "after": {}}',
)


async def test_a_copy_that_lies_still_has_an_end(agent: Agent) -> None:
    session = await agent.open()
    for end in ENDS:
        lies = "\n".join(f"ours.send({lie})" for lie in (*LIES, f'"trial_ended", {end}'))
        source = f"import os, sys\nours = sys.stdout.write.__closure__[0].cell_contents\n{lies}\n"
        source += "os.write(ours.number, b'x' * 99)\nos._exit(0)"
        told = await attempt(agent, session, source)
        assert (told["status"], told["seal"]["seccomp"]) == ("error", True), end
    assert (await agent.run(session, "'goes on'"))["text"] == "'goes on'"


async def test_output_and_memory_of_a_trial_are_bounded(agent: Agent) -> None:
    session = await agent.open()
    loud = await attempt(
        agent, session, "for _ in range(3000): print('x' * 1000)", max_output_bytes=10_000
    )
    assert loud["status"] == "ok"
    assert loud["omitted"]["bytes"] > 2_900_000
    greedy = await attempt(agent, session, "x = bytearray(6 << 30)")
    assert greedy["error"]["ename"] == "MemoryError"


SPOILS = """
import mmap, os, tempfile
here = tempfile.gettempdir()
os.mkdir(here + "/closed", 0o300)
os.chdir(here)
for _ in range(1500):
    os.mkdir("n")
    os.chdir("n")
held, written = [], 0
try:
    while written < 1 << 30:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(1 << 20))
            file.flush()
            held.append(mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ))
        written += 1 << 20
except OSError as error:
    print(error.errno, written)
"""


NO_NAMESPACES = """
import sys
for each in get_ipython().kernel.comm_manager.targets.values():
    if hasattr(each, "trial"):
        each.trial.__globals__["make_namespaces"] = lambda kinds: sys.exit("as in containers")
"""


def temporary_files() -> set[Path]:
    """Return the files of trials that can be seen outside of them."""
    return set(Path(tempfile.gettempdir()).glob("agent-exec-trial-*/private/*"))


async def test_temporary_files_are_bounded_and_leave_nothing(agent: Agent) -> None:
    """Also those that are deleted and mapped, and folders that nobody can list or remove."""
    session = await agent.open()
    await agent.run(session, "x = 1")
    before = temporary_files()
    full = await attempt(agent, session, SPOILS)
    assert full["status"] == "ok", full["text"]
    number, written = map(int, full["text"].split())
    print(f"a trial could write {written >> 20} MB of temporary files")  # noqa: T201
    assert (number, written <= 64 << 20) == (errno.ENOSPC, True)
    await agent.run(session, NO_NAMESPACES)
    none = await attempt(agent, session, "import tempfile\nprint(x)\ntempfile.TemporaryFile()")
    assert (none["error"]["ename"], none["text"][0]) == ("PermissionError", "1")
    assert temporary_files() <= before


THREADS = """
import threading
from collections.abc import Iterator
threading.stack_size(32768)
ends = threading.Event()
while True:
    threading.Thread(target=ends.wait, daemon=True).start()
"""


async def test_a_trial_that_starts_ever_more_threads_is_ended(agent: Agent) -> None:
    session = await agent.open()
    told = await attempt(agent, session, THREADS)
    assert (told["status"], "1,000 threads" in told["reason"]) == ("error", True)


async def test_a_secret_in_a_trial_is_replaced(agent: Agent) -> None:
    session = await agent.open()
    secret = "0123456789abcdef" * 4
    made = f"made = 'jaex_t_{'01J0AB' * 4}0Z' + '_' + '{secret[:32]}' + '{secret[32:]}'"
    told = await attempt(agent, session, f"{made}\nprint(made)\nmade", values={"t": "made"})
    seen = json.dumps([told["text"], told["cell"]["outputs"], told["values"], told["changes"]])
    assert secret not in seen
    assert "[redacted: agent token]" in seen


async def test_the_widgets_of_the_kernel_stay_as_they_were(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "import ipywidgets\nslider = ipywidgets.IntSlider(value=1); slider")
    source = "slider.value = 7\nout = ipywidgets.Output()\nwith out: print('in')\nslider"
    tried = await attempt(agent, session, source)
    assert tried["status"] == "ok"
    exported = (await agent.get(f"sessions/{session['id']}/notebook")).json
    state = exported["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    values = [each["state"]["value"] for each in state.values() if "value" in each["state"]]
    assert values == [1]


async def test_a_kernel_is_free_while_its_trial_runs(agent: Agent, desk: Desk) -> None:
    kernel = {"kind": "kernel", "kernel_id": (await desk.opens())["kernel"]["id"]}
    session = await agent.open(target=kernel)
    await agent.run(session, "x = 1")
    other = await agent.open(target=kernel)
    third = await agent.open(target=kernel)
    fourth = await agent.open(target=kernel)
    forever = "while True: pass"
    first = await attempt(agent, other, forever, wait=0)
    second = await attempt(agent, third, forever, wait=0)
    await until_status(agent, first, "running")
    await until_status(agent, second, "running")
    assert (await agent.run(session, "x + 1"))["text"] == "2"
    waits = await attempt(agent, fourth, "x", wait=0)
    assert (await agent.run(session, "x + 2"))["text"] == "3"
    assert (await agent.get(f"executions/{waits['id']}")).json["status"] == "queued"
    await agent.ask("POST", f"executions/{first['id']}/cancel")
    assert (await until_status(agent, first, "interrupted"))["status"] == "interrupted"
    assert (await until_status(agent, waits, "ok"))["text"] == "1"
    await agent.ask("POST", f"sessions/{third['id']}/close")
    ended = (await agent.get(f"executions/{second['id']}")).json
    assert ended["status"] in ("interrupted", "cancelled")
    copies = await agent.run(session, CHILDREN)
    assert copies["text"] == "[]"


CHILDREN = """
import os
def children():
    path = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    return open(path).read().split()
import time
until = time.monotonic() + 20
while children() and time.monotonic() < until: time.sleep(0.01)
children()
"""
LEFT = (
    CHILDREN + "(children(), len(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task')))"
)


@pytest.fixture
def temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return a folder for temporary files that no other process of the tests uses."""
    with tempfile.TemporaryDirectory(prefix="own-") as own:
        monkeypatch.setattr(tempfile, "tempdir", own)
        yield own


@pytest.mark.timeout(180 + TRIALS)
async def test_trials_leave_nothing(agent: Agent, temporary_folder: str) -> None:
    session = await agent.open()
    await agent.run(session, "import numpy\ntable = numpy.ones(1000)")
    await attempt(agent, session, "table.sum()")
    await agent.settle(session)
    before, ours = (await agent.run(session, LEFT))["text"], len(os.listdir("/proc/self/fd"))
    for _ in range(TRIALS):
        assert (await attempt(agent, session, "table.sum()"))["status"] == "ok"
    assert (await agent.run(session, LEFT))["text"] == before
    assert len(os.listdir("/proc/self/fd")) <= ours + 2
    assert not [each for each in threading.enumerate() if "agent-exec-trial" in each.name]
    assert not [each for each in os.listdir(temporary_folder) if "agent-exec-trial" in each]


async def test_a_lock_that_a_thread_holds_ends_the_trial_only(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(
        session,
        "import threading, queue\nheld = threading.Lock()\nheld.acquire()\n"
        "threads = [threading.Thread(target=held.acquire, daemon=True) for _ in range(20)]\n"
        "[each.start() for each in threads]\nx = 1",
    )
    assert (await attempt(agent, session, "x + 1"))["text"] == "2"
    hangs = await attempt(agent, session, "held.acquire()", timeout=1)
    assert hangs["status"] == "timed_out"
    assert (await agent.run(session, "len(threading.enumerate()) >= 21"))["text"] == "True"


OPENMP = """
import ctypes
library = ctypes.CDLL("libgomp.so.1")
ran = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def work(_): ran.append(1)
def parallel():
    ran.clear()
    library.GOMP_parallel(work, None, 2, 0)
    return len(ran)
parallel()
"""
UNKNOWN = """
libc = ctypes.CDLL(None)
libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None)
"""


@pytest.mark.skipif(find_library("gomp") is None, reason="needs OpenMP of GNU")
async def test_threads_of_openmp_work_in_a_trial_and_unknown_ones_are_refused(agent: Agent) -> None:
    session = await agent.open()
    assert (await agent.run(session, OPENMP))["text"] == "2"
    for _ in range(2):
        assert (await attempt(agent, session, "parallel()"))["text"] == "2"
        assert (await agent.run(session, "parallel()"))["text"] == "2"
    await agent.run(session, UNKNOWN)
    refused = await attempt(agent, session, "1")
    assert (refused["status"], refused["cell"]["outputs"]) == ("cancelled", [])
    assert refused["reason"].startswith("A trial is not possible here: its process has threads of")


async def test_a_trial_has_no_cell_in_notebooks_and_exports(
    agent: Agent, desk: Desk, jp_root_dir: Path, history_dir: Path, tmp_path: Path
) -> None:
    desk.writes()
    session = await agent.open(target=notebook_target())
    await agent.run(session, "x = 1")
    tried = await attempt(agent, session, "x = 2\nprint('needle', x)")
    assert tried["document"] is None
    await agent.settle(session)
    exported = (await agent.get(f"sessions/{session['id']}/notebook")).json
    assert [cell["source"] for cell in exported["cells"]] == ["x = 1"]
    listed = exported["metadata"]["agent_exec"]["trials"]
    assert [each["execution_id"] for each in listed] == [tried["id"]]
    clean = (await agent.get(f"sessions/{session['id']}/notebook", clean="true")).json
    assert [cell["id"] for cell in clean["cells"]] != [tried["id"]]
    found = (await agent.get("search", q="needle")).json
    assert tried["id"] in json.dumps(found)
    await agent.ask("POST", f"sessions/{session['id']}/close")
    cells = nbformat.read(jp_root_dir / NOTEBOOK, as_version=4).cells
    assert [cell.source for cell in cells] == ["x = 1"]
    again = (await agent.get(f"executions/{tried['id']}")).json
    assert (again["trial"], again["seal"]) == (True, tried["seal"])
    journal = history_dir / "sessions" / session["id"] / "journal.jsonl"
    kept = tmp_path / "export.ipynb"
    kept.write_text(json.dumps(exported))
    assert verify_notebook(kept, journal).outcome is Outcome.WHOLE
    listed[0]["status"] = "error"
    kept.write_text(json.dumps(exported))
    assert verify_notebook(kept, journal).outcome is Outcome.ALTERED


async def test_a_trial_needs_no_approval_but_waits_for_the_end_of_a_pause(agent: Agent) -> None:
    session = await agent.open()
    await agent.run(session, "x = 1")
    asked = await agent.ask("PUT", "approvals/policy", {"scratch": "always"})
    assert asked.status == 200, asked.body
    assert (await attempt(agent, session, "x"))["text"] == "1"
    await agent.ask("PUT", "approvals/pause", {"paused": True})
    held = await attempt(agent, session, "x", wait=0)
    assert held["status"] == "queued"
    await agent.ask("PUT", "approvals/pause", {"paused": False})
    assert (await until_status(agent, held, "ok"))["text"] == "1"


async def test_a_trial_with_a_place_is_refused(agent: Agent) -> None:
    session = await agent.open()
    for body in ({"placement": {"after": "a"}}, {"source": None}):
        asked = {"source": "1", "trial": True, **body}
        refused = await agent.ask("POST", f"sessions/{session['id']}/executions", asked)
        assert (refused.status, refused.json["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("agent_exec_config", [{"trials": "off"}])
async def test_an_operator_can_switch_trials_off(agent: Agent) -> None:
    session = await agent.open()
    asked = {"source": "1", "trial": True}
    refused = await agent.ask("POST", f"sessions/{session['id']}/executions", asked)
    assert (refused.status, refused.json["code"]) == (501, "trial_unavailable")
    assert "not as a trial" in refused.json["message"]


async def test_a_copy_that_cannot_be_sealed_runs_nothing(agent: Agent, jp_root_dir: Path) -> None:
    """Memory that it shares with other processes is too much to copy."""
    session = await agent.open()
    await agent.run(session, "import mmap\nshared = mmap.mmap(-1, 3 << 30)\nran = []")
    tried = await attempt(agent, session, "print('it ran')")
    assert (tried["status"], tried["cell"]["outputs"], tried["seal"]) == ("cancelled", [], None)
    assert "shares too much memory" in tried["reason"]
    assert "Nothing was run" in tried["reason"]
    assert (await agent.run(session, "shared.close()\nran"))["text"] == "[]"
    assert (await attempt(agent, session, "'it ran'"))["text"] == "'it ran'"
