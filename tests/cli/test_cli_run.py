from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from jupyter_agent_exec.cli import main
from jupyter_agent_exec.client import AgentExecClient
from tests.cli.command import COMMAND, Cli, at_terminal
from tests.cli.conftest import Recorded
from tests.real_server import Gate, RealServer, environment

PLOT = """
import base64
from IPython.display import Image, display
data = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
display(Image(data=data, format="png"))
"""


def exit_code(words: list[str]) -> int | str | None:
    try:
        return main(words)
    except SystemExit as exit_:
        return exit_.code


def test_a_string_is_run(cli: Cli) -> None:
    done = cli("run", "print('hello')\n40 + 2")
    assert (done.returncode, done.stdout) == (0, "hello\n42\n")
    assert done.stderr.startswith("ok in ")


def test_a_file_is_run(cli: Cli) -> None:
    (cli.folder / "work.py").write_text("print('from a file')\n")
    assert cli("run", "work.py", "--quiet").stdout == "from a file\n"
    code = cli("run", "--code", "work.py", "--quiet")
    assert code.returncode == 1
    assert "NameError" in code.stderr


def test_standard_input_is_run(cli: Cli) -> None:
    done = cli("run", "-", "--quiet", stdin="for word in ['a', 'ö']:\n    print(word)\n")
    assert (done.stdout, done.stderr) == ("a\nö\n", "")


def test_code_that_raises_is_exit_code_1(cli: Cli) -> None:
    done = cli("run", "1/0")
    assert done.returncode == 1
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert done.stdout == ""
    assert "\x1b" not in done.stderr


def test_what_a_kernel_prints_cannot_control_the_terminal(cli: Cli) -> None:
    source = (
        "import sys\nprint('a\\x1b]0;title\\x07b\\x9b2J')\nprint('\\x1b[8mhid', file=sys.stderr)"
    )
    done = cli("run", source, "-q")
    assert done.stdout == "ab\ufffd2J\n"
    assert done.stderr == "hid\n"


@pytest.mark.parametrize(
    ("source", "words", "code", "status"),
    [
        ("import time; time.sleep(600)", ["--timeout", "0.5"], 6, "timed_out"),
        ("import os; os._exit(3)", [], 7, "kernel_died"),
        ("raise KeyboardInterrupt", [], 1, "error"),
    ],
)
def test_each_end_has_its_exit_code(
    cli: Cli, source: str, words: list[str], code: int, status: str
) -> None:
    done = cli("run", source, "--json", *words)
    assert (json.loads(done.stdout)["status"], done.returncode) == (status, code)


def test_images_are_saved_where_asked(cli: Cli) -> None:
    done = cli("run", PLOT, "--images", "plots/today", "--json", "-q")
    execution = json.loads(done.stdout)
    (saved,) = (cli.folder / "plots" / "today").iterdir()
    assert saved.name == f"{execution['session_id']}-1-1.png"
    assert saved.read_bytes().startswith(b"\x89PNG")


def test_an_image_that_cannot_be_saved_does_not_hide_how_the_code_ended(cli: Cli) -> None:
    removed = f"import os\nos.rmdir({str(cli.folder / 'plots')!r})\n"
    done = cli("run", f"{removed}{PLOT}\n1 / 0", "--images", "plots", "-q")
    assert done.returncode == 1
    assert "Not all images were saved: " in done.stderr
    assert "No such file" in done.stderr


def test_a_session_is_kept_and_gone_on_in(cli: Cli) -> None:
    first = json.loads(cli("run", "x = 20", "--keep", "--json", "--agent", "me").stdout)
    second = json.loads(cli("run", "x + 1", "--session", first["session_id"], "--json").stdout)
    assert (second["session_id"], second["seq"], second["text"].strip()) == (
        first["session_id"],
        2,
        "21",
    )
    shown = json.loads(cli("show", first["session_id"], "--json").stdout)["session"]
    assert (shown["status"], shown["agent"]["name"]) == ("open", "me")


def test_a_session_that_is_not_kept_is_closed(cli: Cli) -> None:
    execution = json.loads(cli("run", "1", "--json").stdout)
    done = cli("run", "2", "--session", execution["session_id"])
    assert done.returncode == 4
    assert "closed" in done.stderr


def test_sigterm_closes_the_session_that_the_command_opened(cli: Cli, gate: Gate) -> None:
    process = cli.start("run", "--agent", "ended", gate.source)
    gate.wait_until_it_runs()
    process.process.terminate()
    process.communicate()
    assert process.returncode == 143
    [session] = json.loads(cli("sessions", "--agent", "ended", "--json").stdout)
    assert session["status"] == "closed"
    [execution] = json.loads(cli("search", "--session", session["id"], "--json").stdout)
    assert execution["status"] == "interrupted"


