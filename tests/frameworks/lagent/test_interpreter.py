"""The interpreter and its kernel: what comes of it over several calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from lagent.schema import ActionStatusCode
from test_action import text

from jupyter_agent_exec.adapters import Target
from jupyter_agent_exec.adapters.lagent import IPythonInterpreter
from jupyter_agent_exec.client import AgentExecClient
from tests.real_server import RealServer


def test_the_first_execution_is_the_first_in_the_kernel(folder: Path) -> None:
    with IPythonInterpreter(work_dir="images") as interpreter:
        interpreter.initialize()
        interpreter.initialize()
        assert "Cell In[1], line 1" in (interpreter.run("1 / 0").errmsg or "")
        assert "Cell In[2], line 1" in (interpreter.run("1 / 0").errmsg or "")


def test_reset_forgets_all_and_keeps_the_kernel(interpreter: IPythonInterpreter) -> None:
    pid = text(interpreter.run("import os\nx = 1\ninput = None\nos.getpid()"))
    interpreter.reset()
    assert text(interpreter.run("'x' in dir()")) == "False"
    assert text(interpreter.run("import os\nos.getpid()")) == pid
    assert "input() function is disabled" in (interpreter.run("input()").errmsg or "")


def test_reset_works_also_where_the_code_has_broken_it(interpreter: IPythonInterpreter) -> None:
    interpreter.run("x = 1\nget_ipython().run_line_magic = None")
    interpreter.reset()
    answer = interpreter.run("print('x' in dir())")
    assert answer.result is not None
    assert answer.result[0]["content"].endswith("all variables are gone.\nFalse\n")


def test_code_cannot_ask_nor_run_commands(interpreter: IPythonInterpreter) -> None:
    asked = interpreter.run("input('Your name?')")
    assert (asked.errmsg or "").endswith("Python input() function is disabled.")
    password = interpreter.run("import getpass\ngetpass.getpass()")
    assert "StdinNotImplementedError" in (password.errmsg or "")
    ran = interpreter.run("!echo hello\n!pip install nothing")
    assert text(ran).splitlines() == ["Assume we have this package, ! is disabled!"] * 2
    assert text(interpreter.run("1")) == "1"


def test_the_kernel_goes_to_the_parent_of_the_users_data(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = folder / "it's {theirs}"
    parent.mkdir()
    with IPythonInterpreter(user_data_dir=str(parent / "data"), work_dir="images") as named:
        assert text(named.run("import os\nprint(os.getcwd())")) == f"{parent}\n"
        named.run("os.chdir('/')")
        named.reset()
        assert text(named.run("import os\nprint(os.getcwd())")) == f"{parent}\n"
    monkeypatch.setenv("USER_DATA_DIR", str(parent / "data"))
    assert repr(str(parent)) in IPythonInterpreter().user_data_dir
    monkeypatch.setenv("USER_DATA_DIR", "data")
    assert IPythonInterpreter().user_data_dir == ""


def test_a_folder_that_is_not_there_is_told(folder: Path) -> None:
    with IPythonInterpreter(user_data_dir="/none/data", work_dir="images") as interpreter:
        answer = interpreter.run("1")
    assert answer.state == ActionStatusCode.API_ERROR
    assert "FileNotFoundError" in (answer.errmsg or "")
    assert "'/none'" in (answer.errmsg or "")


def test_a_timeout_stops_the_code_and_the_variables_stay(interpreter: IPythonInterpreter) -> None:
    loop = "import itertools\nkept = 5\nprint('so far')\nfor _ in itertools.count(): pass"
    answer = interpreter.run(loop, timeout=1)
    assert (answer.result, answer.state) == (None, ActionStatusCode.API_ERROR)
    lines = (answer.errmsg or "").splitlines()
    assert lines[0] == "so far"
    assert lines[-1] == "Timeout. It was interrupted after its timeout of 1 seconds."
    assert text(interpreter.run("kept")) == "5"


def test_closed_its_kernel_is_gone_and_the_next_run_starts_another(folder: Path) -> None:
    interpreter = IPythonInterpreter(work_dir="images")
    pid = text(interpreter.run("import os\nprint(os.getpid())")).strip()
    interpreter.close()
    interpreter.close()
    assert not Path(f"/proc/{pid}").exists()
    assert text(interpreter.run("1")) == "1"
    interpreter.close()


def test_its_folder_is_made_again(interpreter: IPythonInterpreter, folder: Path) -> None:
    with IPythonInterpreter(work_dir="gone/images") as other:
        (folder / "gone" / "images").rmdir()
        drawn = other.run("from IPython.display import Image\nImage(data=b'GIF89a', format='gif')")
    assert drawn.result is not None
    assert Path(drawn.result[1]["content"]).read_bytes() == b"GIF89a"


def test_images_that_cannot_be_written_are_told(
    interpreter: IPythonInterpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(interpreter, "work_dir", str(tmp_path / "file"))
    answer = interpreter.run("from IPython.display import SVG\nSVG('<svg></svg>')")
    assert answer.state == ActionStatusCode.API_ERROR
    assert str(tmp_path / "file") in (answer.errmsg or "")


def test_a_kernel_of_jupyters_own_is_the_callers() -> None:
    manager, client = IPythonInterpreter.start_kernel()
    try:
        reply = client.execute_interactive("x = 1", timeout=60)
        assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_what_it_runs_is_in_the_history_of_a_server_that_is_named(server: RealServer) -> None:
    with IPythonInterpreter(
        work_dir=str(server.root_dir),
        target=Target(url=server.url, token=server.token),
        agent="analyst",
    ) as interpreter:
        interpreter.run("print('seen')")
        interpreter.run("1 / 0")
        interpreter.reset()
    with AgentExecClient(server.url, server.token) as client:
        (session,) = client.sessions(agent="analyst")
        assert session.info.status == "closed"
        init, *executions = session.executions()
        assert init.execution.init
        assert [each.status for each in executions] == ["ok", "error", "ok"]
        assert executions[0].text == "seen\n"


def test_a_server_that_is_not_there_is_told(server: RealServer) -> None:
    interpreter = IPythonInterpreter(
        work_dir=str(server.root_dir), target=Target(url="http://127.0.0.1:9")
    )
    answer = interpreter.run("1")
    assert answer.state == ActionStatusCode.API_ERROR
    assert "http://127.0.0.1:9" in (answer.errmsg or "")
    interpreter.close()


def test_a_notebook_and_a_kernel_at_once_are_refused(server: RealServer) -> None:
    with IPythonInterpreter(
        work_dir=str(server.root_dir),
        target=Target(url=server.url, token=server.token, notebook="a.ipynb", kernel_id="b"),
    ) as interpreter:
        answer = interpreter.run("1")
    assert answer.state == ActionStatusCode.ARGS_ERROR
    assert "kernel" in (answer.errmsg or "")
