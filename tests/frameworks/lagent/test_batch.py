"""The interpreter of several sources at the same time."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from lagent.schema import ActionStatusCode
from test_action import text

from jupyter_agent_exec.adapters.lagent import BatchIPythonInterpreter


@pytest.fixture(scope="module")
def batch(folder: Path) -> Iterator[BatchIPythonInterpreter]:
    with BatchIPythonInterpreter({"work_dir": "images", "timeout": 60}) as made:
        yield made


def test_each_index_has_a_kernel_that_keeps_its_state(batch: BatchIPythonInterpreter) -> None:
    first, failed = batch(["x = 'first'\nprint(x)", "x = 'second'\n1 / 0"])
    assert text(first) == "first\n"
    assert failed.state == ActionStatusCode.API_ERROR
    second, first = batch(["x", "x"], [1, 0])
    assert (text(second), text(first)) == ("'second'", "'first'")
    assert text(batch("x", 1)) == "'second'"
    assert text(batch("x")) == "'first'"
    assert batch([]) == []


def test_they_run_at_the_same_time(batch: BatchIPythonInterpreter, tmp_path: Path) -> None:
    met = [str(tmp_path / name) for name in "ab"]
    for path in met:
        os.mkfifo(path)
    # Each waits for the other.
    answers = batch(
        [
            f"open({met[0]!r}, 'w').write('a')\nprint(open({met[1]!r}).read())",
            f"print(open({met[0]!r}).read())\nopen({met[1]!r}, 'w').write('b')",
        ]
    )
    assert [text(each).splitlines()[0] for each in answers] == ["b", "a"]


@pytest.mark.parametrize(
    ("commands", "indexes"), [(["1", "2"], [0]), (["1", "2"], [0, 0]), ("1", [0, 1]), (["1"], [])]
)
def test_indexes_must_fit(
    batch: BatchIPythonInterpreter, commands: str | list[str], indexes: list[int]
) -> None:
    with pytest.raises(ValueError, match="the size of `indexes` must equal that of `commands`"):
        batch(commands, indexes)


def test_ctrl_c_stops_all_of_them(batch: BatchIPythonInterpreter, tmp_path: Path) -> None:
    began = [str(tmp_path / name) for name in "ab"]
    for path in began:
        os.mkfifo(path)

    def press() -> None:
        for path in began:
            Path(path).read_text()
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        batch([f"open({path!r}, 'w').close()\nwhile True: pass" for path in began])
    presser.join()
    assert [text(each) for each in batch(["1", "2"])] == ["1", "2"]


# What a kernel runs while it starts: tells that it has begun, and waits until it may go on.
HELD = """
import fcntl, os
os.write(os.open({began!r}, os.O_WRONLY), b"%d\\n" % os.getpid())
with open({gate!r}) as gate:
    fcntl.flock(gate, fcntl.LOCK_SH)
"""


def test_ctrl_c_while_kernels_start_leaves_nothing_that_begins(
    jupyter_folders: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = [tmp_path / name for name in "ab"]
    began, gate = tmp_path / "began", tmp_path / "gate"
    os.mkfifo(began)
    starting = tmp_path / "ipython" / "profile_default" / "startup" / "held.py"
    starting.parent.mkdir(parents=True)
    starting.write_text(HELD.format(began=str(began), gate=str(gate)))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    # A server of its own: one that has run sessions may have a kernel that has started.
    monkeypatch.chdir(tmp_path)
    kernels: list[int] = []

    def press() -> None:
        kernels.extend(int(beginnings.readline()) for _ in ran)
        os.kill(os.getpid(), signal.SIGINT)

    made = BatchIPythonInterpreter({"work_dir": "images", "timeout": 30})
    with open(began, "r+b", buffering=0) as beginnings, made as batch:
        presser = threading.Thread(target=press)
        with gate.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            presser.start()
            with pytest.raises(KeyboardInterrupt):
                batch([f"open({str(path)!r}, 'w').close()\nwhile True: pass" for path in ran])
            presser.join()
            assert all(map(psutil.pid_exists, kernels)), "it waited until they were given up"
        assert [text(each) for each in batch(["1", "2"])] == ["1", "2"]
    assert not any(path.exists() for path in ran)


def test_it_runs_where_an_event_loop_runs(batch: BatchIPythonInterpreter) -> None:
    async def main() -> list[str]:
        return [text(each) for each in batch(["1", "2"])]

    assert asyncio.run(main()) == ["1", "2"]


def test_reset_ends_the_kernels(folder: Path) -> None:
    batch = BatchIPythonInterpreter({"work_dir": "images"})
    pids = [text(each).strip() for each in batch(["import os\nprint(os.getpid())"] * 2)]
    assert len(set(pids)) == 2
    batch.reset()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert text(batch("'os' in dir()")) == "False"
    batch.close()