def test_what_an_agent_runs_is_stopped_and_its_session_restarted_and_closed(
    cli: Cli, server: RealServer, gate: Gate
) -> None:
    with AgentExecClient(server.url, server.token) as client:
        session = client.open_session("told")
        sources = ["kept = 1", gate.source, "kept = 2", "kept = 3"]
        _, running, *queued = (session.submit_steps([source])[0] for source in sources)
        gate.wait_until_it_runs()
        done = cli("stop", queued[0].id)
        assert done.returncode == 0
        assert done.stdout.startswith(f"{queued[0].id}  cancelled")
        assert cli("stop", session.id).stdout == f"{session.id}  stopped\n"
        ended = [client.wait(each.id).status for each in (running, queued[1])]
        assert ended == ["interrupted", "cancelled"]
        assert cli("stop", running.id).returncode == 4
        assert cli("stop", running.id, "--close").returncode == 2
        assert session.run("kept").text == "1"
        told = json.loads(cli("stop", session.id, "--restart", "--json").stdout)
        assert (told["id"], told["status"]) == (session.id, "open")
        assert session.run("kept").status == "error"
        assert cli("stop", session.id, "--close").stdout == f"{session.id}  closed\n"
    assert cli("stop", "s_01M7YV88MGSFM8RRD49K1DXZ89").returncode == 4


def test_a_terminal_shows_in_colour_how_code_ended(cli: Cli) -> None:
    code, shown = at_terminal(cli, "run", "1/0")
    assert code == 1
    assert "\x1b[31merror in " in shown
    assert "\x1b" not in at_terminal(cli, "run", "1", NO_COLOR="1")[1]
    assert "\x1b" not in cli("run", "1").stderr


def test_a_shell_completes_commands_and_options(cli: Cli) -> None:
    def completed(line: str) -> set[str]:
        done = subprocess.run(
            [*COMMAND],
            env=cli.environ
            | {
                "_ARGCOMPLETE": "1",
                "_ARGCOMPLETE_STDOUT_FILENAME": str(cli.folder / "completed"),
                "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
                "_ARGCOMPLETE_IFS": "\n",
                "COMP_LINE": line,
                "COMP_POINT": str(len(line)),
            },
            check=False,
            stderr=subprocess.PIPE,
        )
        assert done.returncode == 0
        return {word.strip() for word in (cli.folder / "completed").read_text().split("\n")}

    assert completed("jupyter-agent-exec sto") == {"stop"}
    assert completed("jupyter-agent-exec run --note") == {"--notebook"}
    assert {"none", "first", "always"} <= completed("jupyter-agent-exec token create --approval ")


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["run"], "SOURCE"),
        (["run", "-", "--stdin"], "--stdin"),
        (["run", "--notebook", "a.ipynb"], "SOURCE is missing"),
        (["run", "1", "--after", "c1"], "--after needs --notebook"),
        (["run", "--cell", "c1"], "--cell needs --notebook"),
        (["run", "1", "--kernel", "k", "--no-cell"], "--no-cell needs --notebook"),
        (["run", "1", "--session", "s_1", "--create"], "--create needs --notebook"),
        (["run", "1", "--session", "s_1", "--title", "x"], "--title is for a new session"),
        (["run", "1", "--session", "s_1", "--agent", "x"], "--agent is for a new session"),
        (["run", "1", "--session", "s_1", "--notebook", "a.ipynb"], "not allowed with"),
        (["run", "1", "--notebook", "a.ipynb", "--kernel", "k"], "not allowed with"),
        (["run", "1", "--notebook", "a.ipynb", "--after", "a", "--cell", "b"], "not allowed with"),
        (["run", "1", "--notebook", "a.ipynb", "--cwd", "work"], "--cwd is not for a notebook"),
        (["run", "1", "--notebook", "a.ipynb", "--env", "A=b"], "--env is not for a notebook"),
        (["run", "1", "--kernel", "k", "--kernel-name", "ir"], "--kernel-name is not for a kernel"),
        (["run", "missing.py"], "no file missing.py"),
        (["run", "1", "--timeout", "-3"], "number of seconds"),
        (["run", "1", "--timeout", "inf"], "number of seconds"),
        (["run", "1", "--env", "NOVALUE"], "NAME=value"),
        (["run", "1", "--images", "taken"], "taken"),
        (["run", "taken.ipynb"], "jupyter execute"),
        (["run", "latin.py"], "not UTF-8"),
        (["run", "1", "--url", "localhost:8888"], "http://host:port"),
        (["sessions", "--limit", "0"], "number from 1"),
        (["show", "y_1"], "an id begins with s_"),
        (["show", "s_1", "--whole"], "--whole is for an execution"),
        (["mcp", "--start", "--url", "http://127.0.0.1:1"], "leave out --url"),
        (["run", "1", "--url", "http://127.0.0.1:1/?token=a", "--token", "b"], "another one"),
        (["verify", "s_1", "--journal", "taken"], "--journal is for an exported notebook"),
        (["verify", "taken", "--history", "."], "--history: the other arguments"),
        (["verify", "taken.ipynb", "--journal", "taken", "--history", "."], "--history: the other"),
        (["export", "s_1", "-o", "."], "folder"),
        (["export", "s_1", "-o", "no/such/folder.ipynb"], "no folder"),
        (["export", "s_1", "--journal", "taken/x"], "no folder"),
        (["fly"], "invalid choice"),
    ],
)
def test_a_command_line_without_sense_is_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    word: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("a file")
    Path("taken.ipynb").write_text("{}")
    Path("latin.py").write_bytes(b"# caf\xe9")
    assert exit_code(words) == 2
    assert word in capsys.readouterr().err


def test_nobody_at_the_address_is_exit_code_3(cli: Cli) -> None:
    done = cli("status", "--url", "http://127.0.0.1:9/", "--token", "x")
    assert done.returncode == 3
    assert "Cannot connect" in done.stderr


def test_the_environment_names_the_server(cli_alone: Cli, cli: Cli) -> None:
    status = json.loads(cli("status", "--json").stdout)
    token = "wrong"
    done = cli_alone(
        "status", JUPYTER_AGENT_EXEC_URL=status["address"], JUPYTER_AGENT_EXEC_TOKEN=token
    )
    assert done.returncode == 4
    assert "The token was refused (401)" in done.stderr
    refused = cli_alone("run", "1", JUPYTER_AGENT_EXEC_TOKEN=token)
    assert (refused.returncode, refused.stdout) == (3, "")  # it is for a server that is not there


def test_without_a_server_one_is_started_for_the_command(recorded: Recorded) -> None:
    assert recorded.done.returncode == 0
    assert "Starting one for the time of this command" in recorded.done.stderr
    folder, server_pid = recorded.done.stdout.splitlines()
    assert folder == str(recorded.folder)
    assert not Path(f"/proc/{server_pid}").exists()
    verified = Cli(environment(recorded.folder), recorded.folder)("verify")
    assert (verified.returncode, verified.stdout[:5]) == (0, "Whole")


def test_a_ctrl_c_also_ends_the_server_that_was_started(cli_alone: Cli, gate: Gate) -> None:
    process = cli_alone.start("run", "import os\nprint(os.getppid(), flush=True)\n" + gate.source)
    gate.wait_until_it_runs()
    server_pid = process.stdout.readline().strip()
    process.ctrl_c()
    _, err = process.communicate()
    assert process.returncode == 130
    assert "cancelling" in err
    assert not Path(f"/proc/{server_pid}").exists()
    assert cli_alone("verify").returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["run", "1", "--keep"],
        ["run", "1", "--notebook", "a.ipynb"],
        ["run", "1", "--kernel", "k"],
        ["status"],
    ],
)
def test_what_needs_a_running_server_says_so(cli_alone: Cli, words: list[str]) -> None:
    done = cli_alone(*words)
    assert done.returncode == 3
    assert "jupyter lab" in done.stderr


def test_a_server_that_cannot_start_shows_the_end_of_its_log(cli_alone: Cli) -> None:
    config = cli_alone.folder / "config" / "jupyter_server_config.py"
    config.parent.mkdir()
    config.write_text("raise SystemExit('no config today')")
    done = cli_alone("run", "1")
    assert done.returncode == 3
    assert "no config today" in done.stderr


def test_what_a_starting_server_prints_is_not_taken_for_its_answer(cli_alone: Cli) -> None:
    config = cli_alone.folder / "config" / "jupyter_server_config.py"
    config.parent.mkdir()
    config.write_text("print('{}')")
    done = cli_alone("run", "6 * 7")
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_an_extension_that_cannot_be_loaded_is_told_as_such(cli_alone: Cli) -> None:
    (cli_alone.folder / "imagesize.py").write_text("raise ImportError('a broken package')")
    path = os.pathsep.join([str(cli_alone.folder), cli_alone.environ["PYTHONPATH"]])
    done = cli_alone("run", "1", PYTHONPATH=path)
    assert done.returncode == 3
    assert "a broken package" in done.stderr
    assert "was not loaded" in done.stderr


def test_a_server_that_was_started_is_not_found_by_others(cli_alone: Cli, gate: Gate) -> None:
    process = cli_alone.start("run", gate.source)
    gate.wait_until_it_runs()
    status = cli_alone("status")
    gate.let_it_go_on()
    process.communicate()
    assert (status.returncode, process.returncode) == (3, 0)


def test_the_help_of_each_command_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--help"]) == 0
    text = capsys.readouterr().out
    listed = re.findall(r"^    ([a-z]+)  ", text, re.MULTILINE)
    assert len(listed) == 21
    for command in listed:
        assert exit_code([command, "--help"]) == 0
        assert len(capsys.readouterr().out) > 200


def test_what_code_asks_is_asked_at_the_terminal(cli: Cli) -> None:
    (cli.folder / "asks.py").write_text(
        "import getpass\nprint(input('Name? '), len(getpass.getpass('Key: ')))"
    )
    done = cli("run", "asks.py", "--stdin", stdin="Ada\nsecret\n")
    assert (done.returncode, done.stdout) == (0, "Ada 6\n")
    assert "Name?" in done.stderr
    assert "Key:" in done.stderr
    assert "secret" not in done.stderr


def test_the_end_of_standard_input_cancels_what_asks(cli: Cli) -> None:
    done = cli("run", "input('Name? ')", "--stdin", stdin="")
    assert done.returncode == 130
    assert "interrupted" in done.stderr
